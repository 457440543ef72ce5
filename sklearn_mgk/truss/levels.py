# SPDX-License-Identifier: BSD-3-Clause
"""A graph kernel between nested subgraphs; what did not change is not solved again."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from sklearn_mgk import gram
from sklearn_mgk.blocks import Side
from sklearn_mgk.kernel import MarginalizedGraphKernel
from sklearn_mgk.normalization import normalize, normalize_gradient, normalized_diagonal
from sklearn_mgk.plan import make_plan, make_sides
from sklearn_mgk.truss.hierarchy import Hierarchy


class LevelSum:
    """Sum over levels of a kernel between the subgraphs of two sides.

    Parameters
    ----------
    base : MarginalizedGraphKernel
        The kernel.
    left, right : Hierarchy
        Subgraphs of the graphs of both sides; right is None where they are the same.
    eval_gradient : bool
        Whether derivatives are wanted.
    """

    def __init__(
        self,
        base: MarginalizedGraphKernel,
        left: Hierarchy,
        right: Hierarchy | None,
        eval_gradient: bool,
    ):
        self.base = base
        self.trees = (left,) if right is None else (left, right)
        batches = left.parts, None if right is None else right.parts
        self.plan = make_plan(base, *batches, eval_gradient and base.n_dims > 0)
        self.sides = [side for side in make_sides(base, *batches) if side is not None]
        self._diagonals: dict[int, NDArray] = {}

    def matrix(self) -> tuple[NDArray, NDArray]:
        """Values, shape (n_left, n_right), and their derivatives, shape (..., n_theta)."""
        levels = np.unique(np.concatenate([tree.levels for tree in self.trees]))
        parts = [tree.at(levels) for tree in self.trees]
        shape = (parts[0].shape[1], parts[-1].shape[1])
        total = np.zeros(shape), np.zeros((*shape, self.plan.n_theta))
        raw = tuple(np.zeros_like(matrix) for matrix in total)
        before = [np.full(part.shape[1], -1) for part in parts]
        # A change of level k lasts until the next one. Nothing is left at the last of all.
        for row, n_levels in enumerate(np.diff(levels)):
            now = [part[row] for part in parts]
            there = [np.flatnonzero(part >= 0) for part in now]
            if all(map(len, there)):
                self._update(raw, now, before)
                self._add(total, raw, n_levels, now, there)
            before = now
        return total

    def _update(self, raw: tuple, now: list[NDArray], before: list[NDArray]) -> None:
        """Solve the pairs in which one subgraph is new."""
        new = [np.flatnonzero((a >= 0) & (a != b)) for a, b in zip(now, before, strict=True)]
        old = [np.flatnonzero((a >= 0) & (a == b)) for a, b in zip(now, before, strict=True)]
        if len(now) == 1:
            self._solve(raw, now, new[0], None)
            self._solve(raw, now, new[0], old[0])
            between = np.ix_(new[0], old[0]), np.ix_(old[0], new[0])
            for matrix in raw:
                matrix[between[1]] = matrix[between[0]].swapaxes(0, 1)
            return
        self._solve(raw, now, new[0], np.concatenate([new[1], old[1]]))
        self._solve(raw, now, old[0], new[1])

    def _solve(self, raw: tuple, now: list[NDArray], i: NDArray, j: NDArray | None) -> None:
        """Fill in the values between graphs i and j, or between all of i."""
        if len(i) == 0 or (j is not None and len(j) == 0):
            return
        columns = None if j is None else self._side(-1, now[-1][j])
        solved = gram.gram(self.plan, self._side(0, now[0][i]), columns)
        for matrix, values in zip(raw, solved, strict=True):
            matrix[np.ix_(i, i if j is None else j)] = values

    def _side(self, which: int, parts: NDArray) -> Side:
        """Make a side of some subgraphs."""
        side = self.sides[which]
        prints = [side.prints[k] for k in side.inverse[parts]]
        return Side.of(side.graphs[parts], prints, f"subgraph of {side.name}")

    def _add(
        self, total: tuple, raw: tuple, n_levels: int, now: list[NDArray], there: list[NDArray]
    ) -> None:
        """Add the normalised values of a level, as often as it lasts."""
        cell = np.ix_(there[0], there[-1])
        values, slopes = raw[0][cell], raw[1][cell]
        if self.base.normalization is not None:
            if len(now) == 1:
                s = s2 = values.diagonal().copy()
            else:
                s, s2 = (self._raw_diagonal(k)[now[k][there[k]]] for k in (0, 1))
            raw_slopes = slopes.diagonal().T.copy()
            normalize(values, s, s2, self.base)
            if len(now) == 1:
                np.fill_diagonal(values, normalized_diagonal(s, self.base))
            if slopes.shape[2]:
                normalize_gradient(slopes, values, s, raw_slopes, self.base)
        total[0][cell] += n_levels * values
        total[1][cell] += n_levels * slopes

    def _raw_diagonal(self, which: int) -> NDArray:
        """Self-similarity of each subgraph of a side, without normalisation; solved once."""
        if len(self.trees[which].parts) == 0:
            return np.empty(0)
        if which not in self._diagonals:
            self._diagonals[which] = gram.diagonal(self.plan, self.sides[which])[0]
        return self._diagonals[which]

    def diagonal(self, which: int) -> NDArray:
        """Sum of the self-similarities of the subgraphs of each graph of a side, shape (n,)."""
        tree = self.trees[which]
        of_parts = np.append(normalized_diagonal(self._raw_diagonal(which), self.base), 0.0)
        return np.diff(tree.levels) @ of_parts[tree.part[:-1]]
