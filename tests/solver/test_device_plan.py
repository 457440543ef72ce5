# SPDX-License-Identifier: BSD-3-Clause
"""What the CUDA solver is given: layouts and launches, which need no device."""

import itertools

import networkx
import numpy as np
import pytest
from cases import GRAPH_SETS, make_kernel, random_graph
from hypothesis import example, given
from hypothesis import strategies as st
from oracles import as_batch

from sklearn_mgk.plan import make_problem
from sklearn_mgk.solver import device_plan, device_strips
from sklearn_mgk.solver.device_launch import RESERVED, WANTED, WARP
from sklearn_mgk.solver.device_layout import (
    ROUND,
    arcs,
    bonds,
    entry_records,
    sort_by,
    sort_entries,
)
from sklearn_mgk.solver.device_plan import BlockGraphs, fit_for_grid, padded, plan_blocks
from sklearn_mgk.solver.device_strips import (
    STRIP_WARPS,
    orient_for_strips,
    plan_strips,
    rank_for_strips,
    strips_a_block,
)
from sklearn_mgk.solver.layout import colour_order, plain_order
from sklearn_mgk.solver.topology import topology

LIMIT = 228 << 10
PROCESSORS = 4
LARGE_DEVICE = 132
SLOTS = (4, 8)
THREADS = {"GLOBAL": 640, "SHARED_P": 768, "SHARED": 1024}
sizes = st.lists(st.integers(1, 200), min_size=1, max_size=12)


def adjacency(graph, n, source, target, weight):
    """Dense matrix of entries given one by one."""
    matrix = np.zeros((n, n))
    np.add.at(matrix, (source, target), weight)
    return matrix


def expected(batch, g):
    graph = batch[g]
    i, j = graph.edge_index
    matrix = adjacency(g, graph.n_nodes, i, j, graph.edge_weight)
    return matrix + matrix.T - np.diag(matrix.diagonal())


@pytest.fixture(params=["sparse", "trees and rings", "loops and parallel edges", "dense"])
def problem(request):
    return make_problem(make_kernel("delta", "smooth"), as_batch(GRAPH_SETS[request.param]))


@pytest.mark.parametrize("has_key", [False, True])
def test_entries_are_the_adjacency_matrices(problem, has_key):
    batch, edges = problem.batch, topology(problem.batch)
    key = batch.edges["length"] if has_key else None
    order = colour_order(batch)
    entries = sort_entries(batch, edges, order, key)
    records = entry_records(entries, np.arange(batch.n_edges), np.dtype("float32"))
    assert records.dtype.itemsize == 16
    degree = np.diff(entries.row_ptr)
    for g in range(len(batch)):
        rows = slice(batch.node_ptr[g], batch.node_ptr[g + 1])
        n, n_red, local = batch.sizes[g], int(order.n_red[g]), entries.local[rows]
        rounds = -(degree[rows] // -ROUND)
        for colour in (rounds[:n_red], rounds[n_red:]):
            assert (np.diff(colour) <= 0).all()
        own = slice(entries.row_ptr[rows.start], entries.row_ptr[rows.stop])
        source = np.repeat(local, degree[rows])
        target = local[records["column"][own]]
        found = adjacency(g, n, source, target, records["weight"][own])
        np.testing.assert_allclose(found, expected(batch, g), rtol=1e-6)
        if has_key:
            for lo, hi in zip(entries.row_ptr[rows], entries.row_ptr[1:][rows], strict=True):
                assert (np.diff(key[entries.edge[lo:hi]]) >= 0).all()


@given(
    columns=st.integers(1, 9).flatmap(
        lambda n: st.lists(st.lists(st.integers(0, 3), min_size=n, max_size=n), min_size=1)
    ),
    factor=st.sampled_from([1, 2**40]),
)
def test_one_number_sorts_as_several_do(columns, factor):
    # Four factors of 2^40 are more than an integer holds.
    columns = [factor * np.array(column) for column in columns]
    np.testing.assert_array_equal(sort_by(*columns), np.lexsort(columns[::-1]))


@given(n=st.integers(1, 12), p=st.floats(0.05, 0.5), seed=st.integers(0, 999))
def test_neighbours_have_two_colours_where_that_is_possible(n, p, seed):
    batch = as_batch([random_graph(n, p, seed + k, loops=k == 2) for k in range(3)])
    order = colour_order(batch)
    for g in range(len(batch)):
        graph, own = batch[g], slice(*batch.node_ptr[g : g + 2])
        plain = networkx.Graph(graph.edge_index.T.tolist())
        is_red = order.position[own] < order.n_red[g]
        if networkx.is_bipartite(plain):
            i, j = graph.edge_index
            assert (is_red[i] != is_red[j]).all()
            assert 2 * order.n_red[g] >= n
        else:
            assert is_red.all()


def test_arcs_are_the_adjacency_matrices(problem):
    batch, edges = problem.batch, topology(problem.batch)
    order = colour_order(batch)
    entries = sort_entries(batch, edges, order, None)
    codes = problem.edge.labels.codes
    form = arcs(edges, order, entries, codes, np.dtype("float64"))
    for g in range(len(batch)):
        local, source, code, rows = order.local[batch.node_ptr[g] :], -1, -1, []
        for k in range(form.edge_ptr[g], form.edge_ptr[g + 1]):
            arc = form.edges[k]
            source = arc["source"] if arc["source"] >= 0 else source
            code = arc["code"] if arc["code"] >= 0 else code
            assert (source < form.n_red[g]) == (k < form.edge_half[g])
            rows.append((local[source], local[arc["target"]], arc["weight"], code))
        i, j, weight, label = np.array(rows).reshape(-1, 4).T
        found = adjacency(g, batch.sizes[g], i.astype(int), j.astype(int), weight)
        np.testing.assert_allclose(found, expected(batch, g))
        own = np.flatnonzero(batch.edge_graph == g)
        assert set(label) <= set(codes[own])


def test_bonds_are_the_edges(problem):
    batch, edges = problem.batch, topology(problem.batch)
    order, length = plain_order(batch), batch.edges["length"]
    entries = sort_entries(batch, edges, order, length)
    form = bonds(problem, order, entries, length[:, None], length)
    for g in range(len(batch)):
        own = form.edges[form.edge_ptr[g] : form.edge_ptr[g + 1]]
        matrix = adjacency(g, batch.sizes[g], own["i"], own["j"], own["weight"])
        # A loop has half its weight, and both of its directions are counted.
        np.testing.assert_allclose(matrix + matrix.T, expected(batch, g))
        assert (np.diff(own["features"][:, 0]) >= 0).all()


def all_pairs(n):
    return np.stack(np.triu_indices(n))


@given(sizes=sizes, n_vectors=st.sampled_from([5, 6]), itemsize=st.sampled_from([4, 8]))
def test_each_pair_is_in_one_block_launch_that_has_room(sizes, n_vectors, itemsize):
    size = np.array(sizes)
    graphs = BlockGraphs(size, 3 * size, size % 2 == 0)
    pairs = all_pairs(len(size))
    plan = plan_blocks(np, graphs, pairs, n_vectors, itemsize, LIMIT, THREADS, PROCESSORS)
    assert sorted(plan.order.tolist()) == list(range(pairs.shape[1]))
    assert [launch.begin for launch in plan.launches[1:]] == [x.end for x in plan.launches[:-1]]
    back = np.where(plan.swapped, plan.pairs[::-1], plan.pairs)
    np.testing.assert_array_equal(back, pairs[:, plan.order])
    for launch in plan.launches:
        own = plan.pairs[:, launch.begin : launch.end]
        area = size[own[0]] * padded(size[own[1]])
        inside = {"SHARED": n_vectors, "SHARED_P": 1, "GLOBAL": 0}[launch.memory]
        assert (area * inside * itemsize <= launch.shared_bytes).all()
        assert (area * (n_vectors - inside) <= launch.size).all()
        assert launch.shared_bytes <= LIMIT - RESERVED
        assert launch.threads % WARP == 0
        assert WARP <= launch.threads <= min(THREADS[launch.memory], device_plan.MAX_THREADS)
        if launch.together:
            assert (launch.memory, launch.threads) == ("GLOBAL", device_plan.GRID_THREADS)


def grid_share(size, n_pairs, degree=20):
    """Share of equal pairs that the grid takes."""
    graphs = BlockGraphs(np.array([size]), np.array([degree * size]), np.array([False]))
    pairs = np.zeros((2, n_pairs), np.int64)
    return fit_for_grid(np, graphs, pairs, LARGE_DEVICE).mean()


def test_the_grid_takes_what_would_leave_multiprocessors_idle():
    assert grid_share(5000, 10_000) == 1  # too large for a block, however many there are
    assert grid_share(300, 1) == 1
    assert grid_share(300, 10 * LARGE_DEVICE) == 0
    assert grid_share(30, 1, degree=3) == 0  # barriers would cost more
    sizes = np.array([600, *[40] * 2000])
    graphs = BlockGraphs(sizes, 8 * sizes, sizes < 0)
    pairs = np.stack([np.arange(len(sizes))] * 2)
    assert np.flatnonzero(fit_for_grid(np, graphs, pairs, LARGE_DEVICE)).tolist() == [0]


def test_rows_of_the_grid_are_enough_for_all_blocks():
    sizes = np.array([150, 30_000])
    graphs = BlockGraphs(sizes, 10 * sizes, np.array([False, False]))
    pairs = np.array([[0, 1], [1, 0]])
    plan = plan_blocks(np, graphs, pairs, 6, 4, LIMIT, THREADS, LARGE_DEVICE)
    assert plan.launches[0].together
    assert len(plan.launches) == 1
    np.testing.assert_array_equal(plan.pairs, [[1, 1], [0, 0]])


@pytest.mark.parametrize(("size", "slabs"), [(1000, 2), (10_000, 1), (20_000, 0)])
def test_the_grid_stages_as_many_slabs_as_there_is_room_for(size, slabs):
    graphs = BlockGraphs(np.array([size]), np.array([20 * size]), np.array([False]), 32)
    pairs = np.zeros((2, 1), np.int64)
    (launch,) = plan_blocks(np, graphs, pairs, 5, 4, LIMIT, THREADS, LARGE_DEVICE).launches
    assert launch.together
    assert launch.shared_bytes == 16 * (slabs * size + 1)
    copied = 4 * launch.size - 4 * 5 * size * padded(size)
    # Groups of columns of equal degree need no more than their entries, in whole rounds.
    assert copied > 32 * 20 * padded(size) + 4 * (size // WARP + 2)


@given(
    sizes=sizes,
    seed=st.integers(0, 99),
    wanted=st.sampled_from(WANTED),
    itemsize=st.sampled_from([4, 8]),
)
@example([60, 10], 0, "VALUES", 8)  # four strips of one warp would not fit into a block
def test_each_pair_is_in_one_strip_that_has_room(sizes, seed, wanted, itemsize):
    rng, size = np.random.default_rng(seed), np.array(sizes)
    most = rng.integers(1, 12, len(size))
    n_red = np.where(rng.random(len(size)) < 0.5, size, -(-size // 2))
    ranked = rank_for_strips(size, most, n_red, SLOTS)
    pairs = all_pairs(len(size))
    oriented, swapped, fits = orient_for_strips(np, ranked, pairs, itemsize, LIMIT)
    small = (size <= WARP) & (most <= SLOTS[-1])
    assert fits[small[pairs].all(axis=0)].all()
    if not fits.any():
        return
    plan = plan_strips(np, ranked, oriented[:, fits], swapped[fits], SLOTS, itemsize, wanted)
    assert sorted(plan.order.tolist()) == list(range(fits.sum()))
    for launch, begin in zip(plan.launches, plan.strip_begin, strict=True):
        assert (begin[0], begin[-1]) == (launch.begin, launch.end)
        assert launch.shared_bytes <= LIMIT - RESERVED
        for lo, hi in itertools.pairwise(begin):
            rows, lanes = plan.pairs[:, lo:hi]
            assert hi > lo
            assert (rows == rows[0]).all()
            kept = WANTED.index(wanted) * size[rows[0]] * launch.warps * WARP
            assert kept <= launch.size / strips_a_block(launch.warps)
            numbers = 2 * (size + n_red)[rows[0]] * launch.warps * WARP
            assert itemsize * numbers < launch.shared_bytes / strips_a_block(launch.warps)
            assert size[lanes].sum() <= launch.warps * WARP
            assert hi == lo + 1 or launch.warps == 1
            assert most[lanes].max() <= launch.slots


def test_large_graphs_and_many_entries_take_no_strips():
    size, most = np.array([10, 200, 20, 10]), np.array([3, 3, 99, 3])
    ranked = rank_for_strips(size, most, size, SLOTS)
    assert ranked.kind.tolist()[1:3] == [-1, -1]
    assert not orient_for_strips(np, ranked, np.array([[1], [0]]), 4, LIMIT)[2].any()
    assert max(STRIP_WARPS) * WARP < 200


def test_too_many_entries_are_refused(monkeypatch):
    monkeypatch.setattr("sklearn_mgk.solver.device_layout.MAX_ENTRIES", 3)
    batch = as_batch([random_graph(6, 0.9, 1)])
    edges = topology(batch)
    with pytest.raises(ValueError, match="give fewer graphs at a time"):
        sort_entries(batch, edges, plain_order(batch), None)


def test_shared_memory_of_a_strip():
    # Vectors, the starts, one partial sum, the windows of 32 rounds of entries.
    assert device_strips.strip_bytes(1, 48, 4) == (48 * 32 + 64) * 4 + 8 + 2 * 32 * 4
    assert max(device_strips.STRIP_HEIGHTS) == 4 * device_strips.STRIP_ROWS
