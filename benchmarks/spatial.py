# SPDX-License-Identifier: BSD-3-Clause
"""Kernels of continuous edge labels: structures in space, on the CPU.

Part 1: QM7 molecules with edges by length. "plain on the fly" is the same solver that evaluates the
edge kernel of all pairs of edges anew in every iteration; "kept" evaluates them once; "windows" is
what the package does: edges sorted by length, and only pairs within the certified reach. "a table a
pair" is the solver that graphs of fewer labels take. All in one run, by turns. Errors are against
solves to a residual of 1e-12 without windows.

Part 2: the Gram matrix of proteins, and its memory.

The floor takes one evaluation for each value inside the windows, at the speed of a long row of
them, and four multiply-adds for each value and product, four at a time and with all operands in
registers.

``--data`` names a folder with ``molecules/qm7_3d/qm7_7101.xyz.gz`` and ``proteins/index.csv``.
"""

from __future__ import annotations

import csv
import resource
import time
from pathlib import Path

import numpy as np
import timing  # first: sets the number of threads

from sklearn_mgk import MarginalizedGraphKernel, Tent, from_structures, read_structures
from sklearn_mgk.base_kernels import KroneckerDelta, SquaredExponential
from sklearn_mgk.base_kernels.codegen.numba import numba_module
from sklearn_mgk.graphs import GraphBatch
from sklearn_mgk.plan import make_problem
from sklearn_mgk.solver import cpu, factored, get_backend

QM7 = "molecules/qm7_3d/qm7_7101.xyz.gz"
NO_REACH = 1e9  # angstrom
CLOCK = 3e9  # multiply-adds of a vector in a second, about


def main():
    command = timing.parser(__doc__)
    command.add_argument("--molecules", type=int, default=2000)
    command.add_argument("--skip-proteins", action="store_true")
    options = command.parse_args()
    molecules(options.data, options.molecules)
    if not options.skip_proteins:
        proteins(options.data)


def spatial_kernel(**settings) -> MarginalizedGraphKernel:
    """Kernel of both workloads."""
    return MarginalizedGraphKernel(
        KroneckerDelta("element", h=0.2),
        SquaredExponential("length", length_scale=0.1),
        **{"stopping_probability": 0.01, "cache_size": 0, **settings},
    )


def qm7(data: Path, n_molecules: int) -> GraphBatch:
    """QM7 molecules drawn at random, joined where closer than three radii."""
    rows = read_structures(data / QM7)
    chosen = np.sort(np.random.default_rng(0).permutation(len(rows))[:n_molecules])
    return from_structures([rows[k] for k in chosen], adjacency=Tent(zoom=1.0))


def make_solver(batch: GraphBatch, kind: str, **settings):
    """Solver of the graphs, changed to one of the kinds."""
    saved = factored.WINDOW_LABELS, cpu.MAX_VALUES
    try:
        if kind == "a table a pair":
            factored.WINDOW_LABELS = np.inf
        if kind == "plain on the fly":
            cpu.MAX_VALUES = 0
        solver = get_backend("cpu").solver(make_problem(spatial_kernel(**settings), batch), False)
    finally:
        factored.WINDOW_LABELS, cpu.MAX_VALUES = saved
    if kind in ("plain on the fly", "kept"):
        *others, windows = solver.graphs
        solver.graphs = (*others, windows._replace(reach=NO_REACH))
    return solver


def molecules(data: Path, n_molecules: int) -> None:
    """Pairs a second of each kind, by turns on the same pairs."""
    batch = qm7(data, n_molecules)
    rng = np.random.default_rng(1)
    pairs = rng.integers(0, len(batch), (40_000, 2))
    kinds = ("plain on the fly", "kept", "a table a pair", "windows")
    solvers = {kind: make_solver(batch, kind) for kind in kinds}
    times = {kind: [] for kind in kinds}
    for _ in range(4):
        for kind, solve in solvers.items():
            begin = time.perf_counter()
            solve(pairs)
            times[kind].append(time.perf_counter() - begin)
    few = pairs[:2000]
    exact = make_solver(batch, "kept", tol=1e-12)(few).values
    rows = []
    plain = np.median(times["plain on the fly"][1:])
    for kind in kinds:
        took = np.median(times[kind][1:])
        error = np.abs(solvers[kind](few).values / exact - 1).max()
        speed = timing.number(len(pairs) / took)
        rows.append([kind, speed, f"{plain / took:.1f}", f"{error:.1e}"])
    timing.show(["edge kernel", "pairs a second", "over plain on the fly", "largest error"], rows)
    gram(f"QM7, {len(batch)} molecules", batch)


def proteins(data: Path) -> None:
    """Gram matrix of the proteins of 20 to 600 heavy atoms."""
    with (data / "proteins/index.csv").open() as file:
        rows = [r for r in csv.DictReader(file) if 20 <= int(r["heavy_atoms"]) <= 600]
    batch = from_structures(
        [data / row["file"] for row in rows],
        adjacency=Tent(zoom=0.75),
        hydrogens=False,
        altloc="A",
    )
    gram(f"proteins, {len(batch)} structures", batch)


def gram(name: str, batch: GraphBatch) -> None:
    """Time, floor and memory of a Gram matrix."""
    kernel = spatial_kernel()
    kernel(batch[:3])
    before = _resident()
    begin = time.perf_counter()
    kernel(batch)
    took = time.perf_counter() - begin
    memory = _resident() - before
    least = floor(batch)
    n_pairs = len(batch) * (len(batch) + 1) // 2
    header = ["workload", "pairs", "time, s", "pairs a second", "floor, s", "reached", "memory, MB"]
    cells = [f"{took:.1f}", timing.number(n_pairs / took), f"{least:.1f}", f"{least / took:.0%}"]
    timing.show(header, [[name, f"{n_pairs:,}", *cells, f"{memory:.0f}"]])


def floor(batch: GraphBatch) -> float:
    """Least time of the Gram matrix on all threads [s], from a sample of the pairs."""
    rng = np.random.default_rng(2)
    pairs = rng.integers(0, len(batch), (400, 2))
    solver = get_backend("cpu").solver(make_problem(spatial_kernel(), batch), False)
    iterations = solver(pairs).iterations
    windows = solver.graphs[-1]
    values = np.array([_values(windows, *pair) for pair in pairs])
    a_value = _evaluation_time()
    an_entry = 4 / (4 * CLOCK)  # four entries of W for each value
    a_pair = values * (a_value + (iterations + 1) * an_entry)
    return float(a_pair.mean()) * len(batch) * (len(batch) + 1) / 2 / timing.THREADS


def _values(windows, g: int, h: int) -> int:
    """Pairs of edges of two graphs within reach."""
    first, second = (
        windows.key[4 * int(windows.block_ptr[k]) :][: int(windows.n_edges[k])] for k in (g, h)
    )
    ends = [np.searchsorted(second, first + sign * windows.reach) for sign in (-1, 1)]
    return int((ends[1] - ends[0]).sum())


def _evaluation_time() -> float:
    """Time of one value in a long row [s]."""
    kernel = SquaredExponential("length", length_scale=0.1)
    module, out = numba_module(kernel, {"length": 0}), np.empty(4096)
    labels, zero, end = np.linspace(0, 4, 4096)[None], np.uint64(0), np.uint64(4096)
    arguments = labels, zero, zero, end, kernel.hyperparameter_values, out
    return timing.seconds(lambda: [module.fill_row(*arguments) for _ in range(200)]) / (200 * 4096)


def _resident() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e3


if __name__ == "__main__":
    main()
