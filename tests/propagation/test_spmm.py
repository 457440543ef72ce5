# SPDX-License-Identifier: BSD-3-Clause
"""Sparse times dense: against scipy and dense matrices, under every plan."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from propagation.matrices import MATRICES, power_law, star
from scipy import sparse

from sklearn_mgk import from_arrays, from_smiles
from sklearn_mgk.propagation import SpMMPlan, spmm
from sklearn_mgk.propagation.cpu import column_tiles
from sklearn_mgk.propagation.matrices import adjacency, as_rows_of
from sklearn_mgk.propagation.partition import by_metric, heavy_first, in_order, walk_density
from sklearn_mgk.propagation.plan import ENGINES
from sklearn_mgk.propagation.vectors import WIDTHS

TOLERANCE = {np.float32: 1e-5, np.float64: 1e-13}  # some roundings of the largest sums

every_matrix = pytest.mark.parametrize("name", MATRICES)
every_type = pytest.mark.parametrize("dtype", TOLERANCE)


def dense(n, n_columns, dtype=np.float64, seed=0):
    X = np.random.default_rng(seed).normal(size=(n, n_columns)).astype(dtype)
    X.flags.writeable = False
    return X


def engines(A):
    """Return the engines that take a matrix."""
    return [engine for engine in ENGINES if engine != "dual" or A.shape[0] == A.shape[1]]


def assert_product(found, A, X, dtype):
    expected = A.toarray().astype(np.float64) @ X.astype(np.float64)
    scale = abs(A.toarray()).astype(np.float64) @ abs(X.astype(np.float64))
    assert found.dtype == dtype
    assert found.shape == expected.shape
    assert (abs(found - expected) <= TOLERANCE[dtype] * scale + 1e-300).all()


@every_matrix
@every_type
@pytest.mark.parametrize("n_columns", [1, 2, 3, 31, 128, 301])
def test_products_are_those_of_dense_matrices(name, dtype, n_columns):
    A = MATRICES[name].astype(dtype)
    X, X2 = dense(A.shape[1], n_columns, dtype), dense(A.shape[0], n_columns, dtype)
    for engine in engines(A):
        plan = SpMMPlan(A, engine=engine, n_blocks=7)
        assert_product(plan.multiply(X), A, X, dtype)
        assert_product(plan.multiply(X2, transpose=True), A.T, X2, dtype)
        assert_array_equal(spmm(A, X2, engine=engine, transpose=True), spmm(A.T, X2))


@st.composite
def products(draw):
    n, m, n_columns = (draw(st.integers(1, 12)) for _ in range(3))
    # Products of smaller numbers are not representable in float32, where no relative bound holds.
    numbers = st.floats(-1e3, 1e3, width=32).map(lambda v: v if abs(v) >= 1e-20 else 0.0)
    entries = draw(
        st.lists(st.tuples(st.integers(0, n - 1), st.integers(0, m - 1), numbers), max_size=60)
    )
    rows, columns, values = zip(*entries, strict=True) if entries else ((), (), ())
    kind = draw(st.sampled_from(list(TOLERANCE)))
    A = sparse.coo_array((np.array(values, kind), (rows, columns)), shape=(n, m))
    return A, dense(m, n_columns, kind, draw(st.integers(0, 99))), draw(st.integers(1, 20))


@settings(max_examples=60)
@given(products())
def test_products_of_any_matrix(product):
    A, X, n_blocks = product
    for engine in engines(A):
        assert_product(SpMMPlan(A, engine=engine, n_blocks=n_blocks) @ X, A, X, X.dtype.type)


def test_plans_change_nothing():
    A, X = power_law(), dense(300, 40)
    expected = spmm(A, X)
    for options in (
        {"engine": "degree"},
        {"engine": "dual", "alpha": 0.0, "n_blocks": 3},
        {"engine": "dual", "alpha": 1.0, "random_state": 5, "n_blocks": 300},
    ):
        assert_array_equal(SpMMPlan(A, **options) @ X, expected)


@pytest.mark.parametrize("index", [np.int32, np.int64])
def test_index_types(index):
    A = power_law()
    A.indices, A.indptr = A.indices.astype(index), A.indptr.astype(index)
    X = dense(300, 20)
    assert_allclose(spmm(A, X), A @ X, rtol=1e-12, atol=1e-12)
    assert SpMMPlan(A)._rows.indices is A.indices or np.shares_memory(
        SpMMPlan(A)._rows.indices, A.indices
    )


def test_all_threads_work_on_large_matrices():
    A = sparse.random_array((4000, 4000), density=0.01, rng=np.random.default_rng(0)).tocsr()
    X = dense(4000, 17)
    assert_allclose(spmm(A, X), A @ X, rtol=1e-11, atol=1e-11)


@pytest.mark.parametrize("format_", ["csr", "csc", "bsr", "lil"])
def test_formats(format_):
    A, X = MATRICES["random"], dense(70, 3)
    assert_product(spmm(A.asformat(format_), X), A, X, np.float64)
    assert_product(spmm(sparse.csr_matrix(A), X), A, X, np.float64)


def test_layouts_of_the_dense_matrix():
    A, X = MATRICES["random"], dense(70, 6)
    expected = spmm(A, X)
    assert_array_equal(spmm(A, np.asfortranarray(X)), expected)
    assert_array_equal(spmm(A, X.tolist()), expected)
    assert_array_equal(spmm(A, np.repeat(X, 2, axis=1)[:, ::2]), expected)
    assert_array_equal(spmm(A, X[:, 2]), expected[:, 2])
    assert spmm(A, X[:, :0]).shape == (90, 0)


@pytest.mark.parametrize(
    ("a", "x", "expected"),
    [
        (np.float32, np.float32, np.float32),
        (np.float32, np.float64, np.float64),
        (np.float64, np.float32, np.float64),
        (np.int8, np.float32, np.float32),
        (bool, np.float64, np.float64),
        (np.float32, np.int64, np.float32),
        (np.int64, np.int32, np.float64),
    ],
)
def test_types(a, x, expected):
    A = sparse.csr_array(np.array([[0, 3], [2, 0]], a))
    X = np.array([[1, 2, 3], [4, 5, 6]], x)
    found = spmm(A, X)
    assert found.dtype == expected
    assert_array_equal(found, A.astype(float) @ X.astype(float))


def test_output():
    A, X = MATRICES["random"], dense(70, 6)
    out = np.full((90, 6), np.nan)
    assert spmm(A, X, out=out) is out
    assert_product(out, A, X, np.float64)
    for bad in (np.empty((90, 5)), np.empty((90, 6), np.float32), np.empty((6, 90)).T):
        with pytest.raises(
            ValueError, match=r"out must be a C-contiguous array of shape \(90, 6\)"
        ):
            spmm(A, X, out=bad)


def test_what_is_not_a_number_stays_so():
    A = sparse.csr_array([[1.0, 0.0], [2.0, 1.0]])
    found = spmm(A, np.array([[1.0], [np.nan]]))
    assert found[0, 0] == 1
    assert np.isnan(found[1, 0])


def test_graphs_stand_for_their_block_diagonal_matrix():
    batch = from_smiles(["CCO", "C", "c1ccccc1"])
    A = adjacency(batch).toarray()
    assert_array_equal(A, A.T)
    blocks = [np.zeros((g.n_nodes, g.n_nodes)) for g in batch]
    for g, block in zip(batch, blocks, strict=True):
        for (i, j), w in zip(g.edge_index.T, g.edge_weight, strict=True):
            block[i, j] = block[j, i] = w
    assert_array_equal(A, sparse.block_diag(blocks).toarray())
    X = dense(batch.n_nodes, 4)
    assert_allclose(spmm(batch, X), A @ X, atol=1e-14)
    assert_allclose(spmm(batch[0], X[:3]), A[:3, :3] @ X[:3], atol=1e-14)


def test_parallel_edges_add_up_and_loops_count_once():
    batch = from_arrays(
        [{"n_nodes": 2, "edge_index": [[0, 1, 1], [1, 0, 1]], "edge_weight": [1, 2, 5]}]
    )
    assert adjacency(batch).toarray().tolist() == [[0, 3], [3, 5]]


@pytest.mark.parametrize("itemsize", [4, 8])
@pytest.mark.parametrize("n", [0, 1, 5, 16, 127, 1024])
def test_tiles_cover_all_columns(n, itemsize):
    tiles = column_tiles(n, itemsize)
    assert [c for first, width in tiles for c in range(first, first + width)] == list(range(n))
    assert set(tiles[:, 1].tolist()) <= set(WIDTHS)


@pytest.mark.parametrize("n_blocks", [1, 2, 17, 1000])
def test_blocks_hold_every_row_once(n_blocks):
    rows = as_rows_of(power_law())
    degree = rows.lengths.astype(float)
    for part in (
        in_order(rows, n_blocks),
        heavy_first(rows, n_blocks),
        by_metric(rows, degree, n_blocks),
    ):
        order = part.order if len(part.order) else np.arange(300)
        assert sorted(order) == list(range(300))
        assert part.blocks[0] == 0
        assert part.blocks[-1] == 300
        assert (np.diff(part.blocks) > 0).all()
        assert len(part.dense) == len(part.blocks) - 1 <= n_blocks


def test_blocks_are_dense_from_the_threshold_on():
    A = star()
    plan = SpMMPlan(A, engine="degree", n_blocks=20)
    degree = np.diff(A.indptr)
    assert plan.summary.threshold == pytest.approx(degree.mean() + degree.std() / 2)
    assert plan.summary.n_dense == 1


def test_light_rows_keep_their_order():
    rows = as_rows_of(power_law())
    part = heavy_first(rows, 10)
    lengths = rows.lengths[part.order]
    n_heavy = int((lengths >= part.threshold).sum())
    assert 0 < n_heavy < 100
    assert (np.diff(lengths[:n_heavy]) <= 0).all()
    assert (np.diff(part.order[n_heavy:]) > 0).all()


def test_the_plan_reports_balance():
    summary = SpMMPlan(power_law(3000), engine="dual", n_blocks=50).summary
    assert summary.engine == "dual"
    assert 1 <= summary.imbalance < summary.imbalance_without
    assert summary.seconds > 0
    assert SpMMPlan(power_law()).summary.engine == "rows"


def test_density_of_known_neighbourhoods():
    clique = sparse.csr_array(np.ones((4, 4)) - np.eye(4))
    n = 200
    path = sparse.diags_array([np.ones(n - 1)] * 2, offsets=[-1, 1]).tocsr()
    of_clique, of_path = (walk_density(as_rows_of(A), 500, 4, 0) for A in (clique, path))
    # A walk on a clique of 4: the second step returns with probability 1/3, and so on.
    assert_allclose(of_clique, exact_density(clique.toarray(), 4), atol=0.03)
    assert_allclose(of_path[:20], exact_density(path.toarray(), 4)[:20], atol=0.05)
    lonely = walk_density(as_rows_of(sparse.csr_array((3, 3))), 2, 4, 0)
    assert lonely.tolist() == [1, 1, 1]


def exact_density(A, length):
    """Expected share of steps to nodes of the walk, over all walks."""

    def returns(walk):
        if len(walk) == length + 1:
            return 0.0
        there = np.flatnonzero(A[walk[-1]])
        return sum((v in walk) + returns([*walk, v]) for v in there) / len(there)

    few = range(min(len(A), 20))
    return np.array([returns([v]) / length for v in few] + [0] * (len(A) - len(few)))


def test_walks_depend_on_the_seed_only():
    rows = as_rows_of(power_law(20_000))
    first, again, other = (walk_density(rows, 4, 4, seed) for seed in (1, 1, 2))
    assert_array_equal(first, again)
    assert (first != other).any()


BAD = {
    "array": (np.eye(2), np.eye(2), {}, TypeError, r"got ndarray: for a dense matrix pass scipy"),
    "complex": (sparse.eye_array(2) * 1j, np.eye(2), {}, TypeError, "A must hold real numbers"),
    "objects": (sparse.eye_array(2), [["a"], ["b"]], {}, TypeError, "X must hold real numbers"),
    "sparse X": (sparse.eye_array(2), sparse.eye_array(2), {}, TypeError, "X is sparse"),
    "rows": (sparse.eye_array(2), np.eye(3), {}, ValueError, r"shape \(2, n_columns\).*\(3, 3\)"),
    "3-d": (sparse.eye_array(2), np.ones((2, 2, 2)), {}, ValueError, r"got \(2, 2, 2\)"),
    "engine": (sparse.eye_array(2), np.eye(2), {"engine": "fast"}, ValueError, "engine='fast'"),
    "backend": (sparse.eye_array(2), np.eye(2), {"backend": "tpu"}, ValueError, "backend='tpu'"),
    "dual": (MATRICES["random"], dense(70, 1), {"engine": "dual"}, ValueError, "square matrix"),
}


@pytest.mark.parametrize("name", BAD)
def test_bad_input(name):
    A, X, options, error, message = BAD[name]
    with pytest.raises(error, match=message):
        spmm(A, X, **options)


@pytest.mark.parametrize(
    "options",
    [
        {"alpha": 1.5},
        {"alpha": "half"},
        {"n_walks": 0},
        {"walk_length": 2.5},
        {"n_blocks": 0},
        {"random_state": -1},
    ],
    ids=str,
)
def test_bad_options(options):
    (name,) = options
    with pytest.raises(ValueError, match=f"{name}="):
        SpMMPlan(star(), engine="dual", **options)


def test_indices_out_of_range_are_found_before_they_are_read():
    A = MATRICES["random"].copy()
    A.indices[5] = 70
    with pytest.raises(ValueError, match=r"row \d+ of A has the column index 70, but A has 70"):
        spmm(A, dense(70, 2))
    A.indices[5] = -1
    with pytest.raises(ValueError, match="column index -1"):
        spmm(A, dense(70, 2))
    A = MATRICES["random"].copy()
    A.indptr[3] = 10**6
    with pytest.raises(ValueError, match="no valid csr matrix"):
        spmm(A, dense(70, 2))
