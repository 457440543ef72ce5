# SPDX-License-Identifier: BSD-3-Clause
"""Residues as nodes."""

import gemmi
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from structure_files import pdb_atom, write

from sklearn_mgk import Gaussian, HardCutoff, Structure, Tent, from_structures
from sklearn_mgk.graphs.structures.residues import nearest_pairs

# A chain with an insertion, a modified residue, a calcium ion and a water; 3.8 angstrom a step.
CHAIN = (
    pdb_atom("N", "ALA", 51, (0, 1.4, 0), "N")
    + pdb_atom("CA", "ALA", 51, (0, 0, 0), "C")
    + pdb_atom("CA", "GLY", 52, (3.8, 0, 0), "C")
    + pdb_atom("CA", "SER", 52, (7.6, 0, 0), "C", icode="A")
    + pdb_atom("CA", "MSE", 53, (11.4, 0, 0), "C")
    + pdb_atom("SE", "MSE", 53, (11.4, 4, 0), "SE")
    + pdb_atom("CA", "CA", 101, (14.4, 4, 0), "CA")
    + pdb_atom("O", "HOH", 201, (20, 4, 0), "O")
)
HELIX = "HELIX    1   1 ALA A   51  GLY A   52  1                                   2\n"
SHEET = "SHEET    1   A 1 SER A  52A MSE A  53  0\n"


def load(tmp_path, text, **options):
    return from_structures([write(tmp_path / "chain.pdb", text)], level="residue", **options)


def test_residues_by_alpha_carbons(tmp_path):
    batch = load(tmp_path, CHAIN)
    assert list(batch.nodes) == [
        "residue_name",
        "chain",
        "residue",
        "secondary_structure",
        "position",
    ]
    assert batch.nodes["residue_name"].tolist() == ["ALA", "GLY", "SER", "MSE"]
    assert batch.nodes["residue"].tolist() == ["A/ALA 51", "A/GLY 52", "A/SER 52A", "A/MSE 53"]
    assert batch.nodes["chain"].tolist() == ["A"] * 4
    assert batch.nodes["secondary_structure"].tolist() == ["unknown"] * 4
    np.testing.assert_allclose(batch.nodes["position"][:, 0], [0, 3.8, 7.6, 11.4])
    assert batch.edge_index.tolist() == [[0, 0, 1, 1, 2], [1, 2, 2, 3, 3]]
    np.testing.assert_allclose(batch.edges["length"], [3.8, 7.6, 3.8, 7.6, 3.8])
    assert batch.edge_weight.tolist() == [1.0] * 5


def test_residues_by_nearest_atoms(tmp_path):
    batch = load(tmp_path, CHAIN, contact="nearest", hydrogens=False)
    assert batch.nodes["residue_name"].tolist() == ["ALA", "GLY", "SER", "MSE", "CA"]
    assert batch.nodes["position"][3].tolist() == [11.4, 2.0, 0.0]
    assert batch.edge_index.tolist() == [[0, 1, 2, 3], [1, 2, 3, 4]]
    np.testing.assert_allclose(batch.edges["length"], [3.8, 3.8, 3.8, 3.0])
    assert (
        load(tmp_path, CHAIN, contact="nearest", waters=True, adjacency=HardCutoff(6)).n_nodes == 6
    )


def test_rules_weigh_residues(tmp_path):
    batch = load(tmp_path, CHAIN, adjacency=Gaussian(length_scale=4.0, truncation=1.0))
    np.testing.assert_allclose(batch.edge_weight, [np.exp(-((3.8 / 4) ** 2) / 2)] * 3)
    with pytest.raises(ValueError, match=r"residues have no radius .* give a number \[angstrom\]"):
        load(tmp_path, CHAIN, adjacency=Tent())


@pytest.mark.parametrize(
    ("records", "expected"),
    [
        (HELIX, ["helix", "helix", "coil", "coil"]),
        (SHEET, ["coil", "coil", "strand", "strand"]),
        (HELIX + SHEET, ["helix", "helix", "strand", "strand"]),
    ],
)
def test_secondary_structure_is_that_of_the_file(records, expected, tmp_path):
    text = records + CHAIN
    assert load(tmp_path, text).nodes["secondary_structure"].tolist() == expected
    structure = gemmi.read_pdb_string(text)
    structure.setup_entities()
    path = write(tmp_path / "chain.cif", structure.make_mmcif_document().as_string())
    batch = from_structures([path], level="residue")
    assert batch.nodes["secondary_structure"].tolist() == expected


def test_secondary_structure_belongs_to_a_chain(tmp_path):
    text = HELIX + CHAIN + pdb_atom("CA", "ALA", 51, (0, 7, 0), "C", chain="B")
    classes = load(tmp_path, text).nodes["secondary_structure"]
    assert classes.tolist() == ["helix", "helix", "coil", "coil", "coil"]


def test_what_has_no_alpha_carbon(tmp_path):
    text = pdb_atom("P", "A", 1, (0, 0, 0), "P") + pdb_atom("CA", "CA", 2, (3, 0, 0), "CA")
    with pytest.raises(ValueError, match="no residue has a C-alpha atom: contact='nearest'"):
        load(tmp_path, text)
    assert load(tmp_path, text, contact="nearest").n_edges == 1


def test_structures_without_residues_have_no_such_level():
    row = Structure(["C", "O"], [[0, 0, 0], [0, 0, 1.1]])
    with pytest.raises(ValueError, match="row 0: level='residue' needs the attribute 'residue'"):
        from_structures([row], level="residue")


def test_structures_in_memory_may_have_residues():
    row = Structure(
        ["C", "C", "C"],
        [[0, 0, 0], [0, 3.8, 0], [3.8, 0, 0]],
        attributes={"residue": ["1", "2", "3"], "atom_name": ["CA"] * 3},
    )
    batch = from_structures([row], level="residue", adjacency=HardCutoff(4.0))
    assert batch.edge_index.tolist() == [[0, 0], [1, 2]]
    assert list(batch.nodes) == ["residue", "position"]
    periodic = Structure(row.elements, row.positions, np.eye(3), True, row.attributes)
    with pytest.raises(ValueError, match="level='residue' knows no periodic cells"):
        from_structures([periodic], level="residue")


@given(st.integers(0, 2**32 - 1), st.integers(1, 30), st.integers(1, 8), st.floats(0.1, 5.0))
def test_nearest_atoms_by_all_pairs(seed, n_atoms, n_residues, reach):
    rng = np.random.default_rng(seed)
    residue = np.sort(rng.integers(0, n_residues, n_atoms))
    structure = Structure(["C"] * n_atoms, rng.uniform(0, 4, (n_atoms, 3)))
    pairs = nearest_pairs(structure, residue, reach)
    distances = np.linalg.norm(structure.positions[:, None] - structure.positions, axis=2)
    expected = [
        (i, j, distances[residue == i][:, residue == j].min(initial=np.inf))
        for i in range(n_residues)
        for j in range(i + 1, n_residues)
    ]
    expected = [entry for entry in expected if entry[2] <= reach]
    found = list(zip(pairs.i.tolist(), pairs.j.tolist(), strict=True))
    assert found == [entry[:2] for entry in expected]
    np.testing.assert_allclose(pairs.length, [entry[2] for entry in expected], rtol=1e-12)


def test_isolated_residues_are_named(tmp_path):
    far = pdb_atom("CA", "TRP", 99, (90, 0, 0), "C", icode="B")
    with pytest.warns(
        UserWarning, match=r"row 0 \(.*chain.pdb\): residue A/TRP 99B\. They have no"
    ):
        load(tmp_path, CHAIN + far)
