# SPDX-License-Identifier: BSD-3-Clause
"""Derivatives by the logarithm of each hyperparameter, against differences of values."""

import numpy as np
import pytest
from cases import BACKENDS, EDGE_KERNELS, GRAPH_SETS, NODE_KERNELS, OPTIONS, make_kernel
from oracles import as_batch

NORMALIZATIONS = {
    None: {},
    "cosine": {"normalization": "cosine"},
    "size": {"normalization": "size", "size_scale": 1.5},
}


def differences(kernel, batch, step=1e-4):
    """Fourth-order central differences of the Gram matrix by theta."""
    slopes = []
    for direction in np.eye(kernel.n_dims) * step:
        near, far = (
            kernel.clone_with_theta(kernel.theta + s * direction)(batch)
            - kernel.clone_with_theta(kernel.theta - s * direction)(batch)
            for s in (1, 2)
        )
        slopes.append((8 * near - far) / (12 * step))
    return np.stack(slopes, axis=-1)


def check(kernel, graphs):
    batch = as_batch(graphs)
    K, gradient = kernel(batch, eval_gradient=True)
    assert gradient.shape == (len(graphs), len(graphs), kernel.n_dims)
    np.testing.assert_allclose(K, kernel(batch), rtol=1e-12, atol=1e-14)
    scale = np.abs(gradient).max(initial=1e-3)
    np.testing.assert_allclose(gradient, differences(kernel, batch), rtol=1e-6, atol=1e-7 * scale)


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("normalization", NORMALIZATIONS)
@pytest.mark.parametrize("options", OPTIONS)
def test_options(options, normalization, backend):
    more = NORMALIZATIONS[normalization]
    check(make_kernel(backend=backend, options=options, **more), GRAPH_SETS["sparse"][:3])


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("graphs", GRAPH_SETS)
def test_graphs(graphs, backend):
    check(make_kernel(backend=backend, normalization="cosine"), GRAPH_SETS[graphs])


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("node", NODE_KERNELS)
def test_node_kernels(node, backend):
    check(make_kernel(node, "none", backend), GRAPH_SETS["sparse"][:3])


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("edge", EDGE_KERNELS)
def test_edge_kernels(edge, backend):
    check(make_kernel("delta", edge, backend), GRAPH_SETS["loops and parallel edges"])


@pytest.mark.parametrize("backend", BACKENDS)
def test_single_precision_is_as_exact_as_its_values(backend):
    batch = as_batch(GRAPH_SETS["sparse"])
    _, exact = make_kernel(backend="reference")(batch, eval_gradient=True)
    _, single = make_kernel(backend=backend, dtype="float32")(batch, eval_gradient=True)
    np.testing.assert_allclose(single, exact, rtol=1e-4, atol=1e-5 * np.abs(exact).max())


def test_no_free_hyperparameter_gives_an_empty_gradient():
    kernel = make_kernel("none", "none", options="fixed q")
    K, gradient = kernel(as_batch(GRAPH_SETS["sparse"]), eval_gradient=True)
    assert gradient.shape == (4, 4, 0)
    np.testing.assert_array_equal(K, kernel(as_batch(GRAPH_SETS["sparse"])))


@pytest.mark.parametrize("backend", BACKENDS)
def test_gradient_of_duplicates(backend):
    """The derivatives of a graph that comes twice stand at both places."""
    graphs = [*GRAPH_SETS["sparse"][:2], GRAPH_SETS["sparse"][0]]
    _, gradient = make_kernel(backend=backend)(as_batch(graphs), eval_gradient=True)
    np.testing.assert_array_equal(gradient[2], gradient[0])
    np.testing.assert_array_equal(gradient[:, 2], gradient[:, 0])
    assert np.abs(gradient).max() > 0.01
