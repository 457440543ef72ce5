# SPDX-License-Identifier: BSD-3-Clause
"""PDB and mmCIF files: elements, names, models, chains, alternate locations, waters."""

import gemmi
import numpy as np
import pytest
from structure_files import pdb_atom, write

from sklearn_mgk import HardCutoff, from_structures, read_structures
from sklearn_mgk.graphs.structures.locations import one_location, runs

GLYCINE = (
    pdb_atom("N", "GLY", -3, (0, 0, 0), "N", charge="1+")
    + pdb_atom("CA", "GLY", -3, (1.5, 0, 0), "C")
    + pdb_atom("C", "GLY", -3, (3, 0, 0), "C")
    + pdb_atom("O", "GLY", -3, (4.2, 0, 0), "O")
)


def load(tmp_path, text, name="file.pdb", **options):
    return from_structures([write(tmp_path / name, text)], adjacency=HardCutoff(20.0), **options)


def as_mmcif(text):
    """The same file as mmCIF, written by gemmi."""
    structure = gemmi.read_pdb_string(text)
    structure.setup_entities()
    return structure.make_mmcif_document().as_string()


FORMATS = pytest.mark.parametrize("convert", [str, as_mmcif], ids=["pdb", "mmcif"])


def loaded(tmp_path, text, convert, **options):
    return load(tmp_path, convert(text), "file.pdb" if convert is str else "file.cif", **options)


@FORMATS
def test_columns(convert, tmp_path):
    text = GLYCINE + pdb_atom("SE", "MSE", 52, (0, 4, 0), "SE", chain="B", icode="A")
    text += pdb_atom("CA", "CA", 60, (0, 8, 0), "CA", chain="B", charge="2+")
    nodes = loaded(tmp_path, text, convert).nodes
    assert nodes["element"].tolist() == ["N", "C", "C", "O", "Se", "Ca"]
    assert nodes["atomic_number"].tolist() == [7, 6, 6, 8, 34, 20]
    assert nodes["charge"].tolist() == [1, 0, 0, 0, 0, 2]
    assert nodes["atom_name"].tolist() == ["N", "CA", "C", "O", "SE", "CA"]
    assert nodes["residue_name"].tolist() == ["GLY"] * 4 + ["MSE", "CA"]
    assert nodes["chain"].tolist() == ["A"] * 4 + ["B"] * 2
    assert nodes["residue"].tolist() == ["A/GLY -3"] * 4 + ["B/MSE 52A", "B/CA 60"]
    assert set(nodes["secondary_structure"]) == {"unknown"}
    assert nodes["position"][:, 0].tolist() == [0, 1.5, 3, 4.2, 0, 0]


def test_elements_left_out_follow_from_the_column_of_the_name(tmp_path):
    text = pdb_atom("CA", "ALA", 1, (0, 0, 0)) + pdb_atom("HG11", "VAL", 2, (0, 3, 0))
    text += pdb_atom("CA", "CA", 3, (0, 6, 0)).replace("  CA   CA", " CA    CA")
    assert load(tmp_path, text).nodes["element"].tolist() == ["C", "H", "Ca"]


def test_an_atom_without_any_element_is_named(tmp_path):
    text = GLYCINE + pdb_atom("Q1", "LIG", 7, (0, 9, 0))
    with pytest.raises(ValueError, match=r"file.pdb\): atom 4 \(X, A/LIG 7 Q1\) has no known"):
        load(tmp_path, text)


def test_atoms_declared_as_unknown_are_kept(tmp_path):
    text = GLYCINE + pdb_atom("UNK", "UNX", 7, (0, 4, 0), "X")
    batch = from_structures([write(tmp_path / "x.pdb", text)] * 2)
    assert batch.nodes["element"].tolist() == ["N", "C", "C", "O", "X"] * 2
    assert batch.nodes["atomic_number"][4] == 0
    batch = load(tmp_path, text, hydrogens=False)
    assert batch.n_nodes == 5


MODELS = "".join(
    f"MODEL     {number:4}\n{pdb_atom('CA', 'GLY', 1, (x, 0, 0), 'C')}ENDMDL\n"
    for number, x in ((1, 1.0), (2, 2.0), (7, 7.0))
)


@FORMATS
def test_models(convert, tmp_path):
    """They are counted from 1, whatever their numbers in the file."""
    for model, x in ((1, 1.0), (2, 2.0), (3, 7.0)):
        assert loaded(tmp_path, MODELS, convert, model=model).nodes["position"][0, 0] == x
    with pytest.raises(ValueError, match="model=4, but the number of models is 3"):
        loaded(tmp_path, MODELS, convert, model=4)


def test_all_models_are_read_into_rows(tmp_path):
    path = write(tmp_path / "nmr.pdb.gz", MODELS)
    models = read_structures(path)
    assert [model.name for model in models] == [f"{path}, model {i}" for i in (1, 2, 3)]
    assert from_structures(models).nodes["position"][:, 0].tolist() == [1, 2, 7]


CHAINS = "".join(
    pdb_atom("CA", "GLY", 1, (5 * i, 0, 0), "C", chain=chain) for i, chain in enumerate("ABA")
)


@FORMATS
def test_chains(convert, tmp_path):
    """A chain that stands in two parts is one, as ligands are often written at the end."""
    text = CHAINS.replace("A   1      10.000", "A   2      10.000")
    assert loaded(tmp_path, text, convert).nodes["chain"].tolist() == ["A", "A", "B"]
    assert loaded(tmp_path, text, convert, chain="A").nodes["position"][:, 0].tolist() == [0, 10]
    assert loaded(tmp_path, text, convert, chain=["B", "A"]).n_nodes == 3
    with pytest.raises(ValueError, match=r"there is no chain 'C'; there are \['A', 'B'\]"):
        loaded(tmp_path, text, convert, chain=["A", "C"])


@FORMATS
def test_waters(convert, tmp_path):
    water = pdb_atom("O", "HOH", 101, (0, 4, 0), "O")
    assert loaded(tmp_path, GLYCINE + water, convert).n_nodes == 4
    assert loaded(tmp_path, GLYCINE + water, convert, waters=True).n_nodes == 5
    with pytest.raises(ValueError, match="there are only water molecules: waters=True"):
        loaded(tmp_path, water, convert)


# Alternate locations of one residue. A and B share all atoms, C alone has the last.
LOCATIONS = (
    pdb_atom("N", "SER", 1, (0, 0, 0), "N")
    + pdb_atom("CA", "SER", 1, (1.5, 0, 0), "C", alt="A", occupancy=0.3)
    + pdb_atom("CA", "SER", 1, (1.5, 1, 0), "C", alt="B", occupancy=0.5)
    + pdb_atom("CA", "SER", 1, (1.5, 2, 0), "C", alt="C", occupancy=0.2)
    + pdb_atom("CB", "SER", 1, (3, 0, 0), "C", alt="A", occupancy=0.3)
    + pdb_atom("CB", "SER", 1, (3, 1, 0), "C", alt="B", occupancy=0.5)
    + pdb_atom("OG", "SER", 1, (4, 2, 0), "O", alt="C", occupancy=0.2)
    + pdb_atom("CA", "GLY", 2, (8, 3, 0), "C", alt="B", occupancy=0.5)
    + pdb_atom("CA", "GLY", 2, (8, 4, 0), "C", alt="C", occupancy=0.5)
)


@FORMATS
@pytest.mark.parametrize(
    ("altloc", "expected"),
    [
        ("first", [("N", 0), ("CA", 0), ("CB", 0), ("OG", 2), ("CA", 3)]),
        ("highest", [("N", 0), ("CA", 1), ("CB", 1), ("OG", 2), ("CA", 3)]),
        ("A", [("N", 0), ("CA", 0), ("CB", 0)]),
        ("C", [("N", 0), ("CA", 2), ("OG", 2), ("CA", 4)]),
    ],
)
def test_alternate_locations(altloc, expected, convert, tmp_path):
    nodes = loaded(tmp_path, LOCATIONS, convert, altloc=altloc).nodes
    rows = zip(nodes["atom_name"].tolist(), nodes["position"][:, 1].tolist(), strict=True)
    assert list(rows) == expected


# Position 22 is proline in a part of the crystal and serine in the rest, as in crambin.
MUTATED = (
    pdb_atom("N", "PRO", 22, (0, 0, 0), "N", alt="A", occupancy=0.4)
    + pdb_atom("CD", "PRO", 22, (1.5, 0, 0), "C", alt="A", occupancy=0.4)
    + pdb_atom("N", "SER", 22, (0, 1, 0), "N", alt="B", occupancy=0.6)
    + pdb_atom("OG", "SER", 22, (1.5, 1, 0), "O", alt="B", occupancy=0.6)
    + pdb_atom("N", "GLY", 23, (5, 0, 0), "N")
)


@FORMATS
@pytest.mark.parametrize(
    ("altloc", "expected"),
    [("first", ["N", "CD", "N"]), ("highest", ["N", "OG", "N"]), ("B", ["N", "OG", "N"])],
)
def test_a_position_of_two_residues_keeps_one(altloc, expected, convert, tmp_path):
    batch = loaded(tmp_path, MUTATED, convert, altloc=altloc)
    assert batch.nodes["atom_name"].tolist() == expected
    assert len(set(batch.nodes["residue"].tolist())) == 2


def test_atoms_without_a_letter_are_never_dropped():
    """Copies of an atom are an error of the file, which the check of overlaps names."""
    atoms = {
        "altloc": np.array(["", "", "A"]),
        "occupancy": np.ones(3),
        "residue_name": np.array(["GLY"] * 3),
        "atom_name": np.array(["CA"] * 3),
    }
    place = np.zeros(3, dtype=np.int64)
    for choice in ("first", "highest"):
        assert one_location(atoms, place, choice).tolist() == [True, True, False]


def test_runs():
    columns = {"a": np.array([1, 1, 2, 2, 1]), "b": np.array(["x", "y", "y", "y", "y"])}
    assert runs(columns, ["a"]).tolist() == [0, 0, 1, 1, 2]
    assert runs(columns, ["a", "b"]).tolist() == [0, 1, 2, 2, 3]


def test_names_that_gemmi_cannot_hold():
    structure = gemmi.read_pdb_string(GLYCINE)
    structure[0][0].name = "a very long name"
    with pytest.raises(ValueError, match=r"row 0: a name in it is too long .* shorten it"):
        from_structures([structure])


def test_gemmi_structures_are_left_as_they_are():
    structure = gemmi.read_pdb_string(GLYCINE + pdb_atom("O", "HOH", 101, (0, 4, 0), "O"))
    assert from_structures([structure]).n_nodes == 4
    assert structure[0].count_atom_sites() == 5
