# SPDX-License-Identifier: BSD-3-Clause
"""The nested subgraphs of graphs, level by level, each distinct one once."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from sklearn_mgk.graphs import GraphBatch
from sklearn_mgk.graphs.columns import gather, take
from sklearn_mgk.truss.cores import core_numbers
from sklearn_mgk.truss.functions import greatest_of_each, trussness
from sklearn_mgk.truss.sources import BatchSource
from sklearn_mgk.truss.transformers import node_trussness

LOWEST = {"truss": 2, "core": 0}
"""Decompositions, and the level at which a subgraph is the whole graph."""

_UNCHANGED = -2


@dataclass(frozen=True)
class Hierarchy:
    """Subgraphs of graphs.

    Attributes
    ----------
    parts : GraphBatch
        The distinct subgraphs, those of a graph one after the other and smaller and smaller.
    levels : ndarray of shape (n_levels,), int64
        Levels at which the subgraph of some graph is another than one level below, increasing.
    part : ndarray of shape (n_levels, n_graphs), int64
        Number of the subgraph of each graph at each of these levels, -1 where it is empty.
    """

    parts: GraphBatch
    levels: NDArray
    part: NDArray

    def at(self, levels: NDArray) -> NDArray:
        """Return the subgraph of each graph at other levels, shape (len(levels), n_graphs)."""
        return self.part[np.searchsorted(self.levels, levels, side="right") - 1]


def hierarchy(batch: GraphBatch, decomposition: str, min_level: int) -> Hierarchy:
    """Cut graphs into their nested subgraphs.

    Parameters
    ----------
    batch : GraphBatch
        The graphs.
    decomposition : {"truss", "core"}
        At level k of "truss" stand the edges of trussness k or more, and their nodes; at level k
        of "core" the nodes of core number k or more, and the edges between them. The lowest level,
        2 or 0, is the graph as it is.
    min_level : int
        Level to start from.

    Returns
    -------
    Hierarchy
        The subgraphs from that level on.
    """
    of_nodes, of_edges = _numbers(batch, decomposition)
    whole = min_level <= LOWEST[decomposition]
    graph, level = _changes(batch, of_nodes, of_edges, min_level, whole)
    as_it_is = whole & (level == min_level)
    filled = as_it_is | (level <= greatest_of_each(of_nodes, batch.node_ptr)[graph])
    levels, row = np.unique(level, return_inverse=True)
    part = np.full((len(levels), len(batch)), _UNCHANGED)
    part[row, graph] = np.where(filled, np.cumsum(filled) - 1, -1)
    for below, current in pairwise(part):
        current[:] = np.where(current == _UNCHANGED, below, current)
    floor = np.where(as_it_is, np.iinfo(np.int64).min, level)
    parts = _subgraphs(batch, of_nodes, of_edges, graph[filled], floor[filled])
    return Hierarchy(parts, levels, part)


def _changes(
    batch: GraphBatch, of_nodes: NDArray, of_edges: NDArray, min_level: int, whole: bool
) -> tuple[NDArray, NDArray]:
    """Graphs and levels, sorted, at which the subgraph is another than one level below.

    A node or edge is there for the last time at its own number. The whole graph also has those
    whose number is lower than the lowest level.
    """
    last = np.concatenate([of_nodes, of_edges])
    gone = np.maximum(last, min_level) + 1 if whole else last + 1
    owner = np.concatenate([batch.node_graph, batch.edge_graph])
    counts = gone > min_level
    graphs = np.concatenate([np.arange(len(batch)), owner[counts]])
    levels = np.concatenate([np.full(len(batch), min_level), gone[counts]])
    span = int(levels.max()) + 1
    return np.divmod(np.unique(graphs * span + levels), span)


def _numbers(batch: GraphBatch, decomposition: str) -> tuple[NDArray, NDArray]:
    """Greatest level of each node and each edge."""
    if decomposition == "truss":
        of_edges = trussness(batch)
        return node_trussness(batch, of_edges), of_edges
    of_nodes = core_numbers(BatchSource(batch).edges)
    ends = batch.edge_index + batch.node_ptr[batch.edge_graph]
    return of_nodes, of_nodes[ends].min(axis=0)


def _subgraphs(
    batch: GraphBatch, of_nodes: NDArray, of_edges: NDArray, graph: NDArray, floor: NDArray
) -> GraphBatch:
    """For each graph chosen, its nodes and edges with a number of ``floor`` or more."""
    whole = batch.take(graph)
    keep_node = of_nodes[gather(batch.node_ptr, graph)[0]] >= floor[whole.node_graph]
    keep_edge = of_edges[gather(batch.edge_ptr, graph)[0]] >= floor[whole.edge_graph]
    nodes, edges = np.flatnonzero(keep_node), np.flatnonzero(keep_edge)
    before = np.concatenate([[0], np.cumsum(keep_node)])
    first_kept = before[whole.node_ptr]
    ends = (
        before[whole.edge_index + whole.node_ptr[whole.edge_graph]] - first_kept[whole.edge_graph]
    )
    return GraphBatch(
        node_ptr=first_kept,
        edge_ptr=np.concatenate([[0], np.cumsum(keep_edge)])[whole.edge_ptr],
        edge_index=ends[:, edges],
        edge_weight=whole.edge_weight[edges],
        nodes={name: take(column, nodes) for name, column in whole.nodes.items()},
        edges={name: take(column, edges) for name, column in whole.edges.items()},
        unusable_nodes=whole.unusable_nodes,
        unusable_edges=whole.unusable_edges,
    )
