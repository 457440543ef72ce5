# SPDX-License-Identifier: BSD-3-Clause
"""What is solved again and what is not; interruption, threads and progress."""

import gc
import signal
import sys
import time
import weakref
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from contract.molecules import IS_ALCOHOL, N_PAIRS, SMILES, TARGET, make_kernel, make_svc
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import WhiteKernel
from sklearn.model_selection import GridSearchCV, StratifiedKFold
from sklearn.svm import SVC

from sklearn_mgk import GraphBatch, cache, clear_cache, from_smiles
from sklearn_mgk import gram as gram_layer
from sklearn_mgk.base_kernels import Constant, FormulaKernel, FunctionKernel, KroneckerDelta
from sklearn_mgk.solver import cpu, schedule

FOLDS = StratifiedKFold(5, shuffle=True, random_state=0)
N = len(SMILES)


@pytest.fixture
def small_steps(monkeypatch):
    """Cut the work into many chunks (one row each) and many tasks (one pair each)."""
    monkeypatch.setitem(gram_layer.CHUNK_BYTES, "numpy", 1)
    monkeypatch.setattr(schedule, "TASK_COST", 1)


# What is solved again --------------------------------------------------------------------------


@pytest.mark.parametrize("normalization", [None, "cosine", "size"])
def test_a_grid_over_the_svm_solves_each_pair_once(normalization, solves):
    model = make_svc(normalization=normalization)
    grid = {"svc__C": [0.1, 1, 10, 100]}
    search = GridSearchCV(model, grid, cv=FOLDS).fit(SMILES, IS_ALCOHOL)
    assert solves.n_pairs == N_PAIRS
    clear_cache()
    uncached = clone(model).set_params(marginalizedgraphkernel__cache_size=0)
    expected = GridSearchCV(uncached, grid, cv=FOLDS).fit(SMILES, IS_ALCOHOL)
    assert_array_equal(
        search.cv_results_["mean_test_score"], expected.cv_results_["mean_test_score"]
    )


def test_a_grid_over_the_kernel_solves_each_setting_once(solves):
    model = make_svc()
    grid = {"svc__C": [1, 10], "marginalizedgraphkernel__edge_kernel__length_scale": [0.3, 1.0]}
    GridSearchCV(model, grid, cv=FOLDS).fit(SMILES, IS_ALCOHOL)
    assert solves.n_pairs == 2 * N_PAIRS


def test_a_callable_kernel_in_a_grid_solves_each_pair_once(graphs, solves):
    search = GridSearchCV(SVC(kernel=make_kernel()), {"C": [0.1, 1, 10]}, cv=FOLDS)
    search.fit(list(graphs), IS_ALCOHOL)
    assert solves.n_pairs == N_PAIRS


def test_a_gaussian_process_predicts_without_solving_its_training_pairs_again(graphs, solves):
    model = GaussianProcessRegressor(make_kernel() + WhiteKernel(0.1), optimizer=None)
    model.fit(graphs[4:], TARGET[4:])
    assert solves.n_pairs == 20 * 21 / 2
    model.predict(graphs[:4], return_std=True)
    assert solves.n_pairs == 20 * 21 / 2 + 4 * 20 + 4
    model.predict(graphs[:4], return_std=True)
    assert solves.n_pairs == 20 * 21 / 2 + 4 * 20 + 4


def test_values_that_came_with_a_gradient_are_kept(graphs, solves):
    K, _ = make_kernel()(graphs, eval_gradient=True)
    n_solved = solves.n_pairs
    assert n_solved == N_PAIRS
    assert_array_equal(make_kernel()(graphs), K)
    assert solves.n_pairs == n_solved


def test_a_larger_set_adds_only_its_new_pairs(graphs, solves):
    kernel = make_kernel()
    kernel(graphs[:20])
    kernel(graphs)
    assert solves.n_pairs == N_PAIRS
    kernel.diag(graphs)
    kernel(graphs[3:7], graphs[::2])
    assert solves.n_pairs == N_PAIRS


def test_equal_content_is_recognised_in_other_batches(graphs, solves):
    kernel = make_kernel()
    K = kernel(graphs)
    n_solved = solves.n_pairs
    assert_array_equal(kernel(from_smiles(SMILES)), K)
    # Attributes that the kernel does not read, a wider string type, the order of the edges.
    again = GraphBatch(
        node_ptr=graphs.node_ptr,
        edge_ptr=graphs.edge_ptr,
        edge_index=graphs.edge_index[::-1],
        nodes={
            "element": graphs.nodes["element"].astype("U20"),
            "n_hydrogens": graphs.nodes["n_hydrogens"].astype(np.int8),
        },
        edges={"order": graphs.edges["order"]},
    )
    assert_array_equal(kernel(again), K)
    assert solves.n_pairs == n_solved


def test_duplicates_are_solved_once_without_a_cache(graphs, solves):
    kernel = make_kernel(cache_size=0)
    copies = list(graphs) + list(graphs)[::-1]
    K = kernel(copies)
    assert solves.n_pairs == N_PAIRS
    assert_allclose(K[:N, :N], K[N:, N:][::-1, ::-1], rtol=1e-14)


@pytest.mark.parametrize("reverse", [False, True])
def test_graphs_that_differ_in_one_attribute_weight_or_edge_are_not_mixed_up(reverse):
    def path(weights=(1.0, 1.0), elements="CCO", orders=(1.0, 1.0), ends=((0, 1), (1, 2))):
        return GraphBatch(
            node_ptr=[0, 3],
            edge_ptr=[0, 2],
            edge_index=ends,
            edge_weight=weights,
            nodes={"element": list(elements)},
            edges={"order": orders},
        )

    others = [
        path(),
        path(weights=(1.0, 1.5)),
        path(elements="CCN"),
        path(orders=(1.0, 2.0)),
        path(ends=((0, 1), (2, 2))),
        path(ends=((0, 0), (1, 0))),
    ][:: -1 if reverse else 1]
    kernel = make_kernel(node_kernel=KroneckerDelta("element", h=0.3), normalization=None)
    probe = path()
    values = [kernel(batch, probe)[0, 0] for batch in others]
    fresh = [clone(kernel).set_params(cache_size=0)(batch, probe)[0, 0] for batch in others]
    assert values == fresh
    assert len(set(np.round(values, 10))) == len(others)


def test_two_sides_are_joined_once_and_freed_with_either(graphs, monkeypatch):
    joined, concatenate = [], GraphBatch.concatenate

    def counting(batches):
        found = concatenate(batches)
        joined.append(weakref.ref(found))
        return found

    monkeypatch.setattr(GraphBatch, "concatenate", counting)
    left, right = graphs[:4], graphs[4:9]
    for q in (0.1, 0.2):
        make_kernel(stopping_probability=q)(left, right)
    assert len(joined) == 1
    del right
    gc.collect()
    assert joined[0]() is None


# What keeps settings apart ---------------------------------------------------------------------

SAME = {
    "bounds": {"stopping_probability_bounds": "fixed", "size_scale_bounds": "fixed"},
    "bounds of a base kernel": {"edge_kernel__length_scale_bounds": (0.1, 1.0)},
    "normalization": {"normalization": "size", "size_scale": 3.0},
    "verbose": {"verbose": True},
    "size of the cache": {"cache_size": 1},
}
OTHER = {
    "node kernel": {"node_kernel__k1__h": 0.31},
    "attribute": {"node_kernel__k2__attribute": "degree"},
    "edge kernel": {"edge_kernel": None},
    "edge kernel of one value": {"edge_kernel": Constant(0.5)},
    "starting": {"starting_probability": 2.0},
    "stopping": {"stopping_probability": 0.11},
    "rule": {"stopping_rule": "additive"},
    "steps": {"min_steps": 1},
    "tolerance": {"tol": 1e-3},
    "precision": {"dtype": "float32", "tol": 1e-6},
}


@pytest.mark.parametrize("changes", SAME.values(), ids=SAME)
def test_settings_that_leave_values_alone_share_them(changes, graphs, solves):
    make_kernel()(graphs)
    n_solved = solves.n_pairs
    make_kernel().set_params(**changes)(graphs)
    assert solves.n_pairs == n_solved


@pytest.mark.parametrize("changes", OTHER.values(), ids=OTHER)
def test_other_settings_do_not_mix(changes, graphs, solves):
    kernel = make_kernel(normalization=None)
    K = kernel(graphs)
    changed = clone(kernel).set_params(**changes)
    K_changed = changed(graphs)
    assert solves.n_pairs == 2 * N_PAIRS
    assert_array_equal(K_changed, clone(changed).set_params(cache_size=0)(graphs))
    assert not np.array_equal(K, K_changed)
    assert_array_equal(kernel(graphs), K)
    assert_array_equal(changed(graphs), K_changed)


def test_bounds_of_named_hyperparameters_do_not_matter(graphs, solves):
    for bounds in ((0.1, 1.0), (0.2, 2.0), "fixed"):
        edge = FormulaKernel("order", "exp(-s * (x - y)**2)", {"s": (0.7, bounds)})
        make_kernel(edge_kernel=edge)(graphs)
    assert solves.n_pairs == N_PAIRS


def test_two_functions_do_not_mix(graphs):
    values = []
    for h in (0.2, 0.8):
        # A new lambda of the same text, while the first is gone.
        kernel = make_kernel(
            node_kernel=FunctionKernel("element", lambda x, y, h=h: np.where(x == y, 1.0, h))
        )
        values.append(kernel(graphs))
        delta = make_kernel(node_kernel=KroneckerDelta("element", h=h))
        assert_allclose(values[-1], delta(graphs), rtol=5e-8)
        del kernel
    assert np.abs(values[0] - values[1]).max() > 0.1


class Scaled:
    """Function with a state that can change."""

    def __init__(self, h):
        self.h = h

    def __call__(self, x, y):
        return np.where(x == y, 1.0, self.h)

    def __eq__(self, other):
        return isinstance(other, Scaled) and self.h == other.h

    __hash__ = None


def test_a_function_that_cannot_be_hashed_is_never_looked_up(graphs, solves):
    function = Scaled(0.2)
    kernel = make_kernel(node_kernel=FunctionKernel("element", function))
    first = kernel(graphs)
    function.h = 0.8
    assert np.abs(kernel(graphs) - first).max() > 0.1
    assert solves.n_pairs == 2 * N_PAIRS


@pytest.mark.parametrize("state", ["attribute", "variable"])
def test_a_function_that_came_to_mean_something_else_is_noticed(state, graphs):
    class Delta:
        def __call__(self, x, y):
            return np.where(x == y, 1.0, self.h)

    h = 0.2
    functions = {"attribute": Delta(), "variable": lambda x, y: np.where(x == y, 1.0, h)}
    functions["attribute"].h = h
    kernel = make_kernel(node_kernel=FunctionKernel("element", functions[state]))
    before = kernel(graphs)
    h = functions["attribute"].h = 0.8
    assert np.abs(kernel(graphs) - before).max() > 0.1


def test_changing_a_parameter_in_place_is_noticed(graphs):
    kernel = make_kernel()
    before = kernel(graphs)
    kernel.node_kernel.k1.h = 0.9
    after = kernel(graphs)
    assert np.abs(after - before).max() > 0.05
    assert_array_equal(after, clone(kernel).set_params(cache_size=0)(graphs))


# Memory ----------------------------------------------------------------------------------------


def test_off_switch(graphs, solves):
    kernel = make_kernel(cache_size=0)
    kernel(graphs)
    kernel(graphs)
    assert solves.n_pairs == 2 * N_PAIRS
    assert cache.cache_size() == 0


def test_clear_cache(graphs, solves):
    kernel = make_kernel()
    K = kernel(graphs)
    assert cache.cache_size() >= 8 * N * N
    clear_cache()
    assert cache.cache_size() == 0
    assert_array_equal(kernel(graphs), K)
    assert solves.n_pairs == 2 * N_PAIRS


@pytest.mark.parametrize("n_graphs", [8, 12, 15, 24])
def test_the_bound_on_memory_holds_and_values_stay_right(n_graphs, graphs):
    megabytes = 8 * 15**2 / 1e6
    for q in (0.1, 0.2, 0.3):
        kernel = make_kernel(cache_size=megabytes, stopping_probability=q)
        for batch in (graphs[:n_graphs], graphs[-n_graphs:]):
            K = kernel(batch)
            assert cache.cache_size() <= megabytes * 1e6
            assert_allclose(K, clone(kernel).set_params(cache_size=0)(batch), rtol=5e-8)


def test_settings_used_longest_ago_go_first(graphs, solves):
    room_for_two = 2.5 * 8 * (N + 1) ** 2 / 1e6
    kernels = [
        make_kernel(cache_size=room_for_two, stopping_probability=q) for q in (0.1, 0.2, 0.3)
    ]
    first, second, third = kernels
    for kernel in (first, second, first, third):
        kernel(graphs)
    assert solves.n_pairs == 3 * N_PAIRS
    first(graphs)
    third(graphs)
    assert solves.n_pairs == 3 * N_PAIRS
    second(graphs)
    assert solves.n_pairs == 4 * N_PAIRS


def test_cache_gives_copies(graphs):
    kernel = make_kernel(normalization=None)
    K = kernel(graphs).copy()
    for result in (kernel(graphs), kernel(graphs[:5], graphs), kernel.diag(graphs)):
        result[:] = np.nan
    assert_array_equal(kernel(graphs), K)


# Threads, interruption, progress ---------------------------------------------------------------


def test_threads_at_once(graphs, small_steps):
    qs = (0.1, 0.2) * 4
    expected = {q: make_kernel(stopping_probability=q, cache_size=0)(graphs) for q in set(qs)}

    def fit_and_transform(q):
        kernel = make_kernel(stopping_probability=q)
        part = list(graphs[::2])
        return kernel.fit(graphs).transform(part), kernel.fit_transform(graphs)

    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    try:
        with ThreadPoolExecutor(4) as pool:
            results = list(pool.map(fit_and_transform, qs))
    finally:
        sys.setswitchinterval(interval)
    for q, (rows, K) in zip(qs, results, strict=True):
        assert_allclose(K, expected[q], rtol=5e-8)
        assert_allclose(rows, expected[q][::2], rtol=5e-8)


def test_threads_that_share_a_cache_too_small_for_them(graphs, monkeypatch):
    places = cache._places

    def slow_places(number, prints):
        found = places(number, prints)
        time.sleep(1e-3)  # without a lock others would renumber the graphs meanwhile
        return found

    monkeypatch.setattr(cache, "_places", slow_places)
    kernel = make_kernel(cache_size=8 * 16**2 / 1e6)
    choices = [np.random.default_rng(seed).choice(N, 10, replace=False) for seed in range(16)]
    with ThreadPoolExecutor(4) as pool:
        results = list(pool.map(lambda chosen: kernel(graphs[chosen]), choices))
    expected = make_kernel(cache_size=0)(graphs)
    for chosen, K in zip(choices, results, strict=True):
        assert_allclose(K, expected[np.ix_(chosen, chosen)], rtol=5e-8)


@pytest.fixture(params=[1, 2], ids=["one thread", "two threads"])
def interrupted(request, monkeypatch):
    """Press Ctrl-C while the CPU backend works on its 100th task; the list of its tasks."""
    monkeypatch.setattr(cpu.numba.config, "NUMBA_NUM_THREADS", request.param)
    solve_pairs, tasks = cpu.solve_pairs, []

    def interrupting(*arguments):
        tasks.append(1)
        if len(tasks) == 100:
            signal.raise_signal(signal.SIGINT)
        if 100 <= len(tasks) < 120:
            time.sleep(0.02)  # the main thread has to wake up to receive the signal
        return solve_pairs(*arguments)

    monkeypatch.setattr(cpu, "solve_pairs", interrupting)
    return tasks


def test_interrupt_drops_the_tasks_that_wait(interrupted, graphs, monkeypatch):
    monkeypatch.setattr(schedule, "TASK_COST", 1)
    with pytest.raises(KeyboardInterrupt):
        make_kernel()(graphs)
    assert 100 <= len(interrupted) < 120


def test_interrupt_loses_no_chunk_that_was_done(interrupted, graphs, small_steps, solves):
    kernel = make_kernel()
    with pytest.raises(KeyboardInterrupt):
        kernel(graphs)
    before = solves.n_pairs
    expected = make_kernel(cache_size=0)(graphs)
    solves.calls.clear()
    assert_allclose(kernel(graphs), expected, rtol=5e-8)
    # Rows of 24, 23, 22, 21 and 20 pairs; the last one was cut short.
    assert before == 24 + 23 + 22 + 21 + 20
    assert solves.n_pairs == N_PAIRS - 24 - 23 - 22 - 21
    assert vars(kernel) == vars(make_kernel())


@pytest.mark.parametrize("error", [KeyboardInterrupt, MemoryError, RuntimeError])
def test_an_error_of_the_backend_leaves_nothing_broken(error, graphs, monkeypatch):
    kernel = make_kernel(verbose=True)
    with monkeypatch.context() as patched:

        def failing(*arguments):
            raise error("from the backend")

        patched.setattr(cpu, "solve_pairs", failing)
        for call in (
            lambda: kernel(graphs),
            lambda: kernel(graphs, eval_gradient=True),
            lambda: kernel.diag(graphs),
            lambda: kernel.nodal(graphs),
            lambda: kernel.fit_transform(graphs),
        ):
            with pytest.raises(error):
                call()
    assert_allclose(kernel(graphs), make_kernel(cache_size=0)(graphs), rtol=5e-8)


@pytest.mark.parametrize("call", ["gram", "nodal", "diag"])
def test_progress(call, graphs, small_steps, capsys):
    kernel = make_kernel(verbose=True)
    {"gram": kernel, "nodal": kernel.nodal, "diag": kernel.diag}[call](graphs)
    shown = capsys.readouterr().err
    assert "pair/s" in shown
    assert f"/{N if call == 'diag' else N_PAIRS}" in shown.replace("24.0", "24")


def test_progress_is_silent_by_default(graphs, capsys):
    make_kernel()(graphs)
    captured = capsys.readouterr()
    assert (captured.out, captured.err) == ("", "")


def test_progress_counts_what_is_left_to_solve(graphs, small_steps, capsys):
    make_kernel()(graphs[:20])
    make_kernel(verbose=True)(graphs)
    left = N_PAIRS - 20 * 21 // 2
    assert f"/{left}" in capsys.readouterr().err


def test_progress_bar_is_closed_after_an_interrupt(graphs, monkeypatch):
    from tqdm.auto import tqdm

    def interrupted(*arguments):
        raise KeyboardInterrupt

    monkeypatch.setattr(cpu, "solve_pairs", interrupted)
    with pytest.raises(KeyboardInterrupt):
        make_kernel(verbose=True)(graphs)
    assert not list(tqdm._instances)
