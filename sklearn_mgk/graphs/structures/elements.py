# SPDX-License-Identifier: BSD-3-Clause
"""Chemical elements: symbols, atomic numbers and radii.

Covalent radii are those of Cordero et al. [1]_ (sp3 carbon, low-spin metals). Van der Waals radii
are Bondi's [2]_, for further main-group elements those of Mantina et al. [3]_, and for the elements
in neither table those of Alvarez [4]_, which are larger. An atom of unknown element, ``"X"``, has
the radii of carbon. A table in the package, so that files without a library of their own need none
for the radii either.

References
----------
.. [1] B. Cordero et al., "Covalent radii revisited", Dalton Trans. (2008) 2832-2838.
   :doi:`10.1039/b801115j`
.. [2] A. Bondi, "van der Waals volumes and radii", J. Phys. Chem. 68 (1964) 441-451.
   :doi:`10.1021/j100785a001`
.. [3] M. Mantina et al., "Consistent van der Waals radii for the whole main group", J. Phys. Chem.
   A 113 (2009) 5806-5812. :doi:`10.1021/jp8111556`
.. [4] S. Alvarez, "A cartography of the van der Waals territories", Dalton Trans. 42 (2013)
   8617-8636. :doi:`10.1039/c3dt50599e`
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

# Symbol, van der Waals radius, covalent radius [angstrom], in the order of atomic numbers.
_TABLE = """
X 1.70 0.76; H 1.20 0.31; He 1.40 0.28; Li 1.82 1.28; Be 1.53 0.96; B 1.92 0.84; C 1.70 0.76
N 1.55 0.71; O 1.52 0.66; F 1.47 0.57; Ne 1.54 0.58; Na 2.27 1.66; Mg 1.73 1.41
Al 1.84 1.21; Si 2.10 1.11; P 1.80 1.07; S 1.80 1.05; Cl 1.75 1.02; Ar 1.88 1.06
K 2.75 2.03; Ca 2.31 1.76; Sc 2.58 1.70; Ti 2.46 1.60; V 2.42 1.53; Cr 2.45 1.39
Mn 2.45 1.39; Fe 2.44 1.32; Co 2.40 1.26; Ni 1.63 1.24; Cu 1.40 1.32; Zn 1.39 1.22
Ga 1.87 1.22; Ge 2.11 1.20; As 1.85 1.19; Se 1.90 1.20; Br 1.85 1.20; Kr 2.02 1.16
Rb 3.03 2.20; Sr 2.49 1.95; Y 2.75 1.90; Zr 2.52 1.75; Nb 2.56 1.64; Mo 2.45 1.54
Tc 2.44 1.47; Ru 2.46 1.46; Rh 2.44 1.42; Pd 1.63 1.39; Ag 1.72 1.45; Cd 1.58 1.44
In 1.93 1.42; Sn 2.17 1.39; Sb 2.06 1.39; Te 2.06 1.38; I 1.98 1.39; Xe 2.16 1.40
Cs 3.43 2.44; Ba 2.68 2.15; La 2.98 2.07; Ce 2.88 2.04; Pr 2.92 2.03; Nd 2.95 2.01
Pm nan 1.99; Sm 2.90 1.98; Eu 2.87 1.98; Gd 2.83 1.96; Tb 2.79 1.94; Dy 2.87 1.92
Ho 2.81 1.92; Er 2.83 1.89; Tm 2.79 1.90; Yb 2.80 1.87; Lu 2.74 1.87; Hf 2.63 1.75
Ta 2.53 1.70; W 2.57 1.62; Re 2.49 1.51; Os 2.48 1.44; Ir 2.41 1.41; Pt 1.75 1.36
Au 1.66 1.36; Hg 1.55 1.32; Tl 1.96 1.45; Pb 2.02 1.46; Bi 2.07 1.48; Po 1.97 1.40
At 2.02 1.50; Rn 2.20 1.50; Fr 3.48 2.60; Ra 2.83 2.21; Ac 2.80 2.15; Th 2.93 2.06
Pa 2.88 2.00; U 1.86 1.96; Np 2.82 1.90; Pu 2.81 1.87; Am 2.83 1.80; Cm 3.05 1.69
Bk 3.40 nan; Cf 3.05 nan; Es 2.70 nan; Fm nan nan; Md nan nan; No nan nan
Lr nan nan; Rf nan nan; Db nan nan; Sg nan nan; Bh nan nan; Hs nan nan
Mt nan nan; Ds nan nan; Rg nan nan; Cn nan nan; Nh nan nan; Fl nan nan
Mc nan nan; Lv nan nan; Ts nan nan; Og nan nan
"""
_ENTRIES = [entry.split() for entry in _TABLE.strip().replace("\n", ";").split(";")]

SYMBOLS = np.array([entry[0] for entry in _ENTRIES])
"""Symbol of each atomic number, from 0."""

RADII = {
    "van_der_waals": np.array([float(entry[1]) for entry in _ENTRIES]),
    "covalent": np.array([float(entry[2]) for entry in _ENTRIES]),
}
"""Radius of each atomic number [angstrom], NaN where the table has none."""

_NUMBERS = {str(symbol): number for number, symbol in enumerate(SYMBOLS)}
_NUMBERS |= {str(number): number for number in range(len(SYMBOLS))} | {"D": 1, "T": 1}


class UnknownElementError(ValueError):
    """A symbol that names no element; `atom` says where."""

    def __init__(self, atom: int, symbol: str):
        super().__init__(
            f"atom {atom} has the element {symbol!r}, which does not exist: give a symbol "
            "('C', 'Cl') or an atomic number"
        )
        self.atom = atom


def atomic_numbers(elements: Sequence[Any] | NDArray) -> NDArray[np.int64]:
    """Return the atomic numbers of symbols (in any case) or of atomic numbers.

    Deuterium and tritium (``"D"``, ``"T"``) are hydrogen; ``"X"`` is no element and has number 0.

    Parameters
    ----------
    elements : sequence of str or int
        One entry an atom.

    Returns
    -------
    ndarray of shape (n_atoms,), int64
        From 0 to 118.

    Raises
    ------
    UnknownElementError
        A ValueError: an entry names no element.

    Examples
    --------
    >>> atomic_numbers(["C", "CL", "d", 8]).tolist()
    [6, 17, 1, 8]
    """
    written, codes = np.unique(np.asarray(elements, dtype=np.str_), return_inverse=True)
    numbers = np.array(
        [_NUMBERS.get(symbol.strip().capitalize(), -1) for symbol in written.tolist()]
    )
    found = numbers[codes].astype(np.int64) if len(written) else np.empty(0, dtype=np.int64)
    if (found < 0).any():
        atom = int(np.argmin(found))
        raise UnknownElementError(atom, str(written[codes[atom]]))
    return found


def radii_of(numbers: NDArray[np.int64], length_scale: str | Mapping[str, float]) -> NDArray:
    """Return the radius of each atom [angstrom], shape (n_atoms,).

    Parameters
    ----------
    numbers : ndarray of shape (n_atoms,), int64
        Atomic numbers.
    length_scale : {"van_der_waals", "covalent"} or mapping of str to float
        The name of a table, or the radius of each element [angstrom].

    Returns
    -------
    ndarray of shape (n_atoms,), float64
        The radii.

    Raises
    ------
    ValueError
        The table has no radius for some element.
    """
    if isinstance(length_scale, str):
        table, name = RADII[length_scale], f"the table {length_scale!r}"
    else:
        table, name = np.full(len(SYMBOLS), np.nan), "length_scale"
        table[atomic_numbers(list(length_scale))] = list(length_scale.values())
    radii = table[numbers]
    if np.isnan(radii).any():
        element = SYMBOLS[numbers[np.isnan(radii)][0]]
        raise ValueError(
            f"{name} has no radius for {element}: use a number or a mapping that has one, "
            f"length_scale={{'{element}': ..., ...}}"
        )
    return radii
