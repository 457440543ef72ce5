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
from functools import cached_property
from typing import Any

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
class Runs:
    """Numbers of entries of the rows in an order, as runs of equal ones.

    Either the greatest come first, or each row is a run of its own: `most` relies on that.

    Attributes
    ----------
    lengths : ndarray of shape (n_runs,), int64
        Entries of each row of a run.
    ends : ndarray of shape (n_runs + 1,), int64
        Where each run begins in the order, and the number of rows.
    """

    lengths: NDArray
    ends: NDArray

    @cached_property
    def work(self) -> NDArray:
        """Work up to each run, from 0 on."""
        return np.append(0, np.cumsum((self.lengths + ROW_COST) * np.diff(self.ends)))

    def run_of(self, places: NDArray) -> NDArray:
        """Return the run that each place of the order lies in."""
        return np.searchsorted(self.ends, places, side="right") - 1

    def work_of(self, blocks: NDArray) -> NDArray:
        """Return the work of each block."""
        run = np.minimum(self.run_of(blocks), max(len(self.lengths) - 1, 0))
        each = np.append(self.lengths, 0)[run] + ROW_COST
        return np.diff(self.work[run] + each * (blocks - self.ends[run]))

    def cut(self, n_blocks: int) -> NDArray:
        """Return where blocks of equal work begin and end; none is empty."""
        shares = np.linspace(0, self.work[-1], n_blocks + 1)[1:-1] if len(self.lengths) else []
        run = np.searchsorted(self.work, shares) - 1
        each = self.lengths[run] + ROW_COST
        inner = self.ends[run] + np.ceil((shares - self.work[run]) / each).astype(np.int64)
        return without_repeats(np.concatenate([[0], inner, self.ends[-1:]]))

    def longer_than(self, n: int) -> tuple[NDArray, NDArray]:
        """Return the places of rows with more entries, and their numbers of entries."""
        runs = np.flatnonzero(self.lengths > n)
        if len(runs) == 0:
            return runs, runs
        count = np.diff(self.ends)[runs]
        begin = self.ends[runs] - np.cumsum(count) + count
        return np.repeat(begin, count) + np.arange(count.sum()), np.repeat(
            self.lengths[runs], count
        )

    def most(self, begins: NDArray) -> NDArray:
        """Return the largest number of entries from each place to the next."""
        return np.maximum.reduceat(self.lengths, self.run_of(begins))


class Degrees:
    """Numbers of entries of all rows, counted and sorted by the library that holds them.

    Parameters
    ----------
    xp : module
        NumPy or CuPy: sorting a million rows is work for the device.
    lengths : array of shape (n_rows,) of xp
        Entries of each row.
    """

    def __init__(self, xp: Any, lengths: Any):
        self.xp = xp
        self.lengths = lengths

    @cached_property
    def counts(self) -> NDArray:
        """How many rows have 0, 1, 2... entries, on the host."""
        counts = self.xp.bincount(self.lengths)
        return counts if self.xp is np else self.xp.asnumpy(counts)

    @cached_property
    def mean_and_deviation(self) -> tuple[float, float]:
        """Mean and standard deviation; 0 without rows."""
        n, values = max(self.counts.sum(), 1), np.arange(len(self.counts))
        mean = self.counts @ values / n
        return float(mean), float(np.sqrt(self.counts @ (values - mean) ** 2 / n))

    @property
    def most(self) -> int:
        """The largest of them, 0 without rows."""
        return max(len(self.counts) - 1, 0)

    def order(self) -> Any:
        """Return the rows, those of most entries first, and others as they stood."""
        key = self.most - self.lengths
        # NumPy sorts numbers of 16 bits by their digits, in a tenth of the time.
        key = key.astype(np.uint16) if self.most < 1 << 16 else key
        return self.xp.argsort(key, kind="stable")

    def runs(self) -> Runs:
        """Return the numbers in this order."""
        lengths = np.flatnonzero(self.counts)[::-1]
        return Runs(lengths, np.append(0, np.cumsum(self.counts[lengths])))


@dataclass(frozen=True)
class Partition:
    """Rows in an order, cut into blocks.

    Attributes
    ----------
    order : array of shape (n_rows,) or (0,), of integers
        Rows as they follow each other; without entries they follow in their own order.
    runs : Runs or None
        Numbers of entries in this order; None where rows follow in their own.
    blocks : ndarray of shape (n_blocks + 1,), int64
        Where each block begins in this order.
    dense : ndarray of shape (n_blocks,), bool
        Whether the mean of H over a block reaches the threshold.
    threshold : float
        Mean and half a standard deviation of H over all rows; infinite where there is no metric.
    imbalance : float
        Work of the heaviest block over the mean.
    """

    order: Any
    runs: Runs | None
    blocks: NDArray
    dense: NDArray
    threshold: float
    imbalance: float


def in_order(rows: Rows, n_blocks: int) -> Partition:
    """Cut the rows as they are into blocks of equal work."""
    blocks = _cut_in_order(rows.ptr, n_blocks)
    dense = np.zeros(len(blocks) - 1, bool)
    return Partition(np.empty(0, np.int64), None, blocks, dense, np.inf, _imbalance(rows, blocks))


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


def by_degree(degrees: Degrees, n_blocks: int) -> Partition:
    """Sort rows by their entries, the most first, and cut them into blocks of equal work.

    Parameters
    ----------
    degrees : Degrees
        Numbers of entries.
    n_blocks : int
        How many blocks to make; there are fewer where single rows exceed their share.

    Returns
    -------
    Partition
        The blocks; its order is an array of the library of `degrees`.
    """
    mean, deviation = degrees.mean_and_deviation
    runs, threshold = degrees.runs(), mean + deviation / 2 if len(degrees.lengths) else np.inf
    blocks = runs.cut(n_blocks)
    work = runs.work_of(blocks)
    dense = work / np.diff(blocks) - ROW_COST >= threshold
    return Partition(degrees.order(), runs, blocks, dense, threshold, imbalance(work))


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
    return _sorted(rows, metric, np.argsort(-metric, kind="stable"), threshold, n_blocks)


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
    runs = Runs(rows.lengths[order], np.arange(len(order) + 1))
    blocks = runs.cut(n_blocks)
    mean = np.diff(np.append(0, np.cumsum(metric[order]))[blocks]) / np.diff(blocks)
    balance = imbalance(runs.work_of(blocks))
    return Partition(order, runs, blocks, mean >= threshold, threshold, balance)


def without_repeats(places: NDArray) -> NDArray:
    """Return places in ascending order, each once; faster than NumPy's `unique` on few."""
    places = np.sort(places)
    return places[np.append(True, places[1:] > places[:-1])]


def imbalance(work: NDArray) -> float:
    """Work of the heaviest block over the mean; 1 without blocks."""
    return float(work.max() / work.mean()) if len(work) else 1.0


def _imbalance(rows: Rows, blocks: NDArray) -> float:
    """Imbalance of blocks of rows in their own order."""
    return imbalance(np.diff(rows.ptr[blocks]) + ROW_COST * np.diff(blocks))


def equal_rows(rows: Rows, n_blocks: int) -> float:
    """Imbalance of as many blocks of equally many rows in their order: without any plan."""
    n = rows.shape[0]
    return _imbalance(rows, np.linspace(0, n, min(n, n_blocks) + 1).astype(np.int64))


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
