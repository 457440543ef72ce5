# SPDX-License-Identifier: BSD-3-Clause
"""Strips: one graph along the rows and several graphs side by side along the columns.

Small graphs make short loops, and short loops are slow. So the pairs that share a row graph G are
solved together: their column graphs G' stand side by side, as one graph of several parts, and
every loop runs over the nodes of all of them (the *lanes*). Each part, a *segment* of lanes, keeps
its own step lengths and its own end of the iteration, so that the answer for a pair does not depend
on its neighbours in the strip.
"""

from __future__ import annotations

from typing import NamedTuple

import numba
import numpy as np

from sklearn_mgk.solver.layout import SLOTS

ENTRY = {
    "cache": True,
    "nogil": True,
    "error_model": "numpy",
    "fastmath": {"reassoc", "contract", "nsz"},
}
"""How numba compiles what Python calls."""

FLAGS = {**ENTRY, "no_cpython_wrapper": True, "no_cfunc_wrapper": True}
"""How numba compiles the rest; without wrappers, which take half of the time."""

ZERO, ONE, N_PLANES = np.uint64(0), np.uint64(1), np.uint64(SLOTS)
"""Unsigned constants: an unsigned index plus a plain 1 would become a float in numba."""

SPARE = 4
"""Numbers behind the last row: vector code may read, and add zeros to, the rest of its vector."""

WIDTH = 192
"""Lanes at which a strip is full: a row of float64 is 1.5 kB, and the rows in use stay in L1."""


class Strip(NamedTuple):
    """Extent of a strip (all uint64)."""

    first: int  # first position of G in the node arrays
    n_red: int  # rows that are unknowns; the rest are eliminated
    n_rows: int
    width: int  # lanes
    n_slots: int  # slots of all columns: SLOTS planes of all lanes, then the rest


class Lanes(NamedTuple):
    """The columns of a strip; scratch of one thread, as long as its largest strip needs."""

    node: np.ndarray  # (lanes,) uint64: position of the node in each lane
    source: np.ndarray  # (slots,) uint32: lane that a slot reads
    target: np.ndarray  # (slots,) uint32: lane that a slot adds to
    ptr: np.ndarray  # (segments + 1,) uint64: lanes of each segment
    rest: np.ndarray  # (segments + 1,) uint64: slots of each segment beyond the planes


class Work(NamedTuple):
    """Vectors of one thread."""

    # Each of shape (rows x lanes,) unless said otherwise.
    x: np.ndarray  # solution
    z: np.ndarray  # adjoint solution
    r: np.ndarray  # residual
    p: np.ndarray  # direction
    y: np.ndarray  # W p, then Z p
    diagonal: np.ndarray  # D/V, or 0 where V = 0
    inverse: np.ndarray  # Jacobi preconditioner, or 0 where V = 0
    b: np.ndarray  # right-hand side
    line: np.ndarray  # (lanes,) one row of a product
    alpha: np.ndarray  # (lanes,) step length of each lane's segment
    total: np.ndarray  # (lanes,) float64: sums over the rows
    weights: np.ndarray  # (labels of G or rank, slots) edge kernel or factor, times weight
    image: np.ndarray  # product with one factor; empty without factors
    factors: np.ndarray  # (groups of G, rank) factors of the edge kernel; empty without factors
    windowed: NamedTuple  # `windows.Windowed`, without edges unless the edge kernel has windows
    active: np.ndarray  # (segments,) bool: that of `Ends`


class Ends(NamedTuple):
    """State of each segment of a strip; scratch of one thread, shape (segments,)."""

    rz: np.ndarray  # float64: squared residual in the norm of the preconditioner
    goal: np.ndarray  # float64: at which the segment is done
    outcome: np.ndarray  # uint8
    iterations: np.ndarray  # int32
    active: np.ndarray  # bool


@numba.njit(**FLAGS)
def strip_end(pairs, order, begin):
    """Return the end of the strip that begins at a pair: same row graph, and lanes to spare."""
    width, end = np.int64(0), begin
    while end < len(pairs) and pairs[end, 0] == pairs[begin, 0]:
        h = pairs[end, 1]
        width += np.int64(order.ptr[h + 1] - order.ptr[h])
        if width > WIDTH and end > begin:
            break
        end += 1
    return end


@numba.njit(**FLAGS)
def make_scratch(pairs, order, rows, columns, rank, windowed, sample):
    """Allocate scratch that is large enough for each strip of a list of pairs."""
    size = lanes = slots = segments = groups = np.int64(1)
    weights = windowed.n_values
    begin = np.int64(0)
    while begin < len(pairs):
        end = strip_end(pairs, order, begin)
        g = pairs[begin, 0]
        width = n_slots = np.int64(0)
        for k in range(begin, end):
            h = pairs[k, 1]
            width += np.int64(order.ptr[h + 1] - order.ptr[h])
            n_slots += np.int64(columns.ptr[h + 1] - columns.ptr[h])
        size = max(size, np.int64(order.ptr[g + 1] - order.ptr[g]) * width)
        labels = np.int64(rows.label_ptr[g + 1] - rows.label_ptr[g])
        lanes, slots, segments = max(lanes, width), max(slots, n_slots), max(segments, end - begin)
        if windowed.n_values == 0:
            weights = max(weights, labels * n_slots, rank * n_slots)
        last, first = rows.group_ptr[order.ptr[g + 1]], rows.group_ptr[order.ptr[g]]
        groups = max(groups, np.int64(last - first))
        begin = end
    ends = Ends(
        np.empty(segments),
        np.empty(segments),
        np.empty(segments, np.uint8),
        np.empty(segments, np.int32),
        np.empty(segments, np.bool_),
    )
    work = _make_work(size, lanes, weights, rank, groups, windowed, ends.active, sample.dtype)
    return _make_lanes(lanes, slots, segments), work, ends


@numba.njit(**FLAGS)
def _make_lanes(lanes, slots, segments):
    return Lanes(
        np.empty(lanes, np.uint64),
        np.empty(slots, np.uint32),
        np.empty(slots, np.uint32),
        np.empty(segments + 1, np.uint64),
        np.empty(segments + 1, np.uint64),
    )


@numba.njit(**FLAGS)
def _make_work(size, lanes, weights, rank, groups, windowed, active, dtype):
    size += SPARE
    return Work(
        np.empty(size, dtype),
        np.empty(size, dtype),
        np.empty(size, dtype),
        np.empty(size, dtype),
        np.empty(size, dtype),
        np.empty(size, dtype),
        np.empty(size, dtype),
        np.empty(size, dtype),
        np.empty(lanes, dtype),
        np.empty(lanes, dtype),
        np.empty(lanes),
        np.empty(weights, dtype),
        np.empty(size if rank > 0 else 0, dtype),
        np.empty((groups if rank > 0 else 0, rank), dtype),
        windowed,
        active,
    )


@numba.njit(**FLAGS)
def load_strip(pairs, begin, end, order, columns, lanes):
    """Put the column graphs of pairs begin to end side by side; returns the strip."""
    g = pairs[begin, 0]
    lanes.ptr[0] = 0
    for s in range(end - begin):
        h = pairs[begin + s, 1]
        lanes.ptr[s + 1] = lanes.ptr[s] + order.ptr[h + 1] - order.ptr[h]
    width = lanes.ptr[end - begin]
    lanes.rest[0] = N_PLANES * width
    for s in range(end - begin):
        h = pairs[begin + s, 1]
        first, lane, n = order.ptr[h], lanes.ptr[s], order.ptr[h + 1] - order.ptr[h]
        for t in range(n):
            lanes.node[lane + t] = first + t
        slot = columns.ptr[h]
        for plane in range(N_PLANES):
            for t in range(n):
                at, a = plane * width + lane + t, slot + plane * n + t
                lanes.source[at] = lane + columns.source[a]
                lanes.target[at] = lane + t
            at = lanes.rest[s]
        for a in range(slot + N_PLANES * n, columns.ptr[h + 1]):
            lanes.source[at] = lane + columns.source[a]
            lanes.target[at] = lane + columns.target[a]
            at += ONE
        lanes.rest[s + 1] = at
    n_rows = order.ptr[g + 1] - order.ptr[g]
    return Strip(order.ptr[g], order.n_red[g], n_rows, width, lanes.rest[end - begin])


@numba.njit(**FLAGS)
def add_segments(lanes, total, out):
    """Add up lanes by segment."""
    for s in range(len(out)):
        value = 0.0
        for t in range(lanes.ptr[s], lanes.ptr[s + 1]):
            value += total[t]
        out[s] = value


@numba.njit(**FLAGS)
def clear(lo, hi, out):
    """Set out[lo:hi] to zero."""
    for t in range(lo, hi):
        out[t] = 0
