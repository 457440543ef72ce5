# SPDX-License-Identifier: BSD-3-Clause
"""The front door of everything that takes X: one list of objects, one a row."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np


def as_rows(X: Any, what: str) -> list:
    """Return the rows of X as a list, without looking into the objects.

    Parameters
    ----------
    X : list, tuple, ndarray, Series, or array or DataFrame with one column
        One object a row.
    what : str
        What the rows should be, for messages: "SMILES strings or RDKit molecules".

    Returns
    -------
    list
        The objects, in order.

    Raises
    ------
    TypeError
        X is a single object, a generator, or another kind of container.
    ValueError
        X is empty or has several columns.

    Examples
    --------
    >>> as_rows(np.array([["C"], ["CC"]]), "SMILES strings")
    ['C', 'CC']
    """
    if isinstance(X, Iterator):
        raise TypeError(
            f"X is a {type(X).__name__}, which can be read only once: pass list(X) of {what}"
        )
    to_numpy = getattr(X, "to_numpy", None)
    rows = X if to_numpy is None else to_numpy()
    if isinstance(rows, np.ndarray):
        rows = _single_column(rows, what)
    if not isinstance(rows, (list, tuple)):
        raise TypeError(
            f"X must be a sequence of {what}, got {type(X).__name__}: "
            "wrap a single one in a list, [x]"
        )
    if len(rows) == 0:
        raise ValueError(f"X is empty: a list of {what} is needed")
    return list(rows)


def _single_column(array: np.ndarray, what: str) -> Any:
    """Return the entries of an (n,) or (n, 1) array as a list, or the object of a 0-d array."""
    if array.ndim > 2 or (array.ndim == 2 and array.shape[1] != 1):
        raise ValueError(
            f"X must have one column of {what}, got shape {array.shape}: select the column first"
        )
    return array.reshape(-1).tolist() if array.ndim else array.item()
