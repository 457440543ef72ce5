# SPDX-License-Identifier: BSD-3-Clause
"""What is no structure: errors that say which row, what is wrong and what to do."""

import gzip

import numpy as np
import pytest
from rdkit import Chem
from rdkit.Chem.AllChem import Compute2DCoords
from structure_files import pdb_atom, write

from sklearn_mgk import (
    HardCutoff,
    Structure,
    StructuresToGraphs,
    Tent,
    from_structures,
    read_structures,
)

GLYCINE = pdb_atom("N", "GLY", -3, (0, 0, 0), "N") + pdb_atom("CA", "GLY", -3, (1.5, 0, 0), "C")
NOISE = np.random.default_rng(0).bytes(3000).decode("latin-1")

# Name of the file, its text, and what the error says of it.
BAD_FILES = [
    ("words.pdb", "hello world\n", "there are no atoms in it: it is no structure file"),
    ("noise.pdb", NOISE, "there are no atoms in it"),
    ("empty.ent", "", "there are no atoms in it"),
    ("nan.pdb", GLYCINE.replace("   1.500", "     nan"), "line 2 has no three coordinates"),
    ("stars.pdb", GLYCINE.replace("   1.500", "********"), r"line 2 has no three .* \*\*\*\*"),
    ("cut.pdb", GLYCINE[:120], "line 2 has no three coordinates in columns 31 to 54"),
    ("words.cif", "hello world\n", "it is not a CIF file .*expected block header"),
    ("noise.mmcif", NOISE, "it is not a CIF file"),
    ("empty.cif", "data_x\n_cell.length_a 3\n", "no data block has atoms with Cartesian"),
    (
        "crystal.cif",
        "data_x\nloop_\n_atom_site_label\n_atom_site_fract_x\nC1 0.1\n",
        "read a crystal's CIF file with ase.io.read",
    ),
    ("empty.xyz", "\n\n", "the file has no structure in it"),
    ("words.xyz", "hello world\n", "line 1 should be the number of atoms .* 'hello world'"),
    ("none.xyz", "0\n\n", "line 1 should be the number of atoms of a frame, at least 1"),
    ("cut.xyz", "3\n\nC 0 0 0\nO 1 1 1\n", "line 1 announces 3 atoms, but only 2 lines"),
    ("second.xyz", "1\n\nC 0 0 0\n2\n\nC 0 0 0\n", "line 4 announces 2 atoms, but only 1 lines"),
    ("word.xyz", "2\n\nC 0 0 0\nO 1 one 1\n", "line 4 should be an element .* 'O 1 one 1'"),
    ("short.xyz", "2\n\nC 0 0 0\nO 1 1\n", "line 4 should be an element and three coordinates"),
    ("nan.xyz", "2\n\nC 0 0 0\nO 1 nan 1\n", r"atom 1 \(O\) has the position \[1.0, nan, 1.0\]"),
    ("inf.xyz", "1\n\nC 0 0 -inf\n", r"atom 0 \(C\) has the position \[0.0, 0.0, -inf\]"),
    ("element.xyz", "2\n\nC 0 0 0\nQq 1 1 1\n", "frame of line 1: atom 1 has the element 'Qq'"),
    ("dummy.xyz", "2\n\nC 0 0 0\nX 1 1 1\n", r"atom 1 \(X\) has no known element"),
    ("cell.xyz", '1\nLattice="3 0 0 0 3 0"\nC 0 0 0\n', "is no lattice: nine numbers"),
    ("pbc.xyz", '1\nLattice="3 0 0 0 3 0 0 0 3" pbc="T T maybe"\nC 0 0 0\n', "is no lattice"),
    ("columns.xyz", "1\nProperties=pos:R:3:species:S:1\n0 0 0 C\n", "must come first: read the"),
    ("words.sdf", "hello world\n", "record 1 is not a MOL block"),
    ("empty.sdf", "", "the file has no structure in it"),
    ("words.mol", "a\nb\nc\n  1  0\n", "record 1 is not a MOL block"),
    ("words.txt", GLYCINE, r"the file name does not end in \.pdb, .* rename it"),
    ("words", GLYCINE, "the file name does not end in"),
    ("packed.gz", GLYCINE, "the file name does not end in"),
    (
        "twice.pdb",
        GLYCINE + GLYCINE,
        r"atom 0 \(N, A/GLY -3 N\) and atom 2 \(N, A/GLY -3 N\) are 0 angstrom apart, less than "
        r"0.4 \(2 such pairs\): remove copies",
    ),
    (
        "units.xyz",
        "2\n\nC 0 0 0\nO 0 0 0.113\n",
        r"0.113 angstrom apart, less than 0.4: .* in angs",
    ),
]


@pytest.mark.parametrize(("name", "text", "message"), BAD_FILES, ids=[f[0] for f in BAD_FILES])
def test_files_that_are_no_structures(name, text, message, tmp_path):
    path = write(tmp_path / name, text)
    with pytest.raises(ValueError, match=rf"^row 1 \(.*{name}\): .*{message}"):
        from_structures([Structure(["C"], [[0, 0, 0]]), path])


@pytest.mark.parametrize("bad", BAD_FILES[:3], ids=[f[0] for f in BAD_FILES[:3]])
def test_reading_a_bad_file_names_it(bad, tmp_path):
    name, text, message = bad
    with pytest.raises(ValueError, match=rf"{name}: {message}"):
        read_structures(write(tmp_path / name, text))


@pytest.mark.parametrize("length", [40, 12])
@pytest.mark.parametrize("suffix", ["pdb", "cif", "xyz", "sdf"])
def test_truncated_gzip(suffix, length, tmp_path):
    path = tmp_path / f"cut.{suffix}.gz"
    path.write_bytes(gzip.compress(GLYCINE.encode())[:length])
    with pytest.raises(ValueError, match=r"row 0 \(.*\): the gzip file is cut off or damaged"):
        from_structures([path])
    path.write_text(GLYCINE)
    with pytest.raises(ValueError, match=r"the gzip file is cut off or damaged .*Not a gzipped"):
        from_structures([path])


def test_missing_files_and_folders(tmp_path):
    with pytest.raises(ValueError, match=r"row 0 \(.*none.pdb\): .*No such file"):
        from_structures([tmp_path / "none.pdb"])
    with pytest.raises(ValueError, match=r"row 0 .*: the file name does not end in"):
        from_structures([tmp_path])


@pytest.mark.parametrize("row", [None, 3.0, float("nan"), b"water.pdb", [1, 2], {"C": 1}])
def test_objects_that_are_no_structures(row):
    with pytest.raises(ValueError, match=f"row 0: {type(row).__name__} is no type of structure"):
        from_structures([row])


def test_smiles_are_no_paths():
    with pytest.raises(ValueError, match=r"row 0 \(CCO\): the file name does not end in"):
        from_structures(["CCO"])


def test_molecules_without_positions_in_space():
    molecule = Chem.AddHs(Chem.MolFromSmiles("CCO"))
    with pytest.raises(ValueError, match="row 0: the molecule has no conformer: make one"):
        from_structures([molecule])
    Compute2DCoords(molecule)
    with pytest.raises(ValueError, match="row 0: conformer 1 is marked as two-dimensional"):
        from_structures([molecule])


def test_drawings_are_no_structures(tmp_path):
    molecule = Chem.MolFromSmiles("CCO")
    Compute2DCoords(molecule)
    path = write(tmp_path / "drawn.sdf", Chem.MolToMolBlock(molecule) + "$$$$\n")
    with pytest.raises(ValueError, match="record 1: conformer 1 is marked as two-dimensional"):
        from_structures([path])


def test_all_bad_rows_are_listed_up_to_five(tmp_path):
    good = write(tmp_path / "good.pdb", GLYCINE)
    with pytest.raises(ValueError, match=r"row 1: .*; row 3 \(b.pdb\): .*Correct or remove"):
        from_structures([good, None, good, "b.pdb"])
    with pytest.raises(ValueError, match=r"row 4: [^;]*; and 3 more rows\. Correct or remove"):
        from_structures([None] * 8)


@pytest.mark.parametrize(
    ("X", "error", "message"),
    [
        ("water.pdb", TypeError, r"wrap a single one in a list, \[x\]"),
        (Structure(["C"], [[0, 0, 0]]), TypeError, r"got Structure: wrap a single one in a list"),
        (iter(["water.pdb"]), TypeError, "can be read only once"),
        ([], ValueError, "X is empty"),
        (np.array([["a.pdb", "b.pdb"]]), ValueError, "X must have one column"),
    ],
)
def test_containers(X, error, message):
    with pytest.raises(error, match=message):
        from_structures(X)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"level": "molecule"}, "level must be one of .* got 'molecule'"),
        ({"contact": "ca"}, "contact must be one of .* got 'ca'"),
        ({"hydrogens": "explicit"}, "hydrogens must be True or False, got 'explicit'"),
        ({"waters": 1}, "waters must be True or False, got 1"),
        ({"model": 0}, "model must be an integer >= 1, got 0"),
        ({"model": True}, "model must be an integer >= 1, got True"),
        ({"model": "1"}, "model must be an integer >= 1, got '1'"),
        ({"chain": []}, r"chain must be a name, a list of names or None, got \[\]"),
        ({"chain": [1]}, r"chain must be a name, a list of names or None, got \[1\]"),
        ({"chain": ""}, "chain must be a name"),
        ({"chain": 3}, "chain must be a name"),
        ({"altloc": "best"}, "altloc must be 'first', 'highest' or one letter, got 'best'"),
        ({"altloc": ""}, "altloc must be"),
        ({"altloc": None}, "altloc must be"),
    ],
)
def test_options(options, message):
    with pytest.raises(ValueError, match=message):
        StructuresToGraphs(**options).fit(["no such file.pdb"])
    with pytest.raises(ValueError, match=message):
        from_structures(["no such file.pdb"], **options)
    reading = {
        name: value for name, value in options.items() if name in ("chain", "altloc", "waters")
    }
    if reading:
        with pytest.raises(ValueError, match=message):
            read_structures("no such file.pdb", **reading)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((["C", "O"], [[0, 0, 0]]), r"positions must have shape \(2, 3\), got \(1, 3\)"),
        ((["C"], [0, 0, 0]), r"positions must have shape \(1, 3\), got \(3,\)"),
        (("CO", [[0, 0, 0], [0, 0, 1]]), "elements must be one symbol an atom"),
        (([], []), "there are no atoms"),
        ((["C", "Ww"], [[0, 0, 0], [0, 0, 1]]), "atom 1 has the element 'Ww'"),
        ((["C", 0], [[0, 0, 0], [0, 0, 1]]), r"atom 1 \(X\) has no known element"),
        ((["C", ""], [[0, 0, 0], [0, 0, 1]]), "atom 1 has the element ''"),
        ((["C"], [[0, 0, np.nan]]), "coordinates must be finite"),
        (
            (["C"], [[0, 0, 0]], None, False, {"q": [1, 2]}),
            "attribute 'q' has 2 values for 1 atoms",
        ),
        ((["C"], [[0, 0, 0]], None, False, {"q": [None]}), r"attribute 'q', row 0 is missing"),
        ((["C"], [[0, 0, 0]], None, False, {"element": ["O"]}), "follows from elements and"),
    ],
)
def test_structures_in_memory(arguments, message):
    with pytest.raises(ValueError, match=message):
        Structure(*arguments)


def test_overlapping_atoms_are_named_whatever_the_rule():
    row = Structure(["C", "N", "O"], [[0, 0, 0], [0, 0, 1.4], [0, 0, 1.7]], name="model 7")
    for rule in (Tent(), HardCutoff(0.1)):
        with pytest.raises(
            ValueError, match=r"row 0 \(model 7\): atom 1 \(N\) and atom 2 \(O\) are 0.3 angstrom"
        ):
            from_structures([row], adjacency=rule)


def test_overlapping_atoms_are_named_at_the_level_of_residues(tmp_path):
    text = GLYCINE + pdb_atom("CB", "GLY", -3, (1.5, 0, 0.2), "C")
    for contact in ("c_alpha", "nearest"):
        with pytest.raises(ValueError, match=r"atom 1 \(C, A/GLY -3 CA\) and atom 2 .* 0.2 angs"):
            from_structures([write(tmp_path / "a.pdb", text)], level="residue", contact=contact)


def test_bonds_are_no_overlaps():
    hydrogen = Structure(["H", "H"], [[0, 0, 0], [0, 0, 0.74]])
    assert from_structures([hydrogen]).n_edges == 1


def test_only_hydrogens():
    hydrogen = Structure(["H", "D"], [[0, 0, 0], [0, 0, 0.74]])
    with pytest.raises(
        ValueError, match="row 0: all atoms are hydrogen: hydrogens=True keeps them"
    ):
        from_structures([hydrogen], hydrogens=False)


@pytest.mark.parametrize(
    ("library", "name", "extra"),
    [
        ("gemmi", "a.pdb", "structures"),
        ("gemmi", "a.cif", "structures"),
        ("rdkit", "a.sdf", "molecules"),
    ],
)
def test_a_missing_library_is_an_error_with_the_line_to_install_it(
    library, name, extra, tmp_path, monkeypatch
):
    monkeypatch.setitem(__import__("sys").modules, library, None)
    with pytest.raises(ImportError, match=rf"pip install 'sklearn-mgk\[{extra}\]'"):
        from_structures([write(tmp_path / name, GLYCINE)])
