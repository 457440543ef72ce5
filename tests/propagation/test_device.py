# SPDX-License-Identifier: BSD-3-Clause
"""The CUDA kernel: compiled for every architecture, and run by host threads against scipy."""

import ctypes
import math
import shutil
import subprocess
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import nvrtc
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from propagation.matrices import MATRICES, power_law
from scipy import sparse

from sklearn_mgk.propagation import cuda
from sklearn_mgk.propagation.matrices import as_rows_of
from sklearn_mgk.propagation.partition import Degrees, by_degree, by_metric, heavy_first, in_order

ROOT = Path(__file__).resolve().parents[2]
# Name of the function in device.cpp, types, shape of the threads, columns of X.
KERNELS = {
    "float_int_4_32_4": (np.float32, np.int32, cuda.Shape(4, 32, 4), 132),
    "float_int_4_4_8": (np.float32, np.int32, cuda.Shape(4, 4, 8), 16),
    "float_int64_1_32_4": (np.float32, np.int64, cuda.Shape(1, 32, 4), 35),
    "double_int_2_8_4": (np.float64, np.int32, cuda.Shape(2, 8, 4), 10),
    "double_int64_1_1_4": (np.float64, np.int64, cuda.Shape(1, 1, 4), 1),
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
    text = f'{cuda.source()}\nextern "C" __global__ void use(void** out) {{\n{uses}}}'
    compiled, log = nvrtc.compile_cuda(text, architecture)
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


def plans(A, n_blocks):
    rows = as_rows_of(A)
    degree = rows.lengths.astype(float)
    shuffled = np.random.default_rng(0).permutation(degree)
    by_metrics = [by_metric(rows, metric, n_blocks) for metric in (degree, shuffled)]
    counted = by_degree(Degrees(np, rows.lengths), n_blocks)
    return rows, [in_order(rows, n_blocks), *by_metrics, heavy_first(rows, n_blocks), counted]


@pytest.mark.parametrize("name", [*MATRICES, "skewed"])
@pytest.mark.parametrize("n_blocks", [1, 5, 40])
def test_items_hold_every_entry_once(name, n_blocks):
    rows, partitions = plans(skewed() if name == "skewed" else MATRICES[name], n_blocks)
    for partition in partitions:
        items, n_slots = cuda.make_items(partition)
        order = partition.order if len(partition.order) else np.arange(rows.shape[0])
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
    if name == "skewed":
        long = rows.lengths[rows.lengths > cuda._LONG]
        assert n_slots == sum(math.ceil(n / cuda._PIECE) for n in long) >= 20 + 10


@pytest.fixture(scope="module")
def device(tmp_path_factory):
    """Kernels as functions of the host."""
    path = tmp_path_factory.mktemp("device") / "device.so"
    options = ["-std=c++20", "-O1", "-shared", "-fPIC", "-pthread", "-fno-strict-aliasing"]
    folders = [f"-I{ROOT / 'cuda'}", f"-I{ROOT / 'tests'}"]
    text = Path(__file__).with_name("device.cpp")
    subprocess.run(["g++", *options, *folders, "-o", str(path), str(text)], check=True)
    return ctypes.CDLL(str(path))


def run(device, kernel, rows, partition, x, n_done=None):
    """Run a kernel as `cuda.DeviceProduct` launches it; returns the product and the counts left."""
    dtype, index, shape, n_columns = KERNELS[kernel]
    items, n_slots = cuda.make_items(partition)
    order = partition.order if len(partition.order) else np.arange(rows.shape[0])
    n_tiles = shape.n_tiles(n_columns)
    y = np.full((rows.shape[0], n_columns), np.nan, dtype)
    parts = [part.astype(index) for part in (rows.ptr, rows.indices)]
    arrays = [*parts, rows.data.astype(dtype), order.astype(index), items, x, y]
    sums = np.full((max(n_slots, 1), n_columns), np.nan, dtype)
    n_done = np.zeros(max(n_slots, 1) * n_tiles, np.uint32)
    pointers = [ctypes.c_void_p(a.ctypes.data) for a in (*arrays, sums, n_done)]
    pointers.insert(7, ctypes.c_longlong(n_columns))
    device[kernel](*pointers, len(items), n_tiles)
    return y, n_done


@needs_compiler
@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("name", ["random", "star", "empty rows", "one row", "not canonical"])
def test_products_are_those_of_scipy(device, kernel, name):
    dtype, _, _, n_columns = KERNELS[kernel]
    A = MATRICES[name]
    rows, partitions = plans(A, 3)
    x = np.random.default_rng(0).normal(size=(A.shape[1], n_columns)).astype(dtype)
    tolerance = 1e-5 if dtype == np.float32 else 1e-13
    for partition in partitions:
        y, _ = run(device, kernel, rows, partition, x)
        assert_allclose(y, A @ x.astype(float), rtol=tolerance, atol=100 * tolerance)
        assert_array_equal(run(device, kernel, rows, partition, x)[0], y)


@needs_compiler
@pytest.mark.parametrize("kernel", ["float_int_4_32_4", "double_int_2_8_4"])
def test_long_rows_are_split(device, kernel, monkeypatch):
    monkeypatch.setattr(cuda, "_LONG", 50)
    monkeypatch.setattr(cuda, "_PIECE", 30)
    dtype, _, _, n_columns = KERNELS[kernel]
    A = MATRICES["star"]
    rows, (_, partition, *_) = plans(A, 3)
    assert cuda.make_items(partition)[1] == 4
    x = np.random.default_rng(0).normal(size=(A.shape[1], n_columns)).astype(dtype)
    y, n_done = run(device, kernel, rows, partition, x)
    tolerance = 1e-5 if dtype == np.float32 else 1e-13
    assert_allclose(y, A @ x.astype(float), rtol=tolerance, atol=100 * tolerance)
    assert not n_done.any(), "the counts must be ready for the next launch"


class OnDevice:
    """An array of the host that tells its address as those of CuPy do."""

    def __init__(self, array):
        self.array, self.ndim = array, array.ndim
        self.data = SimpleNamespace(ptr=array.ctypes.data)


@needs_compiler
def test_arguments_are_kept_for_the_driver(device):
    kernel = "float_int_4_4_8"
    dtype, index, shape, n_columns = KERNELS[kernel]
    A = MATRICES["random"]
    rows, partitions = plans(A, 5)
    items, _ = cuda.make_items(partitions[-1])
    parts = (rows.ptr, rows.indices, partitions[-1].order)
    ptr, indices, order = (OnDevice(part.astype(index)) for part in parts)
    values, rng = OnDevice(rows.data.astype(dtype)), np.random.default_rng(0)
    xs = [rng.normal(size=(A.shape[1], n_columns)).astype(dtype) for _ in range(2)]
    ys = [np.full((A.shape[0], n_columns), np.nan, dtype) for _ in range(2)]
    room = OnDevice(np.zeros((1, n_columns), dtype)), OnDevice(np.zeros(8, np.uint32))
    matrices = ptr, indices, values, order, OnDevice(items), OnDevice(xs[0]), OnDevice(ys[0])

    def driver(function, *rest):
        grid, block, (shared, stream, places, extra) = rest[:3], rest[3:6], rest[6:]
        assert (block, shared, stream, extra) == ((cuda._THREADS, 1, 1), 0, 77, 0)
        at = np.ctypeslib.as_array((ctypes.c_uint64 * 10).from_address(places))
        numbers = [ctypes.c_uint64.from_address(int(place)) for place in at]
        device[function](*numbers, *grid[:2])

    grid = len(items), shape.n_tiles(n_columns)
    launch = cuda.Launch(driver, kernel, grid, (*matrices, np.int64(n_columns), *room))
    for x, y in zip(xs, ys, strict=True):
        launch(x.ctypes.data, y.ctypes.data, 77)
        assert_allclose(y, A @ x.astype(float), rtol=1e-5, atol=1e-3)


@pytest.mark.parametrize("name", [*MATRICES, "skewed"])
def test_counted_degrees_sort_as_the_rows_do(name):
    rows = as_rows_of(skewed() if name == "skewed" else MATRICES[name])
    listed = by_metric(rows, rows.lengths.astype(float), 40)
    counted = by_degree(Degrees(np, rows.lengths), 40)
    assert_array_equal(counted.order, listed.order)
    assert_array_equal(counted.blocks, listed.blocks)
    assert_array_equal(counted.dense, listed.dense)
    assert counted.imbalance == pytest.approx(listed.imbalance)
    assert counted.threshold == pytest.approx(listed.threshold)
    assert_array_equal(cuda.make_items(counted)[0], cuda.make_items(listed)[0])


@pytest.mark.parametrize(
    ("lengths", "engine"),
    [([4] * 50 + [8] * 50, "rows"), ([40] * 50 + [60] * 50, "heavy"), ([1] * 90 + [99], "degree")],
)
def test_the_engine_follows_the_degrees(lengths, engine):
    product = SimpleNamespace(degrees=Degrees(np, np.array(lengths)))
    assert cuda.CUDABackend.engine(None, product) == engine
