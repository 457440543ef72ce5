# SPDX-License-Identifier: BSD-3-Clause
r"""Swaps of nodes between parts of 8, with the number of non-empty tiles as objective.

Tile (a, b) of a graph holds the c_ab edges between the parts a and b. Most swaps do not change how
many tiles are empty, so the energy also says which way leads there,

.. math:: E = \sum_{a, b} f(c_{ab}),  \quad f(0) = 0, \quad f(c) = 1 + 0.3 (\sqrt c - 1).

f is concave: an edge prefers tiles that hold many. Swaps that raise E are accepted with probability
exp(-dE / T) while T falls (simulated annealing [1]_), which leaves the local minima in which
passes of the Fiduccia-Mattheyses kind end. A swap costs the degrees of its two nodes, keeps all
parts at their size, and the order with the fewest tiles of all that were seen is the answer.

The generator is xorshift64* [2]_.

References
----------
.. [1] S. Kirkpatrick, C. D. Gelatt, M. P. Vecchi, "Optimization by simulated annealing",
   Science 220 (1983). https://doi.org/10.1126/science.220.4598.671
.. [2] S. Vigna, "An experimental exploration of Marsaglia's xorshift generators, scrambled",
   ACM Trans. Math. Softw. 42 (2016). https://doi.org/10.1145/2845077
"""

from __future__ import annotations

from typing import NamedTuple

import numba
import numpy as np

# Temperatures in tiles, and the share of swaps with a node of any part rather than of a part that
# holds a neighbour; the best of those tried on molecules, proteins and random graphs.
HOT, COLD, N_COOLINGS = 0.25, 0.1, 100

# The change of E by a swap is an integer that holds two numbers: the change of the number of tiles,
# in units of TILE, and that of the rest of E, in units of 1 / UNIT. Both add up exactly.
TILE, UNIT = 1 << 40, 1 << 20
ANYWHERE = UNIT * 2 // 3
_EDGES = np.arange(2 * 64 + 1)
SCORE = np.where(_EDGES > 0, TILE + (UNIT * 0.3 * (np.sqrt(_EDGES) - 1)).astype(np.int64), 0)
"""f of the number of edges in a tile; as an argument, for numba to see it as an array."""

_FLAGS = {"cache": True, "nogil": True, "error_model": "numpy"}


class Pattern(NamedTuple):
    """The edges of all graphs of a batch, nodes numbered through the batch."""

    ptr: np.ndarray  # (n_nodes + 1,) int64
    neighbours: np.ndarray  # (n_entries,) int64
    node_ptr: np.ndarray  # (n_graphs + 1,) int64


class Parts(NamedTuple):
    """The parts of one graph, and the edges between them."""

    part: np.ndarray  # (n_nodes of the batch,) int64: part of each node, within its graph
    place: np.ndarray  # (n_nodes of the batch,) int64: place of each node, within its graph
    counts: np.ndarray  # (n_parts, n_parts) uint8, symmetric: edges between two parts
    score: np.ndarray  # SCORE


@numba.njit(**_FLAGS)
def _below(state, n):
    """Draw an integer from 0 to n - 1."""
    x = state[0]
    x ^= x >> np.uint64(12)
    x ^= x << np.uint64(25)
    x ^= x >> np.uint64(27)
    state[0] = x
    high = (x * np.uint64(0x2545F4914F6CDD1D)) >> np.uint64(32)
    return np.int64((high * np.uint64(n)) >> np.uint64(32))


@numba.njit(**_FLAGS)
def _tiles(change):
    """Return the tiles in a packed change."""
    return (change + TILE // 2) >> 40


@numba.njit(**_FLAGS)
def _energy(change):
    """Return a packed change as a float, in tiles."""
    tiles = _tiles(change)
    return tiles + (change - tiles * TILE) / UNIT


# What runs in the inner loop gets arrays one by one, and calls no deeper than this: numba counts
# the references of arrays at each call, which would take a third of the time.


@numba.njit(**_FLAGS)
def _shift(counts, score, a, b, step):
    """Add or remove an edge between two parts and return the packed change."""
    old = np.int64(counts[a, b])
    counts[a, b] = counts[b, a] = old + step
    return (1 if a == b else 2) * (score[old + step] - score[old])


@numba.njit(**_FLAGS)
def _move(ptr, neighbours, part, counts, score, u, b, other):
    """Move a node to part b, its edge to `other` staying, and return the packed change."""
    a, change = part[u], 0
    for e in range(ptr[u], ptr[u + 1]):
        x = neighbours[e]
        if x == u:
            change += _shift(counts, score, a, a, -1) + _shift(counts, score, b, b, 1)
        elif x != other:
            change += _shift(counts, score, a, part[x], -1)
            change += _shift(counts, score, b, part[x], 1)
    part[u] = b
    return change


@numba.njit(**_FLAGS)
def _fill(pattern, parts, order):
    """Enter an order into empty parts and return the number of non-empty tiles."""
    n_tiles = 0
    for k, u in enumerate(order):
        parts.part[u], parts.place[u] = k // 8, k
    for u in order:
        for e in range(pattern.ptr[u], pattern.ptr[u + 1]):
            x = pattern.neighbours[e]
            if x <= u:
                n_tiles += _tiles(
                    _shift(parts.counts, parts.score, parts.part[u], parts.part[x], 1)
                )
    return n_tiles


@numba.njit(**_FLAGS)
def _propose(ptr, neighbours, part, slots, state):
    """Draw any node, and the place of one in a part that holds a neighbour of it, or in any."""
    n = len(slots)
    u = slots[_below(state, n)]
    degree = ptr[u + 1] - ptr[u]
    if degree == 0 or _below(state, UNIT) < ANYWHERE:
        return u, _below(state, n)
    b = part[neighbours[ptr[u] + _below(state, degree)]]
    return u, 8 * b + _below(state, min(8, n - 8 * b))


@numba.njit(**_FLAGS)
def _anneal(pattern, parts, order, n_steps, seed):
    """Improve the order of one graph in place; never leave it with more tiles."""
    ptr, neighbours = pattern.ptr, pattern.neighbours
    part, place, counts, score = parts.part, parts.place, parts.counts, parts.score
    n_tiles = _fill(pattern, parts, order)
    slots, fewest = order.copy(), n_tiles
    # Never 0, at which the generator would stay.
    state = np.full(1, np.uint64(seed) * np.uint64(0x9E3779B97F4A7C15) | np.uint64(1))
    for cooling in range(N_COOLINGS):
        temperature = HOT * (COLD / HOT) ** (cooling / N_COOLINGS)
        for _ in range(n_steps * cooling // N_COOLINGS, n_steps * (cooling + 1) // N_COOLINGS):
            u, at = _propose(ptr, neighbours, part, slots, state)
            v = slots[at]
            a, b = part[u], part[v]
            if a == b:
                continue
            change = _move(ptr, neighbours, part, counts, score, u, b, v)
            change += _move(ptr, neighbours, part, counts, score, v, a, u)
            rise = _energy(change)
            if rise > 0 and _below(state, UNIT) >= np.exp(-rise / temperature) * UNIT:
                _move(ptr, neighbours, part, counts, score, v, b, u)
                _move(ptr, neighbours, part, counts, score, u, a, v)
                continue
            slots[place[u]], slots[at] = v, u
            place[u], place[v] = at, place[u]
            n_tiles += _tiles(change)
            if n_tiles < fewest:
                fewest = n_tiles
                order[:] = slots


@numba.njit(**_FLAGS)
def refine(pattern, graphs, order, n_sweeps, seed, score):
    """Improve the orders of some graphs in place, each from the same seed."""
    part, place = np.empty_like(order), np.empty_like(order)
    for g in graphs:
        begin, end = pattern.node_ptr[g], pattern.node_ptr[g + 1]
        n_parts = (end - begin + 7) // 8
        parts = Parts(part, place, np.zeros((n_parts, n_parts), np.uint8), score)
        _anneal(pattern, parts, order[begin:end], n_sweeps * (end - begin), seed)
