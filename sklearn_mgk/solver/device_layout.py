# SPDX-License-Identifier: BSD-3-Clause
"""Columns that the CUDA solver reads, in its order of nodes; needs no device."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from sklearn_mgk.graphs import GraphBatch
from sklearn_mgk.solver.layout import Order, inverse_of
from sklearn_mgk.solver.problem import Problem
from sklearn_mgk.solver.topology import Topology

ROUND = 4
"""Entries that a lane takes together, as in ``cuda/pair.cuh``."""

MAX_ENTRIES = 2**31 - 1
"""Entries of the adjacency matrices of a batch that the kernels can count."""


@dataclass(frozen=True)
class Entries:
    """Adjacency matrices by rows; nodes of a graph sorted by colour and rounds of entries.

    Attributes
    ----------
    node : ndarray of shape (n_nodes,)
        Row of the batch's node columns at each position: red nodes first, of those of one colour
        the ones with the most rounds of entries first, otherwise in the order of the batch, which
        often has neighbours close together.
    local : ndarray of shape (n_nodes,), int32
        The same, counted within the graph.
    row_ptr : ndarray of shape (n_nodes + 1,), int32
        First entry of the node at each position.
    column : ndarray of shape (n_entries,), int32
        Position of the other end, counted within the graph.
    edge : ndarray of shape (n_entries,)
        Row of the batch's edge columns.
    weight : ndarray of shape (n_entries,)
        Edge weight.
    """

    node: NDArray
    local: NDArray
    row_ptr: NDArray
    column: NDArray
    edge: NDArray
    weight: NDArray


def sort_entries(
    batch: GraphBatch, topology: Topology, order: Order, key: NDArray | None
) -> Entries:
    """Sort nodes, and entries by node and then by the key of their edge, if there is one.

    Parameters
    ----------
    batch : GraphBatch
        The graphs.
    topology : Topology
        Edges seen from both ends.
    order : Order
        Which nodes are red.
    key : ndarray of shape (n_edges,) or None
        Attribute that windows go by.
    """
    count = np.bincount(topology.source, minlength=batch.n_nodes)
    black = order.position >= order.n_red.astype(np.int64)[batch.node_graph]
    rounds = -(count // -ROUND)
    node = sort_by(batch.node_graph, black, rounds.max(initial=0) - rounds)
    return entries_in_order(batch, topology, node, key)


def entries_in_order(
    batch: GraphBatch, topology: Topology, node: NDArray, key: NDArray | None
) -> Entries:
    """Sort entries by node, in a given order of the nodes, and then as `sort_entries` does.

    Parameters
    ----------
    batch : GraphBatch
        The graphs.
    topology : Topology
        Edges seen from both ends.
    node : ndarray of shape (n_nodes,)
        Row of the batch's node columns at each position.
    key : ndarray of shape (n_edges,) or None
        Attribute that windows go by.
    """
    if len(topology.source) > MAX_ENTRIES:
        raise ValueError(
            f"the graphs have {len(topology.source)} entries (directions of edges), and the CUDA "
            f"solver counts up to {MAX_ENTRIES}: give fewer graphs at a time"
        )
    count = np.bincount(topology.source, minlength=batch.n_nodes)
    position = inverse_of(node)
    second = position[topology.target] if key is None else _ranks(key)[topology.edge]
    sort = sort_by(position[topology.source], second)
    first = batch.node_ptr[topology.graph[sort]]
    return Entries(
        node=node,
        local=(node - batch.node_ptr[batch.node_graph]).astype(np.int32),
        row_ptr=np.concatenate([[0], np.cumsum(count[node])]).astype(np.int32),
        column=(position[topology.target[sort]] - first).astype(np.int32),
        edge=topology.edge[sort],
        weight=topology.weight[sort],
    )


def sort_by(*columns: NDArray) -> NDArray:
    """Sort rows by the first of several columns of integers >= 0, then the second, and so on.

    One number to sort by takes a fifth of the time of several, where it does not overflow.
    """
    sizes = [int(column.max(initial=0)) + 1 for column in columns]
    if math.prod(sizes) > np.iinfo(np.int64).max:
        return np.lexsort(columns[::-1])
    combined = np.zeros(len(columns[0]), np.int64)
    for column, size in zip(columns, sizes, strict=True):
        combined = combined * size + column
    return np.argsort(combined, kind="stable")


def _ranks(key: NDArray) -> NDArray:
    """Integers in the order of some numbers; equal ones need not be equal."""
    return inverse_of(np.argsort(key))


def records(length: int, fields: list[tuple], **columns: NDArray) -> NDArray:
    """Lay columns out as structures that start at multiples of 16 bytes, as C++ does.

    Parameters
    ----------
    length : int
        Number of records; one is added where it is 0, so that there is an address.
    fields : list of tuple
        Name and type of each field, and its shape if it is an array, in the order of the structure.
    **columns : ndarray
        Values of the fields.
    """
    plain = np.dtype(fields, align=True)
    layout = {
        "names": plain.names,
        "formats": [plain.fields[name][0] for name in plain.names],
        "offsets": [plain.fields[name][1] for name in plain.names],
        "itemsize": -(-plain.itemsize // 16) * 16,
    }
    rows = np.zeros(max(length, 1), np.dtype(layout))
    for name, column in columns.items():
        rows[name][:length] = column
    return rows


def entry_records(entries: Entries, labels: NDArray, dtype: np.dtype) -> NDArray:
    """Entries as ``Entry`` of ``mgk::Table`` or of generated code.

    Parameters
    ----------
    entries : Entries
        The adjacency matrices.
    labels : ndarray of shape (n_edges,) or (n_edges, n_features)
        Number of the label of each edge of the batch, or its features.
    dtype : numpy.dtype
        Type of the solve.
    """
    return label_records(labels[entries.edge], entries.weight, entries.column, dtype)


def label_records(own: NDArray, weight: NDArray, column: NDArray, dtype: np.dtype) -> NDArray:
    """Lay out the labels, weights and columns of entries; ``own`` has one row for each of them."""
    n, shared = len(weight), {"column": column, "weight": weight}
    if own.ndim == 1:
        fields = [("column", "i4"), ("code", "i4"), ("weight", dtype)]
        return records(n, fields, code=own, **shared)
    fields = [("column", "i4"), ("weight", dtype), ("features", dtype, own.shape[1:])]
    return records(n, fields, features=own, **shared)


@dataclass(frozen=True)
class RowEdges:
    """Graphs as they stand along the rows of a strip: the fields of ``mgk::Strips``, in its order.

    Attributes
    ----------
    row_node : ndarray of shape (n_nodes,), int32
        Position of the node of each row among `Entries`.
    n_red : ndarray of shape (n_graphs,), int32
        Rows that are unknowns.
    edge_ptr : ndarray of shape (n_graphs + 1,), int32
        First arc or bond of each graph.
    edge_half : ndarray of shape (n_graphs,), int32
        End of the arcs that leave red rows.
    edges : ndarray of records
        Arcs, or bonds.
    """

    row_node: NDArray
    n_red: NDArray
    edge_ptr: NDArray
    edge_half: NDArray
    edges: NDArray


def arcs(
    topology: Topology, order: Order, entries: Entries, codes: NDArray, dtype: np.dtype
) -> RowEdges:
    """Directions of edges, sorted by colour of the source, label and source.

    Parameters
    ----------
    topology : Topology
        Edges seen from both ends.
    order : Order
        Order of the rows.
    entries : Entries
        Order of the nodes.
    codes : ndarray of shape (n_edges,)
        Number of the label of each edge of the batch.
    dtype : numpy.dtype
        Type of the solve.
    """
    n_red = order.n_red.astype(np.int64)
    source, target = order.position[topology.source], order.position[topology.target]
    black, code = source >= n_red[topology.graph], codes[topology.edge]
    sort = sort_by(topology.graph, black, code, source, target)
    source, target, code, black = source[sort], target[sort], code[sort], black[sort]
    graph = topology.graph[sort]
    same_label = _same_as_before(graph, black, code)
    same_source = same_label & _same_as_before(source)
    rows = records(
        len(sort),
        [("source", "i4"), ("target", "i4"), ("code", "i4"), ("weight", dtype)],
        source=np.where(same_source, -1, source),
        target=target,
        code=np.where(same_label, -1, code),
        weight=topology.weight[sort],
    )
    count = np.bincount(graph, minlength=len(n_red))
    ptr = np.concatenate([[0], np.cumsum(count)])
    half = ptr[:-1] + np.bincount(graph[~black], minlength=len(n_red))
    return _row_edges(order, entries, ptr, half, rows)


def bonds(
    problem: Problem,
    order: Order,
    entries: Entries,
    labels: NDArray,
    key: NDArray | None,
) -> RowEdges:
    """Edges, each once, sorted by key; ``labels`` of shape (n_edges, n_features)."""
    batch, dtype = problem.batch, problem.dtype
    edge = np.flatnonzero(batch.edge_weight > 0)
    if key is not None:
        edge = edge[sort_by(batch.edge_graph[edge], _ranks(key[edge]))]
    graph = batch.edge_graph[edge]
    i, j = order.position[batch.edge_index[:, edge] + batch.node_ptr[graph]]
    rows = records(
        len(edge),
        [("i", "i4"), ("j", "i4"), ("weight", dtype), ("features", dtype, labels.shape[1:])],
        i=i,
        j=j,
        weight=np.where(i == j, 0.5, 1.0) * batch.edge_weight[edge],
        features=labels[edge],
    )
    ptr = np.concatenate([[0], np.cumsum(np.bincount(graph, minlength=len(batch)))])
    return _row_edges(order, entries, ptr, ptr[1:], rows)


def _row_edges(order: Order, entries: Entries, ptr, half, rows) -> RowEdges:
    return RowEdges(
        inverse_of(entries.node)[order.node].astype(np.int32),
        order.n_red.astype(np.int32),
        ptr.astype(np.int32),
        half.astype(np.int32),
        rows,
    )


def _same_as_before(*columns: NDArray) -> NDArray:
    """Whether each row equals the one before."""
    same = np.zeros(len(columns[0]), bool)
    same[1:] = np.logical_and.reduce([column[1:] == column[:-1] for column in columns])
    return same


def node_columns(problem: Problem, node: NDArray) -> list[NDArray]:
    """Node quantities in position order, as ``mgk::Problem`` lists them; slopes are relative."""
    quantities = (
        problem.degree,
        problem.degree * problem.stop,
        problem.stop,
        problem.start,
        problem.degree_slope / problem.degree,
        problem.stop_slope / problem.stop,
    )
    return [
        *(column[node].astype(problem.dtype) for column in quantities),
        problem.category[node].astype(np.int32),
    ]
