# SPDX-License-Identifier: BSD-3-Clause
"""Interning: number the distinct combinations of the attributes a base kernel reads."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from sklearn_mgk.graphs.columns import n_rows, take

_LARGEST = np.iinfo(np.int64).max


@dataclass(frozen=True)
class Labels:
    """Small integers for the rows of a batch, and what they stand for.

    Parameters
    ----------
    codes : ndarray of shape (n_rows,), int32
        Label of each node (or edge) of the batch.
    columns : dict of str to column
        The attributes of each distinct label, `n_labels` rows each. Empty where the kernel reads
        no attribute: all rows then carry the one label 0.
    """

    codes: NDArray
    columns: dict

    @property
    def n_labels(self) -> int:
        """Number of distinct labels."""
        return n_rows(next(iter(self.columns.values()))) if self.columns else 1


def intern(batch, kind: str, names: Sequence[str]) -> Labels:
    """Give a number to each distinct combination of some attributes in a batch.

    The numbers depend on the content only: labels are sorted by the first attribute, then by the
    second, and so on.

    Parameters
    ----------
    batch : GraphBatch
        The graphs.
    kind : {"node", "edge"}
        Whether node or edge attributes are meant.
    names : sequence of str
        The attributes, as in `BaseKernel.attributes`.

    Returns
    -------
    Labels
        The label of each row, and the attributes of each label.
    """
    if not names:
        n = batch.n_nodes if kind == "node" else batch.n_edges
        return Labels(np.zeros(n, dtype=np.int32), {})
    parts = {name: batch.factorized(kind, name) for name in names}
    if len(parts) == 1:
        codes, distinct = next(iter(parts.values()))
        return Labels(codes, {names[0]: distinct})
    combined = _combine([(codes, n_rows(distinct)) for codes, distinct in parts.values()])
    _, first, codes = np.unique(combined, return_index=True, return_inverse=True)
    columns = {name: take(distinct, codes[first]) for name, (codes, distinct) in parts.items()}
    return Labels(codes.astype(np.int32), columns)


def _combine(parts: list[tuple[NDArray, int]]) -> NDArray:
    """One integer for each row, ordered like its codes, compressed before it overflows."""
    combined, size = np.zeros(len(parts[0][0]), dtype=np.int64), 1
    for codes, count in parts:
        if size > _LARGEST // max(count, 1):
            distinct, combined = np.unique(combined, return_inverse=True)
            size = len(distinct)
        combined, size = combined * count + codes, size * max(count, 1)
    return combined
