# SPDX-License-Identifier: BSD-3-Clause
"""Partition-based order: parts of exactly 8 nodes with edges between as few parts as possible.

Two parts with an edge between them are two non-empty tiles, whatever the order within a part. So
the order is a partition into parts of 8 (the last may be smaller), found in three steps:

1. Starts: the order as given, reverse Cuthill-McKee, and recursive bisection by METIS. METIS
   minimises the number of edges cut, and its parts may hold 7 or 9 nodes: they are put end to end
   and cut anew after every 8.
2. Of these, the one with the fewest tiles, graph by graph.
3. `refine`: swaps with the number of tiles as objective. It never ends above its start.

References
----------
.. [1] Y.-H. Tang, O. Selvitopi, D. T. Popovici, A. Buluç, "A high-throughput solver for
   marginalized graph kernels on GPU", IPDPS 2020. https://doi.org/10.1109/IPDPS47924.2020.00080
.. [2] G. Karypis, V. Kumar, "A fast and high quality multilevel scheme for partitioning irregular
   graphs", SIAM J. Sci. Comput. 20 (1998). https://doi.org/10.1137/S1064827595287997
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from types import ModuleType

import numba
import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.sparse.csgraph import connected_components, reverse_cuthill_mckee

from sklearn_mgk.graphs import GraphBatch
from sklearn_mgk.reorder.adjacency import SIDE, count_tiles
from sklearn_mgk.reorder.refine import SCORE, Pattern, refine

_METIS_FROM = 64  # nodes; below, refinement ends no better from this start
_REFINE_TO = 65_536  # nodes; above, the table of all pairs of parts would take more than 64 MB
_TASK_COST = 1e6  # entries of matrices, times sweeps, of one task: about 50 ms


def partition(
    batch: GraphBatch, matrix: sparse.csr_matrix, seed: int, n_sweeps: int
) -> NDArray[np.int64]:
    """Return the rows of the batch's node columns in an order with few non-empty tiles.

    Parameters
    ----------
    batch : GraphBatch
        The graphs.
    matrix : csr_matrix of shape (n_nodes, n_nodes)
        Pattern of their adjacency matrices.
    seed : int
        Of METIS and of the swaps.
    n_sweeps : int
        Swaps tried, for each node.

    Returns
    -------
    ndarray of shape (n_nodes,), int64
        The rows of the first graph, then those of the second, and so on.

    Raises
    ------
    ImportError
        pymetis is not installed.
    """
    pymetis = import_pymetis()
    natural = np.arange(batch.n_nodes)
    starts = [natural, cuthill_mckee(batch, matrix), _bisect(pymetis, batch, matrix, seed)]
    tiles = np.stack([count_tiles(batch, matrix, start) for start in starts])
    choice = tiles.argmin(axis=0)[batch.node_graph]
    order = np.choose(choice, starts)
    _refine(batch, matrix, order, seed, n_sweeps)
    place = np.arange(batch.n_nodes) - np.repeat(batch.node_ptr[:-1], batch.sizes)
    # Within a part the order is free: that of the batch.
    return order[np.lexsort((order, place // SIDE, batch.node_graph))]


def cuthill_mckee(batch: GraphBatch, matrix: sparse.csr_matrix) -> NDArray[np.int64]:
    """Return the rows of the batch in reverse Cuthill-McKee order, graph by graph."""
    order = reverse_cuthill_mckee(matrix, symmetric_mode=True).astype(np.int64)
    return order[np.argsort(batch.node_graph[order], kind="stable")]


def import_pymetis() -> ModuleType:
    """Return pymetis, or say how to install it."""
    try:
        import pymetis
    except ImportError:
        raise ImportError(
            "the order 'partition' needs pymetis: pip install 'sklearn-mgk[reordering]', or choose "
            "method='rcm'"
        ) from None
    return pymetis


def _bisect(
    pymetis: ModuleType, batch: GraphBatch, matrix: sparse.csr_matrix, seed: int
) -> NDArray[np.int64]:
    """Return an order by recursive bisection of the larger graphs that have a cycle."""
    order = np.arange(batch.n_nodes)
    for g in np.flatnonzero((batch.sizes > _METIS_FROM) & _has_cycle(batch, matrix)):
        own = slice(*batch.node_ptr[g : g + 2])
        block = matrix[own, own]
        block.setdiag(0)
        block.eliminate_zeros()
        _, part = pymetis.part_graph(
            -(-block.shape[0] // SIDE),
            pymetis.CSRAdjacency(block.indptr, block.indices),
            recursive=True,
            options=pymetis.Options(seed=seed % 2**31),
        )
        order[own] = own.start + np.argsort(part, kind="stable")
    return order


def _has_cycle(batch: GraphBatch, matrix: sparse.csr_matrix) -> NDArray[np.bool_]:
    """Return whether each graph has a cycle: more edges than nodes less components."""
    _, component = connected_components(matrix, directed=False)
    _, first = np.unique(component, return_index=True)
    n_components = np.bincount(batch.node_graph[first], minlength=len(batch))
    degree = np.diff(matrix.indptr) - matrix.diagonal()
    n_edges = np.add.reduceat(degree, batch.node_ptr[:-1]) // 2
    return n_edges > batch.sizes - n_components


def _refine(
    batch: GraphBatch, matrix: sparse.csr_matrix, order: NDArray, seed: int, n_sweeps: int
) -> None:
    """Refine the orders of all graphs of more than one part in place, on all cores."""
    pattern = Pattern(
        matrix.indptr.astype(np.int64), matrix.indices.astype(np.int64), batch.node_ptr
    )
    cost = np.diff(pattern.ptr[batch.node_ptr]) + batch.sizes
    graphs = np.flatnonzero((batch.sizes > SIDE) & (batch.sizes <= _REFINE_TO))
    graphs = graphs[np.argsort(-cost[graphs], kind="stable")]
    number = np.cumsum(cost[graphs] * n_sweeps) // _TASK_COST
    tasks = np.split(graphs, np.flatnonzero(np.diff(number)) + 1)

    def run(task: NDArray) -> None:
        refine(pattern, task, order, n_sweeps, seed, SCORE)

    pool = ThreadPoolExecutor(numba.config.NUMBA_NUM_THREADS)
    try:
        for _ in pool.map(run, tasks):
            pass
    finally:
        pool.shutdown(cancel_futures=True)
