# SPDX-License-Identifier: BSD-3-Clause
"""Reference backend: dense float64 matrices, obvious and slow. It defines the answer.

Gradients come from differentiating the linear system itself, one solve for each hyperparameter,
which is another route than the adjoint method of the fast backends.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from sklearn_mgk.base_kernels.checks import check_table
from sklearn_mgk.solver.problem import LabelKernel, NodalTarget, Outcome, Problem, Solution
from sklearn_mgk.solver.topology import topology


class ReferenceBackend:
    """Dense direct solves in float64, whatever the dtype and tolerance asked for."""

    name = "reference"
    xp = np

    def room(self) -> float:
        """Return the bytes that a matrix may take: as many as it needs."""
        return np.inf

    def solver(self, problem: Problem, eval_gradient: bool) -> Callable[..., Solution]:
        """Evaluate both base kernels on all labels."""
        return _Solver(problem, eval_gradient)


class _Solver:
    def __init__(self, problem: Problem, eval_gradient: bool):
        self.problem, self.eval_gradient = problem, eval_gradient
        self.topology = topology(problem.batch)
        self.node = _table(problem.node)
        self.edge = _table(problem.edge)

    def __call__(self, pairs: NDArray, nodal: NodalTarget | None = None) -> Solution:
        n, n_theta = len(pairs), self.problem.n_theta
        values, gradient = np.empty(n), np.empty((n, n_theta))
        for k, (g, h) in enumerate(pairs):
            block, slopes = self._pair(g, h)
            values[k] = block.sum()
            gradient[k] = [slope.sum() for slope in slopes]
            if nodal is not None:
                rows = slice(nodal.row[k], nodal.row[k] + block.shape[0])
                columns = slice(nodal.column[k], nodal.column[k] + block.shape[1])
                nodal.matrix[rows, columns] = block
        outcome = np.where(np.isfinite(values), Outcome.CONVERGED, Outcome.NOT_FINITE)
        return Solution(
            values,
            gradient if self.eval_gradient else None,
            outcome.astype(np.uint8),
            np.zeros(n, np.int32),
        )

    def _pair(self, g: int, h: int) -> tuple[NDArray, list[NDArray]]:
        """Return p p' x by node, and its derivatives by each log hyperparameter."""
        problem = self.problem
        i, i2 = (slice(*problem.batch.node_ptr[k : k + 2]) for k in (g, h))
        cells = np.ix_(problem.node.labels.codes[i], problem.node.labels.codes[i2])
        table, slopes = self.node
        v, v_slopes = table[cells].ravel(), [s[cells].ravel() for s in slopes]
        w, w_slopes = self._product_adjacency(g, h)

        def kron(name):
            column = getattr(problem, name)
            return np.outer(column[i], column[i2]).ravel()

        d, q, p = kron("degree"), kron("stop"), kron("start")
        # (D - V W) x = V D q holds where V = 0 too, and gives x = 0 there.
        matrix = np.diag(d) - v[:, None] * w
        x = np.linalg.solve(matrix, v * d * q)
        shown = _without_first_step(x, v * q) if problem.min_steps else x

        def respond(dv=0.0, dw=None, dd=0.0, dq=0.0):
            """Differentiate the walks counted, given the derivatives of V, W, D and q q'."""
            change = dv * (w @ x + d * q) + v * (dd * q + d * dq) - dd * x
            if dw is not None:
                change = change + v * (dw @ x)
            dx = np.linalg.solve(matrix, change)
            return dx - dv * q - v * dq if problem.min_steps else dx

        result = [p * respond(dv=dv) for dv in v_slopes]
        result += [p * respond(dw=dw) for dw in w_slopes]
        for category in range(problem.n_categories):
            count = np.add.outer(
                (problem.category[i] == category) * 1, (problem.category[i2] == category) * 1
            )
            result.append(count.ravel() * p * shown)
        if problem.trainable_stop:
            result.append(
                p * respond(dd=self._slope(i, i2, "degree"), dq=self._slope(i, i2, "stop"))
            )
        shape = (i.stop - i.start, i2.stop - i2.start)
        return (p * shown).reshape(shape), [slope.reshape(shape) for slope in result]

    def _slope(self, i: slice, i2: slice, name: str) -> NDArray:
        """Differentiate an outer product by log q."""
        value = getattr(self.problem, name)
        slope = getattr(self.problem, f"{name}_slope")
        return (np.outer(slope[i], value[i2]) + np.outer(value[i], slope[i2])).ravel()

    def _product_adjacency(self, g: int, h: int) -> tuple[NDArray, list[NDArray]]:
        """W and its derivatives by the hyperparameters of the edge kernel."""
        t, ptr = self.topology, self.problem.batch.node_ptr
        a, b = np.flatnonzero(t.graph == g), np.flatnonzero(t.graph == h)
        n, n2 = (ptr[k + 1] - ptr[k] for k in (g, h))
        row = np.add.outer((t.source[a] - ptr[g]) * n2, t.source[b] - ptr[h])
        column = np.add.outer((t.target[a] - ptr[g]) * n2, t.target[b] - ptr[h])
        weight = np.outer(t.weight[a], t.weight[b])
        codes = self.problem.edge.labels.codes
        cells = np.ix_(codes[t.edge[a]], codes[t.edge[b]])

        def assemble(table):
            w = np.zeros((n * n2, n * n2))
            np.add.at(w, (row, column), weight * table[cells])
            return w

        table, slopes = self.edge
        return assemble(table), [assemble(slope) for slope in slopes]


def _without_first_step(x: NDArray, first: NDArray) -> NDArray:
    """Take off the walks of length zero; exactly 0 where there are no others."""
    rest = x - first
    return np.where(rest > 8 * np.finfo(float).eps * first, rest, 0.0)


def _table(source: LabelKernel) -> tuple[NDArray, list[NDArray]]:
    """Values and derivatives of a base kernel on all distinct labels."""
    table, gradient = source.kernel.table_gradient(source.labels)
    check_table(table, source.role, source.labels)
    return table, list(np.moveaxis(gradient, -1, 0))
