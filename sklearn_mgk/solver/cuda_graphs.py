# SPDX-License-Identifier: BSD-3-Clause
"""Graphs on the device: what depends on the graphs alone, kept on their batch and freed with it."""

from __future__ import annotations

from dataclasses import dataclass, fields
from functools import partial

import cupy
import numpy as np
from numpy.typing import NDArray

from sklearn_mgk.solver.cuda_memory import upload
from sklearn_mgk.solver.device_labels import LabelColumns
from sklearn_mgk.solver.device_layout import (
    Entries,
    RowEdges,
    arcs,
    bonds,
    sort_entries,
)
from sklearn_mgk.solver.device_plan import BlockGraphs
from sklearn_mgk.solver.device_problem import graph_columns
from sklearn_mgk.solver.device_strips import STRIP_ENTRIES, StripGraphs, rank_for_strips
from sklearn_mgk.solver.layout import Order, colour_order, plain_order
from sklearn_mgk.solver.problem import Problem
from sklearn_mgk.solver.topology import topology


@dataclass(frozen=True)
class DeviceGraphs:
    """Columns that do not depend on hyperparameters.

    Attributes
    ----------
    node : ndarray of shape (n_nodes,)
        Row of the batch's node columns at each position, on the host.
    n_entries : int
        Entries of all adjacency matrices.
    first, last : tuple of cupy.ndarray
        Fields of ``mgk::Problem`` before the node quantities, and from there to the node labels.
    rows : tuple of cupy.ndarray
        Fields of ``mgk::Strips`` that `RowEdges` lists.
    strips, blocks : StripGraphs, BlockGraphs
        What planning reads, on the device.
    """

    node: NDArray
    n_entries: int
    first: tuple[cupy.ndarray, ...]
    last: tuple[cupy.ndarray, ...]
    rows: tuple[cupy.ndarray, ...]
    strips: StripGraphs
    blocks: BlockGraphs


def device_graphs(
    problem: Problem,
    node: LabelColumns,
    edge: LabelColumns,
    attribute: str | None,
    slots: tuple[int, ...],
) -> DeviceGraphs:
    """Bring the graphs of a problem to the current device, once a batch.

    Parameters
    ----------
    problem : Problem
        The problem.
    node, edge : LabelColumns
        Base kernels and labels.
    attribute : str or None
        Edge attribute that windows go by.
    slots : tuple of int
        Numbers of entries in registers that there are kernels of strips for.
    """
    key = (
        "cuda",
        cupy.cuda.Device().id,
        problem.dtype.name,
        tuple(problem.node.kernel.attributes),
        node.is_table,
        tuple(problem.edge.kernel.attributes),
        edge.is_table,
        attribute,
        slots,
    )
    return problem.batch.cached(key, partial(_bring, problem, node, edge, slots))


def _bring(
    problem: Problem, node: LabelColumns, edge: LabelColumns, slots: tuple[int, ...]
) -> DeviceGraphs:
    batch, edges = problem.batch, topology(problem.batch)
    order = colour_order(batch)
    entries = sort_entries(batch, edges, order, edge.key)
    first, last = graph_columns(problem, node, edge, entries, order.n_red)
    rows = _rows(problem, edge, order, entries)
    n_entries = np.add.reduceat(np.diff(entries.row_ptr), batch.node_ptr[:-1]).astype(np.int64)
    is_bipartite = order.n_red.astype(np.int64) < batch.sizes
    ranked = _ranked(problem, edge, entries, rows, slots)
    found = DeviceGraphs(
        entries.node,
        len(entries.edge),
        tuple(map(upload, first)),
        tuple(map(upload, last)),
        tuple(upload(getattr(rows, field.name)) for field in fields(RowEdges)),
        StripGraphs(*(cupy.asarray(getattr(ranked, f.name)) for f in fields(ranked))),
        BlockGraphs(
            *map(cupy.asarray, (batch.sizes, n_entries, is_bipartite)), first[2].dtype.itemsize
        ),
    )
    # Later calls may come on other streams.
    cupy.cuda.get_current_stream().synchronize()
    return found


def _rows(problem: Problem, edge: LabelColumns, order: Order, entries: Entries) -> RowEdges:
    """Graphs along the rows of strips."""
    if edge.is_table:
        return arcs(topology(problem.batch), order, entries, edge.labels, problem.dtype)
    return bonds(problem, plain_order(problem.batch), entries, edge.labels, edge.key)


def _ranked(
    problem: Problem,
    edge: LabelColumns,
    entries: Entries,
    rows: RowEdges,
    slots: tuple[int, ...],
) -> StripGraphs:
    """Say how each graph may stand in strips."""
    batch = problem.batch
    most = np.maximum.reduceat(np.diff(entries.row_ptr), batch.node_ptr[:-1])
    if not edge.is_table:
        # Code takes several rounds of entries, so that the last number serves all.
        most = np.where(most > STRIP_ENTRIES, most, np.minimum(most, slots[-1]))
    n_red = rows.n_red.astype(np.int64)
    return rank_for_strips(batch.sizes, most, n_red, slots)
