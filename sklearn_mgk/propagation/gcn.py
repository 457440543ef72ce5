# SPDX-License-Identifier: BSD-3-Clause
"""Parameter-free graph convolution as a transformer."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils import Tags
from sklearn.utils.validation import check_is_fitted

from sklearn_mgk.graphs import Graph, GraphBatch, as_batch
from sklearn_mgk.propagation.backends import BACKENDS
from sklearn_mgk.propagation.features import learn_encodings
from sklearn_mgk.propagation.normalization import NORMALIZATIONS, check_hops, propagate

POOLINGS = {"mean": np.add, "sum": np.add, "max": np.maximum, None: None}
"""How the nodes of a graph become one row."""

_DTYPES = ("float32", "float64")


class GCNPropagation(TransformerMixin, BaseEstimator):
    r"""Transformer from graphs to features of nodes, or of graphs, after some hops to neighbours.

    The features are :math:`S^K X`, a graph convolution without parameters [1]_: X holds the node
    attributes, S is the normalized adjacency matrix. All graphs are propagated at once, as one
    block-diagonal matrix.

    Parameters
    ----------
    n_hops : int, default=2
        K.
    normalization : {"symmetric", "random-walk", "none"}, default="symmetric"
        S is :math:`D^{-1/2} A D^{-1/2}`, :math:`D^{-1} A` or A, with the degrees D.
    self_loops : bool, default=True
        Add a self-loop of weight 1 to every node first.
    hops : {"last", "concat", "mean"}, default="last"
        Features after the last hop, after all from 0 to K side by side, or their mean.
    pooling : {"mean", "sum", "max"} or None, default=None
        How the nodes of a graph become one row. None keeps a row for each node, those of all graphs
        one below the other.
    attributes : sequence of str or None, default=None
        Node attributes to read. None reads all but lists of varying length; a graph without any has
        one feature, 1 at every node.
    categorical : sequence of str, default=()
        Numeric attributes that are categories. Strings and booleans always are.
    backend : {"cpu", "cuda"}, default="cpu"
        Where to compute.
    dtype : {"float64", "float32"}, default="float64"
        Type of the features.

    Attributes
    ----------
    encodings_ : list
        The columns of X: attributes and their categories, learned in fit. Categories that come
        later have zeros.

    See Also
    --------
    propagate : The same for an adjacency matrix and a feature matrix.

    References
    ----------
    .. [1] F. Wu, A. Souza, T. Zhang, C. Fifty, T. Yu, K. Weinberger, "Simplifying graph
       convolutional networks", ICML 2019. https://doi.org/10.48550/arXiv.1902.07153

    Examples
    --------
    >>> from sklearn_mgk import from_smiles
    >>> from sklearn_mgk.propagation import GCNPropagation
    >>> graphs = from_smiles(["CO", "CCO"])
    >>> model = GCNPropagation(n_hops=1, attributes=["element"], pooling="mean")
    >>> model.fit_transform(graphs).round(3)
    array([[0.5  , 0.5  ],
           [0.686, 0.303]])
    >>> model.get_feature_names_out()
    array(['element=C', 'element=O'], dtype=object)
    """

    def __init__(
        self,
        n_hops: int = 2,
        *,
        normalization: str = "symmetric",
        self_loops: bool = True,
        hops: str = "last",
        pooling: str | None = None,
        attributes: Any = None,
        categorical: Any = (),
        backend: str = "cpu",
        dtype: str = "float64",
    ):
        self.n_hops = n_hops
        self.normalization = normalization
        self.self_loops = self_loops
        self.hops = hops
        self.pooling = pooling
        self.attributes = attributes
        self.categorical = categorical
        self.backend = backend
        self.dtype = dtype

    def fit(self, X: Any, y: Any = None) -> Self:
        """Learn the columns and the categories.

        Parameters
        ----------
        X : GraphBatch, Graph, or sequence of Graph
            The graphs.
        y : Any, default=None
            Ignored.

        Returns
        -------
        self
            The transformer.
        """
        self._check_parameters()
        self.encodings_ = learn_encodings(_batch(X), self.attributes, self.categorical)
        return self

    def transform(self, X: Any) -> NDArray:
        """Propagate the attributes, and pool.

        Parameters
        ----------
        X : GraphBatch, Graph, or sequence of Graph
            The graphs.

        Returns
        -------
        ndarray of shape (n_graphs, n_features), or (n_nodes, n_features) without pooling
            Columns in the order of `get_feature_names_out`.

        Raises
        ------
        ValueError
            An attribute that was there in fit is missing, of another kind, or not finite.
        """
        check_is_fitted(self)
        batch = _batch(X)
        columns = [encoding.encode(batch, self.dtype) for encoding in self.encodings_]
        features = np.hstack(columns or [np.ones((batch.n_nodes, 1), self.dtype)])
        options = {name: getattr(self, name) for name in ("normalization", "self_loops", "hops")}
        found = propagate(batch, features, self.n_hops, backend=self.backend, **options)
        return found if self.pooling is None else self._pool(found, batch)

    def _pool(self, features: NDArray, batch: GraphBatch) -> NDArray:
        pooled = POOLINGS[self.pooling].reduceat(features, batch.node_ptr[:-1], axis=0)
        if self.pooling == "mean":
            pooled /= batch.sizes[:, None].astype(pooled.dtype)
        return pooled

    def get_feature_names_out(self, input_features: Any = None) -> NDArray:
        """Return a name for each column: ``element=C``, or ``element=C_hop1`` if concatenated."""
        check_is_fitted(self)
        names = [name for encoding in self.encodings_ for name in encoding.names] or ["one"]
        if self.hops == "concat":
            names = [f"{name}_hop{hop}" for hop in range(self.n_hops + 1) for name in names]
        return np.array(names, dtype=object)

    def __sklearn_tags__(self) -> Tags:
        """Say that X is a sequence of objects."""
        tags = super().__sklearn_tags__()
        tags.input_tags.one_d_array = True
        tags.input_tags.two_d_array = False
        return tags

    def _check_parameters(self) -> None:
        check_hops(self.n_hops, self.hops)
        known = {
            "normalization": NORMALIZATIONS,
            "pooling": tuple(POOLINGS),
            "backend": tuple(BACKENDS),
            "dtype": _DTYPES,
        }
        for name, values in known.items():
            value = getattr(self, name)
            if value not in values:
                raise ValueError(
                    f"{name}={value!r} of GCNPropagation must be one of {list(values)}"
                )
        for name in ("attributes", "categorical"):
            if isinstance(getattr(self, name), str):
                raise ValueError(
                    f"{name}={getattr(self, name)!r} of GCNPropagation must be a list of names"
                )


def _batch(X: Any) -> GraphBatch:
    return as_batch([X] if isinstance(X, Graph) else X)
