# SPDX-License-Identifier: BSD-3-Clause
"""What a pair costs, and how a list of pairs is cut into tasks for threads."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

TASK_COST = 16e6
"""Estimated multiply-adds of one task: some milliseconds, where handing it out takes 0.1."""


def estimate_cost(
    n_entries: NDArray, sizes: NDArray, pairs: NDArray, share: float = 1.0
) -> NDArray:
    """Multiply-adds of a solve, up to a factor: entries of the product operator, plus its vectors.

    Parameters
    ----------
    n_entries, sizes : ndarray of shape (n_graphs,)
        Entries of the adjacency matrix and nodes of each graph.
    pairs : ndarray of shape (n_pairs, 2)
        Graph numbers.
    share : float, default=1.0
        Cost of an entry of the product operator.

    Returns
    -------
    ndarray of shape (n_pairs,), float64
        Cost of each pair.
    """
    first, second = pairs.T
    entries = n_entries[first].astype(float) * n_entries[second]
    return 10 * (share * entries + 8.0 * sizes[first] * sizes[second])


def split_tasks(cost: NDArray) -> NDArray:
    """Cut a list of pairs into runs of about equal cost.

    Parameters
    ----------
    cost : ndarray of shape (n_pairs,)
        Cost of each pair, in the order in which they will be solved.

    Returns
    -------
    ndarray of shape (n_tasks, 2), int64
        Begin and end of each run.
    """
    total = np.cumsum(cost)
    number = np.floor((total - cost / 2) / TASK_COST)
    cuts = np.flatnonzero(np.diff(number)) + 1
    edges = np.concatenate([[0], cuts, [len(cost)]])
    return np.stack([edges[:-1], edges[1:]], axis=1)
