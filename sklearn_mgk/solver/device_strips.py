# SPDX-License-Identifier: BSD-3-Clause
"""Which pairs the CUDA solver takes in strips, and in which launch.

What concerns single graphs is planned on the host. What concerns pairs works on arrays of NumPy or
CuPy: sorting millions of them is work for the device.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sklearn_mgk.solver.device_launch import RESERVED, WANTED, WARP, Launch, Plan, cuts

STRIP_ROWS = 64
"""Nodes of a graph along the rows of strips, at most, as in ``cuda/strip.cuh``."""

STRIP_HEIGHTS = (16, 24, 32, 40, 48, 64, 80, 96, 112, 128, 160, 192, 256)
"""Rows of all vectors of a strip; each number is a launch of its own."""

STRIPS_AT_A_TIME = 2
"""Strips of a multiprocessor, at least: larger pairs take blocks."""

STRIP_ENTRIES = 128
"""Entries of a node on the lanes that read code, at most, as in ``cuda/strip.cuh``."""

STRIP_WARPS = (1, 2, 4)
"""Warps of a strip for which there is a kernel; graphs on more lanes take blocks."""

BLOCK_WARPS = 4
"""Warps of a block that solves strips."""


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
    size : array of int64
        Nodes.
    rows : array of int64
        Rows of the vectors in shared memory where the graph stands along the rows: two of all
        nodes, two of those that are unknowns.
    height : array of int64
        Which of `STRIP_HEIGHTS` has room for them.
    """

    rank: Any
    kind: Any
    lanes: Any
    size: Any
    rows: Any
    height: Any


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
    rows = 2 * (size + n_red)
    height = np.minimum(np.searchsorted(STRIP_HEIGHTS, rows), len(STRIP_HEIGHTS) - 1)
    return StripGraphs(rank, kind, lanes, size, rows, height)


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


def orient_for_strips(xp, graphs: StripGraphs, pairs, itemsize: int, limit: int):
    """Exchange rows and columns where that is better.

    Parameters
    ----------
    xp : module
        NumPy or CuPy, whose arrays the others are.
    graphs : StripGraphs
        What `rank_for_strips` says, as arrays of xp.
    pairs : array of shape (2, n_pairs)
        Graphs.
    itemsize : int
        Bytes of a number.
    limit : int
        Shared memory of a multiprocessor [bytes], which a block may have nearly all of.

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
    lanes, height = graphs.lanes[pairs[1]], graphs.height[pairs[0]]
    fits = (graphs.size[pairs[0]] <= STRIP_ROWS) & (graphs.kind[pairs[1]] >= 0)
    own = graphs.rows[pairs[0]] * lanes * itemsize
    fits &= own <= limit / STRIPS_AT_A_TIME - 2 * RESERVED
    # Strips of one warp share a block, whose memory goes by `STRIP_HEIGHTS`.
    room = xp.where(lanes == WARP, _highest(itemsize, limit), len(STRIP_HEIGHTS))
    return pairs, swapped, fits & (height < room)


def _highest(itemsize: int, limit: int) -> int:
    """Return for how many of `STRIP_HEIGHTS` strips of one warp fit into a block."""
    room = (limit - RESERVED) // strips_a_block(1)
    return sum(strip_bytes(1, height, itemsize) <= room for height in STRIP_HEIGHTS)


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
    kind = graphs.kind[pairs[1]] * len(STRIP_HEIGHTS) + graphs.height[pairs[0]]
    last = len(slots) * len(STRIP_WARPS) * len(STRIP_HEIGHTS)
    n = len(graphs.rank) + 1
    # One number to sort by: the costly kinds first, then rows, then graphs that share a strip.
    key = ((last - kind) * n + pairs[0]) * n + graphs.rank[pairs[1]]
    order = xp.argsort(key)
    key, pairs = key[order], pairs[:, order]
    starts = xp.ones(len(key) + 1, bool)  # the end is one too
    starts[1:-1] = key[1:] != key[:-1]
    begin = xp.flatnonzero(starts).astype(np.int32)
    launches, begins = [], []
    by_strip = last - key[begin[:-1]] // n**2
    strip_cuts = cuts(xp, by_strip)
    at = xp.asarray(strip_cuts[:-1])
    kinds, firsts = xp.stack([by_strip[at], begin[at]]).tolist()
    for number, (lo, hi), span in zip(
        kinds, pairwise(strip_cuts), pairwise([*firsts, len(key)]), strict=True
    ):
        begins.append(begin[lo : hi + 1])
        launches.append(_launch(*span, number, slots, itemsize, wanted))
    return Plan(pairs.astype(np.int32), order, swapped[order], begins, launches)


def _launch(
    begin: int, end: int, kind: int, slots: tuple[int, ...], itemsize: int, wanted: str
) -> Launch:
    """Describe the launch for a kind of strips."""
    lanes, height = divmod(kind, len(STRIP_HEIGHTS))
    warp, slot = divmod(lanes, len(slots))
    warps, a_block = STRIP_WARPS[warp], strips_a_block(STRIP_WARPS[warp])
    shared = a_block * strip_bytes(warps, STRIP_HEIGHTS[height], itemsize)
    kept = a_block * WANTED.index(wanted) * STRIP_ROWS * warps * WARP
    form = {"size": kept, "warps": warps, "slots": slots[slot], "wanted": wanted}
    return Launch(begin, end, a_block * warps * WARP, shared, **form)


def strips_a_block(warps: int) -> int:
    """Return the strips that a block solves at a time."""
    return BLOCK_WARPS if warps == 1 else 1


def strip_bytes(warps: int, height: int, itemsize: int) -> int:
    """Shared memory of a strip at most, as in ``cuda/strip.cuh``."""
    numbers = height * warps * WARP + STRIP_ROWS
    return numbers * itemsize + warps * (8 + 2 * STRIP_ENTRIES)
