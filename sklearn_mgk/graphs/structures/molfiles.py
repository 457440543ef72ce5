# SPDX-License-Identifier: BSD-3-Clause
"""Structures from RDKit molecules with conformers, and from SDF and MOL text."""

from __future__ import annotations

import re
from operator import methodcaller
from typing import TYPE_CHECKING, Any

import numpy as np

from sklearn_mgk.graphs.structures.structure import Structure

if TYPE_CHECKING:
    from rdkit.Chem import Mol

_RECORD_END = re.compile(r"^\$\$\$\$.*\n?", re.MULTILINE)


def read_molecule(molecule: Mol) -> list[Structure]:
    """Read all conformers of an RDKit molecule; hydrogens without coordinates are not there.

    Parameters
    ----------
    molecule : rdkit.Chem.Mol
        The molecule.

    Returns
    -------
    list of Structure
        The conformers, with the formal charge as the attribute ``charge`` [e].

    Raises
    ------
    ValueError
        There is no conformer, or one of them is a drawing (2D).
    """
    conformers = list(molecule.GetConformers())
    if not conformers:
        raise ValueError(
            "the molecule has no conformer: make one, as with "
            "rdkit.Chem.AllChem.EmbedMolecule(Chem.AddHs(mol)), or use SmilesToGraphs"
        )
    flat = next((i for i, conformer in enumerate(conformers, 1) if not conformer.Is3D()), None)
    if flat is not None:
        raise ValueError(
            f"conformer {flat} is marked as two-dimensional, a drawing: embed the molecule, or, if "
            "these are positions in space, mark them (conformer.Set3D(True); in a MOL block '3D' "
            "at columns 21-22 of the second line)"
        )
    atoms = list(molecule.GetAtoms())
    numbers = list(map(methodcaller("GetAtomicNum"), atoms))
    charge = np.array(list(map(methodcaller("GetFormalCharge"), atoms)), dtype=np.int64)
    return [
        Structure(numbers, conformer.GetPositions(), attributes={"charge": charge})
        for conformer in conformers
    ]


def read_sdf(text: str) -> list[Structure]:
    """Read all records of an SDF file, or the one of a MOL file.

    Valences and aromaticity are not checked: only elements, charges and positions are used.

    Parameters
    ----------
    text : str
        The file.

    Returns
    -------
    list of Structure
        The records.

    Raises
    ------
    ValueError
        A record is not a MOL block; the message names it.
    ImportError
        RDKit is not installed.
    """
    records = [record for record in _RECORD_END.split(text) if record.strip()]
    return [_record(record, number) for number, record in enumerate(records, 1)]


def _record(block: str, number: int) -> Structure:
    """Return the structure of one MOL block."""
    chem, silent = _rdkit()
    with silent:
        molecule = chem.MolFromMolBlock(block, sanitize=False, removeHs=False)
    if molecule is None:
        raise ValueError(f"record {number} is not a MOL block")
    try:
        return read_molecule(molecule)[0]
    except ValueError as error:
        raise ValueError(f"record {number}: {error}") from None


def _rdkit() -> tuple[Any, Any]:
    """Return RDKit's chemistry module, and what keeps its log silent."""
    try:
        from rdkit import Chem, rdBase
    except ImportError as error:
        raise ImportError(
            "SDF and MOL files need RDKit: pip install 'sklearn-mgk[molecules]'"
        ) from error
    return Chem, rdBase.BlockLogs()
