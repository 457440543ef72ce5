# SPDX-License-Identifier: BSD-3-Clause
"""The graphs and base kernels that the benchmarks run on.

All data sets are public; ``--data`` of each script names a folder with ``molecules/<set>/*.csv.gz``
(MoleculeNet) and ``tu/<set>/<set>.zip`` (TU Dortmund).
"""

from __future__ import annotations

import csv
import gzip
import io
import zipfile
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from sklearn_mgk import MarginalizedGraphKernel, from_arrays, from_smiles
from sklearn_mgk.base_kernels import KroneckerDelta, RationalQuadratic, SquaredExponential
from sklearn_mgk.graphs import GraphBatch

FILES = {
    "esol": "molecules/esol/delaney-processed.csv.gz",
    "freesolv": "molecules/freesolv/FreeSolv.csv.gz",
    "lipophilicity": "molecules/lipophilicity/Lipophilicity.csv.gz",
    "drugs": "drugs/union/drugs_union.csv.gz",
}
TARGETS = {"esol": "measured log solubility in mols per litre"}


def read_rows(data: Path, name: str) -> list[dict[str, str]]:
    """Rows of a table of molecules."""
    with gzip.open(data / FILES[name], "rt") as file:
        return list(csv.DictReader(file))


def smiles_with_bonds(data: Path, name: str) -> list[str]:
    """SMILES of the molecules that have a bond, in the order of the file."""
    smiles = [row["smiles"] for row in read_rows(data, name)]
    has_bond = np.diff(from_smiles(smiles).edge_ptr) > 0
    return [text for text, keep in zip(smiles, has_bond, strict=True) if keep]


def molecule_kernel(**options) -> MarginalizedGraphKernel:
    """Kernel of the molecular workloads: five atom and three bond attributes, q = 0.05.

    It has nine free hyperparameters. Values are not kept between calls unless asked for.
    """
    node = (
        KroneckerDelta("element", h=0.3)
        * KroneckerDelta("charge", h=0.5)
        * KroneckerDelta("hybridization", h=0.5)
        * KroneckerDelta("n_hydrogens", h=0.6)
        * KroneckerDelta("aromatic", h=0.8)
    )
    settings = {"stopping_probability": 0.05, "cache_size": 0, **options}
    return MarginalizedGraphKernel(
        node, _edge_kernel(SquaredExponential("order", length_scale=0.5)), **settings
    )


def ten_parameter_kernel(**options) -> MarginalizedGraphKernel:
    """`molecule_kernel` with a tenth free hyperparameter, in the kernel of bond orders."""
    order = RationalQuadratic("order", length_scale=0.5, alpha=1.0)
    return molecule_kernel(**options).set_params(edge_kernel=_edge_kernel(order))


def _edge_kernel(order):
    return order * KroneckerDelta("conjugated", h=0.7) * KroneckerDelta("in_ring", h=0.7)


def read_tu(data: Path, name: str) -> GraphBatch:
    """Read a TU Dortmund set: node attributes "label" and "share" (1 / nodes), edges "label"."""
    archive = zipfile.ZipFile(data / "tu" / name / f"{name}.zip")
    names = {Path(entry).name: entry for entry in archive.namelist()}

    def read(what: str) -> np.ndarray:
        text = archive.read(names[f"{name}_{what}.txt"]).decode()
        return np.loadtxt(io.StringIO(text), dtype=np.int64, delimiter=",")

    graph = read("graph_indicator") - 1
    source, target = read("A").T - 1
    once = source < target
    node_label, edge_label = read("node_labels").astype(str), read("edge_labels").astype(str)
    graphs = []
    for g in range(graph.max() + 1):
        own = np.flatnonzero(graph == g)
        edges = np.flatnonzero(once & (graph[source] == g))
        graphs.append(
            {
                "edge_index": np.stack([source[edges], target[edges]]) - own[0],
                "nodes": {"label": node_label[own], "share": np.full(len(own), 1 / len(own))},
                "edges": {"label": edge_label[edges]},
            }
        )
    return from_arrays(graphs)


def random_graphs(
    n_graphs: int, n_nodes: int, degree: float, labels: Sequence[float], seed: int = 0
) -> GraphBatch:
    """Random graphs (a path, and edges at random); edge attribute "length" drawn from labels."""
    rng = np.random.default_rng(seed)
    upper = np.triu_indices(n_nodes, 2)
    share = (degree - 2 + 2 / n_nodes) * n_nodes / (2 * len(upper[0]))
    graphs = []
    for _ in range(n_graphs):
        more = np.stack(upper)[:, rng.random(len(upper[0])) < share]
        path = np.stack([np.arange(n_nodes - 1), np.arange(1, n_nodes)])
        edges = np.concatenate([path, more], axis=1)
        graphs.append(
            {
                "edge_index": edges,
                "nodes": {"label": rng.integers(0, 4, n_nodes)},
                "edges": {"length": rng.choice(labels, edges.shape[1])},
            }
        )
    return from_arrays(graphs)


def paper_graphs(model: str, n_graphs: int = 160) -> GraphBatch:
    """Newman-Watts-Strogatz ("nws") or Barabasi-Albert ("ba") graphs of 96 nodes.

    Nodes have one of four labels, edges lengths between 0 and 1.
    """
    import networkx as nx

    graphs = []
    for seed in range(n_graphs):
        graph = (
            nx.newman_watts_strogatz_graph(96, 3, 0.1, seed=seed)
            if model == "nws"
            else nx.barabasi_albert_graph(96, 6, seed=seed)
        )
        rng = np.random.default_rng(seed)
        graphs.append(
            {
                "edge_index": np.array(graph.edges()).T,
                "nodes": {"label": rng.integers(0, 4, 96)},
                "edges": {"length": rng.random(graph.number_of_edges())},
            }
        )
    return from_arrays(graphs)


def lengths_kernel(**options) -> MarginalizedGraphKernel:
    """Kernel of these graphs."""
    return MarginalizedGraphKernel(
        KroneckerDelta("label", h=0.5),
        SquaredExponential("length", length_scale=1.0),
        **{"stopping_probability": 0.05, "cache_size": 0, **options},
    )


def n_pairs(n: int) -> int:
    """Pairs in a symmetric Gram matrix."""
    return n * (n + 1) // 2
