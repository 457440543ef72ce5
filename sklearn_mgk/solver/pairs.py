# SPDX-License-Identifier: BSD-3-Clause
"""Values and node-by-node values of a list of pairs, compiled by numba."""

from __future__ import annotations

from typing import NamedTuple

import numba
import numpy as np

from sklearn_mgk.solver.adjoint import differentiate
from sklearn_mgk.solver.pcg import CONVERGED, NOT_FINITE, solve_strip
from sklearn_mgk.solver.strips import (
    ENTRY,
    FLAGS,
    N_PLANES,
    ONE,
    Ends,
    load_strip,
    make_scratch,
    strip_end,
)
from sklearn_mgk.solver.windows import fill_windows, make_windowed, precondition_window_loops


class Nodes(NamedTuple):
    """Node quantities of all graphs in position order (see `layout.Order`)."""

    label: np.ndarray  # (n_nodes,) uint64
    degree: np.ndarray  # (n_nodes,) d
    flow: np.ndarray  # (n_nodes,) f = d q
    stop: np.ndarray  # (n_nodes,) q
    start: np.ndarray  # (n_nodes,) p
    degree_slope: np.ndarray  # (n_nodes,) derivative of d by log q, over d
    stop_slope: np.ndarray  # (n_nodes,) derivative of q by log q, over q
    category: np.ndarray  # (n_nodes,) int64: trainable starting probability, -1 for none


class Table(NamedTuple):
    """Values of a base kernel: labels (a, b) of pair k at ``base[k] + a stride[k] + b``."""

    values: np.ndarray  # flat
    slopes: np.ndarray  # (n_values, n_theta) derivatives by log hyperparameter; no rows if unused
    base: np.ndarray  # (n_pairs,) uint64
    stride: np.ndarray  # (n_pairs,) uint64
    factors: np.ndarray  # (n_rows, rank) factors at each row, in place of values; rank 0 for none
    first_row: np.ndarray  # (n_graphs + 1,) uint64: first row of each graph among the factors


class Control(NamedTuple):
    """Settings of a run."""

    tol: float
    max_iter: int
    min_steps: int
    tiny: float  # V at or below this counts as 0
    epsilon: float  # relative rounding error of a solution without any step
    eval_gradient: bool
    n_categories: int
    trainable_stop: bool
    max_values: int  # values of windows kept for a pair


class Results(NamedTuple):
    """Output of a run, written in place; row k belongs to pair k."""

    values: np.ndarray  # (n_pairs,) float64
    gradient: np.ndarray  # (n_pairs, n_theta) float64; no columns unless asked for
    outcome: np.ndarray  # (n_pairs,) uint8
    iterations: np.ndarray  # (n_pairs,) int32
    nodal: np.ndarray  # flat float64; empty unless asked for
    nodal_base: np.ndarray  # (n_pairs,) int64: place of nodes (0, 0)
    row_stride: np.ndarray  # (n_pairs,) int64
    column_stride: np.ndarray  # (n_pairs,) int64


@numba.njit(**FLAGS)
def fill_diagonal(strip, lanes, s, nodes, table, k, tiny, work):
    """D/V and its inverse for each product node of segment s; both 0 where V = 0."""
    for i in range(strip.n_rows):
        cell = table.base[k] + nodes.label[strip.first + i] * table.stride[k]
        d = nodes.degree[strip.first + i]
        for t in range(lanes.ptr[s], lanes.ptr[s + 1]):
            v = table.values[cell + nodes.label[lanes.node[t]]]
            dd = d * nodes.degree[lanes.node[t]]
            at = i * strip.width + t
            inside = v > tiny
            work.diagonal[at] = dd / v if inside else 0
            work.inverse[at] = v / dd if inside else 0


@numba.njit(**FLAGS)
def fill_weights(g, h, strip, lanes, s, rows, columns, table, k, weights):
    """Edge kernel times weight, for each label of G and each slot of segment s."""
    first, slot = rows.label_ptr[g], columns.ptr[h]
    n, width, lane = lanes.ptr[s + 1] - lanes.ptr[s], strip.width, lanes.ptr[s]
    for c in range(rows.label_ptr[g + 1] - first):
        cell = table.base[k] + rows.label[first + c] * table.stride[k]
        row = c * strip.n_slots
        for plane in range(N_PLANES):
            for t in range(n):
                a = slot + plane * n + t
                value = table.values[cell + columns.label[a]] * columns.weight[a]
                weights[row + plane * width + lane + t] = value
        a = slot + N_PLANES * n
        for at in range(lanes.rest[s], lanes.rest[s + 1]):
            weights[row + at] = table.values[cell + columns.label[a]] * columns.weight[a]
            a += ONE


@numba.njit(**FLAGS)
def fill_row_factors(g, strip, rows, table, factors):
    """Factors of the edge kernel for the groups of G."""
    first_group = rows.group_ptr[strip.first]
    for group in range(first_group, rows.group_ptr[strip.first + strip.n_rows]):
        edge = table.first_row[g] + rows.label[rows.label_ptr[g] + rows.group_label[group]]
        for r in range(factors.shape[1]):
            factors[group - first_group, r] = table.factors[edge, r]


@numba.njit(**FLAGS)
def fill_slot_factors(h, strip, lanes, s, columns, table, weights):
    """Factors of the edge kernel times weight, for the slots of segment s."""
    slot, first_row = columns.ptr[h], table.first_row[h]
    n, width, lane = lanes.ptr[s + 1] - lanes.ptr[s], strip.width, lanes.ptr[s]
    for r in range(table.factors.shape[1]):
        row = np.uint64(r) * strip.n_slots
        for plane in range(N_PLANES):
            for t in range(n):
                a = slot + plane * n + t
                value = table.factors[first_row + columns.label[a], r] * columns.weight[a]
                weights[row + plane * width + lane + t] = value
        a = slot + N_PLANES * n
        for at in range(lanes.rest[s], lanes.rest[s + 1]):
            value = table.factors[first_row + columns.label[a], r] * columns.weight[a]
            weights[row + at] = value
            a += ONE


@numba.njit(**FLAGS)
def slot_weight(group, a, strip, rows, work):
    """Edge kernel between a group and a slot, times the weight of the slot."""
    if len(work.factors) == 0:
        return work.weights[rows.group_label[group] * strip.n_slots + a]
    total = work.weights.dtype.type(0)
    for r in range(work.factors.shape[1]):
        factor = work.factors[group - rows.group_ptr[strip.first], r]
        total += factor * work.weights[np.uint64(r) * strip.n_slots + a]
    return total


@numba.njit(**FLAGS)
def precondition_loops(strip, rows, lanes, work):
    """Take pairs of self-loops, which lie on the diagonal of W, into the preconditioner."""
    for j in range(strip.n_rows):
        for group in range(rows.group_ptr[strip.first + j], rows.group_ptr[strip.first + j + ONE]):
            for member in range(rows.member_ptr[group], rows.member_ptr[group + ONE]):
                if rows.member[member] != j:
                    continue
                for a in range(strip.n_slots):
                    at = j * strip.width + lanes.target[a]
                    if lanes.target[a] != lanes.source[a] or work.inverse[at] == 0:
                        continue
                    w = rows.weight[member] * slot_weight(group, a, strip, rows, work)
                    work.inverse[at] = 1 / (1 / work.inverse[at] - w)


@numba.njit(**FLAGS)
def outer(strip, lanes, quantity, out):
    """Fill ``out`` with the products of a node quantity along the rows and along the lanes."""
    for i in range(strip.n_rows):
        for t in range(strip.width):
            at = i * strip.width + t
            out[at] = quantity[strip.first + i] * quantity[lanes.node[t]]


@numba.njit(**FLAGS)
def drop_first_step(strip, lanes, nodes, epsilon, work):
    """Take off the walks of length zero: x becomes x - V q q', or 0 where only rounding is left."""
    for i in range(strip.n_rows):
        a = strip.first + i
        for t in range(strip.width):
            b, at = lanes.node[t], i * strip.width + t
            if work.diagonal[at] > 0:
                v = nodes.degree[a] * nodes.degree[b] / work.diagonal[at]
                first = v * nodes.stop[a] * nodes.stop[b]
                rest = work.x[at] - first
                work.x[at] = rest if rest > epsilon * first else 0


@numba.njit(**FLAGS)
def add_starts(strip, lanes, s, nodes, work, out):
    """Weigh x with p p', add up; ``out`` takes the derivatives by log p of each category."""
    total = 0.0
    for i in range(strip.n_rows):
        a = strip.first + i
        row = 0.0
        for t in range(lanes.ptr[s], lanes.ptr[s + 1]):
            b = lanes.node[t]
            value = nodes.start[a] * nodes.start[b] * work.x[i * strip.width + t]
            row += value
            if len(out) > 0 and nodes.category[b] >= 0:
                out[nodes.category[b]] += value
        if len(out) > 0 and nodes.category[a] >= 0:
            out[nodes.category[a]] += row
        total += row
    return total


@numba.njit(**FLAGS)
def write_nodal(strip, lanes, s, order, nodes, k, work, results):
    """Store p p' x by node, in the order in which the graphs came."""
    for i in range(strip.n_rows):
        a = strip.first + i
        row = results.nodal_base[k] + np.int64(order.local[a]) * results.row_stride[k]
        for t in range(lanes.ptr[s], lanes.ptr[s + 1]):
            b = lanes.node[t]
            value = nodes.start[a] * nodes.start[b] * work.x[i * strip.width + t]
            results.nodal[row + np.int64(order.local[b]) * results.column_stride[k]] = value


@numba.njit(**FLAGS)
def fill_system(pairs, begin, strip, graphs, tables, control, lanes, work, n):
    """Evaluate the base kernels for the segments of a strip: diagonal and weights."""
    _, nodes, rows, columns, _ = graphs
    node_table, edge_table = tables
    factored, has_windows = len(work.factors) > 0, work.windowed.n_values > 0
    g, has_loops = pairs[begin, 0], False
    if has_windows:
        fill_windows(g, pairs[begin : begin + n, 1], work.windowed, work.weights)
    if factored:
        fill_row_factors(g, strip, rows, edge_table, work.factors)
    for s in range(n):
        k = begin + s
        h = pairs[k, 1]
        fill_diagonal(strip, lanes, s, nodes, node_table, k, control.tiny, work)
        if factored:
            fill_slot_factors(h, strip, lanes, s, columns, edge_table, work.weights)
        elif not has_windows:
            fill_weights(g, h, strip, lanes, s, rows, columns, edge_table, k, work.weights)
        has_loops |= rows.has_loop[h]
    if has_loops and rows.has_loop[g]:
        if has_windows:
            precondition_window_loops(strip, lanes, work)
        else:
            precondition_loops(strip, rows, lanes, work)


@numba.njit(**FLAGS)
def finish(begin, strip, graphs, tables, control, lanes, work, results, n):
    """Values of the segments of a strip from its solution."""
    order, nodes, _, _, _ = graphs
    n_kernels = tables[0].slopes.shape[1] + tables[1].slopes.shape[1]
    if control.min_steps == 1:
        drop_first_step(strip, lanes, nodes, control.epsilon, work)
    for s in range(n):
        k = begin + s
        starts = results.gradient[k, n_kernels : n_kernels + control.n_categories]
        results.values[k] = add_starts(strip, lanes, s, nodes, work, starts)
        if len(results.nodal) > 0:
            write_nodal(strip, lanes, s, order, nodes, k, work, results)
        if results.outcome[k] == CONVERGED and not np.isfinite(results.values[k]):
            results.outcome[k] = NOT_FINITE


@numba.njit(**FLAGS)
def run_strip(pairs, begin, end, graphs, tables, control, scratch, results):
    """Solve pairs begin to end, which share their row graph."""
    order, nodes, rows, columns, _ = graphs
    lanes, work, every = scratch
    n = end - begin
    strip = load_strip(pairs, begin, end, order, columns, lanes)
    fill_system(pairs, begin, strip, graphs, tables, control, lanes, work, n)
    ends = Ends(
        every.rz[:n], every.goal[:n], every.outcome[:n], every.iterations[:n], every.active[:n]
    )
    results.outcome[begin:end] = CONVERGED
    results.iterations[begin:end] = 0
    # One loop rather than two calls: numba would compile the solver twice.
    for adjoint in range(2 if control.eval_gradient else 1):
        outer(strip, lanes, nodes.start if adjoint else nodes.flow, work.b)
        x = work.z if adjoint else work.x
        solve_strip(strip, rows, lanes, work, ends, x, control.tol, control.max_iter)
        for s in range(n):
            k = begin + s
            results.outcome[k] = max(results.outcome[k], ends.outcome[s])
            results.iterations[k] += ends.iterations[s]
    if control.eval_gradient:
        gradient = results.gradient[begin:end]
        differentiate(pairs, begin, strip, graphs, tables, control, lanes, work, gradient)
    finish(begin, strip, graphs, tables, control, lanes, work, results, n)


@numba.njit(**ENTRY)
def solve_pairs(pairs, graphs, tables, code, control, results):
    """Solve pairs, sorted by row graph, in one thread and without the interpreter lock."""
    order, _, rows, columns, windows = graphs
    rank, n_theta = tables[1].factors.shape[1], tables[1].slopes.shape[1]
    windowed = make_windowed(pairs, order, windows, code, n_theta, control.max_values)
    scratch = make_scratch(pairs, order, rows, columns, rank, windowed, tables[0].values)
    begin = np.int64(0)  # a plain 0 would compile everything below for that number first
    while begin < len(pairs):
        end = strip_end(pairs, order, begin)
        run_strip(pairs, begin, end, graphs, tables, control, scratch, results)
        begin = end
