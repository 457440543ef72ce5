# SPDX-License-Identifier: BSD-3-Clause
"""Normalised values follow from the raw ones."""

import numpy as np
import pytest
from cases import BACKENDS, GRAPH_SETS, make_kernel, path, random_graph
from oracles import as_batch


@pytest.fixture(params=BACKENDS)
def raw(request):
    return make_kernel(backend=request.param), request.param


@pytest.mark.parametrize("graphs", GRAPH_SETS)
def test_cosine(raw, graphs):
    batch = as_batch(GRAPH_SETS[graphs])
    kernel, backend = raw
    K = kernel(batch)
    s = K.diagonal()
    normalised = make_kernel(backend=backend, normalization="cosine")
    np.testing.assert_allclose(normalised(batch), K / np.sqrt(np.outer(s, s)), rtol=1e-11)
    between = normalised(batch[:1], batch[1:])
    np.testing.assert_allclose(between, (K / np.sqrt(np.outer(s, s)))[:1, 1:], rtol=1e-11)


@pytest.mark.parametrize("scale", [0.1, 5.0])
def test_size(raw, scale):
    batch = as_batch(GRAPH_SETS["sparse"])
    kernel, backend = raw
    K = kernel(batch)
    s = K.diagonal()
    expected = K / np.sqrt(np.outer(s, s)) * np.exp(-((np.subtract.outer(s, s) / scale) ** 2))
    normalised = make_kernel(backend=backend, normalization="size", size_scale=scale)
    np.testing.assert_allclose(normalised(batch), expected, rtol=1e-11)
    np.testing.assert_allclose(normalised(batch[:2], batch), expected[:2], rtol=1e-11)
    assert normalised.hyperparameters[-1].name == "size_scale"
    assert normalised.n_dims == kernel.n_dims + 1


@pytest.mark.parametrize("normalization", ["cosine", "size"])
@pytest.mark.parametrize("backend", BACKENDS)
def test_graph_without_walks_is_like_nothing(backend, normalization):
    """With min_steps = 1 a single node has no walk: K(G, G) = 0, and no division by it."""
    batch = as_batch([path(1), random_graph(5, 0.6, 1), path(1)])
    kernel = make_kernel(backend=backend, min_steps=1, normalization=normalization)
    K, gradient = kernel(batch, eval_gradient=True)
    np.testing.assert_array_equal(K, np.diag([0.0, 1.0, 0.0]))
    assert np.isfinite(gradient).all()
    np.testing.assert_array_equal(kernel.diag(batch), [0.0, 1.0, 0.0])
    np.testing.assert_array_equal(kernel(batch[:1], batch[1:]), [[0.0, 0.0]])


def test_different_graphs_are_not_all_alike():
    batch = as_batch(GRAPH_SETS["sparse"])
    K = make_kernel(normalization="cosine", stopping_probability=0.3)(batch)
    assert np.ptp(K[np.triu_indices(len(batch), 1)]) > 0.05
