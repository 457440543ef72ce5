# SPDX-License-Identifier: BSD-3-Clause
"""Node attributes as columns of numbers: categories become one column each."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sklearn_mgk.graphs import GraphBatch, ListColumn


@dataclass(frozen=True)
class Encoding:
    """How one node attribute becomes columns.

    Attributes
    ----------
    name : str
        The attribute.
    categories : ndarray or None
        Values that have a column each; None for numbers, which are taken as they are.
    width : int
        Number of columns.
    """

    name: str
    categories: NDArray | None
    width: int

    @property
    def names(self) -> list[str]:
        """Name of each column."""
        if self.categories is not None:
            return [f"{self.name}={value}" for value in self.categories.tolist()]
        return [self.name] if self.width == 1 else [f"{self.name}{k}" for k in range(self.width)]

    def encode(self, batch: GraphBatch, dtype: Any) -> NDArray:
        """Return the columns, of shape (n_nodes, width); unknown categories have zeros."""
        column = batch.read("node", self.name)
        if self.categories is not None:
            return self._one_hot(column, dtype)
        if isinstance(column, ListColumn) or column.dtype.kind == "U":
            raise ValueError(f"node attribute {self.name!r} was numeric in fit and is not any more")
        column = column.reshape(batch.n_nodes, -1).astype(dtype)
        if column.shape[1] != self.width:
            raise ValueError(
                f"node attribute {self.name!r} has {column.shape[1]} numbers a node, in fit it had "
                f"{self.width}"
            )
        return column

    def _one_hot(self, column: NDArray, dtype: Any) -> NDArray:
        values, code = np.unique(column, return_inverse=True)
        if (values.dtype.kind == "U") != (self.categories.dtype.kind == "U"):
            kinds = f"{values.dtype} now, {self.categories.dtype} in fit"
            raise ValueError(
                f"node attribute {self.name!r} is of another type than in fit: {kinds}"
            )
        place = np.searchsorted(self.categories, values).clip(max=self.width - 1)
        known = self.categories[place] == values
        found = np.zeros((len(column), self.width), dtype)
        rows = np.flatnonzero(known[code])
        found[rows, place[code[rows]]] = 1
        return found


def learn_encodings(batch: GraphBatch, attributes: Any, categorical: Any) -> list[Encoding]:
    """Choose columns for node attributes.

    Parameters
    ----------
    batch : GraphBatch
        The graphs.
    attributes : sequence of str or None
        Attributes to read; None means all that are numbers, vectors, strings or booleans.
    categorical : sequence of str
        Attributes of numbers that are categories.

    Returns
    -------
    list of Encoding
        One for each attribute.

    Raises
    ------
    ValueError
        An attribute is missing or holds lists.
    """
    if attributes is None:
        attributes = [name for name, c in batch.nodes.items() if not isinstance(c, ListColumn)]
    unused = set(categorical) - set(attributes)
    if unused:
        raise ValueError(f"categorical names {sorted(unused)}, which are not read: {attributes}")
    return [_learn(batch, name, name in categorical) for name in attributes]


def _learn(batch: GraphBatch, name: str, categorical: bool) -> Encoding:
    column = batch.read("node", name)
    if isinstance(column, ListColumn):
        raise ValueError(
            f"node attribute {name!r} holds lists of varying length and gives no columns: leave it "
            "out of attributes"
        )
    if column.dtype.kind in "Ub" or categorical:
        if column.ndim > 1:
            raise ValueError(f"node attribute {name!r} holds vectors and cannot be categorical")
        categories = np.unique(column)
        return Encoding(name, categories, len(categories))
    return Encoding(name, None, 1 if column.ndim == 1 else column.shape[1])
