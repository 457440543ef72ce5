# SPDX-License-Identifier: BSD-3-Clause
"""GraphBatch: many graphs in a few arrays; Graph: a view of one of them."""

from __future__ import annotations

import operator
import threading
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sklearn_mgk.graphs.attributes import (
    attributes_of,
    first_not_finite,
    frozen,
    frozen_columns,
    frozen_copy,
    join_attributes,
    join_ptr,
    renumbered,
    slice_columns,
)
from sklearn_mgk.graphs.columns import (
    Column,
    check_ptr,
    factorize,
    gather,
    take,
)
from sklearn_mgk.graphs.inputs import as_rows

if TYPE_CHECKING:
    import networkx

Kind = Literal["node", "edge"]

_MAX_SELECTIONS = 32  # train and test of a nested cross-validation
_SELECTIONS_LOCK = threading.Lock()


class GraphBatch:
    """Undirected, labeled, weighted graphs, packed into columns.

    The arrays are copied and read-only; a batch never changes.

    Parameters
    ----------
    node_ptr, edge_ptr : array-like of shape (n_graphs + 1,), int
        Graph g owns the nodes ``node_ptr[g]`` to ``node_ptr[g + 1] - 1``, and its edges likewise.
        Every graph has at least one node.
    edge_index : array-like of shape (2, n_edges), int
        The two ends of each edge, as numbers from 0 within its graph. Each undirected edge and each
        self-loop stands once; a pair that stands twice is two parallel edges.
    edge_weight : array-like of shape (n_edges,), default=None
        Finite weights >= 0; None means 1 for all. An edge of weight 0 is kept here and is no edge
        to a kernel.
    nodes, edges : mapping of str to column, default=None
        The attributes, each with one row a node or edge: anything `as_column` accepts.
    unusable_nodes, unusable_edges : mapping of str to str, default=None
        Attributes of the source that form no column, and why. They matter only if a kernel reads
        them.

    Attributes
    ----------
    node_graph, edge_graph : ndarray of shape (n_nodes,) and (n_edges,), int64
        The graph that each node and edge belongs to.
    sizes : ndarray of shape (n_graphs,), int64
        Number of nodes of each graph.

    Examples
    --------
    >>> batch = GraphBatch(
    ...     node_ptr=[0, 2, 3], edge_ptr=[0, 1, 1], edge_index=[[0], [1]],
    ...     nodes={"element": ["C", "O", "N"]}, edges={"order": [2.0]})
    >>> batch
    GraphBatch(n_graphs=2, n_nodes=3, n_edges=1, nodes=['element'], edges=['order'])
    >>> batch[0].nodes["element"].tolist()
    ['C', 'O']
    >>> [graph.n_nodes for graph in batch], len(batch[1:])
    ([2, 1], 1)
    """

    def __init__(
        self,
        *,
        node_ptr: ArrayLike,
        edge_ptr: ArrayLike,
        edge_index: ArrayLike,
        edge_weight: ArrayLike | None = None,
        nodes: Mapping[str, Any] | None = None,
        edges: Mapping[str, Any] | None = None,
        unusable_nodes: Mapping[str, str] | None = None,
        unusable_edges: Mapping[str, str] | None = None,
    ):
        self.node_ptr = frozen(_integers(node_ptr, "node_ptr"))
        self.edge_ptr = frozen(_integers(edge_ptr, "edge_ptr"))
        self.edge_index = frozen(_integers(edge_index, "edge_index"))
        if self.edge_index.ndim != 2 or len(self.edge_index) != 2:
            raise ValueError(
                f"edge_index must have shape (2, n_edges), got {self.edge_index.shape}"
            )
        weight = np.ones(self.n_edges) if edge_weight is None else edge_weight
        self.edge_weight = frozen(np.array(weight, dtype=np.float64))
        self.nodes = frozen_columns(nodes, "node", self.n_nodes)
        self.edges = frozen_columns(edges, "edge", self.n_edges)
        self.unusable_nodes = dict(unusable_nodes or {})
        self.unusable_edges = dict(unusable_edges or {})
        self._cache: dict[Any, Any] = {}
        self._check()

    def _check(self) -> None:
        """Raise unless the arrays describe graphs."""
        check_ptr(self.node_ptr, self.n_nodes, "node_ptr")
        check_ptr(self.edge_ptr, self.n_edges, "edge_ptr")
        if len(self.node_ptr) != len(self.edge_ptr):
            raise ValueError(
                f"node_ptr is for {len(self)} graphs, edge_ptr for {len(self.edge_ptr) - 1}"
            )
        if (self.sizes == 0).any():
            graph = int(np.argmin(self.sizes))
            raise ValueError(f"graph {graph} has no nodes: remove it, a graph needs at least one")
        if self.edge_weight.shape != (self.n_edges,):
            raise ValueError(
                f"edge_weight must have shape ({self.n_edges},), got {self.edge_weight.shape}"
            )
        outside = (self.edge_index < 0) | (self.edge_index >= self.sizes[self.edge_graph])
        if outside.any():
            edge = int(np.argmax(outside.any(axis=0)))
            graph = self.edge_graph[edge]
            raise ValueError(
                f"{self._where('edge', edge)} joins nodes {self.edge_index[:, edge].tolist()}, "
                f"but the graph has the nodes 0 to {self.sizes[graph] - 1}"
            )
        bad = ~(np.isfinite(self.edge_weight) & (self.edge_weight >= 0))
        if bad.any():
            edge = int(np.argmax(bad))
            raise ValueError(
                f"{self._where('edge', edge)} has weight {self.edge_weight[edge]}: "
                "weights must be finite and >= 0"
            )

    def _where(self, kind: Kind, row: int) -> str:
        """Name a node or edge for a message."""
        ptr = self.node_ptr if kind == "node" else self.edge_ptr
        graph = int(np.searchsorted(ptr, row, side="right")) - 1
        return f"graph {graph}, {kind} {row - ptr[graph]}"

    @property
    def n_nodes(self) -> int:
        """Number of nodes of all graphs together."""
        return int(self.node_ptr[-1])

    @property
    def n_edges(self) -> int:
        """Number of edges of all graphs together."""
        return self.edge_index.shape[1]

    @property
    def sizes(self) -> NDArray[np.int64]:
        """Number of nodes of each graph."""
        return self.cached("sizes", lambda: frozen(np.diff(self.node_ptr)))

    @property
    def node_graph(self) -> NDArray[np.int64]:
        """The graph of each node."""
        return self.cached("node_graph", partial(_groups, self.node_ptr))

    @property
    def edge_graph(self) -> NDArray[np.int64]:
        """The graph of each edge."""
        return self.cached("edge_graph", partial(_groups, self.edge_ptr))

    def cached(self, key: Any, compute: Any) -> Any:
        """Return what `compute` gave first; two threads may both compute, one result stays."""
        if key not in self._cache:
            self._cache.setdefault(key, compute())
        return self._cache[key]

    def read(self, kind: Kind, name: str) -> Column:
        """Return an attribute that a kernel is about to use.

        A batch without edges has every edge attribute, with no rows.

        Parameters
        ----------
        kind : {"node", "edge"}
            Whose attribute.
        name : str
            Its name.

        Returns
        -------
        ndarray or ListColumn
            The column.

        Raises
        ------
        ValueError
            There is no such attribute, some graph lacks it, its values are of mixed types, or one
            of them is not finite.
        """
        return self.cached(("read", kind, name), partial(self._read, kind, name))

    def _read(self, kind: Kind, name: str) -> Column:
        """Find and check a column."""
        columns, unusable = attributes_of(self, kind)
        if kind == "edge" and self.n_edges == 0:
            return columns.get(name, np.empty(0))
        if name in unusable:
            raise ValueError(f"{kind} attribute {name!r} cannot be used: {unusable[name]}")
        if name not in columns:
            known = ", ".join(map(repr, columns)) or "none"
            raise ValueError(f"the graphs have no {kind} attribute {name!r}; they have: {known}")
        column = columns[name]
        bad = first_not_finite(column)
        if bad is not None:
            row, value = bad
            raise ValueError(
                f"{self._where(kind, row)}: attribute {name!r} is {value}; "
                "replace or remove it, an attribute must be finite"
            )
        return column

    def factorized(self, kind: Kind, name: str) -> tuple[NDArray[np.int32], Column]:
        """Return the codes and the distinct rows of an attribute, computed once a batch.

        See Also
        --------
        sklearn_mgk.graphs.columns.factorize : What is returned.
        read : The parameters, and what is raised.
        """
        return self.cached(
            ("factorized", kind, name), lambda: _frozen_pair(*factorize(self.read(kind, name)))
        )

    def __len__(self) -> int:
        """Return the number of graphs."""
        return len(self.node_ptr) - 1

    def __iter__(self) -> Iterator[Graph]:
        """Iterate over the graphs as views."""
        return (Graph(self, index) for index in range(len(self)))

    def __getitem__(self, key: Any) -> Graph | GraphBatch:
        """Return one graph as a view, or the batch that a slice, integers or a mask select."""
        if isinstance(key, slice):
            return self.take(np.arange(len(self))[key])
        if np.ndim(key) > 0:
            return self.take(key)
        index = operator.index(key)
        if not -len(self) <= index < len(self):
            raise IndexError(f"graph {index} of a batch of {len(self)} graphs")
        return Graph(self, index % len(self))

    def take(self, indices: ArrayLike) -> GraphBatch:
        """Return the chosen graphs as a batch of their own.

        Parameters
        ----------
        indices : array-like of int, or of bool with shape (n_graphs,)
            Graph numbers, in any order and any number of times, or a mask.

        Returns
        -------
        GraphBatch
            The chosen graphs.
        """
        graphs = _as_indices(indices, len(self))
        nodes, node_ptr = gather(self.node_ptr, graphs)
        edges, edge_ptr = gather(self.edge_ptr, graphs)
        return GraphBatch(
            node_ptr=node_ptr,
            edge_ptr=edge_ptr,
            edge_index=self.edge_index[:, edges],
            edge_weight=self.edge_weight[edges],
            nodes={name: take(column, nodes) for name, column in self.nodes.items()},
            edges={name: take(column, edges) for name, column in self.edges.items()},
            unusable_nodes=renumbered(self.unusable_nodes),
            unusable_edges=renumbered(self.unusable_edges),
        )

    def _selection(self, indices: NDArray[np.int64]) -> GraphBatch:
        """Return `take(indices)`, the same object again for one of the last few selections."""
        if len(indices) == len(self) and (indices == np.arange(len(self))).all():
            return self
        key = indices.tobytes()
        with _SELECTIONS_LOCK:
            recent = self._cache.setdefault("selections", {})
            batch = recent.pop(key, None)
        if batch is None:
            batch = self.take(indices)
        with _SELECTIONS_LOCK:
            batch = recent.setdefault(key, batch)
            while len(recent) > _MAX_SELECTIONS:
                del recent[next(iter(recent))]
        return batch

    @classmethod
    def concatenate(cls, batches: Sequence[GraphBatch]) -> GraphBatch:
        """Join batches into one.

        Numbers of several types are promoted. An attribute that some batch lacks, or that holds
        strings in one and numbers in another, becomes unusable.

        Parameters
        ----------
        batches : sequence of GraphBatch
            At least one.

        Returns
        -------
        GraphBatch
            The graphs of the first batch, then those of the second, and so on.
        """
        if len(batches) == 0:
            raise ValueError("no batches to concatenate")
        nodes, unusable_nodes = join_attributes(batches, "node")
        edges, unusable_edges = join_attributes(batches, "edge")
        return cls(
            node_ptr=join_ptr([batch.node_ptr for batch in batches]),
            edge_ptr=join_ptr([batch.edge_ptr for batch in batches]),
            edge_index=np.concatenate([batch.edge_index for batch in batches], axis=1),
            edge_weight=np.concatenate([batch.edge_weight for batch in batches]),
            nodes=nodes,
            edges=edges,
            unusable_nodes=unusable_nodes,
            unusable_edges=unusable_edges,
        )

    def with_columns(
        self, *, nodes: Mapping[str, Any] | None = None, edges: Mapping[str, Any] | None = None
    ) -> GraphBatch:
        """Return a batch with more attributes, or others in their place.

        Parameters
        ----------
        nodes, edges : mapping of str to column, default=None
            Attributes with one row for each node or edge of all graphs, in the order of the batch.

        Returns
        -------
        GraphBatch
            The same graphs with these attributes besides their own.

        Examples
        --------
        >>> from sklearn_mgk import from_smiles
        >>> batch = from_smiles(["CO", "C"])
        >>> batch.with_columns(nodes={"mass": [12.0, 16.0, 12.0]})[0].nodes["mass"].tolist()
        [12.0, 16.0]
        """
        arrays = {name: value for name, value in self.__dict__.items() if name != "_cache"}
        for kind, columns in (("nodes", nodes), ("edges", edges)):
            added, unusable = dict(columns or {}), arrays[f"unusable_{kind}"]
            arrays[kind] = {**arrays[kind], **added}
            arrays[f"unusable_{kind}"] = {k: v for k, v in unusable.items() if k not in added}
        return GraphBatch(**arrays)

    def __reduce__(self) -> tuple[Any, ...]:
        """Build again from the arrays: without the cache, and read-only, which pickles forget."""
        arrays = {name: value for name, value in self.__dict__.items() if name != "_cache"}
        return partial(GraphBatch, **arrays), ()

    def __repr__(self) -> str:
        """Return the numbers of graphs, nodes and edges, and the names of the attributes."""
        return (
            f"GraphBatch(n_graphs={len(self)}, n_nodes={self.n_nodes}, n_edges={self.n_edges}, "
            f"nodes={list(self.nodes)}, edges={list(self.edges)})"
        )


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Graph:
    """One graph of a `GraphBatch`, seen where it lies.

    It has no length and no items, so that NumPy and scikit-learn keep it whole. Two views are equal
    if they show the same graph of the same batch object.

    Parameters
    ----------
    batch : GraphBatch
        The batch.
    index : int
        The number of the graph in it.
    """

    batch: GraphBatch
    index: int

    def __eq__(self, other: object) -> bool:
        """Return whether both are the same graph of the same batch object."""
        if not isinstance(other, Graph):
            return NotImplemented
        return self.batch is other.batch and self.index == other.index

    def __hash__(self) -> int:
        """Return a hash of the identity of the batch and the index."""
        return hash((id(self.batch), self.index))

    def __repr__(self) -> str:
        """Return the numbers of nodes and edges, and the names of the attributes."""
        return (
            f"Graph(n_nodes={self.n_nodes}, n_edges={self.n_edges}, "
            f"nodes={list(self.batch.nodes)}, edges={list(self.batch.edges)})"
        )

    @property
    def _nodes(self) -> slice:
        return slice(*self.batch.node_ptr[self.index : self.index + 2].tolist())

    @property
    def _edges(self) -> slice:
        return slice(*self.batch.edge_ptr[self.index : self.index + 2].tolist())

    @property
    def n_nodes(self) -> int:
        """Number of nodes."""
        return self._nodes.stop - self._nodes.start

    @property
    def n_edges(self) -> int:
        """Number of edges, each undirected edge counted once."""
        return self._edges.stop - self._edges.start

    @property
    def nodes(self) -> dict[str, Column]:
        """The node attributes, one row a node."""
        return slice_columns(self.batch.nodes, self._nodes)

    @property
    def edges(self) -> dict[str, Column]:
        """The edge attributes, one row an edge."""
        return slice_columns(self.batch.edges, self._edges)

    @property
    def edge_index(self) -> NDArray[np.int64]:
        """The ends of the edges, shape (2, n_edges)."""
        return self.batch.edge_index[:, self._edges]

    @property
    def edge_weight(self) -> NDArray[np.float64]:
        """The weights of the edges, shape (n_edges,)."""
        return self.batch.edge_weight[self._edges]

    def to_networkx(self, weight: str | None = "weight") -> networkx.Graph | networkx.MultiGraph:
        """Return the graph for networkx, with the nodes 0, 1, ...

        Parameters
        ----------
        weight : str or None, default="weight"
            Edge attribute that receives the edge weights; None leaves them out.

        Returns
        -------
        networkx.Graph, or networkx.MultiGraph if there are parallel edges
            Attributes are Python numbers and strings; vectors and lists are Python lists.
        """
        from sklearn_mgk.graphs.networkx import to_networkx

        return to_networkx(self, weight)


def as_batch(X: Any) -> GraphBatch:
    """Return the batch behind anything that holds graphs.

    Views of one batch become a selection of it (the batch itself, if they are all its graphs in
    order); repeated calls for one of the last few selections return the same object. Views of
    several batches are joined in the order given.

    Parameters
    ----------
    X : GraphBatch, or list, tuple, array, Series or one-column DataFrame of Graph
        The graphs.

    Returns
    -------
    GraphBatch
        The graphs in the order of X.

    Raises
    ------
    TypeError
        X is a single graph or a generator, or a row of it is no Graph.
    ValueError
        X is empty.
    """
    if isinstance(X, GraphBatch):
        if len(X) == 0:
            raise ValueError("X is empty: at least one graph is needed")
        return X
    rows = as_rows(X, "graphs")
    if set(map(type, rows)) != {Graph}:
        row = next(i for i, graph in enumerate(rows) if not isinstance(graph, Graph))
        raise TypeError(
            f"row {row} of X is of type {type(rows[row]).__name__}, not a Graph: make graphs of "
            "SMILES strings or RDKit molecules with SmilesToGraphs, of structures in space with "
            "StructuresToGraphs, of networkx graphs with NetworkXToGraphs"
        )
    parents = {id(graph.batch): graph.batch for graph in rows}
    indices = np.array([graph.index for graph in rows], dtype=np.int64)
    if len(parents) == 1:
        return rows[0].batch._selection(indices)
    owner = np.array([id(graph.batch) for graph in rows])
    places = {key: np.flatnonzero(owner == key) for key in parents}
    parts = [parents[key]._selection(indices[place]) for key, place in places.items()]
    order = np.argsort(np.concatenate(list(places.values())))
    return GraphBatch.concatenate(parts).take(order)


def _integers(values: ArrayLike, name: str) -> NDArray[np.int64]:
    """Return a copy as int64, or raise if the values are not whole numbers."""
    array = np.asarray(values)
    if array.size and array.dtype.kind not in "iu":
        raise TypeError(f"{name} must hold integers, got {array.dtype}")
    return np.array(array, dtype=np.int64)


def _frozen_pair(codes: NDArray, distinct: Column) -> tuple[NDArray, Column]:
    """Make the result of `factorize` read-only."""
    return frozen(codes), frozen_copy(distinct)


def _groups(ptr: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the group of each row."""
    return frozen(np.repeat(np.arange(len(ptr) - 1), np.diff(ptr)))


def _as_indices(indices: ArrayLike, n: int) -> NDArray[np.int64]:
    """Return indices or a mask as indices from 0 to n - 1."""
    array = np.asarray(indices)
    if array.ndim != 1 or (array.size and array.dtype.kind not in "biu"):
        raise IndexError(
            f"graphs are selected by a 1-D array of integers or booleans, got {array.dtype} of "
            f"shape {array.shape}"
        )
    return np.arange(n)[array if array.size else array.astype(np.int64)]
