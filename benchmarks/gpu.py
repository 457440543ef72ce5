# SPDX-License-Identifier: BSD-3-Clause
"""Gram matrices on a GPU: times of the solver and of the whole call, errors of sampled pairs.

The first time is that of one call of the prepared solver, which ends when the values are on the
host; the second that of ``kernel(graphs)``, where nothing is kept but what lies on the device with
the graphs. Both are warm, and the smallest of --repeats. Errors are relative, in float32 against
the CPU solver in float64 with ``tol=1e-12``, on 60 pairs. ``--backend cpu`` runs the same on the
CPU.

``--data`` names a folder with ``molecules/``, ``drugs/`` and ``proteins/``.
"""

from __future__ import annotations

from pathlib import Path

import networkx as nx
import numpy as np
import timing  # first: sets the number of threads
import workloads
from spatial import qm7, spatial_kernel
from tiles import proteins

from sklearn_mgk import MarginalizedGraphKernel, from_arrays, from_smiles
from sklearn_mgk.base_kernels import KroneckerDelta, SquaredExponential
from sklearn_mgk.graphs import GraphBatch
from sklearn_mgk.plan import make_problem
from sklearn_mgk.solver import get_backend

REFERENCE = {  # GraphDot 0.8.1 on one H200 [ms]
    "esol": 89,
    "drugs_2000": 1680,
    "qm7_3d_2000": 901,
    "proteins": 2660,
    "nws": 205,
    "ba": 1317,
}


def main():
    command = timing.parser(__doc__)
    command.add_argument("--sets", nargs="*", default=list(REFERENCE), choices=list(REFERENCE))
    command.add_argument("--backend", default="cuda")
    command.add_argument("--repeats", type=int, default=3)
    options = command.parse_args()
    rows = [measure(name, options) for name in options.sets]
    header = ["workload", "pairs", "solver, ms", "over the reference", "whole call, ms"]
    header += ["largest error", "median error"]
    timing.show(header, rows)


def measure(name: str, options) -> list[str]:
    """Time and errors of one workload."""
    batch, kernel = make(name, options.data)
    kernel.set_params(backend=options.backend, dtype="float32", tol=1e-7, cache_size=0)
    solve = solver(kernel, batch, options.backend)
    pairs = np.stack(np.triu_indices(len(batch)), axis=1)
    ms = 1e3 * timing.times(lambda: solve(pairs), options.repeats)[0]
    whole = 1e3 * timing.times(lambda: kernel(batch), options.repeats)[0]
    few = pairs[np.random.default_rng(5).integers(0, len(pairs), 60)]
    exact = solver(kernel, batch, "cpu", dtype="float64", tol=1e-12)(few).values
    error = np.abs(solve(few).values / exact - 1)
    ratio = f"{REFERENCE[name] / ms:.1f}"
    return [
        name,
        f"{len(pairs):,}",
        f"{ms:.1f}",
        ratio,
        f"{whole:.1f}",
        *map("{:.1e}".format, (error.max(), np.median(error))),
    ]


def solver(kernel: MarginalizedGraphKernel, batch: GraphBatch, backend: str, **settings):
    """Prepare a backend for the graphs."""
    problem = make_problem(
        MarginalizedGraphKernel(**{**kernel.get_params(deep=False), **settings}), batch
    )
    return get_backend(backend).solver(problem, False)


def make(name: str, data: Path) -> tuple[GraphBatch, MarginalizedGraphKernel]:
    """Graphs and kernel of a workload."""
    if name == "esol":
        smiles = workloads.smiles_with_bonds(data, "esol")
        return from_smiles(smiles), workloads.molecule_kernel()
    if name == "drugs_2000":
        smiles = workloads.smiles_with_bonds(data, "drugs")
        chosen = np.sort(np.random.default_rng(1).permutation(len(smiles))[:2000])
        return from_smiles([smiles[k] for k in chosen]), workloads.molecule_kernel()
    if name == "qm7_3d_2000":
        return qm7(data, 2000), spatial_kernel()
    if name == "proteins":
        return proteins(data), spatial_kernel()
    lengths = MarginalizedGraphKernel(
        KroneckerDelta("label", h=0.5),
        SquaredExponential("length", length_scale=1.0),
        stopping_probability=0.05,
        cache_size=0,
    )
    return from_arrays([random_graph(name, seed) for seed in range(160)]), lengths


def random_graph(name: str, seed: int) -> dict:
    """96 nodes with one of four labels, edges with lengths between 0 and 1."""
    graph = (
        nx.newman_watts_strogatz_graph(96, 3, 0.1, seed=seed)
        if name == "nws"
        else nx.barabasi_albert_graph(96, 6, seed=seed)
    )
    rng = np.random.default_rng(seed)
    return {
        "edge_index": np.array(graph.edges()).T,
        "nodes": {"label": rng.integers(0, 4, 96)},
        "edges": {"length": rng.random(graph.number_of_edges())},
    }


if __name__ == "__main__":
    main()
