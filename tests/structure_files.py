# SPDX-License-Identifier: BSD-3-Clause
"""Small files written by hand, and what writes them."""

import gzip


def pdb_atom(
    name, residue, number, xyz, element="", chain="A", alt="", occupancy=1.0, icode="", charge=""
):
    """One ATOM record; the name starts in the column that its element asks for."""
    padded = name if len(name) == 4 or len(element) == 2 else f" {name}"
    x, y, z = xyz
    return (
        f"ATOM      1 {padded:<4}{alt:1}{residue:>3} {chain}{number:>4}{icode:1}   "
        f"{x:8.3f}{y:8.3f}{z:8.3f}{occupancy:6.2f}{10:6.2f}          {element:>2}{charge}\n"
    )


def write(path, text):
    """Write a file, packed if its name says so."""
    data = text.encode()
    path.write_bytes(gzip.compress(data) if path.suffix == ".gz" else data)
    return path
