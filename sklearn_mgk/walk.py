# SPDX-License-Identifier: BSD-3-Clause
"""The random walk on each graph: where it starts, how it moves and where it stops."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from sklearn_mgk.graphs import GraphBatch
from sklearn_mgk.starting import StartingProbability


@dataclass(frozen=True)
class Walk:
    """Node quantities of a batch; see `solver.problem.Problem` for each."""

    start: NDArray
    category: NDArray
    n_categories: int
    stop: NDArray
    degree: NDArray
    stop_slope: NDArray
    degree_slope: NDArray
    trainable_stop: bool


def describe_walk(kernel, batch: GraphBatch, weight_sum: NDArray) -> Walk:
    """Compute the walk that a `MarginalizedGraphKernel` sets on each graph.

    Under rule "probability", the walk stops at each node with probability q and otherwise moves
    along an edge in proportion to its weight: d_i = sum_j A_ij / (1 - q) [1]_. Under rule
    "additive", q_i adds to the weights of the node: d_i = sum_j A_ij + q_i, and the walk stops with
    probability q_i / d_i [2]_.

    Parameters
    ----------
    kernel : MarginalizedGraphKernel
        Whose parameters are read.
    batch : GraphBatch
        The graphs.
    weight_sum : ndarray of shape (n_nodes,)
        ``sum_j A_ij``.

    Returns
    -------
    Walk
        Node quantities.

    References
    ----------
    .. [1] H. Kashima, K. Tsuda, A. Inokuchi, "Marginalized kernels between labeled graphs",
       ICML 2003.
    .. [2] Y.-H. Tang, O. Selvitopi, D. T. Popovici, A. Buluc, "A high-throughput solver for
       marginalized graph kernels on GPU", IPDPS 2020.
       https://doi.org/10.1109/IPDPS47924.2020.00080
    """
    start, category, n_categories = _starts(kernel, batch)
    below = 1.0 if kernel.stopping_rule == "probability" else np.inf
    q = _node_values(kernel.stopping_probability, batch, "stopping_probability", below)
    trainable = not isinstance(kernel.stopping_probability, str) and (
        kernel.stopping_probability_bounds != "fixed"
    )
    rule = STOPPING_RULES[kernel.stopping_rule]
    return Walk(start, category, n_categories, *rule(q, weight_sum), trainable)


def _starts(kernel, batch: GraphBatch) -> tuple[NDArray, NDArray, int]:
    p = kernel.starting_probability
    if isinstance(p, StartingProbability):
        free = p.values_bounds != "fixed"
        start, category = p.of_nodes(batch)
        category = category if free else np.full(batch.n_nodes, -1, np.int32)
        return start, category, len(p.categories) if free else 0
    start = _node_values(p, batch, "starting_probability")
    return start, np.full(batch.n_nodes, -1, np.int32), 0


def _node_values(value, batch: GraphBatch, parameter: str, below: float = np.inf) -> NDArray:
    """Return a positive number for each node: one for all, or that of a node attribute."""
    if not isinstance(value, str):
        return np.full(batch.n_nodes, float(value))
    column = batch.read("node", value)
    if not isinstance(column, np.ndarray) or column.ndim != 1 or column.dtype.kind not in "bif":
        raise ValueError(
            f"{parameter} reads node attribute {value!r}, which must hold one number a node"
        )
    bad = np.flatnonzero(~((column > 0) & (column < below)))
    if len(bad):
        graph = batch.node_graph[bad[0]]
        raise ValueError(
            f"{parameter} reads node attribute {value!r}, which is {column[bad[0]]} at node "
            f"{bad[0] - batch.node_ptr[graph]} of graph {graph}: it must "
            + ("be positive" if below == np.inf else "lie between 0 and 1")
        )
    return column.astype(float)


def _stop_with_probability(q: NDArray, weight_sum: NDArray) -> tuple[NDArray, ...]:
    """Stop and degree under rule "probability", and their derivatives by log q."""
    isolated = weight_sum == 0
    degree = np.where(isolated, 1.0, weight_sum / (1 - q))
    degree_slope = np.where(isolated, 0.0, degree * q / (1 - q))
    return q, degree, q, degree_slope


def _stop_additive(q: NDArray, weight_sum: NDArray) -> tuple[NDArray, ...]:
    """Stop and degree under rule "additive", and their derivatives by log q."""
    degree = weight_sum + q
    stop = q / degree
    return stop, degree, stop * (1 - stop), q


STOPPING_RULES = {"probability": _stop_with_probability, "additive": _stop_additive}
"""How a stopping probability is read: (q, sum of weights) to (stop, degree, and their slopes)."""
