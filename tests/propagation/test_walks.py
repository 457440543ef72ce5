# SPDX-License-Identifier: BSD-3-Clause
"""Anonymous walks: against enumeration by hand, their number, and the bound on samples."""

import itertools
import math
import pickle

import networkx as nx
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import cross_val_score
from sklearn.pipeline import make_pipeline

from sklearn_mgk import NetworkXToGraphs, from_arrays, from_networkx, from_smiles
from sklearn_mgk.propagation import AnonymousWalkEmbedding, sample_size
from sklearn_mgk.propagation.walk_types import n_walk_types, walk_tree


def brute_force(A, length, labels=None):
    """Probability of each type, by the definition, from a dense matrix of weights."""
    A = A - np.diag(np.diag(A))
    starts = np.flatnonzero(A.sum(axis=1))
    found = {}
    for walk in itertools.product(range(len(A)), repeat=length + 1):
        share = float(A[walk[0]].any()) / max(len(starts), 1)
        for i, j in itertools.pairwise(walk):
            share *= A[i, j] / A[i].sum() if A[i, j] else 0
        if share:
            names = {node: name for name, node in enumerate(dict.fromkeys(walk))}
            spelled = [str(names[node]) for node in walk]
            if labels is not None:
                spelled = [f"{labels[v]}:{name}" for v, name in zip(walk, spelled, strict=True)]
            name = "walk_" + "-".join(spelled)
            found[name] = found.get(name, 0) + share
    return found


def as_dicts(model, graphs):
    """Return the features that are not zero, by name, for each graph."""
    table, names = model.transform(graphs), model.get_feature_names_out()
    return [{name: x for name, x in zip(names, row, strict=True) if x} for row in table]


@st.composite
def weighted_graphs(draw):
    n = draw(st.integers(1, 5))
    A = np.zeros((n, n))
    for i, j in itertools.combinations_with_replacement(range(n), 2):
        A[i, j] = A[j, i] = draw(st.sampled_from([0, 0, 1, 1, 0.5, 3]))
    return A


@settings(max_examples=40)
@given(st.lists(weighted_graphs(), min_size=1, max_size=3), st.integers(1, 4))
def test_exact_features_are_those_of_enumeration(matrices, length):
    graphs = [weighted(A) for A in matrices]
    batch = from_arrays(graphs)
    found = as_dicts(AnonymousWalkEmbedding(length).fit(batch), batch)
    labeled = as_dicts(AnonymousWalkEmbedding(length, labels="l").fit(batch), batch)
    for A, graph, own, own_labeled in zip(matrices, graphs, found, labeled, strict=True):
        assert own == pytest.approx(brute_force(A, length))
        assert own_labeled == pytest.approx(brute_force(A, length, graph["nodes"]["l"]))


def weighted(A):
    u, v = np.nonzero(np.triu(A))
    labels = [("C", "O")[k % 2] for k in range(len(A))]
    return {"edge_index": [u, v], "edge_weight": A[u, v], "nodes": {"l": labels}}


@pytest.mark.parametrize("length", range(1, 9))
def test_types_are_numbered_by_the_tree(length):
    tree = walk_tree(length)
    names = list(map(tuple, tree.names))
    assert len(set(names)) == len(names) == n_walk_types(length)
    assert names == sorted(names)
    for number, walk in enumerate(names[:200]):
        place = 0
        for name in walk[1:]:
            place = tree.child[place, name]
        assert place == tree.first + number
    for walk in names:
        assert all(name <= max(walk[:k]) + 1 for k, name in enumerate(walk) if k)
        assert all(a != b for a, b in itertools.pairwise(walk))


def test_numbers_of_types_are_bell_numbers():
    known = [1, 2, 5, 15, 52, 203, 877, 4140, 21147, 115975]
    assert [n_walk_types(length) for length in range(1, 11)] == known


def test_known_sample_sizes():
    assert sample_size(877, 0.1, 0.01) == 122_500
    assert sample_size(52, 0.1, 0.05) == 7_808
    assert sample_size(52, 0.05, 0.05) == 31_232
    assert sample_size(15, 0.1, 0.05) == 2_679
    assert sample_size(1, 0.1, 0.05) == 1
    expected = math.ceil(2 / 0.2**2 * (math.log(2**4 - 2) - math.log(0.3)))
    assert sample_size(4, 0.2, 0.3) == expected


@pytest.mark.parametrize("labels", [None, "element"])
def test_samples_are_within_the_bound(labels):
    batch = from_smiles(["CCO", "c1ccccc1O", "CC(C)(C)C", "C1CC1", "C"] * 8)
    exact = AnonymousWalkEmbedding(4, labels=labels).fit(batch)
    sampled = AnonymousWalkEmbedding(
        4, "sampling", eps=0.15, delta=0.01, labels=labels, random_state=0
    ).fit(batch)
    expected, found = (
        dict(zip(model.get_feature_names_out(), model.transform(batch).T, strict=True))
        for model in (exact, sampled)
    )
    assert set(found) <= set(expected)
    distance = sum(abs(found.get(name, 0) - x) for name, x in expected.items())
    assert distance.max() < 0.15
    assert distance[0] > 0
    assert (distance[4::5] == 0).all()


def test_samples_do_not_depend_on_threads_and_differ_between_graphs():
    batch = from_smiles(["CC(C)CO"] * 40)
    many = AnonymousWalkEmbedding(3, "sampling", n_samples=2000, random_state=3)
    few = clone(many).fit(batch[:2]).transform(batch[:2])
    assert_array_equal(many.fit_transform(batch)[:2], few)
    assert (few[0] != few[1]).any()
    assert (many.set_params(random_state=4).transform(batch)[0] != few[0]).any()


def test_weights_steer_walks():
    batch = from_arrays([{"n_nodes": 3, "edge_index": [[0, 0], [1, 2]], "edge_weight": [3.0, 1.0]}])
    exact = AnonymousWalkEmbedding(2).fit_transform(batch)
    # From the middle node a walk always comes back; from the ends with its own weight.
    assert_allclose(exact, [[(1 + 3 / 4 + 1 / 4) / 3, (1 / 4 + 3 / 4) / 3]])
    sampled = AnonymousWalkEmbedding(2, "sampling", n_samples=200_000, random_state=0)
    assert_allclose(sampled.fit_transform(batch), exact, atol=0.005)


def test_the_order_of_nodes_does_not_matter():
    graph = nx.gnp_random_graph(12, 0.3, seed=1)
    shuffled = nx.relabel_nodes(graph, dict(enumerate(np.random.default_rng(0).permutation(12))))
    both = AnonymousWalkEmbedding(5).fit_transform(from_networkx([graph, shuffled]))
    assert_allclose(both[0], both[1], atol=1e-14)
    assert both.sum() == pytest.approx(2)


def test_graphs_without_edges_have_zeros():
    for method in ("exact", "sampling"):
        table = AnonymousWalkEmbedding(3, method, n_samples=10).fit_transform(from_smiles(["C"]))
        assert not table.any()
        labeled = AnonymousWalkEmbedding(3, method, labels="element").fit(from_smiles(["C"]))
        assert labeled.transform(from_smiles(["C", "CO"])).shape == (2, 0)


def test_labels_that_fit_did_not_see_are_left_out():
    model = AnonymousWalkEmbedding(2, labels="element").fit(from_smiles(["CCO"]))
    assert model.transform(from_smiles(["CCO"])).sum() == pytest.approx(1)
    rest = model.transform(from_smiles(["CCN", "NN"])).sum(axis=1)
    assert 0 < rest[0] < 1
    assert rest[1] == 0


def test_in_a_pipeline():
    graphs = [make(n) for make in (nx.cycle_graph, nx.star_graph) for n in range(5, 15)]
    y = [0] * 10 + [1] * 10
    walks = AnonymousWalkEmbedding(length=4)
    model = make_pipeline(NetworkXToGraphs(), walks, LogisticRegression(C=1e4))
    assert cross_val_score(model, graphs, y, cv=2).min() == 1
    batch = from_networkx(graphs)
    copied = pickle.loads(pickle.dumps(walks.fit(batch)))
    assert_array_equal(copied.transform(batch), walks.transform(batch))
    table = walks.set_output(transform="pandas").fit_transform(batch)
    assert table.columns[0] == "walk_0-1-0-1-0"


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"length": 0}, "length=0 must be an integer"),
        ({"length": 2.5}, "length=2.5"),
        ({"length": 11}, "length=11 has 678570 types of anonymous walks, at most 200000"),
        ({"length": 10**9}, "more than 1e115 types"),
        ({"method": "all"}, "method='all' must be one of"),
        ({"eps": 0}, "eps=0 must be a number between 0 and 2"),
        ({"delta": 1.0}, "delta=1.0"),
        ({"n_samples": 0}, "n_samples=0"),
        ({"labels": 3}, "labels=3"),
        ({"labels": "colour"}, "no node attribute 'colour'"),
        ({"labels": "ring_sizes"}, "'ring_sizes' holds lists"),
        ({"length": 10, "eps": 1e-3, "method": "sampling"}, "ask for 1.6e\\+11 walks a graph"),
    ],
)
def test_bad_parameters(options, message):
    with pytest.raises(ValueError, match=message):
        AnonymousWalkEmbedding(**options).fit(from_smiles(["CCO"]))


def test_too_many_labels():
    batch = from_arrays(
        [{"edge_index": [[0], [1]], "nodes": {"l": list(range(99))}}, {"nodes": {"l": [0]}}]
    )
    with pytest.raises(ValueError, match=r"up to \d\.\de\+\d+ types of walks, more than 64 bits"):
        AnonymousWalkEmbedding(9, labels="l").fit(batch)


def test_labels_may_not_change_their_type():
    model = AnonymousWalkEmbedding(2, labels="element").fit(from_smiles(["CCO"]))
    other = from_smiles(["CCO"]).with_columns(nodes={"element": [6, 6, 8]})
    with pytest.raises(ValueError, match="in fit it was of type"):
        model.transform(other)


def test_too_many_walks():
    graphs = from_networkx([nx.path_graph(3), nx.complete_graph(100)])
    with pytest.raises(ValueError, match=r"graph 1 has \d.\de\+\d+ walks of length=7.*sampling"):
        AnonymousWalkEmbedding(7).fit_transform(graphs)
