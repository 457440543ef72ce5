# SPDX-License-Identifier: BSD-3-Clause
"""Which pairs the CUDA solver takes in one launch, and how.

What concerns single graphs is planned on the host. What concerns pairs works on arrays of NumPy or
CuPy: sorting millions of them is work for the device.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

WARP = 32
MAX_THREADS = 768
"""Threads of a block that solves one pair, at most."""

ENTRIES_A_THREAD = 8
"""Entries of a vector for each thread from which a larger block is taken."""

VECTORS, VECTORS_WITH_GRADIENT = 5, 6
"""Vectors of a pair, as in ``cuda/pair.cuh``."""

MEMORY = ("GLOBAL", "SHARED_P", "SHARED")
"""Where the vectors of a pair may lie, as ``mgk::Memory`` says."""

RESIDENT = (1, 2, 3, 4, 5, 6, 8, 10, 12, 16, 24)
"""Blocks that share the memory of a multiprocessor; each number is a launch of its own."""

RESERVED = 3072
"""Shared memory that a block costs besides its vectors, at most [bytes]."""

STRIP_ROWS = 64
"""Nodes of a graph along the rows of strips, at most, as in ``cuda/strip.cuh``."""

STRIP_HEIGHTS = (16, 24, 32, 40, 48, 64, 80, 96, 112, 128, 160, 192, 256)
"""Rows of all vectors of a strip; each number is a launch of its own."""

STRIPS_AT_A_TIME = 2
"""Strips of a multiprocessor, at least: larger pairs take blocks."""

WANTED = ("VALUES", "SOLUTIONS", "GRADIENTS")
"""What strips may be asked for, as ``mgk::Wanted`` says; each keeps one more vector of all rows."""

STRIP_ENTRIES = 128
"""Entries of a node on the lanes that read code, at most, as in ``cuda/strip.cuh``."""

STRIP_WARPS = (1, 2, 4)
"""Warps of a strip for which there is a kernel; graphs on more lanes take blocks."""

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

BLOCK_WARPS = 4
"""Warps of a block that solves strips."""


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


@dataclass(frozen=True)
class StripGraphs:
    """How each graph may stand in strips; arrays of shape (n_graphs,).

    Attributes
    ----------
    rank : array of int64
        The graph of the lower rank stands along the rows. Graphs of the same rank stand side by
        side on the lanes of one strip.
    kind : array of int64
        Number of the kernel for the graph on the lanes: warps and entries in registers; -1 where
        there is none.
    lanes : array of int64
        Lanes of a strip for the graph.
    size, n_red : array of int64
        Nodes, and those that are unknowns where the graph stands along the rows.
    """

    rank: Any
    kind: Any
    lanes: Any
    size: Any
    n_red: Any


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
        One of `MEMORY`; for strips always ``"SHARED"``, for the grid ``"GLOBAL"``.
    size : int
        Numbers in the workspace for each block, or for the grid.
    together : bool
        Whether all blocks solve one pair after the other.
    warps, slots : int
        For strips, warps and entries in registers that the kernel is compiled for; 0 for blocks of
        one pair.
    wanted : str
        For strips, one of `WANTED`.
    """

    begin: int
    end: int
    threads: int
    shared_bytes: int
    memory: str = "SHARED"
    size: int = 0
    together: bool = False
    warps: int = 0
    slots: int = 0
    wanted: str = ""


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
    threads: int,
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
    limit, threads : int
        Shared memory of a multiprocessor [bytes], and threads that it is to hold.
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
    few = xp.maximum(threads // WARP // (2 * n_groups), 1)
    resident = xp.minimum(xp.where(whole > 0, whole, only_p), few)
    # As many threads as fill the multiprocessor, unless they had too little to do each.
    fill = xp.minimum(threads // xp.maximum(resident, 1), MAX_THREADS) // WARP
    enough = -(-area // (ENTRIES_A_THREAD * WARP))
    n_warps = xp.maximum(xp.minimum(fill, enough), 1)
    n_warps = xp.where(together, min(threads, GRID_THREADS) // WARP, n_warps)
    cost = n_entries[pairs[0]] * n_entries[pairs[1]] + 8 * area
    # Largest pairs first; those of one kind of launch stand together.
    kind = (memory * 64 + resident) * 64 + MAX_THREADS // WARP - n_warps
    kind = xp.where(together, -1, kind)
    order = xp.lexsort(xp.stack([-cost, kind]))
    kind, area = kind[order], area[order]
    launches = []
    for begin, end in pairwise(_cuts(xp, kind)):
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


def _cuts(xp, kind) -> list[int]:
    """Find the ends of the runs of equal elements; 0 stands in front."""
    if len(kind) == 0:
        return []
    return [0, *(xp.flatnonzero(kind[1:] != kind[:-1]) + 1).tolist(), len(kind)]


def rank_for_strips(
    size: NDArray, most: NDArray, n_red: NDArray, slots: tuple[int, ...]
) -> StripGraphs:
    """Say how each graph may stand in strips.

    Parameters
    ----------
    size, most : ndarray of shape (n_graphs,)
        Nodes of each graph, and entries of the node that has the most.
    n_red : ndarray of shape (n_graphs,)
        Nodes that are unknowns where the graph stands along the rows.
    slots : tuple of int
        Numbers of entries in registers that there are kernels for.
    """
    warps = np.searchsorted(np.array(STRIP_WARPS) * WARP, size)
    slot = np.searchsorted(slots, most)
    is_lane = (warps < len(STRIP_WARPS)) & (slot < len(slots))
    kind = np.where(is_lane, warps * len(slots) + slot, -1)
    # Rows only, then those that are best as rows, then the large ones.
    group = np.where(is_lane, 1 + 2 * kind + (n_red == size), 0)
    rank = np.empty(len(size), np.int64)
    n_ranks = 0
    for number in np.unique(group):
        members = np.flatnonzero(group == number)
        side_by_side = number > 0 and warps[members[0]] == 0
        own = _share_lanes(size[members]) if side_by_side else np.arange(len(members))
        rank[members] = n_ranks + own
        n_ranks += own.max() + 1
    lanes = np.where(is_lane, WARP * np.array(STRIP_WARPS)[warps * is_lane], 0)
    return StripGraphs(rank, kind, lanes, size, n_red)


def _share_lanes(size: NDArray) -> NDArray:
    """Put graphs side by side on a warp, large ones with small ones; returns the warp of each."""
    order = np.argsort(-size, kind="stable").tolist()
    warp = np.empty(len(size), np.int64)
    sizes, lo, hi, number = size.tolist(), 0, len(size) - 1, 0
    while lo <= hi:
        room = WARP - sizes[order[lo]]
        warp[order[lo]] = number
        lo += 1
        while lo <= hi and sizes[order[hi]] <= room:
            room -= sizes[order[hi]]
            warp[order[hi]] = number
            hi -= 1
        number += 1
    return warp


def orient_for_strips(xp, graphs: StripGraphs, pairs, room: float):
    """Exchange rows and columns where that is better.

    Parameters
    ----------
    xp : module
        NumPy or CuPy, whose arrays the others are.
    graphs : StripGraphs
        What `rank_for_strips` says, as arrays of xp.
    pairs : array of shape (2, n_pairs)
        Graphs.
    room : float
        Numbers that the vectors of a strip may have.

    Returns
    -------
    pairs : array of shape (2, n_pairs)
        The pairs.
    swapped, fits : array of shape (n_pairs,), bool
        Which are exchanged, and which may be solved in strips.
    """
    first, second = graphs.rank[pairs]
    swapped = second < first
    pairs = xp.where(swapped, pairs[::-1], pairs)
    numbers = _height(graphs)[pairs[0]] * graphs.lanes[pairs[1]]
    fits = (graphs.size[pairs[0]] <= STRIP_ROWS) & (graphs.kind[pairs[1]] >= 0) & (numbers <= room)
    return pairs, swapped, fits


def _height(graphs: StripGraphs):
    """Rows of the vectors in shared memory: two of all rows, two of red ones."""
    return 2 * (graphs.size + graphs.n_red)


def plan_strips(
    xp, graphs: StripGraphs, pairs, swapped, slots: tuple[int, ...], itemsize: int, wanted: str
) -> Plan:
    """Sort pairs, oriented and fit for it, into strips.

    Parameters
    ----------
    xp : module
        NumPy or CuPy, whose arrays the others are.
    graphs : StripGraphs
        What `rank_for_strips` says, as arrays of xp.
    pairs, swapped : array
        As `orient_for_strips` returns them.
    slots : tuple of int
        As for `rank_for_strips`.
    itemsize : int
        Bytes of a number.
    wanted : str
        One of `WANTED`.
    """
    height = xp.searchsorted(xp.asarray(STRIP_HEIGHTS), _height(graphs))
    kind = graphs.kind[pairs[1]] * len(STRIP_HEIGHTS) + height[pairs[0]]
    last = len(slots) * len(STRIP_WARPS) * len(STRIP_HEIGHTS)
    n = len(graphs.rank) + 1
    # One number to sort by: the costly kinds first, then rows, then graphs that share a strip.
    key = ((last - kind) * n + pairs[0]) * n + graphs.rank[pairs[1]]
    order = xp.argsort(key)
    key, pairs, kind = key[order], pairs[:, order], kind[order]
    starts = xp.ones(len(key), bool)
    starts[1:] = key[1:] != key[:-1]
    begin = xp.flatnonzero(starts)
    launches, begins = [], []
    for first, end in pairwise(_cuts(xp, kind)):
        lo, hi = xp.searchsorted(begin, xp.asarray([first, end])).tolist()
        begins.append(xp.concatenate([begin[lo:hi], xp.asarray([end])]).astype(np.int32))
        lanes, height = divmod(int(kind[first]), len(STRIP_HEIGHTS))
        warp, slot = divmod(lanes, len(slots))
        warps, a_block = STRIP_WARPS[warp], strips_a_block(STRIP_WARPS[warp])
        shared = a_block * strip_bytes(warps, STRIP_HEIGHTS[height], itemsize)
        threads = a_block * warps * WARP
        kept = a_block * WANTED.index(wanted) * STRIP_ROWS * warps * WARP
        form = {"size": kept, "warps": warps, "slots": slots[slot], "wanted": wanted}
        launches.append(Launch(first, end, threads, shared, **form))
    return Plan(pairs.astype(np.int32), order, swapped[order], begins, launches)


def strips_a_block(warps: int) -> int:
    """Return the strips that a block solves at a time."""
    return BLOCK_WARPS if warps == 1 else 1


def strip_bytes(warps: int, height: int, itemsize: int) -> int:
    """Shared memory of a strip at most, as in ``cuda/strip.cuh``."""
    numbers = height * warps * WARP + STRIP_ROWS
    return numbers * itemsize + warps * (8 + 2 * STRIP_ENTRIES)
