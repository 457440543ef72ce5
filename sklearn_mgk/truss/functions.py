# SPDX-License-Identifier: BSD-3-Clause
"""The k-truss, trussness and support of the edges of graphs, as functions."""

from __future__ import annotations

from numbers import Integral
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sklearn_mgk.truss.backends import get_backend
from sklearn_mgk.truss.edges import ORDERS
from sklearn_mgk.truss.sources import as_source
from sklearn_mgk.truss.support import GRANULARITIES


def k_truss(
    graphs: Any,
    k: int,
    *,
    granularity: str = "auto",
    order: str = "degree",
    backend: str = "cpu",
) -> Any:
    """Return the k-truss: the greatest subgraph whose edges all lie in k - 2 of its triangles.

    Support of all edges, away with those that have less than k - 2, and again until none goes. A
    triangle, once found, counts for its three edges at once (eager k-truss [1]_).

    Parameters
    ----------
    graphs : GraphBatch, Graph, networkx.Graph, scipy sparse matrix, or sequence of one of these
        Undirected graphs. Matrices are symmetric; weights other than 0 do not matter.
    k : int
        At least 2. The 2-truss has all edges, the 3-truss those in triangles.
    granularity : {"auto", "fine", "coarse"}, default="auto"
        Whether threads share out the edges (fine) or the nodes (coarse). "auto" is what was faster:
        coarse on the CPU, fine on a GPU.
    order : {"degree", "natural"}, default="degree"
        How nodes are numbered while triangles are counted. By degree is faster, the more so the
        more degrees differ.
    backend : {"cpu", "cuda"}, default="cpu"
        Where to compute. "cuda" needs CuPy.

    Returns
    -------
    GraphBatch, Graph, networkx.Graph or csr_array, or list of one of the latter two
        The k-truss of each graph, with its attributes or values:

        - of a GraphBatch or a sequence of Graph a GraphBatch, of a Graph a Graph: all nodes stay;
        - of a networkx graph one without the nodes that have no edge left, as in networkx;
        - of a matrix a `scipy.sparse.csr_array` of the same shape.

        All variants and backends return the same.

    Raises
    ------
    ValueError
        k is below 2, a graph is directed, a matrix is not symmetric, or an option is unknown.
    TypeError
        The graphs are of another kind.
    MemoryError
        The graphs do not fit on the GPU.

    Warns
    -----
    UserWarning
        Self-loops and parallel edges were left out, with their numbers.

    See Also
    --------
    trussness : The greatest k for each edge.

    References
    ----------
    .. [1] M. P. Blanco, T. M. Low, K. Kim, "Exploration of fine-grained parallelism for load
       balancing eager k-truss on GPU and CPU", HPEC 2019.
       https://doi.org/10.48550/arXiv.2009.07929

    Examples
    --------
    >>> import numpy as np
    >>> from scipy import sparse
    >>> from sklearn_mgk.truss import k_truss
    >>> triangle_with_tail = np.array([[0, 1, 1, 0], [1, 0, 1, 0], [1, 1, 0, 1], [0, 0, 1, 0]])
    >>> k_truss(sparse.csr_array(triangle_with_tail), 3).toarray()
    array([[0, 1, 1, 0],
           [1, 0, 1, 0],
           [1, 1, 0, 0],
           [0, 0, 0, 0]])
    """
    if not isinstance(k, Integral) or k < 2:
        raise ValueError(f"k={k!r} must be an integer of at least 2: the 2-truss is the graph")
    variant = _variant(granularity, order)
    source, chosen = as_source(graphs), get_backend(backend)
    return source.select(chosen.k_truss(source.edges, int(k), **variant))


def trussness(graphs: Any, *, backend: str = "cpu") -> Any:
    """Return the trussness of each edge: the greatest k whose k-truss has it.

    All graphs are packed together; small ones are shared out between threads, in a large one
    threads share the edges [1]_.

    Parameters
    ----------
    graphs : GraphBatch, Graph, networkx.Graph, scipy sparse matrix, or sequence of one of these
        Undirected graphs. Matrices are symmetric; weights other than 0 do not matter.
    backend : {"cpu", "cuda"}, default="cpu"
        Where to compute. "cuda" needs CuPy.

    Returns
    -------
    ndarray, dict or csr_array, or list of one of the latter two
        At least 2 for each edge:

        - of a GraphBatch, a Graph or a sequence of Graph an array of shape (n_edges,), int64, edges
          in their order, those of all graphs together;
        - of a networkx graph a dict from edges, as ``G.edges`` gives them, to int;
        - of a matrix a symmetric `scipy.sparse.csr_array` of int64.

        A self-loop and an edge of weight 0 have 0, parallel edges the trussness of one edge.

    Raises
    ------
    ValueError
        A graph is directed, a matrix is not symmetric, or the backend is unknown.
    TypeError
        The graphs are of another kind.
    MemoryError
        The graphs do not fit on the GPU.

    Warns
    -----
    UserWarning
        Self-loops and parallel edges were left out, with their numbers.

    References
    ----------
    .. [1] H. Kabir, K. Madduri, "Parallel k-truss decomposition on multicore systems", HPEC 2017.
       https://doi.org/10.48550/arXiv.1707.02000

    Examples
    --------
    >>> from sklearn_mgk import from_arrays
    >>> from sklearn_mgk.truss import trussness
    >>> trussness(from_arrays([{"n_nodes": 4, "edge_index": [[0, 0, 1, 2], [1, 2, 2, 3]]}]))
    array([3, 3, 3, 2])
    """
    source, chosen = as_source(graphs), get_backend(backend)
    return source.answer(chosen.trussness(source.edges))


def edge_support(
    graphs: Any, *, granularity: str = "auto", order: str = "degree", backend: str = "cpu"
) -> Any:
    """Return the support of each edge: the number of triangles that it lies in.

    Parameters
    ----------
    graphs : GraphBatch, Graph, networkx.Graph, scipy sparse matrix, or sequence of one of these
        Undirected graphs. Matrices are symmetric; weights other than 0 do not matter.
    granularity : {"auto", "fine", "coarse"}, default="auto"
        As for `k_truss`.
    order : {"degree", "natural"}, default="degree"
        As for `k_truss`.
    backend : {"cpu", "cuda"}, default="cpu"
        Where to compute. "cuda" needs CuPy.

    Returns
    -------
    ndarray, dict or csr_array, or list of one of the latter two
        As for `trussness`. They add up to three times the number of triangles (a matrix, which
        has each edge twice, to six times). In a matrix edges without triangles are stored zeros.

    Raises
    ------
    ValueError
        A graph is directed, a matrix is not symmetric, or an option is unknown.
    TypeError
        The graphs are of another kind.
    MemoryError
        The graphs do not fit on the GPU.

    Warns
    -----
    UserWarning
        Self-loops and parallel edges were left out, with their numbers.

    Examples
    --------
    >>> import networkx as nx
    >>> from sklearn_mgk.truss import edge_support
    >>> edge_support(nx.Graph([("a", "b"), ("b", "c"), ("a", "c"), ("c", "d")]))
    {('a', 'b'): 1, ('a', 'c'): 1, ('b', 'c'): 1, ('c', 'd'): 0}
    """
    variant = _variant(granularity, order)
    source, chosen = as_source(graphs), get_backend(backend)
    return source.answer(chosen.support(source.edges, **variant))


def max_truss(graphs: Any, *, backend: str = "cpu") -> NDArray | int:
    """Return the greatest k for which the k-truss of each graph has an edge.

    Parameters
    ----------
    graphs : GraphBatch, Graph, networkx.Graph, scipy sparse matrix, or sequence of one of these
        Undirected graphs. Matrices are symmetric; weights other than 0 do not matter.
    backend : {"cpu", "cuda"}, default="cpu"
        Where to compute. "cuda" needs CuPy.

    Returns
    -------
    ndarray of shape (n_graphs,), int64, or int for a single graph
        The greatest k, 0 for graphs without edges.

    Raises
    ------
    ValueError
        A graph is directed, a matrix is not symmetric, or the backend is unknown.
    TypeError
        The graphs are of another kind.
    MemoryError
        The graphs do not fit on the GPU.

    Warns
    -----
    UserWarning
        Self-loops and parallel edges were left out, with their numbers.

    Notes
    -----
    In a single graph the k is searched for in its cores; several graphs are peeled together.

    Examples
    --------
    >>> import networkx as nx
    >>> from sklearn_mgk.truss import max_truss
    >>> max_truss([nx.complete_graph(5), nx.path_graph(3), nx.icosahedral_graph()])
    array([5, 2, 4])
    """
    source, chosen = as_source(graphs), get_backend(backend)
    edges = source.edges
    if len(edges.node_ptr) == 2:
        found = chosen.max_truss(edges)
        return found if source.single else np.array([found])
    return greatest_of_each(chosen.trussness(edges), edges.edge_ptr)


def greatest_of_each(values: NDArray, ptr: NDArray) -> NDArray:
    """Greatest value of each group of consecutive rows, 0 for groups without rows."""
    found = np.zeros(len(ptr) - 1, np.int64)
    filled = np.flatnonzero(np.diff(ptr))
    if len(filled):
        found[filled] = np.maximum.reduceat(values, ptr[filled])
    return found


def _variant(granularity: str, order: str) -> dict[str, str]:
    """Check the options of an eager count."""
    known = {"granularity": ("auto", *GRANULARITIES), "order": ORDERS}
    for name, value in (("granularity", granularity), ("order", order)):
        if value not in known[name]:
            raise ValueError(f"{name}={value!r} must be one of {list(known[name])}")
    return {"granularity": granularity, "order": order}
