# SPDX-License-Identifier: BSD-3-Clause
"""Distributions over anonymous walks as features of graphs."""

from __future__ import annotations

import math
from numbers import Integral, Real
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils import Tags, check_random_state
from sklearn.utils.validation import check_is_fitted

from sklearn_mgk.graphs import GraphBatch, ListColumn, as_batch
from sklearn_mgk.propagation.walk_types import n_walk_types, walk_tree
from sklearn_mgk.propagation.walks import Walker, WalkGraphs, walk_graphs

_METHODS = ("exact", "sampling")
_MOST_TYPES = 200_000  # columns of a table that still is of use
_MOST_WALKS = 1e11  # of one graph: some minutes
_MOST_SAMPLES = 1e9


def sample_size(n_types: int, eps: float, delta: float) -> int:
    r"""Return how many random walks bound the error of a distribution over walk types.

    With :math:`m = \lceil 2 \epsilon^{-2} (\ln(2^\eta - 2) - \ln \delta) \rceil` samples of
    :math:`\eta` types, the L1 distance to the true distribution is at most :math:`\epsilon` with
    probability :math:`1 - \delta` [1]_.

    Parameters
    ----------
    n_types : int
        η.
    eps : float
        Greatest L1 distance, from 0 to 2.
    delta : float
        Probability of a greater one, from 0 to 1.

    Returns
    -------
    int
        Samples, at least 1.

    References
    ----------
    .. [1] S. Ivanov, E. Burnaev, "Anonymous walk embeddings", ICML 2018.
       https://doi.org/10.48550/arXiv.1805.11921

    Examples
    --------
    >>> from sklearn_mgk.propagation import sample_size
    >>> sample_size(877, 0.1, 0.01)
    122500
    """
    if n_types < 2:
        return 1
    log_subsets = n_types * math.log(2) + math.log1p(-(2.0 ** (1 - n_types)))
    return math.ceil(2 / eps**2 * (log_subsets - math.log(delta)))


class AnonymousWalkEmbedding(TransformerMixin, BaseEstimator):
    r"""Transformer from graphs to distributions over anonymous walks [1]_.

    A random walk is anonymous when its nodes are named 0, 1, ... as the walk first meets them:
    0-1-2-0 runs around a triangle. The feature of a type of walk is the probability that a walk of
    so many steps, from a random node that has edges, is of that type. Steps are taken in proportion
    to the weights of edges. Self-loops are left out; a graph without edges has zeros.

    Parameters
    ----------
    length : int, default=5
        Steps of a walk. There are 1, 2, 5, 15, 52, 203, 877, 4140, 21147, 115975 types for 1 to 10.
    method : {"exact", "sampling"}, default="exact"
        Go through all walks, or through as many random ones as `eps` and `delta` ask for.
    eps, delta : float, default=0.1 and 0.05
        With sampling, the L1 distance from the exact features is at most eps with probability
        1 - delta for each graph.
    n_samples : int or None, default=None
        Walks for each graph, instead of what the bound asks for.
    labels : str or None, default=None
        Node attribute whose values are part of the type: there is a feature for each walk with its
        labels that occurs in fit.
    random_state : int, RandomState or None, default=None
        Seed of the random walks. They differ for graphs at different places of a batch.

    Attributes
    ----------
    n_samples_ : int or None
        Random walks for each graph, None with method "exact".
    n_features_out_ : int
        Number of types.

    See Also
    --------
    sample_size : The bound.

    References
    ----------
    .. [1] S. Ivanov, E. Burnaev, "Anonymous walk embeddings", ICML 2018.
       https://doi.org/10.48550/arXiv.1805.11921

    Examples
    --------
    >>> import networkx as nx
    >>> from sklearn_mgk import from_networkx
    >>> from sklearn_mgk.propagation import AnonymousWalkEmbedding
    >>> graphs = from_networkx([nx.complete_graph(3), nx.path_graph(4)])
    >>> walks = AnonymousWalkEmbedding(length=3)
    >>> walks.fit_transform(graphs)
    array([[0.25  , 0.25  , 0.25  , 0.25  , 0.    ],
           [0.4375, 0.1875, 0.    , 0.25  , 0.125 ]])
    >>> walks.get_feature_names_out()
    array(['walk_0-1-0-1', 'walk_0-1-0-2', 'walk_0-1-2-0', 'walk_0-1-2-1',
           'walk_0-1-2-3'], dtype=object)
    """

    def __init__(
        self,
        length: int = 5,
        method: str = "exact",
        *,
        eps: float = 0.1,
        delta: float = 0.05,
        n_samples: int | None = None,
        labels: str | None = None,
        random_state: Any = None,
    ):
        self.length = length
        self.method = method
        self.eps = eps
        self.delta = delta
        self.n_samples = n_samples
        self.labels = labels
        self.random_state = random_state

    def fit(self, X: Any, y: Any = None) -> Self:
        """Find the types that labels give; without labels only check the parameters.

        Parameters
        ----------
        X : GraphBatch or sequence of Graph
            The graphs.
        y : Any, default=None
            Ignored.

        Returns
        -------
        self
            The transformer.

        Raises
        ------
        ValueError
            A parameter has no meaning, there are too many types, or a graph has too many walks to
            go through.
        """
        self._check_parameters()
        batch = as_batch(X)
        n_types = n_walk_types(self.length)
        if self.labels is not None:
            self._categories = np.unique(_label_column(batch, self.labels))
            n_types = self._n_labeled_types()
        self.n_samples_ = None if self.method == "exact" else self._sample_size(n_types)
        self._types = None
        if self.labels is not None:
            found = self._walker(batch).labeled()
            self._types = np.unique(np.concatenate([keys for keys, _ in found]))
        self.n_features_out_ = n_types if self.labels is None else len(self._types)
        if self.n_features_out_ > _MOST_TYPES:
            raise ValueError(
                f"the graphs have {self.n_features_out_} types of walks of length={self.length} "
                f"with labels, at most {_MOST_TYPES} are possible: shorten the walks"
            )
        return self

    def transform(self, X: Any) -> NDArray:
        """Return how probable each type of walk is in each graph.

        Parameters
        ----------
        X : GraphBatch or sequence of Graph
            The graphs.

        Returns
        -------
        ndarray of shape (n_graphs, n_types), float64
            Rows add up to 1, or less by the walks with labels that did not occur in fit; to 0 for
            graphs without edges.
        """
        check_is_fitted(self)
        batch = as_batch(X)
        walker = self._walker(batch)
        if self._types is None:
            return walker.anonymous()
        table = np.zeros((len(batch), len(self._types)))
        for row, (keys, shares) in zip(table, walker.labeled(), strict=True):
            place = np.searchsorted(self._types, keys).clip(max=max(len(self._types) - 1, 0))
            known = self._types[place] == keys if len(self._types) else np.zeros(len(keys), bool)
            row[place[known]] = shares[known]
        return table

    def _walker(self, batch: GraphBatch) -> Walker:
        labels, n_labels = None, 1
        if self.labels is not None:
            labels, n_labels = self._codes(batch), self._n_labels
        graphs = walk_graphs(batch, labels, n_labels)
        if self.n_samples_ is None:
            _check_walks(graphs, self.length)
        seed = int(check_random_state(self.random_state).randint(2**31 - 1))
        return Walker(graphs, self.length, self.n_samples_, seed)

    @property
    def _n_labels(self) -> int:
        return len(self._categories) + 1  # the last one stands for all that fit did not see

    def _codes(self, batch: GraphBatch) -> NDArray:
        column = _label_column(batch, self.labels)
        if (column.dtype.kind == "U") != (self._categories.dtype.kind == "U"):
            raise ValueError(
                f"node attribute {self.labels!r} is of type {column.dtype}, in fit it was of type "
                f"{self._categories.dtype}"
            )
        place = np.searchsorted(self._categories, column).clip(max=len(self._categories) - 1)
        return np.where(self._categories[place] == column, place, len(self._categories))

    def _n_labeled_types(self) -> int:
        """Possible types with labels; also checks that their numbers have a place in 64 bits."""
        largest = n_walk_types(self.length) * self._n_labels ** (self.length + 1)
        if largest >= 2**63:
            raise ValueError(
                f"length={self.length} and {len(self._categories)} values of {self.labels!r} give "
                f"up to {largest:.1e} types of walks, more than 64 bits can number: shorten the "
                "walks"
            )
        used = walk_tree(self.length).names.max(axis=1) + 1
        counts = np.bincount(used, minlength=1).tolist()
        return sum(n * len(self._categories) ** k for k, n in enumerate(counts))

    def _sample_size(self, n_types: int) -> int:
        if self.n_samples is not None:
            return self.n_samples
        found = sample_size(min(n_types, 2**40), self.eps, self.delta)
        if found > _MOST_SAMPLES:
            raise ValueError(
                f"eps={self.eps} and delta={self.delta} with {n_types} types of walks ask for "
                f"{found:.1e} walks a graph: raise eps, shorten the walks, or set n_samples"
            )
        return found

    def get_feature_names_out(self, input_features: Any = None) -> NDArray:
        """Return the names of the walks: ``walk_0-1-0``, with labels ``walk_C:0-O:1-C:0``."""
        check_is_fitted(self)
        names = walk_tree(self.length).names
        if self._types is None:
            return np.array(["walk_" + "-".join(map(str, walk)) for walk in names.tolist()], object)
        kind, code = np.divmod(self._types, self._n_labels ** (self.length + 1))
        powers = np.array([self._n_labels**name for name in range(self.length + 1)])
        digits = code[:, None] // powers % self._n_labels
        spelled = [
            "-".join(f"{self._categories[own[name]]}:{name}" for name in walk)
            for walk, own in zip(names[kind].tolist(), digits.tolist(), strict=True)
        ]
        return np.array([f"walk_{walk}" for walk in spelled], dtype=object)

    def __sklearn_tags__(self) -> Tags:
        """Say that X is a sequence of objects, and whether results are random."""
        tags = super().__sklearn_tags__()
        tags.input_tags.one_d_array = True
        tags.input_tags.two_d_array = False
        tags.non_deterministic = self.method == "sampling"
        return tags

    def _check_parameters(self) -> None:
        if not isinstance(self.length, Integral) or self.length < 1:
            raise ValueError(f"length={self.length!r} must be an integer of at least 1")
        n_types = n_walk_types(int(min(self.length, 100)))
        if n_types > _MOST_TYPES:
            raise ValueError(
                f"length={self.length} has {n_types if self.length <= 100 else 'more than 1e115'} "
                f"types of anonymous walks, at most {_MOST_TYPES} are possible: length=10 is the "
                "longest"
            )
        if self.method not in _METHODS:
            raise ValueError(f"method={self.method!r} must be one of {list(_METHODS)}")
        for name, most in (("eps", 2), ("delta", 1)):
            value = getattr(self, name)
            if not (isinstance(value, Real) and 0 < value < most):
                raise ValueError(f"{name}={value!r} must be a number between 0 and {most}")
        n = self.n_samples
        if n is not None and not (isinstance(n, Integral) and n >= 1):
            raise ValueError(f"n_samples={n!r} must be an integer of at least 1, or None")
        if self.labels is not None and not isinstance(self.labels, str):
            raise ValueError(
                f"labels={self.labels!r} must be the name of a node attribute, or None"
            )


def _label_column(batch: GraphBatch, name: str) -> NDArray:
    column = batch.read("node", name)
    if isinstance(column, ListColumn) or column.ndim > 1:
        raise ValueError(
            f"node attribute {name!r} holds lists or vectors, labels are single values"
        )
    return column


def _check_walks(graphs: WalkGraphs, length: int) -> None:
    """Raise where going through all walks would never end."""
    counts = graphs.walk_counts(length)
    graph = int(np.argmax(counts))
    if counts[graph] > _MOST_WALKS:
        raise ValueError(
            f"graph {graph} has {counts[graph]:.1e} walks of length={length}, too many to go "
            "through: use method='sampling' or shorter walks"
        )
