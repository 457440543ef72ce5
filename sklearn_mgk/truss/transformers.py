# SPDX-License-Identifier: BSD-3-Clause
"""Trussness as an attribute that base kernels read, and as features."""

from __future__ import annotations

from numbers import Integral
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils import Tags
from sklearn.utils.validation import check_is_fitted

from sklearn_mgk.graphs import GraphBatch, as_batch
from sklearn_mgk.graphs.transformer import GraphTransformer
from sklearn_mgk.truss.backends import check_backend
from sklearn_mgk.truss.functions import trussness

_LABELED = ("edge", "node", "both")


def node_trussness(batch: GraphBatch, of_edges: NDArray) -> NDArray:
    """Greatest trussness of the edges at each node, 0 for nodes without edges.

    Parameters
    ----------
    batch : GraphBatch
        The graphs.
    of_edges : ndarray of shape (n_edges,), int64
        Trussness of each edge.

    Returns
    -------
    ndarray of shape (n_nodes,), int64
        Trussness of each node.
    """
    found = np.zeros(batch.n_nodes, np.int64)
    for ends in batch.edge_index + batch.node_ptr[batch.edge_graph]:
        np.maximum.at(found, ends, of_edges)
    return found


class TrussLabeler(GraphTransformer):
    """Transformer that adds the trussness of edges and nodes to graphs, for base kernels to read.

    Parameters
    ----------
    on : {"edge", "node", "both"}, default="edge"
        What gets the attribute. The trussness of a node is the greatest of its edges, 0 without
        edges.
    attribute : str, default="trussness"
        Name of the attribute; one of that name is replaced.
    backend : {"cpu", "cuda"}, default="cpu"
        Where to compute.

    See Also
    --------
    trussness : The same as a function.

    Notes
    -----
    Molecules drawn in 2D have hardly any triangles, and trussness 2 throughout. It tells edges
    apart in contact graphs of proteins and in graphs of atoms within a distance.

    Examples
    --------
    >>> from sklearn_mgk import from_arrays
    >>> from sklearn_mgk.truss import TrussLabeler
    >>> graphs = from_arrays([{"n_nodes": 4, "edge_index": [[0, 0, 1, 2], [1, 2, 2, 3]]}])
    >>> labeled = TrussLabeler(on="both").fit_transform(graphs)
    >>> labeled.edges["trussness"], labeled.nodes["trussness"]
    (array([3, 3, 3, 2]), array([3, 3, 3, 2]))
    """

    def __init__(self, on: str = "edge", *, attribute: str = "trussness", backend: str = "cpu"):
        self.on = on
        self.attribute = attribute
        self.backend = backend

    def transform(self, X: Any) -> GraphBatch:
        """Return the graphs with the attribute.

        Parameters
        ----------
        X : GraphBatch or sequence of Graph
            The graphs.

        Returns
        -------
        GraphBatch
            The same graphs and attributes, and the new one: whole numbers.
        """
        self._check_parameters()
        batch = as_batch(X)
        of_edges = trussness(batch, backend=self.backend)
        columns = {}
        if self.on != "node":
            columns["edges"] = {self.attribute: of_edges}
        if self.on != "edge":
            columns["nodes"] = {self.attribute: node_trussness(batch, of_edges)}
        return batch.with_columns(**columns)

    def _check_parameters(self) -> None:
        if self.on not in _LABELED:
            raise ValueError(f"on={self.on!r} of TrussLabeler must be one of {list(_LABELED)}")
        if not isinstance(self.attribute, str) or not self.attribute:
            raise ValueError(
                f"attribute={self.attribute!r} of TrussLabeler must be a name, such as 'trussness'"
            )
        check_backend(self.backend)


class TrussFeatures(TransformerMixin, BaseEstimator):
    """Transformer from graphs to numbers of edges, or nodes, by trussness.

    Parameters
    ----------
    of : {"edge", "node", "both"}, default="edge"
        What is counted. The trussness of a node is the greatest of its edges; nodes without edges
        are not counted.
    max_level : int or None, default=None
        Last trussness that has a column of its own, at least 2. None takes the greatest seen in
        `fit`. Higher ones are counted in the last column.
    normalize : bool, default=False
        Divide the counts by the number of all edges or nodes counted, so that the size of a graph
        does not matter.
    backend : {"cpu", "cuda"}, default="cpu"
        Where to compute.

    Attributes
    ----------
    max_level_ : int
        Last trussness with a column.

    See Also
    --------
    TrussLabeler : Trussness as an attribute, for graph kernels.

    Examples
    --------
    >>> import networkx as nx
    >>> from sklearn_mgk import from_networkx
    >>> from sklearn_mgk.truss import TrussFeatures
    >>> features = TrussFeatures().fit(from_networkx([nx.karate_club_graph()]))
    >>> features.get_feature_names_out()
    array(['edges_trussness2', 'edges_trussness3', 'edges_trussness4',
           'edges_trussness5'], dtype=object)
    >>> features.transform(from_networkx([nx.karate_club_graph(), nx.complete_graph(7)]))
    array([[11., 42., 11., 14.],
           [ 0.,  0.,  0., 21.]])
    """

    def __init__(
        self,
        of: str = "edge",
        *,
        max_level: int | None = None,
        normalize: bool = False,
        backend: str = "cpu",
    ):
        self.of = of
        self.max_level = max_level
        self.normalize = normalize
        self.backend = backend

    def fit(self, X: Any, y: Any = None) -> Self:
        """Learn the number of columns.

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
        """
        self._check_parameters()
        batch = as_batch(X)
        self.max_level_ = self.max_level
        if self.max_level is None:
            self.max_level_ = int(trussness(batch, backend=self.backend).max(initial=2))
        return self

    def transform(self, X: Any) -> NDArray:
        """Count.

        Parameters
        ----------
        X : GraphBatch or sequence of Graph
            The graphs.

        Returns
        -------
        ndarray of shape (n_graphs, n_features), float64
            Columns in the order of `get_feature_names_out`.
        """
        check_is_fitted(self)
        batch = as_batch(X)
        of_edges = trussness(batch, backend=self.backend)
        parts = []
        if self.of != "node":
            parts.append(self._count(of_edges, batch.edge_graph, len(batch)))
        if self.of != "edge":
            of_nodes = node_trussness(batch, of_edges)
            parts.append(self._count(of_nodes, batch.node_graph, len(batch)))
        return np.hstack(parts)

    def _count(self, values: NDArray, graph: NDArray, n_graphs: int) -> NDArray:
        """Table of the values from 2 on, by graph; self-loops and single nodes have 0."""
        width = self.max_level_ - 1
        counted = values >= 2
        column = np.minimum(values[counted], self.max_level_) - 2
        cell = graph[counted] * width + column
        counts = np.bincount(cell, minlength=n_graphs * width).reshape(n_graphs, width)
        if not self.normalize:
            return counts.astype(float)
        return counts / np.maximum(counts.sum(axis=1, keepdims=True), 1)

    def get_feature_names_out(self, input_features: Any = None) -> NDArray:
        """Return a name for each column, such as ``edges_trussness3``."""
        check_is_fitted(self)
        kinds = [kind for kind in ("edge", "node") if self.of in (kind, "both")]
        levels = range(2, self.max_level_ + 1)
        return np.array([f"{kind}s_trussness{k}" for kind in kinds for k in levels], dtype=object)

    def __sklearn_tags__(self) -> Tags:
        """Say that X is a sequence of objects."""
        tags = super().__sklearn_tags__()
        tags.input_tags.one_d_array = True
        tags.input_tags.two_d_array = False
        return tags

    def _check_parameters(self) -> None:
        if self.of not in _LABELED:
            raise ValueError(f"of={self.of!r} of TrussFeatures must be one of {list(_LABELED)}")
        level = self.max_level
        if level is not None and not (isinstance(level, Integral) and level >= 2):
            raise ValueError(
                f"max_level={level!r} of TrussFeatures must be an integer of at least 2, or None"
            )
        check_backend(self.backend)
