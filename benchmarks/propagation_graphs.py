# SPDX-License-Identifier: BSD-3-Clause
"""Graphs that the benchmarks of sparse products run on: collected files and power laws.

As a script it writes them to a folder, one npz file each, for a machine that has no other data.
"""

from __future__ import annotations

import csv
import gzip
import io
import zipfile
from pathlib import Path

import numpy as np
import timing
import truss_graphs
from scipy import sparse
from scipy.io import mmread

COLLECTED = (
    "cora",
    "citeseer",
    "pubmed",
    "wing",
    "facebook_combined",
    "wiki-Vote",
    "ca-HepPh",
    "as-caida20070917",
)
"""Graphs of the folder ``graphs`` that are written."""


def power_law(
    n: int, degree: float, uniform: bool = False, seed: int = 0, most: float = 5000
) -> sparse.csr_array:
    """Matrix of n rows with Pareto distributed (1.5) expected numbers of entries up to a limit.

    Columns are drawn in proportion to the same weights, as in a social network, or uniformly, so
    that no row of X is needed more often than others.
    """
    rng = np.random.default_rng(seed)
    weight = rng.pareto(1.5, n) + 1
    weight = np.minimum(weight * degree / weight.mean(), most)
    n_entries = int(n * degree)
    shares = weight / weight.sum()
    rows = rng.choice(n, n_entries, p=shares)
    columns = rng.choice(n, n_entries, p=None if uniform else shares)
    values = rng.random(n_entries, dtype=np.float32)
    matrix = sparse.csr_array((values, (rows, columns)), shape=(n, n))
    matrix.sum_duplicates()
    return with_small_indices(matrix)


def with_small_indices(matrix: sparse.csr_array) -> sparse.csr_array:
    """Return a matrix with indices of 32 bits, which all libraries take."""
    parts = matrix.data, matrix.indices.astype(np.int32), matrix.indptr.astype(np.int32)
    return sparse.csr_array(parts, shape=matrix.shape)


def collected(data: Path, name: str) -> sparse.csr_array:
    """Read a graph as a symmetric float32 matrix."""
    row = truss_graphs.reference(data)[name]
    return with_small_indices(truss_graphs.load(data, row).astype(np.float32))


def many_graphs(data: Path, name: str) -> sparse.csr_array:
    """Return all graphs of a TU Dortmund set as one matrix."""
    archive = zipfile.ZipFile(data / "tu" / name / f"{name}.zip")
    (entry,) = (e for e in archive.namelist() if e.endswith(f"{name}_A.txt"))
    text = io.TextIOWrapper(archive.open(entry))
    u, v = np.loadtxt(text, dtype=np.int64, delimiter=",").T - 1
    return with_small_indices(truss_graphs.symmetric(u, v).astype(np.float32))


def planetoid(data: Path, name: str):
    """Return adjacency, features, labels and split ("train", "val", "test", "none")."""
    with gzip.open(data / "graphs" / name / f"{name}_labels.tsv.gz", "rt") as file:
        rows = list(csv.DictReader(file, delimiter="\t"))
    label = np.array([int(row["label"]) for row in rows])
    split = np.array([row["split"] for row in rows])
    with gzip.open(data / "graphs" / name / f"{name}_edges.tsv.gz", "rt") as file:
        u, v = np.loadtxt(file, dtype=np.int64).T
    with gzip.open(data / "graphs" / name / f"{name}_features.mtx.gz") as file:
        features = mmread(file).toarray()
    return truss_graphs.symmetric(u, v, len(label)).astype(float), features, label, split


def everything(data: Path):
    """Yield names and functions that make the matrix."""
    for name in COLLECTED:
        yield name, lambda name=name: collected(data, name)
    for name in ("NCI1", "PROTEINS"):
        yield f"{name} (all graphs)", lambda name=name: many_graphs(data, name)
    for n, degree in ((10_000, 10), (100_000, 10), (100_000, 50), (1_000_000, 10)):
        for uniform in (False, True):
            kind = "uniform columns" if uniform else "power law"
            yield f"{kind} {n} x {degree}", lambda a=(n, degree, uniform): power_law(*a)


def main():
    command = timing.parser(__doc__)
    command.add_argument("--out", type=Path, required=True, help="folder to write to")
    options = command.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)
    for name, make in everything(options.data):
        if " x " not in name:
            sparse.save_npz(options.out / f"{name}.npz", make())
            print(name)


if __name__ == "__main__":
    main()
