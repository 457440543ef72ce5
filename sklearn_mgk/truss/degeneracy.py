# SPDX-License-Identifier: BSD-3-Clause
"""The degeneracy kernel: a graph kernel summed over nested, ever denser subgraphs."""

from __future__ import annotations

from functools import partial
from numbers import Integral

from numpy.typing import NDArray

from sklearn_mgk.graph_kernel import GraphKernel
from sklearn_mgk.graphs import GraphBatch
from sklearn_mgk.kernel import MarginalizedGraphKernel
from sklearn_mgk.normalization import normalize_matrix, normalized_diagonal
from sklearn_mgk.plan import read_sides
from sklearn_mgk.truss.hierarchy import LOWEST, Hierarchy, hierarchy
from sklearn_mgk.truss.levels import LevelSum
from sklearn_mgk.validation import check_parameters

_NORMALIZATIONS = (None, "cosine")


class DegeneracyKernel(GraphKernel):
    r"""Sum of a graph kernel over the nested k-trusses, or k-cores, of two graphs.

    .. math:: K(G, G') = \sum_{k \ge k_0} K_\mathrm{base}(G_k, G'_k)

    where :math:`G_k` is the k-truss [1]_ or the k-core [2]_ of G, and a term counts only if neither
    is empty. Whatever the base kernel sees in the whole graph, it sees again in the parts where the
    graph is dense. A sum of positive semidefinite kernels is positive semidefinite.

    Like `MarginalizedGraphKernel` it is a kernel for Gaussian processes, a callable for support
    vector machines, and a transformer from graphs to rows of the Gram matrix.

    Parameters
    ----------
    base_kernel : MarginalizedGraphKernel
        The kernel that is summed, with its own normalization at each level. Its hyperparameters
        are those of the sum, named ``base_kernel__...``.
    decomposition : {"truss", "core"}, default="truss"
        "truss": :math:`G_k` has the edges of trussness k or more and their nodes, so level 2 is the
        graph. "core": the nodes of core number k or more and the edges between them, so level 0 is
        the graph. The lowest level has nodes without edges and self-loops too.
    min_level : int or None, default=None
        First level :math:`k_0`; None starts from the graph itself. From higher levels graphs may
        have nothing, and K = 0 with every graph.
    normalization : {None, "cosine"}, default=None
        "cosine" divides the sum by the geometric mean of the self-similarities.

    Attributes
    ----------
    graphs_ : GraphBatch
        Graphs seen in `fit`.

    See Also
    --------
    TrussLabeler : Trussness as an attribute that base kernels read.

    Notes
    -----
    A pair of subgraphs is solved again only at levels where one of the two differs from the level
    below. Most molecules have no triangle: their trusses end at level 2, their cores at level 2.

    References
    ----------
    .. [1] Z. Zheng, C. Zhang, X. Luo, Z. Xie, S. Yu, "A truss-based framework for graph similarity
       computation", Journal of Database Management 34, 2023. https://doi.org/10.4018/JDM.322087
    .. [2] G. Nikolentzos, P. Meladianos, S. Limnios, M. Vazirgiannis, "A degeneracy framework for
       graph similarity", IJCAI 2018. https://doi.org/10.24963/ijcai.2018/360

    Examples
    --------
    >>> import networkx as nx
    >>> from sklearn_mgk import MarginalizedGraphKernel, from_networkx
    >>> from sklearn_mgk.truss import DegeneracyKernel
    >>> graphs = from_networkx([nx.complete_graph(4), nx.cycle_graph(4), nx.wheel_graph(5)])
    >>> kernel = DegeneracyKernel(MarginalizedGraphKernel(), normalization="cosine")
    >>> kernel(graphs).round(2)
    array([[1.  , 0.58, 0.82],
           [0.58, 1.  , 0.71],
           [0.82, 0.71, 1.  ]])
    """

    def __init__(
        self,
        base_kernel: MarginalizedGraphKernel,
        decomposition: str = "truss",
        *,
        min_level: int | None = None,
        normalization: str | None = None,
    ):
        self.base_kernel = base_kernel
        self.decomposition = decomposition
        self.min_level = min_level
        self.normalization = normalization

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
            A parameter is out of range, an attribute is missing or not finite, or derivatives are
            asked for with Y.
        TypeError
            The base kernel is no graph kernel.
        FloatingPointError
            A value is not finite.
        """
        self._check_parameters()
        if eval_gradient and Y is not None:
            raise ValueError("the gradient can be computed only where Y is None")
        levels = self._levels(X, Y, eval_gradient)
        values, slopes = levels.matrix()
        if self.normalization is not None:
            self._normalize(levels, values, slopes)
        return (values, slopes) if eval_gradient else values

    def _levels(self, X, Y, eval_gradient: bool) -> LevelSum:
        """Cut the graphs of both sides into subgraphs, and prepare to compare these."""
        left, right = (
            None if batch is None else self._hierarchy(batch)
            for batch in read_sides(self.base_kernel, X, Y)
        )
        return LevelSum(self.base_kernel, left, right, eval_gradient)

    def _hierarchy(self, batch: GraphBatch) -> Hierarchy:
        """Cut graphs into subgraphs, once a batch."""
        lowest = LOWEST[self.decomposition] if self.min_level is None else int(self.min_level)
        settings = (self.decomposition, lowest)
        return batch.cached(("hierarchy", *settings), partial(hierarchy, batch, *settings))

    def _normalize(self, levels: LevelSum, values: NDArray, slopes: NDArray) -> None:
        """Normalise values and derivatives in place."""
        is_square = len(levels.trees) == 1
        diagonals = None if is_square else [levels.diagonal(0), levels.diagonal(1)]
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
        return normalized_diagonal(self._levels(X, None, False).diagonal(0), self)

    def _check_parameters(self) -> None:
        """Raise for the first parameter out of range."""
        if not isinstance(self.base_kernel, MarginalizedGraphKernel):
            raise TypeError(
                f"base_kernel={self.base_kernel!r} of DegeneracyKernel must be a "
                "MarginalizedGraphKernel: the kernel of nodes or edges goes inside of that"
            )
        check_parameters(self.base_kernel)
        known = {"decomposition": tuple(LOWEST), "normalization": _NORMALIZATIONS}
        for name, values in known.items():
            if getattr(self, name) not in values:
                raise ValueError(
                    f"{name}={getattr(self, name)!r} of DegeneracyKernel must be one of "
                    f"{list(values)}"
                )
        lowest, level = LOWEST[self.decomposition], self.min_level
        if level is not None and not (isinstance(level, Integral) and level >= lowest):
            raise ValueError(
                f"min_level={level!r} of DegeneracyKernel must be an integer of at least {lowest} "
                f"with decomposition {self.decomposition!r}, or None"
            )
