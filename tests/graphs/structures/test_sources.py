# SPDX-License-Identifier: BSD-3-Clause
"""Every source against columns written by hand."""

import pickle

import ase
import gemmi
import numpy as np
import pandas as pd
import pytest
from rdkit import Chem
from rdkit.Chem.AllChem import EmbedMolecule, EmbedMultipleConfs
from rdkit.Geometry import Point3D
from structure_files import write

from sklearn_mgk import HardCutoff, Structure, from_structures, read_structures

WATER = [[0.0, 0.0, 0.12], [0.0, 0.76, -0.48], [0.0, -0.76, -0.48]]
LENGTHS = [np.hypot(0.76, 0.60)] * 2 + [1.52]

XYZ = """3
water, at rest
O  0.0  0.00  0.12
H  0.0  0.76 -0.48
H  0.0 -0.76 -0.48
"""
XYZ_NUMBERS = """ 3

8   0.0   0.00   0.12  -0.8
1   0.0   0.76  -0.48   0.4
D   0.0  -7.6e-1 -0.48


"""
EXTENDED_XYZ = """3
Properties=species:S:1:pos:R:3:charge:R:1 energy=-76.4 pbc="F F F" Lattice="9 0 0 0 9 0 0 0 9"
o  0.0  0.00  0.12 -0.8
h  0.0  0.76 -0.48  0.4
H  0.0 -0.76 -0.48  0.4
"""
MOL = """water
  by hand           3D

  3  2  0  0  0  0  0  0  0  0999 V2000
    0.0000    0.0000    0.1200 O   0  0
    0.0000    0.7600   -0.4800 H   0  0
    0.0000   -0.7600   -0.4800 H   0  0
  1  2  1  0
  1  3  1  0
M  END
"""
PDB = """\
HETATM    1  O   HOH A   1       0.000   0.000   0.120  1.00 10.00           O
HETATM    2  H1  HOH A   1       0.000   0.760  -0.480  1.00 10.00           H
HETATM    3  H2  HOH A   1       0.000  -0.760  -0.480  1.00 10.00           D
END
"""
MMCIF = """data_water
loop_
_atom_site.group_PDB
_atom_site.id
_atom_site.type_symbol
_atom_site.label_atom_id
_atom_site.label_alt_id
_atom_site.label_comp_id
_atom_site.label_asym_id
_atom_site.label_seq_id
_atom_site.Cartn_x
_atom_site.Cartn_y
_atom_site.Cartn_z
_atom_site.occupancy
_atom_site.B_iso_or_equiv
HETATM 1 O O  . HOH A . 0.0  0.00  0.12 1.0 10.0
HETATM 2 H H1 . HOH A . 0.0  0.76 -0.48 1.0 10.0
HETATM 3 H H2 . HOH A . 0.0 -0.76 -0.48 1.0 10.0
"""
FILES = {
    "water.xyz": XYZ,
    "water.2.XYZ": XYZ_NUMBERS,
    "extended.xyz": EXTENDED_XYZ,
    "water.xyz.gz": XYZ,
    "windows.xyz": XYZ.replace("\n", "\r\n"),
    "water.mol": MOL,
    "water.sdf": MOL + "> <name>\nwater\n\n$$$$\n",
    "untitled.sdf": MOL.replace("water", "", 1) + "$$$$\n",
    "water.sdf.gz": MOL,
    "water.pdb": PDB,
    "water.ent.gz": PDB,
    "windows.pdb": PDB.replace("\n", "\r\n"),
    "water.cif": MMCIF,
    "water.mmcif.gz": MMCIF,
    "blocks.cif": "data_nothing\n_cell.length_a 3\n" + MMCIF,
}


def check_water(batch, graphs=1):
    assert len(batch) == graphs
    for graph in batch:
        assert graph.nodes["element"].tolist() == ["O", "H", "H"]
        assert graph.nodes["atomic_number"].tolist() == [8, 1, 1]
        np.testing.assert_allclose(graph.nodes["position"], WATER, rtol=1e-12)
        assert graph.edge_index.tolist() == [[0, 0, 1], [1, 2, 2]]
        np.testing.assert_allclose(graph.edges["length"], LENGTHS, rtol=1e-12)
        assert graph.edge_weight.tolist() == [1.0, 1.0, 1.0]


def molecule(smiles, positions):
    """RDKit molecule whose atoms, hydrogens included, stand at the positions."""
    mol = Chem.AddHs(Chem.MolFromSmiles(smiles))
    conformer = Chem.Conformer(mol.GetNumAtoms())
    for i, position in enumerate(positions):
        conformer.SetAtomPosition(i, Point3D(*position))
    conformer.Set3D(True)
    mol.AddConformer(conformer, assignId=True)
    return mol


def objects():
    return {
        "structure": Structure(["O", "H", "H"], WATER),
        "numbers": Structure([8, 1, 1], np.array(WATER)),
        "ase": ase.Atoms("OH2", WATER),
        "rdkit": molecule("O", WATER),
        "gemmi": gemmi.read_pdb_string(PDB),
    }


@pytest.mark.parametrize("name", FILES)
def test_files(name, tmp_path):
    path = write(tmp_path / name, FILES[name])
    check_water(from_structures([path], waters=True, adjacency=HardCutoff(2.0)))
    check_water(from_structures([str(path)], waters=True, adjacency=HardCutoff(2.0)))


@pytest.mark.parametrize("name", objects())
def test_objects(name):
    check_water(from_structures([objects()[name]], waters=True, adjacency=HardCutoff(2.0)))


def test_mixed_rows_in_any_container(tmp_path):
    rows = [*objects().values(), write(tmp_path / "water.pdb", PDB)]
    column = np.empty((len(rows), 1), dtype=object)
    column[:, 0] = rows
    for X in (rows, tuple(rows), column, pd.Series(rows), pd.DataFrame({"structure": rows})):
        check_water(from_structures(X, waters=True, adjacency=HardCutoff(2.0)), len(rows))


def test_attributes_that_some_source_lacks_matter_only_when_read():
    batch = from_structures([Structure(["O", "H", "H"], WATER), molecule("O", WATER)])
    assert list(batch.nodes) == ["element", "atomic_number", "position"]
    with pytest.raises(ValueError, match="'charge' cannot be used: the value of graph 0, node 0"):
        batch.read("node", "charge")


def test_charges_of_molecules(tmp_path):
    ammonium = Chem.AddHs(Chem.MolFromSmiles("[NH4+]"))
    EmbedMolecule(ammonium, randomSeed=1)
    path = write(tmp_path / "ammonium.mol", Chem.MolToMolBlock(ammonium))
    for row in (ammonium, path):
        assert from_structures([row]).nodes["charge"].tolist() == [1, 0, 0, 0, 0]


def test_invalid_valences_are_no_obstacle(tmp_path):
    path = write(tmp_path / "odd.mol", MOL.replace("  1  2  1  0", "  1  2  3  0"))
    check_water(from_structures([path], adjacency=HardCutoff(2.0)))


def test_frames_are_rows(tmp_path):
    path = write(tmp_path / "two.xyz.gz", XYZ + "1\n\nHe 1 2 3\n\n")
    with pytest.raises(ValueError, match=r"two.xyz.gz\): it holds 2 frames, .* read_structures"):
        from_structures([path])
    frames = read_structures(path)
    assert [frame.name for frame in frames] == [f"{path}, frame 1", f"{path}, frame 2"]
    batch = from_structures(frames)
    assert batch.nodes["element"].tolist() == ["O", "H", "H", "He"]
    assert batch.nodes["position"][3].tolist() == [1.0, 2.0, 3.0]
    assert batch.node_ptr.tolist() == [0, 3, 4]


def test_records_are_rows(tmp_path):
    second = MOL.replace("water", "").replace(" O ", " S ").replace("0.1200", "0.5200")
    path = write(tmp_path / "two.sdf", f"{MOL}> <n>\n1\n\n$$$$\n{second}$$$$\n\n")
    with pytest.raises(ValueError, match="it holds 2 records"):
        from_structures([path])
    batch = from_structures(read_structures(path))
    assert batch.nodes["element"].tolist() == ["O", "H", "H", "S", "H", "H"]
    assert batch.nodes["position"][[0, 3], 2].tolist() == [0.12, 0.52]


def test_conformers_are_versions_of_a_molecule():
    mol = Chem.AddHs(Chem.MolFromSmiles("CCO"))
    EmbedMultipleConfs(mol, 3, randomSeed=7)
    for number, conformer in enumerate(mol.GetConformers(), 1):
        positions = from_structures([mol], model=number).nodes["position"]
        np.testing.assert_array_equal(positions, conformer.GetPositions())
    found = read_structures(mol)
    assert [one.name for one in found] == ["conformer 1", "conformer 2", "conformer 3"]
    np.testing.assert_array_equal(found[2].positions, positions)
    with pytest.raises(ValueError, match="row 0: model=4, but the number of conformers is 3"):
        from_structures([mol], model=4)


def test_hydrogens_are_dropped_on_request(tmp_path):
    rows = [*objects().values(), *(write(tmp_path / name, FILES[name]) for name in FILES)]
    batch = from_structures(rows, waters=True, hydrogens=False)
    assert batch.nodes["element"].tolist() == ["O"] * len(rows)
    assert batch.n_edges == 0


def test_periodic_atoms_of_extended_xyz(tmp_path):
    text = '2\nLattice="4 0 0 0 5 0 0 0 6" pbc="T F T"\nCu 0 0 0\nO 1 0 0\n'
    row = write(tmp_path / "oxide.xyz", text)
    atoms = ase.Atoms("CuO", [[0, 0, 0], [1, 0, 0]], cell=[4, 5, 6], pbc=[True, False, True])
    for batch in (from_structures([x], adjacency=HardCutoff(4.5)) for x in (row, atoms)):
        assert batch.edge_index.tolist() == [[0, 0, 0, 0, 1, 1], [0, 0, 1, 1, 1, 1]]
        np.testing.assert_allclose(batch.edges["length"], [4, 4, 1, 3, 4, 4])
    (frame,) = read_structures(row)
    assert frame.periodic.tolist() == [True, False, True]
    default = text.replace(' pbc="T F T"', "")
    (frame,) = read_structures(write(tmp_path / "bulk.xyz", default))
    assert frame.periodic.all()
    assert frame.cell.tolist() == np.diag([4, 5, 6]).tolist()


def test_structures_keep_their_attributes():
    row = Structure(["C", "O"], [[0, 0, 0], [0, 0, 1.1]], attributes={"q": [0.1, -0.1]})
    assert from_structures([row]).nodes["q"].tolist() == [0.1, -0.1]
    chosen = row.select(np.array([False, True]))
    assert (chosen.elements.tolist(), chosen.attributes["q"].tolist()) == (["O"], [-0.1])
    assert repr(row) == "Structure(n_atoms=2, formula='CO')"
    assert repr(Structure(["Na", "H", "H"], np.eye(3))) == "Structure(n_atoms=3, formula='H2Na')"
    copy = pickle.loads(pickle.dumps(row))
    assert copy.positions.tolist() == row.positions.tolist()
