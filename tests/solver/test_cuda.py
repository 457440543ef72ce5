# SPDX-License-Identifier: BSD-3-Clause
"""The ways through the CUDA solver give the same answers; needs a device."""

import gc
import pickle
import signal
import time

import numpy as np
import pytest
from cases import GRAPH_SETS, make_kernel, path, random_graph
from oracles import as_batch
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning

from sklearn_mgk import MarginalizedGraphKernel
from sklearn_mgk.base_kernels import FunctionKernel
from sklearn_mgk.plan import make_problem
from sklearn_mgk.solver import device_labels, device_plan

pytestmark = pytest.mark.gpu
MIXED = [
    *(random_graph(n, 0.2, n) for n in (3, 8, 17, 24, 33)),
    *(path(n) for n in (5, 36)),
    random_graph(14, 0.4, 1, loops=True, parallel=True),
]
LARGE = [random_graph(n, 0.1, n) for n in (70, 85)]


@pytest.fixture(params=["table", "code"])
def solver(request, monkeypatch):
    """The module of the solver, made to read edge kernels in one way."""
    from sklearn_mgk.solver import cuda

    monkeypatch.setattr(device_labels, "MAX_TABLE_LABELS", 10**6 if request.param == "table" else 0)
    return cuda


def both(graphs, **options):
    batch = as_batch(graphs)
    found = make_kernel("product", "product", "cuda", **options)
    return batch, found, make_kernel("product", "product", "reference", **options)


@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_values_of_graphs_of_all_sizes(solver, dtype):
    batch, kernel, reference = both(MIXED, dtype="float64")
    kernel = kernel.set_params(dtype=dtype)
    rtol = 1e-9 if dtype == "float64" else 3e-6
    np.testing.assert_allclose(kernel(batch), reference(batch), rtol=rtol)


def test_narrow_windows(solver):
    batch = as_batch(MIXED)
    expected = make_kernel("delta", "narrow", "reference")(batch)
    np.testing.assert_allclose(make_kernel("delta", "narrow", "cuda")(batch), expected, rtol=1e-8)


def test_gradients_and_nodal_values_of_graphs_of_all_sizes(solver):
    batch, kernel, reference = both(MIXED)
    K, gradient = kernel(batch, eval_gradient=True)
    expected, slopes = reference(batch, eval_gradient=True)
    np.testing.assert_allclose(K, expected, rtol=1e-9)
    np.testing.assert_allclose(gradient, slopes, rtol=1e-7, atol=1e-9 * np.abs(slopes).max())
    np.testing.assert_allclose(kernel.nodal(batch), reference.nodal(batch), rtol=1e-8)


@pytest.mark.parametrize("limit", [228 << 10, 64 << 10, 4 << 10])
def test_vectors_in_shared_memory_or_not(solver, limit, monkeypatch):
    real = solver.device_limits()
    monkeypatch.setattr(solver, "device_limits", lambda: {**real, "shared_all": limit})
    batch, kernel, _ = both(LARGE)
    expected = make_kernel("product", "product", "cpu")(batch)
    np.testing.assert_allclose(kernel(batch), expected, rtol=1e-9)


def test_cross_matrix_and_repeated_pairs(solver):
    left, right = as_batch(MIXED[:4]), as_batch(MIXED[3:8])
    kernel = make_kernel("product", "product", "cuda")
    expected = make_kernel("product", "product", "reference")(left, right)
    np.testing.assert_allclose(kernel(left, right), expected, rtol=1e-9)


@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_runs_agree_to_the_last_bit(solver, dtype):
    batch = as_batch(MIXED)
    kernel = make_kernel("product", "product", "cuda", dtype=dtype)
    np.testing.assert_array_equal(kernel(batch), kernel(batch))


def test_no_room_for_vectors_is_an_error_that_says_so(solver, monkeypatch):
    real = solver.device_limits()
    monkeypatch.setattr(solver, "device_limits", lambda: {**real, "shared_all": 4 << 10})
    monkeypatch.setattr("sklearn_mgk.solver.cuda_launch.free_memory", lambda: 1000)
    with pytest.raises(MemoryError, match=r"needs .* GB of device memory.*backend='cpu'"):
        make_kernel("delta", "smooth", "cuda")(as_batch(LARGE))


def test_one_pair_by_all_blocks(solver, monkeypatch):
    monkeypatch.setattr(device_plan, "GRID_AREA", 1)
    for options in ("default", "starting by kind, min_steps"):
        batch, kernel, reference = both([*MIXED, random_graph(50, 0.1, 50)], options=options)
        K, gradient = kernel(batch, eval_gradient=True)
        expected, slopes = reference(batch, eval_gradient=True)
        np.testing.assert_allclose(K, expected, rtol=1e-9)
        np.testing.assert_allclose(gradient, slopes, rtol=1e-7, atol=1e-9 * np.abs(slopes).max())
        nodal = reference.nodal(batch)
        np.testing.assert_allclose(kernel.nodal(batch), nodal, rtol=1e-7, atol=1e-9 * nodal.max())


@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_a_large_pair(solver, dtype):
    batch = as_batch([random_graph(n, 8 / n, n) for n in (700, 900)])
    kernel = make_kernel("delta", "smooth", "cuda", dtype=dtype)
    expected = make_kernel("delta", "smooth", "cpu")(batch)
    found = kernel(batch)
    np.testing.assert_allclose(found, expected, rtol=1e-9 if dtype == "float64" else 1e-6)
    np.testing.assert_array_equal(kernel(batch), found)


@pytest.mark.parametrize("size", [90, 1500], ids=["blocks", "grid"])
def test_interruption_ends_promptly(size):
    from sklearn_mgk.solver.cuda import CUDABackend

    batch = as_batch([random_graph(size, 10 / size, seed) for seed in (1, 2)])
    problem = make_problem(make_kernel("delta", "smooth", "cuda"), batch)
    solve = CUDABackend().solver(problem, False)
    pair = np.array([[0, 1]])
    expected = solve(pair).values
    long_run = np.repeat(pair, 10**7 // size, axis=0)
    before = signal.signal(signal.SIGALRM, signal.default_int_handler)
    begin = time.perf_counter()
    signal.setitimer(signal.ITIMER_REAL, 1.0)
    with pytest.raises(KeyboardInterrupt):
        solve(long_run)
    signal.signal(signal.SIGALRM, before)
    assert 1.0 <= time.perf_counter() - begin < 2.0
    np.testing.assert_allclose(solve(pair).values, expected, rtol=1e-12)


def test_kernel_without_formula_and_with_too_many_labels_is_refused(monkeypatch):
    monkeypatch.setattr(device_labels, "LARGEST_TABLE", 3)
    monkeypatch.setattr(device_labels, "MAX_TABLE_LABELS", 2)
    node = FunctionKernel("charge", lambda x, y: 1.0 * (x == y))
    with pytest.raises(ValueError, match="write it as a formula, round the labels"):
        MarginalizedGraphKernel(node, backend="cuda")(as_batch(GRAPH_SETS["sparse"]))


def test_auto_prefers_the_device():
    from sklearn_mgk import available_backends

    assert available_backends()[0] == "cuda"


def test_answers_lie_where_the_pairs_lie(solver):
    import cupy

    batch = as_batch(MIXED)
    solve = solver.CUDABackend().solver(make_problem(make_kernel(), batch), True)
    pairs = np.stack(np.triu_indices(len(batch)), axis=1)
    host, device = solve(pairs), solve(cupy.asarray(pairs))
    for name, column in vars(host).items():
        assert isinstance(column, np.ndarray)
        np.testing.assert_array_equal(getattr(device, name).get(), column)


@pytest.mark.parametrize("n_bytes", [1, 3000])
@pytest.mark.parametrize("cache_size", [0, 128])
def test_blocks_make_one_matrix(n_bytes, cache_size, monkeypatch):
    from sklearn_mgk import clear_cache, gram

    clear_cache()
    batch = as_batch([*MIXED, *MIXED[:2]])
    kernel = make_kernel("product", "product", "cuda", cache_size=cache_size)
    expected = clone(kernel).set_params(cache_size=0)(batch, eval_gradient=True)
    monkeypatch.setitem(gram.CHUNK_BYTES, "cupy", n_bytes)
    found = kernel(batch, eval_gradient=True)
    for matrix, other in zip(found, expected, strict=True):
        np.testing.assert_allclose(matrix, other, rtol=1e-7, atol=1e-9 * np.abs(other).max())
    for _ in range(2):
        np.testing.assert_allclose(kernel(batch), expected[0], rtol=1e-9)
        np.testing.assert_allclose(kernel(batch[:3], batch), expected[0][:3], rtol=1e-9)
    clear_cache()


@pytest.mark.parametrize("shape", [(0, 3), (5, 7), (40, 30)])
def test_arrays_come_to_the_host_in_pieces(shape, monkeypatch):
    import cupy

    from sklearn_mgk import device

    monkeypatch.setattr(device, "PIECE", 1000)
    expected = np.random.default_rng(0).random(shape)
    with cupy.cuda.Stream(non_blocking=True):
        for array in (cupy.asarray(expected), cupy.asarray(expected.T).T):
            np.testing.assert_array_equal(device.to_host(array), expected)


def test_pairs_that_do_not_converge_are_named():
    kernel = make_kernel("product", "product", "cuda", max_iter=1, tol=1e-12)
    with pytest.warns(ConvergenceWarning, match=r"of \d+ pairs did not converge .* \(X\[\d+\], X"):
        kernel(as_batch(MIXED))


def test_another_kernel_on_the_same_graphs_brings_tables_only(solver, monkeypatch):
    from sklearn_mgk.solver import cuda_graphs

    brought, upload = [], cuda_graphs.upload
    monkeypatch.setattr(cuda_graphs, "upload", lambda array: brought.append(1) or upload(array))
    batch = as_batch(MIXED)
    kernel = make_kernel("product", "product", "cuda")
    kernel(batch)
    assert brought
    brought.clear()
    other = clone(kernel).set_params(stopping_probability=0.3)
    expected = clone(other).set_params(backend="reference")(batch)
    np.testing.assert_allclose(other(batch), expected, rtol=1e-9)
    assert not brought
    again = pickle.loads(pickle.dumps(batch))
    np.testing.assert_allclose(other(again), expected, rtol=1e-9)
    assert brought


def test_device_memory_of_a_batch_is_freed_with_it():
    import cupy

    pool = cupy.get_default_memory_pool()
    kernel = make_kernel("product", "product", "cuda")
    kernel(as_batch(MIXED))
    gc.collect()
    before = pool.used_bytes()
    batch = as_batch(MIXED)
    kernel(batch)
    assert pool.used_bytes() > before
    del batch
    gc.collect()
    assert pool.used_bytes() == before
