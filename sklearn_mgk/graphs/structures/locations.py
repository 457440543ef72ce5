# SPDX-License-Identifier: BSD-3-Clause
"""Choice among the alternate locations of atoms."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray


def runs(columns: Mapping[str, NDArray], names: Sequence[str]) -> NDArray[np.int64]:
    """Return the number of each row's run, in which the named columns stay the same.

    Examples
    --------
    >>> runs({"chain": np.array(["A", "A", "B", "A"])}, ["chain"]).tolist()
    [0, 0, 1, 2]
    """
    n = len(columns[names[0]])
    changes = np.zeros(n, dtype=np.int64)
    for name in names:
        changes[1:] |= columns[name][1:] != columns[name][:-1]
    return np.cumsum(changes)


def one_location(
    atoms: Mapping[str, NDArray], place: NDArray[np.int64], choice: str
) -> NDArray[np.bool_]:
    """Find the atoms of one alternate location.

    Atoms without a letter are always kept. A letter as choice keeps the atoms of that letter.
    Otherwise the letters of each residue are ranked, by where they first occur or by their mean
    occupancy, and each atom is taken from the best letter that has it. Where the letters are
    different residues (a point mutation in part of the crystal), that of the best letter stays.

    Parameters
    ----------
    atoms : mapping of str to ndarray of shape (n_atoms,)
        The columns "altloc" ("" for none), "occupancy", "residue_name" and "atom_name".
    place : ndarray of shape (n_atoms,), int64
        The number of each atom's position in the chain.
    choice : str
        "first", "highest" or a letter.

    Returns
    -------
    ndarray of shape (n_atoms,), bool
        True for the atoms that stay.
    """
    letters = atoms["altloc"]
    plain = letters == ""
    if plain.all() or choice not in ("first", "highest"):
        return plain | (letters == choice)
    rank = _ranks(place, letters, atoms["occupancy"], choice)
    residue = _codes(atoms["residue_name"])
    best = _first_of_each(place, np.where(plain, len(place), rank))
    mutated = ~plain & (residue != residue[best][place])
    group = _joint(_joint(place, residue), _codes(atoms["atom_name"]))
    chosen = np.zeros(len(place), dtype=bool)
    chosen[_first_of_each(group, rank)] = True
    return plain | (chosen & ~mutated)


def _ranks(
    place: NDArray, letters: NDArray[np.str_], occupancy: NDArray, choice: str
) -> NDArray[np.int64]:
    """Rank the letters of each place, the best lowest; -1 for atoms without a letter."""
    key = _joint(place, _codes(letters))
    _, first, group = np.unique(key, return_index=True, return_inverse=True)
    mean = np.bincount(group, occupancy) / np.bincount(group)
    score = np.zeros(len(first)) if choice == "first" else -mean.round(4)
    order = np.lexsort((first, score))
    rank = np.empty(len(first), dtype=np.int64)
    rank[order] = np.arange(len(first))
    return np.where(letters == "", -1, rank[group])


def _first_of_each(group: NDArray[np.int64], rank: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the row of least rank of each group, the first if several are equal."""
    order = np.lexsort((rank, group))
    return order[np.flatnonzero(np.diff(group[order], prepend=-1))]


def _codes(values: NDArray) -> NDArray[np.int64]:
    """Return numbers for distinct values."""
    return np.unique(values, return_inverse=True)[1].astype(np.int64)


def _joint(a: NDArray[np.int64], b: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return numbers for distinct pairs of numbers."""
    return a * (b.max() + 1) + b
