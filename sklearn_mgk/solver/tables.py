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
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from sklearn_mgk.base_kernels.checks import ROUNDING, check_table
from sklearn_mgk.base_kernels.codegen import feature_dims, features, numba_module
from sklearn_mgk.graphs.columns import take
from sklearn_mgk.solver.problem import LabelKernel

MAX_TABLE_LABELS = 512
"""Largest number of distinct labels for one table over all of them.

A table of 512 labels takes 2 MB, which stays in the second-level cache; see
``benchmarks/representations.py`` for the times on both sides of the limit.
"""

CHECKED_LABELS = 512
"""Labels on which the range of a kernel is checked before any pair is solved, if there are more."""


NO_FACTORS = np.empty((0, 0))
"""Stands for a representation that has values and no factors."""


class Representation(Protocol):
    """A base kernel, made ready for the loops of a solver."""

    codes: NDArray  # (n_rows,) label of each node or edge, as the tables count them
    factors: NDArray  # (n_rows, rank) factors of the kernel at each edge; rank 0 if unused

    def tables(self, pairs: NDArray) -> tuple[NDArray, NDArray, NDArray, NDArray]:
        """Values (flat), slopes (n_values, n_theta), base and stride of each pair."""
        ...


@dataclass(frozen=True)
class SharedTable:
    """One table over all distinct labels."""

    factors = NO_FACTORS

    codes: NDArray
    values: NDArray
    slopes: NDArray
    n_labels: int

    def tables(self, pairs: NDArray) -> tuple[NDArray, NDArray, NDArray, NDArray]:
        """Return the one table, at the same place for each pair."""
        base = np.zeros(len(pairs), np.uint64)
        return self.values, self.slopes, base, np.full(len(pairs), self.n_labels, np.uint64)


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
    if source.n_labels <= MAX_TABLE_LABELS:
        return shared_table(source, eval_gradient, dtype)
    return pair_tables(source, ptr, eval_gradient, dtype)


def shared_table(source: LabelKernel, eval_gradient: bool, dtype: np.dtype) -> SharedTable:
    """Evaluate a base kernel on all of its distinct labels."""
    n = source.n_labels
    if eval_gradient:
        values, slopes = source.kernel.table_gradient(source.labels)
    else:
        values, slopes = source.kernel.table(source.labels), np.empty((n, n, 0))
    check_table(values, source.role, source.labels)
    return SharedTable(
        source.labels.codes,
        np.ascontiguousarray(values, dtype).ravel(),
        np.ascontiguousarray(slopes, dtype).reshape(n * n, slopes.shape[2]),
        n,
    )


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


def check_sample(source: LabelKernel) -> None:
    """Check a kernel of many labels on evenly spaced ones (labels are sorted)."""
    chosen = np.unique(np.linspace(0, source.n_labels - 1, CHECKED_LABELS).astype(int))
    labels = {name: take(column, chosen) for name, column in source.labels.columns.items()}
    check_table(source.kernel.table(labels), source.role, labels)
