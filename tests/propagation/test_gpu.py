# SPDX-License-Identifier: BSD-3-Clause
"""Products on a real device, against scipy and the CPU."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from propagation.matrices import MATRICES, power_law
from scipy import sparse

from sklearn_mgk import from_arrays
from sklearn_mgk.propagation import GCNPropagation, SpMMPlan, cuda, propagate, spmm
from sklearn_mgk.propagation.matrices import as_rows_of
from sklearn_mgk.propagation.partition import by_metric
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
def test_shapes_of_the_threads_and_long_rows(vec, ways, monkeypatch):
    monkeypatch.setattr(cuda, "_LONG", 100)
    monkeypatch.setattr(cuda, "_PIECE", 40)
    import cupy as cp

    A = power_law(3000)
    rows = as_rows_of(A)
    partition = by_metric(rows, rows.lengths.astype(float), 50)
    assert cuda.make_items(partition)[1] > 4
    product = cuda.DeviceProduct(rows, vec, ways)
    product.follow(partition)
    for n_columns in (8, 128, 160):
        X = np.random.default_rng(0).normal(size=(3000, n_columns))
        for _ in range(3):  # the counts of pieces must be left ready for the next call
            assert_allclose(product(cp.asarray(X)).get(), A @ X, rtol=1e-12, atol=1e-12)


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
