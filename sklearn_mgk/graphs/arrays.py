# SPDX-License-Identifier: BSD-3-Clause
"""Graphs from arrays: edge lists with attributes, or adjacency matrices."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from scipy import sparse

from sklearn_mgk.graphs.batch import GraphBatch
from sklearn_mgk.graphs.columns import Column, ColumnError, as_column, concatenate

_KEYS = {"n_nodes", "edge_index", "edge_weight", "nodes", "edges"}
# Matrices that were symmetrised by a computation differ from their transpose by a few roundings.
_SYMMETRY_TOLERANCE = 1e-12


def from_arrays(graphs: Sequence[Mapping[str, Any]]) -> GraphBatch:
    """Make graphs of edge lists and attributes.

    Parameters
    ----------
    graphs : sequence of mappings
        For each graph a mapping with the keys

        - ``"n_nodes"``: int; not needed if there are node attributes;
        - ``"edge_index"``: array-like of shape (2, n_edges), node numbers from 0, each undirected
          edge once;
        - ``"edge_weight"``: array-like of shape (n_edges,), finite and >= 0, default ones;
        - ``"nodes"``, ``"edges"``: mapping of attribute names to one value a node or edge (numbers,
          strings, vectors or lists), default none.

    Returns
    -------
    GraphBatch
        One graph a mapping. An attribute that some graph lacks is an error only when a kernel reads
        it.

    Raises
    ------
    ValueError
        Shapes do not fit, a key is unknown, or a node number or weight is out of range; the message
        names the graph.

    Examples
    --------
    >>> from_arrays([
    ...     {"edge_index": [[0, 1], [1, 2]], "nodes": {"element": ["C", "C", "O"]}},
    ...     {"edge_index": [[], []], "nodes": {"element": ["N"]}}])
    GraphBatch(n_graphs=2, n_nodes=4, n_edges=2, nodes=['element'], edges=[])
    """
    if not isinstance(graphs, (list, tuple)):
        raise TypeError(f"graphs must be a list of mappings, got {type(graphs).__name__}")
    if len(graphs) == 0:
        raise ValueError("graphs is empty: at least one graph is needed")
    edge_index = [_edge_index(graph, g) for g, graph in enumerate(graphs)]
    n_nodes = [_n_nodes(graph, g) for g, graph in enumerate(graphs)]
    n_edges = [ends.shape[1] for ends in edge_index]
    nodes, unusable_nodes = _columns(graphs, "node", n_nodes)
    edges, unusable_edges = _columns(graphs, "edge", n_edges)
    return GraphBatch(
        node_ptr=np.cumsum([0, *n_nodes]),
        edge_ptr=np.cumsum([0, *n_edges]),
        edge_index=np.concatenate(edge_index, axis=1),
        edge_weight=np.concatenate(
            [
                _weights(graph, g, n)
                for g, (graph, n) in enumerate(zip(graphs, n_edges, strict=True))
            ]
        ),
        nodes=nodes,
        edges=edges,
        unusable_nodes=unusable_nodes,
        unusable_edges=unusable_edges,
    )


def from_adjacency(
    matrices: Sequence[Any], nodes: Sequence[Mapping[str, Any]] | None = None
) -> GraphBatch:
    """Make graphs of symmetric adjacency matrices.

    Parameters
    ----------
    matrices : sequence of array-like or scipy sparse arrays of shape (n_nodes, n_nodes)
        The edge weights, finite and >= 0; entries of 0 are no edges, entries on the diagonal are
        self-loops.
    nodes : sequence of mappings, default=None
        For each graph its node attributes, one value a node.

    Returns
    -------
    GraphBatch
        One graph a matrix.

    Raises
    ------
    ValueError
        A matrix is not square or not symmetric; the message names it.

    Examples
    --------
    >>> batch = from_adjacency([[[0, 1], [1, 0.5]]])
    >>> batch.edge_index.tolist(), batch.edge_weight.tolist()
    ([[0, 1], [1, 1]], [1.0, 0.5])
    """
    if not isinstance(matrices, (list, tuple)):
        raise TypeError(
            f"matrices must be a list of matrices, got {type(matrices).__name__}: "
            "wrap a single one in a list, [A]"
        )
    nodes = [{}] * len(matrices) if nodes is None else nodes
    if len(nodes) != len(matrices):
        raise ValueError(
            f"there are {len(matrices)} matrices, but node attributes for {len(nodes)}"
        )
    graphs = [_edge_list(matrix, g) for g, matrix in enumerate(matrices)]
    return from_arrays([{**graph, "nodes": own} for graph, own in zip(graphs, nodes, strict=True)])


def _edge_list(matrix: Any, g: int) -> dict[str, Any]:
    """Return the upper triangle of a symmetric matrix as edges."""
    matrix = sparse.csr_array(matrix, dtype=np.float64)
    if matrix.ndim != 2 or matrix.shape[0] != matrix.shape[1]:
        raise ValueError(f"graph {g}: an adjacency matrix must be square, got {matrix.shape}")
    difference, scale = abs(matrix - matrix.T), abs(matrix).max()
    if difference.max() > _SYMMETRY_TOLERANCE * scale:
        i, j = np.unravel_index(difference.argmax(), matrix.shape)
        raise ValueError(
            f"graph {g}: the adjacency matrix is not symmetric, entry ({i}, {j}) is "
            f"{matrix[i, j]:g} and ({j}, {i}) is {matrix[j, i]:g}: pass (A + A.T) / 2"
        )
    upper = sparse.coo_array(sparse.triu(matrix))
    upper.eliminate_zeros()
    return {"n_nodes": matrix.shape[0], "edge_index": upper.coords, "edge_weight": upper.data}


def _edge_index(graph: Mapping[str, Any], g: int) -> np.ndarray:
    """Return the ends of one graph's edges as int64, shape (2, n_edges)."""
    unknown = set(graph) - _KEYS
    if unknown:
        raise ValueError(f"graph {g}: unknown keys {sorted(unknown)}; known are {sorted(_KEYS)}")
    ends = np.asarray(graph.get("edge_index", [[], []]))
    if ends.ndim != 2 or len(ends) != 2:
        raise ValueError(f"graph {g}: edge_index must have shape (2, n_edges), got {ends.shape}")
    if ends.size and ends.dtype.kind not in "iu":
        raise TypeError(f"graph {g}: edge_index must hold integers, got {ends.dtype}")
    return ends.astype(np.int64)


def _n_nodes(graph: Mapping[str, Any], g: int) -> int:
    """Return the number of nodes, stated or that of the attributes."""
    if "n_nodes" in graph:
        return int(graph["n_nodes"])
    if not graph.get("nodes"):
        raise ValueError(f"graph {g}: without node attributes n_nodes is needed")
    return len(next(iter(graph["nodes"].values())))


def _weights(graph: Mapping[str, Any], g: int, n_edges: int) -> np.ndarray:
    """Return one graph's edge weights."""
    weights = graph.get("edge_weight")
    weights = np.ones(n_edges) if weights is None else np.asarray(weights, dtype=np.float64)
    if weights.shape != (n_edges,):
        raise ValueError(f"graph {g}: edge_weight has shape {weights.shape}, not ({n_edges},)")
    return weights


def _columns(
    graphs: Sequence[Mapping[str, Any]], kind: str, counts: Sequence[int]
) -> tuple[dict[str, Column], dict[str, str]]:
    """Join each attribute over the graphs; also why some form no column."""
    attributes = [graph.get(f"{kind}s") or {} for graph in graphs]
    ptr = np.cumsum([0, *counts])
    columns, unusable = {}, {}
    for name in dict.fromkeys(name for own in attributes for name in own):
        try:
            columns[name] = _join(attributes, name, kind, counts)
        except ColumnError as error:
            place = int(np.searchsorted(ptr, error.row, side="right")) - 1
            where = f"graph {place}, {kind} {error.row - ptr[place]}"
            unusable[name] = f"the value of {where} {error.problem}"
    return columns, unusable


def _join(
    attributes: Sequence[Mapping[str, Any]], name: str, kind: str, counts: Sequence[int]
) -> Column:
    """Return one attribute of all graphs; a `ColumnError` says at which row that fails."""
    parts, n_before = [], 0
    for g, (own, n) in enumerate(zip(attributes, counts, strict=True)):
        if name not in own and n:
            raise ColumnError(n_before, "is missing")
        try:
            parts.append(as_column(own.get(name, ())))
        except ColumnError as error:
            raise ColumnError(n_before + error.row, error.problem) from None
        if len(parts[-1]) != n:
            raise ValueError(
                f"graph {g}: {kind} attribute {name!r} has {len(parts[-1])} values, "
                f"the graph has {n} {kind}s"
            )
        n_before += n
    return concatenate(parts)
