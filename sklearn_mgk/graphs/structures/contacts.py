# SPDX-License-Identifier: BSD-3-Clause
"""From one structure to nodes and weighted edges, at the level of atoms or of residues."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sklearn_mgk.graphs.structures.adjacency import AdjacencyRule, HardCutoff, Tent
from sklearn_mgk.graphs.structures.neighbors import Pairs, neighbor_pairs
from sklearn_mgk.graphs.structures.residues import all_residues, alpha_carbons, nearest_pairs
from sklearn_mgk.graphs.structures.structure import Structure

# No bond is shorter (that of H2 is 0.74 angstrom). Atoms written twice, or in another unit than
# angstrom, lie closer.
OVERLAP = 0.4

# The usual definitions of a contact between residues [angstrom].
DEFAULT_RULES: dict[str, Callable[[], AdjacencyRule]] = {
    "atom": Tent,
    "c_alpha": lambda: HardCutoff(8.0),
    "nearest": lambda: HardCutoff(5.0),
}


@dataclass(frozen=True)
class Contacts:
    """Nodes and edges of one structure.

    Parameters
    ----------
    nodes : mapping of str to column
        Node attributes.
    pairs : Pairs
        The edges with their lengths.
    weight : ndarray of shape (n_edges,), float64
        Their weights, all positive.
    isolated : list of str
        Names of the nodes without an edge, empty for a structure of one node.
    """

    nodes: Mapping[str, Any]
    pairs: Pairs
    weight: NDArray[np.float64]
    isolated: list[str]

    def as_graph(self) -> dict[str, Any]:
        """Return the mapping that `sklearn_mgk.from_arrays` takes."""
        return {
            "edge_index": np.stack([self.pairs.i, self.pairs.j]),
            "edge_weight": self.weight,
            "nodes": self.nodes,
            "edges": {"length": self.pairs.length},
        }


def contacts(structure: Structure, rule: AdjacencyRule, level: str) -> Contacts:
    """Find the nodes and edges of a structure.

    Parameters
    ----------
    structure : Structure
        The atoms.
    rule : AdjacencyRule
        The weights of edges.
    level : {"atom", "c_alpha", "nearest"}
        What the nodes are: atoms, residues at their C-alpha atoms, or residues that are as far
        apart as their nearest atoms.

    Returns
    -------
    Contacts
        Nodes and edges.

    Raises
    ------
    ValueError
        Atoms overlap, the rule has no radius for an element, or it gives negative weights.
    """
    return {"atom": _of_atoms, "c_alpha": _of_alpha_carbons, "nearest": _of_residues}[level](
        structure, rule
    )


def _of_atoms(structure: Structure, rule: AdjacencyRule) -> Contacts:
    """Return atoms as nodes."""
    radii = rule.radii(structure.numbers, structure.n_atoms)
    reach = max(rule.reach(radii), OVERLAP)
    pairs = neighbor_pairs(structure.positions, reach, structure.lattice)
    _check_overlap(structure, pairs)
    nodes = {
        "element": structure.elements,
        "atomic_number": structure.numbers,
        **structure.attributes,
        "position": structure.positions,
    }
    return _weighed(rule, radii, pairs, nodes, structure.atom_label)


def _of_alpha_carbons(structure: Structure, rule: AdjacencyRule) -> Contacts:
    """Return residues as nodes, as far apart as their C-alpha atoms."""
    _check_overlap(structure, neighbor_pairs(structure.positions, OVERLAP))
    atoms, nodes = alpha_carbons(structure)
    radii = rule.radii(None, len(atoms))
    pairs = neighbor_pairs(structure.positions[atoms], rule.reach(radii))
    return _weighed(rule, radii, pairs, nodes, lambda node: f"residue {nodes['residue'][node]}")


def _of_residues(structure: Structure, rule: AdjacencyRule) -> Contacts:
    """Return residues as nodes, as far apart as their nearest atoms."""
    _check_overlap(structure, neighbor_pairs(structure.positions, OVERLAP))
    residue, nodes = all_residues(structure)
    radii = rule.radii(None, len(nodes["position"]))
    pairs = nearest_pairs(structure, residue, rule.reach(radii))
    return _weighed(rule, radii, pairs, nodes, lambda node: f"residue {nodes['residue'][node]}")


def _check_overlap(structure: Structure, pairs: Pairs) -> None:
    """Raise if two atoms, or an atom and an image, are at one place."""
    close = np.flatnonzero(pairs.length < OVERLAP)
    if len(close) == 0:
        return
    first = close[np.argmin(pairs.length[close])]
    i, j = (structure.atom_label(int(end[first])) for end in (pairs.i, pairs.j))
    more = f" ({len(close)} such pairs)" if len(close) > 1 else ""
    raise ValueError(
        f"{i} and {j} are {pairs.length[first]:.3g} angstrom apart, less than {OVERLAP}{more}: "
        "remove copies of atoms, and give coordinates in angstrom"
    )


def _weighed(
    rule: AdjacencyRule,
    radii: NDArray[np.float64],
    pairs: Pairs,
    nodes: Mapping[str, Any],
    label: Callable[[int], str],
) -> Contacts:
    """Weigh the pairs by the rule and keep those that it joins."""
    weight = rule.weights(radii[pairs.i], radii[pairs.j], pairs.length)
    bad = ~(np.isfinite(weight) & (weight >= 0))
    if bad.any():
        first = int(np.argmax(bad))
        raise ValueError(
            f"adjacency={rule!r} gives the weight {weight[first]} to {label(int(pairs.i[first]))} "
            f"and {label(int(pairs.j[first]))} at {pairs.length[first]:.3f} angstrom: weights must "
            "be finite and >= 0"
        )
    pairs, weight = pairs.where(weight > 0), weight[weight > 0]
    alone = np.ones(len(radii), dtype=bool)
    alone[pairs.i] = alone[pairs.j] = False
    isolated = [label(node) for node in np.flatnonzero(alone).tolist()] if len(radii) > 1 else []
    return Contacts(nodes, pairs, weight, isolated)
