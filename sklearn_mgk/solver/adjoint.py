# SPDX-License-Identifier: BSD-3-Clause
"""Derivatives of kernel values by all hyperparameters at once, compiled by numba.

With x the solution of Z x = f f' and z that of Z z = p p' (Z is symmetric),

    K       = sum p p' x
    dK      = sum (dp p' + p dp') x + z . d(f f') - z . dZ x
    dZ      = d(D)/V - D/V^2 dV - A A' dk_e                                 (f = d q, D = d d')

so that all hyperparameters together cost one more solve with the same matrix. ``min_steps = 1``
takes the walks of length zero off: x becomes x - V q q' in K and in the first term, and its own
derivative is added.
"""

from __future__ import annotations

import numba

from sklearn_mgk.solver.strips import FLAGS, N_PLANES, ONE, ZERO, clear
from sklearn_mgk.solver.windows import window_slopes


@numba.njit(**FLAGS)
def node_slopes(strip, lanes, s, nodes, table, k, min_steps, work, out):
    """Add D/V^2 z x dV for each hyperparameter of the node kernel, over segment s."""
    for i in range(strip.n_rows):
        a = strip.first + i
        row = table.base[k] + nodes.label[a] * table.stride[k]
        for t in range(lanes.ptr[s], lanes.ptr[s + 1]):
            at, b = i * strip.width + t, lanes.node[t]
            if work.diagonal[at] == 0:
                continue
            cell = row + nodes.label[b]
            change = work.z[at] * work.x[at] * work.diagonal[at] / table.values[cell]
            if min_steps == 1:
                change -= nodes.start[a] * nodes.start[b] * nodes.stop[a] * nodes.stop[b]
            for h in range(table.slopes.shape[1]):
                out[h] += change * table.slopes[cell, h]


@numba.njit(**FLAGS)
def sum_by_label(g, strip, rows, lanes, work):
    """Sum of z x A over the product edges of each label of G and each slot.

    The sums take the place of ``weights``, which is no longer needed.
    """
    width, line, sums = strip.width, work.line, work.weights
    clear(ZERO, (rows.label_ptr[g + 1] - rows.label_ptr[g]) * strip.n_slots, sums)
    for j in range(strip.n_rows):
        row = j * width
        for group in range(rows.group_ptr[strip.first + j], rows.group_ptr[strip.first + j + ONE]):
            clear(ZERO, width, line)
            for member in range(rows.member_ptr[group], rows.member_ptr[group + ONE]):
                target = rows.member[member] * width
                for t in range(width):
                    line[t] += rows.weight[member] * work.z[target + t]
            label = rows.group_label[group] * strip.n_slots
            for a in range(strip.n_slots):
                sums[label + a] += line[lanes.target[a]] * work.x[row + lanes.source[a]]


@numba.njit(**FLAGS)
def edge_slopes(g, h, strip, rows, columns, lanes, s, table, k, work, out):
    """Add sum z x A A' dk_e for each hyperparameter of the edge kernel, over segment s."""
    first, slot = rows.label_ptr[g], columns.ptr[h]
    n, width, lane = lanes.ptr[s + 1] - lanes.ptr[s], strip.width, lanes.ptr[s]
    for c in range(rows.label_ptr[g + 1] - first):
        cell = table.base[k] + rows.label[first + c] * table.stride[k]
        row = c * strip.n_slots
        for plane in range(N_PLANES):
            for t in range(n):
                a = slot + plane * n + t
                total = work.weights[row + plane * width + lane + t] * columns.weight[a]
                for p in range(table.slopes.shape[1]):
                    out[p] += total * table.slopes[cell + columns.label[a], p]
        a = slot + N_PLANES * n
        for at in range(lanes.rest[s], lanes.rest[s + 1]):
            total = work.weights[row + at] * columns.weight[a]
            for p in range(table.slopes.shape[1]):
                out[p] += total * table.slopes[cell + columns.label[a], p]
            a += ONE


@numba.njit(**FLAGS)
def stop_slope(strip, lanes, s, nodes, min_steps, work):
    """Differentiate f f', D and q q' by the logarithm of the stopping probability."""
    total = 0.0
    for i in range(strip.n_rows):
        a = strip.first + i
        for t in range(lanes.ptr[s], lanes.ptr[s + 1]):
            b, at = lanes.node[t], i * strip.width + t
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
def differentiate(pairs, begin, strip, graphs, tables, control, lanes, work, gradient):
    """Differentiate by the hyperparameters of node kernel, edge kernel and stopping.

    Those of the starting probabilities come with the value, see `pairs.add_starts`.
    """
    _, nodes, rows, columns, _ = graphs
    node_table, edge_table = tables
    n_node, n_edge = node_table.slopes.shape[1], edge_table.slopes.shape[1]
    g, has_windows = pairs[begin, 0], work.windowed.n_values > 0
    if n_edge > 0 and not has_windows:
        sum_by_label(g, strip, rows, lanes, work)
    for s in range(len(gradient)):
        k, out = begin + s, gradient[s]
        out[:] = 0
        node_slopes(strip, lanes, s, nodes, node_table, k, control.min_steps, work, out[:n_node])
        part = out[n_node : n_node + n_edge]
        if n_edge > 0 and has_windows:
            window_slopes(strip, lanes, s, work, part)
        elif n_edge > 0:
            edge_slopes(g, pairs[k, 1], strip, rows, columns, lanes, s, edge_table, k, work, part)
        if control.trainable_stop:
            out[-1] = stop_slope(strip, lanes, s, nodes, control.min_steps, work)
