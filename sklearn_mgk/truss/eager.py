# SPDX-License-Identifier: BSD-3-Clause
"""The k-truss by prune and repeat, and the greatest k by search."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np
from numba import njit
from numpy.typing import NDArray

from sklearn_mgk.truss.cores import core_numbers
from sklearn_mgk.truss.edges import EdgeSet, Rows, make_rows
from sklearn_mgk.truss.support import row_support


def k_truss_edges(
    edges: EdgeSet, k: int, granularity: str = "coarse", order: str = "degree"
) -> NDArray:
    """Find the edges of the k-truss.

    Parameters
    ----------
    edges : EdgeSet
        The graphs.
    k : int
        At least 2. Each edge of the result lies in k - 2 triangles of the result.
    granularity : {"fine", "coarse"}, default="coarse"
        Whether a task is a non-zero or a row.
    order : {"degree", "natural"}, default="degree"
        How nodes are numbered.

    Returns
    -------
    ndarray of shape (n_edges,), bool
        Whether each edge remains.
    """
    return within_core(edges, k, partial(prune_and_repeat, granularity=granularity, order=order))


def within_core(edges: EdgeSet, k: int, find: Callable[[EdgeSet, int], NDArray]) -> NDArray:
    """Call ``find`` on the edges that the k-truss can have at all; returns the mask of the result.

    A node of a k-truss has k - 1 neighbors there, so all of it lies in the (k - 1)-core. The rest
    goes before any triangle is counted. For k = 3 that would be nodes of one edge: not worth it.
    """
    if k == 2:
        return np.ones(edges.n_edges, bool)
    if k == 3:
        return find(edges, k)
    keep = _core(edges, core_numbers(edges), k)
    keep[keep] = find(edges.subset(keep), k)
    return keep


def _core(edges: EdgeSet, cores: NDArray, k: int) -> NDArray:
    """Mask of the edges with both ends in the (k - 1)-core."""
    inside = cores >= k - 1
    return inside[edges.low] & inside[edges.high]


def prune_and_repeat(edges: EdgeSet, k: int, granularity: str, order: str = "degree") -> NDArray:
    """Mask of the k-truss: count the support, drop the edges with less than k - 2, again."""
    rows = make_rows(edges, order)
    prune_rows(rows, edges.n_edges, k, granularity)
    left = np.zeros(edges.n_edges, bool)
    left[rows.edge[rows.columns != 0]] = True
    return left


def prune_rows(rows: Rows, n_edges: int, k: int, granularity: str) -> int:
    """Take the edges outside of the k-truss off the rows, and return how many are left."""
    n_left, settled = n_edges, False
    while n_left and not settled:
        n_before = n_left
        support = row_support(rows, granularity)
        n_left = prune(rows.ptr, rows.columns, rows.edge, support, k - 2)
        # An edge in no triangle takes none from others: the first pass settles k = 3.
        settled = n_left == n_before or k == 3
    return n_left


@njit(cache=True, nogil=True)
def prune(ptr, columns, edge, support, needed):
    """Drop the edges with too little support; each row moves left and is filled up with zeros."""
    n_left = 0
    for i in range(len(ptr) - 1):
        p = put = np.int64(ptr[i])
        while columns[p] != 0:
            if support[p] >= needed:
                columns[put], edge[put] = columns[p], edge[p]
                put += 1
            p += 1
        n_left += put - ptr[i]
        columns[put:p] = 0
    return n_left


def greatest_k(
    edges: EdgeSet,
    find: Callable[[EdgeSet, int], NDArray],
    peel: Callable[[EdgeSet], NDArray],
) -> int:
    """Greatest k whose k-truss has an edge, over all graphs together; 0 without edges.

    Parameters
    ----------
    edges : EdgeSet
        The graphs.
    find : callable
        ``find(edges, k)`` returns the mask of the k-truss.
    peel : callable
        ``peel(edges)`` returns the trussness of each edge.

    Returns
    -------
    int
        The greatest k.

    Notes
    -----
    The densest core of all is small; it is peeled, and the greatest trussness k in it is a first
    bound. A (k + 1)-truss lies within the k-core. Mostly there is none, as one search tells; else
    what was found is peeled.
    """
    if edges.n_edges == 0:
        return 0
    cores = core_numbers(edges)
    k = int(peel(edges.subset(_core(edges, cores, int(cores.max()) + 1))).max())
    part = edges.subset(_core(edges, cores, k + 1))
    truss = find(part, k + 1)
    return int(peel(part.subset(truss)).max()) if truss.any() else k
