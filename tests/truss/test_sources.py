# SPDX-License-Identifier: BSD-3-Clause
"""What k-truss takes as graphs, what it gives back, and what it says of bad input."""

import sys

import networkx as nx
import numpy as np
import pytest
from numpy.testing import assert_array_equal
from scipy import sparse

from sklearn_mgk import from_arrays, from_networkx
from sklearn_mgk.graphs import Graph, GraphBatch
from sklearn_mgk.truss import edge_support, k_truss, max_truss, trussness
from sklearn_mgk.truss.edges import distinct_edges, index_type

# Two triangles that share the edge (1, 2), and a tail.
PAIRS = [(0, 1), (2, 0), (1, 2), (3, 1), (2, 3), (3, 4)]
TRUSSNESS = [3, 3, 3, 3, 3, 2]
SUPPORT = [1, 1, 2, 1, 1, 0]


def as_graph():
    graph = nx.Graph()
    graph.add_nodes_from(range(5), element="C")
    graph.add_edges_from((u, v, {"order": k}) for k, (u, v) in enumerate(PAIRS))
    return graph


def as_batch(copies=1):
    return from_networkx([as_graph()] * copies, weight=None)


def as_matrix(kind=sparse.csr_array):
    u, v = np.transpose(PAIRS)
    data = np.arange(1.0, 7)
    upper = sparse.coo_array((data, (u, v)), shape=(5, 5))
    return kind(upper + upper.T)


def test_batch_gives_arrays_and_batches():
    batch = as_batch(2)
    assert_array_equal(trussness(batch), TRUSSNESS * 2)
    assert_array_equal(edge_support(batch), SUPPORT * 2)
    truss = k_truss(batch, 3)
    assert isinstance(truss, GraphBatch)
    assert truss.edges["order"].tolist() == [0, 1, 2, 3, 4] * 2
    assert truss.nodes["element"].tolist() == ["C"] * 10
    assert_array_equal(max_truss(batch), [3, 3])


@pytest.mark.parametrize("kind", [list, tuple, lambda graphs: np.array(graphs, dtype=object)])
def test_views_give_what_their_batch_gives(kind):
    graphs = kind(list(as_batch(3)))
    assert_array_equal(trussness(graphs), TRUSSNESS * 3)
    assert len(k_truss(graphs, 3)) == 3


def test_one_view_gives_an_array_and_a_view():
    graph = as_batch(2)[1]
    assert_array_equal(trussness(graph), TRUSSNESS)
    truss = k_truss(graph, 3)
    assert isinstance(truss, Graph)
    assert (truss.n_nodes, truss.n_edges) == (5, 5)
    assert max_truss(graph) == 3


def test_networkx_gives_dicts_and_networkx():
    graph = as_graph()
    of_edges = trussness(graph)
    assert list(of_edges) == list(graph.edges)
    nx.set_edge_attributes(graph, of_edges, "trussness")
    assert graph.edges[3, 4]["trussness"] == 2
    truss = k_truss(graph, 3)
    expected = nx.k_truss(graph, 3)
    assert nx.utils.graphs_equal(truss, expected)
    assert all(isinstance(value, dict) for value in trussness([graph, graph]))
    assert [len(t) for t in k_truss([graph, graph], 3)] == [4, 4]


@pytest.mark.parametrize(
    "kind", [sparse.csr_array, sparse.csc_array, sparse.coo_array, sparse.csr_matrix]
)
def test_matrices_give_matrices(kind):
    matrix = as_matrix(kind)
    found = trussness(matrix)
    assert isinstance(found, sparse.csr_array)
    u, v = np.transpose(PAIRS)
    assert_array_equal(found.toarray()[u, v], TRUSSNESS)
    assert_array_equal(found.toarray(), found.toarray().T)
    support = edge_support(matrix)
    assert support.nnz == 12  # an edge without triangles is stored
    truss = k_truss(matrix, 3).toarray()
    assert truss[0, 1] == 1.0
    assert truss[1, 0] == 1.0
    assert truss[3, 4] == 0.0
    assert truss.shape == (5, 5)
    assert isinstance(trussness([matrix, matrix]), list)


def test_input_stays_as_it_is():
    matrix = as_matrix()
    matrix.data.flags.writeable = matrix.indices.flags.writeable = False
    before = matrix.toarray()
    k_truss(matrix, 3)
    assert_array_equal(matrix.toarray(), before)
    graph = as_graph()
    k_truss(graph, 3)
    assert graph.number_of_edges() == 6


def test_stored_zeros_and_weights_of_zero_are_no_edges():
    matrix = as_matrix()
    matrix.data[matrix.data == 3.0] = 0.0  # the edge between the triangles
    assert trussness(matrix).max() == 2
    weight = np.ones(6)
    weight[2] = 0.0
    graphs = from_arrays([{"n_nodes": 5, "edge_index": np.transpose(PAIRS), "edge_weight": weight}])
    assert_array_equal(trussness(graphs), [2, 2, 0, 2, 2, 2])
    assert k_truss(graphs, 2).n_edges == 5


LEFT_OUT = "1 self-loops and 2 parallel edges were left out, the first in graph 1"


def with_loops():
    more = [*PAIRS, (0, 0), (1, 0), (0, 1)]
    index = np.transpose(more)
    plain = {"n_nodes": 5, "edge_index": np.transpose(PAIRS)}
    return from_arrays([plain, {"n_nodes": 5, "edge_index": index}])


def test_self_loops_and_parallel_edges_are_left_out_with_a_count():
    graphs = with_loops()
    with pytest.warns(UserWarning, match=LEFT_OUT):
        found = trussness(graphs)
    assert_array_equal(found, [*TRUSSNESS, *TRUSSNESS, 0, 3, 3])
    with pytest.warns(UserWarning, match=LEFT_OUT):
        truss = k_truss(graphs, 3)
    assert [graph.n_edges for graph in truss] == [5, 5]


def test_multigraphs_are_simple_graphs():
    graph = nx.MultiGraph([*PAIRS, (0, 1), (4, 4)])
    with pytest.warns(UserWarning, match="1 self-loops and 1 parallel edges"):
        found = trussness(graph)
    assert found[0, 1, 0] == found[0, 1, 1] == 3
    assert found[4, 4, 0] == 0
    with pytest.warns(UserWarning, match="1 self-loops"):
        assert k_truss(graph, 3).number_of_edges() == 5


def test_diagonal_of_a_matrix_is_left_out_with_a_count():
    matrix = as_matrix() + sparse.eye_array(5)
    with pytest.warns(UserWarning, match="5 self-loops and 0 parallel edges"):
        found = trussness(matrix)
    assert found.nnz == 12


@pytest.mark.parametrize(
    ("graphs", "answer"),
    [
        (nx.Graph(), {}),
        (nx.empty_graph(3), {}),
        (nx.path_graph(2), {(0, 1): 2}),
        ([nx.Graph(), nx.path_graph(2)], [{}, {(0, 1): 2}]),
    ],
)
def test_empty_graphs_and_single_edges(graphs, answer):
    assert trussness(graphs) == answer


def test_empty_matrices_and_batches_without_edges():
    assert trussness(sparse.csr_array((0, 0))).shape == (0, 0)
    assert k_truss(sparse.csr_array((3, 3)), 5).nnz == 0
    graphs = from_arrays([{"n_nodes": 2, "edge_index": [[], []]}])
    assert trussness(graphs).shape == (0,)
    assert max_truss(graphs).tolist() == [0]
    assert max_truss(nx.Graph()) == 0
    assert k_truss(graphs, 3).n_nodes == 2


@pytest.mark.parametrize(
    ("graphs", "error", "message"),
    [
        (nx.DiGraph(PAIRS), ValueError, r"graph 0 is directed.*G\.to_undirected\(\)"),
        ([nx.Graph(), nx.DiGraph()], ValueError, "graph 1 is directed"),
        (
            sparse.csr_array([[0, 1], [0, 0]]),
            ValueError,
            r"graph 0: .* entry \(0, 1\) and none \(1, 0\): pass A \+ A\.T",
        ),
        ([sparse.csr_array((2, 2)), sparse.csr_array((2, 3))], ValueError, r"graph 1: .*\(2, 3\)"),
        (np.eye(3), ValueError, "one column"),
        ([np.eye(3)], TypeError, r"scipy\.sparse\.csr_array\(A\)"),
        ([], ValueError, "empty"),
        ("CCO", TypeError, "must be a sequence"),
        ([nx.Graph(), sparse.csr_array((2, 2))], TypeError, "row 1 .*csr_array.* one kind"),
        ([1, 2], TypeError, "row 0 of graphs is of type int"),
    ],
)
def test_bad_graphs(graphs, error, message):
    with pytest.raises(error, match=message):
        trussness(graphs)


@pytest.mark.parametrize("k", [1, 0, -3, 2.5, "3", None])
def test_bad_k(k):
    with pytest.raises(ValueError, match=f"k={k!r} must be an integer of at least 2"):
        k_truss(as_graph(), k)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"granularity": "medium"}, "granularity='medium' must be one of .*'fine'"),
        ({"order": "random"}, "order='random' must be one of .*'degree'"),
        ({"backend": "tpu"}, "backend='tpu' must be one of .*'cuda'"),
    ],
)
def test_bad_options(options, message):
    with pytest.raises(ValueError, match=message):
        k_truss(as_graph(), 3, **options)


def test_cuda_without_cupy_names_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "cupy", None)
    with pytest.raises(ImportError, match=r"sklearn-mgk\[cuda13\]"):
        trussness(as_graph(), backend="cuda")


def test_k_beyond_the_greatest_leaves_nothing():
    assert k_truss(as_graph(), 1000).number_of_edges() == 0
    assert k_truss(as_graph(), np.int64(3)).number_of_edges() == 5


def test_indices_grow_with_the_graphs():
    assert index_type(2**31 - 2) is np.int32
    assert index_type(2**31 - 1) is np.int64
    u, v = np.transpose(PAIRS)
    used = np.ones(6, bool)
    edges, *_ = distinct_edges(np.array([0, 5]), u, v, used, np.int64)
    assert edges.low.dtype == edges.high.dtype == np.int64
