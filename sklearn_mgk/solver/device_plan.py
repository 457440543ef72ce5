# SPDX-License-Identifier: BSD-3-Clause
"""Which pairs the CUDA solver takes in one launch, and how.

The functions work on arrays of NumPy or CuPy: with millions of pairs, sorting them is work for the
device.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from typing import Any

import numpy as np

WARP = 32
MIN_THREADS, MAX_THREADS = 32, 512
"""Threads of a block that solves one pair, powers of two."""

ENTRIES_A_THREAD = 8
"""Entries of a vector for each thread from which a larger block is taken."""

STRIP_ROWS = (8, 16, 24, 32)
"""Rows for which there is a kernel of strips; graphs of more nodes take blocks."""

STRIP_WARPS = 4
"""Strips that a block solves at a time."""

VECTORS, VECTORS_WITH_GRADIENT = 6, 7
"""Vectors of a pair, as in ``cuda/pair.cuh``."""

MEMORY = ("GLOBAL", "SHARED_P", "SHARED")
"""Where the vectors of a pair may lie, as ``mgk::Memory`` says."""

SHARED_STEP = 8192
"""Steps in which shared memory is asked for [bytes]: each size is a launch of its own."""

STATIC_SHARED = 1024
"""Shared memory that the kernels use besides vectors, at most [bytes]."""

BLACK_COST = 0.55
"""Cost of a strip whose rows are bipartite, relative to one whose rows are not."""


@dataclass(frozen=True)
class Graphs:
    """What planning reads of each graph; arrays of shape (n_graphs,), of NumPy or CuPy."""

    size: Any
    n_entries: Any
    is_bipartite: Any
    most: Any  # entries of the node that has the most
    has_loop: Any


@dataclass(frozen=True)
class Launch:
    """Pairs that are solved by one launch.

    Attributes
    ----------
    begin, end : int
        Their places in the list.
    threads : int
        Threads of a block.
    shared_bytes : int
        Shared memory of a block.
    memory : str
        One of `MEMORY`; for strips always ``"SHARED"``.
    size : int
        Numbers of the largest pair that lie in the workspace.
    rows, slots : int
        For strips, rows and entries in registers that the kernel is compiled for; rows is 0 for
        blocks.
    """

    begin: int
    end: int
    threads: int
    shared_bytes: int
    memory: str = "SHARED"
    size: int = 0
    rows: int = 0
    slots: int = 0


@dataclass(frozen=True)
class Plan:
    """Pairs in the order of the launches.

    Attributes
    ----------
    pairs : array of shape (2, n_pairs), int32
        Graphs along the rows, and along the columns.
    order : array of shape (n_pairs,)
        Place of each pair in the list of the call.
    swapped : array of shape (n_pairs,), bool
        Whether rows and columns are exchanged.
    strip_begin : list of array
        For each launch of strips, the pairs at which they begin, and the end.
    launches : list of Launch
        What to launch.
    """

    pairs: Any
    order: Any
    swapped: Any
    strip_begin: list
    launches: list[Launch]


def padded(size):
    """Columns of the matrix of a pair, in whole warps."""
    return -(-size // WARP) * WARP


def a_strip(size):
    """Graphs of a size that stand side by side in a strip."""
    return WARP // size


def plan_blocks(xp, graphs: Graphs, pairs, n_vectors: int, itemsize: int, limit: int) -> Plan:
    """Sort pairs into launches of one pair a block, the costly ones first.

    Parameters
    ----------
    xp : module
        NumPy or CuPy, whose arrays the others are.
    graphs : Graphs
        The graphs.
    pairs : array of shape (2, n_pairs)
        Graphs.
    n_vectors, itemsize : int
        Vectors of a pair, and bytes of a number.
    limit : int
        Shared memory that a block may have [bytes].
    """
    first, second = graphs.size[pairs]
    swapped = second * padded(first) < first * padded(second)
    pairs = xp.where(swapped, pairs[::-1], pairs)
    size = graphs.size[pairs[0]] * padded(graphs.size[pairs[1]])
    threads = xp.full(len(size), MIN_THREADS)
    for more in 2 ** np.arange(6, int(np.log2(MAX_THREADS)) + 1):
        threads = xp.where(size > ENTRIES_A_THREAD * int(more) / 2, int(more), threads)
    one, all_of_them = (_in_steps(size * n * itemsize) for n in (1, n_vectors))
    most = limit - STATIC_SHARED
    memory = (one <= most) * 1 + (all_of_them <= most)
    shared = xp.where(memory == 2, all_of_them, xp.where(memory == 1, one, 0))
    cost = graphs.n_entries[pairs[0]] * graphs.n_entries[pairs[1]] + 8 * size
    # Largest pairs first; those of one kind of launch stand together.
    key = (2 - memory) * 2**40 + threads * 2**30 + shared
    order = xp.lexsort(xp.stack([-cost, -key]))
    key, size = key[order], size[order]
    cuts = xp.flatnonzero(key[1:] != key[:-1]) + 1
    edges = [0, *cuts.tolist(), len(key)] if len(key) else []
    launches = []
    for begin, end in itertools.pairwise(edges):
        place = order[begin]
        where = MEMORY[int(memory[place])]
        apart = {"GLOBAL": n_vectors, "SHARED_P": n_vectors - 1, "SHARED": 0}[where]
        numbers = int(size[begin:end].max()) * apart
        launches.append(Launch(begin, end, int(threads[place]), int(shared[place]), where, numbers))
    return Plan(pairs[:, order].astype(np.int32), order, swapped[order], [], launches)


def _in_steps(n_bytes):
    """Round a number of bytes up to the steps in which shared memory is asked for."""
    return -(-n_bytes // SHARED_STEP) * SHARED_STEP


def strip_bytes(rows: int, itemsize: int) -> int:
    """Shared memory of a warp that solves a strip, as in ``cuda/strip.cuh``."""
    return (2 * rows * WARP + rows) * itemsize + 2 * WARP * 4


def strip_rows(size: int) -> int:
    """Rows of the kernel that takes a graph of that size."""
    return next(rows for rows in STRIP_ROWS if size <= rows)


def fits_strips(xp, graphs: Graphs, pairs, most_slots: int):
    """Whether each pair may be solved in a strip."""
    small = (graphs.size <= WARP) & (graphs.most <= most_slots)
    both_loop = graphs.has_loop[pairs[0]] & graphs.has_loop[pairs[1]]
    return small[pairs[0]] & small[pairs[1]] & ~both_loop


def plan_strips(xp, graphs: Graphs, pairs, slots: tuple[int, ...], itemsize: int) -> Plan:
    """Sort pairs into strips: one graph along the rows, several of about one size on the lanes.

    Parameters
    ----------
    xp, graphs, pairs, itemsize
        As for `plan_blocks`; all pairs pass `fits_strips`.
    slots : tuple of int
        Numbers of entries in registers that there are kernels for; the last serves all graphs.
    """
    rows = xp.asarray([strip_rows(k) for k in range(WARP + 1)])
    size, cost = graphs.size, xp.where(graphs.is_bipartite, BLACK_COST, 1.0)
    here = size[pairs[0]] * cost[pairs[0]] / a_strip(size[pairs[1]])
    there = size[pairs[1]] * cost[pairs[1]] / a_strip(size[pairs[0]])
    swapped = there < here
    pairs = xp.where(swapped, pairs[::-1], pairs)
    beside = a_strip(size[pairs[1]])
    wanted = xp.zeros(len(beside), np.int64)
    for number in slots[:-1]:
        wanted += graphs.most[pairs[1]] > number
    kind = rows[size[pairs[0]]] * len(slots) + wanted
    # One number to sort by: kind, largest first, then rows, then graphs that share a strip.
    key = ((64 * len(slots) - kind) * (len(size) + 1) + pairs[0]) * (WARP + 1) + beside
    order = xp.argsort(key)
    key, pairs, kind, beside = key[order], pairs[:, order], kind[order], beside[order]
    place = xp.arange(len(key))
    starts = xp.ones(len(key), bool)
    starts[1:] = key[1:] != key[:-1]
    run = _running_start(xp, starts)
    begin = xp.flatnonzero((place - run) % beside == 0)
    cuts = [0, *(xp.flatnonzero(kind[1:] != kind[:-1]) + 1).tolist(), len(key)]
    launches, begins = [], []
    for first, last in itertools.pairwise(cuts):
        lo, hi = (int(xp.searchsorted(begin, xp.asarray([at]))[0]) for at in (first, last))
        begins.append(xp.concatenate([begin[lo:hi], xp.asarray([last])]).astype(np.int32))
        n_rows, slot = divmod(int(kind[first]), len(slots))
        shared = STRIP_WARPS * strip_bytes(n_rows, itemsize)
        launches.append(
            Launch(first, last, STRIP_WARPS * WARP, shared, rows=n_rows, slots=slots[slot])
        )
    return Plan(pairs.astype(np.int32), order, swapped[order], begins, launches)


def _running_start(xp, starts):
    """Place at which the run of each element began."""
    first = xp.flatnonzero(starts)
    return first[xp.cumsum(starts) - 1]
