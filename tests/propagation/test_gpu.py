# SPDX-License-Identifier: BSD-3-Clause
"""Products on a real device, against scipy and the CPU."""

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from propagation.matrices import MATRICES, power_law, star
from propagation.plans import expected_plan, ptr_of
from scipy import sparse

from sklearn_mgk import from_arrays
from sklearn_mgk.propagation import GCNPropagation, SpMMPlan, cuda, cuda_plan, propagate, spmm
from sklearn_mgk.propagation.plan import ENGINES

pytestmark = pytest.mark.gpu


def engines(A):
    return [engine for engine in ENGINES if engine != "dual" or A.shape[0] == A.shape[1]]


@pytest.mark.parametrize("name", MATRICES)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("n_columns", [1, 3, 16, 33, 64, 128, 300])
def test_products_are_those_of_scipy(name, dtype, n_columns):
    A = MATRICES[name].astype(dtype)
    rng = np.random.default_rng(0)
    X, X2 = (rng.normal(size=(n, n_columns)).astype(dtype) for n in A.shape[::-1])
    tolerance = 1e-5 if dtype == np.float32 else 1e-13
    for engine in engines(A):
        plan = SpMMPlan(A, engine=engine, backend="cuda", n_blocks=7)
        options = {"rtol": tolerance, "atol": 100 * tolerance}
        assert_allclose(plan @ X, A @ X.astype(float), **options)
        assert_allclose(plan.multiply(X2, transpose=True), A.T @ X2.astype(float), **options)
        assert_array_equal(plan @ X, plan @ X)


@pytest.mark.parametrize("vec", [None, 1])
@pytest.mark.parametrize("ways", [2, 4, 8])
@pytest.mark.parametrize("engine", ["degree", "heavy", "dual"])
def test_shapes_of_the_threads_and_long_rows(vec, ways, engine):
    import cupy as cp

    A = sparse.csr_array(power_law(3000) + star(3000))
    plan = SpMMPlan(A, engine=engine, backend="cuda", n_blocks=50)
    product = plan._product
    product.vec, product.ways = vec, ways
    assert product.plan.n_slots() >= 12
    for n_columns in (8, 128, 160):
        X = np.random.default_rng(0).normal(size=(3000, n_columns))
        for _ in range(3):  # the counts of pieces must be left ready for the next call
            assert_allclose(product(cp.asarray(X)).get(), A @ X, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("engine", ["auto", "rows", "heavy", "degree"])
@pytest.mark.parametrize("n_rows", [1, 700, 8192, 8193, 200_000])
@pytest.mark.parametrize("index", [np.int32, np.int64])
def test_the_device_plans_as_plain_python_does(engine, n_rows, index):
    import cupy as cp

    rng = np.random.default_rng(n_rows)
    lengths = np.minimum(rng.pareto(1.3, n_rows) * 4, 50_000).astype(int).tolist()
    lengths[n_rows // 2] = 9999
    expected = expected_plan(lengths, engine, 2000)
    for _ in range(2):  # the same plan again, in memory that has been used
        plan = cuda_plan.make(
            cp, cp.asarray(ptr_of(lengths).astype(index)), sum(lengths), engine, 2000
        )
        found = plan.on_host()
        assert found[0] == expected[0]
        assert found[1] == pytest.approx(expected[1])
        assert_array_equal(found[2], expected[2])
        assert_array_equal(found[3], expected[3])


def test_more_pieces_than_blocks():
    A = sparse.random_array((3, 60_000), density=0.9, rng=np.random.default_rng(2)).tocsr()
    plan = SpMMPlan(A, backend="cuda", engine="degree", n_blocks=2)
    X = np.random.default_rng(0).normal(size=(60_000, 70))
    assert int(plan._product.plan.room[0]) > 2 * plan._product.plan.n_blocks
    first = plan @ X
    assert_allclose(first, A @ X, rtol=1e-11, atol=1e-11)
    assert_array_equal(plan @ X, first)


def test_new_threads_launch():
    A, X = power_law(), np.eye(300)
    plan = SpMMPlan(A, backend="cuda")
    plan @ X
    with ThreadPoolExecutor(1) as pool:
        assert_allclose(pool.submit(plan.multiply, X).result(), A.toarray(), atol=1e-13)
        assert_allclose(pool.submit(spmm, A, X, backend="cuda").result(), A.toarray(), atol=1e-13)


def test_the_summary_is_that_of_the_plan():
    summary = SpMMPlan(power_law(3000), backend="cuda").summary
    assert summary.engine == "degree"
    assert 0 < summary.n_dense < summary.n_blocks
    assert 1 <= summary.imbalance < summary.imbalance_without
    assert 0 < summary.seconds < 0.1
    assert SpMMPlan(sparse.eye_array(500).tocsr(), backend="cuda").summary.engine == "rows"


def test_arrays_stay_on_the_device():
    import cupy as cp

    A = power_law()
    X = cp.asarray(np.random.default_rng(0).normal(size=(300, 12)))
    plan = SpMMPlan(A, backend="cuda")
    out = cp.empty((300, 12))
    assert plan.multiply(X, out=out) is out
    assert_allclose(out.get(), A @ X.get(), rtol=1e-12, atol=1e-12)
    # Slices do not lie where wide loads need them.
    odd = cp.empty(300 * 12 + 1)[1:].reshape(300, 12)
    odd[:] = X
    assert_allclose((plan @ odd).get(), out.get(), rtol=1e-12, atol=1e-12)
    assert_allclose((plan @ X[:, 1:9]).get(), out[:, 1:9].get(), rtol=1e-12, atol=1e-12)
    assert (plan @ X[:, 0]).shape == (300,)
    with pytest.raises(ValueError, match=r"X must have shape \(300, n_columns\)"):
        plan @ X[1:]
    with pytest.raises(ValueError, match="out must be a C-contiguous array"):
        plan.multiply(X, out=out.T)


def test_indices_of_64_bits(monkeypatch):
    monkeypatch.setattr(cuda, "_SMALL", 100)
    A = power_law()
    plan = SpMMPlan(A, backend="cuda")
    assert plan._product.index == np.int64
    assert_allclose(plan @ np.eye(300), A.toarray(), atol=1e-13)


def molecule(n):
    """Path of n nodes with charges."""
    ends = np.arange(n - 1)
    return {"edge_index": np.stack([ends, ends + 1]), "nodes": {"charge": np.linspace(0, 1, n)}}


@pytest.mark.parametrize("hops", ["last", "concat", "mean"])
def test_features_are_those_of_the_cpu(hops):
    batch = from_arrays([molecule(n) for n in (1, 3, 7) * 20])
    cpu, gpu = (GCNPropagation(3, hops=hops, pooling="mean", backend=b) for b in ("cpu", "cuda"))
    assert_allclose(gpu.fit_transform(batch), cpu.fit_transform(batch), atol=1e-13)
    A, X = sparse.csr_array(abs(power_law() + power_law().T)), np.ones((300, 5))
    assert_allclose(propagate(A, X, backend="cuda"), propagate(A, X), atol=1e-13)


def test_too_little_memory_says_what_to_do():
    import cupy

    pool = cupy.get_default_memory_pool()
    before = pool.get_limit()
    pool.free_all_blocks()
    pool.set_limit(size=100_000)
    try:
        with pytest.raises(MemoryError, match=r"times 900 columns: multiply fewer .*backend='cpu'"):
            spmm(power_law(), np.ones((300, 900)), backend="cuda")
    finally:
        pool.set_limit(size=before)
