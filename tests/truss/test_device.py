# SPDX-License-Identifier: BSD-3-Clause
"""CUDA kernels: compiled for every architecture, and run by host threads against the CPU."""

import ctypes
import shutil
import subprocess
from itertools import pairwise
from pathlib import Path

import numpy as np
import nvrtc
import pytest
from numpy.testing import assert_array_equal
from truss.graphs import SETS, edge_set

from sklearn_mgk.truss.cuda import kernel_names, source
from sklearn_mgk.truss.eager import prune
from sklearn_mgk.truss.edges import make_rows
from sklearn_mgk.truss.peeling import edge_trussness, whole_rows
from sklearn_mgk.truss.support import row_support

ROOT = Path(__file__).resolve().parents[2]
TYPES = [np.int32, np.int64]
VARIANTS = {"coarse": 0, "threads": 1, "warps": 2, "blocks": 3}

every_type = pytest.mark.parametrize("dtype", TYPES)
every_set = pytest.mark.parametrize("name", SETS)
needs_compiler = pytest.mark.skipif(
    not shutil.which("g++"), reason="no C++ compiler; NVRTC compiles the same text"
)


@every_type
@pytest.mark.parametrize("architecture", nvrtc.architectures())
def test_kernels_compile_for(architecture, dtype):
    uses = "".join(f"auto kernel{k} = {name};\n" for k, name in enumerate(kernel_names(dtype)))
    text = source() + '\nextern "C" __global__ void use(void** out) {\n' + uses
    text += "".join(f"out[{k}] = (void*)kernel{k};\n" for k in range(len(kernel_names(dtype))))
    compiled, log = nvrtc.compile_cuda(text + "}", architecture)
    assert compiled, log
    assert not log.strip("\0\n"), log


@pytest.fixture(scope="module")
def device(tmp_path_factory):
    """Kernels as functions of the host."""
    path = tmp_path_factory.mktemp("device") / "device.so"
    folders = [f"-I{ROOT / 'cuda'}", f"-I{ROOT / 'tests'}"]
    options = ["-std=c++20", "-O1", "-shared", "-fPIC", "-pthread", *folders]
    text = Path(__file__).with_name("device.cpp")
    subprocess.run(["g++", *options, "-o", str(path), str(text)], check=True)
    library = ctypes.CDLL(str(path))

    def call(name, dtype, *arguments):
        function = library[f"{name}_{np.dtype(dtype).name}"]
        kind = {4: ctypes.c_int, 8: ctypes.c_longlong}[np.dtype(dtype).itemsize]
        function(
            *(
                ctypes.c_void_p(a.ctypes.data) if isinstance(a, np.ndarray) else kind(a)
                for a in arguments
            )
        )

    return call


def count(device, rows, variant):
    n_slots, dtype = len(rows.columns), rows.columns.dtype
    stop = rows.ptr[1:] - dtype.type(1)
    row = np.repeat(np.arange(len(stop), dtype=dtype), np.diff(rows.ptr))
    support, tasks = np.zeros(n_slots, dtype), np.empty(2 * n_slots, dtype)
    arrays = (rows.ptr, stop, rows.columns, support, row)
    counters = np.array([7, 0, 0], dtype)  # seven edges left by an earlier pass
    device("support", dtype, VARIANTS[variant], *arrays, len(stop), n_slots, tasks, counters)
    return support, stop, counters


@needs_compiler
@every_type
@every_set
@pytest.mark.parametrize("variant", VARIANTS)
@pytest.mark.parametrize("order", ["degree", "natural"])
def test_support_is_that_of_the_cpu(device, name, dtype, variant, order):
    rows = make_rows(edge_set(SETS[name]), order, dtype)
    assert_array_equal(count(device, rows, variant)[0], row_support(rows))


@needs_compiler
@every_type
@every_set
@pytest.mark.parametrize("needed", [1, 3])
def test_pruning_is_that_of_the_cpu(device, name, dtype, needed):
    edges = edge_set(SETS[name])
    rows, expected = (make_rows(edges, "degree", dtype) for _ in range(2))
    support, stop, counters = count(device, rows, "warps")
    arrays = (rows.ptr, stop, rows.columns, rows.edge, support)
    device("prune", dtype, *arrays, len(stop), needed, counters)
    left = prune(
        expected.ptr, expected.columns, expected.edge, row_support(expected, "fine"), needed
    )
    assert counters.tolist() == [left, 0, 0]
    assert_array_equal(rows.columns, expected.columns)
    there = rows.columns != 0
    assert_array_equal(rows.edge[there], expected.edge[there])
    assert_array_equal(
        stop - rows.ptr[:-1],
        [there[a:b].sum() for a, b in zip(rows.ptr, rows.ptr[1:], strict=False)],
    )
    assert not support.any()


@needs_compiler
@every_type
@every_set
@pytest.mark.parametrize("team", ["blocks", "grid"])
def test_peeling_is_that_of_the_cpu(device, name, dtype, team):
    edges = edge_set(SETS[name])
    rows = make_rows(edges, "degree", dtype)
    places = np.flatnonzero(rows.columns)
    number, ptr, *lists = whole_rows(rows, edges.n_edges)
    support, queue, trussness = (np.zeros(edges.n_edges, dtype) for _ in range(3))
    support[number[places]] = row_support(rows)[places]
    arrays = (ptr.astype(dtype), *lists, support, queue, trussness)
    edge_ptr, n = edges.edge_ptr.astype(dtype), len(edges.edge_ptr) - 1
    if team == "blocks":
        graphs, counters = np.arange(n, dtype=dtype), np.zeros(2 * n, dtype)
        device("blocks", dtype, *arrays, edge_ptr, graphs, n, counters, np.zeros(1, dtype))
    else:
        for first, last in pairwise(edge_ptr):
            counters, arrived = np.zeros(2, dtype), np.zeros(1, np.uint32)
            device("grid", dtype, *arrays, first, last, counters, arrived)
    found = np.empty(edges.n_edges, np.int64)
    found[rows.edge[places]] = trussness[number[places]]
    assert_array_equal(found, edge_trussness(edges))
