# SPDX-License-Identifier: BSD-3-Clause
"""From graphs to octiles, for a whole batch at once."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sklearn_mgk.base_kernels.labels import intern
from sklearn_mgk.graphs import GraphBatch, as_batch
from sklearn_mgk.graphs.columns import Column
from sklearn_mgk.graphs.transformer import GraphTransformer
from sklearn_mgk.octiles.tiles import AREA, SIDE, Octiles

_DTYPES = ("float32", "float64", np.float32, np.float64)


class OctileFeaturizer(GraphTransformer):
    """Transformer from graphs to `Octiles`, the tiles that a solver on a GPU reads.

    Parameters
    ----------
    edge_attributes : str or sequence of str, default=()
        Edge attributes that a label stands for: edges get equal labels if all of them are equal.
        ``kernel.edge_kernel.attributes`` of a graph kernel lists those that it reads.
    dtype : {"float64", "float32"}, default="float64"
        Type of weights and degrees.

    See Also
    --------
    Reorder : Permutes the nodes first, so that fewer tiles hold an edge.
    to_octiles : The same as a function, which also takes labels as numbers.

    Examples
    --------
    >>> from sklearn.pipeline import make_pipeline
    >>> from sklearn_mgk import OctileFeaturizer, SmilesToGraphs
    >>> model = make_pipeline(SmilesToGraphs(), OctileFeaturizer("order"))
    >>> octiles = model.fit_transform(["CC=O", "CCCCCCCCCC"])
    >>> octiles
    Octiles(n_graphs=2, n_tiles=5, n_nonzeros=22)
    >>> octiles.labels["order"].tolist(), octiles.label[:4].tolist()
    ([1.0, 2.0], [0, 0, 1, 1])
    """

    def __init__(self, edge_attributes: str | Sequence[str] = (), dtype: Any = "float64"):
        self.edge_attributes = edge_attributes
        self.dtype = dtype

    def transform(self, X: Any) -> Octiles:
        """Return the octiles of graphs.

        Parameters
        ----------
        X : GraphBatch, or list, tuple, array, Series or one-column DataFrame of Graph
            The graphs.

        Returns
        -------
        Octiles
            Those of all graphs, in the order of X. Repeated calls for one batch return the same
            object.

        Raises
        ------
        TypeError
            X holds no graphs.
        ValueError
            A parameter has no meaning, or the graphs lack an edge attribute.
        """
        self._check_parameters()
        batch, names = as_batch(X), _names(self.edge_attributes)
        dtype = np.dtype(self.dtype)
        return batch.cached(
            ("octiles", names, dtype), lambda: to_octiles(batch, names, dtype=dtype)
        )

    def _check_parameters(self) -> None:
        _names(self.edge_attributes)
        _check_dtype(self.dtype)


def to_octiles(
    X: Any,
    edge_attributes: str | Sequence[str] = (),
    *,
    labels: ArrayLike | None = None,
    dtype: Any = "float64",
) -> Octiles:
    """Cut the adjacency matrices of graphs into tiles of 8 x 8 and keep those that hold an edge.

    Parameters
    ----------
    X : GraphBatch, or list, tuple, array, Series or one-column DataFrame of Graph
        The graphs.
    edge_attributes : str or sequence of str, default=()
        Edge attributes that a label stands for; without any, all labels are 0.
    labels : array-like of shape (n_edges,), int, default=None
        Labels from elsewhere, one for each edge of the batch, in place of attributes.
    dtype : {"float64", "float32"}, default="float64"
        Type of weights and degrees.

    Returns
    -------
    Octiles
        Those of all graphs, in the order of X.

    Raises
    ------
    TypeError
        X holds no graphs, or the labels are no integers.
    ValueError
        The graphs lack an attribute, labels do not fit the edges, or a weight is too large for
        float32.

    Examples
    --------
    >>> from sklearn_mgk import from_smiles, to_octiles
    >>> octiles = to_octiles(from_smiles(["C=O"]), labels=[7])
    >>> octiles.label.tolist(), octiles.to_dense(0).tolist()
    ([7, 7], [[0.0, 1.0], [1.0, 0.0]])
    """
    _check_dtype(dtype)
    batch, dtype = as_batch(X), np.dtype(dtype)
    _check_range(batch, dtype)
    codes, columns = _labels(batch, edge_attributes, labels)
    cells = _sorted_cells(batch)
    begin = np.flatnonzero(_starts(cells.place, cells.layer))
    graph = batch.edge_graph[cells.edge[begin]]
    n_blocks, first = _blocks(batch)
    place = cells.place[begin] - first[graph]
    return Octiles(
        tile_ptr=np.searchsorted(graph, np.arange(len(batch) + 1)),
        row=(place // n_blocks[graph]).astype(np.int32),
        column=(place % n_blocks[graph]).astype(np.int32),
        bitmap=np.bitwise_or.reduceat(np.uint64(1) << cells.bit.astype(np.uint64), begin),
        nnz_ptr=np.append(begin, len(cells.edge)),
        weight=batch.edge_weight[cells.edge].astype(dtype),
        label=codes[cells.edge],
        edge=cells.edge,
        **_node_arrays(batch, cells.edge, n_blocks, dtype),
        labels=columns,
    )


class _Cells(NamedTuple):
    """Non-zeros of all matrices, in the order of the tiles, one row each."""

    place: NDArray[np.int64]  # number of the tile's place, over all graphs
    layer: NDArray[np.int64]  # 0 for the first edge of a cell, 1 for one parallel to it, ...
    bit: NDArray[np.int64]
    edge: NDArray[np.int64]  # row of the edge columns


def _blocks(batch: GraphBatch) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the rows of tiles of each graph, and the number of its first place."""
    n_blocks = -(-batch.sizes // SIDE)
    return n_blocks, np.cumsum(n_blocks**2) - n_blocks**2


def _entries(batch: GraphBatch) -> tuple[NDArray, NDArray, NDArray]:
    """Return edge, row and column of each non-zero; the edges of any one cell ascend."""
    edge = np.flatnonzero(batch.edge_weight > 0)
    low, high = np.sort(batch.edge_index[:, edge], axis=0)
    back = np.flatnonzero(low != high)
    return (
        np.concatenate([edge, edge[back]]),
        np.concatenate([low, high[back]]),
        np.concatenate([high, low[back]]),
    )


def _sorted_cells(batch: GraphBatch) -> _Cells:
    """Sort the non-zeros by place, layer and bit."""
    edge, row, column = _entries(batch)
    graph = batch.edge_graph[edge]
    n_blocks, first = _blocks(batch)
    place = first[graph] + row // SIDE * n_blocks[graph] + column // SIDE
    bit = SIDE * (row % SIDE) + column % SIDE
    order = np.argsort(place * AREA + bit, kind="stable")
    place, bit, edge = place[order], bit[order], edge[order]
    begin = np.flatnonzero(_starts(place, bit))
    layer = np.arange(len(edge)) - np.repeat(begin, np.diff(begin, append=len(edge)))
    if layer.any():
        order = np.lexsort((bit, layer, place))
        place, layer, bit, edge = place[order], layer[order], bit[order], edge[order]
    return _Cells(place, layer, bit, edge)


def _starts(*keys: NDArray) -> NDArray[np.bool_]:
    """Return whether any of some keys differs from the row before; True in the first row."""
    starts = np.ones(len(keys[0]), dtype=bool)
    starts[1:] = np.any([key[1:] != key[:-1] for key in keys], axis=0)
    return starts


def _node_arrays(
    batch: GraphBatch, edge: NDArray, n_blocks: NDArray, dtype: np.dtype
) -> dict[str, NDArray]:
    """Return the arrays with one row a node, each graph padded to whole tiles."""
    node_ptr = np.append(0, SIDE * np.cumsum(n_blocks))
    place = np.arange(batch.n_nodes) + np.repeat(node_ptr[:-1] - batch.node_ptr[:-1], batch.sizes)
    node = np.full(node_ptr[-1], -1)
    node[place] = np.arange(batch.n_nodes)
    degree = np.zeros(len(node), dtype)
    degree[place] = _degrees(batch)
    return {"node_ptr": node_ptr, "node": node, "degree": degree}


def _degrees(batch: GraphBatch) -> NDArray[np.float64]:
    """Return the sum of the weights at each node, self-loops once."""
    first, second = batch.edge_index + batch.node_ptr[batch.edge_graph]
    weight, n = batch.edge_weight, batch.n_nodes
    back = np.where(first == second, 0.0, weight)
    return np.bincount(first, weight, n) + np.bincount(second, back, n)


def _labels(
    batch: GraphBatch, names: str | Sequence[str], labels: ArrayLike | None
) -> tuple[NDArray[np.int32], Mapping[str, Column]]:
    """Return the label of each edge, and the attributes of each label."""
    if labels is None:
        interned = intern(batch, "edge", _names(names))
        return interned.codes, interned.columns
    if _names(names):
        raise ValueError(f"edge_attributes={names!r} and labels are both given: choose one of them")
    codes = np.asarray(labels)
    if codes.shape != (batch.n_edges,):
        raise ValueError(
            f"labels has shape {codes.shape}, the graphs have {batch.n_edges} edges: "
            "pass one label for each edge"
        )
    if codes.size and codes.dtype.kind not in "iu":
        raise TypeError(f"labels must hold integers, got {codes.dtype}")
    _check_labels(batch, codes)
    return codes.astype(np.int32), {}


def _check_labels(batch: GraphBatch, codes: NDArray) -> None:
    """Raise unless all labels are numbers from 0 that fit 32 bits."""
    bad = (codes < 0) | (codes > np.iinfo(np.int32).max)
    if bad.any():
        edge = int(np.argmax(bad))
        raise ValueError(
            f"{_where(batch, edge)} has label {codes[edge]}: labels must lie between 0 and "
            f"{np.iinfo(np.int32).max}"
        )


def _check_range(batch: GraphBatch, dtype: np.dtype) -> None:
    """Raise for a weight that would become infinite."""
    bad = batch.edge_weight > np.finfo(dtype).max
    if bad.any():
        edge = int(np.argmax(bad))
        raise ValueError(
            f"{_where(batch, edge)} has weight {batch.edge_weight[edge]}, too large for {dtype}: "
            "use dtype='float64' or scale the weights"
        )


def _check_dtype(dtype: Any) -> None:
    if dtype not in _DTYPES:
        raise ValueError(f"dtype={dtype!r} of octiles must be 'float64' or 'float32'")


def _where(batch: GraphBatch, edge: int) -> str:
    """Name an edge for a message."""
    graph = batch.edge_graph[edge]
    return f"graph {graph}, edge {edge - batch.edge_ptr[graph]}"


def _names(names: str | Sequence[str]) -> tuple[str, ...]:
    """Return one or several names as a tuple."""
    several = (names,) if isinstance(names, str) else names
    if isinstance(several, list | tuple) and all(isinstance(name, str) for name in several):
        return tuple(several)
    raise ValueError(
        f"edge_attributes={names!r} of octiles must be the name of an edge attribute, or a list or "
        "tuple of names"
    )
