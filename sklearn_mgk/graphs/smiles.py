# SPDX-License-Identifier: BSD-3-Clause
"""Graphs of molecules, from SMILES strings or RDKit molecules."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from operator import methodcaller
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import Tags

from sklearn_mgk.graphs.batch import GraphBatch
from sklearn_mgk.graphs.columns import Column, ListColumn
from sklearn_mgk.graphs.inputs import as_rows
from sklearn_mgk.graphs.ring_stereo import ring_stereo
from sklearn_mgk.graphs.transformer import GraphTransformer

if TYPE_CHECKING:
    from rdkit.Chem import Atom, Bond, Mol

Hydrogens = Literal["implicit", "explicit"]

_WHAT = "SMILES strings or RDKit molecules"
_CHUNK = 1000
_MAX_LISTED = 5
# RDKit's bound on the work for one molecule's CIP labels; about a second.
_MAX_CIP_ITERATIONS = 1_250_000

_ATOM_GETTERS = {
    "element": (methodcaller("GetSymbol"), np.str_),
    "charge": (methodcaller("GetFormalCharge"), np.int64),
    "aromatic": (methodcaller("GetIsAromatic"), np.bool_),
    "n_hydrogens": (methodcaller("GetTotalNumHs", True), np.int64),
    "radical_electrons": (methodcaller("GetNumRadicalElectrons"), np.int64),
    "degree": (methodcaller("GetDegree"), np.int64),
}
_BOND_GETTERS = {
    "order": (methodcaller("GetBondTypeAsDouble"), np.float64),
    "aromatic": (methodcaller("GetIsAromatic"), np.bool_),
    "conjugated": (methodcaller("GetIsConjugated"), np.bool_),
    "in_ring": (methodcaller("IsInRing"), np.bool_),
}
_ENDS = (methodcaller("GetBeginAtomIdx"), methodcaller("GetEndAtomIdx"))


def from_smiles(X: Any, hydrogens: Hydrogens = "implicit") -> GraphBatch:
    """Make a graph of each molecule: atoms are nodes, bonds are edges.

    The graphs do not depend on how a SMILES is written, apart from the order of the nodes, which is
    that of the atoms. Molecules of several components (salts) become disconnected graphs. There are
    no edge weights.

    Parameters
    ----------
    X : sequence of str or rdkit.Chem.Mol
        The molecules: a list, tuple, 1-D or (n, 1) array, Series or one-column DataFrame. RDKit
        molecules are copied and sanitized.
    hydrogens : {"implicit", "explicit"}, default="implicit"
        Whether hydrogen atoms are counted at their neighbor or are nodes of their own. Hydrogens
        that RDKit never removes (H2, isotopes, ions) are nodes in any case. With "explicit", the
        missing hydrogens follow the other atoms.

    Returns
    -------
    GraphBatch
        One graph a row, with the node attributes

        - ``element`` (str): symbol;
        - ``charge`` (int): formal charge [e];
        - ``hybridization`` (str): ``"SP3"`` and so on, as in RDKit;
        - ``aromatic`` (bool);
        - ``n_hydrogens`` (int): hydrogens at this atom, implicit and explicit;
        - ``chirality`` (str): ``"R"``, ``"S"``, pseudoasymmetric ``"r"``, ``"s"`` by the CIP rules
          [1]_, or ``"none"``;
        - ``radical_electrons`` (int);
        - ``ring_sizes`` (list of int): sizes of the rings that the atom is in (symmetrized smallest
          set of smallest rings), ascending; empty outside rings;
        - ``degree`` (int): number of neighbors that are nodes;

        and the edge attributes

        - ``order`` (float): 1, 1.5 (aromatic), 2, 3;
        - ``aromatic``, ``conjugated``, ``in_ring`` (bool);
        - ``stereo`` (str): ``"E"`` or ``"Z"`` by the CIP rules, ``"any"`` if marked unknown, or
          ``"none"``;
        - ``ring_stereo`` (str): ``"cis"``, ``"trans"``, ``"cis/trans"`` (they differ between the
          rings of the bond) or ``"none"``; see `sklearn_mgk.graphs.ring_stereo.ring_stereo`.

    Raises
    ------
    ValueError
        Some rows are no molecules: missing, not a string, not a valid SMILES, without atoms, or
        with a dummy atom. The message lists them; no row is ever dropped.
    ImportError
        RDKit is not installed.

    See Also
    --------
    valid_smiles : Find the rows that this function accepts.

    References
    ----------
    .. [1] R. M. Hanson et al., "Algorithmic analysis of Cahn-Ingold-Prelog rules of
       stereochemistry", J. Chem. Inf. Model. 58 (2018) 1755-1765. :doi:`10.1021/acs.jcim.8b00324`

    Examples
    --------
    >>> batch = from_smiles(["CCO", "[NH4+]"])
    >>> batch.nodes["element"].tolist(), batch.nodes["n_hydrogens"].tolist()
    (['C', 'C', 'O', 'N'], [3, 2, 1, 4])
    >>> from_smiles(["CCO"], hydrogens="explicit").n_nodes
    9
    """
    _check_hydrogens(hydrogens)
    rows = as_rows(X, _WHAT)
    parts, problems = [], []
    with _silent_rdkit():
        for start in range(0, len(rows), _CHUNK):
            molecules = []
            for row, value in enumerate(rows[start : start + _CHUNK], start):
                try:
                    molecules.append(_molecule(value, hydrogens))
                except ValueError as error:
                    problems.append(f"row {row}: {error}")
            if not problems:
                parts.append(_pack(molecules))
    if problems:
        listed = "; ".join(problems[:_MAX_LISTED])
        more = f"; and {len(problems) - _MAX_LISTED} more rows" * (len(problems) > _MAX_LISTED)
        raise ValueError(
            f"{listed}{more}. Correct or remove them: valid_smiles(X) is the mask of the good rows"
        )
    return GraphBatch.concatenate(parts)


def valid_smiles(X: Any) -> NDArray[np.bool_]:
    """Find the rows that `from_smiles` accepts, to select rows of X and y alike.

    Parameters
    ----------
    X : sequence of str or rdkit.Chem.Mol
        The molecules.

    Returns
    -------
    ndarray of shape (n_rows,), bool
        True where a row is a molecule.

    Examples
    --------
    >>> valid_smiles(["CCO", "C1CC", None]).tolist()
    [True, False, False]
    """
    with _silent_rdkit():
        return np.array([_is_molecule(value) for value in as_rows(X, _WHAT)])


class SmilesToGraphs(GraphTransformer):
    """Transformer from SMILES strings or RDKit molecules to graphs.

    Parameters
    ----------
    hydrogens : {"implicit", "explicit"}, default="implicit"
        Whether hydrogen atoms are counted at their neighbor or are nodes of their own.

    See Also
    --------
    from_smiles : The same as a function; lists the node and edge attributes.

    Examples
    --------
    >>> SmilesToGraphs().fit_transform(["CCO", "c1ccccc1"])  # doctest: +ELLIPSIS
    GraphBatch(n_graphs=2, n_nodes=9, n_edges=8, nodes=['element', ...], edges=['order', ...])
    """

    def __init__(self, hydrogens: Hydrogens = "implicit"):
        self.hydrogens = hydrogens

    def transform(self, X: Any) -> GraphBatch:
        """Return the graphs of the molecules.

        Parameters
        ----------
        X : sequence of str or rdkit.Chem.Mol
            The molecules.

        Returns
        -------
        GraphBatch
            One graph a row.
        """
        return from_smiles(X, self.hydrogens)

    def _check_parameters(self) -> None:
        _check_hydrogens(self.hydrogens)

    def __sklearn_tags__(self) -> Tags:
        """Say that X may hold strings."""
        tags = super().__sklearn_tags__()
        tags.input_tags.string = True
        return tags


def _check_hydrogens(hydrogens: Any) -> None:
    """Raise unless the option is known."""
    if hydrogens not in ("implicit", "explicit"):
        raise ValueError(f'hydrogens must be "implicit" or "explicit", got {hydrogens!r}')


def _silent_rdkit() -> Any:
    """Return a context in which RDKit logs nothing, or say how to install it."""
    try:
        from rdkit import rdBase
    except ImportError as error:
        raise ImportError('molecules need RDKit: pip install "sklearn-mgk[molecules]"') from error
    return rdBase.BlockLogs()


def _is_molecule(value: Any) -> bool:
    """Return whether a value can become a graph."""
    try:
        _molecule(value, "implicit")
    except ValueError:
        return False
    return True


def _molecule(value: Any, hydrogens: Hydrogens) -> Mol:
    """Return a sanitized molecule with the hydrogens asked for, or raise saying why not."""
    from rdkit import Chem
    from rdkit.Chem.rdqueries import AtomNumEqualsQueryAtom

    if isinstance(value, str):
        molecule = _parse(str(value))
    elif isinstance(value, Chem.Mol):
        molecule = _prepare(value, hydrogens)
    else:
        raise ValueError(
            f"{value!r} ({type(value).__name__}) is no SMILES string or RDKit molecule"
        )
    if molecule.GetNumAtoms() == 0:
        raise ValueError("the molecule has no atoms")
    dummies = molecule.GetAtomsMatchingQuery(AtomNumEqualsQueryAtom(0))
    if len(dummies):
        raise ValueError(f"{_shown(value)} has a dummy atom (atom {dummies[0].GetIdx()}, '*')")
    if hydrogens == "explicit":
        molecule = Chem.AddHs(molecule)
        Chem.SetHybridization(molecule)
    return molecule


def _shown(value: Any) -> str:
    """Return a SMILES string as it was given, or say that it is a molecule."""
    return repr(value) if isinstance(value, str) else "the molecule"


def _parse(smiles: str) -> Mol:
    """Return the molecule of a SMILES string."""
    from rdkit import Chem

    if not smiles.strip():
        raise ValueError("the SMILES string is empty")
    molecule = Chem.MolFromSmiles(smiles)
    if molecule is None:
        unsanitized = Chem.MolFromSmiles(smiles, sanitize=False)
        raise ValueError(f"{smiles!r} is not a valid SMILES ({_complaint(unsanitized)})")
    return molecule


def _prepare(molecule: Mol, hydrogens: Hydrogens) -> Mol:
    """Return a copy in the state in which a parsed SMILES is."""
    from rdkit import Chem

    molecule = Chem.Mol(molecule)
    try:
        Chem.SanitizeMol(molecule)
        Chem.AssignStereochemistry(molecule, cleanIt=True, force=True)
        return Chem.RemoveHs(molecule) if hydrogens == "implicit" else molecule
    except ValueError as error:
        raise ValueError(f"the molecule is not valid ({error})") from None


def _complaint(molecule: Mol | None) -> str:
    """Say why RDKit refuses a molecule; None is one that could not be parsed at all."""
    from rdkit import Chem

    problems = Chem.DetectChemistryProblems(molecule) if molecule is not None else ()
    if len(problems):
        return problems[0].Message()
    return "syntax error: look at brackets, ring closures and element symbols"


def _pack(molecules: Sequence[Mol]) -> GraphBatch:
    """Return the graphs of sanitized molecules."""
    atoms, bonds, chirality, stereo, rings = [], [], {}, {}, {}
    for molecule in molecules:
        own = list(map(molecule.GetBondWithIdx, range(molecule.GetNumBonds())))
        atom_labels, bond_labels, ring_labels = _stereo_labels(molecule, own)
        chirality.update((len(atoms) + atom, label) for atom, label in atom_labels.items())
        stereo.update((len(bonds) + bond, label) for bond, label in bond_labels.items())
        rings.update((len(bonds) + bond, label) for bond, label in ring_labels.items())
        atoms.extend(map(molecule.GetAtomWithIdx, range(molecule.GetNumAtoms())))
        bonds.extend(own)
    node_ptr = _pointers([molecule.GetNumAtoms() for molecule in molecules])
    nodes = _columns(atoms, _ATOM_GETTERS) | {
        "hybridization": _hybridizations(atoms),
        "chirality": _sparse_labels(len(atoms), chirality),
        "ring_sizes": _ring_sizes(molecules, node_ptr),
    }
    edges = _columns(bonds, _BOND_GETTERS) | {
        "stereo": _sparse_labels(len(bonds), stereo),
        "ring_stereo": _sparse_labels(len(bonds), rings),
    }
    ends = np.array([list(map(end, bonds)) for end in _ENDS], dtype=np.int64)
    return GraphBatch(
        node_ptr=node_ptr,
        edge_ptr=_pointers([molecule.GetNumBonds() for molecule in molecules]),
        edge_index=ends,
        nodes=nodes,
        edges=edges,
    )


def _pointers(counts: Sequence[int]) -> NDArray[np.int64]:
    """Return where each graph starts, and the total."""
    return np.cumsum([0, *counts], dtype=np.int64)


def _columns(items: Sequence[Atom | Bond], getters: Mapping[str, tuple]) -> dict[str, Column]:
    """Read each attribute from all atoms or bonds."""
    return {name: np.array(list(map(get, items)), dtype) for name, (get, dtype) in getters.items()}


def _hybridizations(atoms: Sequence[Atom]) -> NDArray[np.str_]:
    """Return the name of each atom's hybridization."""
    from rdkit.Chem import HybridizationType

    names = np.array(
        [str(HybridizationType.values[i]) for i in range(len(HybridizationType.values))]
    )
    return names[np.array([atom.GetHybridization() for atom in atoms], dtype=np.int64)]


def _sparse_labels(n: int, labels: Mapping[int, str]) -> NDArray[np.str_]:
    """Return the labels of n rows, "none" where there is no other."""
    column = np.full(n, "none", dtype="U9")
    column[list(labels.keys())] = list(labels.values())
    return column


def _stereo_labels(
    molecule: Mol, bonds: Sequence[Bond]
) -> tuple[dict[int, str], dict[int, str], dict[int, str]]:
    """Return the labels of stereocenters, of double bonds, and of the bonds of stereo rings."""
    from rdkit.Chem import BondStereo
    from rdkit.Chem.rdqueries import HasChiralTagQueryAtom

    centers = list(molecule.GetAtomsMatchingQuery(HasChiralTagQueryAtom()))
    stereo_bonds = [bond for bond in bonds if bond.GetStereo()]
    if not centers and not stereo_bonds:
        return {}, {}, {}
    unknown = [bond for bond in stereo_bonds if bond.GetStereo() == BondStereo.STEREOANY]
    labeled = _assign_cip_labels(molecule)
    return (
        _cip_labels(centers) if labeled else {},
        dict.fromkeys((bond.GetIdx() for bond in unknown), "any")
        | (_cip_labels(stereo_bonds) if labeled else {}),
        ring_stereo(molecule) if any(atom.IsInRing() for atom in centers) else {},
    )


def _assign_cip_labels(molecule: Mol) -> bool:
    """Let RDKit find the CIP labels; False if that would take too long (large symmetric cages)."""
    from rdkit.Chem.rdCIPLabeler import AssignCIPLabels

    try:
        AssignCIPLabels(molecule, maxRecursiveIterations=_MAX_CIP_ITERATIONS)
    except RuntimeError:
        return False
    return True


def _cip_labels(items: Sequence[Atom | Bond]) -> dict[int, str]:
    """Return the labels of those atoms or bonds that have one."""
    return {item.GetIdx(): item.GetProp("_CIPCode") for item in items if item.HasProp("_CIPCode")}


def _ring_sizes(molecules: Sequence[Mol], node_ptr: NDArray[np.int64]) -> ListColumn:
    """Return the sizes of the rings of each atom, ascending."""
    rings = [
        (node + np.array(ring))
        for molecule, node in zip(molecules, node_ptr[:-1], strict=True)
        for ring in molecule.GetRingInfo().AtomRings()
    ]
    atoms = np.concatenate([np.empty(0, dtype=np.int64), *rings])
    lengths = np.array([len(ring) for ring in rings], dtype=np.int64)
    sizes = np.repeat(lengths, lengths)
    counts = np.bincount(atoms, minlength=node_ptr[-1])
    return ListColumn(sizes[np.lexsort((sizes, atoms))], _pointers(counts))
