# SPDX-License-Identifier: BSD-3-Clause
"""Structures from XYZ text, with the lattice of extended XYZ."""

from __future__ import annotations

import re
from collections.abc import Iterator
from operator import itemgetter
from typing import Any

import numpy as np

from sklearn_mgk.graphs.structures.structure import Structure

_FIRST_WORDS = itemgetter(slice(4))
_ENTRY = re.compile(r"""(\w+)\s*=\s*(?:"([^"]*)"|'([^']*)'|(\S+))""")
_FLAGS = {"t": True, "true": True, "1": True, "f": False, "false": False, "0": False}


def read_xyz(text: str) -> list[Structure]:
    r"""Read all frames of an XYZ file.

    A frame is a line with the number of atoms, a comment, and a line for each atom: element (symbol
    or atomic number), x, y, z [angstrom]; what follows on the line is ignored. A comment with
    ``Lattice="..."`` (extended XYZ) makes the frame periodic, along the directions of ``pbc`` if it
    has that entry.

    Parameters
    ----------
    text : str
        The file.

    Returns
    -------
    list of Structure
        The frames.

    Raises
    ------
    ValueError
        The text is not of this form; the message names the line.

    Examples
    --------
    >>> read_xyz("2\n\nC 0 0 0\nO 0 0 1.13\n")
    [Structure(n_atoms=2, formula='CO')]
    """
    lines = text.splitlines()
    last = len(lines)
    while last and not lines[last - 1].strip():
        last -= 1
    return list(_frames(lines, last))


def _frames(lines: list[str], last: int) -> Iterator[Structure]:
    """Cut the lines before `last` into frames."""
    start = 0
    while start < last:
        n = _count(lines[start], start + 1)
        if start + 2 + n > last:
            raise ValueError(
                f"line {start + 1} announces {n} atoms, but only {max(last - start - 2, 0)} lines "
                "with atoms follow: the file is cut off, or is no XYZ file"
            )
        try:
            yield _frame(lines[start + 1], lines[start + 2 : start + 2 + n], start + 3)
        except ValueError as error:
            raise ValueError(f"frame of line {start + 1}: {error}") from None
        start += n + 2


def _count(line: str, number: int) -> int:
    """Return the number of atoms that the first line of a frame states."""
    if not line.strip().isdecimal() or int(line) == 0:
        raise ValueError(
            f"line {number} should be the number of atoms of a frame, at least 1, but is "
            f"{line[:60]!r}"
        )
    return int(line)


def _frame(comment: str, lines: list[str], first: int) -> Structure:
    """Return the structure of the lines with atoms; `first` is the number of their first line."""
    entries = {key: a or b or c for key, a, b, c in _ENTRY.findall(comment)}
    _check_properties(entries)
    table = np.array(list(map(_FIRST_WORDS, map(str.split, lines))), dtype=object)
    try:
        elements, positions = table[:, 0], table[:, 1:].astype(np.float64).reshape(-1, 3)
    except (ValueError, IndexError):
        raise _bad_line(lines, first) from None
    return Structure(elements, positions, **_lattice(entries))


def _bad_line(lines: list[str], first: int) -> ValueError:
    """Return the error that names the first line that is no atom."""
    number, line = next(row for row in enumerate(lines, first) if not _is_atom(row[1]))
    return ValueError(
        f"line {number} should be an element and three coordinates, but is {line[:60]!r}"
    )


def _is_atom(line: str) -> bool:
    """Return whether a line holds an element and three numbers."""
    try:
        return len(list(map(float, line.split()[1:4]))) == 3
    except ValueError:
        return False


def _check_properties(entries: dict[str, str]) -> None:
    """Raise if extended XYZ says that the first columns are others."""
    properties = entries.get("Properties", "species:S:1:pos:R:3")
    if not properties.startswith(("species:S:1:pos:R:3", "Z:I:1:pos:R:3")):
        raise ValueError(
            f"its columns are {properties!r}, but elements and positions must come first: read the "
            "file with ase.io.read and pass the Atoms"
        )


def _lattice(entries: dict[str, str]) -> dict[str, Any]:
    """Return cell and periodic directions, if the comment states a lattice."""
    if "Lattice" not in entries:
        return {}
    try:
        cell = np.array(entries["Lattice"].split(), dtype=np.float64).reshape(3, 3)
        flags = entries.get("pbc", "T T T").lower().split()
        return {"cell": cell, "periodic": np.array([_FLAGS[flag] for flag in flags])}
    except (ValueError, KeyError):
        raise ValueError(
            f"Lattice={entries['Lattice']!r} with pbc={entries.get('pbc', 'T T T')!r} is no "
            "lattice: nine numbers and three of T, F are needed"
        ) from None
