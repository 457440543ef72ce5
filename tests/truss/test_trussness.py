# SPDX-License-Identifier: BSD-3-Clause
"""Supports, trusses and trussness against networkx, known counts, and each other."""

import networkx as nx
import numba
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_array_equal
from truss.graphs import KNOWN, SETS, edge_set

from sklearn_mgk import from_networkx, threads
from sklearn_mgk.truss import edge_support, k_truss, max_truss, peeling, trussness
from sklearn_mgk.truss import support as counting
from sklearn_mgk.truss.cores import core_numbers
from sklearn_mgk.truss.eager import greatest_k, k_truss_edges
from sklearn_mgk.truss.edges import ORDERS, make_rows
from sklearn_mgk.truss.peeling import edge_trussness
from sklearn_mgk.truss.support import GRANULARITIES, row_support

every_graph = pytest.mark.parametrize("name", KNOWN)
every_set = pytest.mark.parametrize("name", SETS)
every_variant = pytest.mark.parametrize(
    ("granularity", "order"), [(g, o) for g in GRANULARITIES for o in ORDERS]
)


@st.composite
def graphs(draw):
    """Draw a graph of up to 14 nodes and any edges."""
    n = draw(st.integers(1, 14))
    pairs = [(i, j) for i in range(n) for j in range(i)]
    graph = nx.empty_graph(n)
    graph.add_edges_from(draw(st.lists(st.sampled_from(pairs), unique=True)) if pairs else [])
    return graph


def as_sets(edges):
    return {frozenset(edge) for edge in edges}


@given(graphs())
def test_every_truss_is_that_of_networkx(graph):
    of_edges = trussness(graph)
    for k in range(2, max(of_edges.values(), default=2) + 2):
        expected = as_sets(nx.k_truss(graph, k).edges)
        assert as_sets(edge for edge, t in of_edges.items() if t >= k) == expected
        for granularity in GRANULARITIES:
            for order in ORDERS:
                found = k_truss(graph, k, granularity=granularity, order=order)
                assert as_sets(found.edges) == expected
    assert max_truss(graph) == max(of_edges.values(), default=0)


@given(graphs())
def test_supports_add_up_to_three_times_the_triangles(graph):
    support = edge_support(graph)
    assert sum(support.values()) == sum(nx.triangles(graph).values())
    for (u, v), count in support.items():
        assert count == len(set(graph[u]) & set(graph[v]))


@given(graphs(), st.randoms(use_true_random=False))
def test_names_of_the_nodes_do_not_matter(graph, random):
    names = list(graph)
    random.shuffle(names)
    renamed = nx.relabel_nodes(graph, dict(zip(graph, names, strict=True)))
    of_edges, of_renamed = trussness(graph), trussness(renamed)
    new = {frozenset(edge): t for edge, t in of_renamed.items()}
    old = {frozenset(names[node] for node in edge): t for edge, t in of_edges.items()}
    assert new == old


@given(graphs())
def test_an_edge_is_no_deeper_than_its_core(graph):
    edges = edge_set(graph)
    cores = core_numbers(edges)
    assert_array_equal(cores, list(nx.core_number(graph).values()))
    ends = np.minimum(cores[edges.low], cores[edges.high])
    assert (edge_trussness(edges) <= ends + 1).all()


@every_graph
def test_counts_that_are_known(name):
    graph, triangles, greatest, levels = KNOWN[name]
    assert sum(edge_support(graph).values()) == 3 * triangles
    assert max_truss(graph) == greatest
    found = np.bincount(list(trussness(graph).values()))[2:]
    assert found.tolist() == levels


@every_set
@every_variant
@pytest.mark.parametrize("dtype", [np.int32, np.int64])
def test_all_variants_count_the_same(name, granularity, order, dtype):
    edges = edge_set(SETS[name])
    rows = make_rows(edges, order, dtype)
    assert rows.columns.dtype == rows.ptr.dtype == rows.edge.dtype == dtype
    there = rows.columns != 0
    found = np.empty(edges.n_edges, int)
    found[rows.edge[there]] = row_support(rows, granularity)[there]
    adjacency = np.zeros((edges.n_nodes, edges.n_nodes), int)
    adjacency[edges.low, edges.high] = adjacency[edges.high, edges.low] = 1
    assert_array_equal(found, (adjacency @ adjacency)[edges.low, edges.high])


@pytest.fixture
def many_threads(monkeypatch):
    """Let four threads share work of any size, down to single edges."""
    monkeypatch.setattr(numba.config, "NUMBA_NUM_THREADS", 4)
    monkeypatch.setattr(threads, "FEW", 0)
    monkeypatch.setattr(peeling, "_CHUNK", 1)
    monkeypatch.setattr(counting, "_CHUNK", {"coarse": 3, "fine": 5})


@every_set
@pytest.mark.parametrize("granularity", GRANULARITIES)
@pytest.mark.parametrize("private", [True, False], ids=["own counters", "atomic counters"])
def test_threads_count_the_same(name, granularity, private, many_threads, monkeypatch):
    monkeypatch.setattr(counting, "_MOST_PRIVATE", 2**26 if private else 0)
    rows = make_rows(edge_set(SETS[name]))
    together = row_support(rows, granularity)
    monkeypatch.setattr(threads, "FEW", 10**9)
    assert_array_equal(together, row_support(rows, granularity))


@every_set
@pytest.mark.parametrize("large", [1, 10**9], ids=["threads share graphs", "threads share a list"])
def test_threads_peel_the_same(name, large, many_threads, monkeypatch):
    edges = edge_set(SETS[name])
    expected = edge_trussness(edges)
    monkeypatch.setattr(peeling, "LARGE", large)
    monkeypatch.setattr(peeling, "_WIDE", 1)
    assert_array_equal(edge_trussness(edges), expected)


@every_set
@pytest.mark.parametrize("order", ORDERS)
def test_order_does_not_change_trussness(name, order):
    edges = edge_set(SETS[name])
    for k in range(2, 8):
        assert_array_equal(edge_trussness(edges, order) >= k, k_truss_edges(edges, k))


def test_batch_is_the_sum_of_its_graphs():
    batch = from_networkx(SETS["random"])
    assert_array_equal(trussness(batch), np.concatenate([trussness(graph) for graph in batch]))
    assert_array_equal(max_truss(batch), [max_truss(graph) for graph in batch])
    parts = [k_truss(graph, 4) for graph in batch]
    whole = k_truss(batch, 4)
    assert [graph.n_edges for graph in whole] == [graph.n_edges for graph in parts]


def test_greatest_k_where_the_densest_core_has_no_triangle():
    # The core of a complete bipartite graph is dense and has trussness 2; the clique is elsewhere.
    graph = nx.disjoint_union(nx.complete_bipartite_graph(9, 9), nx.complete_graph(5))
    assert max_truss(graph) == 5
    assert greatest_k(edge_set(graph), k_truss_edges, edge_trussness) == 5
