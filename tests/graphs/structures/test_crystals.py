# SPDX-License-Identifier: BSD-3-Clause
"""Periodic cells: neighbor shells, and kernels that do not see how large the cell is."""

import ase
import numpy as np
import pytest
from ase.build import bulk, graphene, make_supercell

from sklearn_mgk import (
    CompactBell,
    Gaussian,
    HardCutoff,
    MarginalizedGraphKernel,
    Structure,
    Tent,
    from_structures,
)
from sklearn_mgk.base_kernels import KroneckerDelta, SquaredExponential

CRYSTALS = {
    "rock salt": bulk("NaCl", "rocksalt", a=5.64),
    "fcc": bulk("Cu", "fcc", a=3.61),
    "hcp": bulk("Mg", "hcp", a=3.21, c=5.21),
    "diamond": bulk("C", "diamond", a=3.57),
    "layer": graphene(),
    "chain": ase.Atoms(
        "CO", [[0, 0, 0], [1.2, 0.3, 0]], cell=[2.7, 0, 0], pbc=[True, False, False]
    ),
}
SUPERCELLS = {
    "slab": np.diag([2, 1, 1]),
    "block": np.diag([2, 2, 1]),
    "skewed": np.array([[1, 1, 0], [-1, 2, 0], [0, 0, 1]]),
}
RULES = {
    "tent": Tent(),
    "bell": CompactBell(zoom=0.8),
    "gaussian": Gaussian(zoom=0.7),
    "hard": HardCutoff(4.3),
}


def supercells(crystal):
    """Cells of one crystal; a shift of the origin and another order of the atoms besides."""
    primitive = CRYSTALS[crystal]
    cells = [primitive]
    for matrix in SUPERCELLS.values():
        matrix = np.where(np.outer(primitive.pbc, primitive.pbc), matrix, np.eye(3, dtype=int))
        cell = make_supercell(primitive, matrix)
        cell.translate([0.37, -9.1, 0.21])
        cells.append(cell[np.random.default_rng(len(cell)).permutation(len(cell))])
    return cells


def graphs(cells, rule):
    return from_structures(cells, adjacency=rule)


def neighbors(batch):
    """Lengths of the steps that a walk can take from each node, shortest first."""
    i, j = batch.edge_index + batch.node_ptr[batch.edge_graph]
    source = np.concatenate([i, j[i != j]])
    length = np.concatenate([batch.edges["length"], batch.edges["length"][i != j]])
    return [np.sort(length[source == node]) for node in range(batch.n_nodes)]


@pytest.mark.parametrize("kernel_options", [{}, {"stopping_probability": 0.4, "min_steps": 1}])
@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("crystal", CRYSTALS)
def test_supercells_have_the_kernel_of_the_primitive_cell(crystal, rule, kernel_options):
    other = bulk("NaCl", "cesiumchloride", a=3.9)
    kernel = MarginalizedGraphKernel(
        KroneckerDelta("element", h=0.3),
        SquaredExponential("length", length_scale=0.3),
        normalization="cosine",
        backend="reference",
        cache_size=0,
        **kernel_options,
    )
    K = kernel(graphs([*supercells(crystal), other], RULES[rule]))
    np.testing.assert_allclose(K[:-1, :-1], 1.0, rtol=1e-10)
    np.testing.assert_allclose(K[-1, :-1], K[-1, 0], rtol=1e-10)
    assert K[-1, 0] < 0.999


@pytest.mark.parametrize("crystal", CRYSTALS)
def test_plain_values_grow_with_the_number_of_atoms(crystal):
    cells = supercells(crystal)
    kernel = MarginalizedGraphKernel(KroneckerDelta("element", h=0.3), backend="reference")
    K = kernel(graphs(cells, Tent()))
    n = np.array([len(cell) for cell in cells])
    np.testing.assert_allclose(K / np.outer(n, n), K[0, 0] / n[0] ** 2, rtol=1e-10)


# Numbers of neighbors by shell: fcc 12, 6, 24; rock salt 6, 12, 8; diamond 4, 12.
@pytest.mark.parametrize(
    ("crystal", "shells"),
    [
        ("fcc", [(3.61 / np.sqrt(2), 12), (3.61, 6), (3.61 * np.sqrt(1.5), 24)]),
        ("rock salt", [(2.82, 6), (2.82 * np.sqrt(2), 12), (2.82 * np.sqrt(3), 8)]),
        ("diamond", [(3.57 * np.sqrt(3) / 4, 4), (3.57 / np.sqrt(2), 12)]),
    ],
)
def test_shells_of_neighbors(crystal, shells):
    expected = np.concatenate([[length] * count for length, count in shells])
    batch = graphs(supercells(crystal), HardCutoff(expected[-1] + 0.05))
    for lengths in neighbors(batch):
        np.testing.assert_allclose(lengths, expected, rtol=1e-9)


def test_images_are_parallel_edges_and_self_loops():
    """Simple cubic, doubled along x: 0 and 1 meet at either side, and each its own images."""
    row = Structure(["Po", "Po"], [[0, 0, 0], [3, 0, 0]], np.diag([6, 3, 3]), True)
    batch = from_structures([row], adjacency=HardCutoff(3.5))
    assert batch.edge_index.tolist() == [[0] * 6 + [1] * 4, [0] * 4 + [1] * 6]
    np.testing.assert_allclose(batch.edges["length"], 3.0)
    assert batch.edge_weight.tolist() == [1.0] * 10


def test_directions_that_are_not_periodic_need_no_cell_vector():
    atoms = ase.Atoms("Cu", cell=[2.5, 0, 0], pbc=[True, False, False])
    batch = from_structures([atoms], adjacency=HardCutoff(3.0))
    assert batch.edge_index.tolist() == [[0, 0], [0, 0]]


def test_cells_of_atoms_that_are_not_periodic_are_ignored():
    atoms = ase.Atoms("CO", [[0, 0, 0], [1.1, 0, 0]], cell=[3, 3, 3], pbc=False)
    assert from_structures([atoms], adjacency=HardCutoff(3.5)).n_edges == 1


@pytest.mark.parametrize(
    ("atoms", "message"),
    [
        (ase.Atoms("Cu", pbc=True), r"periodic along \[True, True, True\], but the cell"),
        (
            ase.Atoms("Cu", cell=[[3, 0, 0], [6, 0, 0], [0, 0, 3]], pbc=True),
            "no independent vectors",
        ),
        (ase.Atoms("Cu", cell=[0.3, 3, 3], pbc=True), "atom 0 .* and atom 0 .* are 0.3 angstrom"),
        (
            ase.Atoms("Cu2", [[0, 0, 0], [3, 0, 0]], cell=[3, 3, 3], pbc=True),
            "atom 0 .* and atom 1 .* are 0 angstrom",
        ),
    ],
)
def test_cells_without_meaning(atoms, message):
    with pytest.raises(ValueError, match=message):
        from_structures([atoms])


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"cell": np.eye(2), "periodic": True}, "the cell must be three finite vectors"),
        ({"cell": np.eye(3) * np.nan, "periodic": True}, "the cell must be three finite vectors"),
        ({"periodic": True}, "no independent vectors"),
        ({"periodic": "xyz"}, "periodic must be a boolean or three, got 'xyz'"),
        ({"periodic": [True, False]}, "periodic must be a boolean or three"),
    ],
)
def test_cells_in_memory_are_checked(options, message):
    with pytest.raises(ValueError, match=message):
        Structure(["C"], [[0, 0, 0]], **options)
