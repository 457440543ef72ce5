# SPDX-License-Identifier: BSD-3-Clause
"""How a solver gets at a base kernel: one table for all pairs, or one for each pair.

With few distinct labels the kernel is evaluated once on all of them. With many (edge lengths, say,
are all distinct) it is evaluated for each pair of graphs on the labels of these two, by compiled
code where the kernel is a formula and by NumPy otherwise. The solver reads both the same way. Where
a smooth edge kernel meets dense graphs, low-rank factors take the place of the values
(`solver.factored`).
"""

from __future__ import annotations

from dataclasses import dataclass
from types import ModuleType

import numpy as np
from numpy.typing import NDArray

from sklearn_mgk.base_kernels.checks import ROUNDING, check_table
from sklearn_mgk.base_kernels.codegen import feature_dims, features
from sklearn_mgk.base_kernels.codegen.numba import numba_module
from sklearn_mgk.graphs.columns import take
from sklearn_mgk.solver import tables
from sklearn_mgk.solver.problem import LabelKernel
from sklearn_mgk.solver.tables import NO_FACTORS, SharedTable, check_sample, shared_table


@dataclass(frozen=True)
class PairTables:
    """A table for each pair, over the rows (nodes or edges) of its two graphs."""

    factors = NO_FACTORS

    source: LabelKernel
    ptr: NDArray
    codes: NDArray
    features: NDArray
    module: ModuleType | None
    eval_gradient: bool
    dtype: np.dtype

    def tables(self, pairs: NDArray) -> tuple[NDArray, NDArray, NDArray, NDArray]:
        """Evaluate the kernel on the rows of each pair, one table behind the other."""
        size = np.diff(self.ptr)
        n, n2 = size[pairs[:, 0]], size[pairs[:, 1]]
        place = np.concatenate([[0], np.cumsum(n * n2)])
        kernel = self.source.kernel
        values = np.empty(place[-1])
        slopes = np.empty((place[-1], kernel.n_dims if self.eval_gradient else 0))
        fill = self._run_numpy if self.module is None else self._run_code
        fill(pairs, place, values, slopes)
        self._check(pairs, place, values)
        base, stride = place[:-1].astype(np.uint64), n2.astype(np.uint64)
        return (
            values.astype(self.dtype, copy=False),
            slopes.astype(self.dtype, copy=False),
            base,
            stride,
        )

    def _run_code(self, pairs, place, values, slopes):
        first, second = np.ascontiguousarray(pairs.T)
        read = self.features, self.ptr, first, second, self.source.kernel.hyperparameter_values
        self.module.fill_pairs(*read, values, place)
        if slopes.shape[1]:
            self.module.fill_pairs_gradient(*read, slopes, place)

    def _run_numpy(self, pairs, place, values, slopes):
        for k, (g, h) in enumerate(pairs):
            left, right = self._labels(g), self._labels(h)
            cells = slice(place[k], place[k + 1])
            if slopes.shape[1]:
                table, gradient = self.source.kernel.table_gradient(left, right)
                slopes[cells] = gradient.reshape(-1, slopes.shape[1])
            else:
                table = self.source.kernel.table(left, right)
            values[cells] = table.ravel()

    def _labels(self, graph: int) -> dict:
        """Labels of the rows of one graph."""
        labels = self.source.labels
        codes = labels.codes[self.ptr[graph] : self.ptr[graph + 1]]
        return {name: take(column, codes) for name, column in labels.columns.items()}

    def _check(self, pairs: NDArray, place: NDArray, values: NDArray) -> None:
        """Raise for a value out of range; `check_sample` has looked at some labels only."""
        bad = np.flatnonzero(~((values >= 0) & (values <= 1 + ROUNDING)))
        if len(bad):
            g, h = pairs[np.searchsorted(place, bad[0], side="right") - 1]
            left, right = self._labels(g), self._labels(h)
            check_table(self.source.kernel.table(left, right), self.source.role, left, right)


def represent(
    source: LabelKernel, ptr: NDArray, eval_gradient: bool, dtype: np.dtype
) -> SharedTable | PairTables:
    """Choose the representation of a base kernel; ``ptr`` cuts its rows into graphs."""
    if source.n_labels <= tables.MAX_TABLE_LABELS:
        return shared_table(source, eval_gradient, dtype)
    return pair_tables(source, ptr, eval_gradient, dtype)


def pair_tables(
    source: LabelKernel, ptr: NDArray, eval_gradient: bool, dtype: np.dtype
) -> PairTables:
    """Prepare the evaluation of a base kernel pair by pair."""
    check_sample(source)
    local = np.arange(ptr[-1]) - np.repeat(ptr[:-1], np.diff(ptr))
    rows, module = np.empty((0, 0)), None
    if source.kernel.is_formula:
        columns, names = source.labels.columns, source.kernel.attributes
        rows = np.ascontiguousarray(features(columns, names)[source.labels.codes].T)
        module = numba_module(source.kernel, feature_dims(columns, names))
    return PairTables(source, ptr, local, rows, module, eval_gradient, dtype)
