# SPDX-License-Identifier: BSD-3-Clause
"""How a solver gets at a base kernel of few labels: one table for all pairs.

See `solver.pair_tables` for kernels of many labels.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from sklearn_mgk.base_kernels.checks import check_table
from sklearn_mgk.graphs.columns import take
from sklearn_mgk.solver.problem import LabelKernel

MAX_TABLE_LABELS = 512
"""Largest number of distinct labels for one table over all of them.

A table of 512 labels takes 2 MB, which stays in the second-level cache; see
``benchmarks/representations.py`` for the times on both sides of the limit.
"""

CHECKED_LABELS = 256
"""Labels on which the range of a kernel is checked before any pair is solved, if there are more."""


NO_FACTORS = np.empty((0, 0))
"""Stands for a representation that has values and no factors."""


class Representation(Protocol):
    """A base kernel, made ready for the loops of a solver."""

    codes: NDArray  # (n_rows,) label of each node or edge, as the tables count them
    factors: NDArray  # (n_rows, rank) factors of the kernel at each edge; rank 0 if unused

    def tables(self, pairs: NDArray) -> tuple[NDArray, NDArray, NDArray, NDArray]:
        """Values (flat), slopes (n_values, n_theta), base and stride of each pair."""
        ...


@dataclass(frozen=True)
class SharedTable:
    """One table over all distinct labels."""

    factors = NO_FACTORS

    codes: NDArray
    values: NDArray
    slopes: NDArray
    n_labels: int

    def tables(self, pairs: NDArray) -> tuple[NDArray, NDArray, NDArray, NDArray]:
        """Return the one table, at the same place for each pair."""
        base = np.zeros(len(pairs), np.uint64)
        return self.values, self.slopes, base, np.full(len(pairs), self.n_labels, np.uint64)


def shared_table(source: LabelKernel, eval_gradient: bool, dtype: np.dtype) -> SharedTable:
    """Evaluate a base kernel on all of its distinct labels."""
    n = source.n_labels
    if eval_gradient:
        values, slopes = source.kernel.table_gradient(source.labels)
    else:
        values, slopes = source.kernel.table(source.labels), np.empty((n, n, 0))
    check_table(values, source.role, source.labels)
    return SharedTable(
        source.labels.codes,
        np.ascontiguousarray(values, dtype).ravel(),
        np.ascontiguousarray(slopes, dtype).reshape(n * n, slopes.shape[2]),
        n,
    )


def check_sample(source: LabelKernel) -> None:
    """Check a kernel of many labels on evenly spaced ones (labels are sorted)."""
    chosen = np.unique(np.linspace(0, source.n_labels - 1, CHECKED_LABELS).astype(int))
    labels = {name: take(column, chosen) for name, column in source.labels.columns.items()}
    check_table(source.kernel.table(labels), source.role, labels)
