# SPDX-License-Identifier: BSD-3-Clause
"""Graphs that the benchmarks of k-truss run on: collected files, residue contacts, random graphs.

``--data`` of each script names a folder with ``graphs/reference_counts.csv`` and the files it
lists, which are SNAP and GraphChallenge edge lists, METIS graphs and Matrix Market files.
"""

from __future__ import annotations

import csv
import gzip
from pathlib import Path

import numpy as np
from scipy import io, sparse

SKEWED = (
    "as20000102",
    "as-caida20070917",
    "oregon1_010331",
    "ca-GrQc",
    "ca-HepTh",
    "ca-HepPh",
    "facebook_combined",
    "wiki-Vote",
    "p2p-Gnutella04",
    "p2p-Gnutella08",
    "p2p-Gnutella25",
    "p2p-Gnutella30",
)
"""SNAP graphs whose greatest degree is many times the mean."""


def reference(data: Path) -> dict[str, dict[str, str]]:
    """Known counts of each graph, by name."""
    with open(data / "graphs" / "reference_counts.csv") as file:
        return {row["graph"]: row for row in csv.DictReader(file)}


def truss_sizes(data: Path) -> dict[str, dict[int, int]]:
    """Known number of edges of each k-truss, by graph and k."""
    sizes: dict[str, dict[int, int]] = {}
    with open(data / "graphs" / "truss_sizes.csv") as file:
        for row in csv.DictReader(file):
            sizes.setdefault(row["graph"], {})[int(row["k"])] = int(row["edges_in_k_truss"])
    return sizes


def load(data: Path, row: dict[str, str]) -> sparse.csr_array:
    """Read a graph as a symmetric 0/1 matrix without diagonal."""
    path = data / "graphs" / row["file"]
    read = {".graph": _metis, ".mtx": _matrix_market}.get(Path(path.stem).suffix, _edge_list)
    return symmetric(*read(path))


def symmetric(u, v, n: int | None = None) -> sparse.csr_array:
    """Make the 0/1 matrix of undirected edges given in any direction, any number of times."""
    n = n or int(max(u.max(), v.max())) + 1
    keep = u != v
    u, v = np.concatenate([u[keep], v[keep]]), np.concatenate([v[keep], u[keep]])
    matrix = sparse.csr_array((np.ones(len(u), np.int8), (u, v)), shape=(n, n))
    matrix.data[:] = 1
    return matrix


def _edge_list(path: Path):
    """Two leading numbers of each line with at least two; ids become 0, 1, ..."""
    pairs = []
    with gzip.open(path, "rt") as file:
        for number, line in enumerate(file):
            fields = line.replace(",", " ").split()
            counts_only = number == 0 and len(fields) == 1
            if not counts_only and len(fields) >= 2 and fields[0].isdigit():
                pairs.append((int(fields[0]), int(fields[1])))
    ids, numbers = np.unique(np.array(pairs), return_inverse=True)
    return (*numbers.reshape(-1, 2).T, len(ids))


def _metis(path: Path):
    with gzip.open(path, "rt") as file:
        lines = [line for line in file if not line.startswith("%")]
    rows = [np.array(line.split(), int) - 1 for line in lines[1:]]
    n = int(lines[0].split()[0])
    return np.repeat(np.arange(len(rows)), [len(r) for r in rows]), np.concatenate(rows), n


def _matrix_market(path: Path):
    with gzip.open(path) as file:
        matrix = sparse.coo_array(io.mmread(file))
    return *matrix.coords, matrix.shape[0]


def rmat(n_edges: int, edge_factor: int = 8, seed: int = 0) -> sparse.csr_array:
    """Recursive matrix graph (a, b, c, d = 0.57, 0.19, 0.19, 0.05) of about n_edges edges."""
    rng = np.random.default_rng(seed)
    scale = max(4, round(np.log2(n_edges / edge_factor)))
    u, v = np.zeros(n_edges, np.int64), np.zeros(n_edges, np.int64)
    for _ in range(scale):
        quadrant = np.searchsorted([0.57, 0.76, 0.95], rng.random(n_edges))
        u, v = 2 * u + (quadrant >> 1), 2 * v + (quadrant & 1)
    return symmetric(u, v, 2**scale)


def contact_graphs(n_graphs: int = 1000, n_residues: int = 120, seed: int = 0):
    """Residue contacts (8 Å) of compact random chains: dictionaries for `from_arrays`."""
    rng = np.random.default_rng(seed)
    return [contacts(chain(int(n), rng)) for n in rng.normal(n_residues, 25, n_graphs).clip(40)]


def chain(n: int, rng: np.random.Generator) -> np.ndarray:
    """Positions [Å] of n residues, 3.8 Å apart, on a walk drawn to its centre of mass."""
    places = np.zeros((n, 3))
    total, step = np.zeros(3), rng.normal(size=3)
    for k in range(1, n):
        pull = total / k - places[k - 1]
        step = 0.6 * step / np.linalg.norm(step) + 0.006 * pull + 0.5 * rng.normal(size=3)
        places[k] = places[k - 1] + 3.8 * step / np.linalg.norm(step)
        total += places[k]
    return places


def contacts(places: np.ndarray, cutoff: float = 8.0) -> dict:
    """Pairs of residues closer than the cutoff [Å]."""
    distance = np.linalg.norm(places[:, None] - places, axis=2)
    return {
        "n_nodes": len(places),
        "edge_index": np.stack(np.nonzero(np.triu(distance < cutoff, 1))),
    }
