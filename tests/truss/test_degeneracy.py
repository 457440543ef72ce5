# SPDX-License-Identifier: BSD-3-Clause
"""The degeneracy kernel: against its definition, as a kernel, and as a transformer."""

import copy
import pickle

import networkx as nx
import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import ConstantKernel, WhiteKernel
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.svm import SVC

from sklearn_mgk import (
    MarginalizedGraphKernel,
    NetworkXToGraphs,
    clear_cache,
    from_arrays,
    from_networkx,
)
from sklearn_mgk.base_kernels import KroneckerDelta, SquaredExponential
from sklearn_mgk.solver.cpu import CPUBackend
from sklearn_mgk.truss import DegeneracyKernel

# A level starts the sum anew with parts solved to 1e-8.
ACCURACY = 1e-6
LEVELS = [("truss", None, 2), ("truss", 3, 3), ("core", None, 0), ("core", 2, 2)]
every_level = pytest.mark.parametrize(("decomposition", "min_level", "first"), LEVELS)
every_normalization = pytest.mark.parametrize("normalization", [None, "cosine"])


def networkx_graphs():
    """Return labeled graphs, sparse and dense; one has one node, one an isolated node."""
    rng = np.random.default_rng(7)
    graphs = [nx.gnp_random_graph(9, p, seed=k) for k, p in enumerate((0.2, 0.4, 0.6, 0.8))]
    graphs += [nx.empty_graph(1), nx.disjoint_union(nx.complete_graph(4), nx.empty_graph(1))]
    graphs += [nx.cycle_graph(5), nx.complete_graph(4), nx.complete_graph(4)]
    for graph in graphs:
        for node in graph:
            graph.nodes[node]["kind"] = int(rng.integers(3))
        for edge in graph.edges:
            graph.edges[edge]["length"] = float(rng.random())
    return graphs


@pytest.fixture(scope="module")
def graphs():
    return from_networkx(networkx_graphs())


@pytest.fixture(autouse=True)
def _fresh_cache():
    """Let no test read the values of another."""
    clear_cache()
    yield
    clear_cache()


def make_base(**changes):
    settings = {"stopping_probability": 0.2, "size_scale": 20.0, **changes}
    return MarginalizedGraphKernel(
        KroneckerDelta("kind", h=0.4), SquaredExponential("length", length_scale=0.5), **settings
    )


def subgraph(graph, decomposition, level):
    if decomposition == "core":
        return nx.k_core(graph, level)
    return graph if level == 2 else nx.k_truss(graph, level)


def by_definition(base, decomposition, first):
    graphs = networkx_graphs()
    total = np.zeros((len(graphs), len(graphs)))
    for level in range(first, 10):
        parts = [subgraph(graph, decomposition, level) for graph in graphs]
        there = np.flatnonzero(list(map(len, parts)))
        if len(there):
            values = base(from_networkx([parts[k] for k in there]))
            total[np.ix_(there, there)] += values
    return total


@every_level
@pytest.mark.parametrize("inner", [None, "cosine", "size"])
def test_is_the_sum_over_all_levels(decomposition, min_level, first, inner, graphs):
    base = make_base(normalization=inner)
    kernel = DegeneracyKernel(base, decomposition, min_level=min_level)
    assert_allclose(kernel(graphs), by_definition(base, decomposition, first), rtol=ACCURACY)


@every_level
@every_normalization
@pytest.mark.parametrize("inner", [None, "size"])
def test_is_a_kernel(decomposition, min_level, first, normalization, inner, graphs):
    kernel = DegeneracyKernel(
        make_base(normalization=inner),
        decomposition,
        min_level=min_level,
        normalization=normalization,
    )
    K = kernel(graphs)
    assert_array_equal(K, K.T)
    assert np.linalg.eigvalsh(K).min() > -1e-8 * K.max()
    assert_allclose(kernel.diag(graphs), K.diagonal(), rtol=ACCURACY)
    assert_allclose(kernel(graphs[:3], graphs[2:]), K[:3, 2:], rtol=ACCURACY)
    order = np.arange(len(graphs))[::-1]
    assert_allclose(kernel(graphs[order]), K[np.ix_(order, order)], rtol=ACCURACY)
    if normalization:
        assert set(K.diagonal()) <= {0.0, 1.0}


@every_level
@every_normalization
@pytest.mark.parametrize("inner", [None, "cosine", "size"])
def test_gradient_is_the_derivative(decomposition, min_level, first, normalization, inner, graphs):
    kernel = DegeneracyKernel(
        make_base(normalization=inner, tol=1e-12),
        decomposition,
        min_level=min_level,
        normalization=normalization,
    )
    K, gradient = kernel(graphs, eval_gradient=True)
    assert gradient.shape == (*K.shape, kernel.n_dims)
    for k, step in enumerate(1e-5 * np.eye(kernel.n_dims)):
        up, down = (kernel.clone_with_theta(kernel.theta + s)(graphs) for s in (step, -step))
        # Central differences: the error is of the order of step^2 and of rounding over the step.
        scale = max(1.0, np.abs(K).max())
        assert_allclose(gradient[:, :, k], (up - down) / 2e-5, atol=1e-7 * scale)


@pytest.fixture
def solved(monkeypatch):
    """Pairs that the CPU backend was asked to solve."""
    pairs, prepare = [], CPUBackend.solver

    def recording(self, problem, eval_gradient):
        solve = prepare(self, problem, eval_gradient)

        def recorded(asked, nodal=None):
            pairs.extend(asked.tolist())
            return solve(asked, nodal)

        return recorded

    monkeypatch.setattr(CPUBackend, "solver", recording)
    return pairs


@pytest.mark.parametrize("eval_gradient", [False, True])
def test_levels_that_are_equal_are_solved_once(eval_gradient, solved):
    # All three are whole up to their last level, and then empty.
    whole = from_networkx([nx.complete_graph(5), nx.icosahedral_graph(), nx.cycle_graph(4)])
    base = MarginalizedGraphKernel(backend="cpu", cache_size=0)
    K = DegeneracyKernel(base)(whole, eval_gradient=eval_gradient)
    K = K[0] if eval_gradient else K
    assert len(solved) == 6
    plain = base(whole)
    n_levels = np.array([[4, 3, 1], [3, 3, 1], [1, 1, 1]])
    assert_allclose(K, n_levels * plain, rtol=ACCURACY)


def test_only_pairs_with_a_new_part_are_solved_again(solved):
    # The tail goes at level 3, the clique stays to the end.
    pair = from_networkx([nx.lollipop_graph(4, 2), nx.complete_graph(5)])
    DegeneracyKernel(MarginalizedGraphKernel(backend="cpu", cache_size=0))(pair)
    assert len(solved) == 3 + 2


def test_graphs_without_the_first_level_are_like_no_graph():
    pair = from_networkx([nx.path_graph(4), nx.complete_graph(4)])
    for normalization in (None, "cosine"):
        kernel = DegeneracyKernel(
            MarginalizedGraphKernel(), min_level=3, normalization=normalization
        )
        K = kernel(pair)
        assert K[0].tolist() == [0.0, 0.0]
        assert K[1, 1] > 0
        assert kernel.diag(pair)[0] == 0.0
        assert kernel(pair[:1], pair).tolist() == [[0.0, 0.0]]
        assert kernel(pair[:1], eval_gradient=True)[1].tolist() == [[[0.0]]]


def test_self_loops_parallel_edges_and_weights_stay_in_the_whole_graph():
    index = [[0, 0, 1, 0, 2], [1, 2, 2, 0, 3]]
    graphs = from_arrays([{"n_nodes": 5, "edge_index": index, "edge_weight": [1, 2, 3, 4, 0.5]}])
    base = MarginalizedGraphKernel()
    inner = from_arrays(
        [{"n_nodes": 3, "edge_index": [[0, 0, 1], [1, 2, 2]], "edge_weight": [1, 2, 3]}]
    )
    with pytest.warns(UserWarning, match="1 self-loops"):
        found = DegeneracyKernel(base)(graphs)
    assert_allclose(found, base(graphs) + base(inner), rtol=ACCURACY)


def make_kernel(**changes):
    return DegeneracyKernel(
        make_base(normalization="cosine"), **{"normalization": "cosine", **changes}
    )


def test_copies_and_parameters():
    kernel = make_kernel(decomposition="core", min_level=1)
    for copied in (clone(kernel), copy.deepcopy(kernel), pickle.loads(pickle.dumps(kernel))):
        assert copied == kernel
        assert copied is not kernel
        assert copied.base_kernel is not kernel.base_kernel
    changed = clone(kernel).set_params(base_kernel__node_kernel__h=0.7, min_level=2)
    assert changed.base_kernel.node_kernel.h == 0.7
    assert changed != kernel
    assert "base_kernel__edge_kernel__length_scale" in kernel.get_params()
    assert "decomposition='core'" in repr(kernel)


def test_hyperparameters_are_those_of_the_base_kernel():
    kernel = make_kernel()
    names = [hyperparameter.name for hyperparameter in kernel.hyperparameters]
    assert names == [f"base_kernel__{h.name}" for h in kernel.base_kernel.hyperparameters]
    theta = kernel.theta + 0.1
    assert_allclose(kernel.clone_with_theta(theta).theta, theta)
    assert_array_equal(kernel.bounds, kernel.base_kernel.bounds)
    assert kernel.fixed().n_dims == 0


def test_gradient_is_refused_with_two_sides(graphs):
    with pytest.raises(ValueError, match="only where Y is None"):
        make_kernel()(graphs, graphs, eval_gradient=True)


def test_gradient_without_free_hyperparameters(graphs):
    K, gradient = make_kernel().fixed()(graphs, eval_gradient=True)
    assert gradient.shape == (*K.shape, 0)


def test_transformer(graphs):
    kernel = make_kernel().fit(graphs)
    assert_allclose(kernel.transform(graphs[:2]), kernel(graphs[:2], graphs))
    assert_array_equal(make_kernel().fit_transform(graphs), kernel(graphs))
    names = kernel.get_feature_names_out()
    assert names[-1] == f"graph{len(graphs) - 1}"
    table = make_kernel().set_output(transform="pandas").fit_transform(graphs)
    assert list(table.columns) == list(names)
    assert "DegeneracyKernel" in kernel._repr_html_()
    assert not kernel.is_stationary()


@pytest.mark.filterwarnings("ignore:The optimal value found")
def test_gaussian_process_learns(graphs):
    y = np.log1p(np.diff(graphs.edge_ptr)) - 2
    kernel = ConstantKernel() * make_kernel() + WhiteKernel(0.1)
    model = GaussianProcessRegressor(kernel, random_state=0)
    start = GaussianProcessRegressor(kernel, optimizer=None).fit(graphs, y)
    model.fit(graphs, y)
    assert model.log_marginal_likelihood_value_ > start.log_marginal_likelihood_value_
    mean, std = model.predict(graphs, return_std=True)
    assert np.isfinite(mean).all()
    assert (std >= 0).all()


def test_support_vectors_in_a_pipeline():
    # Twenty nodes of degree four on average: in cliques, and at random.
    cliques = nx.connected_caveman_graph(4, 5)
    raw = [nx.double_edge_swap(cliques.copy(), nswap=4, seed=k) for k in range(12)]
    raw += [nx.random_regular_graph(4, 20, seed=k) for k in range(12)]
    has = np.arange(24) < 12
    base = MarginalizedGraphKernel(normalization="cosine")
    model = make_pipeline(
        NetworkXToGraphs(), DegeneracyKernel(base), SVC(kernel="precomputed", C=100)
    )
    grid = {
        "degeneracykernel__decomposition": ["truss", "core"],
        "degeneracykernel__base_kernel__stopping_probability": [0.1, 0.3],
    }
    search = GridSearchCV(model, grid, cv=3).fit(raw, has)
    assert search.best_params_["degeneracykernel__decomposition"] == "truss"
    assert search.best_score_ == 1.0
    direct = SVC(kernel=DegeneracyKernel(base), C=100).fit(from_networkx(raw), has)
    assert direct.score(from_networkx(raw), has) == 1.0


@pytest.mark.parametrize(
    ("changes", "error", "message"),
    [
        ({"base_kernel": KroneckerDelta("kind")}, TypeError, "must be a MarginalizedGraphKernel"),
        ({"decomposition": "clique"}, ValueError, "decomposition='clique' .* one of"),
        ({"normalization": "size"}, ValueError, "normalization='size' .* one of"),
        ({"min_level": 1}, ValueError, "min_level=1 .* at least 2 with decomposition 'truss'"),
        ({"min_level": 2.5}, ValueError, "min_level=2.5"),
        ({"base_kernel__tol": -1}, ValueError, "tol=-1"),
        ({"base_kernel__node_kernel__attribute": "mass"}, ValueError, "no node attribute 'mass'"),
    ],
)
def test_bad_parameters(changes, error, message, graphs):
    kernel = make_kernel().set_params(**changes)
    with pytest.raises(error, match=message):
        kernel(graphs)


def test_attributes_that_are_not_finite_name_the_graph(graphs):
    bad = graphs.nodes["kind"].astype(float)
    bad[graphs.node_ptr[3] + 1] = np.nan
    with pytest.raises(ValueError, match="graph 3, node 1"):
        make_kernel()(graphs.with_columns(nodes={"kind": bad}))
