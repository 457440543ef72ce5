# SPDX-License-Identifier: BSD-3-Clause
r"""Edge kernels of continuous labels: only pairs of edges of similar labels are multiplied.

Where every edge has a label of its own, lengths say, and the edge kernel decays with the distance
of the labels, most products of edges are negligible. With the edges of each graph sorted by the
label, those that stay are, for each edge of G, a *window* of consecutive edges of G'. Its width is
certified. Leaving out entries of W where k_e <= epsilon changes the solution of Z x = b, b >= 0, to
:math:`\tilde x` with

.. math:: 0 \le x - \tilde x = \tilde Z^{-1} (W - \tilde W) x
          \le \epsilon \, \tilde Z^{-1} (A \otimes A') x,

since Z is an M-matrix. With :math:`c = \max_i \sum_j A_{ij} / d_i`, rows of
:math:`D^{-1} (A \otimes A')` sum to at most c c', and those of :math:`\tilde Z^{-1} D` to at most
1 / (1 - c c'), because V <= 1 and k_e <= 1. Hence

.. math:: \max |x - \tilde x| \le \epsilon \, \frac{c c'}{1 - c c'} \max |x| .

The value of a pair of edges serves the four entries of W that the two directions of each make. Four
edges of G at a time share a window, so that processors multiply four values at once.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import NamedTuple

import numba
import numpy as np
from numpy.typing import NDArray

from sklearn_mgk.base_kernels.codegen import feature_dims, features
from sklearn_mgk.base_kernels.codegen.numba import FILL_BLOCK, FILL_ROW_GRADIENT, row_functions
from sklearn_mgk.solver.layout import Order
from sklearn_mgk.solver.problem import LabelKernel, Problem
from sklearn_mgk.solver.reach import find_reach
from sklearn_mgk.solver.strips import FLAGS, ONE, ZERO, clear, strip_end
from sklearn_mgk.solver.tables import NO_FACTORS, check_sample
from sklearn_mgk.solver.topology import Topology
from sklearn_mgk.solver.vectors import LANES, add_product, collect, scale, spread

WINDOW_SHARE = 0.1
"""Cost of an entry of W, relative to what it costs without windows; a rough mean."""

MAX_VALUES = 1 << 23
"""Values of the windows of a pair that are kept from one iteration to the next, by each thread.

Those of larger pairs are evaluated anew in each iteration.
"""

TWO, THREE, FOUR, EIGHT = np.uint64(2), np.uint64(3), np.uint64(LANES), np.uint64(2 * LANES)


class Windows(NamedTuple):
    """Edges of all graphs, those of a graph sorted by key and filled up to blocks of four."""

    block_ptr: NDArray  # (n_graphs + 1,) uint64: blocks of each graph
    n_edges: NDArray  # (n_graphs,) uint64: edges of each graph, without those that fill up
    i: NDArray  # (n,) uint64: positions of both ends within the graph
    j: NDArray  # (n,) uint64
    weight: NDArray  # (n,) float; half that of a self-loop, which has one direction; 0 if filled up
    key: NDArray  # (n,) float64: the attribute that the windows go by
    has_loop: NDArray  # (n_graphs,) bool
    features: NDArray  # (n_features, n) float64: what the kernel reads
    theta: NDArray  # (n_hyperparameters,) float64
    reach: float  # half of a window


class RowCode(NamedTuple):
    """Code of an edge kernel; numba finds out slowly what type it is, so it travels by itself."""

    fill: Callable  # compiled `fill_block` of the kernel
    fill_gradient: Callable  # compiled `fill_row_gradient` of the kernel, if derivatives are wanted


class Windowed(NamedTuple):
    """Windows of the strip at hand; scratch of one thread."""

    edges: Windows
    code: RowCode
    n_values: int  # values of windows that there is room for; 0 without windows
    here: NDArray  # (3,) uint64: first block of G, end of its blocks, whether values are stored
    first: NDArray  # (segments x blocks of G,) uint64: first edge of G' in a block's window
    last: NDArray  # (segments x blocks of G,) uint64: the one after the last
    packed: NDArray  # (8 x nodes of G',) rows of p at the ends of four edges
    product: NDArray  # (8 x nodes of G',) what is to be added to the rows
    values: NDArray  # (4 x edges of G',) float64: the edge kernel of one block
    slopes: NDArray  # (n_theta, edges of G') float64: its derivatives


@dataclass(frozen=True)
class WindowCode:
    """An edge kernel by generated code, evaluated in windows of a numeric attribute."""

    factors = NO_FACTORS

    source: LabelKernel
    codes: NDArray
    attribute: str
    reach: float
    eval_gradient: bool
    dtype: np.dtype

    def tables(self, pairs: NDArray) -> tuple[NDArray, NDArray, NDArray, NDArray]:
        """Return no values, and slopes that only tell how many derivatives there are."""
        none = np.zeros(len(pairs), np.uint64)
        n_free = self.source.kernel.n_dims if self.eval_gradient else 0
        return np.empty(0, self.dtype), np.empty((0, n_free), self.dtype), none, none

    def windows(self, problem: Problem, topology: Topology, order: Order) -> Windows:
        """Sort the edges of each graph."""
        labels, batch = self.source.labels, problem.batch
        edge = np.unique(topology.edge)
        key = np.asarray(labels.columns[self.attribute], np.float64)[labels.codes]
        edge = edge[np.lexsort((key[edge], batch.edge_graph[edge]))]
        n_edges = np.bincount(batch.edge_graph[edge], minlength=len(batch))
        block_ptr = np.concatenate([[0], np.cumsum(-(-n_edges // LANES))])
        edge, is_filler = _fill_up(edge, n_edges, block_ptr)
        ends = batch.edge_index[:, edge] + batch.node_ptr[batch.edge_graph[edge]]
        i, j = order.position[ends].astype(np.uint64)
        weight = np.where(i == j, 0.5, 1.0) * batch.edge_weight[edge]
        kernel, columns = self.source.kernel, labels.columns
        rows = features(columns, kernel.attributes)[labels.codes[edge]]
        return Windows(
            block_ptr=block_ptr.astype(np.uint64),
            n_edges=n_edges.astype(np.uint64),
            i=i,
            j=j,
            weight=np.where(is_filler, 0.0, weight).astype(self.dtype),
            key=key[edge],
            has_loop=np.bincount(batch.edge_graph[edge[i == j]], minlength=len(batch)) > 0,
            features=np.ascontiguousarray(rows.T),
            theta=kernel.hyperparameter_values,
            reach=float(self.reach),
        )

    def code(self) -> RowCode:
        """Compile the kernel."""
        kernel, columns = self.source.kernel, self.source.labels.columns
        fill, fill_gradient = row_functions(kernel, feature_dims(columns, kernel.attributes))
        return RowCode(fill(), fill_gradient() if self.eval_gradient else no_code().fill_gradient)


def _fill_up(edge: NDArray, n_edges: NDArray, block_ptr: NDArray) -> tuple[NDArray, NDArray]:
    """Repeat the last edge of each graph until its last block is full."""
    room = LANES * np.diff(block_ptr)
    place = np.arange(room.sum()) - np.repeat(LANES * block_ptr[:-1], room)
    count = np.repeat(n_edges, room)
    first = np.repeat(np.cumsum(n_edges) - n_edges, room)
    return edge[first + np.minimum(place, count - 1)], place >= count


def window_code(problem: Problem, topology: Topology, eval_gradient: bool) -> WindowCode | None:
    """Represent the edge kernel of a problem by windows; None where it has none."""
    source, found = problem.edge, find_reach(problem, topology)
    if found is None or not source.kernel.is_formula:
        return None
    check_sample(source)
    return WindowCode(source, source.labels.codes, *found, eval_gradient, problem.dtype)


@cache
def no_code() -> RowCode:
    """Return functions that do nothing: solvers with windows and without are compiled as one."""
    return RowCode(
        *(
            numba.cfunc(signature, cache=True)(_do_nothing)
            for signature in (FILL_BLOCK, FILL_ROW_GRADIENT)
        )
    )


def _do_nothing(features, i, lo, hi, theta, out):
    pass


def no_windows(dtype: np.dtype) -> Windows:
    """Windows of a solver that has none."""
    index, number = np.zeros(0, np.uint64), np.zeros(0)
    return Windows(
        block_ptr=index,
        n_edges=index,
        i=index,
        j=index,
        weight=number.astype(dtype),
        key=number,
        has_loop=np.zeros(0, bool),
        features=np.zeros((0, 0)),
        theta=number,
        reach=0.0,
    )


@numba.njit(**FLAGS)
def make_windowed(pairs, order, windows, code, n_theta, max_values):
    """Allocate scratch that is large enough for each strip of a list of pairs."""
    blocks = nodes = edges = most = ZERO
    begin = np.int64(0)
    while begin < len(pairs) and len(windows.key) > 0:
        end = strip_end(pairs, order, begin)
        g = pairs[begin, 0]
        n_blocks, total = windows.block_ptr[g + 1] - windows.block_ptr[g], ZERO
        for k in range(begin, end):
            h = pairs[k, 1]
            nodes = max(nodes, order.ptr[h + 1] - order.ptr[h])
            edges = max(edges, windows.n_edges[h])
            total += FOUR * n_blocks * windows.n_edges[h]
        blocks, most = max(blocks, np.uint64(end - begin) * n_blocks), max(most, total)
        begin = end
    # One block at least must find room, even if nothing is stored.
    n_values = max(min(np.int64(most), max_values), np.int64(FOUR * edges))
    dtype = windows.weight.dtype
    return Windowed(
        windows,
        code,
        n_values,
        np.empty(3, np.uint64),
        np.empty(blocks, np.uint64),
        np.empty(blocks, np.uint64),
        np.empty((nodes + THREE) * EIGHT, dtype),
        np.empty((nodes + THREE) * EIGHT, dtype),
        np.empty(FOUR * edges),
        np.empty((n_theta, edges)),
    )


@numba.njit(**FLAGS)
def fill_windows(g, columns, windowed, weights):
    """Find the windows of G in each graph along the columns; evaluate them, if there is room."""
    windows, here = windowed.edges, windowed.here
    here[0], here[1] = windows.block_ptr[g], windows.block_ptr[g + 1]
    total = slot = ZERO
    for h in columns:
        total += _find_windows(h, slot, windowed)
        slot += here[1] - here[0]
    here[2] = ONE if total <= windowed.n_values else ZERO
    at = slot = ZERO
    for _ in range(len(columns) if here[2] else 0):
        for block in range(here[0], here[1]):
            at = _fill_block(block, slot, at, windowed, weights)
            slot += ONE


@numba.njit(**FLAGS)
def _find_windows(h, slot, windowed):
    """Find the windows among the edges of one graph; returns how many values they hold."""
    windows, here = windowed.edges, windowed.here
    lo = hi = windows.block_ptr[h] * FOUR
    end = lo + windows.n_edges[h]
    key, reach, total = windows.key, windows.reach, ZERO
    for block in range(here[0], here[1]):
        e = block * FOUR
        while lo < end and key[lo] < key[e] - reach:
            lo += ONE
        while hi < end and key[hi] <= key[e + THREE] + reach:
            hi += ONE
        windowed.first[slot], windowed.last[slot] = lo, hi
        slot += ONE
        total += (hi - lo) * FOUR
    return total


@numba.njit(**FLAGS)
def _fill_block(block, slot, at, windowed, weights):
    """Write edge kernel times weights, of four edges of G with a window; returns where it ends."""
    windows, values = windowed.edges, windowed.values
    lo, hi, e = windowed.first[slot], windowed.last[slot], block * FOUR
    windowed.code.fill(windows.features, e, lo, hi, windows.theta, values)
    own = windows.weight
    for k in range(hi - lo):
        scale(weights, at + k * FOUR, values, k * FOUR, own, e, own[lo + k])
    return at + (hi - lo) * FOUR


@numba.njit(**FLAGS)
def push_windows(strip, lanes, work, p):
    """Add W p to ``work.y``, for the segments that still iterate."""
    windowed, here = work.windowed, work.windowed.here
    at = slot = ZERO
    for s in range(len(lanes.ptr) - 1):
        if lanes.ptr[s] == strip.width:
            break
        for block in range(here[0], here[1]):
            size = (windowed.last[slot] - windowed.first[slot]) * FOUR
            if work.active[s] and size > 0:
                if not here[2]:
                    at = ZERO
                    _fill_block(block, slot, at, windowed, work.weights)
                _push_block(block, slot, at, strip.width, lanes.ptr[s], lanes.ptr[s + 1], work, p)
            at += size
            slot += ONE


@numba.njit(**FLAGS)
def _push_block(block, slot, at, width, begin, end, work, p):
    """Add the products of four edges (i, j) of G: rows i get W' times rows j, and rows j rows i.

    The rows are turned, so that the four values of a node of G' stand side by side: those of rows
    i, then those of rows j.
    """
    windowed, weights, y = work.windowed, work.weights, work.y
    packed, product = windowed.packed, windowed.product
    i, j, e = windowed.edges.i, windowed.edges.j, block * FOUR
    i0, i1 = i[e] * width + begin, i[e + ONE] * width + begin
    i2, i3 = i[e + TWO] * width + begin, i[e + THREE] * width + begin
    j0, j1 = j[e] * width + begin, j[e + ONE] * width + begin
    j2, j3 = j[e + TWO] * width + begin, j[e + THREE] * width + begin
    for t in range(ZERO, end - begin, FOUR):
        collect(packed, t * EIGHT, EIGHT, p, i0 + t, i1 + t, i2 + t, i3 + t)
        collect(packed, t * EIGHT + FOUR, EIGHT, p, j0 + t, j1 + t, j2 + t, j3 + t)
    clear(ZERO, (end - begin + THREE) * EIGHT, product)
    for k in range(windowed.first[slot], windowed.last[slot]):
        a, b = i[k] * EIGHT, j[k] * EIGHT
        add_product(product, a, weights, at, packed, b + FOUR)
        add_product(product, a + FOUR, weights, at, packed, b)
        add_product(product, b, weights, at, packed, a + FOUR)
        add_product(product, b + FOUR, weights, at, packed, a)
        at += FOUR
    for t in range(ZERO, end - begin, FOUR):
        spread(product, t * EIGHT, EIGHT, y, i0 + t, i1 + t, i2 + t, i3 + t)
        spread(product, t * EIGHT + FOUR, EIGHT, y, j0 + t, j1 + t, j2 + t, j3 + t)


@numba.njit(**FLAGS)
def precondition_window_loops(strip, lanes, work):
    """Take pairs of self-loops, which lie on the diagonal of W, into the preconditioner."""
    windowed, inverse = work.windowed, work.inverse
    windows, here, slot = windowed.edges, windowed.here, ZERO
    for s in range(len(lanes.ptr) - 1):
        if lanes.ptr[s] == strip.width:
            break
        for e in range(here[0] * FOUR, here[1] * FOUR):
            if windows.i[e] == windows.j[e] and windows.weight[e] > 0:
                at = windows.i[e] * strip.width + lanes.ptr[s]
                _precondition_loop(e, slot + e // FOUR - here[0], windowed, inverse[at:])
        slot += here[1] - here[0]


@numba.njit(**FLAGS)
def _precondition_loop(e, slot, windowed, inverse):
    """Take one self-loop of G with those of G' into a row of the preconditioner."""
    windows, lo, hi = windowed.edges, windowed.first[slot], windowed.last[slot]
    lane = e % FOUR
    windowed.code.fill(windows.features, e - lane, lo, hi, windows.theta, windowed.values)
    for k in range(lo, hi):
        at = windows.i[k]
        if at == windows.j[k] and inverse[at] > 0:
            # Both weights are halves.
            w = 4 * windowed.values[(k - lo) * FOUR + lane] * windows.weight[e] * windows.weight[k]
            inverse[at] = 1 / (1 / inverse[at] - w)


@numba.njit(**FLAGS)
def window_slopes(strip, lanes, s, work, out):
    """Add sum z x A A' dk_e for each hyperparameter of the edge kernel, over segment s."""
    windowed, x, z = work.windowed, work.x, work.z
    windows, here = windowed.edges, windowed.here
    slot = np.uint64(s) * (here[1] - here[0])
    for e in range(here[0] * FOUR, here[1] * FOUR):
        lo, hi = (
            windowed.first[slot + e // FOUR - here[0]],
            windowed.last[slot + e // FOUR - here[0]],
        )
        windowed.code.fill_gradient(windows.features, e, lo, hi, windows.theta, windowed.slopes)
        i = windows.i[e] * strip.width + lanes.ptr[s]
        j = windows.j[e] * strip.width + lanes.ptr[s]
        for k in range(lo, hi):
            a, b = windows.i[k], windows.j[k]
            total = z[i + a] * x[j + b] + z[i + b] * x[j + a]
            total += z[j + a] * x[i + b] + z[j + b] * x[i + a]
            total *= windows.weight[e] * windows.weight[k]
            for h in range(len(out)):
                out[h] += total * windowed.slopes[h, k - lo]
