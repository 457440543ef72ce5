# SPDX-License-Identifier: BSD-3-Clause
"""Gram matrices on a GPU: times of the launches and of whole calls, errors, floors.

*Launches* is the time between events around all kernels of the matrix; *prepared* that of a call of
the prepared solver with pairs on the device; *whole call* that of ``kernel(graphs)``, where nothing
is kept but what lies on the device with the graphs. All are warm, and the smallest of --repeats.
Errors are relative, in float32 against the CPU solver in float64 with ``tol=1e-12``, on 60 pairs.

The second table has what costs more: derivatives by all hyperparameters, float64, a stopping
probability of 0.0005, values by node (of 400 graphs); each relative to the launches of plain
values.

The *floor* counts, for each iteration, one access to shared memory for each non-zero of the product
matrix and eight for each unknown, half of which are eliminated where a graph is bipartite; and one
exponential for each pair of an edge and a direction of an edge within the windows of a kernel that
is evaluated on the fly. It is the longer of both at the ceilings of an H200.

``--prepare FOLDER --data DATA`` writes graphs and exact values on any machine (DATA holds
``molecules/``, ``drugs/`` and ``proteins/``); ``--graphs FOLDER`` measures on a machine with a
device. ``--first`` times first calls, each in a process of its own, on a warm compile cache.
"""

from __future__ import annotations

import gzip
import pickle
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

import numpy as np
import timing  # first: sets the number of threads

from sklearn_mgk import MarginalizedGraphKernel
from sklearn_mgk.graphs import GraphBatch
from sklearn_mgk.plan import make_problem
from sklearn_mgk.solver import get_backend
from sklearn_mgk.solver.layout import colour_order
from sklearn_mgk.solver.problem import Problem
from sklearn_mgk.solver.reach import find_reach
from sklearn_mgk.solver.tables import MAX_TABLE_LABELS
from sklearn_mgk.solver.topology import topology

REFERENCE = {  # GraphDot 0.8.1 on one H200: launches [ms], and first call with conversion [s]
    "esol": (89, 2.9),
    "drugs_2000": (1680, 5.9),
    "drugs": (11550, 19.4),
    "qm7_3d_2000": (901, 5.0),
    "qm7_3d": (11440, 26.1),
    "proteins": (2660, 4.0),
    "nws": (205, 2.1),
    "ba": (1317, 3.1),
}
MUST = {"qm7_3d_2000": 6, "qm7_3d": 6}  # times the reference; 10 for the others
N_CHECKED = 60
ACCESSES, EXPONENTIALS = 7.4e12, 3.7e12  # of one H200 in a second: numbers in shared memory, exp2
VECTOR_ACCESSES = 8  # for each unknown and iteration
NODAL_GRAPHS = 400
MOST_PAIRS = 5_000_000  # up to which variants are timed

FIRST = """
import pathlib, sys, time
sys.path.insert(0, {folder!r})
import gpu
work = gpu.Workload.read(pathlib.Path({graphs!r}), {name!r})
begin = time.perf_counter()
work.kernel("cuda")(work.batch)
print(time.perf_counter() - begin)
"""


@dataclass
class Workload:
    """Graphs, kernel, and exact values of a few pairs."""

    batch: GraphBatch
    plain: MarginalizedGraphKernel
    pairs: np.ndarray | None = None
    values: np.ndarray | None = None

    def kernel(self, backend: str, **settings) -> MarginalizedGraphKernel:
        """Kernel with some settings."""
        given = {"dtype": "float32", "tol": 1e-7, "cache_size": 0, "backend": backend}
        params = {**self.plain.get_params(deep=False), **given, **settings}
        return MarginalizedGraphKernel(**params)

    def problem(self, backend: str, **settings) -> Problem:
        """Describe the linear systems."""
        return make_problem(self.kernel(backend, **settings), self.batch)

    def solver(self, backend: str, eval_gradient: bool = False, **settings):
        """Return a prepared solver, and what it solves."""
        problem = self.problem(backend, **settings)
        return get_backend(backend).solver(problem, eval_gradient), problem

    def solve_exactly(self, pairs: np.ndarray) -> None:
        """Choose the pairs that are checked."""
        self.pairs = pairs
        self.values = self.solver("cpu", dtype="float64", tol=1e-12)[0](pairs).values

    def all_pairs(self) -> np.ndarray:
        return np.stack(np.triu_indices(len(self.batch)), axis=1)

    def write(self, folder: Path, name: str) -> None:
        """Write to a folder, which is made."""
        folder.mkdir(parents=True, exist_ok=True)
        with gzip.open(folder / f"{name}.pkl.gz", "wb", 6) as file:
            pickle.dump(vars(self), file)
        print(name, self.batch, flush=True)

    @classmethod
    def read(cls, folder: Path, name: str) -> Self:
        """Read what `write` wrote."""
        with gzip.open(folder / f"{name}.pkl.gz") as file:
            return cls(**pickle.load(file))


def main():
    command = timing.parser(__doc__, data=False)
    command.add_argument("--data", type=Path)
    command.add_argument("--prepare", type=Path, help="folder to write graphs to")
    command.add_argument("--graphs", type=Path, help="folder to read graphs from")
    command.add_argument("--sets", nargs="*", default=list(REFERENCE), choices=list(REFERENCE))
    command.add_argument("--repeats", type=int, default=3)
    command.add_argument("--plain", action="store_true", help="plain values only")
    command.add_argument("--first", action="store_true", help="time first calls instead")
    options = command.parse_args()
    if options.prepare:
        prepare(options)
    elif options.first:
        show_first_calls(options)
    else:
        show_times(options)


def prepare(options) -> None:
    """Write the workloads, one file each."""
    for name in options.sets:
        batch, kernel = make(name, options.data)
        work = Workload(batch, kernel)
        work.solve_exactly(np.random.default_rng(5).integers(0, len(batch), (N_CHECKED, 2)))
        work.write(options.prepare, name)


def show_first_calls(options) -> None:
    """Time of the first call of a process, the second of two processes."""
    rows = []
    for name in options.sets:
        code = FIRST.format(
            folder=str(Path(__file__).parent), graphs=str(options.graphs), name=name
        )
        cold, warm, again = (float(run(code)) for _ in range(3))
        target = f"≤ {REFERENCE[name][1] / 5:.2f}"
        rows.append([name, f"{min(warm, again):.2f}", target, f"{cold:.2f}"])
    timing.show(["workload", "first call, s", "target", "the time before, s"], rows)


def run(code: str) -> str:
    """Output of a program in a new process."""
    call = [sys.executable, "-W", "ignore", "-c", code]
    return subprocess.run(call, capture_output=True, text=True, check=True).stdout


def show_times(options) -> None:
    """Print both tables."""
    plain, more = [], []
    for name in options.sets:
        work = Workload.read(options.graphs, name)
        row, launches = measure(name, work, options.repeats)
        print(*row, flush=True)
        plain.append(row)
        if len(work.all_pairs()) <= MOST_PAIRS and not options.plain:
            more.append([name, *variants(work, launches, options.repeats)])
            print(*more[-1], flush=True)
    header = ["workload", "pairs", "launches, ms", "over the reference", "must", "prepared, ms"]
    header += ["whole call, ms", "largest error", "median error", "iterations"]
    timing.show([*header, "products, 1e9", "exponentials, 1e9", "floor, ms", "reached"], plain)
    if not more:
        return
    header = ["workload", "derivatives", "whole call, ms", "float64", "q = 0.0005", "by node"]
    timing.show([*header, "whole call of values, ms", "by node, ms"], more)


def measure(name: str, work: Workload, repeats: int) -> tuple[list[str], float]:
    """Return the row of one workload, and the time of its launches [ms]."""
    import cupy

    solve, problem = work.solver("cuda")
    pairs = cupy.asarray(work.all_pairs())
    launches, prepared = shortest(lambda: solve(pairs), repeats)
    kernel = work.kernel("cuda")
    whole = shortest(lambda: kernel(work.batch), repeats)[1]
    error = np.abs(solve(work.pairs).values / work.values - 1)
    iterations = solve(pairs).iterations.get()
    products, exponentials, floor = counts(problem, pairs.get(), iterations)
    reference = REFERENCE[name][0]
    row = [name, f"{len(pairs):,}", f"{launches:.1f}", f"{reference / launches:.1f}"]
    row += [str(MUST.get(name, 10)), f"{prepared:.1f}", f"{whole:.1f}", f"{error.max():.1e}"]
    row += [f"{np.median(error):.1e}", f"{iterations.mean():.1f}"]
    work_done = [f"{products / 1e9:.1f}", f"{exponentials / 1e9:.1f}"]
    return [*row, *work_done, f"{floor:.1f}", f"{floor / launches:.0%}"], launches


def variants(work: Workload, launches: float, repeats: int) -> list[str]:
    """Return times of what costs more, relative to the launches of plain values [ms]."""
    import cupy

    pairs = cupy.asarray(work.all_pairs())

    def over_values(eval_gradient: bool = False, **settings) -> str:
        solve, _ = work.solver("cuda", eval_gradient, **settings)
        return f"{shortest(lambda: solve(pairs), repeats)[0] / launches:.2f}"

    kernel, few = work.kernel("cuda"), work.batch[:NODAL_GRAPHS]
    whole = shortest(lambda: kernel(work.batch, eval_gradient=True), repeats)[1]
    values = shortest(lambda: kernel(few), repeats)
    nodal = shortest(lambda: kernel.nodal(few), repeats)
    return [
        over_values(eval_gradient=True),
        f"{whole:.1f}",
        over_values(dtype="float64"),
        over_values(stopping_probability=0.0005),
        f"{nodal[0] / values[0]:.2f}",
        f"{values[1]:.1f}",
        f"{nodal[1]:.1f}",
    ]


def shortest(call: Callable[[], Any], repeats: int) -> tuple[float, float]:
    """Return the shortest times of the launches of a call, and of the call [ms]."""
    import cupy

    call()
    found = []
    for _ in range(repeats):
        with launches_timed() as spans:
            begin = time.perf_counter()
            call()
            cupy.cuda.Device().synchronize()
            whole = 1e3 * (time.perf_counter() - begin)
        found.append((sum(cupy.cuda.get_elapsed_time(*span) for span in spans), whole))
    cupy.get_default_memory_pool().free_all_blocks()
    return tuple(min(column) for column in zip(*found, strict=True))


@contextmanager
def launches_timed() -> Iterator[list]:
    """Record events around the kernels of each call of the solver."""
    import cupy

    from sklearn_mgk.solver import cuda

    spans, start = [], cuda.start

    def timed(*arguments):
        span = cupy.cuda.Event(), cupy.cuda.Event()
        span[0].record()
        start(*arguments)
        span[1].record()
        spans.append(span)

    cuda.start = timed
    try:
        yield spans
    finally:
        cuda.start = start


def counts(
    problem: Problem, pairs: np.ndarray, iterations: np.ndarray
) -> tuple[float, float, float]:
    """Non-zeros and exponentials of all iterations, and the time that they need at least [ms]."""
    batch, edges = problem.batch, topology(problem.batch)
    entries = np.bincount(edges.graph, minlength=len(batch)).astype(float)
    products = entries[pairs].prod(axis=1) @ iterations
    is_bipartite = colour_order(batch).n_red.astype(np.int64) < batch.sizes
    kept = np.where(is_bipartite[pairs].any(axis=1), 0.5, 1.0)
    unknowns = (kept * batch.sizes[pairs].astype(float).prod(axis=1)) @ iterations
    on_the_fly = problem.edge.n_labels > MAX_TABLE_LABELS
    exponentials = products / 2 * share_in_reach(problem, edges) if on_the_fly else 0.0
    seconds = (products + VECTOR_ACCESSES * unknowns) / ACCESSES, exponentials / EXPONENTIALS
    return products, exponentials, 1e3 * max(seconds)


def share_in_reach(problem: Problem, edges) -> float:
    """Share of the pairs of edges that an edge kernel of windows does not leave out."""
    found = find_reach(problem, edges)
    if found is None:
        return 1.0
    attribute, reach = found
    lengths = np.sort(problem.edge.labels.columns[attribute][problem.edge.labels.codes])
    some = np.random.default_rng(0).permutation(lengths)[:5000]
    lo, hi = (np.searchsorted(lengths, some + step) for step in (-reach, reach))
    return float((hi - lo).mean() / len(lengths))


def make(name: str, data: Path) -> tuple[GraphBatch, MarginalizedGraphKernel]:
    """Graphs and kernel of a workload."""
    import workloads
    from spatial import qm7, spatial_kernel
    from tiles import proteins

    if name.startswith("qm7_3d"):
        return qm7(data, 2000 if name.endswith("2000") else 7101), spatial_kernel()
    if name == "proteins":
        return proteins(data), spatial_kernel()
    if name in ("nws", "ba"):
        return workloads.paper_graphs(name), workloads.lengths_kernel()
    smiles = workloads.smiles_with_bonds(data, name.removesuffix("_2000"))
    if name == "drugs_2000":
        chosen = np.sort(np.random.default_rng(1).permutation(len(smiles))[:2000])
        smiles = [smiles[k] for k in chosen]
    return workloads.from_smiles(smiles), workloads.molecule_kernel()


if __name__ == "__main__":
    main()
