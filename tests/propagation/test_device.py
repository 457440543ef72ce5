# SPDX-License-Identifier: BSD-3-Clause
"""The CUDA kernels: compiled for every architecture, and run by host threads against scipy."""

import shutil
import sys

import host_cupy
import numpy as np
import nvrtc
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from propagation.matrices import MATRICES, power_law
from propagation.plans import expected_plan, ptr_of
from scipy import sparse

from sklearn_mgk.propagation import SpMMPlan, cuda, cuda_plan
from sklearn_mgk.propagation.cuda_launch import source
from sklearn_mgk.propagation.matrices import as_rows_of
from sklearn_mgk.propagation.partition import by_metric
from sklearn_mgk.propagation.plan import ENGINES

PLANNED_THERE = ["auto", "rows", "heavy", "degree"]
# Types, columns of X, columns of a lane and rows of X on their way.
KERNELS = {
    "float_int_4_32_4": (np.float32, np.int32, 132, None, 4),
    "float_int_4_4_8": (np.float32, np.int32, 16, None, 8),
    "float_int64_1_32_4": (np.float32, np.int64, 35, 1, 4),
    "double_int_2_8_4": (np.float64, np.int32, 10, None, 4),
    "double_int64_1_1_4": (np.float64, np.int64, 1, None, 4),
}


needs_compiler = pytest.mark.skipif(
    not shutil.which("g++"), reason="no C++ compiler; NVRTC compiles the same text"
)


@pytest.mark.parametrize("architecture", nvrtc.architectures())
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("index", [np.int32, np.int64])
def test_kernels_compile_for(architecture, dtype, index):
    shapes = [cuda.shape_for(n, np.dtype(dtype).itemsize) for n in (1, 7, 10, 16, 32, 64, 128)]
    names = sorted({cuda.kernel_name(dtype, index, shape) for shape in shapes})
    uses = "".join(f"out[{k}] = (void*)&{name};\n" for k, name in enumerate(names))
    kernels = source("spmm")
    text = f'{kernels}\nextern "C" __global__ void use(void** out) {{\n{uses}}}'
    compiled, log = nvrtc.compile_cuda(text, architecture)
    assert compiled, log
    assert not log.strip("\0\n"), log


@pytest.mark.parametrize("architecture", nvrtc.architectures())
@pytest.mark.parametrize("index", [np.int32, np.int64])
def test_planning_compiles_for(architecture, index):
    use = f"out[0] = (void*)&{cuda_plan.kernel_name(index)};"
    text = f'{cuda_plan.plan_source()}\nextern "C" __global__ void use(void** out) {{{use}}}'
    compiled, log = nvrtc.compile_cuda(text, architecture, cuda_plan.options())
    assert compiled, log
    assert not log.strip("\0\n"), log


@pytest.mark.parametrize("n_columns", [1, 2, 3, 16, 100, 128, 1024])
@pytest.mark.parametrize("itemsize", [4, 8])
def test_shapes_cover_all_columns(n_columns, itemsize):
    for shape in (cuda.shape_for(n_columns, itemsize), cuda.shape_for(n_columns, itemsize, vec=1)):
        assert shape.vec * itemsize <= 16
        assert n_columns % shape.vec == 0
        assert shape.group in (1, 2, 4, 8, 16, 32)
        covered = shape.n_tiles(n_columns) * shape.vec * shape.group
        assert n_columns <= covered < 2 * max(n_columns, 32 * shape.vec)


def skewed():
    """Return a matrix with two rows that are split, one of them in the middle."""
    A = power_law(5000, seed=3).tolil()
    A[10, ::1] = 0.5
    A[3000, :2500] = -0.25
    return sparse.csr_array(A)


def forget_kernels():
    cuda._kernel.cache_clear()
    cuda_plan._kernel.cache_clear()


@pytest.fixture
def on_host(monkeypatch):
    """Put the host in place of the device."""
    monkeypatch.setitem(sys.modules, "cupy", host_cupy)
    forget_kernels()
    yield host_cupy
    forget_kernels()


MORE = {
    "skewed": skewed(),
    # Its pieces are more than the blocks of threads, which then do two of them.
    "long": sparse.random_array((3, 60_000), density=0.9, rng=np.random.default_rng(2)).tocsr(),
}


def engines(A):
    return [engine for engine in ENGINES if engine != "dual" or A.shape[0] == A.shape[1]]


@needs_compiler
@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("name", ["random", "star", "empty rows", "one row", "not canonical"])
def test_products_are_those_of_scipy(on_host, monkeypatch, kernel, name):
    dtype, index, n_columns, vec, ways = KERNELS[kernel]
    monkeypatch.setattr(cuda, "_SMALL", 0 if index == np.int64 else np.iinfo(np.int32).max)
    A = MATRICES[name].astype(dtype)
    X = np.random.default_rng(0).normal(size=(A.shape[1], n_columns)).astype(dtype)
    tolerance = 1e-5 if dtype == np.float32 else 1e-13
    for engine in engines(A):
        plan = SpMMPlan(A, engine=engine, backend="cuda", n_blocks=3)
        product = plan._product
        product.vec, product.ways = vec, ways
        assert product.index == index
        y = plan @ X
        assert_allclose(y, A @ X.astype(float), rtol=tolerance, atol=100 * tolerance)
        assert_array_equal(plan @ X, y)


@needs_compiler
@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("name", MORE)
def test_long_rows_are_split(on_host, name, engine):
    if name == "long" and engine == "dual":
        engine = "degree"
    A = MORE[name]
    plan = SpMMPlan(A, engine=engine, backend="cuda", n_blocks=2)
    X = np.random.default_rng(0).normal(size=(A.shape[1], 1))
    y = plan @ X
    assert_allclose(y, A @ X, rtol=1e-12, atol=1e-11)
    assert_array_equal(plan @ X, y, err_msg="the counts must be ready for the next launch")
    n_items = int(plan._product.plan.room[0])
    if name == "long" and engine != "rows":
        assert n_items > 2 * plan._product.plan.n_blocks


@needs_compiler
@pytest.mark.parametrize("name", ["random", "power law", "no rows", "no columns", "no entries"])
def test_plans_run_as_users_call_them(on_host, name):
    A, rng = MATRICES[name], np.random.default_rng(0)
    X, X2 = (rng.normal(size=(n, 2)) for n in A.shape[::-1])
    plan = SpMMPlan(A, backend="cuda")
    assert_allclose(plan @ X, A @ X, atol=1e-11)
    assert_allclose(plan @ X[:, 1], A @ X[:, 1], atol=1e-11)
    assert_allclose(plan.multiply(X2, transpose=True), A.T @ X2, atol=1e-11)
    out = host_cupy.empty((A.shape[0], 2))
    assert plan.multiply(host_cupy.asarray(X), out=out) is out
    assert_allclose(out, A @ X, atol=1e-11)
    summary = plan.summary
    assert summary.engine in ENGINES[1:]
    assert summary.imbalance >= 1
    assert summary.seconds > 0


@needs_compiler
def test_little_room_is_asked_for(on_host, monkeypatch):
    monkeypatch.setattr(cuda, "_ENOUGH_ROOM", 1000)
    A = MORE["skewed"]
    plan = SpMMPlan(A, backend="cuda")
    X = np.ones((5000, 1))
    assert_allclose(plan @ X, A @ X, rtol=1e-12, atol=1e-11)
    on_device = plan._product.plan
    n_long = [n for n in np.diff(A.indptr) if n > 512]
    assert on_device.n_slots() == sum(-(-n // 256) for n in n_long) < on_device.most_slots


@pytest.mark.parametrize("name", [*MATRICES, "skewed"])
@pytest.mark.parametrize("n_blocks", [1, 5, 40])
def test_items_of_the_host_hold_every_entry_once(name, n_blocks):
    rows = as_rows_of({**MATRICES, **MORE}[name])
    shuffled = np.random.default_rng(0).permutation(rows.lengths.astype(float))
    for metric in (rows.lengths, shuffled):
        partition = by_metric(rows, metric, n_blocks)
        order = partition.order
        items, n_slots = cuda_plan.make_items(partition, rows.lengths[order])
        seen, slots = [], []
        for n_warps, first, last, slot, n_pieces in items.tolist():
            if n_warps >= 0:
                assert n_warps in (0, 1, 2, 4, 8)
                seen += order[first:last].tolist()
            else:
                slots.append(slot + last)
                seen += [order[first]] * (last == 0)
                assert 0 <= last < n_pieces
        assert sorted(seen) == list(range(rows.shape[0]))
        assert slots == list(range(n_slots))
        assert cuda_plan.work_of(items, rows.lengths[order]).sum() == (
            rows.total_work + 4 * (n_slots - (rows.lengths > 512).sum())
        )


def made(cp, lengths, engine, n_blocks, index=np.int32):
    """Plan as the device does; returns engine, threshold, order and items."""
    ptr = cp.asarray(ptr_of(lengths).astype(index))
    return cuda_plan.make(cp, ptr, int(sum(lengths)), engine, n_blocks).on_host()


def assert_as_expected(found, lengths, engine, n_blocks):
    engine, threshold, order, items = expected_plan(lengths, engine, n_blocks)
    assert found[0] == engine
    assert found[1] == pytest.approx(threshold)
    assert_array_equal(found[2], order)
    assert_array_equal(found[3], items)


LENGTHS = {
    "alike": [4] * 300,
    "even": [40] * 150 + [60] * 150,
    "one row": [40],
    "one long row": [100_000],
    "only long rows": [513, 1000, 5000],
    "empty": [0] * 70,
    "star": [1] * 500 + [1000] + [1] * 523,
    "edges of bins": [511, 512, 513, 32, 33, 0, 64, 65, 128, 129, 256, 257] * 20,
    "power law": np.diff(power_law(700).indptr).tolist(),
    "many": np.diff(power_law(9000, seed=1).indptr).tolist(),
}


@needs_compiler
@pytest.mark.parametrize("tiles", ["as they are", "small"])
@pytest.mark.parametrize("engine", PLANNED_THERE)
@pytest.mark.parametrize("name", LENGTHS)
def test_the_device_plans_as_plain_python_does(on_host, monkeypatch, name, engine, tiles):
    if tiles == "small":
        monkeypatch.setattr(cuda_plan, "_ONE_TILE", 0)
        monkeypatch.setattr(cuda_plan, "_TILE", 2000 if name == "many" else 37)
    for n_blocks in (1, 30, 2000):
        found = made(on_host, LENGTHS[name], engine, n_blocks)
        assert_as_expected(found, LENGTHS[name], engine, n_blocks)


ANY_LENGTHS = st.lists(
    st.one_of(st.integers(0, 5), st.integers(0, 70), st.integers(500, 2000)),
    min_size=1,
    max_size=80,
)


@needs_compiler
@settings(
    max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(ANY_LENGTHS, st.sampled_from(PLANNED_THERE), st.integers(1, 99), st.booleans(), st.data())
def test_the_device_plans_any_rows(on_host, lengths, engine, n_blocks, wide, data):
    tile = data.draw(st.integers(1, 40))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(cuda_plan, "_ONE_TILE", 10)
        patch.setattr(cuda_plan, "_TILE", tile)
        found = made(on_host, lengths, engine, n_blocks, np.int64 if wide else np.int32)
    assert_as_expected(found, lengths, engine, n_blocks)


@needs_compiler
@pytest.mark.parametrize("engine", ["heavy", "degree"])
def test_the_device_plans_many_rows(on_host, engine):
    rng = np.random.default_rng(0)
    lengths = np.minimum(rng.pareto(1.3, 100_000) * 4, 50_000).astype(int).tolist()
    assert cuda_plan.tiles_of(len(lengths))[0] > 40
    assert_as_expected(made(on_host, lengths, engine, 2000), lengths, engine, 2000)


@pytest.mark.parametrize("lengths", [*LENGTHS.values(), [513] * 50, [769] * 50])
def test_there_is_room_for_all_pieces(lengths):
    n_pieces = sum(-(-n // 256) for n in lengths if n > 512)
    assert n_pieces <= cuda_plan.most_pieces(sum(lengths)) <= sum(lengths) / 170
