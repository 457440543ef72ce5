# SPDX-License-Identifier: BSD-3-Clause
"""What all kernels of the CUDA solver read, as the fields of ``mgk::Problem``; needs no device."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from sklearn_mgk.solver.device_labels import LabelColumns
from sklearn_mgk.solver.device_layout import Entries, entry_records, node_columns
from sklearn_mgk.solver.problem import Problem


@dataclass(frozen=True)
class DeviceProblem:
    """Columns of a batch in one order of nodes, and settings.

    Attributes
    ----------
    problem : Problem
        What is solved.
    node, edge : LabelColumns
        Base kernels and labels.
    entries : Entries
        Adjacency matrices, and the order of nodes.
    n_red : ndarray of shape (n_graphs,)
        Red nodes of each graph; all nodes where none are eliminated.
    reach : float
        Edges whose keys differ by more are negligible together.
    eval_gradient : bool
        Whether derivatives are computed.
    """

    problem: Problem
    node: LabelColumns
    edge: LabelColumns
    entries: Entries
    n_red: NDArray
    reach: float
    eval_gradient: bool

    def words(self, keep: Callable[[NDArray], int]) -> list[int]:
        """Return the fields, each of eight bytes; ``keep`` gives the address of a column."""
        problem, node, edge, entries = self.problem, self.node, self.edge, self.entries
        limits, none = np.finfo(problem.dtype), np.zeros(1, problem.dtype)
        labels = node.labels[entries.node]
        node_labels = (labels.astype(np.int32), none) if node.is_table else (none, labels)
        tiny, epsilon = float(limits.tiny) * 1e10, float(limits.eps) * 8
        reals = np.array([problem.tol, tiny, epsilon, min(self.reach, float(limits.max) / 4)])
        columns = (
            problem.batch.node_ptr.astype(np.int32),
            entries.row_ptr,
            entry_records(entries, edge.labels, problem.dtype),
            *node_columns(problem, entries.node),
            entries.local,
            entries.has_loop,
            self.n_red.astype(np.int32),
            *node_labels,
            *(node.values, node.slopes, node.theta),
        )
        edge_columns = (none, none, edge.values, edge.slopes, edge.theta)
        return [
            *map(keep, columns),
            node.n_labels,
            *map(keep, edge_columns),
            edge.n_labels,
            *reals.view(np.uint64),
            problem.max_iter,
            problem.min_steps,
            problem.n_categories if self.eval_gradient else 0,
            problem.trainable_stop,
            problem.n_theta if self.eval_gradient else 0,
        ]
