# SPDX-License-Identifier: BSD-3-Clause
"""CPU backend: numba loops over pairs, in plain threads that hold no interpreter lock.

Threads of the standard library rather than numba's parallel regions: they may be called from any
thread, survive a fork, and can be interrupted between tasks.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import numba
import numpy as np
from numpy.typing import NDArray

from sklearn_mgk.solver.factored import represent_edges
from sklearn_mgk.solver.layout import colour_order, columns_form, inverse_of, plain_order, rows_form
from sklearn_mgk.solver.pair_tables import represent
from sklearn_mgk.solver.pairs import Control, Nodes, Results, Table, solve_pairs
from sklearn_mgk.solver.problem import NodalTarget, Problem, Solution
from sklearn_mgk.solver.schedule import estimate_cost, split_tasks
from sklearn_mgk.solver.topology import topology
from sklearn_mgk.solver.windows import MAX_VALUES, WINDOW_SHARE, WindowCode, no_code, no_windows


class CPUBackend:
    """Preconditioned conjugate gradients on all cores."""

    name = "cpu"
    xp = np

    def room(self) -> float:
        """Return the bytes that a matrix may take: as many as it needs."""
        return np.inf

    def solver(self, problem: Problem, eval_gradient: bool) -> Callable[..., Solution]:
        """Arrange the graphs and evaluate the base kernels once."""
        return _Solver(problem, eval_gradient)


class _Solver:
    def __init__(self, problem: Problem, eval_gradient: bool):
        batch, dtype = problem.batch, problem.dtype
        edges = topology(batch)
        self.problem, self.eval_gradient = problem, eval_gradient
        self.node = represent(problem.node, batch.node_ptr, eval_gradient, dtype)
        self.edge = represent_edges(problem, edges, eval_gradient)
        self.first_node = batch.node_ptr.astype(np.uint64)
        self.first_edge = batch.edge_ptr.astype(np.uint64)
        has_windows = isinstance(self.edge, WindowCode)
        order = plain_order(batch) if has_windows else colour_order(batch)
        windows = self.edge.windows(problem, edges, order) if has_windows else no_windows(dtype)
        self.code = self.edge.code() if has_windows else no_code()
        self.share = WINDOW_SHARE if has_windows else 1.0
        rows = rows_form(batch, edges, order, self.edge.codes, dtype)
        columns = columns_form(batch, edges, order, self.edge.codes, dtype)
        self.graphs = (order, _nodes(problem, order.node, self.node.codes), rows, columns, windows)
        self.sizes = batch.sizes
        self.n_entries = np.diff(columns.ptr.astype(np.int64))
        self.bipartite = order.n_red < batch.sizes
        self.control = Control(
            problem.tol,
            problem.max_iter,
            problem.min_steps,
            float(np.finfo(dtype).tiny) * 1e10,
            float(np.finfo(dtype).eps) * 8,
            eval_gradient,
            problem.n_categories if eval_gradient else 0,
            problem.trainable_stop,
            MAX_VALUES,
        )

    def __call__(self, pairs: NDArray, nodal: NodalTarget | None = None) -> Solution:
        """Solve a list of pairs, the costly ones first, and return the answers in its order."""
        swap = self._should_swap(pairs)
        oriented = np.where(swap[:, None], pairs[:, ::-1], pairs)
        cost = estimate_cost(self.n_entries, self.sizes, oriented, self.share)
        order = self._strip_order(oriented)
        results = _empty_results(len(pairs), self.problem.n_theta if self.eval_gradient else 0)
        if nodal is not None:
            results = results._replace(**_nodal_places(nodal, swap, order))
        self._run(np.ascontiguousarray(oriented[order]), split_tasks(cost[order]), results)
        back = inverse_of(order)
        return Solution(
            results.values[back],
            results.gradient[back] if self.eval_gradient else None,
            results.outcome[back],
            results.iterations[back],
        )

    def _should_swap(self, pairs: NDArray) -> NDArray:
        """Take a bipartite graph as rows (half the unknowns), or else the smaller (long lines)."""
        first, second = self.bipartite[pairs.T]
        smaller = self.sizes[pairs[:, 0]] > self.sizes[pairs[:, 1]]
        return np.where(first == second, smaller, second)

    def _strip_order(self, pairs: NDArray) -> NDArray:
        """Sort by row graph, so that strips fill up, and the largest first."""
        first, second = pairs.T
        return np.lexsort((-self.sizes[second], first, -self.sizes[first]))

    def _run(self, pairs: NDArray, tasks: NDArray, results: Results) -> None:
        def run(task):
            begin, end = task
            part = pairs[begin:end]
            tables = tuple(
                Table(*kernel.tables(part), kernel.factors, first_row)
                for kernel, first_row in (
                    (self.node, self.first_node),
                    (self.edge, self.first_edge),
                )
            )
            answers = _slice(results, begin, end)
            solve_pairs(part, self.graphs, tables, self.code, self.control, answers)

        n_threads = min(numba.config.NUMBA_NUM_THREADS, len(tasks))
        if n_threads <= 1:
            for task in tasks:
                run(task)
            return
        pool = ThreadPoolExecutor(n_threads)
        try:
            for _ in pool.map(run, tasks):
                pass
        finally:
            pool.shutdown(cancel_futures=True)


def _nodes(problem: Problem, node: NDArray, codes: NDArray) -> Nodes:
    """Node quantities in position order; slopes relative to the quantity."""
    dtype = problem.dtype
    columns = (
        problem.degree,
        problem.degree * problem.stop,
        problem.stop,
        problem.start,
        problem.degree_slope / problem.degree,
        problem.stop_slope / problem.stop,
    )
    return Nodes(
        codes[node].astype(np.uint64),
        *(np.ascontiguousarray(column[node], dtype) for column in columns),
        problem.category[node].astype(np.int64),
    )


def _empty_results(n: int, n_theta: int) -> Results:
    none = np.zeros(0, np.int64)
    return Results(
        np.empty(n),
        np.zeros((n, n_theta)),
        np.empty(n, np.uint8),
        np.empty(n, np.int32),
        np.empty(0),
        none,
        none,
        none,
    )


def _nodal_places(nodal: NodalTarget, swap: NDArray, order: NDArray) -> dict[str, NDArray]:
    """Place and strides of each pair's block in the flat matrix."""
    width = nodal.matrix.shape[1]
    base = nodal.row * width + nodal.column
    row, column = np.where(swap, 1, width), np.where(swap, width, 1)
    return {
        "nodal": nodal.matrix.reshape(-1),
        "nodal_base": base[order],
        "row_stride": row[order],
        "column_stride": column[order],
    }


def _slice(results: Results, begin: int, end: int) -> Results:
    """Rows of some pairs; the nodal matrix stays whole."""
    rows = {name: column[begin:end] for name, column in results._asdict().items()}
    return Results(**{**rows, "nodal": results.nodal})
