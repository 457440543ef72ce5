# SPDX-License-Identifier: BSD-3-Clause
"""The CUDA solver, run by the host: the text that a device would compile, and what launches it."""

import shutil
import signal
import sys
from contextlib import nullcontext

import host_cupy
import numpy as np
import pytest
from cases import make_kernel, path, random_graph
from oracles import as_batch

from sklearn_mgk.base_kernels import SquaredExponential
from sklearn_mgk.plan import make_problem
from sklearn_mgk.solver import device_labels, device_plan
from sklearn_mgk.solver.device_kernels import Choice
from sklearn_mgk.solver.device_launch import Launch
from sklearn_mgk.solver.device_source import KernelForm
from sklearn_mgk.solver.problem import NodalTarget
from sklearn_mgk.solver.reference import ReferenceBackend

needs_compiler = pytest.mark.skipif(
    not shutil.which("g++"), reason="no C++ compiler; NVRTC compiles the same text"
)
GRAPHS = [
    path(7),
    random_graph(11, 0.4, 1, loops=True, parallel=True),
    random_graph(37, 0.15, 2),
]
"""Bipartite, with self-loops, and with more than one group of columns."""


@pytest.fixture
def solver(monkeypatch):
    """The module of the solver, on the host."""
    for name, number in (("MAX_THREADS", 96), ("GRID_THREADS", 64)):
        monkeypatch.setattr(device_plan, name, number)
    return host_cupy.as_cupy(monkeypatch)


@pytest.fixture
def running(solver):
    """The module that waits for kernels, on the host."""
    return sys.modules["sklearn_mgk.solver.cuda_run"]


@pytest.fixture(params=["block", "grid"])
def team(request, monkeypatch):
    """Who solves a pair."""
    choose(monkeypatch, request.param == "grid")


def choose(monkeypatch, grid):
    monkeypatch.setattr(
        device_plan, "fit_for_grid", lambda xp, graphs, pairs, n: xp.full(pairs.shape[1], grid)
    )


def problem_of(graphs, options="default", **more):
    kernel = make_kernel("product", "product", "cuda", options, **more)
    return make_problem(kernel, as_batch(graphs))


def all_pairs(n):
    return np.stack(np.triu_indices(n), axis=1)


@needs_compiler
@pytest.mark.parametrize("form", ["table", "code"])
def test_values_and_gradients(solver, team, form, monkeypatch):
    monkeypatch.setattr(device_labels, "MAX_TABLE_LABELS", 10**6 if form == "table" else 0)
    problem = problem_of(GRAPHS, "starting by kind, min_steps")
    pairs = all_pairs(len(GRAPHS))
    found = solver.CUDABackend().solver(problem, True)(pairs)
    expected = ReferenceBackend().solver(problem, True)(pairs)
    np.testing.assert_allclose(found.values, expected.values, rtol=1e-9)
    scale = np.abs(expected.gradient).max()
    np.testing.assert_allclose(found.gradient, expected.gradient, rtol=1e-7, atol=1e-9 * scale)
    assert not found.outcome.any()


@needs_compiler
@pytest.mark.parametrize("form", ["table", "code"])
def test_strips(solver, form, monkeypatch):
    monkeypatch.setattr(device_labels, "MAX_TABLE_LABELS", 10**6 if form == "table" else 0)
    graphs = [path(5), path(9), *(random_graph(n, 3 / n, n) for n in (4, 12, 33))]
    graphs += [random_graph(8, 0.3, k, loops=True, parallel=True) for k in (1, 2)]
    problem, pairs = problem_of(graphs), all_pairs(len(graphs))
    launches = []
    start = solver.start
    monkeypatch.setattr(
        solver, "start", lambda runs, *more: (launches.extend(runs), start(runs, *more))
    )
    expected = ReferenceBackend().solver(problem, True)(pairs)
    found = solver.CUDABackend().solver(problem, True)(pairs)
    values = solver.CUDABackend().solver(problem, False)(pairs).values
    assert {launch.warps for run in launches for launch in run.plan.launches} == {1, 2}
    np.testing.assert_allclose(values, expected.values, rtol=1e-9)
    np.testing.assert_allclose(found.values, expected.values, rtol=1e-9)
    scale = np.abs(expected.gradient).max()
    np.testing.assert_allclose(found.gradient, expected.gradient, rtol=1e-7, atol=1e-9 * scale)


@needs_compiler
def test_values_by_node(solver, team):
    problem, pairs = problem_of(GRAPHS, dtype="float32"), all_pairs(len(GRAPHS))
    n = problem.batch.sizes
    begin = np.cumsum(n) - n
    first = [begin[pairs[:, 0]], begin[pairs[:, 1]]]
    found, expected = (
        NodalTarget(*map(host_cupy.asarray, (np.zeros((n.sum(), n.sum())), *first)))
        for _ in range(2)
    )
    solver.CUDABackend().solver(problem, False)(pairs, found)
    ReferenceBackend().solver(problem, False)(pairs, expected)
    np.testing.assert_allclose(found.matrix, expected.matrix, rtol=1e-5, atol=1e-7)


FORMS = {
    "table": ("float64", 10**6, make_kernel("product", "product").edge_kernel),
    "code": ("float32", 0, SquaredExponential("length", 2.0)),
    "windows": ("float64", 0, SquaredExponential("length", 0.05)),
}
"""Type, largest table, and edge kernel; that of the last is negligible for most pairs of edges."""


@needs_compiler
@pytest.mark.parametrize(
    ("form", "n_columns"),
    [
        ("table", 0),
        ("table", 140),
        ("code", 37),
        ("code", 280),
        ("windows", 37),
        ("windows", 140),
        ("windows", 280),
    ],
)
def test_rows_that_the_grid_stages(solver, monkeypatch, form, n_columns):
    """Graphs without edges, of two colours, with loops, and with units of parts of the columns."""
    dtype, most_labels, edge = FORMS[form]
    choose(monkeypatch, True)
    monkeypatch.setattr(device_labels, "MAX_TABLE_LABELS", most_labels)
    # Room for slabs of so many columns in all, and none for strips.
    limit = device_plan.RESERVED + 16 + 16 * n_columns
    monkeypatch.setitem(host_cupy.PROPERTIES, "sharedMemPerMultiprocessor", limit)
    graphs = [random_graph(5, 0.0, 3), *GRAPHS, path(140)]
    kernel = make_kernel("product", "product", "cuda", dtype=dtype)
    problem = make_problem(kernel.set_params(edge_kernel=edge), as_batch(graphs))
    pairs = [(0, 0), (0, 3), (1, 1), (1, 2), (2, 2), (3, 1), (2, 3), (3, 3), (4, 1), (4, 2)]
    pairs = np.array(pairs)
    found = solver.CUDABackend().solver(problem, True)(pairs)
    expected = ReferenceBackend().solver(problem, True)(pairs)
    rtol = 1e-9 if dtype == "float64" else 2e-6
    np.testing.assert_allclose(found.values, expected.values, rtol=rtol)
    scale = np.abs(expected.gradient).max()
    np.testing.assert_allclose(
        found.gradient, expected.gradient, rtol=100 * rtol, atol=rtol * scale
    )
    assert not found.outcome.any()


@needs_compiler
def test_the_grid_stops_when_the_host_asks_for_it(solver, monkeypatch):
    choose(monkeypatch, True)
    solve = solver.CUDABackend().solver(problem_of(GRAPHS), False)
    pairs = np.array([[2, 2], [2, 1]])
    assert (solve(pairs).iterations > 2).all()

    def stopped(taken):
        taken[:] = 2**62
        return nullcontext()

    monkeypatch.setattr(solver, "interruptible", stopped)
    found = solve(pairs)
    assert found.iterations[0] == 0
    assert np.isnan(found.values[0])


def test_strips_do_not_depend_on_what_blocks_keep(solver, monkeypatch):
    module = sys.modules["sklearn_mgk.solver.cuda_kernels"]
    monkeypatch.setattr(host_cupy.RawKernel, "compile", lambda self: None)
    launch = Launch(0, 1, 128, 0, warps=1, slots=4, wanted="VALUES")
    found = []
    for slots in (4, 8):
        choice = Choice(np.dtype("float32"), slots, True, False)
        kernels = module.Kernels(KernelForm(0), KernelForm(0), choice)
        kernels.compile([launch])
        found.append(kernels[launch])
    assert found[0] is found[1]


def test_interruption_leaves_no_items(solver, monkeypatch):
    taken = host_cupy.zeros(3, np.int64)
    monkeypatch.setattr(host_cupy.cuda.runtime, "eventQuery", lambda event: 600)
    before = signal.signal(signal.SIGALRM, signal.default_int_handler)
    signal.setitimer(signal.ITIMER_REAL, 0.05)
    with pytest.raises(KeyboardInterrupt), solver.interruptible(taken):
        assert not taken.any()
    signal.signal(signal.SIGALRM, before)
    assert (taken > 2**60).all()


def test_base_kernels_that_do_not_compile_are_named(solver, monkeypatch):
    def refused(self):
        raise host_cupy.CompileException("line 3: identifier is undefined")

    monkeypatch.setattr(host_cupy.RawKernel, "compile", refused)
    solve = solver.CUDABackend().solver(problem_of(GRAPHS), False)
    with pytest.raises(RuntimeError, match=r"edge_kernel .*line 3.*use backend='cpu'"):
        solve(all_pairs(len(GRAPHS)))


def test_memory_that_runs_out_names_the_setting(running):
    with (
        pytest.raises(MemoryError, match=r"for 3 pairs: .*SKLEARN_MGK_MEMORY_SHARE below 0.5"),
        running.explained("3 pairs"),
    ):
        raise host_cupy.OutOfMemoryError


@pytest.mark.parametrize("text", ["half", "0", "1.5"])
def test_share_of_memory_is_checked(running, monkeypatch, text):
    monkeypatch.setenv(running.SETTING, text)
    with pytest.raises(ValueError, match=f"SKLEARN_MGK_MEMORY_SHARE='{text}'.*such as 0.5"):
        running.memory_share()
