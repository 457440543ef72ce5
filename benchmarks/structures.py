# SPDX-License-Identifier: BSD-3-Clause
"""Structure files to graphs: that all parse, that counts are right, and how long it takes.

The index counts the atoms of the alternate locations without a letter and A, and residues before
locations are chosen: where the crystal holds two residues at one place, it counts both, and a graph
has one. So residues are counted under each letter here.

``--data`` names a folder that holds ``proteins/index.csv``, which counts the atoms of each file,
and ``molecules/qm7_3d/qm7_7101.xyz.gz``.
"""

from __future__ import annotations

import csv
import warnings
from pathlib import Path

import numpy as np
import timing  # first: sets the number of threads

from sklearn_mgk import HardCutoff, Structure, Tent, from_structures, read_structures

N_ATOMS = 10_000


def main():
    options = timing.parser(__doc__).parse_args()
    warnings.simplefilter("ignore", UserWarning)  # ions far from everything else
    rows = [*proteins(options.data), *molecules(options.data), *one_large()]
    timing.show(["what", "measured", "target"], rows)


def proteins(data: Path) -> list[list[str]]:
    """Time of all files, and the differences from the counts in the index."""
    with (data / "proteins/index.csv").open() as file:
        index = list(csv.DictReader(file))
    paths = [data / row["file"] for row in index]
    n = len(paths)
    atoms = from_structures(paths)
    options = {"level": "residue", "contact": "nearest"}
    residues = from_structures(paths, **options)
    counted = from_structures(paths, altloc="A")
    elements = np.split(counted.nodes["element"], counted.node_ptr[1:-1])
    return [
        [
            f"{n} files to graphs of {atoms.n_nodes} atoms, {atoms.n_edges} edges",
            f"{timing.seconds(lambda: from_structures(paths)):.2f} s",
            "≤ 10 s",
        ],
        [
            f"{n} files to graphs of {residues.n_nodes} residues by nearest atoms",
            f"{timing.seconds(lambda: from_structures(paths, **options)):.2f} s",
            "",
        ],
        compare("heavy atoms", index, "heavy_atoms", [np.sum(own != "H") for own in elements]),
        compare("hydrogens", index, "hydrogens", [np.sum(own == "H") for own in elements]),
        compare("residues (all that stand at one place)", index, "residues", alternatives(paths)),
        compare("models", index, "models", [len(read_structures(path)) for path in paths]),
    ]


def alternatives(paths: list[Path]) -> list[int]:
    """Residues of each file under any letter of an alternate location."""
    found = [set() for _ in paths]
    for letter in "ABCD":
        batch = from_structures(paths, altloc=letter)
        for own, residue in zip(
            found, np.split(batch.nodes["residue"], batch.node_ptr[1:-1]), strict=True
        ):
            own.update(residue.tolist())
    return [len(own) for own in found]


def compare(what: str, index: list[dict], column: str, found: list) -> list[str]:
    """Say how many files have the count of the index, and which have another."""
    other = [
        f"{row['id']} {row[column]} → {count}"
        for row, count in zip(index, found, strict=True)
        if int(row[column]) != count
    ]
    exceptions = f" (others: {'; '.join(other)})" if other else ""
    measured = f"{len(index) - len(other)} of {len(index)}{exceptions}"
    return [f"files with the {what} of the index", measured, "all"]


def molecules(data: Path) -> list[list[str]]:
    """Time of one file of many frames."""
    path = data / "molecules/qm7_3d/qm7_7101.xyz.gz"
    frames = read_structures(path)
    return [
        [
            f"{len(frames)} frames of QM7 read",
            f"{timing.seconds(lambda: read_structures(path)):.2f} s",
            "",
        ],
        [
            f"{len(frames)} frames of QM7 to graphs",
            f"{timing.seconds(lambda: from_structures(frames)):.2f} s",
            "",
        ],
    ]


def one_large() -> list[list[str]]:
    """Time of the edges of many atoms at the density of a protein."""
    rng = np.random.default_rng(0)
    side = np.arange(int(np.ceil(N_ATOMS ** (1 / 3))))
    grid = np.stack(np.meshgrid(side, side, side), axis=-1).reshape(-1, 3)[:N_ATOMS]
    # A protein has a heavy atom in 16 to 17 cubic angstrom.
    positions = 2.55 * grid + rng.uniform(-0.7, 0.7, (N_ATOMS, 3))
    row = Structure(rng.choice(["C", "N", "O"], N_ATOMS, p=[0.64, 0.17, 0.19]), positions)
    found = []
    for rule in (Tent(), Tent(zoom=0.75), HardCutoff(5.0)):
        n_edges = from_structures([row], adjacency=rule).n_edges
        took = timing.seconds(lambda rule=rule: from_structures([row], adjacency=rule))
        found.append([f"{N_ATOMS} atoms, {rule}: {n_edges} edges", f"{took:.3f} s", "≤ 1 s"])
    return found


if __name__ == "__main__":
    main()
