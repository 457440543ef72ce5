# SPDX-License-Identifier: BSD-3-Clause
"""Values, derivatives and node-by-node values of a list of pairs, compiled by numba.

For one pair, with x the solution of Z x = f f' and z that of Z z = p p' (Z is symmetric),

    K       = sum p p' x
    dK      = sum (dp p' + p dp') x + z . d(f f') - z . dZ x
    dZ      = d(D)/V - D/V^2 dV - A A' dk_e                                 (f = d q, D = d d')

so that all hyperparameters together cost one more solve with the same matrix. ``min_steps = 1``
takes the walks of length zero off: x becomes x - V q q' in K and in the first term, and its own
derivative is added.
"""

from __future__ import annotations

from typing import NamedTuple

import numba
import numpy as np

from sklearn_mgk.solver.pcg import (
    CONVERGED,
    FLAGS,
    NOT_FINITE,
    ONE,
    Pair,
    Work,
    solve_system,
)


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
def workspace(pairs, order, rows, columns, rank, sample):
    """Scratch that is large enough for each of the pairs."""
    size, width, weights, groups = 1, 1, 1, 1
    for k in range(len(pairs)):
        g, h = pairs[k, 0], pairs[k, 1]
        n, n2 = order.ptr[g + 1] - order.ptr[g], order.ptr[h + 1] - order.ptr[h]
        labels = rows.label_ptr[g + 1] - rows.label_ptr[g]
        slots = columns.ptr[h + 1] - columns.ptr[h]
        size, width = max(size, np.int64(n * n2)), max(width, np.int64(n2))
        weights = max(weights, np.int64(labels * slots), rank * np.int64(slots))
        last, first = rows.group_ptr[order.ptr[g + 1]], rows.group_ptr[order.ptr[g]]
        groups = max(groups, np.int64(last - first))
    t = sample.dtype
    return Work(
        np.empty(size, t),
        np.empty(size, t),
        np.empty(size, t),
        np.empty(size, t),
        np.empty(size, t),
        np.empty(size, t),
        np.empty(size, t),
        np.empty(size, t),
        np.empty(width, t),
        np.empty(weights, t),
        np.empty(size if rank > 0 else 0, t),
        np.empty((groups if rank > 0 else 0, rank), t),
    )


@numba.njit(**FLAGS)
def fill_diagonal(pair, first2, nodes, table, k, tiny, work):
    """D/V and its inverse for each product node; both 0 where V = 0."""
    for i in range(pair.n_rows):
        row = table.base[k] + nodes.label[pair.first + i] * table.stride[k]
        d = nodes.degree[pair.first + i]
        for t in range(pair.width):
            v = table.values[row + nodes.label[first2 + t]]
            dd = d * nodes.degree[first2 + t]
            at = i * pair.width + t
            inside = v > tiny
            work.diagonal[at] = dd / v if inside else 0
            work.inverse[at] = v / dd if inside else 0


@numba.njit(**FLAGS)
def fill_weights(g, pair, rows, columns, table, k, weights):
    """Edge kernel times weight, for each label of G and each slot of G'."""
    first = rows.label_ptr[g]
    for c in range(rows.label_ptr[g + 1] - first):
        row = table.base[k] + rows.label[first + c] * table.stride[k]
        at = c * pair.n_slots
        for s in range(pair.n_slots):
            a = pair.slot + s
            weights[at + s] = table.values[row + columns.label[a]] * columns.weight[a]


@numba.njit(**FLAGS)
def fill_factors(g, h, pair, rows, columns, table, work):
    """Factors of the groups of G, and of the slots of G' times their weight."""
    first_group = rows.group_ptr[pair.first]
    rank = work.factors.shape[1]
    for group in range(first_group, rows.group_ptr[pair.first + pair.n_rows]):
        edge = table.first_row[g] + rows.label[rows.label_ptr[g] + rows.group_label[group]]
        for r in range(rank):
            work.factors[group - first_group, r] = table.factors[edge, r]
    for r in range(rank):
        at = np.uint64(r) * pair.n_slots
        for s in range(pair.n_slots):
            a = pair.slot + s
            edge = table.first_row[h] + columns.label[a]
            work.weights[at + s] = table.factors[edge, r] * columns.weight[a]


@numba.njit(**FLAGS)
def slot_weight(group, s, pair, rows, work):
    """Edge kernel between a group and a slot, times the weight of the slot."""
    if len(work.factors) == 0:
        return work.weights[rows.group_label[group] * pair.n_slots + s]
    total = 0.0
    for r in range(work.factors.shape[1]):
        factor = work.factors[group - rows.group_ptr[pair.first], r]
        total += factor * work.weights[np.uint64(r) * pair.n_slots + s]
    return total


@numba.njit(**FLAGS)
def precondition_loops(pair, rows, columns, work):
    """Take self-loop pairs, which lie on the diagonal of W, into the preconditioner."""
    for j in range(pair.n_rows):
        for group in range(rows.group_ptr[pair.first + j], rows.group_ptr[pair.first + j + ONE]):
            for member in range(rows.member_ptr[group], rows.member_ptr[group + ONE]):
                if rows.member[member] != j:
                    continue
                for s in range(pair.n_slots):
                    target = columns.target[pair.slot + s]
                    if target == columns.source[pair.slot + s]:
                        at = j * pair.width + target
                        w = slot_weight(group, s, pair, rows, work)
                        full = 1 / work.inverse[at] if work.inverse[at] > 0 else 0
                        rest = full - rows.weight[member] * w
                        work.inverse[at] = 1 / rest if full > 0 else 0


@numba.njit(**FLAGS)
def outer(pair, first2, left, right, out):
    """Fill ``out`` with the products of a node quantity of G and one of G'."""
    for i in range(pair.n_rows):
        for t in range(pair.width):
            out[i * pair.width + t] = left[pair.first + i] * right[first2 + t]


@numba.njit(**FLAGS)
def node_slopes(pair, first2, nodes, table, k, min_steps, work, out):
    """Add D/V^2 z x dV for each hyperparameter of the node kernel."""
    for i in range(pair.n_rows):
        a = pair.first + i
        row = table.base[k] + nodes.label[a] * table.stride[k]
        for t in range(pair.width):
            at = i * pair.width + t
            if work.diagonal[at] == 0:
                continue
            cell = row + nodes.label[first2 + t]
            s = work.z[at] * work.x[at] * work.diagonal[at] / table.values[cell]
            if min_steps == 1:
                b = first2 + t
                s -= nodes.start[a] * nodes.start[b] * nodes.stop[a] * nodes.stop[b]
            for h in range(table.slopes.shape[1]):
                out[h] += s * table.slopes[cell, h]


@numba.njit(**FLAGS)
def edge_slopes(g, pair, rows, columns, table, k, work, out):
    """Add sum z x A A' dk_e for each hyperparameter of the edge kernel.

    The sums over product edges of one label and one slot come first (they take the place of
    ``weights``, which is no longer needed), then the derivatives of the kernel.
    """
    first = rows.label_ptr[g]
    n_labels = rows.label_ptr[g + 1] - first
    for at in range(n_labels * pair.n_slots):
        work.weights[at] = 0
    for j in range(pair.n_rows):
        source = j * pair.width
        for group in range(rows.group_ptr[pair.first + j], rows.group_ptr[pair.first + j + ONE]):
            for t in range(pair.width):
                work.line[t] = 0
            for member in range(rows.member_ptr[group], rows.member_ptr[group + ONE]):
                for t in range(pair.width):
                    z = work.z[rows.member[member] * pair.width + t]
                    work.line[t] += rows.weight[member] * z
            label = rows.group_label[group] * pair.n_slots
            for s in range(pair.n_slots):
                a = pair.slot + s
                work.weights[label + s] += (
                    work.line[columns.target[a]] * work.x[source + columns.source[a]]
                )
    for c in range(n_labels):
        row = table.base[k] + rows.label[first + c] * table.stride[k]
        for s in range(pair.n_slots):
            a = pair.slot + s
            total = work.weights[c * pair.n_slots + s] * columns.weight[a]
            for h in range(table.slopes.shape[1]):
                out[h] += total * table.slopes[row + columns.label[a], h]


@numba.njit(**FLAGS)
def stop_slope(pair, first2, nodes, min_steps, work):
    """Differentiate f f', D and q q' by the logarithm of the stopping probability."""
    total = 0.0
    for i in range(pair.n_rows):
        a = pair.first + i
        for t in range(pair.width):
            b, at = first2 + t, i * pair.width + t
            degree = nodes.degree_slope[a] + nodes.degree_slope[b]
            stop = nodes.stop_slope[a] + nodes.stop_slope[b]
            d, q = nodes.degree[a] * nodes.degree[b], nodes.stop[a] * nodes.stop[b]
            total += work.z[at] * (
                d * q * (degree + stop) - work.diagonal[at] * degree * work.x[at]
            )
            if min_steps == 1 and work.diagonal[at] > 0:
                v = d / work.diagonal[at]
                total -= nodes.start[a] * nodes.start[b] * v * q * stop
    return total


@numba.njit(**FLAGS)
def drop_first_step(pair, first2, nodes, epsilon, work):
    """Take off the walks of length zero: x becomes x - V q q', or 0 where only rounding is left."""
    for i in range(pair.n_rows):
        a = pair.first + i
        for t in range(pair.width):
            b, at = first2 + t, i * pair.width + t
            if work.diagonal[at] > 0:
                v = nodes.degree[a] * nodes.degree[b] / work.diagonal[at]
                first = v * nodes.stop[a] * nodes.stop[b]
                rest = work.x[at] - first
                work.x[at] = rest if rest > epsilon * first else 0


@numba.njit(**FLAGS)
def add_starts(pair, first2, nodes, work, out):
    """Weigh x with p p', add up; ``out`` takes the derivatives by log p of each category."""
    total = 0.0
    for i in range(pair.n_rows):
        a = pair.first + i
        row = 0.0
        for t in range(pair.width):
            b, at = first2 + t, i * pair.width + t
            value = nodes.start[a] * nodes.start[b] * work.x[at]
            row += value
            if len(out) > 0 and nodes.category[b] >= 0:
                out[nodes.category[b]] += value
        if len(out) > 0 and nodes.category[a] >= 0:
            out[nodes.category[a]] += row
        total += row
    return total


@numba.njit(**FLAGS)
def write_nodal(pair, first2, order, nodes, k, work, results):
    """Store p p' x by node, in the order in which the graphs came."""
    for i in range(pair.n_rows):
        a = pair.first + i
        row = results.nodal_base[k] + np.int64(order.local[a]) * results.row_stride[k]
        for t in range(pair.width):
            b = first2 + t
            value = nodes.start[a] * nodes.start[b] * work.x[i * pair.width + t]
            results.nodal[row + np.int64(order.local[b]) * results.column_stride[k]] = value


@numba.njit(**FLAGS)
def differentiate(k, g, pair, first2, graphs, tables, control, work, out):
    """Differentiate by the hyperparameters of node kernel, edge kernel and stopping."""
    _, nodes, rows, columns = graphs
    node_table, edge_table = tables
    out[:] = 0
    n_node, n_edge = node_table.slopes.shape[1], edge_table.slopes.shape[1]
    if n_node > 0:
        node_slopes(pair, first2, nodes, node_table, k, control.min_steps, work, out[:n_node])
    if n_edge > 0:
        slopes = out[n_node : n_node + n_edge]
        edge_slopes(g, pair, rows, columns, edge_table, k, work, slopes)
    if control.trainable_stop:
        out[-1] = stop_slope(pair, first2, nodes, control.min_steps, work)


@numba.njit(**FLAGS)
def solve_one(k, g, h, graphs, tables, control, work, results):
    """Solve pair k, graphs g (rows) and h (columns)."""
    order, nodes, rows, columns = graphs
    node_table, edge_table = tables
    first2 = order.ptr[h]
    pair = Pair(
        order.ptr[g],
        order.n_red[g],
        order.ptr[g + 1] - order.ptr[g],
        order.ptr[h + 1] - first2,
        columns.ptr[h],
        columns.ptr[h + 1] - columns.ptr[h],
    )
    fill_diagonal(pair, first2, nodes, node_table, k, control.tiny, work)
    if len(work.factors) > 0:
        fill_factors(g, h, pair, rows, columns, edge_table, work)
    else:
        fill_weights(g, pair, rows, columns, edge_table, k, work.weights)
    if rows.has_loop[g] and rows.has_loop[h]:
        precondition_loops(pair, rows, columns, work)
    outer(pair, first2, nodes.flow, nodes.flow, work.b)
    outcome, iterations = solve_system(
        pair, rows, columns, work, work.x, control.tol, control.max_iter
    )
    if control.eval_gradient:
        outer(pair, first2, nodes.start, nodes.start, work.b)
        second, more = solve_system(
            pair, rows, columns, work, work.z, control.tol, control.max_iter
        )
        outcome, iterations = max(outcome, second), iterations + more
        differentiate(k, g, pair, first2, graphs, tables, control, work, results.gradient[k])
    if control.min_steps == 1:
        drop_first_step(pair, first2, nodes, control.epsilon, work)
    n_kernels = node_table.slopes.shape[1] + edge_table.slopes.shape[1]
    starts = results.gradient[k, n_kernels : n_kernels + control.n_categories]
    results.values[k] = add_starts(pair, first2, nodes, work, starts)
    if len(results.nodal) > 0:
        write_nodal(pair, first2, order, nodes, k, work, results)
    if outcome == CONVERGED and not np.isfinite(results.values[k]):
        outcome = NOT_FINITE
    results.outcome[k] = outcome
    results.iterations[k] = iterations


@numba.njit(**FLAGS)
def solve_pairs(pairs, graphs, tables, control, results):
    """Solve a list of pairs in one thread, without the interpreter lock."""
    order, _, rows, columns = graphs
    rank = tables[1].factors.shape[1]
    work = workspace(pairs, order, rows, columns, rank, tables[0].values)
    for k in range(len(pairs)):
        solve_one(k, pairs[k, 0], pairs[k, 1], graphs, tables, control, work, results)
