# SPDX-License-Identifier: BSD-3-Clause
"""Edges of a batch seen from both ends: the one reading of topology that all solvers share."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

import numpy as np
from numpy.typing import NDArray

from sklearn_mgk.graphs import GraphBatch


@dataclass(frozen=True)
class Topology:
    """Directed entries of the adjacency matrices of a batch; edges of weight zero are left out.

    An undirected edge gives two entries, a self-loop one, parallel edges one pair each.

    Attributes
    ----------
    source, target : ndarray of shape (n_entries,), int64
        Rows of the batch's node columns (not local to the graph).
    edge : ndarray of shape (n_entries,), int64
        Row of the batch's edge columns.
    weight : ndarray of shape (n_entries,), float64
        Edge weight.
    graph : ndarray of shape (n_entries,), int64
        Graph number.
    weight_sum : ndarray of shape (n_nodes,), float64
        ``sum_j A_ij`` of each node.
    """

    source: NDArray
    target: NDArray
    edge: NDArray
    weight: NDArray
    graph: NDArray
    weight_sum: NDArray


def topology(batch: GraphBatch) -> Topology:
    """Expand the undirected edges of a batch into directed entries, once a batch."""
    return batch.cached("topology", partial(_expand, batch))


def _expand(batch: GraphBatch) -> Topology:
    edge = np.flatnonzero(batch.edge_weight > 0)
    graph = batch.edge_graph[edge]
    first, second = batch.edge_index[:, edge] + batch.node_ptr[graph]
    back = np.flatnonzero(first != second)
    entries = np.concatenate([edge, edge[back]])
    source = np.concatenate([first, second[back]])
    weight = batch.edge_weight[entries]
    return Topology(
        source=source,
        target=np.concatenate([second, first[back]]),
        edge=entries,
        weight=weight,
        graph=batch.edge_graph[entries],
        weight_sum=np.bincount(source, weights=weight, minlength=batch.n_nodes),
    )
