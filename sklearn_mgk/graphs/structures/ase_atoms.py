# SPDX-License-Identifier: BSD-3-Clause
"""Structures from ASE atoms. ASE itself is not needed: only methods of the object are called."""

from __future__ import annotations

from typing import Any

from sklearn_mgk.graphs.structures.structure import Structure


def read_atoms(atoms: Any) -> list[Structure]:
    """Read an ``ase.Atoms`` object, with its cell where it is periodic.

    Parameters
    ----------
    atoms : ase.Atoms
        The atoms.

    Returns
    -------
    list of Structure
        The one structure.
    """
    return [
        Structure(
            atoms.get_atomic_numbers(),
            atoms.get_positions(),
            cell=atoms.cell.array,
            periodic=atoms.get_pbc(),
        )
    ]
