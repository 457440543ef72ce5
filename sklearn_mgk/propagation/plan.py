# SPDX-License-Identifier: BSD-3-Clause
"""Sparse times dense, and the plan that is made once for many such products."""

from __future__ import annotations

from functools import cached_property
from numbers import Integral, Real
from typing import Any

from numpy.typing import NDArray

from sklearn_mgk.propagation.backends import BACKENDS
from sklearn_mgk.propagation.matrices import as_rows_of
from sklearn_mgk.propagation.partition import (
    Partition,
    PlanSummary,
    by_metric,
    heavy_first,
    hybrid_metric,
    in_order,
    walk_density,
)

ENGINES = ("auto", "rows", "heavy", "degree", "dual")


class SpMMPlan:
    """A sparse matrix prepared for products with dense ones.

    Rows are sorted by a metric of their work, H = α N + (1 - α) D, and cut into blocks of equal
    work; blocks with H of at least its mean and half a standard deviation count as dense, the
    others as sparse, and a GPU does the two kinds in different ways [1]_. D is the number of
    entries of a row, N the density of the neighbourhood of its node, both divided by their means.
    The plan changes neither A nor the result beyond rounding, and the same call gives the same
    bits.

    Parameters
    ----------
    A : scipy sparse matrix, GraphBatch, Graph, or sequence of Graph
        The matrix; graphs stand for their block-diagonal adjacency matrix. Its arrays are kept,
        not copied, where it is in compressed rows (csr).
    engine : {"auto", "rows", "heavy", "degree", "dual"}, default="auto"
        How rows are put into blocks: by H ("dual", for square matrices), by D alone ("degree"), by
        D where it is large and in their own order elsewhere ("heavy"), or in their own order
        throughout ("rows"). "auto" takes "rows" on the CPU, where threads balance themselves. On a
        GPU it takes "degree" where the numbers of entries differ by more than their mean, and
        keeps the locality that an order of rows may have elsewhere: by "rows" if no row has more
        than 32 entries, by "heavy" otherwise.
    backend : {"cpu", "cuda"}, default="cpu"
        Where to compute. "cuda" needs CuPy.
    alpha : float, default=0.5
        Weight of N in H, from 0 to 1.
    n_walks, walk_length : int, default=8 and 4
        Walks from each node that N is estimated from, and their steps.
    n_blocks : int or None, default=None
        Blocks to make; None chooses.
    random_state : int, default=0
        Seed of the walks.

    Attributes
    ----------
    shape : tuple of int
        Of A.
    summary : PlanSummary
        Blocks, imbalance with and without the plan, and the time it took.

    Raises
    ------
    ValueError
        A parameter has no meaning, an index of A is out of range, or engine="dual" and A is not
        square.
    TypeError
        A is neither a sparse matrix nor graphs.
    MemoryError
        A does not fit on the GPU.

    See Also
    --------
    spmm : One product.

    References
    ----------
    .. [1] L. Zhang, H. Zeng, P. Qiao, Z. Zhang, Y. Yuan, G. Wang, "Dual-metric partitioning with
       adaptive kernel execution for efficient GCN acceleration". Constants that it leaves open were
       chosen here.

    Examples
    --------
    >>> import numpy as np
    >>> from scipy import sparse
    >>> from sklearn_mgk.propagation import SpMMPlan
    >>> plan = SpMMPlan(sparse.csr_array([[0.0, 2.0], [1.0, 0.0]]), engine="dual")
    >>> plan.multiply(np.eye(2))
    array([[0., 2.],
           [1., 0.]])
    >>> plan.multiply(np.eye(2), transpose=True)
    array([[0., 1.],
           [2., 0.]])
    """

    def __init__(
        self,
        A: Any,
        *,
        engine: str = "auto",
        backend: str = "cpu",
        alpha: float = 0.5,
        n_walks: int = 8,
        walk_length: int = 4,
        n_blocks: int | None = None,
        random_state: int = 0,
    ):
        self._options = {
            "engine": engine,
            "backend": backend,
            "alpha": alpha,
            "n_walks": n_walks,
            "walk_length": walk_length,
            "n_blocks": n_blocks,
            "random_state": random_state,
        }
        _check_parameters(**self._options)
        rows = self._rows = as_rows_of(A)
        self.shape = rows.shape
        self._product = BACKENDS[backend](rows)
        self._product.follow(engine, n_blocks, self._make_partition)

    @cached_property
    def summary(self) -> PlanSummary:
        return self._product.summary

    def _make_partition(self, engine: str, n_blocks: int) -> Partition:
        rows, options = self._rows, self._options
        if engine == "rows":
            return in_order(rows, n_blocks)
        if engine == "heavy":
            return heavy_first(rows, n_blocks)
        if engine == "degree":
            return by_metric(rows, rows.lengths, n_blocks)
        if rows.shape[0] != rows.shape[1]:
            raise ValueError(
                f"engine='dual' walks from node to node and needs a square matrix, got {rows.shape}"
                ": use engine='degree'"
            )
        walks = (options["n_walks"], options["walk_length"], options["random_state"])
        metric = hybrid_metric(rows.lengths, walk_density(rows, *walks), options["alpha"])
        return by_metric(rows, metric, n_blocks)

    def multiply(self, X: Any, *, transpose: bool = False, out: NDArray | None = None) -> Any:
        """Return A @ X, or A.T @ X.

        Parameters
        ----------
        X : array-like of shape (n_columns_of_A,) or (n_columns_of_A, n_columns)
            Real numbers; columns of A become rows where it is transposed. It is read as it lies in
            memory if it is of the right type and C-contiguous, and copied otherwise. A backend on a
            GPU also takes CuPy arrays, and then gives one back.
        transpose : bool, default=False
            Multiply by the transposed matrix; the first such call makes a plan for it.
        out : ndarray of the shape and type of the result, default=None
            C-contiguous array to write to; None makes one.

        Returns
        -------
        ndarray of shape (n_rows_of_A,) or (n_rows_of_A, n_columns)
            float32 if neither A nor X holds float64, and one of them float32; float64 otherwise.

        Raises
        ------
        ValueError
            Shapes do not fit, or `out` is of another shape, type or layout.
        TypeError
            X is sparse, or not of real numbers.
        """
        if transpose:
            return self._transposed.multiply(X, out=out)
        return self._product(X, out)

    def __matmul__(self, X: Any) -> Any:
        """Return A @ X."""
        return self.multiply(X)

    def put(self, X: Any) -> Any:
        """Return X where the backend computes: a CuPy array with "cuda", X itself otherwise."""
        return self._product.put(X)

    def get(self, X: Any) -> NDArray:
        """Return what `put` or `multiply` gave as an array of the host."""
        return self._product.get(X)

    @cached_property
    def _transposed(self) -> SpMMPlan:
        return SpMMPlan(self._rows.transposed(), **self._options)


def _check_parameters(
    engine: Any, backend: Any, alpha: Any, random_state: Any, **counts: Any
) -> None:
    """Raise for options without meaning."""
    for name, value, known in (("engine", engine, ENGINES), ("backend", backend, BACKENDS)):
        if value not in known:
            raise ValueError(f"{name}={value!r} must be one of {list(known)}")
    if not (isinstance(alpha, Real) and 0 <= alpha <= 1):
        raise ValueError(f"alpha={alpha!r} must be a number from 0 to 1")
    for name, value in counts.items():
        fits = isinstance(value, Integral) and value >= 1
        if not fits and not (name == "n_blocks" and value is None):
            raise ValueError(f"{name}={value!r} must be an integer of at least 1")
    if not (isinstance(random_state, Integral) and 0 <= random_state < 2**63):
        raise ValueError(f"random_state={random_state!r} must be an integer of at least 0")


def spmm(
    A: Any,
    X: Any,
    *,
    transpose: bool = False,
    engine: str = "auto",
    backend: str = "cpu",
    out: NDArray | None = None,
) -> Any:
    """Return the product A @ X of a sparse and a dense matrix, on all cores or a GPU.

    Parameters
    ----------
    A : scipy sparse matrix, GraphBatch, Graph, or sequence of Graph
        The sparse matrix; graphs stand for their block-diagonal adjacency matrix.
    X : array-like of shape (n_columns_of_A,) or (n_columns_of_A, n_columns)
        Real numbers.
    transpose : bool, default=False
        Multiply by A.T instead.
    engine : {"auto", "rows", "heavy", "degree", "dual"}, default="auto"
        How the work is cut into blocks, see `SpMMPlan`.
    backend : {"cpu", "cuda"}, default="cpu"
        Where to compute.
    out : ndarray of the shape and type of the result, default=None
        C-contiguous array to write to.

    Returns
    -------
    ndarray of shape (n_rows_of_A,) or (n_rows_of_A, n_columns)
        The product, float32 or float64.

    See Also
    --------
    SpMMPlan : For several products with one matrix.

    Examples
    --------
    >>> import numpy as np
    >>> from scipy import sparse
    >>> from sklearn_mgk.propagation import spmm
    >>> spmm(sparse.csr_array([[0, 2], [1, 0]]), np.array([[1.0, 2.0], [3.0, 4.0]]))
    array([[6., 8.],
           [1., 2.]])
    """
    rows = as_rows_of(A)
    rows = rows.transposed() if transpose else rows
    return SpMMPlan(rows, engine=engine, backend=backend).multiply(X, out=out)
