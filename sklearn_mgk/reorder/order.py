# SPDX-License-Identifier: BSD-3-Clause
"""Node orders of many graphs, and the transformer that applies them."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping
from functools import cache
from numbers import Integral
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sklearn_mgk.graphs import GraphBatch, as_batch
from sklearn_mgk.graphs.columns import ListColumn, take
from sklearn_mgk.graphs.transformer import GraphTransformer
from sklearn_mgk.reorder.adjacency import adjacency
from sklearn_mgk.reorder.curves import grid_cells, hilbert, morton
from sklearn_mgk.reorder.partition import cuthill_mckee, import_pymetis, partition

METHODS = ("auto", "partition", "rcm", "morton", "hilbert", "natural")


class Reorder(GraphTransformer):
    """Transformer that permutes the nodes of graphs, so that their edges lie in few 8 x 8 tiles.

    A solver that works on tiles (`Octiles`) does the less, the fewer of them hold an edge. Kernel
    values do not depend on the order of nodes. Node attributes move with their nodes, edges keep
    their order.

    Parameters
    ----------
    method : str, default="auto"
        - ``"partition"``: parts of 8 nodes, by the number of non-empty tiles. The fewest tiles.
          Needs pymetis (``pip install 'sklearn-mgk[reordering]'``).
        - ``"rcm"``: reverse Cuthill-McKee; narrow bands, a few milliseconds for thousands of
          graphs. Where it may start at several nodes of equal degree, it may choose another one in
          another batch.
        - ``"morton"``, ``"hilbert"``: along a space-filling curve through the coordinates, the node
          attribute ``"position"`` with 2 or 3 columns.
        - ``"natural"``: the order as given.
        - ``"auto"``: ``"partition"``, or ``"rcm"`` with a warning if pymetis is not installed.
    random_state : int >= 0 or None, default=0
        Seed of ``"partition"``; None gives another order at each call.
    n_sweeps : int >= 0, default=300
        Swaps that ``"partition"`` tries, for each node. Time grows in proportion; 100 leaves about
        5 % more tiles than 300, 1000 about 3 % fewer.

    See Also
    --------
    OctileFeaturizer : Makes the tiles.
    node_order : The permutation itself.
    plot_octiles : Draws the tiles of one graph under several orders.

    References
    ----------
    .. [1] Y.-H. Tang, O. Selvitopi, D. T. Popovici, A. Buluç, "A high-throughput solver for
       marginalized graph kernels on GPU", IPDPS 2020.
       https://doi.org/10.1109/IPDPS47924.2020.00080

    Examples
    --------
    >>> from sklearn_mgk import Reorder, from_arrays, to_octiles
    >>> ring = [(7 * k) % 24 for k in range(25)]
    >>> batch = from_arrays([{"n_nodes": 24, "edge_index": [ring[1:], ring[:-1]]}])
    >>> to_octiles(batch).n_tiles, to_octiles(Reorder("rcm").transform(batch)).n_tiles
    (9, 7)
    """

    def __init__(self, method: str = "auto", random_state: int | None = 0, n_sweeps: int = 300):
        self.method = method
        self.random_state = random_state
        self.n_sweeps = n_sweeps

    def transform(self, X: Any) -> GraphBatch:
        """Return the graphs with their nodes permuted.

        Parameters
        ----------
        X : GraphBatch, or list, tuple, array, Series or one-column DataFrame of Graph
            The graphs.

        Returns
        -------
        GraphBatch
            The same graphs in the order of X. Repeated calls for one batch return the same object,
            unless `random_state` is None.

        Raises
        ------
        ImportError
            The method needs pymetis, which is not installed.
        TypeError
            X holds no graphs.
        ValueError
            A parameter has no meaning, or the graphs have no coordinates for a curve.
        """
        self._check_parameters()
        batch, options = as_batch(X), (self.method, self.random_state, self.n_sweeps)

        def reordered() -> GraphBatch:
            return permute(batch, node_order(batch, *options))

        return (
            reordered()
            if self.random_state is None
            else batch.cached(("reordered", *options), reordered)
        )

    def _check_parameters(self) -> None:
        _check(self.method, self.random_state, self.n_sweeps)


def node_order(
    X: Any, method: str = "auto", random_state: int | None = 0, n_sweeps: int = 300
) -> NDArray[np.int64]:
    """Find an order of the nodes of each graph.

    Parameters
    ----------
    X : GraphBatch, or list, tuple, array, Series or one-column DataFrame of Graph
        The graphs.
    method : {"auto", "partition", "rcm", "morton", "hilbert", "natural"}, default="auto"
        As in `Reorder`.
    random_state : int >= 0 or None, default=0
        Seed of ``"partition"``.
    n_sweeps : int >= 0, default=300
        Swaps that ``"partition"`` tries, for each node.

    Returns
    -------
    ndarray of shape (n_nodes,), int64
        The permutations of all graphs, end to end: entry ``node_ptr[g] + k`` is the node of graph
        g, numbered from 0 within it, that comes at place k.

    Raises
    ------
    ImportError
        The method needs pymetis, which is not installed.
    ValueError
        A parameter has no meaning, or the graphs have no coordinates for a curve.

    Examples
    --------
    >>> from sklearn_mgk import from_smiles, node_order
    >>> node_order(from_smiles(["CCO", "N"]), "natural").tolist()
    [0, 1, 2, 0]
    """
    _check(method, random_state, n_sweeps)
    batch = as_batch(X)
    rows = _FIND[_available(method)](batch, _seed(random_state), int(n_sweeps))
    return rows - np.repeat(batch.node_ptr[:-1], batch.sizes)


def permute(X: Any, order: ArrayLike) -> GraphBatch:
    """Put the nodes of each graph in another order.

    Parameters
    ----------
    X : GraphBatch, or list, tuple, array, Series or one-column DataFrame of Graph
        The graphs.
    order : array-like of shape (n_nodes,), int
        The permutations of all graphs, end to end, as `node_order` returns them.

    Returns
    -------
    GraphBatch
        The same graphs: node attributes in the new order, edges in the old order and with the new
        numbers of their ends.

    Raises
    ------
    TypeError
        The order does not hold integers.
    ValueError
        The order has another length than the graphs have nodes, or is no permutation of the nodes
        of some graph, which is named.

    Examples
    --------
    >>> from sklearn_mgk import from_smiles, permute
    >>> batch = permute(from_smiles(["CCO"]), [2, 0, 1])
    >>> batch.nodes["element"].tolist(), batch.edge_index.tolist()
    (['O', 'C', 'C'], [[1, 2], [2, 0]])
    """
    batch = as_batch(X)
    order = _checked_order(batch, order)
    rows = order + np.repeat(batch.node_ptr[:-1], batch.sizes)
    place = np.empty_like(rows)
    place[rows] = np.arange(batch.n_nodes) - np.repeat(batch.node_ptr[:-1], batch.sizes)
    return GraphBatch(
        node_ptr=batch.node_ptr,
        edge_ptr=batch.edge_ptr,
        edge_index=place[batch.edge_index + batch.node_ptr[batch.edge_graph]],
        edge_weight=batch.edge_weight,
        nodes={name: take(column, rows) for name, column in batch.nodes.items()},
        edges=batch.edges,
        unusable_nodes={k: f"{why} (before reordering)" for k, why in batch.unusable_nodes.items()},
        unusable_edges=batch.unusable_edges,
    )


def _checked_order(batch: GraphBatch, order: ArrayLike) -> NDArray[np.int64]:
    """Return the order, or say for which graph it is no permutation."""
    order = np.asarray(order)
    if order.shape != (batch.n_nodes,):
        raise ValueError(
            f"order has shape {order.shape}, the graphs have {batch.n_nodes} nodes: pass one entry "
            "for each node"
        )
    if order.dtype.kind not in "iu":
        raise TypeError(f"order must hold integers, got {order.dtype}")
    sizes = batch.sizes[batch.node_graph]
    outside = (order < 0) | (order >= sizes)
    if outside.any():
        at = int(np.argmax(outside))
        raise ValueError(
            f"order of graph {batch.node_graph[at]} holds {order[at]}, but the graph has the nodes "
            f"0 to {sizes[at] - 1}"
        )
    rows = order + batch.node_ptr[batch.node_graph]
    times = np.bincount(rows, minlength=batch.n_nodes)
    if (times != 1).any():
        at = int(np.argmax(times != 1))
        graph = batch.node_graph[at]
        raise ValueError(
            f"order of graph {graph} is no permutation: node {at - batch.node_ptr[graph]} occurs "
            f"{times[at]} times"
        )
    return order.astype(np.int64)


def _natural(batch: GraphBatch, seed: int, n_sweeps: int) -> NDArray[np.int64]:
    return np.arange(batch.n_nodes)


def _rcm(batch: GraphBatch, seed: int, n_sweeps: int) -> NDArray[np.int64]:
    return cuthill_mckee(batch, adjacency(batch))


def _partition(batch: GraphBatch, seed: int, n_sweeps: int) -> NDArray[np.int64]:
    return partition(batch, adjacency(batch), seed, n_sweeps)


def _morton(batch: GraphBatch, seed: int, n_sweeps: int) -> NDArray[np.int64]:
    return _along(batch, "morton", morton)


def _hilbert(batch: GraphBatch, seed: int, n_sweeps: int) -> NDArray[np.int64]:
    return _along(batch, "hilbert", hilbert)


_FIND: Mapping[str, Callable[[GraphBatch, int, int], NDArray[np.int64]]] = {
    "natural": _natural,
    "rcm": _rcm,
    "partition": _partition,
    "morton": _morton,
    "hilbert": _hilbert,
}


def _along(batch: GraphBatch, method: str, curve: Callable[[NDArray], NDArray]) -> NDArray:
    """Sort the nodes of each graph along a curve."""
    try:
        position = batch.read("node", "position")
    except ValueError as error:
        raise ValueError(
            f"method={method!r} needs coordinates, the node attribute 'position': {error}"
        ) from None
    if isinstance(position, ListColumn) or position.ndim != 2 or position.shape[1] not in (2, 3):
        shape = "lists" if isinstance(position, ListColumn) else f"shape {position.shape}"
        raise ValueError(
            f"method={method!r} needs the node attribute 'position' with 2 or 3 coordinates a "
            f"node, got {shape}"
        )
    return np.lexsort((curve(grid_cells(position, batch.node_ptr)), batch.node_graph))


def _available(method: str) -> str:
    """Return what "auto" means here."""
    if method != "auto":
        return method
    try:
        import_pymetis()
    except ImportError:
        _warn_once()
        return "rcm"
    return "partition"


@cache
def _warn_once() -> None:
    warnings.warn(
        "pymetis is not installed, so graphs are reordered by 'rcm' rather than 'partition': "
        "pip install 'sklearn-mgk[reordering]', or choose method='rcm'",
        UserWarning,
        stacklevel=5,
    )


def _seed(random_state: int | None) -> int:
    return int(np.random.default_rng().integers(2**31) if random_state is None else random_state)


def _check(method: str, random_state: int | None, n_sweeps: int) -> None:
    """Raise a ValueError for a parameter without meaning."""
    if method not in METHODS:
        raise ValueError(f"method={method!r} of Reorder must be one of {list(METHODS)}")
    if random_state is not None and not _is_count(random_state):
        raise ValueError(
            f"random_state={random_state!r} of Reorder must be an integer from 0 to 2**63 - 1, or "
            "None"
        )
    if not _is_count(n_sweeps):
        raise ValueError(f"n_sweeps={n_sweeps!r} of Reorder must be an integer >= 0")


def _is_count(value: Any) -> bool:
    return isinstance(value, Integral) and 0 <= value < 2**63
