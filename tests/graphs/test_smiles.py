# SPDX-License-Identifier: BSD-3-Clause
"""Graphs of molecules."""

import numpy as np
import pandas as pd
import pytest
from rdkit import Chem
from rdkit.Chem.AllChem import EmbedMolecule
from sklearn.base import clone
from sklearn.model_selection import cross_val_score
from sklearn.neighbors import KNeighborsRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer

from sklearn_mgk.graphs import SmilesToGraphs, from_smiles, valid_smiles

# Salts, charges, radicals, isotopes, stereocenters of all kinds, cages, spiro and fused rings.
MOLECULES = [
    "C",
    "[Na+].CC(=O)[O-]",
    "[CH2]C",
    "[2H]C([2H])([2H])O",
    "C[C@H](N)C(=O)O",
    "CC(=O)Oc1ccccc1C(=O)O",
    "F/C=C/C=C\\Cl",
    "C[S@](=O)CC",
    "C[C@H]1CC[C@@H](C)CC1",
    "O[C@H]1[C@H](O)[C@@H](O)[C@H](O)[C@@H](O)[C@@H]1O",
    "C1CC[C@@H]2CCCC[C@H]2C1",
    "C1C2CC3CC1CC(C2)C3",
    "O=C1CCC2(CC1)OCCO2",
    "CC12CCC3c4ccc(O)cc4CCC3C1CCC2O",
    "C[C@]12CC[C@H]3[C@@H](CCc4cc(O)ccc43)[C@@H]1CC[C@@H]2O",
    "CN1[C@H]2CC[C@@H]1[C@H]([C@H](C2)OC(=O)c3ccccc3)C(=O)OC",
    "O=[N+]([O-])c1ccc[nH]1",
    "C/C(=N\\O)c1ccc2[nH]ncc2c1",
]


def environments(graph):
    """Return the labels of all nodes and of all edges with their ends, in no order."""
    nodes = [
        str([column[i].tolist() for column in graph.nodes.values()]) for i in range(graph.n_nodes)
    ]
    edges = [
        (sorted(nodes[i] for i in ends), [column[e].tolist() for column in graph.edges.values()])
        for e, ends in enumerate(graph.edge_index.T)
    ]
    return sorted(nodes), sorted(map(str, edges))


def labels(smiles, name, kind="edges", **options):
    """Return an attribute of one molecule, without "none"."""
    column = getattr(from_smiles([smiles], **options)[0], kind)[name]
    return [label for label in column.tolist() if label != "none"]


def test_atom_attributes():
    nodes = from_smiles(["C[NH2+]c1ccccc1", "[CH3]", "C#N"]).nodes
    assert nodes["element"].tolist() == ["C", "N", *"CCCCCC", "C", "C", "N"]
    assert nodes["charge"].tolist() == [0, 1, *[0] * 6, 0, 0, 0]
    assert nodes["hybridization"].tolist() == ["SP3"] * 2 + ["SP2"] * 6 + ["SP3"] + ["SP"] * 2
    assert nodes["aromatic"].tolist() == [False] * 2 + [True] * 6 + [False] * 3
    assert nodes["n_hydrogens"].tolist() == [3, 2, 0, *[1] * 5, 3, 1, 0]
    assert nodes["radical_electrons"].tolist() == [0] * 8 + [1, 0, 0]
    assert nodes["degree"].tolist() == [1, 2, 3, *[2] * 5, 0, 1, 1]
    assert set(nodes["chirality"]) == {"none"}


def test_bond_attributes():
    batch = from_smiles(["C=CC=O", "c1cc[nH]c1", "C#N", "C"])
    edges = batch.edges
    assert batch.edge_ptr.tolist() == [0, 3, 8, 9, 9]
    assert batch.edge_index[:, :3].tolist() == [[0, 1, 2], [1, 2, 3]]
    assert edges["order"].tolist() == [2, 1, 2, *[1.5] * 5, 3]
    assert edges["aromatic"].tolist() == [False] * 3 + [True] * 5 + [False]
    assert edges["conjugated"].tolist() == [True] * 8 + [False]
    assert edges["in_ring"].tolist() == [False] * 3 + [True] * 5 + [False]
    assert set(edges["stereo"]) == set(edges["ring_stereo"]) == {"none"}
    assert batch.edge_weight.tolist() == [1.0] * 9


def test_ring_sizes_are_sorted_lists():
    rings = from_smiles(["C", "CC1CC1", "C1CC2CCCC12"]).nodes["ring_sizes"]
    assert rings.ptr.tolist() == [0, 0, 0, 1, 2, 3, 4, 5, 7, 8, 9, 10, 12]
    assert rings.values.tolist() == [3, 3, 3, 4, 4, 4, 5, 5, 5, 5, 4, 5]
    assert len(from_smiles(["C"]).nodes["ring_sizes"].values) == 0


@pytest.mark.parametrize(
    ("smiles", "expected"),
    [
        ("C[C@H](N)C(=O)O", ["S"]),
        ("C[C@@H](N)C(=O)O", ["R"]),
        ("CC(N)C(=O)O", []),
        ("C[C@H](O)[C@H](O)[C@@H](C)O", ["S", "s", "R"]),
    ],
)
def test_chirality(smiles, expected):
    assert sorted(labels(smiles, "chirality", "nodes")) == sorted(expected)


@pytest.mark.parametrize(
    ("smiles", "expected"),
    [
        ("F/C=C/F", ["E"]),
        ("F/C=C\\F", ["Z"]),
        ("C(\\F)=C/F", ["E"]),
        ("FC=CF", []),
        ("F/C(Cl)=C/F", ["Z"]),
    ],
)
def test_stereo(smiles, expected):
    assert labels(smiles, "stereo") == expected


def test_unknown_stereo():
    molecule = Chem.MolFromSmiles("FC=CF")
    molecule.GetBondWithIdx(1).SetStereo(Chem.BondStereo.STEREOANY)
    assert from_smiles([molecule]).edges["stereo"].tolist() == ["none", "any", "none"]


@pytest.mark.parametrize("hydrogens", ["implicit", "explicit"])
@pytest.mark.parametrize(
    ("smiles", "expected"),
    [
        ("C[C@H]1CC[C@@H](C)CC1", ["cis"] * 6),
        ("C[C@H]1CC[C@H](C)CC1", ["trans"] * 6),
        ("C[C@@H]1CC[C@@H](C)CC1", ["trans"] * 6),
        ("CC1CCC(C)CC1", []),
        ("C[C@H](F)C1CCCCC1", []),
        ("C1CC[C@@H]2CCCC[C@H]2C1", ["trans"] * 11),
        ("C1CC[C@@H]2CCCC[C@@H]2C1", ["cis"] * 11),
        ("F[C@H]1C[C@@](Cl)(Br)C1", ["cis"] * 4),
        ("F[C@H]1C[C@@](Br)(Cl)C1", ["trans"] * 4),
        ("C[C@H]1C[C@@H](C)C[C@H](C)C1", ["cis"] * 2 + ["trans"] * 4),
        ("F[C@H]1CC[S@@](=O)C1", ["cis"] * 5),
    ],
)
def test_ring_stereo(smiles, expected, hydrogens):
    assert sorted(labels(smiles, "ring_stereo", hydrogens=hydrogens)) == expected


@pytest.mark.parametrize(
    ("smiles", "ring", "senior"),
    [
        ("F[C@H]1C[C@@H](F)C1", [1, 2, 3, 5], [0, 4]),
        ("F[C@H]1C[C@H](F)C1", [1, 2, 3, 5], [0, 4]),
        ("F[C@H]1C[C@@](Cl)(Br)C1", [1, 2, 3, 6], [0, 5]),
        ("F[C@H]1C[C@](Cl)(Br)C1", [1, 2, 3, 6], [0, 5]),
        ("F[C@H]1C[S@](=O)C1", [1, 2, 3, 5], [0, 4]),
        ("F[C@H]1C[S@@](=O)C1", [1, 2, 3, 5], [0, 4]),
    ],
)
def test_ring_stereo_agrees_with_coordinates(smiles, ring, senior):
    """Oracle: embed the molecule and see on which side of the ring the substituents lie."""
    molecule = Chem.AddHs(Chem.MolFromSmiles(smiles))
    assert EmbedMolecule(molecule, randomSeed=1) == 0
    position = molecule.GetConformer().GetPositions()
    corners = position[ring]
    normal = np.cross(corners[2] - corners[0], corners[3] - corners[1])
    sides = (position[senior] - corners.mean(axis=0)) @ normal
    assert set(labels(smiles, "ring_stereo")) == {"cis" if sides.prod() > 0 else "trans"}


@pytest.mark.parametrize("hydrogens", ["implicit", "explicit"])
@pytest.mark.parametrize("smiles", MOLECULES)
def test_graphs_do_not_depend_on_the_writing(smiles, hydrogens):
    molecule = Chem.MolFromSmiles(smiles)
    others = Chem.MolToRandomSmilesVect(molecule, 5, randomSeed=1)
    kekule = Chem.Mol(molecule)
    Chem.Kekulize(kekule, clearAromaticFlags=True)
    forms = [smiles, *others, molecule, kekule, Chem.AddHs(molecule)]
    found = [environments(graph) for graph in from_smiles(forms, hydrogens=hydrogens)]
    assert all(environment == found[0] for environment in found)


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("C[C@H]1CC[C@@H](C)CC1", "C[C@H]1CC[C@H](C)CC1"),
        ("F/C=C/F", "F/C=C\\F"),
        ("C[C@H](N)O", "C[C@@H](N)O"),
        ("C", "[CH3]"),
    ],
)
def test_different_molecules_differ(first, second):
    a, b = map(environments, from_smiles([first, second]))
    assert a != b


def test_hydrogens():
    assert from_smiles(["C", "[H]C([H])([H])[H]"]).sizes.tolist() == [1, 1]
    explicit = from_smiles(["O"], hydrogens="explicit")
    assert explicit.nodes["element"].tolist() == ["O", "H", "H"]
    assert explicit.nodes["n_hydrogens"].tolist() == [2, 0, 0]
    assert explicit.nodes["degree"].tolist() == [2, 1, 1]
    assert from_smiles(["[H][H]"]).nodes["element"].tolist() == ["H", "H"]


def test_nodes_keep_the_order_of_the_atoms():
    molecule = Chem.MolFromSmiles("[H]OC", sanitize=False)
    assert from_smiles([molecule]).nodes["element"].tolist() == ["O", "C"]
    explicit = from_smiles([molecule], hydrogens="explicit")
    assert explicit.nodes["element"].tolist() == ["H", "O", "C", "H", "H", "H"]
    assert molecule.GetNumAtoms() == 3


def test_many_molecules_cross_chunks():
    smiles = ["C" * (1 + i % 3) for i in range(2005)]
    batch = from_smiles(smiles)
    assert batch.sizes.tolist() == [len(s) for s in smiles]


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ("C1CC", r"row 1: 'C1CC' is not a valid SMILES \(syntax error"),
        ("CC(C)(C)(C)C", r"is not a valid SMILES \(Explicit valence for atom # 1 C, 5, is greater"),
        ("c1cccc1", r"is not a valid SMILES \(Can't kekulize"),
        ("", "row 1: the SMILES string is empty"),
        ("  ", "row 1: the SMILES string is empty"),
        (None, r"row 1: None \(NoneType\) is no SMILES string or RDKit molecule"),
        (np.nan, r"row 1: nan \(float\) is no SMILES string"),
        (pd.NA, r"row 1: <NA> \(NAType\) is no SMILES string"),
        (b"CC", r"row 1: b'CC' \(bytes\) is no SMILES string"),
        ("*CC", r"row 1: '\*CC' has a dummy atom \(atom 0, '\*'\)"),
        (Chem.MolFromSmiles("C[1*]"), r"row 1: the molecule has a dummy atom \(atom 1"),
        (Chem.Mol(), "row 1: the molecule has no atoms"),
        (
            Chem.MolFromSmiles("c1cccc1", sanitize=False),
            r"the molecule is not valid \(Can't kekuli",
        ),
    ],
)
def test_wrong_rows_are_named(value, message, capfd):
    with pytest.raises(ValueError, match=message):
        from_smiles(["CCO", value])
    assert valid_smiles(["CCO", value]).tolist() == [True, False]
    assert capfd.readouterr().err == ""


def test_all_wrong_rows_are_reported():
    rows = ["CCO"] * 12 + ["C(", "CO", *["x"] * 7]
    with pytest.raises(ValueError, match=r"^row 12: 'C\('.*; row 14: 'x'.*; and 3 more rows\. Cor"):
        from_smiles(rows)
    good = np.array(rows)[valid_smiles(rows)]
    assert len(from_smiles(good)) == 13


def test_containers():
    smiles = ["CCO", "C", "CC"]
    column = pd.DataFrame({"smiles": smiles}, index=[5, 3, 1])
    for X in (
        smiles,
        tuple(smiles),
        np.array(smiles),
        np.array(smiles)[:, None],
        column,
        column.smiles,
    ):
        assert SmilesToGraphs().fit_transform(X).sizes.tolist() == [3, 1, 2]


@pytest.mark.parametrize(
    ("X", "error", "message"),
    [
        ("CCO", TypeError, r"X must be a sequence of SMILES.*got str: wrap a single one in a list"),
        (Chem.MolFromSmiles("C"), TypeError, "got Mol: wrap a single one"),
        (iter(["CCO"]), TypeError, "can be read only once"),
        ([], ValueError, "X is empty: a list of SMILES strings or RDKit molecules is needed"),
        (
            pd.DataFrame({"a": ["C"], "b": ["C"]}),
            ValueError,
            r"must have one column of SMILES.*\(1, 2\)",
        ),
    ],
)
def test_wrong_containers_are_refused(X, error, message):
    with pytest.raises(error, match=message):
        from_smiles(X)


def test_transformer_is_an_estimator():
    transformer = clone(SmilesToGraphs()).set_params(hydrogens="explicit")
    assert transformer.get_params() == {"hydrogens": "explicit"}
    assert transformer.fit(["CCO"]) is transformer
    assert len(transformer.transform(["CCO"])) == 1
    tags = transformer.__sklearn_tags__()
    assert tags.input_tags.string
    assert not tags.input_tags.two_d_array
    assert not tags.requires_fit
    with pytest.raises(ValueError, match='hydrogens must be "implicit" or "explicit", got 1'):
        SmilesToGraphs(hydrogens=1).fit(["CCO"])


def test_transformer_works_in_pipelines():
    sizes = FunctionTransformer(lambda graphs: graphs.sizes[:, None])
    model = make_pipeline(SmilesToGraphs(), sizes, KNeighborsRegressor(1))
    smiles = ["C" * n for n in range(1, 9)] * 2
    scores = cross_val_score(model, smiles, np.arange(16) % 8, cv=2)
    assert scores.tolist() == [1.0, 1.0]
