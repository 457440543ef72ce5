# SPDX-License-Identifier: BSD-3-Clause
"""Trussness of every edge, by peeling: support once, then away with the weakest, level by level.

An edge taken away at level l has trussness l + 2 and takes one triangle from each of the two other
edges of each of its triangles, but not below l. Edges that reach l are the next frontier of the
level. Of a triangle with two edges in one frontier only the one with the lower number takes it
away [1]_, so that the edges of a frontier may be taken away in any order, or at once.

References
----------
.. [1] H. Kabir, K. Madduri, "Parallel k-truss decomposition on multicore systems", HPEC 2017.
   https://doi.org/10.48550/arXiv.1707.02000
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

from sklearn_mgk.atomic import atomic_add
from sklearn_mgk.threads import n_threads, run
from sklearn_mgk.truss.edges import EdgeSet, Rows, make_rows
from sklearn_mgk.truss.support import row_support

LARGE = 100_000
"""Edges from which all threads peel one graph; below, each thread has graphs of its own."""

_WIDE = 8192  # edges of a frontier from which threads share it
_CHUNK = 256
_SEARCH = 16  # how many times longer one list must be to be searched rather than marked

# In place of a support: the edge is in the frontier, or gone. Threads that lower a support at once
# may push it below 0 for a moment, but never that far.
_GONE = np.int32(-(2**30))
_FRONTIER = np.int32(-(2**30) + 1)
# Places in the state of a peel.
_LEVEL, _DONE, _N_ALIVE, _HEAD, _TAIL = range(5)


class Peel(NamedTuple):
    """Arrays of a peel; nodes are counted by row, edges by their higher node, then the lower one.

    ptr, stop : where the neighbors of a node start, and end as far as their edges are not gone.
    node, edge : the neighbors of each node, increasing, and the edges to them.
    low, high : the ends of each edge.
    support : triangles left, not below the level; or that the edge is in the frontier, or gone.
    alive : lists of the edges not gone, one for each graph in its range of edge numbers.
    queue : edges to be taken away at this level, likewise.
    trussness : the result.
    """

    ptr: NDArray
    stop: NDArray
    node: NDArray
    edge: NDArray
    low: NDArray
    high: NDArray
    support: NDArray
    alive: NDArray
    queue: NDArray
    trussness: NDArray


def edge_trussness(edges: EdgeSet, order: str = "degree") -> NDArray:
    """Return the trussness of each edge, shape (n_edges,), int64."""
    rows = make_rows(edges, order)
    places = np.flatnonzero(rows.columns)
    number, peel = _prepare(rows, places)
    sizes = np.diff(edges.edge_ptr)
    for graph in np.flatnonzero(sizes >= LARGE):
        _peel_together(peel, edges, graph)
    small = np.flatnonzero((sizes > 0) & (sizes < LARGE))
    small = small[np.argsort(-sizes[small], kind="stable")]
    threads = min(n_threads(int(sizes[small].sum())), max(1, len(small)))

    def work(_, counter):
        _peel_graphs(peel, edges.node_ptr, edges.edge_ptr, small, counter)

    run(work, threads)
    result = np.empty(edges.n_edges, np.int64)
    result[rows.edge[places]] = peel.trussness[number[places]]
    return result


def _prepare(rows: Rows, places: NDArray) -> tuple[NDArray, Peel]:
    """Count the support, number the edges, and list the neighbors of each node on both sides."""
    m, dtype = len(places), rows.columns.dtype
    number, ptr, *lists = whole_rows(rows, m)
    support = np.empty(m, dtype)
    support[number[places]] = row_support(rows)[places]
    alive = np.arange(m, dtype=dtype)
    result = np.empty(m, dtype), np.empty(m, dtype)
    return number, Peel(ptr, ptr[1:].copy(), *lists, support, alive, *result)


def whole_rows(rows: Rows, n_edges: int) -> tuple[NDArray, ...]:
    """List the neighbors of each node, below and above, and number edges by their higher node.

    Parameters
    ----------
    rows : Rows
        The neighbors above.
    n_edges : int
        Number of edges.

    Returns
    -------
    number : ndarray of shape (n_edges + n_nodes,), int32 or int64
        Number of the edge at each place of the rows.
    ptr : ndarray of shape (n_nodes + 1,), int64
        Where the neighbors of each node start.
    node, edge : ndarray of shape (2 * n_edges,), int32 or int64
        The neighbors, increasing, and the numbers of the edges to them.
    low, high : ndarray of shape (n_edges,), int32 or int64
        Ends of each edge.
    """
    dtype = rows.columns.dtype
    number, ptr = np.empty(len(rows.columns), dtype), np.empty(len(rows.ptr), np.int64)
    node, edge = np.empty(2 * n_edges, dtype), np.empty(2 * n_edges, dtype)
    low, high = np.empty(n_edges, dtype), np.empty(n_edges, dtype)
    _both_sides(rows.ptr, rows.columns, number, ptr, node, edge, low, high)
    return number, ptr, node, edge, low, high


@njit(cache=True, nogil=True)
def _both_sides(row_ptr, columns, number, ptr, node, edge, low, high):
    """From upper rows to whole rows; they come out sorted, as rows are read in order."""
    n = len(row_ptr) - 1
    ptr[:] = 0
    n_below = np.zeros(n + 1, np.int64)
    for i in range(n):
        ptr[i + 1] += row_ptr[i + 1] - 1 - row_ptr[i]
        for p in range(row_ptr[i], row_ptr[i + 1] - 1):
            ptr[columns[p]] += 1
            n_below[columns[p]] += 1
    for i in range(n):
        ptr[i + 1] += ptr[i]
        n_below[i + 1] += n_below[i]
    put = ptr[:-1].copy()
    for i in range(n):
        for p in range(row_ptr[i], row_ptr[i + 1] - 1):
            j = columns[p] - 1
            e = n_below[j]
            node[put[j]], edge[put[j]] = i, e
            low[e], high[e] = i, j
            number[p] = e
            put[j] += 1
            n_below[j] += 1
    for i in range(n):
        for p in range(row_ptr[i], row_ptr[i + 1] - 1):
            node[put[i]], edge[put[i]] = columns[p] - 1, number[p]
            put[i] += 1


@njit(cache=True, nogil=True)
def _peel_graphs(peel, node_ptr, edge_ptr, graphs, counter):
    """Peel whole graphs, one after the other."""
    state = np.zeros(5, np.int64)
    place = np.full(len(peel.stop), -1, peel.node.dtype)
    while True:
        x = atomic_add(counter, 0, 1)
        if x >= len(graphs):
            return
        g = graphs[x]
        state[:] = 0
        state[_N_ALIVE] = edge_ptr[g + 1] - edge_ptr[g]
        bounds = (node_ptr[g], node_ptr[g + 1], edge_ptr[g], edge_ptr[g + 1])
        _advance(peel, bounds, state, edge_ptr[g + 1] + 1, place)


def _peel_together(peel: Peel, edges: EdgeSet, graph: int) -> None:
    """Peel one graph; wide frontiers are shared between threads."""
    bounds = tuple(
        int(ptr[graph + side]) for ptr in (edges.node_ptr, edges.edge_ptr) for side in (0, 1)
    )
    n = bounds[3] - bounds[2]
    state = np.zeros(5, np.int64)
    state[_N_ALIVE] = n
    threads = n_threads(n)
    places = np.full((threads, len(peel.stop)), -1, peel.node.dtype)
    wide = _WIDE if threads > 1 else n + 1
    while _advance(peel, bounds, state, wide, places[0]):
        begin, end = int(state[_HEAD]), int(state[_TAIL])

        def work(thread, counter, begin=begin, end=end):
            _share(peel, state, begin, end, counter, places[thread])

        run(work, threads)
        _leave(peel, state, begin, end)


@njit(cache=True, nogil=True)
def _advance(peel, bounds, state, wide, place):
    """Peel a graph, frontier by frontier; stops with True at one that is ``wide`` or wider."""
    n = bounds[3] - bounds[2]
    while state[_DONE] < n:
        if state[_HEAD] == state[_TAIL]:
            _next_level(peel, bounds[2], state)
        begin, end = state[_HEAD], state[_TAIL]
        peel.queue[begin:end].sort()  # edges with the same higher node come together
        peel.support[peel.queue[begin:end]] = _FRONTIER
        # Where nobody is left to lose a triangle, or there are none, there is nothing to take.
        if state[_DONE] + end - begin < n and state[_LEVEL] > 0:
            if end - begin >= wide:
                _pack(peel, bounds)
                return True
            state[_TAIL] = _strike(peel, begin, end, state[_LEVEL], place)
        _leave(peel, state, begin, end)
    return False


@njit(cache=True, nogil=True)
def _leave(peel, state, begin, end):
    """Mark the edges of a frontier as gone."""
    for x in range(begin, end):
        e = peel.queue[x]
        peel.support[e] = _GONE
        peel.trussness[e] = state[_LEVEL] + 2
    state[_HEAD] = end
    state[_DONE] += end - begin


@njit(cache=True, nogil=True)
def _next_level(peel, first, state):
    """Go to the least support left, and queue the edges that have it."""
    kept = tail = first
    least = np.int64(np.iinfo(np.int64).max)
    for x in range(first, first + state[_N_ALIVE]):
        e = peel.alive[x]
        support = np.int64(peel.support[e])
        if support == _GONE:
            continue
        peel.alive[kept] = e
        kept += 1
        if support < least:
            least, tail = support, first
        if support == least:
            peel.queue[tail] = e
            tail += 1
    state[_LEVEL], state[_N_ALIVE], state[_HEAD], state[_TAIL] = least, kept - first, first, tail


@njit(cache=True, nogil=True)
def _strike(peel, begin, end, level, place):
    """Take away the triangles of the edges of a frontier; returns the new end of the queue.

    The edges at the higher node, which has more of them, are marked by neighbor and stay so for the
    next edge; the neighbors of the lower node are looked up. A far longer list is searched instead.
    Lists lose the edges that are gone as they are read. One loop: calls in it cost half its time.
    """
    ptr, stop, node, edge = peel.ptr, peel.stop, peel.node, peel.edge
    support, queue, low, high = peel.support, peel.queue, peel.low, peel.high
    marked, tail = np.int64(-1), end
    for x in range(begin, end):
        e = queue[x]
        i, j = np.int64(low[e]), np.int64(high[e])
        search = j != marked and stop[j] - ptr[j] > _SEARCH * (stop[i] - ptr[i])
        if j != marked and not search:
            _unmark(ptr, stop, node, place, marked)
            _mark(ptr, stop, node, edge, support, place, j)
            marked = j
        put, q = ptr[i], ptr[j]
        for p in range(ptr[i], stop[i]):
            f = edge[p]
            f_support = support[f]
            if f_support == _GONE:
                continue
            k = node[p]
            node[put], edge[put] = k, f
            put += 1
            if search:
                q += np.searchsorted(node[q : stop[j]], k)
                found = q < stop[j] and node[q] == k and support[edge[q]] != _GONE
                g = edge[q] if found else edge.dtype.type(-1)
            else:
                g = place[k]
            if g < 0:
                continue
            g_support = support[g]
            if f_support > level and (g_support != _FRONTIER or e < g):
                support[f] = f_support - 1
                if f_support == level + 1:
                    queue[tail] = f
                    tail += 1
            if g_support > level and (f_support != _FRONTIER or e < f):
                support[g] = g_support - 1
                if g_support == level + 1:
                    queue[tail] = g
                    tail += 1
        stop[i] = put
    _unmark(ptr, stop, node, place, marked)
    return tail


@njit(cache=True, nogil=True)
def _mark(ptr, stop, node, edge, support, place, j):
    """Write the edges of node j that are not gone beside their other ends, and forget the rest."""
    put = ptr[j]
    for q in range(ptr[j], stop[j]):
        if support[edge[q]] != _GONE:
            place[node[q]] = edge[q]
            if put != q:
                node[put], edge[put] = node[q], edge[q]
            put += 1
    if stop[j] != put:
        stop[j] = put


@njit(cache=True, nogil=True)
def _unmark(ptr, stop, node, place, marked):
    if marked >= 0:
        for q in range(ptr[marked], stop[marked]):
            place[node[q]] = -1


@njit(cache=True, nogil=True)
def _pack(peel, bounds):
    """Forget the neighbors over edges that are gone."""
    for i in range(bounds[0], bounds[1]):
        put = peel.ptr[i]
        for p in range(peel.ptr[i], peel.stop[i]):
            if peel.support[peel.edge[p]] != _GONE:
                peel.node[put], peel.edge[put] = peel.node[p], peel.edge[p]
                put += 1
        peel.stop[i] = put


@njit(cache=True, nogil=True)
def _share(peel, state, begin, end, counter, place):
    """Take away the triangles of the edges of a frontier, together with other threads.

    Done as in `_strike`, but no list holds an edge that is gone, so that lists stay as they are.
    """
    ptr, stop, node, edge = peel.ptr, peel.stop, peel.node, peel.edge
    support, queue, low, high = peel.support, peel.queue, peel.low, peel.high
    marked = np.int64(-1)
    while True:
        first = begin + atomic_add(counter, 0, _CHUNK)
        if first >= end:
            break
        for x in range(first, min(first + _CHUNK, end)):
            e = queue[x]
            i, j = np.int64(low[e]), np.int64(high[e])
            search = j != marked and stop[j] - ptr[j] > _SEARCH * (stop[i] - ptr[i])
            if j != marked and not search:
                _unmark(ptr, stop, node, place, marked)
                _mark(ptr, stop, node, edge, support, place, j)
                marked = j
            q = ptr[j]
            for p in range(ptr[i], stop[i]):
                k = node[p]
                if search:
                    q += np.searchsorted(node[q : stop[j]], k)
                    found = q < stop[j] and node[q] == k
                    g = edge[q] if found else edge.dtype.type(-1)
                else:
                    g = place[k]
                if g >= 0:
                    f = edge[p]
                    if support[g] != _FRONTIER or e < g:
                        _lower_shared(support, queue, state, f)
                    if support[f] != _FRONTIER or e < f:
                        _lower_shared(support, queue, state, g)
    _unmark(ptr, stop, node, place, marked)


@njit(cache=True, nogil=True)
def _lower_shared(support, queue, state, f):
    """Lower the support of an edge that other threads lower too; queue it once."""
    if support[f] == _FRONTIER:
        return
    level = state[_LEVEL]
    before = atomic_add(support, f, -1)
    if before == level + 1:
        queue[atomic_add(state, _TAIL, 1)] = f
    elif before <= level:
        atomic_add(support, f, 1)
