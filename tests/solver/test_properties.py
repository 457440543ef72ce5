# SPDX-License-Identifier: BSD-3-Clause
"""Properties that hold for all graphs, tried on random ones."""

import numpy as np
import pytest
from cases import HERE, OPTIONS, make_kernel, random_graph
from hypothesis import given, settings
from hypothesis import strategies as st
from oracles import as_batch

QUICK = settings(max_examples=25)


@st.composite
def graphs(draw):
    """Any labeled graph: isolated nodes, parts, self-loops, parallel edges, a single node."""
    return random_graph(
        draw(st.integers(1, 8)),
        draw(st.sampled_from([0.0, 0.2, 0.5, 1.0])),
        draw(st.integers(0, 10_000)),
        loops=draw(st.booleans()),
        parallel=draw(st.booleans()),
        weights=draw(st.booleans()),
    )


backends = st.sampled_from(HERE)
options = st.sampled_from(sorted(OPTIONS))
lists = st.lists(graphs(), min_size=2, max_size=4)


@QUICK
@given(lists, backends, options)
def test_symmetric_finite_and_positive_semidefinite(graphs, backend, options):
    K = make_kernel(backend=backend, options=options)(as_batch(graphs))
    assert K.dtype == np.float64
    assert np.array_equal(K, K.T)
    assert np.isfinite(K).all()
    values = np.linalg.eigvalsh(K)
    assert values[0] >= -1e-10 * max(values[-1], 1e-300)


@QUICK
@given(lists, options)
def test_backends_agree(graphs, options):
    batch = as_batch(graphs)
    expected, slopes = make_kernel(backend="reference", options=options)(batch, eval_gradient=True)
    for backend in HERE:
        K, gradient = make_kernel(backend=backend, options=options)(batch, eval_gradient=True)
        np.testing.assert_allclose(K, expected, rtol=1e-10, atol=1e-15)
        np.testing.assert_allclose(gradient, slopes, rtol=1e-8, atol=1e-10)


@QUICK
@given(graphs(), graphs(), backends, options, st.randoms(use_true_random=False))
def test_node_order_does_not_matter(g, h, backend, options, random):
    order = list(range(g.n))
    random.shuffle(order)
    kernel = make_kernel(backend=backend, options=options)
    K = kernel(as_batch([g, h]), as_batch([g.permuted(order), h]))
    np.testing.assert_allclose(K[0], K[:, 0], rtol=1e-10)
    np.testing.assert_allclose(K[0, 0], K[0, 0], rtol=1e-10)
    np.testing.assert_allclose(kernel(as_batch([g, h]))[0], [K[0, 0], K[0, 1]], rtol=1e-10)


@QUICK
@given(graphs(), graphs(), backends, st.sampled_from([1e-4, 3.0, 1e5]))
def test_unit_of_the_weights_does_not_matter(g, h, backend, factor):
    kernel = make_kernel(backend=backend)
    K = kernel(as_batch([g, h]), as_batch([g, g.scaled(factor), h]))
    np.testing.assert_allclose(K[:, 0], K[:, 1], rtol=1e-10)


@QUICK
@given(graphs(), graphs(), graphs(), backends, options)
def test_parts_of_a_graph_add_up(g, h, other, backend, options):
    kernel = make_kernel(backend=backend, options=options)
    K = kernel(as_batch([g, h, g.union(h)]), as_batch([other]))[:, 0]
    assert K[2] == pytest.approx(K[0] + K[1], rel=1e-10, abs=1e-15)


@QUICK
@given(lists, backends, options)
def test_blocks_of_the_union(graphs, backend, options):
    kernel = make_kernel(backend=backend, options=options)
    batch = as_batch(graphs)
    K = kernel(batch)
    np.testing.assert_allclose(kernel(batch[:1], batch[1:]), K[:1, 1:], rtol=1e-11, atol=1e-16)
    np.testing.assert_allclose(kernel.diag(batch), K.diagonal(), rtol=1e-11, atol=1e-16)


@QUICK
@given(lists, backends, st.sampled_from(["cosine", "size"]), st.integers(0, 1))
def test_normalised_values_lie_between_0_and_1(graphs, backend, normalization, min_steps):
    batch = as_batch(graphs)
    kernel = make_kernel(backend=backend, normalization=normalization, min_steps=min_steps)
    K = kernel(batch)
    raw = make_kernel(backend=backend, min_steps=min_steps).diag(batch)
    np.testing.assert_array_equal(K.diagonal(), (raw > 0).astype(float))
    np.testing.assert_array_equal(K.diagonal(), kernel.diag(batch))
    assert (K >= 0).all()
    assert (K <= 1 + 1e-12).all()


@QUICK
@given(graphs(), graphs(), backends)
def test_stopping_at_once_leaves_the_node_kernel(g, h, backend):
    """As q goes to 1 no walk moves, and K is the sum of the node kernel."""
    kernel = make_kernel("delta", backend=backend, stopping_probability=1 - 1e-9)
    K = kernel(as_batch([g]), as_batch([h]))[0, 0]
    alike = sum(1.0 if a["kind"] == b["kind"] else 0.3 for a in g.nodes for b in h.nodes)
    assert pytest.approx(alike, rel=1e-7) == K


@QUICK
@given(graphs(), graphs(), backends)
def test_zero_weight_is_no_edge(g, h, backend):
    extra = [(0, g.n - 1, 0.0, {"order": 2, "length": 0.5})]
    with_zero = type(g)(g.nodes, g.edges + extra)
    kernel = make_kernel(backend=backend)
    K = kernel(as_batch([h]), as_batch([g, with_zero]))
    assert K[0, 0] == K[0, 1]
