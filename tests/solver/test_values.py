# SPDX-License-Identifier: BSD-3-Clause
"""Values of each backend against other routes to the same number."""

import numpy as np
import pytest
from cases import (
    AMPLIFICATION,
    BACKENDS,
    DTYPES,
    EDGE_KERNELS,
    GRAPH_SETS,
    NODE_KERNELS,
    OPTIONS,
    make_kernel,
)
from oracles import as_batch, dense_kernel, dense_nodal, walk_sum

BACKEND_DTYPES = [
    ("cpu", "float64"),
    ("cpu", "float32"),
    ("reference", "float64"),
    pytest.param("cuda", "float64", marks=pytest.mark.gpu),
    pytest.param("cuda", "float32", marks=pytest.mark.gpu),
]


def oracle_gram(graphs, node, edge, options):
    """Gram matrix by dense solves in plain Python, starting probability 1."""
    options = dict(OPTIONS[options])
    plain = {
        "q": options.get("stopping_probability", 0.05),
        "rule": options.get("stopping_rule", "probability"),
        "min_steps": options.get("min_steps", 0),
        "kv": NODE_KERNELS[node][1],
        "ke": EDGE_KERNELS[edge][1],
    }
    return np.array([[dense_kernel(g, h, **plain) for h in graphs] for g in graphs])


def check(graphs, node, edge, options, backend, dtype):
    kernel = make_kernel(node, edge, backend, options, dtype=dtype)
    K = kernel(as_batch(graphs))
    expected = oracle_gram(graphs, node, edge, options)
    rtol = DTYPES[dtype] * AMPLIFICATION.get(options, 1)
    np.testing.assert_allclose(K, expected, rtol=rtol, atol=1e-15)


PLAIN_OPTIONS = [name for name, o in OPTIONS.items() if "starting_probability" not in o]


@pytest.mark.parametrize(("backend", "dtype"), BACKEND_DTYPES)
@pytest.mark.parametrize("graphs", GRAPH_SETS)
@pytest.mark.parametrize("options", PLAIN_OPTIONS)
def test_options_match_dense_solve(graphs, options, backend, dtype):
    check(GRAPH_SETS[graphs], "product", "product", options, backend, dtype)


@pytest.mark.parametrize(("backend", "dtype"), BACKEND_DTYPES)
@pytest.mark.parametrize("node", NODE_KERNELS)
def test_node_kernels_match_dense_solve(node, backend, dtype):
    check(GRAPH_SETS["sparse"], node, "smooth", "default", backend, dtype)


@pytest.mark.parametrize(("backend", "dtype"), BACKEND_DTYPES)
@pytest.mark.parametrize("edge", EDGE_KERNELS)
def test_edge_kernels_match_dense_solve(edge, backend, dtype):
    check(GRAPH_SETS["loops and parallel edges"], "hard", edge, "default", backend, dtype)


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("rule", ["probability", "additive"])
def test_walks_add_up_to_the_value(rule, backend):
    """With q = 0.9 a walk of 9 steps or more has a share below 1e-11 of the sum."""
    q = {"probability": 0.9, "additive": 40.0}[rule]
    graphs = GRAPH_SETS["loops and parallel edges"][::2]
    kernel = make_kernel(
        backend=backend,
        stopping_rule=rule,
        stopping_probability=q,
        stopping_probability_bounds="fixed",
    )
    kv, ke = NODE_KERNELS["product"][1], EDGE_KERNELS["product"][1]
    enumerated = walk_sum(*graphs, kv, ke, q, n_steps=6, rule=rule)
    assert kernel(as_batch(graphs))[0, 1] == pytest.approx(enumerated, rel=1e-9)


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("q", [0.001, 0.05, 0.6, 0.999])
def test_unlabeled_graphs_have_a_closed_form(q, backend):
    """K = p^2 n n' q / (2 - q) where no node is isolated."""
    graphs = [g for g in GRAPH_SETS["dense"] if g.weight_sum().all()]
    kernel = make_kernel("none", "none", backend, stopping_probability=q, starting_probability=1.5)
    n = np.array([g.n for g in graphs])
    expected = 1.5**2 * np.outer(n, n) * q / (2 - q)
    np.testing.assert_allclose(kernel(as_batch(graphs)), expected, rtol=1e-10)


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("graphs", GRAPH_SETS)
@pytest.mark.parametrize("options", ["default", "min_steps", "additive"])
def test_nodal_values_match_dense_solve(graphs, options, backend):
    graphs, o = GRAPH_SETS[graphs], OPTIONS[options]
    nodal = make_kernel(backend=backend, options=options).nodal(as_batch(graphs))
    expected = np.block(
        [
            [
                dense_nodal(
                    g,
                    h,
                    NODE_KERNELS["product"][1],
                    EDGE_KERNELS["product"][1],
                    q=o.get("stopping_probability", 0.05),
                    rule=o.get("stopping_rule", "probability"),
                    min_steps=o.get("min_steps", 0),
                )
                for h in graphs
            ]
            for g in graphs
        ]
    )
    np.testing.assert_allclose(nodal, expected, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("backend", BACKENDS)
def test_nodal_blocks_add_up_to_values_between_two_sets(backend):
    graphs = GRAPH_SETS["sparse"]
    X, Y = as_batch(graphs[:3]), as_batch(graphs[2:])
    kernel = make_kernel(backend=backend, options="starting by kind")
    nodal = kernel.nodal(X, Y)
    sums = np.add.reduceat(np.add.reduceat(nodal, X.node_ptr[:-1], 0), Y.node_ptr[:-1], 1)
    np.testing.assert_allclose(sums, kernel(X, Y), rtol=1e-12)


@pytest.mark.parametrize("backend", BACKENDS)
def test_starting_probability_weighs_nodes(backend):
    graphs = GRAPH_SETS["sparse"]
    plain = make_kernel(backend=backend).nodal(as_batch(graphs))
    weighed = make_kernel(backend=backend, options="starting by kind").nodal(as_batch(graphs))
    value = {"C": 0.5, "N": 2.0, "Cl": 1.5}
    p = np.array([value[node["kind"]] for g in graphs for node in g.nodes])
    np.testing.assert_allclose(weighed, plain * np.outer(p, p), rtol=1e-12)


@pytest.mark.parametrize("backend", BACKENDS)
def test_probabilities_from_node_attributes(backend):
    graphs = [g.permuted(range(g.n)) for g in GRAPH_SETS["sparse"]]
    for k, g in enumerate(graphs):
        g.nodes = [{**node, "p": 1.0 + i + k, "q": 0.3} for i, node in enumerate(g.nodes)]
    batch = as_batch(graphs)
    by_name = make_kernel(
        backend=backend,
        stopping_rule="additive",
        starting_probability="p",
        stopping_probability="q",
    )
    by_number = make_kernel(backend=backend, stopping_rule="additive", stopping_probability=0.3)
    p = np.concatenate([[node["p"] for node in g.nodes] for g in graphs])
    np.testing.assert_allclose(
        by_name.nodal(batch), by_number.nodal(batch) * np.outer(p, p), rtol=1e-11
    )
    assert by_name.n_dims == by_number.n_dims - 1
