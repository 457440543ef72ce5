# SPDX-License-Identifier: BSD-3-Clause
"""Graphs from networkx, and back."""

from __future__ import annotations

from collections.abc import Sequence
from types import ModuleType
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from sklearn_mgk.graphs.batch import Graph, GraphBatch
from sklearn_mgk.graphs.columns import Column, ColumnError, as_column
from sklearn_mgk.graphs.inputs import as_rows
from sklearn_mgk.graphs.transformer import GraphTransformer

if TYPE_CHECKING:
    import networkx

_MISSING = object()


def from_networkx(X: Any, weight: str | None = "weight") -> GraphBatch:
    """Make graphs of undirected networkx graphs.

    The nodes keep the order of ``G.nodes``; parallel edges of a MultiGraph stay parallel.

    Parameters
    ----------
    X : sequence of networkx.Graph or networkx.MultiGraph
        The graphs.
    weight : str or None, default="weight"
        Edge attribute that holds the edge weights, finite and >= 0; an edge without it has weight
        1. With None all weights are 1, and "weight" is an attribute like any other.

    Returns
    -------
    GraphBatch
        One graph a row, with all node and edge attributes whose names are strings. Attributes that
        some node or edge lacks, or that are no numbers, strings or lists of either, are an error
        only when a kernel reads them.

    Raises
    ------
    ValueError
        A graph is directed or has no nodes, or a weight is not a finite number >= 0.
    TypeError
        X is a single graph, or a row is no networkx graph.

    See Also
    --------
    sklearn_mgk.graphs.Graph.to_networkx : The way back.

    Examples
    --------
    >>> import networkx as nx
    >>> G = nx.Graph()
    >>> G.add_node("a", element="C")
    >>> G.add_node("b", element="O")
    >>> G.add_edge("a", "b", order=2.0, weight=0.5)
    >>> batch = from_networkx([G])
    >>> batch.nodes["element"].tolist(), batch.edge_weight.tolist(), list(batch.edges)
    (['C', 'O'], [0.5], ['order'])
    """
    _check_weight(weight)
    graphs = _undirected_graphs(X)
    numbers = [{node: i for i, node in enumerate(G)} for G in graphs]
    nodes = [(g, node, data) for g, G in enumerate(graphs) for node, data in G.nodes(data=True)]
    edges = [(g, (u, v), data) for g, G in enumerate(graphs) for u, v, data in G.edges(data=True)]
    ends = [(numbers[g][u], numbers[g][v]) for g, (u, v), _ in edges]
    node_columns, unusable_nodes = _columns(nodes, "node")
    edge_columns, unusable_edges = _columns(edges, "edge", skip=weight)
    return GraphBatch(
        node_ptr=np.cumsum([0, *(G.number_of_nodes() for G in graphs)]),
        edge_ptr=np.cumsum([0, *(G.number_of_edges() for G in graphs)]),
        edge_index=np.array(ends, dtype=np.int64).reshape(-1, 2).T,
        edge_weight=_weights(edges, weight),
        nodes=node_columns,
        edges=edge_columns,
        unusable_nodes=unusable_nodes,
        unusable_edges=unusable_edges,
    )


class NetworkXToGraphs(GraphTransformer):
    """Transformer from undirected networkx graphs to graphs.

    Parameters
    ----------
    weight : str or None, default="weight"
        Edge attribute that holds the edge weights; an edge without it has weight 1. With None all
        weights are 1.

    See Also
    --------
    from_networkx : The same as a function.

    Examples
    --------
    >>> import networkx as nx
    >>> NetworkXToGraphs().fit_transform([nx.path_graph(3), nx.cycle_graph(4)])
    GraphBatch(n_graphs=2, n_nodes=7, n_edges=6, nodes=[], edges=[])
    """

    def __init__(self, weight: str | None = "weight"):
        self.weight = weight

    def transform(self, X: Any) -> GraphBatch:
        """Return the graphs.

        Parameters
        ----------
        X : sequence of networkx.Graph or networkx.MultiGraph
            The networkx graphs.

        Returns
        -------
        GraphBatch
            One graph a row.
        """
        return from_networkx(X, self.weight)

    def _check_parameters(self) -> None:
        _check_weight(self.weight)


def to_networkx(graph: Graph, weight: str | None) -> networkx.Graph | networkx.MultiGraph:
    """Return a graph for networkx; `Graph.to_networkx` says how."""
    nx = _import_networkx()
    if weight in graph.batch.edges:
        raise ValueError(
            f"there is an edge attribute {weight!r}: choose another name for the weights, or None"
        )
    pairs = np.sort(graph.edge_index, axis=0).T
    parallel = len(np.unique(pairs, axis=0)) < len(pairs)
    result = nx.MultiGraph() if parallel else nx.Graph()
    edges = graph.edges if weight is None else {**graph.edges, weight: graph.edge_weight}
    result.add_nodes_from(enumerate(_records(graph.nodes, graph.n_nodes)))
    for (u, v), data in zip(
        graph.edge_index.T.tolist(), _records(edges, graph.n_edges), strict=True
    ):
        result.add_edge(u, v, **data)
    return result


def _import_networkx() -> ModuleType:
    """Return networkx, or say how to install it."""
    try:
        import networkx
    except ImportError as error:
        raise ImportError(
            'networkx graphs need networkx: pip install "sklearn-mgk[networkx]"'
        ) from error
    return networkx


def _check_weight(weight: Any) -> None:
    """Raise unless weight can name an attribute."""
    if weight is not None and not isinstance(weight, str):
        raise ValueError(f"weight must be the name of an edge attribute or None, got {weight!r}")


def _undirected_graphs(X: Any) -> list[networkx.Graph]:
    """Return the graphs of X, checked one by one."""
    nx = _import_networkx()
    graphs = as_rows(X, "networkx graphs")
    for row, G in enumerate(graphs):
        if not isinstance(G, nx.Graph):
            raise TypeError(f"row {row} of X is of type {type(G).__name__}, not a networkx graph")
        if G.is_directed():
            raise ValueError(
                f"graph {row} is directed, the kernels are for undirected graphs: "
                "convert it with G.to_undirected()"
            )
    return graphs


def _columns(
    rows: Sequence[tuple[int, Any, dict]], kind: str, skip: str | None = None
) -> tuple[dict[str, Column], dict[str, str]]:
    """Pack each attribute of (graph, node or edge, data) rows; also why some form no column."""
    names = dict.fromkeys(name for _, _, data in rows for name in data if isinstance(name, str))
    names.pop(skip, None)
    columns, unusable = {}, {}
    for name in names:
        values = [data.get(name, _MISSING) for _, _, data in rows]
        missing = next((i for i, value in enumerate(values) if value is _MISSING), None)
        if missing is not None:
            unusable[name] = f"{_where(rows[missing], kind)} lacks it"
            continue
        try:
            columns[name] = as_column(values)
        except ColumnError as error:
            first, place = _where(rows[0], kind), _where(rows[error.row], kind)
            unusable[name] = f"the value of {place} {error.problem.replace('row 0', first)}"
    return columns, unusable


def _where(row: tuple[int, Any, dict], kind: str) -> str:
    """Name a node or edge by its ids."""
    return f"graph {row[0]}, {kind} {row[1]!r}"


def _weights(
    edges: Sequence[tuple[int, Any, dict]], weight: str | None
) -> NDArray[np.float64] | None:
    """Return the edge weights, or None for ones."""
    if weight is None:
        return None
    weights = [data.get(weight, 1.0) for _, _, data in edges]
    try:
        column = as_column(weights)
        if isinstance(column, np.ndarray) and column.ndim == 1 and column.dtype.kind != "U":
            return column.astype(np.float64)
        odd = 0
    except ColumnError as error:
        odd = error.row
    raise ValueError(
        f"{_where(edges[odd], 'edge')}: {weight!r} is {weights[odd]!r}, not a weight (a number): "
        "correct it, or ignore the attribute with weight=None"
    )


def _records(columns: dict[str, Column], n: int) -> list[dict[str, Any]]:
    """Return the attributes of each of n rows as Python numbers, strings and lists."""
    plain = {name: [column[i].tolist() for i in range(n)] for name, column in columns.items()}
    return [{name: values[i] for name, values in plain.items()} for i in range(n)]
