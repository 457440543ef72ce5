# SPDX-License-Identifier: BSD-3-Clause
r"""Conjugate gradients on the pairs of a strip, compiled by numba.

The system of a pair is Z x = b with Z = diag(D/V) - W, D = d d'; x is a matrix with a row for each
node of G and a lane for each node of G', stored row after row. Rows are sorted by colour
(`layout`). Where G is bipartite, W has no entry between rows of one colour,

    Z = [ Z_r  -W_rb ]      and      (Z_r - W_rb Z_b^-1 W_br) x_r = b_r + W_rb Z_b^-1 b_b
        [ -W_br  Z_b ]               x_b = Z_b^-1 (b_b + W_br x_r),

with Z_r and Z_b diagonal. The reduced system costs the same product with W, has half the unknowns
and needs half the iterations [1]_. Otherwise all rows count as red and nothing is eliminated.

Product nodes with V = 0 have x = 0: their entry of the preconditioner is 0, so that no direction
ever reaches them.

References
----------
.. [1] Y. Saad, "Iterative Methods for Sparse Linear Systems", 2nd ed., SIAM, 2003, section 4.2 and
   chapter 14. https://doi.org/10.1137/1.9780898718003
"""

from __future__ import annotations

import numba
import numpy as np

from sklearn_mgk.solver.strips import FLAGS, N_PLANES, ONE, ZERO, add_segments, clear
from sklearn_mgk.solver.windows import push_windows

CONVERGED, STEP_LIMIT, BREAKDOWN, NOT_FINITE = range(4)


@numba.njit(**FLAGS)
def push(lo, hi, strip, rows, lanes, work, p):
    """Add to ``work.y`` the part of W p that comes from rows lo to hi of p."""
    if len(work.factors) > 0:
        push_factors(lo, hi, strip, rows, lanes, work, p)
    elif work.windowed.n_values > 0:
        push_windows(strip, lanes, work, p)
    else:
        push_values(lo, hi, strip, rows, lanes, work, p)


@numba.njit(**FLAGS)
def push_values(lo, hi, strip, rows, lanes, work, p):
    """W p group by group: one sparse product with a row of p, added to each member's row."""
    width = strip.width
    weights, y, line, lane = work.weights, work.y, work.line, lanes.source
    for j in range(lo, hi):
        row = j * width
        for group in range(rows.group_ptr[strip.first + j], rows.group_ptr[strip.first + j + ONE]):
            w = rows.group_label[group] * strip.n_slots
            for t in range(width):
                line[t] = (
                    weights[w + t] * p[row + lane[t]]
                    + weights[w + width + t] * p[row + lane[width + t]]
                )
            for a in range(N_PLANES * width, strip.n_slots):
                line[lanes.target[a]] += weights[w + a] * p[row + lane[a]]
            for member in range(rows.member_ptr[group], rows.member_ptr[group + ONE]):
                target = rows.member[member] * width
                weight = rows.weight[member]
                for t in range(width):
                    y[target + t] += weight * line[t]


@numba.njit(**FLAGS)
def push_factors(lo, hi, strip, rows, lanes, work, p):
    """W p = sum_r A_r p A'_r; factor r of the edge kernel weighs the entries of A_r."""
    y, image, width = work.y, work.image, strip.width
    first_group = rows.group_ptr[strip.first]
    for r in range(work.factors.shape[1]):
        clear(ZERO, strip.n_rows * width, image)
        for j in range(lo, hi):
            row = j * width
            for group in range(
                rows.group_ptr[strip.first + j], rows.group_ptr[strip.first + j + ONE]
            ):
                factor = work.factors[group - first_group, r]
                for member in range(rows.member_ptr[group], rows.member_ptr[group + ONE]):
                    target = rows.member[member] * width
                    weight = rows.weight[member] * factor
                    for t in range(width):
                        image[target + t] += weight * p[row + t]
        w = np.uint64(r) * strip.n_slots
        for i in range(strip.n_rows):
            row = i * width
            for a in range(strip.n_slots):
                y[row + lanes.target[a]] += work.weights[w + a] * image[row + lanes.source[a]]


@numba.njit(**FLAGS)
def multiply(strip, rows, lanes, work):
    """Y = (W_rr + W_rb Z_b^-1 W_br) p on the red rows; p on the black rows is overwritten."""
    p, y = work.p, work.y
    n = strip.n_red * strip.width
    if strip.n_red < strip.n_rows:
        end = strip.n_rows * strip.width
        clear(n, end, y)
        push(ZERO, strip.n_red, strip, rows, lanes, work, p)
        for t in range(n, end):
            p[t] = work.inverse[t] * y[t]
    clear(ZERO, n, y)
    # Bipartite: only black rows reach red ones. Otherwise all rows are red and push to all.
    lo = strip.n_red if strip.n_red < strip.n_rows else ZERO
    push(lo, strip.n_rows, strip, rows, lanes, work, p)


@numba.njit(**FLAGS)
def start(strip, rows, lanes, work, ends, x, tol):
    """Set x = 0, r = b_r + W_rb Z_b^-1 b_b, p = M^-1 r, and the goal of each segment."""
    b, p, r, width = work.b, work.p, work.r, strip.width
    n, end = strip.n_red * width, strip.n_rows * width
    sum_of_squares(strip.n_rows, width, b, work)
    add_segments(lanes, work.total, ends.goal)
    clear(ZERO, n, work.y)
    if n < end:
        for t in range(n, end):
            p[t] = work.inverse[t] * b[t]
        push(strip.n_red, strip.n_rows, strip, rows, lanes, work, p)
    for t in range(n):
        r[t] = b[t] + work.y[t]
        x[t] = 0
        p[t] = work.inverse[t] * r[t]
    sum_of_squares(strip.n_red, width, r, work)
    add_segments(lanes, work.total, ends.rz)
    for s in range(len(ends.rz)):
        ends.goal[s] *= tol * tol
        ends.active[s] = ends.rz[s] > ends.goal[s]
        ends.outcome[s] = CONVERGED
        ends.iterations[s] = 0


@numba.njit(**FLAGS)
def sum_of_squares(n_rows, width, r, work):
    """Squares in the norm of the preconditioner, added up over the rows of each lane."""
    total = work.total
    clear(ZERO, width, total)
    for i in range(n_rows):
        row = i * width
        for t in range(width):
            total[t] += r[row + t] * r[row + t] * work.inverse[row + t]


@numba.njit(**FLAGS)
def set_steps(lanes, work, ends, max_iter):
    """Step length of each segment from ``work.total`` = p.Zp by lane; some segments end here."""
    n_active = 0
    for s in range(len(ends.rz)):
        curvature = 0.0
        for t in range(lanes.ptr[s], lanes.ptr[s + 1]):
            curvature += work.total[t]
        alpha = work.x.dtype.type(0)
        if ends.active[s]:
            if ends.iterations[s] == max_iter:
                ends.outcome[s], ends.active[s] = STEP_LIMIT, False
            elif not curvature > 0:
                ends.outcome[s], ends.active[s] = BREAKDOWN, False
            else:
                alpha = work.x.dtype.type(ends.rz[s] / curvature)
                n_active += 1
        for t in range(lanes.ptr[s], lanes.ptr[s + 1]):
            work.alpha[t] = alpha
    return n_active


@numba.njit(**FLAGS)
def set_turns(lanes, work, ends):
    """Weight of the old direction in the new one, from ``work.total`` = r.M^-1 r by lane."""
    n_active = 0
    for s in range(len(ends.rz)):
        beta = work.x.dtype.type(0)
        if ends.active[s]:
            new = 0.0
            for t in range(lanes.ptr[s], lanes.ptr[s + 1]):
                new += work.total[t]
            beta = work.x.dtype.type(new / ends.rz[s])
            ends.rz[s] = new
            ends.iterations[s] += 1
            ends.active[s] = new > ends.goal[s]
            n_active += ends.active[s]
        for t in range(lanes.ptr[s], lanes.ptr[s + 1]):
            work.alpha[t] = beta
    return n_active


@numba.njit(**FLAGS)
def iterate(strip, rows, lanes, work, ends, x, max_iter):
    """Take steps of preconditioned conjugate gradients until each segment has ended."""
    p, y, r, total, width = work.p, work.y, work.r, work.total, strip.width
    alpha = work.alpha
    running = True
    while running:
        multiply(strip, rows, lanes, work)
        clear(ZERO, width, total)
        for i in range(strip.n_red):
            row = i * width
            for t in range(width):
                at = row + t
                y[at] = work.diagonal[at] * p[at] - y[at]
                total[t] += p[at] * y[at]
        if set_steps(lanes, work, ends, max_iter) == 0:
            break
        clear(ZERO, width, total)
        for i in range(strip.n_red):
            row = i * width
            for t in range(width):
                at = row + t
                x[at] += alpha[t] * p[at]
                residual = r[at] - alpha[t] * y[at]
                r[at] = residual
                total[t] += residual * residual * work.inverse[at]
        running = set_turns(lanes, work, ends) > 0
        for i in range(strip.n_red):
            row = i * width
            for t in range(width):
                at = row + t
                p[at] = work.inverse[at] * r[at] + alpha[t] * p[at]


@numba.njit(**FLAGS)
def fill_black(strip, rows, lanes, work, x):
    """Recover the eliminated rows, x_b = Z_b^-1 (b_b + W_br x_r)."""
    n, end = strip.n_red * strip.width, strip.n_rows * strip.width
    if n == end:
        return
    clear(n, end, work.y)
    push(ZERO, strip.n_red, strip, rows, lanes, work, x)
    for t in range(n, end):
        x[t] = work.inverse[t] * (work.b[t] + work.y[t])


@numba.njit(**FLAGS)
def solve_strip(strip, rows, lanes, work, ends, x, tol, max_iter):
    """Solve Z x = b (``work.b``) for each segment; how each ended stands in ``ends``."""
    start(strip, rows, lanes, work, ends, x, tol)
    if np.any(ends.active):
        iterate(strip, rows, lanes, work, ends, x, max_iter)
    fill_black(strip, rows, lanes, work, x)
    for s in range(len(ends.rz)):
        if not (np.isfinite(ends.rz[s]) and np.isfinite(ends.goal[s])):
            ends.outcome[s] = NOT_FINITE
