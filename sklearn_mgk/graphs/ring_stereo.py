# SPDX-License-Identifier: BSD-3-Clause
"""Relative configuration of the stereocenters of a ring, as labels of its bonds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rdkit.Chem import Atom, Mol

# Stands for the implicit hydrogen or lone pair, which RDKit counts as the last neighbor.
_IMPLICIT = -1


def ring_stereo(molecule: Mol) -> dict[int, str]:
    """Label ring bonds with the relative configuration of the stereocenters on either side.

    A stereocenter of a ring has two substituents outside this ring. The senior one has the greater
    atomic number, then fewer hydrogens, then the greater canonical rank in the constitution; an
    implicit hydrogen or a lone pair is junior. It lies above or below the ring. Between two
    stereocenters that follow each other along the ring, every bond is ``"cis"`` if their senior
    substituents lie on the same side, else ``"trans"``. A bond of several rings for which they
    differ is ``"cis/trans"``.

    Turning the ring over, or walking along it the other way, swaps above and below for all its
    stereocenters. So the label does not depend on the order of the atoms, and it is the same in
    mirror images.

    Parameters
    ----------
    molecule : rdkit.Chem.Mol
        A sanitized molecule with assigned stereochemistry.

    Returns
    -------
    dict of int to str
        The label of each bond that lies between two stereocenters of a ring.

    Examples
    --------
    >>> from rdkit import Chem
    >>> ring_stereo(Chem.MolFromSmiles("F[C@H]1C[C@@H](F)C1"))
    {1: 'cis', 2: 'cis', 4: 'cis', 5: 'cis'}
    >>> ring_stereo(Chem.MolFromSmiles("F[C@H]1C[C@H](F)C1"))
    {1: 'trans', 2: 'trans', 4: 'trans', 5: 'trans'}
    """
    seniority = _seniority(molecule)
    found: dict[int, set[str]] = {}
    rings = molecule.GetRingInfo()
    for atoms, bonds in zip(rings.AtomRings(), rings.BondRings(), strict=True):
        sides = _sides(molecule, atoms, seniority)
        places = list(sides) if len(sides) > 1 else []
        for start, stop in zip(places, places[1:] + places[:1], strict=True):
            label = "cis" if sides[start] == sides[stop] else "trans"
            for place in range(start, stop if stop > start else stop + len(atoms)):
                found.setdefault(bonds[place % len(atoms)], set()).add(label)
    return {bond: "/".join(sorted(labels)) for bond, labels in sorted(found.items())}


def _seniority(molecule: Mol) -> dict[int, tuple[int, ...]]:
    """Return what substituents are compared by, equal for atoms of equivalent constitution."""
    from rdkit import Chem

    ranks = Chem.CanonicalRankAtoms(
        molecule, breakTies=False, includeChirality=False, includeAtomMaps=False
    )
    keys = {
        index: (atom.GetAtomicNum(), -atom.GetTotalNumHs(True), rank)
        for index, (atom, rank) in enumerate(zip(molecule.GetAtoms(), ranks, strict=True))
    }
    return {**keys, _IMPLICIT: (0, 0, 0)}


def _sides(
    molecule: Mol, ring: Sequence[int], seniority: Mapping[int, tuple[int, ...]]
) -> dict[int, bool]:
    """Return the side of the senior substituent at each stereocenter, by place in the ring."""
    sides = {}
    for place, index in enumerate(ring):
        atom = molecule.GetAtomWithIdx(index)
        if int(atom.GetChiralTag()) in (1, 2):  # clockwise or counterclockwise
            before, after = ring[place - 1], ring[(place + 1) % len(ring)]
            side = _side(atom, before, after, seniority)
            if side is not None:
                sides[place] = side
    return sides


def _side(
    atom: Atom, before: int, after: int, seniority: Mapping[int, tuple[int, ...]]
) -> bool | None:
    """Return the side of the senior substituent, or None if the substituents are alike.

    The chiral tag gives the handedness of the neighbors in their stored order. Sorting them into
    (before, after, senior, junior) turns it over once for each exchange.
    """
    neighbors = [neighbor.GetIdx() for neighbor in atom.GetNeighbors()]
    neighbors += [_IMPLICIT] * (4 - len(neighbors))
    outside = [index for index in neighbors if index not in (before, after)]
    junior, senior = sorted(outside, key=seniority.__getitem__)
    if seniority[junior] == seniority[senior]:
        return None
    order = [neighbors.index(index) for index in (before, after, senior, junior)]
    odd = sum(order[i] > order[j] for i in range(4) for j in range(i + 1, 4)) % 2
    return (int(atom.GetChiralTag()) == 1) != bool(odd)
