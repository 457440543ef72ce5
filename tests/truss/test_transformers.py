# SPDX-License-Identifier: BSD-3-Clause
"""Trussness as an attribute and as features."""

import pickle

import networkx as nx
import numpy as np
import pytest
from numpy.testing import assert_array_equal
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import cross_val_score
from sklearn.pipeline import make_pipeline, make_union
from sklearn.svm import SVC

from sklearn_mgk import MarginalizedGraphKernel, NetworkXToGraphs, from_arrays, from_networkx
from sklearn_mgk.base_kernels import KroneckerDelta
from sklearn_mgk.truss import TrussFeatures, TrussLabeler, trussness


def clustered(n=24):
    """Return graphs with and without triangles, by turns, and which have them."""
    has = np.arange(n) % 2 == 0
    graphs = [
        nx.powerlaw_cluster_graph(20, 2, 0.95 if h else 0.0, seed=k) for k, h in enumerate(has)
    ]
    return graphs, has


@pytest.fixture(scope="module")
def batch():
    """Graphs with an isolated node, of one node, and of no edges among them."""
    lonely = nx.lollipop_graph(4, 3)
    lonely.add_node("alone")
    return from_networkx([lonely, nx.empty_graph(1), nx.cycle_graph(5), nx.complete_graph(6)])


@pytest.mark.parametrize("on", ["edge", "node", "both"])
def test_labels(on, batch):
    labeled = TrussLabeler(on).fit_transform(batch)
    assert ("trussness" in labeled.edges) == (on != "node")
    assert ("trussness" in labeled.nodes) == (on != "edge")
    if on != "node":
        assert_array_equal(labeled.edges["trussness"], trussness(batch))
    if on != "edge":
        for graph, labels in zip(batch, labeled, strict=True):
            expected = [
                max(
                    (k for k in range(2, 9) if node in nx.k_truss(graph.to_networkx(), k)),
                    default=0,
                )
                for node in range(graph.n_nodes)
            ]
            assert labels.nodes["trussness"].tolist() == expected


def test_labels_are_whole_numbers_and_replace_those_of_that_name(batch):
    once = TrussLabeler("both", attribute="t").fit_transform(batch)
    twice = TrussLabeler("both", attribute="t").fit_transform(once)
    assert once.edges["t"].dtype == once.nodes["t"].dtype == np.int64
    assert_array_equal(once.nodes["t"], twice.nodes["t"])
    assert "t" not in batch.nodes


def test_base_kernels_read_the_labels():
    graphs, has = clustered()
    kernel = MarginalizedGraphKernel(
        edge_kernel=KroneckerDelta("trussness", h=0.2), normalization="cosine"
    )
    model = make_pipeline(NetworkXToGraphs(), TrussLabeler(), kernel, SVC(kernel="precomputed"))
    assert cross_val_score(model, graphs, has, cv=3).min() == 1.0


@pytest.mark.parametrize("of", ["edge", "node", "both"])
def test_features_count(of, batch):
    features = TrussFeatures(of).fit(batch)
    table = features.transform(batch)
    names = features.get_feature_names_out().tolist()
    assert table.shape == (4, len(names))
    assert table.dtype == np.float64
    found = {name: column.tolist() for name, column in zip(names, table.T, strict=True)}
    if of != "node":
        assert found["edges_trussness2"] == [3, 0, 5, 0]
        assert found["edges_trussness4"] == [6, 0, 0, 0]
        assert found["edges_trussness6"] == [0, 0, 0, 15]
    if of != "edge":
        assert found["nodes_trussness2"] == [3, 0, 5, 0]
        assert found["nodes_trussness4"] == [4, 0, 0, 0]
        assert found["nodes_trussness6"] == [0, 0, 0, 6]
    assert len(names) == {"edge": 5, "node": 5, "both": 10}[of]


def test_deeper_levels_are_counted_in_the_last_column(batch):
    features = TrussFeatures().fit(batch[:1])
    assert features.max_level_ == 4
    assert features.transform(batch)[3].tolist() == [0, 0, 15]
    fixed = TrussFeatures(max_level=3).fit(batch)
    assert fixed.transform(batch)[:, 1].tolist() == [6, 0, 0, 15]


def test_shares_add_up_to_one(batch):
    table = TrussFeatures(normalize=True).fit_transform(batch)
    assert table.sum(axis=1).tolist() == [1, 0, 1, 1]


def test_features_in_a_pipeline_with_names():
    graphs, has = clustered()
    union = make_union(TrussFeatures(), TrussFeatures("node", normalize=True))
    model = make_pipeline(NetworkXToGraphs(), union, LogisticRegression())
    assert cross_val_score(model, graphs, has, cv=3).min() == 1.0
    table = TrussFeatures().set_output(transform="pandas").fit_transform(from_networkx(graphs))
    assert table.columns[0] == "edges_trussness2"


@pytest.mark.parametrize("transformer", [TrussLabeler("both"), TrussFeatures("node", max_level=4)])
def test_copies(transformer, batch):
    for copied in (clone(transformer), pickle.loads(pickle.dumps(transformer))):
        assert copied.get_params() == transformer.get_params()
    transformer.fit_transform(batch)


def test_graphs_without_any_edge():
    batch = from_arrays([{"n_nodes": 2, "edge_index": [[], []]}])
    assert TrussFeatures().fit_transform(batch).tolist() == [[0.0]]
    assert TrussLabeler("both").fit_transform(batch).nodes["trussness"].tolist() == [0, 0]


@pytest.mark.parametrize(
    ("transformer", "message"),
    [
        (TrussLabeler("nodes"), "on='nodes' of TrussLabeler must be one of"),
        (TrussLabeler(attribute=""), "attribute='' of TrussLabeler must be a name"),
        (TrussLabeler(backend="tpu"), "backend='tpu' must be one of"),
        (TrussFeatures("graph"), "of='graph' of TrussFeatures must be one of"),
        (TrussFeatures(max_level=1), "max_level=1 of TrussFeatures must be an integer of at least"),
        (TrussFeatures(max_level=2.5), "max_level=2.5"),
        (TrussFeatures(backend="tpu"), "backend='tpu' must be one of"),
    ],
)
def test_bad_parameters(transformer, message, batch):
    with pytest.raises(ValueError, match=message):
        transformer.fit(batch)
