# SPDX-License-Identifier: BSD-3-Clause
"""Arrangement of graphs that the CPU solver's loops run over.

In a pair (G, G') the solution is a matrix with a row for each node of G and a column for each node
of G'. The two graphs are read in two forms, and every graph is arranged in both:

- as *rows*: the edges that leave node j, grouped by label. One group costs one sparse product with
  row j and one addition of a whole row for each of its members;
- as *columns*: all entries of A': a plane with the first entry of each node, one with the second
  (nodes of molecules rarely have more), and the rest, ordered so that successive entries write to
  different nodes.

The nodes of a bipartite graph are sorted by colour: red nodes have black neighbours only. Then the
black half of the system is eliminated exactly, which halves the iterations (see `pcg`).

Index arrays are unsigned, because numba tests signed ones for negative values in the inner loops.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_matrix
from scipy.sparse.csgraph import connected_components

from sklearn_mgk.graphs import GraphBatch
from sklearn_mgk.solver.topology import Topology

SLOTS = 2
"""Planes of the columns form: entries of each node that have a fixed place."""


class Order(NamedTuple):
    """Node order: position k of the batch holds node ``node[k]``; red nodes come first."""

    ptr: NDArray  # (n_graphs + 1,) uint64: positions of each graph
    node: NDArray  # (n_nodes,) int64: node at each position
    local: NDArray  # (n_nodes,) uint64: the same, counted within its graph
    position: NDArray  # (n_nodes,) int64: position of each node, within its graph
    n_red: NDArray  # (n_graphs,) uint64: red nodes; all nodes where the graph is not bipartite


class Rows(NamedTuple):
    """The rows form: groups of edges that leave one node and bear one label."""

    group_ptr: NDArray  # (n_nodes + 1,) uint64: groups of the node at each position
    group_label: NDArray  # (n_groups,) uint64: number among the labels of its graph
    member_ptr: NDArray  # (n_groups + 1,) uint64
    member: NDArray  # (n_entries,) uint64: position of the other end, within the graph
    weight: NDArray  # (n_entries,) float
    label_ptr: NDArray  # (n_graphs + 1,) uint64
    label: NDArray  # (n_distinct,) uint64: codes of the labels that occur in each graph
    has_loop: NDArray  # (n_graphs,) bool


class Columns(NamedTuple):
    """The columns form: entries of A', ``SLOTS`` planes of one for each node, then the rest."""

    ptr: NDArray  # (n_graphs + 1,) uint64
    target: NDArray  # (n_slots,) uint64: node that receives
    source: NDArray  # (n_slots,) uint64: node that is read
    label: NDArray  # (n_slots,) uint64
    weight: NDArray  # (n_slots,) float, 0 in slots that hold no entry


def _two_colours(batch: GraphBatch) -> tuple[NDArray, NDArray]:
    """Colour each graph with two colours; says for each graph whether that is possible.

    Every node has two copies, and an edge joins copies of two kinds. A graph has no two colours if
    the copies of one node are connected; otherwise the copies connected to the first copy of the
    first node tell the colours.
    """
    n, is_edge = batch.n_nodes, batch.edge_weight > 0
    i, j = batch.edge_index[:, is_edge] + batch.node_ptr[batch.edge_graph[is_edge]]
    ends = np.concatenate([i, i + n]).astype(np.int32), np.concatenate([j + n, j]).astype(np.int32)
    links = csr_matrix((np.ones(2 * len(i)), ends), (2 * n, 2 * n))
    part = connected_components(links, directed=False)[1]
    odd = part[:n] == part[n:]
    bipartite = np.bincount(batch.node_graph, weights=odd, minlength=len(batch)) == 0
    # Parts are numbered in the order of their first copies.
    return (part[:n] > part[n:]).astype(np.int64), bipartite


def colour_order(batch: GraphBatch) -> Order:
    """Sort the nodes of each bipartite graph by colour, the larger class first; keep the others."""
    colour, bipartite = _two_colours(batch)
    graph = batch.node_graph
    n_second = np.bincount(graph, weights=colour, minlength=len(batch)).astype(np.int64)
    flip = n_second > batch.sizes - n_second
    colour = np.where(bipartite[graph], colour ^ flip[graph], 0)
    node = np.argsort(2 * graph + colour, kind="stable")
    position = inverse_of(node) - batch.node_ptr[graph]
    n_black = np.bincount(graph, weights=colour, minlength=len(batch)).astype(np.int64)
    local = node - batch.node_ptr[graph]
    return Order(
        _index(batch.node_ptr), node, _index(local), position, _index(batch.sizes - n_black)
    )


def plain_order(batch: GraphBatch) -> Order:
    """Keep the nodes as they are, and eliminate none."""
    node = np.arange(batch.n_nodes)
    local = node - batch.node_ptr[batch.node_graph]
    return Order(_index(batch.node_ptr), node, _index(local), local, _index(batch.sizes))


def rows_form(
    batch: GraphBatch, topology: Topology, order: Order, codes: NDArray, dtype: np.dtype
) -> Rows:
    """Group the entries of each source node by label; ``codes`` numbers the label of each edge."""
    label = codes[topology.edge].astype(np.int64)
    position = order.position[topology.source] + batch.node_ptr[topology.graph]
    target = order.position[topology.target]
    sort = np.lexsort((target, label, position))
    position, label, target = position[sort], label[sort], target[sort]
    graph = topology.graph[sort]
    starts = np.ones(len(label), bool)
    starts[1:] = (position[1:] != position[:-1]) | (label[1:] != label[:-1])
    first = np.flatnonzero(starts)
    label_ptr, distinct, number = _labels_by_graph(graph[first], label[first], len(batch))
    loops = topology.graph[topology.source == topology.target]
    return Rows(
        group_ptr=_index(_pointers(position[first], batch.n_nodes)),
        group_label=_index(number),
        member_ptr=_index(np.append(first, len(label))),
        member=_index(target),
        weight=topology.weight[sort].astype(dtype),
        label_ptr=_index(label_ptr),
        label=_index(distinct),
        has_loop=np.bincount(loops, minlength=len(batch)) > 0,
    )


def columns_form(
    batch: GraphBatch, topology: Topology, order: Order, codes: NDArray, dtype: np.dtype
) -> Columns:
    """Lay out the entries of each graph by slot."""
    target = order.position[topology.target]
    row = target + batch.node_ptr[topology.graph]
    sort = np.argsort(row, kind="stable")
    row, target, graph = row[sort], target[sort], topology.graph[sort]
    slot = np.arange(len(row)) - _pointers(row, batch.n_nodes)[row]
    spare = np.flatnonzero(slot >= SLOTS)
    ptr = SLOTS * batch.node_ptr + _pointers(graph[spare], len(batch))
    place = ptr[graph] + slot * batch.sizes[graph] + target
    spare = spare[np.lexsort((target[spare], slot[spare], graph[spare]))]
    spare_rank = np.arange(len(spare)) - _pointers(graph[spare], len(batch))[graph[spare]]
    place[spare] = ptr[graph[spare]] + SLOTS * batch.sizes[graph[spare]] + spare_rank
    return Columns(
        ptr=_index(ptr),
        target=_index(_scatter(target, place, ptr[-1])),
        source=_index(_scatter(order.position[topology.source][sort], place, ptr[-1])),
        label=_index(_scatter(codes[topology.edge][sort], place, ptr[-1])),
        weight=_scatter(topology.weight[sort], place, ptr[-1]).astype(dtype),
    )


def inverse_of(order: NDArray) -> NDArray:
    """Return the inverse of a permutation."""
    inverse = np.empty_like(order)
    inverse[order] = np.arange(len(order))
    return inverse


def _labels_by_graph(graph, label, n_graphs):
    """Distinct labels of each graph (ptr, codes), and the number of each given label among them."""
    span = int(label.max(initial=0)) + 1
    distinct, inverse = np.unique(graph * span + label, return_inverse=True)
    ptr = _pointers(distinct // span, n_graphs)
    return ptr, distinct % span, inverse - ptr[graph]


def _pointers(owner: NDArray, n: int) -> NDArray:
    """Start of each owner's run in a list sorted by owner, and the end."""
    return np.concatenate([[0], np.cumsum(np.bincount(owner, minlength=n))])


def _scatter(values: NDArray, place: NDArray, size: int) -> NDArray:
    out = np.zeros(size, values.dtype)
    out[place] = values
    return out


def _index(values: NDArray) -> NDArray:
    return np.ascontiguousarray(values, dtype=np.uint64)
