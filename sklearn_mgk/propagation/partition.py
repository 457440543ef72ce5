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
class PlanSummary:
    """What a plan came to.

    Parameters
    ----------
    engine : str
        "rows", "heavy", "degree" or "dual"; what "auto" chose.
    n_blocks, n_dense : int
        Blocks of rows, and how many of them are dense. On a GPU a piece of a long row is a block,
        and counts as dense.
    threshold : float
        Value of the metric from which a block is dense.
    imbalance : float
        Work of the heaviest block over the mean.
    imbalance_without : float
        The same for as many blocks of equally many rows, which is what no plan would do.
    seconds : float
        Time that the plan takes [s], without reading the matrix and bringing it to a GPU. Making a
        plan does not wait for a GPU that does the planning: the time is then that of the same plan
        made once more for the summary, until it is done.
    """

    engine: str
    n_blocks: int
    n_dense: int
    threshold: float
    imbalance: float
    imbalance_without: float
    seconds: float


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
    work : ndarray of shape (n_blocks,), int64
        Entries and starts of rows of each block.
    """

    order: NDArray
    blocks: NDArray
    dense: NDArray
    threshold: float
    work: NDArray


def in_order(rows: Rows, n_blocks: int) -> Partition:
    """Cut the rows as they are into blocks of equal work."""
    blocks = _cut_in_order(rows.ptr, n_blocks)
    dense, order = np.zeros(len(blocks) - 1, bool), np.empty(0, np.int64)
    return Partition(order, blocks, dense, np.inf, _work_in_order(rows, blocks))


@njit(cache=True, nogil=True)
def _cut_in_order(ptr, n_blocks):
    """Where blocks of equal work begin and end, by bisection; none is empty."""
    n_rows = len(ptr) - 1
    share = (ptr[n_rows] + ROW_COST * n_rows) / n_blocks
    blocks = np.zeros(n_blocks + 1, np.int64)
    n_cuts, begin = 0, 0
    for block in range(1, n_blocks + 1):
        low, high = begin, n_rows
        while low < high:
            middle = (low + high) // 2
            if block < n_blocks and ptr[middle] + ROW_COST * middle >= share * block:
                high = middle
            else:
                low = middle + 1
        n_cuts += low > begin
        blocks[n_cuts] = begin = low
    return blocks[: n_cuts + 1]


def by_metric(rows: Rows, metric: NDArray, n_blocks: int) -> Partition:
    """Sort rows by a metric, the greatest first, and cut them into blocks of equal work.

    Parameters
    ----------
    rows : Rows
        The matrix.
    metric : ndarray of shape (n_rows,)
        H, or the number of entries of each row.
    n_blocks : int
        How many blocks to make; there are fewer where single rows exceed their share.

    Returns
    -------
    Partition
        The blocks.
    """
    threshold = float(metric.mean() + metric.std() / 2) if len(metric) else np.inf
    return _sorted(rows, metric, _greatest_first(metric), threshold, n_blocks)


def _greatest_first(metric: NDArray) -> NDArray:
    """Return the order of values from the greatest on; equal ones stay as they stand."""
    most = metric.max(initial=0)
    if metric.dtype.kind == "f" or most >= 1 << 16:
        return np.argsort(-metric, kind="stable")
    # NumPy sorts numbers of 16 bits by their digits, in a tenth of the time.
    return np.argsort((most - metric).astype(np.uint16), kind="stable")


def heavy_first(rows: Rows, n_blocks: int) -> Partition:
    """Sort the rows that are dense by their entries; all others follow in their own order.

    A row counts as dense from the threshold on, if it has enough entries for a second warp.
    """
    degree = rows.lengths
    threshold = max(degree.mean() + degree.std() / 2, _WARP + 1.0) if len(degree) else np.inf
    is_heavy = degree >= threshold
    heavy = np.flatnonzero(is_heavy)
    heavy = heavy[np.argsort(-degree[heavy], kind="stable")]
    order = np.concatenate([heavy, np.flatnonzero(~is_heavy)])
    return _sorted(rows, np.where(is_heavy, degree, 0), order, threshold, n_blocks)


def _sorted(
    rows: Rows, metric: NDArray, order: NDArray, threshold: float, n_blocks: int
) -> Partition:
    work = np.append(0, np.cumsum(rows.lengths[order] + ROW_COST))
    blocks = _cut(work, n_blocks)
    mean = np.diff(np.append(0, np.cumsum(metric[order]))[blocks]) / np.diff(blocks)
    return Partition(order, blocks, mean >= threshold, threshold, np.diff(work[blocks]))


def _cut(work: NDArray, n_blocks: int) -> NDArray:
    """Return where blocks of equal work begin and end, given that before each row."""
    shares = np.linspace(0, work[-1], n_blocks + 1)[1:-1]
    return without_repeats(np.concatenate([[0], np.searchsorted(work, shares), [len(work) - 1]]))


def without_repeats(places: NDArray) -> NDArray:
    """Return places in ascending order, each once; faster than NumPy's `unique` on few."""
    places = np.sort(places)
    return places[np.append(True, places[1:] > places[:-1])]


def imbalance(work: NDArray) -> float:
    """Work of the heaviest block over the mean; 1 without blocks."""
    return float(work.max() / work.mean()) if len(work) else 1.0


def _work_in_order(rows: Rows, blocks: NDArray) -> NDArray:
    """Work of blocks of rows in their own order."""
    return np.diff(rows.ptr[blocks]) + ROW_COST * np.diff(blocks)


def equal_rows(rows: Rows, n_blocks: int) -> float:
    """Imbalance of as many blocks of equally many rows in their order: without any plan."""
    n = rows.shape[0]
    blocks = np.linspace(0, n, min(n, n_blocks) + 1).astype(np.int64)
    return imbalance(_work_in_order(rows, blocks))


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
