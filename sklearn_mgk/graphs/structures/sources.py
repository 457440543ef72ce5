# SPDX-License-Identifier: BSD-3-Clause
"""One front door for all sources: files by their suffix, objects by their class."""

from __future__ import annotations

import gzip
import os
import zlib
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from sklearn_mgk.graphs.structures.ase_atoms import read_atoms
from sklearn_mgk.graphs.structures.gemmi_files import Selection, read_gemmi, read_mmcif, read_pdb
from sklearn_mgk.graphs.structures.molfiles import read_molecule, read_sdf
from sklearn_mgk.graphs.structures.structure import Structure
from sklearn_mgk.graphs.structures.xyz import read_xyz

WHAT = "paths of files, Structures, ase.Atoms or RDKit molecules with conformers"

# What reads a row, and what it calls the several structures that a row may hold. Models and
# conformers are versions of one structure, of which one is chosen; frames and records are not.
VERSIONS = ("model", "conformer")
_FILES: dict[str, tuple[Callable[[str, Selection], list[Structure]], str]] = {
    ".pdb": (read_pdb, "model"),
    ".ent": (read_pdb, "model"),
    ".cif": (read_mmcif, "model"),
    ".mmcif": (read_mmcif, "model"),
    ".xyz": (lambda text, _: read_xyz(text), "frame"),
    ".sdf": (lambda text, _: read_sdf(text), "record"),
    ".mol": (lambda text, _: read_sdf(text), "record"),
}
# Objects by the full name of their class, so that no library is imported to recognise them.
_OBJECTS: dict[str, tuple[Callable[[Any, Selection], list[Structure]], str]] = {
    f"{Structure.__module__}.{Structure.__qualname__}": (lambda row, _: [row], "frame"),
    "ase.atoms.Atoms": (lambda atoms, _: read_atoms(atoms), "frame"),
    "rdkit.Chem.rdchem.Mol": (lambda molecule, _: read_molecule(molecule), "conformer"),
    "gemmi.Structure": (read_gemmi, "model"),
}


def all_models(source: Any, selection: Selection) -> tuple[list[Structure], str]:
    """Read everything that a row holds.

    Parameters
    ----------
    source : str, Path or object
        A row of X.
    selection : Selection
        Which atoms of PDB and mmCIF files to read.

    Returns
    -------
    structures : list of Structure
        Its models, frames, records or conformers.
    kind : {"model", "conformer", "frame", "record"}
        What they are.

    Raises
    ------
    TypeError, ValueError, OSError, ImportError
        It cannot be read.
    """
    if isinstance(source, (str, os.PathLike)):
        return _file(Path(source), selection)
    names = [f"{cls.__module__}.{cls.__qualname__}" for cls in type(source).__mro__]
    known = next((name for name in names if name in _OBJECTS), None)
    if known is None:
        raise TypeError(f"{type(source).__name__} is no type of structure: give {WHAT}")
    read, kind = _OBJECTS[known]
    return read(source, selection), kind


def _file(path: Path, selection: Selection) -> tuple[list[Structure], str]:
    """Read a file."""
    suffixes = [suffix.lower() for suffix in path.suffixes]
    packed = suffixes[-1:] == [".gz"]
    suffix = suffixes[-2 if packed else -1] if len(suffixes) > packed else ""
    if suffix not in _FILES:
        raise ValueError(
            f"the file name does not end in {', '.join(_FILES)} (or that and .gz): rename it"
        )
    read, kind = _FILES[suffix]
    found = read(_text(path, packed), selection)
    if not found:
        raise ValueError("the file has no structure in it")
    return found, kind


def _text(path: Path, packed: bool) -> str:
    """Return the text of a file."""
    try:
        data = path.read_bytes()
        data = gzip.decompress(data) if packed else data
    except (EOFError, gzip.BadGzipFile, zlib.error) as error:
        raise ValueError(f"the gzip file is cut off or damaged ({error})") from None
    return data.decode("utf-8", "replace").replace("\r\n", "\n")


def read_structures(
    source: Any,
    *,
    chain: str | Sequence[str] | None = None,
    altloc: str = "first",
    waters: bool = False,
) -> list[Structure]:
    r"""Read all models, frames, records or conformers of one file or object.

    The structures are rows for `from_structures`, which takes one structure a row.

    Parameters
    ----------
    source : str, Path, rdkit.Chem.Mol, gemmi.Structure, ase.Atoms or Structure
        What to read; files by their suffix, as in `from_structures`.
    chain : str or sequence of str, default=None
        The chains of a PDB or mmCIF file to read, by their author's names; None means all.
    altloc : str, default="first"
        Which alternate location of atoms in a PDB or mmCIF file: "first", "highest" (occupancy) or
        a letter.
    waters : bool, default=False
        Whether water molecules of a PDB or mmCIF file are read.

    Returns
    -------
    list of Structure
        At least one, in the order of the file.

    Raises
    ------
    ValueError
        The file cannot be read; the message names it.

    See Also
    --------
    from_structures : Make graphs of many files.

    Examples
    --------
    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     path = Path(folder) / "two.xyz"
    ...     n_written = path.write_text("1\n\nHe 0 0 0\n2\n\nC 0 0 0\nO 0 0 1.13\n")
    ...     frames = read_structures(path)
    >>> frames
    [Structure(n_atoms=1, formula='He'), Structure(n_atoms=2, formula='CO')]
    """
    selection = Selection(chain, altloc, waters)
    selection.check()
    name = name_of(source)
    try:
        found, kind = all_models(source, selection)
    except (ValueError, OSError) as error:
        raise ValueError(f"{name or 'the source'}: {error}") from error
    prefix = f"{name}, " if name else ""
    return [replace(one, name=f"{prefix}{kind} {i}") for i, one in enumerate(found, 1)]


def name_of(source: Any) -> str:
    """Return the path of a file or the name of a structure, "" if there is none."""
    if isinstance(source, (str, os.PathLike)):
        return str(source)
    return source.name if isinstance(source, Structure) else ""
