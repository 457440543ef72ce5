# SPDX-License-Identifier: BSD-3-Clause
"""What a product takes: sparse matrices in compressed rows, batches of graphs, dense matrices."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from sklearn_mgk.graphs import Graph, GraphBatch, as_batch

ROW_COST = 4
"""What starting a row costs, in entries; the work of a row is that plus its entries."""


@dataclass(frozen=True)
class Rows:
    """A sparse matrix in compressed rows.

    Attributes
    ----------
    ptr : ndarray of shape (n_rows + 1,), int64
        Where each row begins.
    indices : ndarray of shape (n_entries,), int32 or int64
        Column of each entry; in any order within a row, and a column may come twice.
    data : ndarray of shape (n_entries,), of real numbers
        The entries; products take them as floats.
    shape : tuple of int
        Numbers of rows and columns.
    """

    ptr: NDArray
    indices: NDArray
    data: NDArray
    shape: tuple[int, int]

    @property
    def n_entries(self) -> int:
        """Number of entries stored."""
        return len(self.indices)

    @cached_property
    def lengths(self) -> NDArray:
        """Number of entries of each row."""
        return np.diff(self.ptr)

    @property
    def total_work(self) -> int:
        """Work of all rows: entries and the starts of rows."""
        return int(self.ptr[-1]) + ROW_COST * self.shape[0]

    def as_type(self, dtype: Any) -> Rows:
        """Return the matrix with entries of a type, itself where they have it."""
        return self if self.data.dtype == dtype else replace(self, data=self.data.astype(dtype))

    def transposed(self) -> Rows:
        """Return the transposed matrix; columns come in order within its rows."""
        return as_rows_of(sparse.csr_array((self.data, self.indices, self.ptr), self.shape).T)


def adjacency(graphs: Any) -> sparse.csr_array:
    """Return the block-diagonal adjacency matrix of graphs.

    Parameters
    ----------
    graphs : GraphBatch, Graph, or sequence of Graph
        The graphs.

    Returns
    -------
    csr_array of shape (n_nodes, n_nodes), float64
        Edge weights; parallel edges are added up, a self-loop stands once.

    Examples
    --------
    >>> from sklearn_mgk import from_arrays
    >>> adjacency(from_arrays([{"n_nodes": 2, "edge_index": [[0], [1]]}])).toarray()
    array([[0., 1.],
           [1., 0.]])
    """
    batch = as_batch([graphs] if isinstance(graphs, Graph) else graphs)
    u, v = batch.edge_index + batch.node_ptr[batch.edge_graph]
    once = u != v
    ends = np.concatenate([u, v[once]]), np.concatenate([v, u[once]])
    weight = np.concatenate([batch.edge_weight, batch.edge_weight[once]])
    return sparse.csr_array((weight, ends), shape=(batch.n_nodes, batch.n_nodes))


def as_rows_of(A: Any) -> Rows:
    """Read a sparse matrix, or graphs, without copying what has the right form already.

    Parameters
    ----------
    A : scipy sparse matrix, GraphBatch, Graph, sequence of Graph, or Rows
        The matrix; graphs stand for their block-diagonal adjacency matrix.

    Returns
    -------
    Rows
        The matrix.

    Raises
    ------
    TypeError
        A is neither, or complex.
    ValueError
        An index of the matrix is out of range.
    """
    if isinstance(A, Rows):
        return A
    if not sparse.issparse(A):
        if not isinstance(A, (GraphBatch, Graph, list, tuple)):
            raise TypeError(
                f"A must be a scipy sparse matrix or graphs, got {type(A).__name__}: for a dense "
                "matrix pass scipy.sparse.csr_array(A)"
            )
        A = adjacency(A)
    if A.ndim != 2:
        raise ValueError(f"A must have two dimensions, got shape {A.shape}")
    A = A if A.format == "csr" else A.tocsr()
    float_type(A.dtype, A.dtype, "A")
    _check_indices(A)
    n = A.indptr[-1]
    return Rows(A.indptr.astype(np.int64), A.indices[:n], A.data[:n], A.shape)


def _check_indices(A: Any) -> None:
    """Raise for what would make a product read beyond X; scipy checks it only when asked."""
    falls = (A.indptr[1:] < A.indptr[:-1]).any()
    broken = A.indptr[0] != 0 or falls or A.indptr[-1] > len(A.indices)
    if broken or len(A.indices) != len(A.data) or len(A.indptr) != A.shape[0] + 1:
        raise ValueError("A is no valid csr matrix: its indptr does not cut its indices into rows")
    # Seen as unsigned numbers, negative indices are too large as well: one pass for both.
    unsigned = A.indices.view(f"u{A.indices.itemsize}")
    if unsigned.max(initial=0) >= max(A.shape[1], 1):
        at = int(np.argmax((A.indices >= A.shape[1]) | (A.indices < 0)))
        row = int(np.searchsorted(A.indptr, at, side="right")) - 1
        raise ValueError(
            f"row {row} of A has the column index {A.indices[at]}, but A has {A.shape[1]} columns"
        )


def float_type(first: Any, second: Any, what: str) -> np.dtype:
    """Return the type to compute in: that of the floats among two types, float64 if there is none.

    Integers and booleans do not decide. Half precision counts as float32.
    """
    given = [np.dtype(kind) for kind in (first, second)]
    for kind in given:
        if kind.kind not in "biuf":
            raise TypeError(f"{what} must hold real numbers, got {kind}")
    floats = [kind for kind in given if kind.kind == "f"]
    largest = max((kind.itemsize for kind in floats), default=8)
    return np.dtype(np.float32 if largest <= 4 else np.float64)


def as_dense(X: Any, n_rows: int, dtype: Any) -> NDArray:
    """Read a dense matrix of so many rows, without copying what has the right form already.

    Parameters
    ----------
    X : array-like of shape (n_rows,) or (n_rows, n_columns)
        Real numbers.
    n_rows : int
        Rows that it must have.
    dtype : numpy type
        Type of the entries of the sparse matrix.

    Returns
    -------
    ndarray of shape (n_rows, n_columns), float32 or float64, C-contiguous
        The matrix.

    Raises
    ------
    TypeError
        X is sparse or not of real numbers.
    ValueError
        The shape does not fit.
    """
    if sparse.issparse(X):
        raise TypeError("X is sparse and must be dense: pass X.toarray(), or use scipy for A @ X")
    X = np.asarray(X)
    kind = float_type(dtype, X.dtype, "X")
    if X.ndim not in (1, 2) or len(X) != n_rows:
        raise ValueError(
            f"X must have shape ({n_rows}, n_columns) to be multiplied by A, got {X.shape}"
        )
    return np.ascontiguousarray(X[:, None] if X.ndim == 1 else X, dtype=kind)
