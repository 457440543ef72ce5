# SPDX-License-Identifier: BSD-3-Clause
"""Which pairs of the CUDA solver take a block or the whole grid, and in which launch.

Works on arrays of NumPy or CuPy: sorting millions of pairs is work for the device.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np

from sklearn_mgk.solver.device_launch import MEMORY, RESERVED, WARP, Launch, Plan, cuts

MAX_THREADS = 768
"""Threads of a block that solves one pair, at most."""

ENTRIES_A_THREAD = 8
"""Entries of a vector for each thread from which a larger block is taken."""

VECTORS, VECTORS_WITH_GRADIENT = 5, 6
"""Vectors of a pair, as in ``cuda/pair.cuh``."""

RESIDENT = (1, 2, 3, 4, 5, 6, 8, 10, 12, 16, 24)
"""Blocks that share the memory of a multiprocessor; each number is a launch of its own."""

GRID_THREADS = 512
"""Threads of a block where all blocks of the grid solve a pair together."""

SLAB_WIDTH, SLABS = 16, 2
"""Bytes of a column in a slab of rows that the grid stages in shared memory, and slabs at most, as
in ``cuda/staged.cuh``."""

GRID_AREA, GRID_COST = 2**20, 3e8
"""Entries of a vector, and products of entries in an iteration, from which the grid takes a pair:
the vectors of one pair for each multiprocessor would not fit into the second-level cache."""

WAIT_COST = 6e5
"""What the barriers of the grid cost in an iteration, as products of entries by one multiprocessor,
with a reserve."""

BLACK_COST = 0.6
"""Cost of a pair whose rows are bipartite, relative to one whose rows are not."""


@dataclass(frozen=True)
class BlockGraphs:
    """What planning of blocks reads of each graph; arrays of shape (n_graphs,).

    Attributes
    ----------
    size, n_entries : array of int64
        Nodes, and entries of the adjacency matrix.
    is_bipartite : array of bool
        Whether half of the rows can be eliminated.
    entry_bytes : int
        Bytes of an entry on the device.
    """

    size: Any
    n_entries: Any
    is_bipartite: Any
    entry_bytes: int = 16


def padded(size):
    """Columns of the matrix of a pair, in whole warps."""
    return -(-size // WARP) * WARP


def fit_for_grid(xp, graphs: BlockGraphs, pairs, processors: int):
    """Choose the pairs that all multiprocessors solve together.

    These are the largest ones; and costly ones for which most multiprocessors would have to wait in
    the end, as far as that takes longer than the barriers of the grid.

    Parameters
    ----------
    xp : module
        NumPy or CuPy, whose arrays the others are.
    graphs : BlockGraphs
        The graphs.
    pairs : array of shape (2, n_pairs)
        Graphs.
    processors : int
        Multiprocessors of the device.

    Returns
    -------
    array of shape (n_pairs,), bool
        Which are chosen.
    """
    area = xp.prod(graphs.size[pairs], axis=0)
    cost = xp.prod(graphs.n_entries[pairs].astype(np.float64), axis=0) + 8.0 * area
    order = xp.argsort(-cost)
    waits = WAIT_COST * processors * xp.arange(1, len(cost) + 1)
    chosen = xp.empty(len(cost), bool)
    chosen[order] = cost[order] * processors > cost.sum() + waits
    return chosen | (area >= GRID_AREA) | (cost >= GRID_COST)


def plan_blocks(
    xp,
    graphs: BlockGraphs,
    pairs,
    n_vectors: int,
    itemsize: int,
    limit: int,
    threads: Mapping[str, int],
    processors: int,
) -> Plan:
    """Sort pairs into launches of one pair a block or of the whole grid, the costly ones first.

    Parameters
    ----------
    xp : module
        NumPy or CuPy, whose arrays the others are.
    graphs : BlockGraphs
        The graphs.
    pairs : array of shape (2, n_pairs)
        Graphs.
    n_vectors, itemsize : int
        Vectors of a pair, and bytes of a number.
    limit : int
        Shared memory of a multiprocessor [bytes].
    threads : dict
        Threads that it is to hold, for each of `MEMORY`.
    processors : int
        Multiprocessors of the device.
    """
    size, n_entries = graphs.size, graphs.n_entries
    together = fit_for_grid(xp, graphs, pairs, processors)
    swapped = _turned(xp, graphs, pairs, xp.where(together, processors, 1))
    pairs = xp.where(swapped, pairs[::-1], pairs)
    area = size[pairs[0]] * padded(size[pairs[1]])
    whole = _resident(xp, area * (n_vectors * itemsize), limit)
    only_p = _resident(xp, area * itemsize, limit)
    whole, only_p = (xp.where(together, 0, number) for number in (whole, only_p))
    memory = xp.where(whole > 0, 2, xp.where(only_p > 0, 1, 0))
    # So few blocks at a time that each has two warps for a group of columns: fewer leave some idle.
    n_groups = padded(size[pairs[1]]) // WARP
    n_warps = xp.asarray([threads[name] // WARP for name in MEMORY])[memory]
    few = xp.maximum(n_warps // (2 * n_groups), 1)
    resident = xp.minimum(xp.where(whole > 0, whole, only_p), few)
    # As many threads as fill the multiprocessor, unless they had too little to do each.
    fill = xp.minimum(n_warps // xp.maximum(resident, 1), MAX_THREADS // WARP)
    enough = -(-area // (ENTRIES_A_THREAD * WARP))
    n_warps = xp.maximum(xp.minimum(fill, enough), 1)
    n_warps = xp.where(together, GRID_THREADS // WARP, n_warps)
    cost = n_entries[pairs[0]] * n_entries[pairs[1]] + 8 * area
    # Largest pairs first; those of one kind of launch stand together.
    kind = (memory * 64 + resident) * 64 + MAX_THREADS // WARP - n_warps
    kind = xp.where(together, -1, kind)
    order = xp.lexsort(xp.stack([-cost, kind]))
    kind, area = kind[order], area[order]
    launches = []
    for begin, end in pairwise(cuts(xp, kind)):
        place = order[begin]
        where, blocks = MEMORY[int(memory[place])], int(resident[place])
        apart = {"GLOBAL": n_vectors, "SHARED_P": n_vectors - 1, "SHARED": 0}[where]
        shared = limit // blocks - RESERVED if blocks else 0
        numbers = int(area[begin:end].max()) * apart
        in_block = int(n_warps[place]) * WARP
        by_grid = bool(together[place])
        if by_grid:
            second = pairs[1][order[begin:end]]
            shared = _staged_bytes(xp, size[second], limit)
            numbers += -(-_copy_bytes(graphs, second) // itemsize)
        launches.append(Launch(begin, end, in_block, shared, where, numbers, by_grid))
    return Plan(pairs[:, order].astype(np.int32), order, swapped[order], [], launches)


def _staged_bytes(xp, n_columns, limit: int) -> int:
    """Shared memory for the slabs of the grid, of the pair that takes the most."""
    room = limit - RESERVED - SLAB_WIDTH  # they start at a multiple of it
    slabs = xp.minimum(room // (SLAB_WIDTH * n_columns), SLABS)
    return int((slabs * n_columns).max() + 1) * SLAB_WIDTH


def _copy_bytes(graphs: BlockGraphs, second) -> int:
    """Room for the copy of the entries of G' with which the grid goes through its columns.

    Groups of columns are filled up to their largest number of entries. Where that takes more than
    this, the grid does without the copy.
    """
    n_entries = 2 * graphs.n_entries[second] + 8 * padded(graphs.size[second])
    return (int(n_entries.max()) + 4096) * graphs.entry_bytes


def _turned(xp, graphs: BlockGraphs, pairs, step):
    """Whether rows and columns are better exchanged, for rows that are taken ``step`` at a time."""
    black = xp.where(graphs.is_bipartite, BLACK_COST, 1.0)
    first, second = (-(-graphs.size[side] // step) * step * black[side] for side in pairs)
    return second * padded(graphs.size[pairs[0]]) < first * padded(graphs.size[pairs[1]])


def _resident(xp, n_bytes, limit: int):
    """Blocks that find room on a multiprocessor, of those in `RESIDENT`; 0 for none."""
    found = xp.zeros(len(n_bytes), np.int64)
    for number in RESIDENT:
        found = xp.where(n_bytes <= limit // number - RESERVED, number, found)
    return found
