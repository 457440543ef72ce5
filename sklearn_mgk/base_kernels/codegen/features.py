# SPDX-License-Identifier: BSD-3-Clause
"""Labels as rows of numbers, the form in which generated code reads them."""

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from sklearn_mgk.graphs.columns import ListColumn, factorize


def features(columns: Mapping, names: Sequence[str]) -> NDArray:
    """Put the attributes that a kernel reads side by side.

    Parameters
    ----------
    columns : dict of str to column
        The labels, L rows each.
    names : sequence of str
        The attributes, as in `BaseKernel.attributes`.

    Returns
    -------
    ndarray of shape (L, n_features), float64
        One column for a number, d for a vector of length d. Strings and lists become the number
        of their value among the sorted distinct values, which serves to ask for equality.
    """
    if not names:
        n = len(next(iter(columns.values()))) if columns else 1
        return np.empty((n, 0))
    return np.column_stack([_as_numbers(columns[name]) for name in names]).astype(np.float64)


def feature_dims(columns: Mapping, names: Sequence[str]) -> dict[str, int]:
    """Length of each attribute that is a vector; 0 for one that takes a single feature."""
    numbers = {name: _as_numbers(columns[name]) for name in names}
    return {name: 0 if rows.ndim == 1 else rows.shape[1] for name, rows in numbers.items()}


def _as_numbers(column) -> NDArray:
    if isinstance(column, ListColumn) or column.dtype.kind == "U":
        return factorize(column)[0]
    return column
