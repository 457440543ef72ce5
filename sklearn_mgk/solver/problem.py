# SPDX-License-Identifier: BSD-3-Clause
"""What a backend reads and what it returns: plain data, no behaviour of any one backend."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from enum import IntEnum
from types import ModuleType
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from sklearn_mgk.base_kernels.kernel import BaseKernel
from sklearn_mgk.base_kernels.labels import Labels
from sklearn_mgk.graphs import GraphBatch


class Outcome(IntEnum):
    """How the linear solve of one pair ended."""

    CONVERGED = 0
    STEP_LIMIT = 1
    BREAKDOWN = 2
    NOT_FINITE = 3


REMEDY = {
    Outcome.STEP_LIMIT: "raise max_iter, raise tol, or choose a larger stopping_probability",
    Outcome.BREAKDOWN: "the system is not positive definite in this precision: check that both "
    "base kernels are symmetric and at most 1, or use dtype='float64'",
    Outcome.NOT_FINITE: "a base kernel or a weight is so large or small that the sum left the "
    "range of the dtype: rescale it, or use dtype='float64'",
}
"""What usually helps, for each outcome other than convergence."""


@dataclass(frozen=True)
class LabelKernel:
    """A base kernel together with the interned labels it is evaluated on.

    Attributes
    ----------
    kernel : BaseKernel
        Base kernel.
    labels : Labels
        ``codes`` numbers the label of each node or edge; ``columns`` holds the distinct labels.
    role : str
        Parameter that the kernel stands in, ``"node_kernel"`` or ``"edge_kernel"``; used in errors.
    """

    kernel: BaseKernel
    labels: Labels
    role: str

    @property
    def n_labels(self) -> int:
        """Number of distinct labels."""
        return self.labels.n_labels


@dataclass(frozen=True)
class Problem:
    """All that fixes the values of the kernel between any two graphs of one batch.

    Attributes
    ----------
    batch : GraphBatch
        The graphs.
    node, edge : LabelKernel
        Base kernels and labels of nodes and edges.
    degree : ndarray of shape (n_nodes,)
        ``d_i`` of the stopping rule; 1 at nodes without edges under rule "probability".
    stop, start : ndarray of shape (n_nodes,)
        Stopping probability ``q_i`` and starting probability ``p_i`` of each node.
    degree_slope, stop_slope : ndarray of shape (n_nodes,)
        Derivatives of ``degree`` and ``stop`` with respect to the logarithm of the stopping
        probability; zero if that is no hyperparameter.
    category : ndarray of shape (n_nodes,), int32
        Number of the trainable starting probability that a node takes, -1 for none.
    n_categories : int
        Number of trainable starting probabilities.
    trainable_stop : bool
        Whether the stopping probability is a free hyperparameter.
    min_steps, max_iter : int
        Shortest walk counted (0 or 1) and limit on the iterations of one solve.
    tol : float
        Residual at which a solve stops, relative to the right-hand side, in the norm of the
        preconditioner.
    dtype : numpy.dtype
        Floating-point type of the solve.
    """

    batch: GraphBatch
    node: LabelKernel
    edge: LabelKernel
    degree: NDArray
    stop: NDArray
    start: NDArray
    degree_slope: NDArray
    stop_slope: NDArray
    category: NDArray
    n_categories: int
    trainable_stop: bool
    min_steps: int
    max_iter: int
    tol: float
    dtype: np.dtype

    @property
    def n_theta(self) -> int:
        """Number of free hyperparameters: node, edge, starting, stopping."""
        return (
            self.node.kernel.n_dims
            + self.edge.kernel.n_dims
            + self.n_categories
            + int(self.trainable_stop)
        )


@dataclass(frozen=True)
class NodalTarget:
    """Where node-by-node values go: one matrix for all pairs.

    Attributes
    ----------
    matrix : array of shape (n_rows, n_columns), float64, C-contiguous
        Written in place: value of nodes (i, i2) of pair k at ``[row[k] + i, column[k] + i2]``.
    row, column : array of shape (n_pairs,), int64
        First row and column of each pair's block. All three are arrays of the backend's ``xp``.
    """

    matrix: Any
    row: Any
    column: Any


@dataclass
class Solution:
    """What a backend returns for a list of pairs.

    Attributes
    ----------
    values : ndarray of shape (n_pairs,), float64
        Kernel values.
    gradient : ndarray of shape (n_pairs, n_theta) or None
        Derivatives with respect to the logarithms of the free hyperparameters.
    outcome : ndarray of shape (n_pairs,), uint8
        One :class:`Outcome` for each pair.
    iterations : ndarray of shape (n_pairs,), int32
        Iterations of conjugate gradients; 0 for a direct solve.
    """

    values: NDArray
    gradient: NDArray | None
    outcome: NDArray
    iterations: NDArray = field(repr=False)


class Backend(Protocol):
    """What every solver offers; ``reference`` defines the answer, the others are tested on it."""

    name: str
    xp: ModuleType  # NumPy or CuPy, whose arrays `solve` works on

    def room(self) -> float:
        """Return the bytes that a matrix of `xp` may take."""
        ...

    def solver(self, problem: Problem, eval_gradient: bool) -> Callable[..., Solution]:
        """Prepare ``problem`` once; return ``solve(pairs, nodal=None) -> Solution``.

        ``pairs`` is an int64 array of shape (n_pairs, 2) of graph numbers in ``problem.batch``;
        ``nodal`` an optional :class:`NodalTarget`. Solutions come in the order of ``pairs``, in
        arrays of ``xp`` as these; a backend whose ``xp`` is CuPy answers NumPy with NumPy.
        """
        ...
