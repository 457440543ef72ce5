# SPDX-License-Identifier: BSD-3-Clause
"""How far apart two labels may be before an edge kernel is negligible; see `windows` for why."""

from __future__ import annotations

import numpy as np

from sklearn_mgk.solver.problem import Problem
from sklearn_mgk.solver.topology import Topology

WINDOW_ERROR = {np.dtype("float64"): 1e-9, np.dtype("float32"): 1e-8}
"""Largest change of a node's value by what windows leave out, relative to the largest value."""


def find_reach(problem: Problem, topology: Topology) -> tuple[str, float] | None:
    """Attribute in which the windows are the narrowest, and half their width."""
    source = problem.edge
    step = float((topology.weight_sum / problem.degree).max(initial=0.0)) ** 2
    epsilon = WINDOW_ERROR[problem.dtype] * (1 - step) / step if step > 0 else 1.0
    columns = source.labels.columns
    reach = {
        name: distance
        for name, distance in source.kernel.reach(min(epsilon, 1.0)).items()
        if _is_numeric(columns[name])
    }
    if not reach:
        return None
    attribute = min(reach, key=lambda name: reach[name] / (np.ptp(columns[name]) or 1.0))
    return attribute, reach[attribute]


def _is_numeric(column) -> bool:
    return isinstance(column, np.ndarray) and column.ndim == 1 and column.dtype.kind in "biuf"
