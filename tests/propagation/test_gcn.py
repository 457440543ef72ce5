# SPDX-License-Identifier: BSD-3-Clause
"""Propagation features: against dense matrices, by hand, and as scikit-learn uses them."""

import pickle

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline

from sklearn_mgk import SmilesToGraphs, from_adjacency, from_arrays, from_smiles
from sklearn_mgk.propagation import GCNPropagation, propagate, propagation_matrix
from sklearn_mgk.propagation.normalization import HOPS, NORMALIZATIONS

SMILES = ["CCO", "C", "c1ccccc1O", "CC(=O)N", "[Na+].[Cl-]"]

every_normalization = pytest.mark.parametrize("normalization", NORMALIZATIONS)
every_loop = pytest.mark.parametrize("self_loops", [True, False])


def weights(n=12, seed=0):
    """Return symmetric weights with an isolated node and a self-loop."""
    rng = np.random.default_rng(seed)
    A = np.triu(rng.random((n, n)) * (rng.random((n, n)) < 0.3), 1)
    A = A + A.T
    A[2, 2] = 1.5
    A[5] = A[:, 5] = 0
    A.flags.writeable = False
    return A


def dense_matrix(A, normalization, self_loops):
    A = A + np.eye(len(A)) * self_loops
    with np.errstate(divide="ignore"):
        d = A.sum(axis=1)
        half = np.where(d > 0, d**-0.5, 0)
    return {
        "none": A,
        "symmetric": half[:, None] * A * half,
        "random-walk": (half**2)[:, None] * A,
    }[normalization]


@every_normalization
@every_loop
def test_matrices(normalization, self_loops):
    A = weights()
    expected = dense_matrix(A, normalization, self_loops)
    for given in (A, sparse.csr_array(A), sparse.coo_array(A), from_adjacency([A])):
        found = propagation_matrix(given, normalization, self_loops=self_loops)
        assert_allclose(found.toarray(), expected, atol=1e-15)
    assert propagation_matrix(A.astype(np.float32)).dtype == np.float32
    assert propagation_matrix(A > 0).dtype == np.float64


def test_rows_of_random_walks_add_up_to_one():
    assert_allclose(propagation_matrix(weights(), "random-walk").sum(axis=1), 1)


def test_the_symmetric_matrix_has_no_eigenvalue_beyond_one():
    assert abs(np.linalg.eigvalsh(propagation_matrix(weights()).toarray())).max() <= 1 + 1e-12


@every_normalization
@every_loop
@pytest.mark.parametrize("hops", HOPS)
@pytest.mark.parametrize("n_hops", [0, 1, 3])
def test_hops(normalization, self_loops, hops, n_hops):
    A, X = weights(), np.random.default_rng(1).normal(size=(12, 5))
    S = dense_matrix(A, normalization, self_loops)
    each = [np.linalg.matrix_power(S, k) @ X for k in range(n_hops + 1)]
    expected = {"last": each[-1], "concat": np.hstack(each), "mean": np.mean(each, axis=0)}[hops]
    options = {"normalization": normalization, "self_loops": self_loops, "hops": hops}
    before = X.copy()
    assert_allclose(propagate(A, X, n_hops, **options), expected, atol=1e-13)
    assert_array_equal(X, before)


@pytest.mark.parametrize("pooling", ["mean", "sum", "max", None])
@pytest.mark.parametrize("hops", HOPS)
def test_a_batch_is_done_graph_by_graph(pooling, hops):
    batch = from_smiles(SMILES)
    model = GCNPropagation(2, pooling=pooling, hops=hops).fit(batch)
    one_by_one = np.vstack([model.transform(batch[k : k + 1]) for k in range(len(batch))])
    assert_allclose(model.transform(batch), one_by_one, atol=1e-14)
    assert model.transform(batch).shape[1] == len(model.get_feature_names_out())
    features = GCNPropagation(0).fit(batch)
    X = features.transform(batch)
    nodes = propagate(batch, X, 2, hops=hops)
    pool = {"mean": np.mean, "sum": np.sum, "max": np.max}.get(pooling, lambda x, axis: x)
    parts = np.split(nodes, batch.node_ptr[1:-1])
    assert_allclose(model.transform(batch), np.vstack([pool(p, axis=0) for p in parts]), atol=1e-14)


def test_a_graph_alone():
    batch = from_smiles(SMILES)
    model = GCNPropagation(attributes=["element"]).fit(batch)
    assert_array_equal(model.transform(batch[2]), model.transform(batch[2:3]))


def test_the_order_of_nodes_does_not_matter():
    A, X = weights(), np.random.default_rng(1).normal(size=(12, 5))
    order = np.random.default_rng(2).permutation(12)
    assert_allclose(propagate(A[order][:, order], X[order]), propagate(A, X)[order], atol=1e-14)


def test_columns():
    tables = [
        {"s": ["b", "a"], "x": [1, 2], "v": [[1, 2], [3, 4.5]]},
        {"s": ["a"], "x": [2], "v": [[5, 6.0]]},
    ]
    batch = from_arrays([{"nodes": nodes} for nodes in tables])
    model = GCNPropagation(0, categorical=["x"]).fit(batch)
    assert model.get_feature_names_out().tolist() == ["s=a", "s=b", "x=1", "x=2", "v0", "v1"]
    expected = [[0, 1, 1, 0, 1, 2], [1, 0, 0, 1, 3, 4.5], [1, 0, 0, 1, 5, 6]]
    assert model.transform(batch).tolist() == expected
    names = GCNPropagation(1, hops="concat", attributes=["x"]).fit(batch).get_feature_names_out()
    assert names.tolist() == ["x_hop0", "x_hop1"]


def test_categories_that_fit_did_not_see_have_zeros():
    model = GCNPropagation(0, attributes=["element"]).fit(from_smiles(["CO"]))
    assert model.transform(from_smiles(["NCO"])).tolist() == [[0, 0], [1, 0], [0, 1]]


def test_graphs_without_attributes_have_ones():
    batch = from_arrays([{"n_nodes": 3, "edge_index": [[0, 1], [1, 2]]}])
    model = GCNPropagation(1, normalization="none").fit(batch)
    assert model.transform(batch).tolist() == [[2], [3], [2]]
    assert model.get_feature_names_out().tolist() == ["one"]


def test_types():
    batch = from_smiles(SMILES)
    assert GCNPropagation(dtype="float32").fit_transform(batch).dtype == np.float32
    single = propagate(weights().astype(np.float32), np.ones((12, 2), np.float32))
    assert single.dtype == np.float32
    assert propagate(weights(), np.ones((12, 2), np.float32)).dtype == np.float64
    assert propagate(weights() > 0, np.ones((12, 2), int)).dtype == np.float64


def test_in_a_pipeline_with_a_search():
    smiles = ["C" * n + tail for n in range(2, 12) for tail in ("O", "N")]
    y = ["O" in s for s in smiles]
    model = make_pipeline(
        SmilesToGraphs(), GCNPropagation(pooling="mean"), LogisticRegression(C=1e3)
    )
    search = GridSearchCV(model, {"gcnpropagation__n_hops": [0, 2]}, cv=2).fit(smiles, y)
    assert search.best_score_ == 1
    copied = pickle.loads(pickle.dumps(search.best_estimator_))
    assert_array_equal(copied.predict(smiles), y)
    table = GCNPropagation(pooling="sum").set_output(transform="pandas")
    assert "element=O" in table.fit_transform(from_smiles(smiles)).columns
    assert clone(table).get_params() == table.get_params()


BAD_MATRICES = {
    "not symmetric": ([[0, 1], [0, 0]], {}, r"entry \(0, 1\) is 1 and \(1, 0\) is 0"),
    "negative": ([[0, -1], [-1, 0]], {}, r"entry \(0, 1\) of A is -1"),
    "nan": ([[0, np.nan], [np.nan, 0]], {"normalization": "none"}, r"entry \(0, 1\) of A is nan"),
    "not square": (np.ones((2, 3)), {}, r"square, got shape \(2, 3\)"),
    "normalization": (np.eye(2), {"normalization": "left"}, "normalization='left' must be one of"),
    "hops": (np.eye(2), {"hops": "all"}, "hops='all' must be one of"),
    "n_hops": (np.eye(2), {"n_hops": -1}, "n_hops=-1 must be an integer"),
    "half hops": (np.eye(2), {"n_hops": 0.5}, "n_hops=0.5 must be an integer"),
}


@pytest.mark.parametrize("name", BAD_MATRICES)
def test_bad_matrices(name):
    A, options, message = BAD_MATRICES[name]
    with pytest.raises(ValueError, match=message):
        propagate(np.array(A), np.ones((2, 1)), **options)


def test_directed_graphs_may_walk_at_random():
    found = propagate(
        np.array([[0, 1], [0, 0]]), np.array([1.0, 3.0]), 1, normalization="random-walk"
    )
    assert found.tolist() == [[2], [3]]


@pytest.mark.parametrize(
    ("X", "error", "message"),
    [
        (np.ones((3, 1)), ValueError, r"shape \(2, n_columns\)"),
        (np.array([[1, 2.0], [3, np.nan]]), ValueError, "feature 1 of node 1 is nan"),
        (np.array([["a"], ["b"]]), TypeError, "X must hold real numbers"),
    ],
)
def test_bad_features(X, error, message):
    with pytest.raises(error, match=message):
        propagate(np.eye(2), X)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"pooling": "median"}, "pooling='median' of GCNPropagation must be one of"),
        ({"n_hops": 1.5}, "n_hops=1.5"),
        ({"backend": "tpu"}, "backend='tpu'"),
        ({"dtype": "int8"}, "dtype='int8'"),
        ({"attributes": "element"}, "attributes='element' of GCNPropagation must be a list"),
        ({"attributes": ["colour"]}, "no node attribute 'colour'"),
        ({"attributes": ["ring_sizes"]}, "'ring_sizes' holds lists"),
        ({"attributes": ["element"], "categorical": ["charge"]}, r"categorical names \['charge'\]"),
    ],
)
def test_bad_parameters(options, message):
    with pytest.raises(ValueError, match=message):
        GCNPropagation(**options).fit(from_smiles(SMILES))


def test_attributes_may_not_change_after_fit():
    def batch(values):
        return from_arrays([{"nodes": {"x": values}}])

    numbers, strings, vectors = batch([1.0]), batch(["a"]), batch([[1.0, 2.0]])
    for fitted, other, message in (
        (numbers, strings, "numeric in fit and is not any more"),
        (strings, numbers, "another type than in fit"),
        (numbers, vectors, "has 2 numbers a node, in fit it had 1"),
    ):
        with pytest.raises(ValueError, match=message):
            GCNPropagation().fit(fitted).transform(other)
