# SPDX-License-Identifier: BSD-3-Clause
"""The techniques of the paper: layout of tiles, and kernels compiled and run by host threads."""

import ctypes
import shutil
import subprocess
from pathlib import Path

import numpy as np
import nvrtc
import pytest
from cases import make_kernel, random_graph
from numpy.testing import assert_allclose, assert_array_equal
from oracles import as_batch

from sklearn_mgk.base_kernels import SquaredExponential
from sklearn_mgk.octiles import to_octiles
from sklearn_mgk.plan import make_problem
from sklearn_mgk.solver import device_labels, get_backend
from sklearn_mgk.solver.device_plan import VECTORS, padded
from sklearn_mgk.solver.device_source import KernelForm
from sklearn_mgk.solver.techniques import (
    TechniqueProblem,
    Techniques,
    technique_source,
    tile_columns,
)

TABLE = KernelForm(0)
CODE = KernelForm.of_code(SquaredExponential("length"), {"length": 0}, 0)
GRAPHS = [
    *(random_graph(n, 0.4, n) for n in (3, 9)),
    random_graph(21, 0.15, 1),
    random_graph(12, 0.5, 2, loops=True, parallel=True),
]
STEPS = {
    "naive": Techniques(on_the_fly=False, order="natural", dynamic=False),
    "on the fly": Techniques(
        octiles=False, order="natural", adaptive=False, shared_tiles=False, dynamic=False
    ),
    "octiles": Techniques(order="natural", adaptive=False, shared_tiles=False, dynamic=False),
    "reordered": Techniques(adaptive=False, shared_tiles=False, dynamic=False),
    "adaptive": Techniques(shared_tiles=False, dynamic=False),
    "shared": Techniques(dynamic=False),
    "dynamic": Techniques(),
    "all tiles shared": Techniques(octiles=False, adaptive=False, warps=2),
}
RUN = """
extern "C" void run(const mgk::Problem<Real>* problem, const mgk::Operands<Real>* operands,
                    const mgk::Work* work, const mgk::Results* results, unsigned n_blocks,
                    unsigned n_threads) {
  launch(solve, false, {n_blocks, 1}, n_threads, *problem, *operands, *work, *results);
}
"""


@pytest.fixture(scope="module")
def octiles():
    return to_octiles(as_batch(GRAPHS))


@pytest.fixture(scope="module")
def labels(octiles):
    return np.random.default_rng(0).integers(1, 9, octiles.edge.max() + 1)


@pytest.mark.parametrize("every", [False, True])
def test_compact_tiles_hold_the_edges_in_the_order_of_their_bits(octiles, labels, every):
    tiles = tile_columns(octiles, labels, every, compact=True)
    for t, bits in enumerate(tiles.bitmap.tolist()):
        own = tiles.entries[tiles.entry_ptr[t] : tiles.entry_ptr[t + 1]]
        assert own["column"].tolist() == [k for k in range(64) if bits >> k & 1]
    assert_array_equal(tiles.entries["weight"], octiles.weight)
    assert_array_equal(tiles.entries["code"], labels[octiles.edge])


@pytest.mark.parametrize("every", [False, True])
def test_expanded_tiles_are_the_matrices(octiles, labels, every):
    tiles = tile_columns(octiles, labels, every, compact=False)
    cells = tiles.entries["weight"].reshape(-1, 8, 8)
    for g in range(len(octiles)):
        n_blocks = (octiles.node_ptr[g + 1] - octiles.node_ptr[g]) // 8
        matrix = np.zeros((8 * n_blocks, 8 * n_blocks))
        for t in range(tiles.tile_ptr[g], tiles.tile_ptr[g + 1]):
            i, j = 8 * tiles.row[t], 8 * tiles.column[t]
            matrix[i : i + 8, j : j + 8] += cells[t]
        n = octiles.sizes[g]
        assert_array_equal(matrix[:n, :n], octiles.to_dense(g))
        assert np.count_nonzero(matrix) == np.count_nonzero(octiles.to_dense(g))
        assert not every or tiles.tile_ptr[g + 1] - tiles.tile_ptr[g] >= n_blocks**2


def test_every_tile_of_a_graph_is_there_once_and_parallel_edges_have_their_own(octiles, labels):
    tiles = tile_columns(octiles, labels, every=True, compact=True)
    graph = np.repeat(np.arange(len(octiles)), np.diff(tiles.tile_ptr))
    places = np.stack([graph, tiles.row, tiles.column])
    assert_array_equal(np.lexsort(places[::-1]), np.arange(places.shape[1]))
    n_blocks = np.diff(octiles.node_ptr) // 8
    assert np.unique(places, axis=1).shape[1] == (n_blocks**2).sum()
    assert np.unique(places, axis=1).shape[1] < places.shape[1]


@pytest.mark.parametrize("architecture", nvrtc.architectures())
@pytest.mark.parametrize(
    ("edge", "dtype"), [(TABLE, "float64"), (CODE, "float32")], ids=["table", "code"]
)
@pytest.mark.parametrize("step", ["naive", "shared"])
def test_kernels_compile(step, edge, dtype, architecture):
    source = technique_source(TABLE, edge, np.dtype(dtype), STEPS[step])
    compiled, log = nvrtc.compile_cuda(source, architecture, ("--use_fast_math",))
    assert compiled, log
    assert "error" not in log


def run_on_host(form, pairs, folder, n_blocks=2):
    """Solve pairs by host threads; returns values, outcomes and iterations."""
    text = form.source().replace("extern __shared__ double dynamic[]", "double* dynamic = nullptr")
    path = folder / "techniques.cpp"
    path.write_text('#include "device.hpp"\n' + text + RUN)
    library = path.with_suffix(".so")
    options = ["-std=c++20", "-O1", "-shared", "-fPIC", "-pthread"]
    includes = f"-I{Path(__file__).resolve().parents[1]}"
    subprocess.run(["g++", *options, includes, "-o", str(library), str(path)], check=True)
    kept = []

    def keep(*arrays):
        own = [np.ascontiguousarray(x if x.size else np.zeros(1, x.dtype)) for x in arrays]
        kept.extend(own)
        return [x.ctypes.data for x in own]

    sizes, dtype = form.problem.batch.sizes, form.problem.dtype
    first, second = (np.ascontiguousarray(side.astype(np.int32)) for side in pairs.T)
    stride = VECTORS * int((sizes[first] * padded(sizes[second])).max())
    n_entries = form.n_entries[first] * form.n_entries[second]
    base = np.cumsum(n_entries) - n_entries
    total = int(n_entries.sum()) + 1
    matrices = keep(base, np.empty(total, dtype), np.empty(total, np.int32))
    (taken,) = keep(np.zeros(1, np.int64)) if form.techniques.dynamic else (0,)
    # Whatever memory held before must not matter.
    (workspace,) = keep(np.full(n_blocks * stride, np.nan, dtype))
    work = [*keep(first, second), len(pairs), taken, workspace, stride, 0]
    values = np.full(len(pairs), np.nan)
    outcome, iterations = (np.full(len(pairs), -1, np.int32) for _ in range(2))
    results = [values.ctypes.data, 0, outcome.ctypes.data, iterations.ctypes.data, 0, 0, 0, 0]
    words = form.words(keep), [*form.tile_words(keep), *matrices], work, results
    structures = [np.array(row, np.uint64) for row in words]
    run = ctypes.CDLL(str(library)).run
    run(*(ctypes.c_void_p(s.ctypes.data) for s in structures), n_blocks, 32 * form.techniques.warps)
    return values, outcome, iterations


@pytest.mark.skipif(not shutil.which("g++"), reason="no C++ compiler; NVRTC compiles the same text")
@pytest.mark.parametrize("representation", ["table", "code"])
@pytest.mark.parametrize("step", STEPS)
def test_values_on_host_threads(step, representation, tmp_path, monkeypatch):
    limit = 10**6 if representation == "table" else 0
    monkeypatch.setattr(device_labels, "MAX_TABLE_LABELS", limit)
    problem = make_problem(make_kernel("delta", "product"), as_batch(GRAPHS))
    pairs = np.array([[2, 3], [0, 2], [3, 3], [1, 0]])
    form = TechniqueProblem.of(problem, STEPS[step])
    values, outcome, iterations = run_on_host(form, pairs, tmp_path)
    expected = get_backend("reference").solver(problem, False)(pairs)
    assert_allclose(values, expected.values, rtol=1e-10)
    assert_array_equal(outcome, 0)
    assert (iterations > 0).all()
