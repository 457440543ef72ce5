# SPDX-License-Identifier: BSD-3-Clause
"""Core numbers: the greatest k such that a node has k neighbors that have it too."""

from __future__ import annotations

import numpy as np
from numba import njit
from numpy.typing import NDArray

from sklearn_mgk.truss.edges import EdgeSet, node_degrees


def core_numbers(edges: EdgeSet) -> NDArray:
    """Return the core number of each node.

    Parameters
    ----------
    edges : EdgeSet
        The graphs.

    Returns
    -------
    ndarray of shape (n_nodes,), int64
        Core numbers, 0 for nodes without edges.

    References
    ----------
    .. [1] V. Batagelj, M. Zaversnik, "Fast algorithms for determining (generalized) core groups in
       social networks", Adv. Data Anal. Classif. 5, 129, 2011.
       https://doi.org/10.1007/s11634-010-0079-y
    """
    degree = node_degrees(edges)
    ptr = np.concatenate([[0], np.cumsum(degree)])
    _peel_nodes(ptr, _neighbors(ptr, edges.low, edges.high), degree)
    return degree


@njit(cache=True, nogil=True)
def _neighbors(ptr, low, high):
    put = ptr[:-1].copy()
    neighbors = np.empty(2 * len(low), low.dtype)
    for e in range(len(low)):
        a, b = low[e], high[e]
        neighbors[put[a]], neighbors[put[b]] = b, a
        put[a] += 1
        put[b] += 1
    return neighbors


@njit(cache=True, nogil=True)
def _peel_nodes(ptr, neighbors, core):
    """Take the nodes away by increasing degree; ``core`` comes as degrees and is overwritten."""
    n = len(core)
    if n == 0:
        return
    start = np.zeros(core.max() + 2, np.int64)
    for i in range(n):
        start[core[i] + 1] += 1
    for d in range(len(start) - 1):
        start[d + 1] += start[d]
    nodes, place, put = np.empty(n, np.int64), np.empty(n, np.int64), start.copy()
    for i in range(n):
        place[i] = put[core[i]]
        nodes[place[i]] = i
        put[core[i]] += 1
    for x in range(n):
        i = nodes[x]
        start[core[i]] = x + 1
        for p in range(ptr[i], ptr[i + 1]):
            j = neighbors[p]
            if core[j] > core[i]:
                # Swap j to the front of its bucket, then move the border of the bucket past it.
                d = core[j]
                start[d] = max(start[d], x + 1)
                front = nodes[start[d]]
                nodes[place[j]], nodes[start[d]] = front, j
                place[front], place[j] = place[j], start[d]
                start[d] += 1
                core[j] -= 1
