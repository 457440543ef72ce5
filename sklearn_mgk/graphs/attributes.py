# SPDX-License-Identifier: BSD-3-Clause
"""Named columns: the attributes of the nodes or the edges of a batch."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from sklearn_mgk.graphs.columns import (
    Column,
    ColumnError,
    ListColumn,
    as_column,
    concatenate,
    take,
)

if TYPE_CHECKING:
    from sklearn_mgk.graphs.batch import GraphBatch


def frozen(array: NDArray) -> NDArray:
    """Make an array read-only."""
    array.flags.writeable = False
    return array


def frozen_copy(column: Column) -> Column:
    """Return a read-only column that shares no writeable memory with its source."""
    if isinstance(column, ListColumn):
        return ListColumn(frozen(column.values.copy()), frozen(column.ptr.copy()))
    return frozen(column.copy())


def frozen_columns(
    attributes: Mapping[str, Any] | None, kind: str, n_rows: int
) -> dict[str, Column]:
    """Pack attributes, checking the number of rows."""
    columns = {}
    for name, values in (attributes or {}).items():
        try:
            column = as_column(values)
        except ColumnError as error:
            raise ValueError(f"{kind} attribute {name!r}: {error}") from None
        if len(column) != n_rows:
            raise ValueError(
                f"{kind} attribute {name!r} has {len(column)} rows, "
                f"the graphs have {n_rows} {kind}s"
            )
        columns[name] = frozen_copy(column)
    return columns


def first_not_finite(column: Column) -> tuple[int, float] | None:
    """Return the row and value of the first NaN or infinity of a column."""
    values = column.values if isinstance(column, ListColumn) else column
    if values.dtype.kind != "f" or np.isfinite(values).all():
        return None
    place = np.argwhere(~np.isfinite(values))[0]
    if isinstance(column, ListColumn):
        return int(np.searchsorted(column.ptr, place[0], side="right")) - 1, values[tuple(place)]
    return int(place[0]), values[tuple(place)]


def slice_columns(columns: Mapping[str, Column], rows: slice) -> dict[str, Column]:
    """Return some consecutive rows of each column."""
    return {name: _slice(column, rows) for name, column in columns.items()}


def _slice(column: Column, rows: slice) -> Column:
    """Return consecutive rows; arrays are views."""
    if isinstance(column, ListColumn):
        return take(column, np.arange(rows.start, rows.stop))
    return column[rows]


def attributes_of(batch: GraphBatch, kind: str) -> tuple[dict[str, Column], dict[str, str]]:
    """Return the columns and the unusable attributes of nodes or edges."""
    if kind == "node":
        return batch.nodes, batch.unusable_nodes
    if kind == "edge":
        return batch.edges, batch.unusable_edges
    raise ValueError(f'kind must be "node" or "edge", got {kind!r}')


def join_ptr(ptrs: Sequence[NDArray[np.int64]]) -> NDArray[np.int64]:
    """Join the ptr arrays of batches."""
    return np.concatenate(([0], np.cumsum(np.concatenate([np.diff(ptr) for ptr in ptrs]))))


_RENUMBERED = " (graph number before the selection)"


def renumbered(unusable: Mapping[str, str]) -> dict[str, str]:
    """Say that the graph numbers in the reasons are those of another batch."""
    return {name: why.removesuffix(_RENUMBERED) + _RENUMBERED for name, why in unusable.items()}


def join_attributes(
    batches: Sequence[GraphBatch], kind: str
) -> tuple[dict[str, Column], dict[str, str]]:
    """Join the columns of batches; attributes that do not fit become unusable."""
    ptr = join_ptr([batch.node_ptr if kind == "node" else batch.edge_ptr for batch in batches])
    with_rows = [batch for batch in batches if kind == "node" or batch.n_edges]
    unusable = {
        name: why
        for batch in batches
        for name, why in renumbered(attributes_of(batch, kind)[1]).items()
    }
    names = dict.fromkeys(name for batch in batches for name in attributes_of(batch, kind)[0])
    columns = {}
    for name in (name for name in names if name not in unusable):
        parts = [attributes_of(batch, kind)[0].get(name) for batch in with_rows]
        missing = next((i for i, part in enumerate(parts) if part is None), None)
        if missing is not None:
            graph = sum(len(batch) for batch in batches[: batches.index(with_rows[missing])])
            unusable[name] = f"graph {graph} lacks it"
            continue
        try:
            columns[name] = concatenate(parts or [np.empty(0)])
        except ColumnError as error:
            graph = int(np.searchsorted(ptr, error.row, side="right")) - 1
            unusable[name] = f"graph {graph}: the value {error.problem}"
    return columns, unusable
