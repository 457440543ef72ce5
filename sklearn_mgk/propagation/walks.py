# SPDX-License-Identifier: BSD-3-Clause
"""How probable each type of anonymous walk is in a graph: all walks, or a sample of them."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numba import njit, types
from numba.extending import overload
from numba.typed import Dict
from numpy.typing import NDArray
from scipy import sparse

from sklearn_mgk.atomic import atomic_add
from sklearn_mgk.graphs import GraphBatch
from sklearn_mgk.propagation.matrices import adjacency
from sklearn_mgk.propagation.walk_types import walk_tree
from sklearn_mgk.random import first_state, uniform
from sklearn_mgk.threads import n_threads, run


class WalkGraphs(NamedTuple):
    """Graphs as random walks see them: without self-loops and nodes that have no edges.

    Attributes
    ----------
    ptr, indices : ndarray, int64 and int32
        Neighbours of each node, in compressed rows.
    chances : ndarray of shape (n_entries,), float64
        Probability of each step, in proportion to the weight of the edge.
    starts, start_ptr : ndarray, int64
        Nodes with edges, and where those of each graph begin.
    labels : ndarray of shape (n_nodes,), int64
        A number from 0 to n_labels - 1; all 0 where there are none.
    n_labels : int
        Number of labels.
    """

    ptr: NDArray
    indices: NDArray
    chances: NDArray
    starts: NDArray
    start_ptr: NDArray
    labels: NDArray
    n_labels: int

    @property
    def n_graphs(self) -> int:
        """Number of graphs."""
        return len(self.start_ptr) - 1

    def cumulated(self) -> WalkGraphs:
        """Return the same graphs with the sums of the chances of a row up to each entry."""
        total = np.append(0, np.cumsum(self.chances))
        before = np.repeat(total[self.ptr[:-1]], np.diff(self.ptr))
        return self._replace(chances=total[1:] - before)

    def walk_counts(self, length: int) -> NDArray:
        """Return the number of walks of some steps in each graph, as floats."""
        n = len(self.ptr) - 1
        A = sparse.csr_array((np.ones(len(self.indices)), self.indices, self.ptr), shape=(n, n))
        count = np.ones(n)
        for _ in range(length):
            count = A @ count
        total = np.append(0, np.cumsum(count[self.starts]))
        return total[self.start_ptr[1:]] - total[self.start_ptr[:-1]]


class Spelling(NamedTuple):
    """How the types of walks are numbered.

    A type with labels is one number: that of the anonymous walk times n_codes, plus the labels of
    its nodes in the order of their names as digits.

    Attributes
    ----------
    child : ndarray
        Of `WalkTree`.
    first : int
        Of `WalkTree`.
    n_codes : int
        Number of sequences of labels.
    powers : ndarray of shape (length + 1,), int64
        Value of the digit of each name.
    """

    child: NDArray
    first: int
    n_codes: int
    powers: NDArray


def walk_graphs(batch: GraphBatch, labels: NDArray | None = None, n_labels: int = 1) -> WalkGraphs:
    """Prepare graphs for walks."""
    A = adjacency(batch)
    A.setdiag(0)
    A.eliminate_zeros()
    ptr = A.indptr.astype(np.int64)
    degree = np.asarray(A.sum(axis=1))
    probability = A.data / np.repeat(degree, np.diff(ptr))
    starts = np.flatnonzero(np.diff(ptr))
    start_ptr = np.searchsorted(starts, batch.node_ptr).astype(np.int64)
    labels = np.zeros(batch.n_nodes, np.int64) if labels is None else labels
    return WalkGraphs(ptr, A.indices, probability, starts, start_ptr, labels, n_labels)


class Walker:
    """Finds how probable each type of walk is.

    Parameters
    ----------
    graphs : WalkGraphs
        The graphs.
    length : int
        Steps of a walk.
    n_samples : int or None, default=None
        Random walks for each graph; None goes through all walks.
    seed : int, default=0
        The same seed gives the same walks, whatever the number of threads.
    """

    def __init__(
        self, graphs: WalkGraphs, length: int, n_samples: int | None = None, seed: int = 0
    ):
        powers = np.array([graphs.n_labels**name for name in range(length + 1)], np.int64)
        tree = walk_tree(length)
        spelling = Spelling(tree.child, tree.first, graphs.n_labels ** (length + 1), powers)
        self.n_graphs, self.n_types = graphs.n_graphs, len(tree.names)
        if n_samples is None:
            self._one, self._all = _enumerate, _enumerate_all
            self._arguments = graphs, spelling
            self._n_walks = graphs.walk_counts(length).sum()
        else:
            self._one, self._all = _sample, _sample_all
            self._arguments = graphs.cumulated(), spelling, np.int64(n_samples), np.uint64(seed)
            self._n_walks = n_samples * graphs.n_graphs

    def _run(self, work: Callable[[int, NDArray], None]) -> None:
        run(work, n_threads(int(min(self._n_walks, 2**31))))

    def anonymous(self) -> NDArray:
        """Return the distribution over anonymous walks, for graphs without labels.

        Returns
        -------
        ndarray of shape (n_graphs, n_types), float64
            Rows add up to 1, or to 0 for graphs without edges.
        """
        found = np.zeros((self.n_graphs, self.n_types))
        self._run(lambda thread, counter: self._all(*self._arguments, found, counter))
        return found

    def labeled(self) -> list[tuple[NDArray, NDArray]]:
        """Return the numbers of the types in each graph, increasing, and their probabilities."""
        found: list = [None] * self.n_graphs

        def work(thread: int, counter: NDArray) -> None:
            graph = _next(counter)
            while graph < len(found):
                shares = _new_table()
                self._one(graph, *self._arguments, shares)
                keys, values = _items(shares)
                order = np.argsort(keys)
                found[graph] = keys[order], values[order]
                graph = _next(counter)

        self._run(work)
        return found


def _add(found, key, share):
    """Add to an entry of an array or of a dictionary."""


@overload(_add)
def _add_compiled(found, key, share):
    if isinstance(found, types.Array):
        return _add_to_array
    return _add_to_table


def _add_to_array(found, key, share):
    found[key] += share


def _add_to_table(found, key, share):
    found[key] = found.get(key, 0.0) + share


@njit(cache=True)
def _new_table():
    return Dict.empty(types.int64, types.float64)


@njit(cache=True)
def _items(table):
    keys, values = np.empty(len(table), np.int64), np.empty(len(table))
    for k, (key, value) in enumerate(table.items()):
        keys[k], values[k] = key, value
    return keys, values


@njit(cache=True, nogil=True)
def _next(counter):
    """Take the next number off a counter that threads share."""
    return atomic_add(counter, 0, np.int64(1))


@njit(cache=True, nogil=True)
def _enumerate_all(graphs, spelling, found, counter):
    """Take graph after graph off the counter."""
    graph = _next(counter)
    while graph < len(found):
        _enumerate(graph, graphs, spelling, found[graph])
        graph = _next(counter)


@njit(cache=True, nogil=True)
def _enumerate(graph, graphs, spelling, found):
    """Add up the probabilities of all walks of a graph."""
    begin, end = graphs.start_ptr[graph], graphs.start_ptr[graph + 1]
    length = len(spelling.powers) - 1
    if end == begin:
        return
    low = graphs.starts[begin]
    # Names are kept for the nodes of this graph only: memory that fits the cache.
    name_of = np.full(graphs.starts[end - 1] - low + 1, -1, np.int64)
    path = np.empty((5, length), np.int64)  # node, next entry, walk so far, names in use, labels
    chance = np.empty(length)
    chance[0] = 1.0 / (end - begin)
    for k in range(begin, end):
        _go_through(graphs.starts[k], low, graphs, spelling, (name_of, path, chance), found)


@njit(cache=True, nogil=True)
def _go_through(start, low, graphs, spelling, scratch, found):
    """Add the probabilities of all walks from a node, depth first."""
    ptr, indices, labels = graphs.ptr, graphs.indices, graphs.labels
    name_of, path, chance = scratch
    node, entry, walk, used, code = path
    depth, last = 0, len(chance) - 1
    node[0], entry[0], walk[0], used[0], code[0] = start, ptr[start], 0, 1, labels[start]
    name_of[start - low] = 0
    while depth >= 0:
        here, names = node[depth], used[depth]
        if depth == last:
            for e in range(ptr[here], ptr[here + 1]):
                name, key = name_of[indices[e] - low], code[depth]
                if name < 0:
                    name = names
                    key += labels[indices[e]] * spelling.powers[names]
                kind = spelling.child[walk[depth], name] - spelling.first
                _add(found, key + kind * spelling.n_codes, chance[depth] * graphs.chances[e])
        elif entry[depth] < ptr[here + 1]:
            e = entry[depth]
            entry[depth] += 1
            there = np.int64(indices[e])
            name = name_of[there - low]
            depth += 1
            used[depth], code[depth] = names, code[depth - 1]
            if name < 0:
                name = name_of[there - low] = names
                used[depth] += 1
                code[depth] += labels[there] * spelling.powers[names]
            node[depth], entry[depth] = there, ptr[there]
            walk[depth] = spelling.child[walk[depth - 1], name]
            chance[depth] = chance[depth - 1] * graphs.chances[e]
            continue
        if depth == 0 or used[depth] > used[depth - 1]:
            name_of[here - low] = -1
        depth -= 1


@njit(cache=True, nogil=True)
def _sample_all(graphs, spelling, n_samples, seed, found, counter):
    """Take graph after graph off the counter."""
    graph = _next(counter)
    while graph < len(found):
        _sample(graph, graphs, spelling, n_samples, seed, found[graph])
        graph = _next(counter)


@njit(cache=True, nogil=True)
def _sample(graph, graphs, spelling, n_samples, seed, found):
    """Add up the shares of random walks of a graph; its chances are cumulated."""
    begin, end = graphs.start_ptr[graph], graphs.start_ptr[graph + 1]
    walk = np.empty(len(spelling.powers), np.int64)
    names = np.empty_like(walk)
    state = first_state(seed, graph)
    for _ in range(n_samples if end > begin else 0):
        share, state = uniform(state)
        walk[0] = graphs.starts[begin + np.int64(share * (end - begin))]
        state = _walk_on(graphs, walk, state)
        _add(found, _spell(walk, names, graphs.labels, spelling), 1.0 / n_samples)


@njit(cache=True, nogil=True)
def _walk_on(graphs, walk, state):
    """Walk from walk[0]; returns the next random state."""
    for step in range(1, len(walk)):
        low, high = graphs.ptr[walk[step - 1]], graphs.ptr[walk[step - 1] + 1] - 1
        share, state = uniform(state)
        while low < high:
            middle = (low + high) // 2
            if graphs.chances[middle] > share:
                high = middle
            else:
                low = middle + 1
        walk[step] = graphs.indices[low]
    return state


@njit(cache=True, nogil=True)
def _spell(walk, names, labels, spelling):
    """Return the number of the type of a walk."""
    names[0] = 0
    used, kind, code = 1, 0, labels[walk[0]]
    for step in range(1, len(walk)):
        name = -1
        for k in range(step):
            if walk[k] == walk[step]:
                name = names[k]
        if name < 0:
            name = used
            used += 1
            code += labels[walk[step]] * spelling.powers[name]
        names[step] = name
        kind = spelling.child[kind, name]
    return code + (kind - spelling.first) * spelling.n_codes
