# SPDX-License-Identifier: BSD-3-Clause
"""The marginalized graph kernel, as scikit-learn sees it."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from sklearn.gaussian_process.kernels import Hyperparameter

from sklearn_mgk import gram
from sklearn_mgk.base_kernels import BaseKernel
from sklearn_mgk.blocks import Side
from sklearn_mgk.graph_kernel import GraphKernel
from sklearn_mgk.normalization import normalize_matrix, normalized_diagonal
from sklearn_mgk.plan import make_plan, make_sides, read_sides
from sklearn_mgk.starting import StartingProbability
from sklearn_mgk.validation import check_parameters


class MarginalizedGraphKernel(GraphKernel):
    r"""Similarity of graphs: the expected similarity of random walks on them.

    Two walkers move on two graphs at once. The kernel adds up, over all walks that both can take in
    step, the probability of the walks times the similarity of the nodes and edges they meet [1]_:

    .. math::

        K(G, G') = \sum_{i i'} p_i p'_{i'} x_{i i'}, \qquad
        (D V^{-1} - W)\, x = D q

    with :math:`V_{ii'} = k_v(v_i, v'_{i'})`, :math:`W_{ii',jj'} = A_{ij} A'_{i'j'} k_e(e_{ij},
    e'_{i'j'})`, :math:`D = \mathrm{diag}(d_i d'_{i'})` and :math:`q = q_i q'_{i'}`; the system is
    solved by preconditioned conjugate gradients [2]_.

    It is at once a kernel for Gaussian processes (``GaussianProcessRegressor(kernel=...)``; it
    composes with ``ConstantKernel`` and ``WhiteKernel``), a callable (``SVC(kernel=...)``) and a
    transformer from graphs to rows of the Gram matrix (in a ``Pipeline`` before
    ``SVC(kernel="precomputed")``).

    Parameters
    ----------
    node_kernel, edge_kernel : BaseKernel, default=None
        Similarity of two nodes and of two edges by their attributes, between 0 and 1. None means 1:
        all nodes, or edges, are alike. Where the node kernel is 0 two nodes cannot be visited
        together.
    starting_probability : float, str or StartingProbability, default=1.0
        Where walks start: one positive number, the node attribute that holds it, or
        a `StartingProbability` with trainable values. Need not add up to 1.
    stopping_probability : float or str, default=0.05
        Probability q with which a walk stops at each node, between 0 and 1; small values look at
        long walks. Or the node attribute that holds it.
    stopping_probability_bounds : pair of floats, or "fixed", default=(1e-4, 0.9999)
        Range in which an optimiser may move q.
    stopping_rule : {"probability", "additive"}, default="probability"
        How q is read. "probability": the walk stops with q at each node, whatever the unit of the
        weights. "additive": q adds to the weights of the edges at the node, and the walk stops with
        their share q / (q + weights); then q may be any positive number.
    min_steps : {0, 1}, default=0
        Shortest walk counted. 1 leaves out walks that never move.
    normalization : {None, "cosine", "size"}, default=None
        "cosine" divides by the geometric mean of the self-similarities. "size" multiplies the
        cosine by exp(-((K(G, G) - K(G', G')) / size_scale)^2).
    size_scale : float, default=100.0
        Scale of "size", in units of K. A hyperparameter with "size" only.
    size_scale_bounds : pair of floats, or "fixed", default=(1e-2, 1e5)
        Range in which an optimiser may move it.
    dtype : {"float64", "float32"}, default="float64"
        Floating-point type of the solves. Matrices returned are float64.
    tol : float, default=1e-8
        Residual at which a solve stops, relative to the right-hand side. The error of K is of the
        same order.
    max_iter : int, default=1000
        Limit on the iterations of one solve; `ConvergenceWarning` where it is reached.
    backend : str, default="auto"
        One of `available_backends()`, or "auto" for the fastest.
    cache_size : float, default=128
        Memory [MB] for values already solved, which later calls with the same settings reuse, from
        any kernel of the process. 0 keeps nothing.
    verbose : bool, default=False
        Show a progress bar.

    Attributes
    ----------
    graphs_ : GraphBatch
        Graphs seen in `fit`.

    See Also
    --------
    StartingProbability : Trainable starting probabilities.
    SmilesToGraphs : Molecules to graphs.

    References
    ----------
    .. [1] H. Kashima, K. Tsuda, A. Inokuchi, "Marginalized kernels between labeled graphs",
       ICML 2003.
    .. [2] Y.-H. Tang, O. Selvitopi, D. T. Popovici, A. Buluc, "A high-throughput solver for
       marginalized graph kernels on GPU", IPDPS 2020.
       https://doi.org/10.1109/IPDPS47924.2020.00080

    Examples
    --------
    >>> from sklearn_mgk import MarginalizedGraphKernel, from_smiles
    >>> from sklearn_mgk.base_kernels import KroneckerDelta, SquaredExponential
    >>> kernel = MarginalizedGraphKernel(
    ...     node_kernel=KroneckerDelta("element", h=0.3),
    ...     edge_kernel=SquaredExponential("order", length_scale=0.5),
    ...     normalization="cosine",
    ... )
    >>> kernel(from_smiles(["CCO", "CCN", "c1ccccc1"])).round(2)
    array([[1.  , 0.72, 0.29],
           [0.72, 1.  , 0.29],
           [0.29, 0.29, 1.  ]])
    """

    def __init__(
        self,
        node_kernel: BaseKernel | None = None,
        edge_kernel: BaseKernel | None = None,
        *,
        starting_probability: float | str | StartingProbability = 1.0,
        stopping_probability: float | str = 0.05,
        stopping_probability_bounds: tuple[float, float] | str = (1e-4, 0.9999),
        stopping_rule: str = "probability",
        min_steps: int = 0,
        normalization: str | None = None,
        size_scale: float = 100.0,
        size_scale_bounds: tuple[float, float] | str = (1e-2, 1e5),
        dtype: str = "float64",
        tol: float = 1e-8,
        max_iter: int = 1000,
        backend: str = "auto",
        cache_size: float = 128,
        verbose: bool = False,
    ):
        self.node_kernel = node_kernel
        self.edge_kernel = edge_kernel
        self.starting_probability = starting_probability
        self.stopping_probability = stopping_probability
        self.stopping_probability_bounds = stopping_probability_bounds
        self.stopping_rule = stopping_rule
        self.min_steps = min_steps
        self.normalization = normalization
        self.size_scale = size_scale
        self.size_scale_bounds = size_scale_bounds
        self.dtype = dtype
        self.tol = tol
        self.max_iter = max_iter
        self.backend = backend
        self.cache_size = cache_size
        self.verbose = verbose

    def __call__(self, X, Y=None, eval_gradient: bool = False):
        """Return the Gram matrix, and its derivatives on request.

        Parameters
        ----------
        X, Y : GraphBatch or sequence of Graph
            Graphs; Y defaults to X.
        eval_gradient : bool, default=False
            Whether to return the derivatives as well. Only without Y.

        Returns
        -------
        K : ndarray of shape (n_X, n_Y), float64
            Kernel values; exactly symmetric without Y.
        K_gradient : ndarray of shape (n_X, n_X, n_dims), float64
            Derivatives by the logarithm of each free hyperparameter. Only with `eval_gradient`.

        Raises
        ------
        ValueError
            A parameter or a base kernel is out of range, an attribute is missing or not finite, or
            derivatives are asked for with Y.
        FloatingPointError
            A value is not finite.
        """
        self._check_parameters()
        if eval_gradient and Y is not None:
            raise ValueError("the gradient can be computed only where Y is None")
        batches = read_sides(self, X, Y)
        sides = make_sides(self, *batches)
        plan = make_plan(self, *batches, eval_gradient and self.n_dims > 0)
        values, slopes = gram.gram(plan, *sides)
        self._normalize(plan, values, slopes, *sides)
        if not eval_gradient:
            return values
        return values, slopes

    def _normalize(self, plan, values, slopes, left, right) -> None:
        """Normalise values and derivatives in place."""
        if self.normalization is None:
            return
        diagonals = None
        if right is not None:
            diagonals = [gram.diagonal(plan, side)[0] for side in (left, right)]
        normalize_matrix(values, slopes, diagonals, self)

    def diag(self, X) -> NDArray:
        """Return the diagonal of the Gram matrix, ``kernel(X).diagonal()``.

        Parameters
        ----------
        X : GraphBatch or sequence of Graph
            Graphs.

        Returns
        -------
        ndarray of shape (n_X,), float64
            Similarity of each graph with itself.
        """
        self._check_parameters()
        batches = read_sides(self, X, None)
        side, _ = make_sides(self, *batches)
        raw, _ = gram.diagonal(make_plan(self, *batches, False), side)
        return normalized_diagonal(raw, self)

    def nodal(self, X, Y=None) -> NDArray:
        """Return kernel values by node: the share of each pair of starting nodes.

        Parameters
        ----------
        X, Y : GraphBatch or sequence of Graph
            Graphs; Y defaults to X.

        Returns
        -------
        ndarray of shape (nodes of X, nodes of Y), float64
            ``p_i p'_i' x_(ii')``, graph after graph in the order given, nodes in the order of
            each graph. The block of two graphs adds up to their kernel value without
            normalisation.

        Examples
        --------
        >>> from sklearn_mgk import MarginalizedGraphKernel, from_smiles
        >>> MarginalizedGraphKernel().nodal(from_smiles(["CO"])).shape
        (2, 2)
        """
        self._check_parameters()
        left, right = read_sides(self, X, Y)
        plan, n = make_plan(self, left, right, False), len(left)
        rows = Side.of_all(np.arange(n), "X")
        if right is None:
            return gram.nodal(plan, left.sizes, rows)
        columns = Side.of_all(np.arange(n, n + len(right)), "Y")
        return gram.nodal(plan, np.concatenate([left.sizes, right.sizes]), rows, columns)

    @property
    def hyperparameters(self) -> list[Hyperparameter]:
        """Hyperparameters in the order of the parameters, those of base kernels nested."""
        found = super().hyperparameters
        return [h for h in found if h.name != "size_scale" or self.normalization == "size"]

    def _check_parameters(self) -> None:
        check_parameters(self)
