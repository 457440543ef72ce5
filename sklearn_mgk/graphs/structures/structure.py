# SPDX-License-Identifier: BSD-3-Clause
"""Structure: elements and positions, whatever they were read from."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sklearn_mgk.graphs.columns import ColumnError, as_column, take
from sklearn_mgk.graphs.structures.elements import SYMBOLS, UnknownElementError, atomic_numbers

RESERVED = ("element", "atomic_number", "position")


@dataclass(frozen=True, eq=False, repr=False)
class Structure:
    """Atoms in space: what every source of structures is read into.

    It has no length and no items, so that NumPy and scikit-learn keep it whole.

    Parameters
    ----------
    elements : array-like of shape (n_atoms,), str or int
        Symbols or atomic numbers; ``"D"`` and ``"T"`` are hydrogen. ``"X"``, an atom of unknown
        element, is an error except in residues named ``"UNX"``, by which PDB files declare one.
    positions : array-like of shape (n_atoms, 3)
        Coordinates [Å].
    cell : array-like of shape (3, 3), default=None
        Cell vectors, one a row [Å]; those along directions that are not periodic are ignored.
    periodic : bool or sequence of 3 bool, default=False
        Along which cell vectors the structure repeats.
    attributes : mapping of str to column, default=None
        Further attributes, one value an atom; they become node attributes. At the level of residues
        ``"residue"`` (names that differ between residues that follow each other), ``"atom_name"``,
        ``"residue_name"``, ``"chain"`` and ``"secondary_structure"`` have a meaning.
    name : str, default=""
        Where the structure comes from, for messages.

    Raises
    ------
    ValueError
        There are no atoms, an element is unknown, a coordinate is not finite, or shapes do not fit.

    Examples
    --------
    >>> water = Structure(["O", "H", "H"], [[0, 0, 0.12], [0, 0.76, -0.48], [0, -0.76, -0.48]])
    >>> water
    Structure(n_atoms=3, formula='H2O')
    """

    elements: ArrayLike
    positions: ArrayLike
    cell: ArrayLike | None = None
    periodic: Any = False
    attributes: Mapping[str, Any] | None = None
    name: str = ""
    numbers: NDArray[np.int64] = field(init=False)

    def __post_init__(self) -> None:
        """Convert to arrays and check them."""
        columns = {name: as_column_of(self, name) for name in self.attributes or {}}
        numbers = self._numbers(columns)
        values = {
            "numbers": numbers,
            "elements": SYMBOLS[numbers],
            "attributes": columns,
            "positions": _positions(self.positions, len(numbers)),
            "periodic": _periodic(self.periodic),
        }
        for name, value in values.items():
            object.__setattr__(self, name, value)
        object.__setattr__(self, "cell", _cell(self.cell, self.periodic))
        self._check()

    def _numbers(self, columns: Mapping[str, Any]) -> NDArray[np.int64]:
        """Return the atomic numbers."""
        elements = np.asarray(self.elements)
        if elements.ndim != 1:
            raise ValueError(f"elements must be one symbol an atom, got shape {elements.shape}")
        try:
            return atomic_numbers(elements)
        except UnknownElementError as error:
            raise ValueError(f"{error}{_named(columns, error.atom)}") from None

    def _check(self) -> None:
        """Raise unless there are atoms at finite positions."""
        if self.n_atoms == 0:
            raise ValueError("there are no atoms")
        self._check_elements()
        bad = ~np.isfinite(self.positions).all(axis=1)
        if bad.any():
            atom = int(np.argmax(bad))
            raise ValueError(
                f"{self.atom_label(atom)} has the position {self.positions[atom].tolist()}: "
                "coordinates must be finite"
            )

    def _check_elements(self) -> None:
        """Raise for an atom without an element that is not declared as unknown."""
        residue = self.attributes.get("residue_name", np.zeros(self.n_atoms, dtype="U1"))
        unknown = (self.numbers == 0) & (residue != "UNX")
        if unknown.any():
            raise ValueError(
                f"{self.atom_label(int(np.argmax(unknown)))} has no known element: write its "
                "symbol, or remove it"
            )

    @property
    def n_atoms(self) -> int:
        """Number of atoms."""
        return len(self.numbers)

    @property
    def lattice(self) -> NDArray[np.float64] | None:
        """The vectors by which the structure repeats, shape (n_periodic, 3), or None."""
        return self.cell[self.periodic] if self.periodic.any() else None

    def select(self, atoms: NDArray) -> Structure:
        """Return the structure of the chosen atoms.

        Parameters
        ----------
        atoms : ndarray of int, or of bool with shape (n_atoms,)
            Numbers of atoms, or a mask.

        Returns
        -------
        Structure
            The atoms, in the order given.
        """
        atoms = np.arange(self.n_atoms)[atoms]
        return Structure(
            self.elements[atoms],
            self.positions[atoms],
            self.cell,
            self.periodic,
            {name: take(column, atoms) for name, column in self.attributes.items()},
            self.name,
        )

    def atom_label(self, atom: int) -> str:
        """Name an atom for a message.

        Parameters
        ----------
        atom : int
            Its number.

        Returns
        -------
        str
            Number, element, and residue and name if there are any.
        """
        return f"atom {atom} ({self.elements[atom]}{_named(self.attributes, atom, ', ')})"

    def __repr__(self) -> str:
        """Return the number of atoms and the sum formula in Hill's order."""
        symbols, counts = np.unique(self.elements, return_counts=True)
        count = dict(zip(symbols.tolist(), counts.tolist(), strict=True))
        first = [symbol for symbol in ("C", "H") if symbol in count and "C" in count]
        order = first + [symbol for symbol in count if symbol not in first]
        formula = "".join(
            f"{symbol}{count[symbol] if count[symbol] > 1 else ''}" for symbol in order
        )
        return f"Structure(n_atoms={self.n_atoms}, formula={formula!r})"


def as_column_of(structure: Structure, name: str) -> Any:
    """Return an attribute as a column with one row an atom."""
    if name in RESERVED:
        raise ValueError(f"the attribute {name!r} follows from elements and positions: rename it")
    try:
        column = as_column(structure.attributes[name])
    except ColumnError as error:
        raise ValueError(f"attribute {name!r}, {error}") from None
    if len(column) != len(structure.elements):
        raise ValueError(
            f"attribute {name!r} has {len(column)} values for {len(structure.elements)} atoms"
        )
    return column


def _named(columns: Mapping[str, Any], atom: int, before: str = ": ") -> str:
    """Return residue and name of an atom, "" if it has neither."""
    names = [str(columns[name][atom]) for name in ("residue", "atom_name") if name in columns]
    return before + " ".join(names) if names else ""


def _positions(positions: ArrayLike, n: int) -> NDArray[np.float64]:
    """Return the positions as an array of shape (n, 3)."""
    array = np.asarray(positions, dtype=np.float64)
    array = array.reshape(n, 3) if array.size == n == 0 else array
    if array.shape != (n, 3):
        raise ValueError(f"positions must have shape ({n}, 3), got {array.shape}")
    return array


def _periodic(periodic: Any) -> NDArray[np.bool_]:
    """Return three booleans."""
    array = np.asarray(periodic)
    if array.dtype != bool or array.shape not in ((), (3,)):
        raise ValueError(f"periodic must be a boolean or three, got {periodic!r}")
    return np.broadcast_to(array, 3)


def _cell(cell: ArrayLike | None, periodic: NDArray[np.bool_]) -> NDArray[np.float64] | None:
    """Return the cell, or raise if it lacks a vector along a periodic direction."""
    if not periodic.any():
        return None
    array = np.zeros((3, 3)) if cell is None else np.asarray(cell, dtype=np.float64)
    if array.shape != (3, 3) or not np.isfinite(array).all():
        raise ValueError(f"the cell must be three finite vectors, got {array.tolist()}")
    lattice = array[periodic]
    if np.linalg.matrix_rank(lattice) < len(lattice):
        raise ValueError(
            f"the structure is periodic along {periodic.tolist()}, but the cell "
            f"{array.tolist()} has no independent vectors there: set the cell, or periodic=False"
        )
    return array
