# SPDX-License-Identifier: BSD-3-Clause
r"""Dual-metric partition of rows: sorted by degree and density, cut into blocks of equal work.

The hybrid metric of a node is H = α N + (1 - α) D, after Zhang et al., "Dual-metric partitioning
with adaptive kernel execution for efficient GCN acceleration". D is the degree. N is the density of
the neighbourhood, from anonymous random walks: the share of steps that lead back to a node of the
walk, which is high in cliques and low in trees. The paper's formula for N and its constants α,
number and length of walks are not known to us: both metrics are divided by their means here, and
the defaults are our choice.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numba import njit
from numpy.typing import NDArray

from sklearn_mgk.atomic import atomic_add
from sklearn_mgk.propagation.matrices import ROW_COST, Rows
from sklearn_mgk.random import first_state, uniform
from sklearn_mgk.threads import n_threads, run

_WARP = 32  # entries that a warp of a GPU does at once
_STEPS = 512  # rows that a thread takes at once


@dataclass(frozen=True)
class Partition:
    """Rows in an order, cut into blocks.

    Attributes
    ----------
    order : ndarray of shape (n_rows,) or (0,), int64
        Rows as they follow each other; without entries they follow in their own order.
    blocks : ndarray of shape (n_blocks + 1,), int64
        Where each block begins in this order.
    dense : ndarray of shape (n_blocks,), bool
        Whether the mean of H over a block reaches the threshold.
    threshold : float
        Mean and half a standard deviation of H over all rows; infinite where there is no metric.
    imbalance : float
        Work of the heaviest block over the mean.
    """

    order: NDArray
    blocks: NDArray
    dense: NDArray
    threshold: float
    imbalance: float


def in_order(rows: Rows, n_blocks: int) -> Partition:
    """Cut the rows as they are into blocks of equal work."""
    total = rows.total_work
    blocks = _cut(total, n_blocks)
    dense = np.zeros(len(blocks) - 1, bool)
    return Partition(np.empty(0, np.int64), blocks, dense, np.inf, imbalance(total, blocks))


def by_metric(rows: Rows, metric: NDArray, n_blocks: int) -> Partition:
    """Sort rows by a metric, the greatest first, and cut them into blocks of equal work.

    Parameters
    ----------
    rows : Rows
        The matrix.
    metric : ndarray of shape (n_rows,)
        H.
    n_blocks : int
        How many blocks to make; there are fewer where single rows exceed their share.

    Returns
    -------
    Partition
        The blocks.
    """
    threshold = float(metric.mean() + metric.std() / 2) if len(metric) else np.inf
    return _sorted(rows, metric, threshold, n_blocks)


def heavy_first(rows: Rows, n_blocks: int) -> Partition:
    """Sort the rows that are dense by their entries; all others follow in their own order.

    A row counts as dense from the threshold on, if it has enough entries for a second warp.
    """
    degree = rows.lengths.astype(float)
    threshold = max(degree.mean() + degree.std() / 2, _WARP + 1.0) if len(degree) else np.inf
    return _sorted(rows, np.where(degree >= threshold, degree, 0), threshold, n_blocks)


def _sorted(rows: Rows, metric: NDArray, threshold: float, n_blocks: int) -> Partition:
    order = np.argsort(-metric, kind="stable")
    total = np.append(0, np.cumsum(rows.lengths[order] + ROW_COST))
    blocks = _cut(total, n_blocks)
    mean = np.diff(np.append(0, np.cumsum(metric[order]))[blocks]) / np.diff(blocks)
    return Partition(order, blocks, mean >= threshold, threshold, imbalance(total, blocks))


def _cut(total: NDArray, n_blocks: int) -> NDArray:
    """Where blocks of equal work begin and end, given the work up to each row; none is empty."""
    shares = np.linspace(0, total[-1], n_blocks + 1)[1:-1]
    inner = np.searchsorted(total, shares)
    return np.unique(np.concatenate([[0], inner, [len(total) - 1]]))


def imbalance(total: NDArray, blocks: NDArray) -> float:
    """Work of the heaviest block over the mean; 1 without rows."""
    work = np.diff(total[blocks])
    return float(work.max() / work.mean()) if len(work) else 1.0


def equal_rows(rows: Rows, n_blocks: int) -> float:
    """Imbalance of as many blocks of equally many rows in their order: without any plan."""
    n = rows.shape[0]
    blocks = np.unique(np.linspace(0, n, min(n, n_blocks) + 1).astype(np.int64))
    return imbalance(rows.total_work, blocks)


def hybrid_metric(degree: NDArray, density: NDArray, alpha: float) -> NDArray:
    """Return α N + (1 - α) D, each divided by its mean."""
    return alpha * _over_mean(density) + (1 - alpha) * _over_mean(degree)


def _over_mean(values: NDArray) -> NDArray:
    mean = values.mean() if len(values) else 0
    return values / mean if mean > 0 else np.zeros(len(values))


def walk_density(rows: Rows, n_walks: int, length: int, seed: int) -> NDArray:
    """Share of the steps of anonymous random walks that lead to a node of the walk.

    Parameters
    ----------
    rows : Rows
        A square matrix; its entries are edges, their values do not matter.
    n_walks, length : int
        Walks from each node, and the steps of each.
    seed : int
        The same seed gives the same walks, whatever the number of threads.

    Returns
    -------
    ndarray of shape (n_rows,), float64
        From 0, where no walk meets itself, to less than 1. A step from a node without entries
        counts as one back.
    """
    n_rows = rows.shape[0]
    back = np.zeros(n_rows, np.int64)
    seed = np.uint64(seed)

    def work(thread: int, counter: NDArray) -> None:
        _count_returns(rows.ptr, rows.indices, n_walks, length, seed, back, counter)

    run(work, n_threads(n_rows * n_walks))
    return back / (n_walks * length)


@njit(cache=True, nogil=True)
def _count_returns(ptr, indices, n_walks, length, seed, back, counter):
    """Walk from every node, in chunks off the counter."""
    n_rows = len(back)
    walk = np.empty(length + 1, np.int64)
    begin = atomic_add(counter, 0, np.int64(_STEPS))
    while begin < n_rows:
        for node in range(begin, min(begin + _STEPS, n_rows)):
            state = first_state(seed, node)
            for _ in range(n_walks):
                walk[0] = node
                returns, state = _walk(ptr, indices, walk, state)
                back[node] += returns
        begin = atomic_add(counter, 0, np.int64(_STEPS))


@njit(cache=True, nogil=True)
def _walk(ptr, indices, walk, state):
    """Make one walk from walk[0]; returns the steps to nodes it has, and the next random state."""
    returns = 0
    for step in range(1, len(walk)):
        here = walk[step - 1]
        n_next = ptr[here + 1] - ptr[here]
        there = here
        if n_next > 0:
            share, state = uniform(state)
            there = np.int64(indices[ptr[here] + np.int64(share * n_next)])
        for k in range(step):
            if walk[k] == there:
                returns += 1
                break
        walk[step] = there
    return returns, state
