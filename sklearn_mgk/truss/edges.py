# SPDX-License-Identifier: BSD-3-Clause
"""The distinct edges of a batch of graphs, and the zero-terminated rows that k-truss runs on."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numba import njit
from numpy.typing import NDArray

ORDERS = ("degree", "natural")


@dataclass(frozen=True)
class EdgeSet:
    """The edges of simple, undirected graphs, sorted.

    Attributes
    ----------
    node_ptr, edge_ptr : ndarray of shape (n_graphs + 1,), int64
        Graph g owns the nodes ``node_ptr[g]`` to ``node_ptr[g + 1] - 1``, and its edges likewise.
    low, high : ndarray of shape (n_edges,), int32 or int64
        Ends of each edge, counted through all graphs, ``low < high``; sorted by both.
    """

    node_ptr: NDArray
    edge_ptr: NDArray
    low: NDArray
    high: NDArray

    @property
    def n_nodes(self) -> int:
        """Number of nodes of all graphs."""
        return int(self.node_ptr[-1])

    @property
    def n_edges(self) -> int:
        """Number of edges of all graphs."""
        return len(self.low)

    def subset(self, keep: NDArray) -> EdgeSet:
        """Return the edges of a mask; the nodes all stay."""
        kept = np.concatenate([[0], np.cumsum(keep)])[self.edge_ptr]
        return EdgeSet(self.node_ptr, kept, self.low[keep], self.high[keep])


@dataclass(frozen=True)
class Rows:
    """Strictly upper triangular adjacency in compressed rows, each ended by a zero.

    Columns count from 1, so that 0 can say that a row ends. A non-zero at place p of row i is all
    that a fine-grained task needs: the rest of row i starts at ``p + 1``, the row of its column
    at ``ptr[columns[p] - 1]``, and both run until they read 0.

    Attributes
    ----------
    ptr : ndarray of shape (n_nodes + 1,), int32 or int64
        Where each row starts; its zero stands at ``ptr[i + 1] - 1``.
    columns : ndarray of shape (n_edges + n_nodes,), int32 or int64
        Increasing within a row.
    edge : ndarray of shape (n_edges + n_nodes,), int32 or int64
        Number of the edge at each place, -1 where there is none.
    """

    ptr: NDArray
    columns: NDArray
    edge: NDArray

    def copy(self) -> Rows:
        """Return rows that may be pruned while these stay."""
        return Rows(self.ptr, self.columns.copy(), self.edge.copy())


def index_type(largest: int) -> type:
    """Return the integer type for numbers up to ``largest``: 32 bits where they suffice."""
    return np.int32 if largest < np.iinfo(np.int32).max else np.int64


def distinct_edges(
    node_ptr: NDArray, u: NDArray, v: NDArray, used: NDArray, dtype: type | None = None
) -> tuple[EdgeSet, NDArray, NDArray]:
    """Sort edges and drop self-loops, parallel edges and those that are not used.

    Parameters
    ----------
    node_ptr : ndarray of shape (n_graphs + 1,), int64
        Nodes of each graph.
    u, v : ndarray of shape (n,), int
        Ends of each edge, counted through all graphs.
    used : ndarray of shape (n,), bool
        Whether an edge counts.
    dtype : numpy integer type, default=None
        Type of the node numbers; None takes the smallest that fits.

    Returns
    -------
    edges : EdgeSet
        The distinct edges.
    number : ndarray of shape (n,), int64
        Number of each edge given among the distinct ones, -1 for self-loops and edges not used.
    first : ndarray of shape (n_edges,), int64
        Place where each distinct edge comes first.
    """
    n_nodes = int(node_ptr[-1])
    dtype = dtype or index_type(n_nodes)
    low, high = np.minimum(u, v).astype(dtype), np.maximum(u, v).astype(dtype)
    places = np.flatnonzero(used & (low < high))
    order, number = places, np.full(len(low), -1, np.int64)
    if not _is_sorted(low, high, places):
        order = _bucket_sort(low, _bucket_sort(high, places, n_nodes), n_nodes)
    first = _count_distinct(low, high, order, number)
    low, high = low[first], high[first]
    edge_ptr = np.searchsorted(low, node_ptr).astype(np.int64)
    return EdgeSet(np.asarray(node_ptr, np.int64), edge_ptr, low, high), number, first


@njit(cache=True, nogil=True)
def _is_sorted(low, high, places):
    for x in range(1, len(places)):
        a, b = places[x - 1], places[x]
        if low[a] > low[b] or (low[a] == low[b] and high[a] > high[b]):
            return False
    return True


@njit(cache=True, nogil=True)
def _bucket_sort(keys, places, n_keys):
    """Sort places by their keys; equal keys keep their order."""
    start = np.zeros(n_keys + 1, np.int64)
    for p in places:
        start[keys[p] + 1] += 1
    for key in range(n_keys):
        start[key + 1] += start[key]
    result = np.empty_like(places)
    for p in places:
        result[start[keys[p]]] = p
        start[keys[p]] += 1
    return result


@njit(cache=True, nogil=True)
def _count_distinct(low, high, order, number):
    """Give the distinct edges of a sorted list numbers, and return where each comes first."""
    first = np.empty(len(order), np.int64)
    n = 0
    for p in order:
        if n == 0 or low[first[n - 1]] != low[p] or high[first[n - 1]] != high[p]:
            first[n] = p
            n += 1
        number[p] = n - 1
    return first[:n].copy()


def make_rows(edges: EdgeSet, order: str = "degree", dtype: type | None = None) -> Rows:
    """Arrange edges in zero-terminated rows.

    Parameters
    ----------
    edges : EdgeSet
        The edges.
    order : {"degree", "natural"}, default="degree"
        How nodes are numbered within each graph: by increasing degree, or as they come. With
        "degree" an edge hangs on the end that has fewer neighbors, and no row is long.
    dtype : numpy integer type, default=None
        Type of all three arrays; None takes the smallest that fits.

    Returns
    -------
    Rows
        The rows, one for each node, graph after graph.
    """
    n_slots = edges.n_edges + edges.n_nodes
    dtype = dtype or index_type(n_slots)
    if order == "natural":
        rank = np.arange(edges.n_nodes)
    else:
        rank = _rank_by_degree(edges.node_ptr, node_degrees(edges))
    ptr = np.empty(edges.n_nodes + 1, dtype)
    columns, edge = np.zeros(n_slots, dtype), np.full(n_slots, -1, dtype)
    _fill_rows(edges.low, edges.high, rank, ptr, columns, edge)
    return Rows(ptr, columns, edge)


def node_degrees(edges: EdgeSet) -> NDArray:
    """Return the number of edges at each node, shape (n_nodes,), int64."""
    degree = np.bincount(edges.low, minlength=edges.n_nodes)
    return degree + np.bincount(edges.high, minlength=edges.n_nodes)


@njit(cache=True, nogil=True)
def _rank_by_degree(node_ptr, degree):
    """Place of each node if those of each graph stand by increasing degree, ties as they come."""
    rank = np.empty(len(degree), np.int64)
    start = np.zeros(len(degree) + 2, np.int64)
    for g in range(len(node_ptr) - 1):
        first, last = node_ptr[g], node_ptr[g + 1]
        start[: last - first + 1] = 0
        for i in range(first, last):
            start[degree[i] + 1] += 1
        for d in range(last - first):
            start[d + 1] += start[d]
        for i in range(first, last):
            rank[i] = first + start[degree[i]]
            start[degree[i]] += 1
    return rank


@njit(cache=True, nogil=True)
def _fill_rows(low, high, rank, ptr, columns, edge):
    """Bucket by column, then by row, so that columns increase within a row."""
    n, m = len(ptr) - 1, len(low)
    by_column, fill = np.zeros(n + 1, np.int64), np.zeros(n + 1, np.int64)
    for e in range(m):
        a, b = rank[low[e]], rank[high[e]]
        by_column[max(a, b) + 1] += 1
        fill[min(a, b) + 1] += 1
    ptr[0] = 0
    for i in range(n):
        by_column[i + 1] += by_column[i]
        fill[i + 1] += fill[i] + 1
        ptr[i + 1] = fill[i + 1]
    order = np.empty(m, edge.dtype)
    for e in range(m):
        b = max(rank[low[e]], rank[high[e]])
        order[by_column[b]] = e
        by_column[b] += 1
    for e in order:
        a, b = rank[low[e]], rank[high[e]]
        place = fill[min(a, b)]
        columns[place], edge[place] = max(a, b) + 1, e
        fill[min(a, b)] += 1
