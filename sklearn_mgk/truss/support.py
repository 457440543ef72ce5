# SPDX-License-Identifier: BSD-3-Clause
"""Support of edges by eager updates: a triangle, once found, counts for its three edges at once.

With the rows of the upper triangular adjacency matrix A, and node i split off,

    s12 += a12 o (A22 a12 + A22' a12),    S22 += (a12 a12') o A22

(o is the product entry by entry, ' the transpose): for a column k of row i, each column j that row
k shares with the rest of row i closes a triangle (i, k, j). It is found from its two lowest nodes,
that is once. A *coarse* task is a row i, a *fine* task a non-zero (i, k) [1]_.

References
----------
.. [1] M. P. Blanco, T. M. Low, K. Kim, "Exploration of fine-grained parallelism for load balancing
   eager k-truss on GPU and CPU", HPEC 2019. https://doi.org/10.48550/arXiv.2009.07929
"""

from __future__ import annotations

import numpy as np
from numba import njit
from numpy.typing import NDArray

from sklearn_mgk.atomic import atomic_add
from sklearn_mgk.threads import n_threads, run
from sklearn_mgk.truss.edges import Rows

GRANULARITIES = ("fine", "coarse")

_MOST_PRIVATE = 2**26  # entries of the counters that threads have for themselves: 256 MB at most
_CHUNK = {"coarse": 128, "fine": 1024}


def row_support(rows: Rows, granularity: str = "coarse") -> NDArray:
    """Count the triangles on each edge.

    Parameters
    ----------
    rows : Rows
        The graphs.
    granularity : {"fine", "coarse"}, default="coarse"
        Whether a task is a non-zero or a row.

    Returns
    -------
    ndarray of shape (n_edges + n_nodes,), int32 or int64
        Triangles on the edge at each place of the rows, 0 where there is none.
    """
    n_slots = len(rows.columns)
    threads = n_threads(n_slots)
    # Each thread counts for itself, and the counts are added, where memory allows. Atomic
    # increments of one counter give the same integers and take up to twice as long.
    shared = threads > 1 and threads * n_slots > _MOST_PRIVATE
    counts = np.zeros((1 if shared else threads, n_slots), rows.columns.dtype)
    function = _coarse if granularity == "coarse" else _fine

    def work(thread, counter):
        own = counts[0 if shared else thread]
        function(rows.ptr, rows.columns, own, shared, counter, _CHUNK[granularity])

    run(work, threads)
    return counts[0] if len(counts) == 1 else counts.sum(axis=0, dtype=counts.dtype)


@njit(cache=True, nogil=True)
def _coarse(ptr, columns, support, shared, counter, chunk):
    """Mark the columns of row i with their places, and look up those of each row k."""
    n = len(ptr) - 1
    place = np.full(n + 1, -1, ptr.dtype)
    while True:
        begin = atomic_add(counter, 0, chunk)
        if begin >= n:
            return
        for i in range(begin, min(begin + chunk, n)):
            p = ptr[i]
            if columns[p] == 0 or columns[p + 1] == 0:
                continue  # no two neighbors above
            while columns[p] != 0:
                place[columns[p]] = p
                p += 1
            _outer_product(ptr, columns, support, shared, place, i)
            p = ptr[i]
            while columns[p] != 0:
                place[columns[p]] = -1
                p += 1


@njit(cache=True, nogil=True)
def _outer_product(ptr, columns, support, shared, place, i):
    """Both update rules for row i, whose columns are marked in ``place``."""
    p = ptr[i]
    while columns[p] != 0:
        q = ptr[columns[p] - 1]
        found = 0
        while columns[q] != 0:
            r = place[columns[q]]
            if r >= 0:
                found += 1
                _count(support, r, 1, shared)
                _count(support, q, 1, shared)
            q += 1
        if found:
            _count(support, p, found, shared)
        p += 1


@njit(cache=True, nogil=True, inline="always")
def _count(support, place, number, shared):
    if shared:
        atomic_add(support, place, number)
    else:
        support[place] += number


@njit(cache=True, nogil=True)
def _fine(ptr, columns, support, shared, counter, chunk):
    """Merge the rest of row i behind place p with the row of the column at p."""
    n = len(columns)
    while True:
        begin = atomic_add(counter, 0, chunk)
        if begin >= n:
            return
        for p in range(begin, min(begin + chunk, n)):
            if columns[p] == 0:
                continue
            found, r, q = 0, np.int64(p) + 1, np.int64(ptr[columns[p] - 1])
            j, k = columns[r], columns[q]
            while j != 0 and k != 0:
                if j == k:
                    found += 1
                    _count(support, r, 1, shared)
                    _count(support, q, 1, shared)
                # Both steps at once and without a branch, which would be guessed wrong often.
                r += j <= k
                q += k <= j
                j, k = columns[r], columns[q]
            if found:
                _count(support, p, found, shared)
