# SPDX-License-Identifier: BSD-3-Clause
"""Residues as nodes: which atoms belong together, and how far residues are apart."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from sklearn_mgk.graphs.structures.locations import runs
from sklearn_mgk.graphs.structures.neighbors import Pairs, neighbor_pairs
from sklearn_mgk.graphs.structures.structure import Structure

_COPIED = ("residue_name", "chain", "residue", "secondary_structure")


def alpha_carbons(structure: Structure) -> tuple[NDArray[np.int64], dict[str, Any]]:
    """Find the residues that have a C-alpha atom.

    Parameters
    ----------
    structure : Structure
        Atoms with the attributes ``residue`` and ``atom_name``.

    Returns
    -------
    atoms : ndarray of shape (n_residues,), int64
        The number of each C-alpha atom. Calcium, of the same name, is none.
    nodes : dict of str to column
        The attributes of the residues, with ``position`` that of the C-alpha atom.

    Raises
    ------
    ValueError
        The structure has no residues, or none with a C-alpha atom.
    """
    _require(structure, ("residue", "atom_name"))
    is_alpha = (structure.attributes["atom_name"] == "CA") & (structure.elements == "C")
    atoms = np.flatnonzero(is_alpha)
    if len(atoms) == 0:
        raise ValueError(
            "no residue has a C-alpha atom: contact='nearest' takes residues of any kind, "
            "level='atom' atoms"
        )
    return atoms, _nodes(structure, atoms, structure.positions[atoms])


def all_residues(structure: Structure) -> tuple[NDArray[np.int64], dict[str, Any]]:
    """Find all residues, ligands and ions included.

    Parameters
    ----------
    structure : Structure
        Atoms with the attribute ``residue``.

    Returns
    -------
    residue : ndarray of shape (n_atoms,), int64
        The number of the residue of each atom.
    nodes : dict of str to column
        The attributes of the residues, with ``position`` their center.

    Raises
    ------
    ValueError
        The structure has no residues.
    """
    _require(structure, ("residue",))
    residue = runs(structure.attributes, ("residue",))
    first = np.unique(residue, return_index=True)[1]
    sums = np.add.reduceat(structure.positions, first, axis=0)
    return residue, _nodes(structure, first, sums / np.bincount(residue)[:, None])


def nearest_pairs(structure: Structure, residue: NDArray[np.int64], reach: float) -> Pairs:
    """Find pairs of residues by the distance of their nearest atoms.

    Parameters
    ----------
    structure : Structure
        The atoms, not periodic.
    residue : ndarray of shape (n_atoms,), int64
        The residue of each atom, ascending.
    reach : float
        The greatest distance [angstrom].

    Returns
    -------
    Pairs
        Each pair of residues once, with the least distance of two of their atoms.
    """
    atoms = neighbor_pairs(structure.positions, reach)
    i, j = residue[atoms.i], residue[atoms.j]
    order = np.lexsort((atoms.length, j, i))
    i, j, length = i[order], j[order], atoms.length[order]
    new = (np.diff(i, prepend=-1) != 0) | (np.diff(j, prepend=-1) != 0)
    keep = new & (i != j)
    return Pairs(i[keep], j[keep], length[keep])


def _require(structure: Structure, names: tuple[str, ...]) -> None:
    """Raise unless the atoms say which residue they belong to."""
    missing = [name for name in names if name not in structure.attributes]
    if missing:
        raise ValueError(
            f"level='residue' needs the attribute {missing[0]!r} of each atom, which PDB and mmCIF "
            "files have: use level='atom'"
        )
    if structure.lattice is not None:
        raise ValueError("level='residue' knows no periodic cells: set periodic=False")


def _nodes(structure: Structure, atoms: NDArray, positions: NDArray) -> dict[str, Any]:
    """Return the attributes of residues, read from one atom of each."""
    known = structure.attributes
    copied = {name: known[name][atoms] for name in _COPIED if name in known}
    return {**copied, "position": positions}
