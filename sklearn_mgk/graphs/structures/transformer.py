# SPDX-License-Identifier: BSD-3-Clause
"""Graphs of structures: the function and the transformer."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any, Literal

from sklearn.utils import Tags

from sklearn_mgk.graphs.arrays import from_arrays
from sklearn_mgk.graphs.batch import GraphBatch
from sklearn_mgk.graphs.inputs import as_rows
from sklearn_mgk.graphs.structures.adjacency import AdjacencyRule
from sklearn_mgk.graphs.structures.contacts import DEFAULT_RULES, Contacts, contacts
from sklearn_mgk.graphs.structures.gemmi_files import Selection
from sklearn_mgk.graphs.structures.sources import VERSIONS, WHAT, all_models, name_of
from sklearn_mgk.graphs.structures.structure import Structure
from sklearn_mgk.graphs.transformer import GraphTransformer

_MAX_LISTED = 5


class StructuresToGraphs(GraphTransformer):
    """Transformer from three-dimensional structures to graphs.

    Parameters
    ----------
    level : {"atom", "residue"}, default="atom"
        What the nodes are.
    adjacency : AdjacencyRule, default=None
        Which nodes are joined, and with what weight. None is ``Tent()`` for atoms,
        ``HardCutoff(8.0)`` for residues by C-alpha atoms, ``HardCutoff(5.0)`` by nearest atoms.
    contact : {"c_alpha", "nearest"}, default="c_alpha"
        Between which points the distance of two residues is taken: their C-alpha atoms, or their
        nearest atoms. Not used at the level of atoms.
    hydrogens : bool, default=True
        Whether the hydrogens of a structure are kept, from whatever source. None are ever added.
    waters : bool, default=False
        Whether water molecules of PDB and mmCIF files are kept.
    chain : str or sequence of str, default=None
        The chains of PDB and mmCIF files to read, by their author's names; None means all.
    model : int, default=1
        Which model of a PDB or mmCIF file, or conformer of an RDKit molecule, counted from 1.
    altloc : str, default="first"
        Which alternate location of atoms in PDB and mmCIF files: "first" (in the file), "highest"
        (occupancy), or a letter.

    See Also
    --------
    from_structures : The same as a function; says what a row may be and lists the attributes.

    Examples
    --------
    >>> from sklearn_mgk import Structure, StructuresToGraphs, Tent
    >>> carbon_monoxide = Structure(["C", "O"], [[0, 0, 0], [0, 0, 1.13]])
    >>> StructuresToGraphs(adjacency=Tent(order=2)).fit_transform([carbon_monoxide])
    GraphBatch(n_graphs=1, n_nodes=2, n_edges=1, nodes=['element', 'atomic_number', 'position'], \
edges=['length'])
    """

    def __init__(
        self,
        *,
        level: Literal["atom", "residue"] = "atom",
        adjacency: AdjacencyRule | None = None,
        contact: Literal["c_alpha", "nearest"] = "c_alpha",
        hydrogens: bool = True,
        waters: bool = False,
        chain: str | Sequence[str] | None = None,
        model: int = 1,
        altloc: str = "first",
    ):
        self.level = level
        self.adjacency = adjacency
        self.contact = contact
        self.hydrogens = hydrogens
        self.waters = waters
        self.chain = chain
        self.model = model
        self.altloc = altloc

    def transform(self, X: Any) -> GraphBatch:
        """Return the graphs.

        Parameters
        ----------
        X : sequence of str, Path, Structure, ase.Atoms, rdkit.Chem.Mol or gemmi.Structure
            One structure a row.

        Returns
        -------
        GraphBatch
            One graph a row.
        """
        return self._graphs(X)

    def _graphs(self, X: Any) -> GraphBatch:
        """Return the graphs; apart from `transform`, which scikit-learn wraps."""
        self._check_parameters()
        found, isolated, problems = [], {}, []
        for row, source in enumerate(as_rows(X, WHAT)):
            name = name_of(source)
            where = f"row {row} ({name})" if name else f"row {row}"
            try:
                found.append(self._contacts(source))
                isolated[where] = found[-1].isolated
            except (ValueError, TypeError, OSError) as error:
                problems.append(f"{where}: {error}")
        if problems:
            raise ValueError(f"{_listed(problems, 'rows')}. Correct or remove these rows")
        _warn_of_isolated({where: nodes for where, nodes in isolated.items() if nodes})
        return from_arrays([one.as_graph() for one in found])

    def _contacts(self, source: Any) -> Contacts:
        """Return nodes and edges of one row."""
        structure = self._one(*all_models(source, self._selection))
        if not self.hydrogens:
            heavy = structure.numbers != 1
            if not heavy.any():
                raise ValueError("all atoms are hydrogen: hydrogens=True keeps them")
            structure = structure.select(heavy)
        return contacts(structure, self._rule, self._mode)

    def _one(self, structures: list[Structure], kind: str) -> Structure:
        """Return the structure that a row stands for."""
        n = len(structures)
        if kind in VERSIONS:
            if self.model > n:
                raise ValueError(f"model={self.model}, but the number of {kind}s is {n}")
            return structures[self.model - 1]
        if n > 1:
            raise ValueError(
                f"it holds {n} {kind}s, but a row is one structure: pass read_structures(path), a "
                "list of all of them"
            )
        return structures[0]

    @property
    def _selection(self) -> Selection:
        """The options of files as one object."""
        return Selection(self.chain, self.altloc, self.waters)

    @property
    def _mode(self) -> str:
        """What the nodes are and where they are."""
        return "atom" if self.level == "atom" else self.contact

    @property
    def _rule(self) -> AdjacencyRule:
        """The adjacency rule, given or the default."""
        return DEFAULT_RULES[self._mode]() if self.adjacency is None else self.adjacency

    def __sklearn_tags__(self) -> Tags:
        """Say that rows may be strings: paths."""
        tags = super().__sklearn_tags__()
        tags.input_tags.string = True
        return tags

    def _check_parameters(self) -> None:
        for name, known in (("level", ("atom", "residue")), ("contact", ("c_alpha", "nearest"))):
            if getattr(self, name) not in known:
                raise ValueError(f"{name} must be one of {known}, got {getattr(self, name)!r}")
        if not isinstance(self.hydrogens, bool):
            raise ValueError(f"hydrogens must be True or False, got {self.hydrogens!r}")
        if isinstance(self.model, bool) or not isinstance(self.model, int) or self.model < 1:
            raise ValueError(f"model must be an integer >= 1, got {self.model!r}")
        if self.adjacency is not None and not isinstance(self.adjacency, AdjacencyRule):
            raise TypeError(
                f"adjacency must be a rule such as Tent(), got {self.adjacency!r}: wrap a function "
                "of both radii and the distance as AdjacencyFunction(function, cutoff)"
            )
        self._selection.check()
        self._rule.check()


def from_structures(
    X: Any,
    *,
    level: Literal["atom", "residue"] = "atom",
    adjacency: AdjacencyRule | None = None,
    contact: Literal["c_alpha", "nearest"] = "c_alpha",
    hydrogens: bool = True,
    waters: bool = False,
    chain: str | Sequence[str] | None = None,
    model: int = 1,
    altloc: str = "first",
) -> GraphBatch:
    r"""Make a graph of each three-dimensional structure: what is close is joined.

    A row is

    - the path of a file, by its suffix: ``.pdb``, ``.ent`` (PDB), ``.cif``, ``.mmcif`` (mmCIF),
      ``.xyz`` (also extended), ``.sdf``, ``.mol``, and each of these with ``.gz``;
    - a `Structure`, an ``ase.Atoms``, an RDKit molecule with conformers, or a ``gemmi.Structure``.

    A row is one structure and makes one graph. Of the models of a PDB or mmCIF file and of the
    conformers of a molecule, `model` chooses one. A file of several XYZ frames or SDF records is an
    error: pass the list that `read_structures` returns.

    Unit cell and symmetry of PDB and mmCIF files are ignored. ASE atoms and extended XYZ with a
    lattice are periodic: every image within the cutoff makes an edge with its own length, so that
    two nodes may have several parallel edges. An atom and its own images at the lattice vectors T
    and -T make two self-loops, one for each direction in which a walk can go; a supercell then has
    the same normalized kernel values as the primitive cell.

    Parameters
    ----------
    X : sequence of str, Path, Structure, ase.Atoms, rdkit.Chem.Mol or gemmi.Structure
        The structures, also mixed: a list, tuple, 1-D or (n, 1) array, Series or one-column
        DataFrame.
    level : {"atom", "residue"}, default="atom"
        What the nodes are.
    adjacency : AdjacencyRule, default=None
        Which nodes are joined, and with what weight. None is ``Tent()`` for atoms,
        ``HardCutoff(8.0)`` for residues by C-alpha atoms, ``HardCutoff(5.0)`` by nearest atoms.
    contact : {"c_alpha", "nearest"}, default="c_alpha"
        Between which points the distance of two residues is taken: their C-alpha atoms (residues
        without one are left out), or their nearest atoms (any residue, ligands and ions included).
    hydrogens : bool, default=True
        Whether the hydrogens of a structure are kept, from whatever source. None are ever added.
    waters : bool, default=False
        Whether water molecules of PDB and mmCIF files are kept.
    chain : str or sequence of str, default=None
        The chains of PDB and mmCIF files to read, by their author's names; None means all.
    model : int, default=1
        Which model of a PDB or mmCIF file, or conformer of an RDKit molecule, counted from 1.
    altloc : str, default="first"
        Which alternate location of atoms in PDB and mmCIF files: "first" (in the file), "highest"
        (occupancy), or a letter. Atoms without a letter are always kept.

    Returns
    -------
    GraphBatch
        One graph a row. Edges have the weight of the rule and the attribute ``length`` (float):
        distance [Å]. Nodes have ``position`` (3 floats) [Å] and

        - at the level of atoms ``element`` (str) and ``atomic_number`` (int); from PDB and mmCIF
          files also ``atom_name``, ``residue_name``, ``chain``, ``residue`` (``"A/GLY 12B"``:
          chain, name, number and insertion code), ``secondary_structure`` (str), and ``charge``
          (int): formal charge [e], which SDF files and RDKit molecules give too;
        - at the level of residues ``residue_name``, ``chain``, ``residue`` and
          ``secondary_structure`` (str): ``"helix"``, ``"strand"`` or ``"coil"`` as the file states
          it, ``"unknown"`` for all residues of a file that states none.

    Raises
    ------
    ValueError
        Some rows are no structures, or have atoms closer than 0.4 Å, coordinates that are not
        finite, unknown elements, or weights that are negative or not finite. The message lists
        them; no row is ever dropped. Or a parameter has no meaning.
    TypeError
        X is a single structure, or `adjacency` is no rule.
    ImportError
        The library that a file needs is not installed.

    Warns
    -----
    UserWarning
        Some nodes have no neighbor within the reach of the rule. They are kept, as nodes without
        edges. A structure of one node is no reason to warn.

    See Also
    --------
    read_structures : Read all models or frames of one file.
    Tent, CompactBell, Gaussian, HardCutoff, AdjacencyFunction : The rules.

    Examples
    --------
    >>> from sklearn_mgk import HardCutoff, Structure, from_structures
    >>> water = Structure(["O", "H", "H"], [[0, 0, 0.12], [0, 0.76, -0.48], [0, -0.76, -0.48]])
    >>> batch = from_structures([water], adjacency=HardCutoff(1.2))
    >>> batch.nodes["element"].tolist(), batch.edges["length"].round(2).tolist()
    (['O', 'H', 'H'], [0.97, 0.97])
    """
    transformer = StructuresToGraphs(
        level=level,
        adjacency=adjacency,
        contact=contact,
        hydrogens=hydrogens,
        waters=waters,
        chain=chain,
        model=model,
        altloc=altloc,
    )
    return transformer._graphs(X)


def _listed(entries: list[str], what: str) -> str:
    """Join the first entries of a list, and say how many more there are."""
    more = len(entries) - _MAX_LISTED
    return "; ".join(entries[:_MAX_LISTED]) + (f"; and {more} more {what}" if more > 0 else "")


def _warn_of_isolated(isolated: dict[str, list[str]]) -> None:
    """Say which nodes have no neighbor."""
    if isolated:
        entries = [f"{where}: {_listed(nodes, 'nodes')}" for where, nodes in isolated.items()]
        warnings.warn(
            f"nodes without a neighbor: {_listed(entries, 'rows')}. They have no edges; an "
            "adjacency rule that reaches farther would join them",
            UserWarning,
            stacklevel=4,
        )
