# SPDX-License-Identifier: BSD-3-Clause
"""From pairs of graphs to matrices: each distinct pair solved once, then laid out.

graphs -> distinct graphs -> pairs not solved before -> backend -> matrix -> normalisation
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Hashable
from dataclasses import dataclass, replace
from itertools import pairwise
from types import ModuleType
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.exceptions import ConvergenceWarning
from tqdm.auto import tqdm

from sklearn_mgk import cache
from sklearn_mgk.blocks import Block, Matrix, Side, cut
from sklearn_mgk.device import to_host
from sklearn_mgk.solver.problem import REMEDY, NodalTarget, Outcome, Solution

FAILURES = {
    Outcome.NOT_FINITE: "is not finite",
    Outcome.BREAKDOWN: "could not be computed",
}
"""Outcomes that leave no value, and how a message puts it."""

CHUNK_BYTES = {"numpy": 8e6, "cupy": 5e9}
"""Bound on the memory of the pairs in flight [bytes]: their numbers, values and derivatives.

It goes by the module of the arrays: a device takes millions of pairs at a time, and graphs that
share a strip there are the fewer the more blocks there are.
"""


@dataclass(frozen=True)
class Plan:
    """How pairs are to be solved.

    Attributes
    ----------
    solve : callable
        Prepared backend, ``solve(pairs, nodal=None) -> Solution``.
    xp : module
        NumPy or CuPy, whose arrays the backend works on: `gram` makes pairs there, and puts values
        in their places.
    room : float
        Bytes that a matrix may take there; a larger one is filled in on the host.
    n_theta : int
        Derivatives to return with each value, 0 for none. The solver gives those of the raw values;
        later ones, which normalisation brings in, are left at 0.
    key : hashable or None
        Settings under which values are kept; None keeps nothing.
    cache_limit : float
        Memory for kept values [bytes].
    verbose : bool
        Whether to show progress.
    """

    solve: Callable[..., Solution]
    xp: ModuleType
    room: float
    n_theta: int
    key: Hashable | None
    cache_limit: float
    verbose: bool


def gram(plan: Plan, rows: Side, columns: Side | None = None) -> tuple[NDArray, NDArray]:
    """Raw kernel values between two sides, and their derivatives.

    Parameters
    ----------
    plan : Plan
        How to solve.
    rows, columns : Side
        Without columns the matrix is that of the rows with themselves, exactly symmetric.

    Returns
    -------
    values : ndarray of shape (n_rows, n_columns), float64
        Kernel values.
    gradient : ndarray of shape (n_rows, n_columns, n_theta), float64
        Derivatives by the logarithms of the free hyperparameters.
    """
    symmetric = columns is None
    columns = rows if symmetric else columns
    shape = (len(rows.graphs), len(columns.graphs))
    blocks = cut(rows, columns, symmetric, _chunk(plan))
    blocks[:1] = [_recall(plan, block) for block in blocks[:1]]
    # What is known lies on the host, and need not go to the device and back.
    xp = plan.xp if any(block.n_unknown for block in blocks[:1]) else np
    values = Matrix.of(xp, plan.room, shape)
    gradient = Matrix.of(xp, plan.room, (*shape, plan.n_theta))
    report = _Report(rows, columns)
    _each_block(
        plan,
        blocks,
        lambda block: _recall(plan, block),
        lambda block: _fill(plan, block, report, values, gradient),
    )
    report.close()
    for matrix in (values, gradient):
        matrix.copy_duplicates(rows, columns)
    return to_host(values.array), to_host(gradient.array)


def _chunk(plan: Plan) -> int:
    """Pairs in flight."""
    n_bytes = min(CHUNK_BYTES[plan.xp.__name__], plan.room)
    return int(n_bytes / (64 + 24 * plan.n_theta))


def _recall(plan: Plan, block: Block) -> Block:
    """Look up what is known of a block, unless that has been done."""
    if plan.n_theta or plan.key is None or block.known is not None:
        return block
    return replace(block, known=cache.lookup(plan.key, *block.prints))


def _fill(plan: Plan, block: Block, report: _Report, values: Matrix, gradient: Matrix) -> None:
    """Fill in a block of the matrices; solves what is not known."""
    if block.n_unknown == 0:
        block.write(block.known, values)
        return
    xp, cells = plan.xp, block.cells(plan.xp)
    solution = plan.solve(block.graphs(xp, cells))
    found = block.lay_out(xp, cells, solution.values)
    if solution.gradient is not None:
        slopes = block.lay_out(xp, cells, solution.gradient)
        block.write(slopes, gradient.first(slopes.shape[2]))
    unsure = report.add(solution, cells, (block.lo, block.left))
    block.write(found, values)
    if plan.key is not None:
        known = block.read(values, unsure)
        graphs = list(dict.fromkeys([*block.rows.prints, *block.columns.prints]))
        cache.store(plan.key, graphs, block.prints, known, plan.cache_limit)


def diagonal(plan: Plan, side: Side) -> tuple[NDArray, NDArray]:
    """Raw self-similarity of each graph, shape (n,), and its derivatives, shape (n, n_theta)."""
    n = len(side.first)
    values, gradient = np.empty(n), np.zeros((n, plan.n_theta))
    todo = np.arange(n)
    if plan.n_theta == 0 and plan.key is not None:
        known = cache.lookup_diagonal(plan.key, side.prints)
        if known is not None:
            values[:] = known
            todo = np.flatnonzero(np.isnan(known))
    if len(todo):
        report, graphs = _Report(side, side), side.representatives[todo]
        with _progress(plan, len(todo)) as bar:
            solution = plan.solve(np.stack([graphs, graphs], axis=1))
            bar.update(len(todo))
        unsure = report.add(solution, (todo, todo))
        values[todo] = solution.values
        if solution.gradient is not None:
            gradient[todo, : solution.gradient.shape[1]] = solution.gradient
        if plan.key is not None:
            known = values.copy()
            known[unsure[:, 0]] = np.nan
            cache.store_diagonal(plan.key, side.prints, known, plan.cache_limit)
        report.close()
    return values[side.inverse], gradient[side.inverse]


def nodal(plan: Plan, sizes: NDArray, rows: Side, columns: Side | None = None) -> NDArray:
    """Kernel values node by node, one block for each pair of graphs.

    Parameters
    ----------
    plan : Plan
        How to solve.
    sizes : ndarray of shape (n_graphs,)
        Nodes of each graph of the batch.
    rows, columns : Side
        As for `gram`, but made by `Side.of_all`: every graph is solved, duplicates too.

    Returns
    -------
    ndarray of shape (nodes of rows, nodes of columns), float64
        ``p_i p_i2 x_(i i2)``.
    """
    symmetric = columns is None
    columns = rows if symmetric else columns
    ptr = [np.concatenate([[0], np.cumsum(sizes[side.graphs])]) for side in (rows, columns)]
    whole = Matrix.of(plan.xp, plan.room, (ptr[0][-1], ptr[1][-1]))
    n_pairs = _chunk(plan)
    if whole.xp is not plan.xp:  # blocks go there one by one
        area = np.prod([np.diff(side).mean() for side in ptr])
        n_pairs = int(min(n_pairs, plan.room / (16 * area)))
    report, blocks = _Report(rows, columns), cut(rows, columns, symmetric, n_pairs)
    _each_block(
        plan,
        blocks,
        lambda block: block,
        lambda block: _fill_nodal(plan, block, report, whole, ptr),
    )
    report.close()
    if symmetric:
        _mirror_nodal(whole.array, ptr[0])
    return to_host(whole.array)


def _fill_nodal(
    plan: Plan, block: Block, report: _Report, whole: Matrix, ptr: list[NDArray]
) -> None:
    """Fill in a block of the matrix by node, in place or where the backend works."""
    xp, cells = plan.xp, block.cells(plan.xp)
    in_place = whole.xp is xp
    first, last = (ptr[0][block.lo], ptr[1][block.left]), (ptr[0][block.hi], ptr[1][-1])
    shape = tuple(int(hi - lo) for lo, hi in zip(first, last, strict=True))
    matrix = whole.array if in_place else xp.zeros(shape)
    offset = (0, 0) if in_place else first
    starts = ptr[0][block.lo :] - offset[0], ptr[1][block.left :] - offset[1]
    places = (xp.asarray(side)[at] for side, at in zip(starts, cells, strict=True))
    solution = plan.solve(block.graphs(xp, cells), NodalTarget(matrix, *places))
    report.add(solution, cells, (block.lo, block.left))
    if not in_place:
        whole.write(matrix, slice(first[0], last[0]), slice(first[1], last[1]))


def _mirror_nodal(matrix: Any, ptr: NDArray) -> None:
    """Make a matrix by node exactly symmetric from its blocks above and on the diagonal."""
    for lo, hi in pairwise(ptr.tolist()):
        matrix[hi:, lo:hi] = matrix[lo:hi, hi:].T
        own = matrix[lo:hi, lo:hi]
        own[:] = (own + own.T) / 2


def _each_block(plan: Plan, blocks: list[Block], recall: Callable, solve: Callable) -> None:
    """Solve block after block; one for which memory does not suffice is cut in two."""
    waiting = blocks[::-1]
    total = sum(recall(block).n_unknown for block in blocks) if plan.verbose else 0
    with _progress(plan, total) as bar:
        while waiting:
            block = recall(waiting.pop())
            n_unknown = block.n_unknown
            try:
                solve(block)
            except MemoryError:
                if len(block.halves()) == 1:
                    raise
                waiting += block.halves()[::-1]
            else:
                bar.update(n_unknown)


def _progress(plan: Plan, total: int) -> tqdm:
    return tqdm(total=total, unit="pair", unit_scale=True, disable=not plan.verbose, leave=False)


class _Report:
    """Raises for pairs without a usable value; in the end warns of those that did not converge."""

    def __init__(self, rows: Side, columns: Side):
        self.rows, self.columns = rows, columns
        self.n_pairs = self.n_unconverged = 0
        self.first: list[str] = []

    def add(self, solution: Solution, cells: tuple, offset: tuple[int, int] = (0, 0)) -> NDArray:
        """Look at outcomes, which may lie on the device as cells do; only bad ones are fetched.

        Parameters
        ----------
        solution : Solution
            What the backend found.
        cells : pair of arrays of shape (n_pairs,)
            Distinct graphs of each pair, counted from the offset.
        offset : pair of int
            First row and column.

        Returns
        -------
        ndarray of shape (n, 2), int64
            The cells that did not converge.
        """
        self.n_pairs += len(solution.outcome)
        (bad,) = (solution.outcome != int(Outcome.CONVERGED)).nonzero()  # CuPy knows no enums
        if len(bad) == 0:
            return np.empty((0, 2), np.int64)
        outcome = to_host(solution.outcome[bad])
        found = np.stack([to_host(cell[bad]) for cell in cells], axis=1)
        for failure, what in FAILURES.items():
            failed = found[outcome == failure] + offset
            if len(failed):
                raise FloatingPointError(
                    f"the kernel value of {len(failed)} pairs {what}, the first: "
                    f"{self._names(failed)}. What helps: {REMEDY[failure]}."
                )
        self.n_unconverged += len(found)
        self.first = self.first or [self._names(found + offset)]
        return found

    def close(self) -> None:
        if self.n_unconverged:
            warnings.warn(
                f"{self.n_unconverged} of {self.n_pairs} pairs did not converge within max_iter, "
                f"the first: {self.first[0]}. What helps: {REMEDY[Outcome.STEP_LIMIT]}.",
                ConvergenceWarning,
                stacklevel=2,
            )

    def _names(self, pairs: NDArray) -> str:
        rows, columns = self.rows, self.columns
        return ", ".join(
            f"({rows.name}[{rows.first[i]}], {columns.name}[{columns.first[j]}])"
            for i, j in pairs[:3]
        )
