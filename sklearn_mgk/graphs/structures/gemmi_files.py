# SPDX-License-Identifier: BSD-3-Clause
"""Structures from PDB and mmCIF text, by gemmi."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from sklearn_mgk.graphs.structures.locations import one_location, runs
from sklearn_mgk.graphs.structures.structure import Structure

if TYPE_CHECKING:
    import gemmi

# gemmi takes what is no number (the asterisks of an overflow) for 0.
_ODD_COORDINATES = re.compile(r"^(?:ATOM  |HETATM)(?!.{24}[\d .+-]{24})", re.MULTILINE)
_PLACE = ("chain", "number", "insertion")


@dataclass(frozen=True)
class Selection:
    """Which atoms of a PDB or mmCIF file are read.

    Parameters
    ----------
    chain : str or sequence of str, default=None
        Names of chains as the authors gave them; None means all.
    altloc : str, default="first"
        Which alternate location: "first", "highest" (occupancy) or a letter.
    waters : bool, default=False
        Whether water molecules are kept.
    """

    chain: str | Sequence[str] | None = None
    altloc: str = "first"
    waters: bool = False

    def check(self) -> None:
        """Raise for an option without meaning."""
        if self.chain is not None and not _are_names(self.chain):
            raise ValueError(f"chain must be a name, a list of names or None, got {self.chain!r}")
        if not _is_text(self.altloc) or not (
            self.altloc in ("first", "highest") or len(self.altloc) == 1
        ):
            raise ValueError(
                f"altloc must be 'first', 'highest' or one letter, got {self.altloc!r}"
            )
        if not isinstance(self.waters, bool):
            raise ValueError(f"waters must be True or False, got {self.waters!r}")

    @property
    def chains(self) -> list[str] | None:
        """The names of the chains, or None for all."""
        if self.chain is None or isinstance(self.chain, str):
            return self.chain if self.chain is None else [self.chain]
        return list(self.chain)


def _is_text(value: object) -> bool:
    return isinstance(value, str) and value != ""


def _are_names(value: object) -> bool:
    names = [value] if isinstance(value, str) else value
    return isinstance(names, (list, tuple)) and len(names) > 0 and all(map(_is_text, names))


def read_pdb(text: str, selection: Selection) -> list[Structure]:
    """Read all models of a PDB file; see `read_gemmi`."""
    gemmi = _gemmi()
    odd = _ODD_COORDINATES.search(text)
    if odd is not None:
        line = text.count("\n", 0, odd.start()) + 1
        raise ValueError(
            f"line {line} has no three coordinates in columns 31 to 54: "
            f"{text[odd.start() : odd.start() + 66].splitlines()[0]!r}"
        )
    try:
        return _read(gemmi.read_pdb_string(text), selection)
    except RuntimeError as error:
        raise ValueError(f"it is not a PDB file ({error})") from None


def read_mmcif(text: str, selection: Selection) -> list[Structure]:
    """Read all models of the first block with atoms of an mmCIF file; see `read_gemmi`."""
    gemmi = _gemmi()
    try:
        document = gemmi.cif.read_string(text)
    except (ValueError, RuntimeError) as error:
        raise ValueError(f"it is not a CIF file ({error})") from None
    for block in document:
        if block.find_values("_atom_site.id") or block.find_values("_atom_site.Cartn_x"):
            return _read(gemmi.make_structure_from_block(block), selection)
    raise ValueError(
        "no data block has atoms with Cartesian coordinates (the category _atom_site of mmCIF); "
        "read a crystal's CIF file with ase.io.read and pass the Atoms"
    )


def read_gemmi(source: gemmi.Structure, selection: Selection) -> list[Structure]:
    """Read all models of a ``gemmi.Structure``.

    Parameters
    ----------
    source : gemmi.Structure
        The models. Unit cell and symmetry are ignored.
    selection : Selection
        Which atoms to read.

    Returns
    -------
    list of Structure
        The models, with the attributes ``charge`` (formal [e]), ``atom_name``, ``residue_name``,
        ``chain``, ``residue`` (``"A/GLY 12B"``) and ``secondary_structure``.

    Raises
    ------
    ValueError
        There are no atoms or none is selected, or an atom's element is unknown.
    """
    return _read(source.clone(), selection)


def _read(source: gemmi.Structure, selection: Selection) -> list[Structure]:
    """Read all models of a structure of our own; a chain written in parts becomes one."""
    if sum(model.count_atom_sites() for model in source) == 0:
        raise ValueError("there are no atoms in it: it is no structure file")
    source.merge_chain_parts()
    if not selection.waters:
        source.remove_waters()
    columns = _columns(_flat(source))
    models = np.unique(columns["model"])
    found = [_model(columns, columns["model"] == model, source, selection) for model in models]
    if not found:
        raise ValueError("there are only water molecules: waters=True keeps them")
    return found


def _flat(source: gemmi.Structure) -> gemmi.FlatStructure:
    """Return the atoms in arrays, which gemmi has for names of up to 7 characters."""
    try:
        return _gemmi().FlatStructure(source)
    except RuntimeError as error:
        raise ValueError(f"a name in it is too long ({error}): shorten it") from None


def _columns(flat: gemmi.FlatStructure) -> dict[str, NDArray]:
    """Return the columns of all atoms."""
    return {
        "model": np.asarray(flat.model_num),
        "element": np.asarray(flat.element_names).astype(np.str_),
        "position": np.asarray(flat.pos),
        "charge": np.asarray(flat.charge, dtype=np.int64),
        "atom_name": _strings(flat.atom_names),
        "residue_name": _strings(flat.residue_names),
        "chain": _strings(flat.chain_ids),
        "number": np.asarray(flat.resnums, dtype=np.int64),
        "insertion": _letters(flat.icodes),
        "altloc": _letters(flat.altlocs),
        "occupancy": np.asarray(flat.occ, dtype=np.float64),
    }


def _strings(codes: NDArray[np.int8]) -> NDArray[np.str_]:
    """Return rows of characters, padded with zeros, as strings."""
    packed = np.ascontiguousarray(codes)
    return packed.view(f"S{packed.shape[1]}").reshape(-1).astype(np.str_)


def _letters(codes: NDArray[np.int8]) -> NDArray[np.str_]:
    """Return characters as strings; blanks and zeros as empty strings."""
    return np.strings.strip(_strings(np.asarray(codes)[:, None]))


def _model(
    columns: dict[str, NDArray], mask: NDArray, source: gemmi.Structure, selection: Selection
) -> Structure:
    """Return one model."""
    own = _in_chains(_take(columns, mask), selection.chains)
    own = _take(own, one_location(own, runs(own, _PLACE), selection.altloc))
    attributes = {name: own[name] for name in ("charge", "atom_name", "residue_name", "chain")}
    attributes["residue"] = _residue_labels(own)
    attributes["secondary_structure"] = _secondary_structure(own, source)
    return Structure(own["element"], own["position"], attributes=attributes)


def _take(columns: dict[str, NDArray], rows: NDArray) -> dict[str, NDArray]:
    """Return the chosen rows of all columns."""
    return {name: column[rows] for name, column in columns.items()}


def _in_chains(columns: dict[str, NDArray], chains: list[str] | None) -> dict[str, NDArray]:
    """Return the atoms of the chains asked for."""
    if chains is None:
        return columns
    known = list(dict.fromkeys(columns["chain"].tolist()))
    missing = [chain for chain in chains if chain not in known]
    if missing:
        raise ValueError(f"there is no chain {missing[0]!r}; there are {known}")
    return _take(columns, np.isin(columns["chain"], chains))


def _residue_labels(columns: dict[str, NDArray]) -> NDArray[np.str_]:
    """Name the residue of each atom by chain, name, number and insertion code."""
    run = runs(columns, (*_PLACE, "residue_name"))
    first = np.unique(run, return_index=True)[1]
    labels = [
        f"{chain}/{name} {number}{insertion}"
        for chain, name, number, insertion in zip(
            *(columns[key][first].tolist() for key in ("chain", "residue_name", *_PLACE[1:])),
            strict=True,
        )
    ]
    return np.array(labels, dtype=np.str_)[run]


def _secondary_structure(columns: dict[str, NDArray], source: gemmi.Structure) -> NDArray[np.str_]:
    """Return the class of each atom's residue as the file states it."""
    ranges = list(_ranges(source))
    found = np.full(len(columns["chain"]), "coil" if ranges else "unknown", dtype="U7")
    place = _order(columns["number"], columns["insertion"])
    for label, start, end in ranges:
        first, last = (
            _order(np.array([end.res_id.seqid.num]), np.array([end.res_id.seqid.icode.strip()]))
            for end in (start, end)
        )
        inside = (columns["chain"] == start.chain_name) & (place >= first) & (place <= last)
        found[inside] = label
    return found


def _order(number: NDArray[np.int64], insertion: NDArray[np.str_]) -> NDArray[np.int64]:
    """Return numbers in the order of a chain: 52, 52A, 52B, 53."""
    letter = np.ascontiguousarray(insertion.astype("U1")).view(np.uint32)
    return number * 256 + letter


def _ranges(source: gemmi.Structure) -> Iterator[tuple[str, Any, Any]]:
    """Yield class, first and last residue of each helix and strand; strands come last."""
    for helix in source.helices:
        yield "helix", helix.start, helix.end
    for sheet in source.sheets:
        for strand in sheet.strands:
            yield "strand", strand.start, strand.end


def _gemmi() -> Any:
    """Return gemmi, or say how to install it."""
    try:
        import gemmi
    except ImportError as error:
        raise ImportError(
            "PDB and mmCIF files need gemmi: pip install 'sklearn-mgk[structures]'"
        ) from error
    return gemmi
