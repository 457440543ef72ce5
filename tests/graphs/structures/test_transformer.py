# SPDX-License-Identifier: BSD-3-Clause
"""The transformer in pipelines, warnings, and invariances of the graphs."""

import warnings

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.base import clone
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from structure_files import write

from sklearn_mgk import (
    AdjacencyFunction,
    CompactBell,
    Gaussian,
    HardCutoff,
    MarginalizedGraphKernel,
    Structure,
    StructuresToGraphs,
    Tent,
    from_structures,
)
from sklearn_mgk.base_kernels import KroneckerDelta, SquaredExponential

RULES = [
    Tent(),
    CompactBell(),
    Gaussian(),
    HardCutoff(3.0),
    AdjacencyFunction(lambda r, r2, d: np.exp(-d), cutoff=3.5),
]


def random_structures(n, seed=0):
    """Clusters of atoms on a grid, shaken."""
    rng = np.random.default_rng(seed)
    grid = np.stack(np.meshgrid(*[np.arange(3.0)] * 3), axis=-1).reshape(-1, 3) * 1.6
    found = []
    for _ in range(n):
        size = rng.integers(4, 9)
        places = rng.choice(len(grid), size, replace=False)
        positions = grid[places] + rng.uniform(-0.3, 0.3, (size, 3))
        found.append(Structure(rng.choice(["C", "N", "O"], size), positions))
    return found


def make_kernel():
    return MarginalizedGraphKernel(
        KroneckerDelta("element", h=0.4),
        SquaredExponential("length", length_scale=0.5),
        stopping_probability=0.1,
        normalization="cosine",
        backend="reference",
    )


def test_the_transformer_is_the_function():
    rows = random_structures(5)
    options = {"adjacency": Tent(zoom=0.8), "hydrogens": False}
    by_transformer = StructuresToGraphs(**options).fit_transform(rows)
    by_function = from_structures(rows, **options)
    for name in ("node_ptr", "edge_ptr", "edge_index", "edge_weight"):
        np.testing.assert_array_equal(getattr(by_transformer, name), getattr(by_function, name))
    assert len(by_transformer) == 5


def test_every_option_is_that_of_the_function():
    from inspect import signature

    of_function = dict(signature(from_structures).parameters)
    of_function.pop("X")
    of_class = signature(StructuresToGraphs).parameters
    assert {n: p.default for n, p in of_function.items()} == {
        n: p.default for n, p in of_class.items()
    }


def test_clone_and_parameters():
    transformer = StructuresToGraphs(adjacency=HardCutoff(4.0), level="residue", chain=["A"])
    copy = clone(transformer)
    assert copy is not transformer and copy.adjacency is not transformer.adjacency
    assert copy.get_params().keys() == transformer.get_params().keys()
    assert copy.get_params()["adjacency__cutoff"] == 4.0
    assert repr(transformer).startswith("StructuresToGraphs(adjacency=HardCutoff(cutoff=4.0)")


def test_grid_search_over_the_rule():
    rows, y = random_structures(12), np.arange(12.0)
    model = make_pipeline(
        StructuresToGraphs(adjacency=Tent()), GaussianProcessRegressor(make_kernel(), alpha=0.1)
    )
    model.set_params(gaussianprocessregressor__optimizer=None)
    grid = {
        "structurestographs__adjacency__zoom": [1.0, 1.6],
        "structurestographs__adjacency": [Tent(), Tent(2)],
    }
    search = GridSearchCV(model, grid, cv=3).fit(rows, y)
    assert len(search.cv_results_["params"]) == 4
    assert np.isfinite(search.predict(rows)).all()
    assert len(set(search.cv_results_["mean_test_score"])) == 4


def test_nothing_is_converted_in_the_constructor():
    odd = object()
    names = StructuresToGraphs().get_params(deep=False)
    transformer = StructuresToGraphs(**dict.fromkeys(names, odd))
    assert all(getattr(transformer, name) is odd for name in names)


def test_nodes_without_a_neighbor_are_named_in_one_warning(tmp_path):
    lonely = write(tmp_path / "a.xyz", "3\n\nC 0 0 0\nO 0 0 1.2\nZn 30 0 0\n")
    scattered = Structure(["He"] * 8, np.eye(8, 3) * 0 + np.arange(8)[:, None] * [9.0, 0, 0])
    with pytest.warns(UserWarning) as caught:
        batch = from_structures([lonely, scattered, *random_structures(1)])
    assert len(caught) == 1
    assert caught[0].filename == __file__
    text = str(caught[0].message)
    assert f"row 0 ({lonely}): atom 2 (Zn); row 1: atom 0 (He); atom 1 (He)" in text
    assert "atom 4 (He); and 3 more nodes. They have no edges" in text
    assert batch.sizes[:2].tolist() == [3, 8]


def test_single_atoms_are_ordinary_graphs(tmp_path):
    rows = [Structure(["He"], [[0, 0, 0]]), write(tmp_path / "ne.xyz", "1\n\nNe 1 2 3\n")]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        batch = from_structures(rows)
    assert (batch.sizes.tolist(), batch.n_edges) == ([1, 1], 0)
    K = make_kernel()(batch)
    np.testing.assert_allclose(K, [[1, 0.4], [0.4, 1]])


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: type(rule).__name__)
@given(seed=st.integers(0, 2**32 - 1))
def test_edges_by_all_pairs(rule, seed):
    """Each pair of positive weight once, i < j, in order."""
    (row,) = random_structures(1, seed)
    graph = from_structures_silently([row], rule)[0]
    radii = rule.radii(row.numbers, row.n_atoms)
    expected = []
    for i in range(row.n_atoms):
        for j in range(i + 1, row.n_atoms):
            d = np.linalg.norm(row.positions[i] - row.positions[j])
            w = rule.weights(radii[[i]], radii[[j]], np.array([d]))[0]
            if w > 0:
                expected.append((i, j, d, w))
    assert graph.edge_index.T.tolist() == [list(e[:2]) for e in expected]
    np.testing.assert_allclose(graph.edges["length"], [e[2] for e in expected], rtol=1e-12)
    np.testing.assert_allclose(graph.edge_weight, [e[3] for e in expected], rtol=1e-9)


def from_structures_silently(rows, rule):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        return from_structures(rows, adjacency=rule)


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: type(rule).__name__)
def test_kernels_see_neither_rotation_nor_order(rule):
    rows = random_structures(4, seed=3)
    rng = np.random.default_rng(1)
    rotation = np.linalg.qr(rng.normal(size=(3, 3)))[0]
    moved = []
    for row in rows:
        order = rng.permutation(row.n_atoms)
        positions = row.positions[order] @ rotation + [3.0, -40.0, 7.0]
        moved.append(Structure(row.elements[order], positions))
    K, K_moved = (make_kernel()(from_structures_silently(x, rule)) for x in (rows, moved))
    np.testing.assert_allclose(K, K_moved, rtol=1e-8)
