# SPDX-License-Identifier: BSD-3-Clause
"""What k-truss takes as graphs: batches, networkx graphs, sparse matrices; answers in kind."""

from __future__ import annotations

import sys
import warnings
from abc import ABC, abstractmethod
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from sklearn_mgk.graphs import Graph, GraphBatch, as_batch
from sklearn_mgk.graphs.columns import take
from sklearn_mgk.graphs.inputs import as_rows
from sklearn_mgk.truss.edges import EdgeSet, distinct_edges

KINDS = "a GraphBatch, Graphs, undirected networkx graphs, or symmetric scipy sparse matrices"


class Source(ABC):
    """Graphs as they were given: their edges, and how values of edges are given back.

    Attributes
    ----------
    node_ptr, edge_ptr : ndarray of shape (n_graphs + 1,), int64
        Nodes and edges of each graph, as given.
    u, v : ndarray of shape (n,), int64
        Ends of each edge given, counted through all graphs.
    used : ndarray of shape (n,), bool
        Whether an edge counts; those of weight 0 do not.
    single : bool
        Whether one graph was given, not a sequence of one.
    """

    single: bool
    node_ptr: NDArray
    edge_ptr: NDArray
    u: NDArray
    v: NDArray
    used: NDArray

    @cached_property
    def _distinct(self) -> tuple[EdgeSet, NDArray, NDArray]:
        edges, number, first = distinct_edges(self.node_ptr, self.u, self.v, self.used)
        loops = self.used & (self.u == self.v)
        again = number >= 0
        again[first] = False
        _report(loops, again, self.edge_ptr)
        return edges, number, first

    @property
    def edges(self) -> EdgeSet:
        """The distinct edges; the first call warns if some were left out."""
        return self._distinct[0]

    def of_given(self, values: NDArray) -> NDArray:
        """Values of the distinct edges for the edges given; 0 for those left out."""
        return np.append(values, 0)[self._distinct[1]]

    def first_of_given(self, mask: NDArray) -> NDArray:
        """Whether each edge given is the first that stands for a chosen distinct edge."""
        chosen = np.zeros(len(self.u), bool)
        chosen[self._distinct[2][mask]] = True
        return chosen

    @abstractmethod
    def answer(self, values: NDArray) -> Any:
        """Give values of the distinct edges back in the kind of the graphs."""

    @abstractmethod
    def select(self, mask: NDArray) -> Any:
        """Give the graphs back with the chosen distinct edges only."""


def _report(loops: NDArray, again: NDArray, edge_ptr: NDArray) -> None:
    """Warn of edges that k-truss does not know."""
    left_out = np.flatnonzero(loops | again)
    if len(left_out):
        graph = int(np.searchsorted(edge_ptr, left_out[0], side="right")) - 1
        warnings.warn(
            f"{loops.sum()} self-loops and {again.sum()} parallel edges were left out, the first "
            f"in graph {graph}: trussness is that of simple graphs. A self-loop lies in no "
            "triangle, parallel edges count once.",
            UserWarning,
            stacklevel=2,
        )


class BatchSource(Source):
    """A batch, views of graphs, or one view."""

    def __init__(self, graphs: Any):
        self.single = isinstance(graphs, Graph)
        self.batch = batch = as_batch([graphs] if self.single else graphs)
        self.node_ptr, self.edge_ptr = batch.node_ptr, batch.edge_ptr
        self.u, self.v = batch.edge_index + batch.node_ptr[batch.edge_graph]
        self.used = batch.edge_weight > 0

    def answer(self, values: NDArray) -> NDArray:
        return self.of_given(values)

    def select(self, mask: NDArray) -> GraphBatch | Graph:
        batch = with_edges(self.batch, self.first_of_given(mask))
        return batch[0] if self.single else batch


def with_edges(batch: GraphBatch, keep: NDArray) -> GraphBatch:
    """Return a batch with some of its edges and all of its nodes."""
    places = np.flatnonzero(keep)
    return GraphBatch(
        node_ptr=batch.node_ptr,
        edge_ptr=np.concatenate([[0], np.cumsum(keep)])[batch.edge_ptr],
        edge_index=batch.edge_index[:, places],
        edge_weight=batch.edge_weight[places],
        nodes=batch.nodes,
        edges={name: take(column, places) for name, column in batch.edges.items()},
        unusable_nodes=batch.unusable_nodes,
        unusable_edges=batch.unusable_edges,
    )


class NetworkXSource(Source):
    """Networkx graphs."""

    def __init__(self, graphs: Any):
        self.single = not isinstance(graphs, list)
        self.graphs = [graphs] if self.single else graphs
        for g, graph in enumerate(self.graphs):
            if graph.is_directed():
                raise ValueError(
                    f"graph {g} is directed, k-truss is for undirected graphs: convert it with "
                    "G.to_undirected()"
                )
        self.node_ptr = np.cumsum([0, *map(len, self.graphs)])
        self.edge_ptr = np.cumsum([0, *(G.number_of_edges() for G in self.graphs)])
        ends = np.empty((self.edge_ptr[-1], 2), np.int64)
        for g, graph in enumerate(self.graphs):
            number = {node: i for i, node in enumerate(graph, self.node_ptr[g])}
            flat = (number[node] for edge in graph.edges() for node in edge)
            part = ends[self.edge_ptr[g] : self.edge_ptr[g + 1]]
            part.flat = np.fromiter(flat, np.int64, part.size)
        self.u, self.v = ends.T
        self.used = np.ones(len(ends), bool)

    def answer(self, values: NDArray) -> Any:
        values = self.of_given(values).tolist()
        found = [
            dict(zip(graph.edges, values[lo:], strict=False))
            for graph, lo in zip(self.graphs, self.edge_ptr, strict=False)
        ]
        return found[0] if self.single else found

    def select(self, mask: NDArray) -> Any:
        keep = self.first_of_given(mask)
        found = []
        for graph, lo in zip(self.graphs, self.edge_ptr, strict=False):
            edges = [edge for k, edge in enumerate(graph.edges, lo) if keep[k]]
            found.append(graph.edge_subgraph(edges).copy())
        return found[0] if self.single else found


class MatrixSource(Source):
    """Symmetric sparse matrices; stored zeros are no edges."""

    def __init__(self, graphs: Any):
        self.single = not isinstance(graphs, list)
        matrices = [graphs] if self.single else graphs
        self.matrices = [_symmetric(matrix, g) for g, matrix in enumerate(matrices)]
        upper = [sparse.coo_array(sparse.triu(matrix)).coords for matrix in self.matrices]
        self.node_ptr = np.cumsum([0, *(matrix.shape[0] for matrix in self.matrices)])
        self.edge_ptr = np.cumsum([0, *(len(u) for u, _ in upper)])
        first = np.repeat(self.node_ptr[:-1], np.diff(self.edge_ptr))
        self.u, self.v = np.concatenate(upper, axis=1).astype(np.int64) + first
        self.used = np.ones(len(first), bool)

    def answer(self, values: NDArray) -> Any:
        found = self._matrices(values, np.ones(len(values), bool))
        return found[0] if self.single else found

    def select(self, mask: NDArray) -> Any:
        masks = self._matrices(mask, mask)
        found = [
            sparse.csr_array(matrix.multiply(kept))
            for matrix, kept in zip(self.matrices, masks, strict=True)
        ]
        return found[0] if self.single else found

    def _matrices(self, values: NDArray, stored: NDArray) -> list[sparse.csr_array]:
        """Symmetric matrices of values of the distinct edges, where these are to be stored."""
        found = []
        for g, matrix in enumerate(self.matrices):
            of_graph = slice(*self.edges.edge_ptr[g : g + 2])
            keep = stored[of_graph]
            low = self.edges.low[of_graph][keep] - self.node_ptr[g]
            high = self.edges.high[of_graph][keep] - self.node_ptr[g]
            data = np.tile(values[of_graph][keep], 2)
            ends = np.concatenate([low, high]), np.concatenate([high, low])
            found.append(sparse.csr_array((data, ends), shape=matrix.shape))
        return found


def _symmetric(matrix: Any, g: int) -> sparse.csr_array:
    """Return a matrix in compressed rows, without stored zeros, or raise unless it is symmetric."""
    if not sparse.issparse(matrix) or matrix.ndim != 2 or matrix.shape[0] != matrix.shape[1]:
        raise ValueError(
            f"graph {g}: an adjacency matrix must be a square scipy sparse matrix, got "
            f"{type(matrix).__name__} of shape {np.shape(matrix)}"
        )
    matrix = sparse.csr_array(matrix, copy=True)
    matrix.sum_duplicates()
    matrix.eliminate_zeros()
    there = sparse.csr_array(
        (np.ones(matrix.nnz, np.int8), matrix.indices, matrix.indptr), shape=matrix.shape
    )
    one_way = sparse.coo_array(there - there.T)
    one_way.eliminate_zeros()
    if one_way.nnz:
        at = int(np.argmax(one_way.data > 0))
        i, j = (int(ends[at]) for ends in one_way.coords)
        raise ValueError(
            f"graph {g}: the adjacency matrix is not symmetric, there is an entry ({i}, {j}) and "
            f"none ({j}, {i}): pass A + A.T for the undirected graph of a directed one or of a "
            "triangular matrix"
        )
    return matrix


def _is_networkx(graph: Any) -> bool:
    networkx = sys.modules.get("networkx")  # whoever has such a graph has imported it
    return networkx is not None and isinstance(graph, networkx.Graph)


_SOURCES = (
    (lambda graph: isinstance(graph, Graph), BatchSource),
    (_is_networkx, NetworkXSource),
    (sparse.issparse, MatrixSource),
)


def as_source(graphs: Any) -> Source:
    """Read graphs of any kind.

    Parameters
    ----------
    graphs : GraphBatch, Graph, networkx.Graph, scipy sparse matrix, or sequence of one of these
        The graphs.

    Returns
    -------
    Source
        Their edges.

    Raises
    ------
    TypeError
        The graphs are of another kind, or of several.
    ValueError
        There are no graphs, one is directed, or a matrix is not symmetric.
    """
    if isinstance(graphs, GraphBatch):
        return BatchSource(graphs)
    for accepts, source in _SOURCES:
        if accepts(graphs):
            return source(graphs)
    rows = as_rows(graphs, KINDS)
    for accepts, source in _SOURCES:
        if accepts(rows[0]):
            odd = next((row for row, graph in enumerate(rows) if not accepts(graph)), None)
            if odd is not None:
                raise TypeError(
                    f"row {odd} of graphs is of type {type(rows[odd]).__name__} while row 0 is of "
                    f"type {type(rows[0]).__name__}: pass graphs of one kind"
                )
            return source(rows)
    raise TypeError(
        f"row 0 of graphs is of type {type(rows[0]).__name__}; graphs must be {KINDS}. For a dense "
        "matrix A pass scipy.sparse.csr_array(A)"
    )
