# SPDX-License-Identifier: BSD-3-Clause
"""The pattern of all adjacency matrices of a batch as one block-diagonal matrix."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from sklearn_mgk.graphs import GraphBatch

SIDE = 8
"""Nodes of a part: rows and columns of a tile."""


def adjacency(batch: GraphBatch) -> sparse.csr_matrix:
    """Return the pattern, symmetric, parallel edges joined, self-loops kept, all values 1."""
    edge = np.flatnonzero(batch.edge_weight > 0)
    first, second = batch.edge_index[:, edge] + batch.node_ptr[batch.edge_graph[edge]]
    back = first != second
    rows = np.concatenate([first, second[back]])
    columns = np.concatenate([second, first[back]])
    shape = (batch.n_nodes, batch.n_nodes)
    matrix = sparse.csr_matrix((np.ones(len(rows), np.int32), (rows, columns)), shape)
    matrix.sum_duplicates()
    matrix.data[:] = 1
    return matrix


def count_tiles(
    batch: GraphBatch, matrix: sparse.csr_matrix, order: NDArray[np.int64]
) -> NDArray[np.int64]:
    """Count the non-empty tiles of each graph under an order of the rows of the batch."""
    place = np.empty_like(order)
    place[order] = np.arange(len(order)) - np.repeat(batch.node_ptr[:-1], batch.sizes)
    graph = np.repeat(batch.node_graph, np.diff(matrix.indptr))
    n_blocks = -(-batch.sizes // SIDE)
    last = np.cumsum(n_blocks**2)
    row = np.repeat(place, np.diff(matrix.indptr)) // SIDE
    tile = (last - n_blocks**2)[graph] + row * n_blocks[graph] + place[matrix.indices] // SIDE
    return np.bincount(np.searchsorted(last, np.unique(tile), side="right"), minlength=len(batch))
