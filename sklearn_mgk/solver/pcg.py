# SPDX-License-Identifier: BSD-3-Clause
r"""Conjugate gradients on one pair of graphs, compiled by numba.

The system is Z x = b with Z = diag(D/V) - W, D = d d', b = f f'; x is a matrix with a row for each
node of G and a column for each node of G', stored row after row. Rows are sorted by colour
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

from typing import NamedTuple

import numba
import numpy as np

FLAGS = {
    "cache": True,
    "nogil": True,
    "error_model": "numpy",
    "fastmath": {"reassoc", "contract", "nsz"},
}
CONVERGED, STEP_LIMIT, BREAKDOWN, NOT_FINITE = range(4)
ONE, TWO = np.uint64(1), np.uint64(2)  # an unsigned index plus a plain 1 would become a float


class Pair(NamedTuple):
    """Extent of one pair (all uint64)."""

    first: int  # first position of G in the node arrays
    n_red: int  # rows that are unknowns; the rest are eliminated
    n_rows: int
    width: int  # nodes of G'
    slot: int  # first slot of G' in the columns form
    n_slots: int


class Work(NamedTuple):
    """Scratch of one thread."""

    # Each of shape (rows x width,) unless said otherwise.
    x: np.ndarray  # solution
    z: np.ndarray  # adjoint solution
    r: np.ndarray  # residual
    p: np.ndarray  # direction
    y: np.ndarray  # Z p, or W p on the way to it
    diagonal: np.ndarray  # D/V, or 0 where V = 0
    inverse: np.ndarray  # Jacobi preconditioner, or 0 where V = 0
    b: np.ndarray  # right-hand side
    line: np.ndarray  # (width,) one row of a product
    weights: np.ndarray  # (labels of G or rank, slots of G') edge kernel or factor times weight
    image: np.ndarray  # (rows x width,) product with one factor; empty without factors
    factors: np.ndarray  # (groups of G, rank) factors of the edge kernel; empty without factors


@numba.njit(**FLAGS)
def push(lo, hi, pair, rows, columns, work, p):
    """Add to ``work.y`` the part of W p that comes from rows lo to hi of p."""
    if len(work.factors) > 0:
        push_factors(lo, hi, pair, rows, columns, work, p)
    else:
        push_values(lo, hi, pair, rows, columns, work.weights, p, work.y, work.line)


@numba.njit(**FLAGS)
def push_values(lo, hi, pair, rows, columns, weights, p, y, line):
    """W p group by group: one sparse product with a row of p, added to each member's row."""
    for j in range(lo, hi):
        source = j * pair.width
        for group in range(rows.group_ptr[pair.first + j], rows.group_ptr[pair.first + j + ONE]):
            label = rows.group_label[group] * pair.n_slots
            for t in range(pair.width):
                k = TWO * t
                a = pair.slot + k
                line[t] = (
                    weights[label + k] * p[source + columns.source[a]]
                    + weights[label + k + ONE] * p[source + columns.source[a + ONE]]
                )
            for k in range(TWO * pair.width, pair.n_slots):
                a = pair.slot + k
                line[columns.target[a]] += weights[label + k] * p[source + columns.source[a]]
            for member in range(rows.member_ptr[group], rows.member_ptr[group + ONE]):
                target = rows.member[member] * pair.width
                weight = rows.weight[member]
                for t in range(pair.width):
                    y[target + t] += weight * line[t]


@numba.njit(**FLAGS)
def push_factors(lo, hi, pair, rows, columns, work, p):
    """W p = sum_r A_r p A'_r; factor r of the edge kernel weighs the entries of A_r."""
    y, image = work.y, work.image
    first_group = rows.group_ptr[pair.first]
    for r in range(work.factors.shape[1]):
        clear(np.uint64(0), pair.n_rows * pair.width, image)
        for j in range(lo, hi):
            source = j * pair.width
            for group in range(
                rows.group_ptr[pair.first + j], rows.group_ptr[pair.first + j + ONE]
            ):
                factor = work.factors[group - first_group, r]
                for member in range(rows.member_ptr[group], rows.member_ptr[group + ONE]):
                    target = rows.member[member] * pair.width
                    weight = rows.weight[member] * factor
                    for t in range(pair.width):
                        image[target + t] += weight * p[source + t]
        label = np.uint64(r) * pair.n_slots
        for i in range(pair.n_rows):
            at = i * pair.width
            for k in range(pair.n_slots):
                a = pair.slot + k
                y[at + columns.target[a]] += work.weights[label + k] * image[at + columns.source[a]]


@numba.njit(**FLAGS)
def clear(lo, hi, y):
    """Set y to zero between two places."""
    for t in range(lo, hi):
        y[t] = 0


@numba.njit(**FLAGS)
def apply_system(pair, rows, columns, work):
    """Y = (Z_r - W_rb Z_b^-1 W_br) p on the red rows; p on the black rows is overwritten."""
    p, y = work.p, work.y
    n = pair.n_red * pair.width
    if pair.n_red < pair.n_rows:
        end = pair.n_rows * pair.width
        clear(n, end, y)
        push(np.uint64(0), pair.n_red, pair, rows, columns, work, p)
        for t in range(n, end):
            p[t] = work.inverse[t] * y[t]
    clear(np.uint64(0), n, y)
    # Bipartite: only black rows reach red ones. Otherwise all rows are red and push to all.
    lo = pair.n_red if pair.n_red < pair.n_rows else np.uint64(0)
    push(lo, pair.n_rows, pair, rows, columns, work, p)
    for t in range(n):
        y[t] = work.diagonal[t] * p[t] - y[t]


@numba.njit(**FLAGS)
def start_residual(pair, rows, columns, work):
    """R = b_r + W_rb Z_b^-1 b_b; returns the squared norm of b in the preconditioner's norm."""
    b, p, y = work.b, work.p, work.y
    n, end = pair.n_red * pair.width, pair.n_rows * pair.width
    norm = 0.0
    for t in range(end):
        norm += b[t] * b[t] * work.inverse[t]
    for t in range(n):
        work.r[t] = b[t]
    if n < end:
        for t in range(n, end):
            p[t] = work.inverse[t] * b[t]
        clear(np.uint64(0), n, y)
        push(pair.n_red, pair.n_rows, pair, rows, columns, work, p)
        for t in range(n):
            work.r[t] += y[t]
    return norm


@numba.njit(**FLAGS)
def fill_black(pair, rows, columns, work, x):
    """Recover the eliminated rows, x_b = Z_b^-1 (b_b + W_br x_r)."""
    n, end = pair.n_red * pair.width, pair.n_rows * pair.width
    if n == end:
        return
    y = work.y
    clear(n, end, y)
    push(np.uint64(0), pair.n_red, pair, rows, columns, work, x)
    for t in range(n, end):
        x[t] = work.inverse[t] * (work.b[t] + y[t])


@numba.njit(**FLAGS)
def step(n, work, x, rz):
    """One step of preconditioned conjugate gradients, given y = Z p and rz = r.M^-1 r.

    Returns the new rz, or -1 where p.Zp is not positive.
    """
    p, y, r, inverse = work.p, work.y, work.r, work.inverse
    curvature = 0.0
    for t in range(n):
        curvature += p[t] * y[t]
    if not curvature > 0:
        return -1.0
    alpha = x.dtype.type(rz / curvature)
    new = 0.0
    for t in range(n):
        x[t] += alpha * p[t]
        residual = r[t] - alpha * y[t]
        r[t] = residual
        new += residual * residual * inverse[t]
    beta = x.dtype.type(new / rz)
    for t in range(n):
        p[t] = inverse[t] * r[t] + beta * p[t]
    return new


@numba.njit(**FLAGS)
def solve_system(pair, rows, columns, work, x, tol, max_iter):
    """Solve Z x = b (``work.b``); returns (outcome, iterations)."""
    n = pair.n_red * pair.width
    target = start_residual(pair, rows, columns, work) * tol * tol
    rz = 0.0
    for t in range(n):
        x[t] = 0
        work.p[t] = work.inverse[t] * work.r[t]
        rz += work.p[t] * work.r[t]
    outcome, iterations = CONVERGED, 0
    while rz > target:
        if iterations == max_iter:
            outcome = STEP_LIMIT
            break
        apply_system(pair, rows, columns, work)
        new = step(n, work, x, rz)
        if new < 0:
            outcome = BREAKDOWN
            break
        rz = new
        iterations += 1
    if not np.isfinite(rz) or not np.isfinite(target):
        outcome = NOT_FINITE
    fill_black(pair, rows, columns, work, x)
    return outcome, iterations
