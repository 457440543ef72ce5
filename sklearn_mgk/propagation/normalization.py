# SPDX-License-Identifier: BSD-3-Clause
"""The matrix that propagates features, and the propagation of arrays."""

from __future__ import annotations

from numbers import Integral
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from sklearn_mgk.graphs import Graph, GraphBatch
from sklearn_mgk.propagation.matrices import adjacency, as_dense, float_type
from sklearn_mgk.propagation.plan import SpMMPlan

NORMALIZATIONS = ("symmetric", "random-walk", "none")
HOPS = ("last", "concat", "mean")
# Matrices that were symmetrised by a computation differ from their transpose by a few roundings.
_SYMMETRY_TOLERANCE = 1e-6


def propagation_matrix(
    A: Any, normalization: str = "symmetric", *, self_loops: bool = True
) -> sparse.csr_array:
    r"""Return the matrix S by which a graph convolution multiplies features.

    With :math:`\tilde A = A + I`, or A without self-loops, and the diagonal matrix D of its row
    sums, S is :math:`D^{-1/2} \tilde A D^{-1/2}`, :math:`D^{-1} \tilde A` or :math:`\tilde A`.

    Parameters
    ----------
    A : scipy sparse matrix, array of shape (n_nodes, n_nodes), GraphBatch or sequence of Graph
        Weights of edges, finite and >= 0; graphs stand for their block-diagonal adjacency matrix.
    normalization : {"symmetric", "random-walk", "none"}, default="symmetric"
        Which of the three. The first asks for a symmetric A.
    self_loops : bool, default=True
        Add one self-loop of weight 1 to every node.

    Returns
    -------
    csr_array of shape (n_nodes, n_nodes), float32 if A is and float64 otherwise
        S. Rows of nodes without edges are zero.

    Raises
    ------
    ValueError
        A is not square, has weights that are negative or not finite, or is not symmetric where it
        has to be.

    Examples
    --------
    >>> from scipy import sparse
    >>> from sklearn_mgk.propagation import propagation_matrix
    >>> propagation_matrix(sparse.csr_array([[0, 1], [1, 0]])).toarray()
    array([[0.5, 0.5],
           [0.5, 0.5]])
    """
    if normalization not in NORMALIZATIONS:
        raise ValueError(f"normalization={normalization!r} must be one of {list(NORMALIZATIONS)}")
    A = _checked(A, normalization == "symmetric")
    if self_loops:
        A = sparse.csr_array(A + sparse.eye_array(A.shape[0], dtype=A.dtype, format="csr"))
    if normalization == "none":
        return A
    degree = np.asarray(A.sum(axis=1), dtype=np.float64)
    there = degree > 0
    power = np.zeros(len(degree))
    power[there] = degree[there] ** (-0.5 if normalization == "symmetric" else -1.0)
    row = np.repeat(power, np.diff(A.indptr))
    column = power[A.indices] if normalization == "symmetric" else 1.0
    A.data = (A.data * (row * column)).astype(A.dtype)
    return A


def _checked(A: Any, symmetric: bool) -> sparse.csr_array:
    """Return a copy of an adjacency matrix in compressed rows, or raise."""
    if isinstance(A, (GraphBatch, Graph, list, tuple)):
        return adjacency(A)
    A = sparse.csr_array(A, copy=True)
    if A.ndim != 2 or A.shape[0] != A.shape[1]:
        raise ValueError(f"an adjacency matrix must be square, got shape {A.shape}")
    A = A.astype(float_type(A.dtype, A.dtype, "A"), copy=False)
    A.sum_duplicates()
    bad = ~(np.isfinite(A.data) & (A.data >= 0))
    if bad.any():
        at = int(np.argmax(bad))
        i = int(np.searchsorted(A.indptr, at, side="right")) - 1
        raise ValueError(
            f"entry ({i}, {A.indices[at]}) of A is {A.data[at]}: weights must be finite and >= 0, "
            "or degrees lose their meaning"
        )
    if symmetric:
        _check_symmetry(A)
    return A


def _check_symmetry(A: sparse.csr_array) -> None:
    difference = sparse.coo_array(abs(A - A.T))
    if difference.nnz and difference.data.max() > _SYMMETRY_TOLERANCE * A.data.max():
        at = int(difference.data.argmax())
        i, j = (int(ends[at]) for ends in difference.coords)
        raise ValueError(
            f"A is not symmetric, entry ({i}, {j}) is {A[i, j]:g} and ({j}, {i}) is {A[j, i]:g}: "
            "pass A + A.T, or use normalization='random-walk'"
        )


def propagate(
    A: Any,
    X: Any,
    n_hops: int = 2,
    *,
    normalization: str = "symmetric",
    self_loops: bool = True,
    hops: str = "last",
    backend: str = "cpu",
) -> NDArray:
    """Return features of nodes after some hops of parameter-free graph convolution [1]_.

    Parameters
    ----------
    A : scipy sparse matrix, array of shape (n_nodes, n_nodes), GraphBatch or sequence of Graph
        The graph, or several of them.
    X : array-like of shape (n_nodes,) or (n_nodes, n_features)
        Features, finite.
    n_hops : int, default=2
        How often features are passed to the neighbours; 0 returns X.
    normalization : {"symmetric", "random-walk", "none"}, default="symmetric"
        See `propagation_matrix`.
    self_loops : bool, default=True
        Whether a node keeps part of its own features.
    hops : {"last", "concat", "mean"}, default="last"
        Return the features after the last hop, those after 0, 1, ..., n_hops hops side by side, or
        their mean.
    backend : {"cpu", "cuda"}, default="cpu"
        Where to compute.

    Returns
    -------
    ndarray of shape (n_nodes, n_features), or (n_nodes, (n_hops + 1) * n_features) if concatenated
        float32 if X is and A is float32 or of integers; float64 otherwise.

    Raises
    ------
    ValueError
        Shapes do not fit, X is not finite, or A is not as `propagation_matrix` needs it.

    References
    ----------
    .. [1] F. Wu, A. Souza, T. Zhang, C. Fifty, T. Yu, K. Weinberger, "Simplifying graph
       convolutional networks", ICML 2019. https://doi.org/10.48550/arXiv.1902.07153

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn_mgk.propagation import propagate
    >>> path = np.array([[0, 1, 0], [1, 0, 1], [0, 1, 0]])
    >>> propagate(path, np.array([[1.0], [0.0], [0.0]]), 1, normalization="random-walk").round(2)
    array([[0.5 ],
           [0.33],
           [0.  ]])
    """
    check_hops(n_hops, hops)
    S = propagation_matrix(A, normalization, self_loops=self_loops)
    if float_type(np.asarray(X).dtype, getattr(A, "dtype", np.int8), "X") == np.float32:
        S = S.astype(np.float32)
    X = as_dense(X, S.shape[0], S.dtype)
    bad = ~np.isfinite(X)
    if bad.any():
        node, feature = (int(k) for k in np.unravel_index(np.argmax(bad), X.shape))
        raise ValueError(
            f"feature {feature} of node {node} is {X[node, feature]}: replace it, features must be "
            "finite"
        )
    return _hop(SpMMPlan(S, backend=backend), X, n_hops, hops)


def _hop(plan: SpMMPlan, X: NDArray, n_hops: int, hops: str) -> NDArray:
    """Multiply n_hops times, and gather; features stay where the products are computed."""
    if hops == "concat":
        n_features = X.shape[1]
        found = np.empty((len(X), (n_hops + 1) * n_features), X.dtype)
        found[:, :n_features] = X
    total = X.copy() if hops == "mean" else X
    here = plan.put(X)
    for hop in range(1, n_hops + 1):
        here = plan.multiply(here)
        if hops == "concat":
            found[:, hop * n_features : (hop + 1) * n_features] = plan.get(here)
        elif hops == "mean":
            total += plan.get(here)
    if hops == "concat":
        return found
    return total / (n_hops + 1) if hops == "mean" else plan.get(here)


def check_hops(n_hops: Any, hops: Any) -> None:
    """Raise for options of hops without meaning."""
    if not isinstance(n_hops, Integral) or n_hops < 0:
        raise ValueError(f"n_hops={n_hops!r} must be an integer of at least 0")
    if hops not in HOPS:
        raise ValueError(f"hops={hops!r} must be one of {list(HOPS)}")
