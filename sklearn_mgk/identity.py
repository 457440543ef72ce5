# SPDX-License-Identifier: BSD-3-Clause
"""Fingerprints of graphs by content, so that equal graphs are solved once."""

from __future__ import annotations

from hashlib import blake2b
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from sklearn_mgk.graphs import GraphBatch
from sklearn_mgk.graphs.columns import digest


def fingerprints(
    batch: GraphBatch, node_names: tuple[str, ...], edge_names: tuple[str, ...]
) -> list[bytes]:
    """Hash each graph: its edges, weights and those attributes that matter.

    Graphs that differ in the order of their nodes have different fingerprints; the order of the
    edges and of their two ends does not matter.

    Parameters
    ----------
    batch : GraphBatch
        The graphs.
    node_names, edge_names : tuple of str
        Attributes that matter.

    Returns
    -------
    list of bytes, one for each graph
        16 bytes each.
    """
    nodes = _rows(batch, "node", node_names, np.empty((batch.n_nodes, 0), np.uint64))
    ends = np.sort(batch.edge_index, axis=0)
    weight = batch.edge_weight + 0.0  # a weight of -0.0 is 0.0
    plain = np.column_stack([ends.T.astype(np.uint64), weight.view(np.uint64)])
    edges = _rows(batch, "edge", edge_names, plain)
    edges = edges[_edge_order(batch, ends, edges)]
    parts = (
        _cut(batch.sizes[:, None], np.arange(len(batch) + 1)),
        _cut(nodes, batch.node_ptr),
        _cut(edges, batch.edge_ptr),
    )
    return [blake2b(b"".join(part), digest_size=16).digest() for part in zip(*parts, strict=True)]


def _edge_order(batch: GraphBatch, ends: NDArray, rows: NDArray) -> NDArray:
    """Sort the edges of each graph; parallel ones by all that is known of them."""
    first, second = ends + batch.node_ptr[batch.edge_graph]
    place = first * batch.n_nodes + second
    order = np.argsort(place)
    if (np.diff(place[order]) > 0).all():
        return order
    return np.lexsort((*rows.T[::-1], batch.edge_graph))


def _cut(rows: NDArray, ptr: NDArray) -> list[memoryview]:
    """Bytes of the rows of each graph."""
    whole, width = memoryview(rows.tobytes()), rows.itemsize * rows.shape[1]
    return [whole[lo:hi] for lo, hi in pairwise((ptr * width).tolist())]


def _rows(batch: GraphBatch, kind: str, names: tuple[str, ...], plain: NDArray) -> NDArray:
    """One row of integers for each node or edge."""
    parts = [plain]
    for name in names:
        codes, distinct = batch.factorized(kind, name)
        parts.append(digest(distinct)[codes])
    return np.ascontiguousarray(np.hstack(parts))


def unique(prints: list[bytes]) -> tuple[NDArray, NDArray]:
    """First place of each distinct fingerprint, and for each fingerprint the number of its first.

    Returns
    -------
    first : ndarray of shape (n_unique,), int64
        Increasing.
    inverse : ndarray of shape (n,), int64
        ``prints[k] == prints[first[inverse[k]]]``.
    """
    number: dict[bytes, int] = {}
    inverse = np.array([number.setdefault(p, len(number)) for p in prints], np.int64)
    first = np.zeros(len(number), np.int64)
    first[inverse[::-1]] = np.arange(len(prints))[::-1]
    return first, inverse
