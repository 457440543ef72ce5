# SPDX-License-Identifier: BSD-3-Clause
"""Edge kernels as sums of products, where that is cheaper than their values.

With k(x, y) = sum_r phi_r(x) phi_r(y) on R factors, the product operator falls apart,
W p = sum_r A_r p A'_r, and costs R (entries of A x nodes' + nodes x entries of A') instead of
entries of A x entries of A'.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from sklearn_mgk.base_kernels.factors import pivoted_cholesky
from sklearn_mgk.graphs import GraphBatch
from sklearn_mgk.graphs.columns import take
from sklearn_mgk.solver import tables
from sklearn_mgk.solver.pair_tables import PairTables, pair_tables, represent
from sklearn_mgk.solver.problem import LabelKernel, Problem
from sklearn_mgk.solver.tables import Representation
from sklearn_mgk.solver.topology import Topology
from sklearn_mgk.solver.windows import WindowCode, window_code

FACTOR_GAIN = 0.7
"""Factors are used up to this many for each distinct label at a node.

One factor costs about one pass over the entries of G' and a fraction of one over those of G, one
label costs one pass over the entries of G'; see ``benchmarks/representations.py``.
"""

FACTOR_GAIN_OVER_WINDOWS = 0.3
"""The same where the edge kernel has windows, which are faster than tables."""

WINDOW_LABELS = 3
"""Windows are used from so many distinct labels at a node on; see the same benchmark."""

TOLERANCE = {np.dtype("float64"): 1e-13, np.dtype("float32"): 1e-7}
"""Largest error of an edge kernel by factors, absolute (the kernel is at most 1)."""


@dataclass(frozen=True)
class FactorTables:
    """Factors for the product, and a table for each pair where derivatives are wanted."""

    codes: NDArray
    factors: NDArray
    derivatives: PairTables

    def tables(self, pairs: NDArray) -> tuple[NDArray, NDArray, NDArray, NDArray]:
        """Evaluate the tables of `PairTables`, which only derivatives need."""
        if self.derivatives.eval_gradient:
            return self.derivatives.tables(pairs)
        none = np.zeros(len(pairs), np.uint64)
        return np.empty(0, self.factors.dtype), np.empty((0, 0), self.factors.dtype), none, none


def represent_edges(
    problem: Problem, topology: Topology, eval_gradient: bool
) -> Representation | WindowCode:
    """Choose the representation of the edge kernel for the graphs of a batch."""
    source, batch, dtype = problem.edge, problem.batch, problem.dtype
    per_node = labels_per_node(source, batch, topology)
    many = source.n_labels > tables.MAX_TABLE_LABELS and per_node >= WINDOW_LABELS
    windows = window_code(problem, topology, eval_gradient) if many else None
    most = int((FACTOR_GAIN if windows is None else FACTOR_GAIN_OVER_WINDOWS) * per_node)
    factors = find_factors(source, TOLERANCE[dtype], most) if most >= 1 else None
    if factors is None:
        return windows or represent(source, batch.edge_ptr, eval_gradient, dtype)
    derivatives = pair_tables(source, batch.edge_ptr, eval_gradient, dtype)
    rows = np.ascontiguousarray(factors[source.labels.codes], dtype)
    return FactorTables(derivatives.codes, rows, derivatives)


def labels_per_node(source: LabelKernel, batch: GraphBatch, topology: Topology) -> float:
    """Mean number of distinct labels among the edges of a node."""
    label = source.labels.codes[topology.edge].astype(np.int64)
    return len(np.unique(topology.source * source.n_labels + label)) / batch.n_nodes


def find_factors(source: LabelKernel, tolerance: float, max_rank: int) -> NDArray | None:
    """Factors at each label, shape (n_labels, rank); None where max_rank is not enough."""
    kernel, columns = source.kernel, source.labels.columns

    def row(label: int) -> NDArray:
        one = {name: take(column, np.array([label])) for name, column in columns.items()}
        return kernel.table(one, columns)[0]

    if source.n_labels <= max_rank:
        return None
    found = pivoted_cholesky(kernel.diag(source.labels), row, tolerance, max_rank)
    return None if found is None else found.phi
