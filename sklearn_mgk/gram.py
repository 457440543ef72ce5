# SPDX-License-Identifier: BSD-3-Clause
"""From pairs of graphs to matrices: each distinct pair solved once, then laid out.

graphs -> distinct graphs -> pairs not solved before -> backend -> matrix -> normalisation
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Hashable, Iterator
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray
from sklearn.exceptions import ConvergenceWarning
from tqdm.auto import tqdm

from sklearn_mgk import cache
from sklearn_mgk.identity import unique
from sklearn_mgk.solver.problem import REMEDY, NodalTarget, Outcome, Solution

FAILURES = {
    Outcome.NOT_FINITE: "is not finite",
    Outcome.BREAKDOWN: "could not be computed",
}
"""Outcomes that leave no value, and how a message puts it."""

CHUNK_BYTES = 8e6
"""Bound on the memory of the pairs in flight [bytes]: their numbers, values and derivatives."""


@dataclass(frozen=True)
class Side:
    """The graphs along one side of a matrix.

    Attributes
    ----------
    graphs : ndarray of shape (n,), int64
        Graph numbers in the batch of the problem.
    first : ndarray of shape (n_unique,), int64
        Places along the side where each distinct graph comes first.
    inverse : ndarray of shape (n,), int64
        Number of the distinct graph at each place.
    prints : list of bytes
        Fingerprints of the distinct graphs.
    name : str
        What the graphs are called in messages, such as ``"X"``.
    """

    graphs: NDArray
    first: NDArray
    inverse: NDArray
    prints: list[bytes]
    name: str

    @classmethod
    def of(cls, graphs: NDArray, prints: list[bytes], name: str) -> Side:
        """Find the distinct graphs; ``prints`` are their fingerprints."""
        first, inverse = unique(prints)
        return cls(graphs, first, inverse, [prints[k] for k in first], name)

    @classmethod
    def of_all(cls, graphs: NDArray, name: str) -> Side:
        """Take every graph as distinct."""
        places = np.arange(len(graphs))
        return cls(graphs, places, places, [], name)

    @property
    def representatives(self) -> NDArray:
        """Graph number of each distinct graph."""
        return self.graphs[self.first]

    @property
    def all_distinct(self) -> bool:
        """Whether no graph comes twice."""
        return len(self.first) == len(self.graphs)


@dataclass(frozen=True)
class Plan:
    """How pairs are to be solved.

    Attributes
    ----------
    solve : callable
        Prepared backend, ``solve(pairs, nodal=None) -> Solution``.
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
    values, gradient = np.empty(shape), np.zeros((*shape, plan.n_theta))

    def recall(i: NDArray, j: NDArray) -> NDArray | None:
        """Fill in what is known between some rows and columns; returns it, NaN where unknown.

        What is written as NaN is solved next.
        """
        if plan.n_theta or plan.key is None:
            return None
        prints = [rows.prints[k] for k in i], [columns.prints[k] for k in j]
        known = cache.lookup(plan.key, *prints)
        if known is not None:
            values[np.ix_(rows.first[i], columns.first[j])] = known
            if symmetric:
                values[np.ix_(columns.first[j], rows.first[i])] = known.T
        return known

    def chunks() -> Iterator[NDArray]:
        return _pairs_of_matrix(rows, columns, symmetric, recall, plan.n_theta)

    total = sum(map(len, chunks())) if plan.verbose else 0
    for pairs, solution in _solve(plan, rows, columns, chunks(), total):
        i, j = rows.first[pairs[:, 0]], columns.first[pairs[:, 1]]
        _set(values, i, j, solution.values, symmetric)
        if solution.gradient is not None:
            raw = gradient[:, :, : solution.gradient.shape[1]]
            _set(raw, i, j, solution.gradient, symmetric)
    for matrix in (values, gradient):
        _copy_duplicates(matrix, rows, columns)
    return values, gradient


def _set(matrix: NDArray, i: NDArray, j: NDArray, values: NDArray, symmetric: bool) -> None:
    matrix[i, j] = values
    if symmetric:
        matrix[j, i] = values


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
    chunks = iter([np.stack([todo, todo], axis=1)])
    for pairs, solution in _solve(plan, side, side, chunks, len(todo)):
        values[pairs[:, 0]] = solution.values
        if solution.gradient is not None:
            gradient[pairs[:, 0], : solution.gradient.shape[1]] = solution.gradient
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
    row_ptr, column_ptr = (
        np.concatenate([[0], np.cumsum(sizes[side.graphs])]) for side in (rows, columns)
    )
    matrix = np.empty((row_ptr[-1], column_ptr[-1]))

    def solve(pairs):
        target = NodalTarget(matrix, row_ptr[pairs[:, 0]], column_ptr[pairs[:, 1]])
        graphs = np.stack([rows.graphs[pairs[:, 0]], columns.graphs[pairs[:, 1]]], axis=1)
        return plan.solve(graphs, target)

    report = _Report(rows, columns)
    with _progress(plan, _count(rows, columns, symmetric)) as bar:
        for pairs in _pairs_of_matrix(rows, columns, symmetric, lambda i, j: None, 0):
            report.add(solve(pairs), pairs)
            bar.update(len(pairs))
    report.close()
    if symmetric:
        for lo, hi in pairwise(row_ptr):
            matrix[hi:, lo:hi] = matrix[lo:hi, hi:].T
            own = matrix[lo:hi, lo:hi]
            own[:] = (own + own.T) / 2
    return matrix


def _count(rows, columns, symmetric: bool) -> int:
    n, m = len(rows.first), len(columns.first)
    return n * (n + 1) // 2 if symmetric else n * m


def _pairs_of_matrix(
    rows: Side, columns: Side, symmetric: bool, recall: Callable, n_theta: int
) -> Iterator[NDArray]:
    """Pairs of distinct graphs that ``recall`` does not know, in chunks of whole rows."""
    n, m = len(rows.first), len(columns.first)
    most = max(1, int(CHUNK_BYTES / (64 + 24 * n_theta)) // m)
    for lo in range(0, n, most):
        i, j = np.arange(lo, min(lo + most, n)), np.arange(lo if symmetric else 0, m)
        known = recall(i, j)
        wanted = np.ones((len(i), len(j)), bool) if known is None else np.isnan(known)
        if not wanted.any():
            continue
        if symmetric:
            wanted &= j >= i[:, None]
        row, column = np.nonzero(wanted)
        if len(row):
            yield np.stack([i[row], j[column]], axis=1)


def _solve(
    plan: Plan, rows: Side, columns: Side, chunks: Iterator[NDArray], total: int
) -> Iterator[tuple[NDArray, Solution]]:
    """Solve chunks of pairs, keep their values, show progress."""
    report = _Report(rows, columns)
    with _progress(plan, total) as bar:
        for pairs in chunks:
            graphs = (rows.representatives[pairs[:, 0]], columns.representatives[pairs[:, 1]])
            solution = plan.solve(np.stack(graphs, axis=1))
            report.add(solution, pairs)
            if plan.key is not None:
                converged = solution.outcome == Outcome.CONVERGED
                cache.store(
                    plan.key,
                    (rows.prints, columns.prints),
                    pairs[converged],
                    solution.values[converged],
                    plan.cache_limit,
                )
            yield pairs, solution
            bar.update(len(pairs))
    report.close()


def _progress(plan: Plan, total: int) -> tqdm:
    return tqdm(total=total, unit="pair", unit_scale=True, disable=not plan.verbose, leave=False)


class _Report:
    """Raises for pairs without a usable value; in the end warns of those that did not converge."""

    def __init__(self, rows: Side, columns: Side):
        self.rows, self.columns = rows, columns
        self.n_pairs = self.n_unconverged = 0
        self.first: list[str] = []

    def add(self, solution: Solution, pairs: NDArray) -> None:
        for outcome, what in FAILURES.items():
            bad = np.flatnonzero(solution.outcome == outcome)
            if len(bad):
                raise FloatingPointError(
                    f"the kernel value of {len(bad)} pairs {what}, the first: "
                    f"{self._names(pairs[bad])}. What helps: {REMEDY[outcome]}."
                )
        slow = pairs[solution.outcome == Outcome.STEP_LIMIT]
        self.n_pairs += len(pairs)
        self.n_unconverged += len(slow)
        if len(slow) and not self.first:
            self.first = [self._names(slow)]

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


def _copy_duplicates(matrix: NDArray, rows: Side, columns: Side) -> None:
    """Copy the rows and columns of distinct graphs to the places of their duplicates."""
    if not columns.all_distinct:
        repeated = np.setdiff1d(np.arange(len(columns.graphs)), columns.first)
        matrix[:, repeated] = matrix[:, columns.first[columns.inverse[repeated]]]
    if not rows.all_distinct:
        repeated = np.setdiff1d(np.arange(len(rows.graphs)), rows.first)
        matrix[repeated] = matrix[rows.first[rows.inverse[repeated]]]
