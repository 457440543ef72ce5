# SPDX-License-Identifier: BSD-3-Clause
"""What each technique of the CUDA solver brings: those of the paper one by one, then ours.

The time is that of one call of a prepared solver, warm, in float32 with ``tol=1e-7``. Where the
call would take longer than ``--limit``, pairs are drawn at random from the cheaper half, and their
time is scaled by the number of tile pairs (or product entries) times iterations; the table says how
many pairs were timed. Values of all steps are checked against the CPU solver in float64 with
``tol=1e-12``, on pairs from the cheaper half.

``--prepare FOLDER`` writes graphs, node orders and exact values, from the data that ``--data``
names, on any machine; ``--graphs FOLDER`` reads them on a machine with a device and measures.
``--save FILE`` keeps the figures, ``--plot FILE`` draws them, in the same run or later from
``--load FILE``; of several files the later ones count. ``--ours`` leaves the paper's part out.
"""

from __future__ import annotations

import json
import pickle
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import timing  # first: sets the number of threads
from gpu import N_CHECKED, Workload, make

from sklearn_mgk import node_order
from sklearn_mgk.solver.techniques import Techniques
from sklearn_mgk.solver.topology import topology

SETS = ("nws", "ba", "drugs_2000", "proteins")
LARGEST_ERROR = 3e-6
PILOT = 1000  # pairs from which the time of all is guessed, or more
LEAST = 0.02  # time that they must take, so that launches do not count [s]

PLAIN = Techniques(
    octiles=False, order="natural", adaptive=False, shared_tiles=False, dynamic=False
)
PAPER = {
    "naive": {"on_the_fly": False},
    "+ on the fly": {"on_the_fly": True},
    "+ octiles": {"octiles": True},
    "+ reordering": {"order": "partition"},
    "+ adaptive, compact": {"adaptive": True},
    "+ shared tiles": {"shared_tiles": True},
    "+ dynamic": {"dynamic": True},
}
"""What each step switches on, as a field of `Techniques`."""

OURS = {
    "ours: blocks": ("windows", "elimination", "strips"),
    "+ windows": ("elimination", "strips"),
    "+ elimination": ("strips",),
    "+ strips": (),
}
"""What of the package's solver each step still leaves out."""


@dataclass
class Ordered(Workload):
    """A workload and its partition order."""

    order: np.ndarray | None = None

    def anew(self) -> Ordered:
        """Copy without what solvers keep on the graphs."""
        return replace(self, batch=pickle.loads(pickle.dumps(self.batch)))

    def n_entries(self) -> np.ndarray:
        """Entries of the adjacency matrix of each graph."""
        return np.bincount(topology(self.batch).graph, minlength=len(self.batch))


def main():
    command = timing.parser(__doc__, data=False)
    command.add_argument("--data", type=Path, help="folder with molecules/, drugs/ and proteins/")
    command.add_argument("--prepare", type=Path, help="folder to write graphs to")
    command.add_argument("--graphs", type=Path, help="folder to read graphs from")
    command.add_argument("--sets", nargs="*", default=list(SETS), choices=SETS)
    command.add_argument("--limit", type=float, default=1.0, help="longest call to time [s]")
    command.add_argument(
        "--warps", type=int, default=4, help="warps of a block, in the paper's part"
    )
    command.add_argument("--save", type=Path, help="file to write the figures to")
    command.add_argument("--load", type=Path, nargs="*", help="files to read figures from")
    command.add_argument("--ours", action="store_true", help="measure the package's solver only")
    command.add_argument("--plot", type=Path, help="where to draw the figures")
    options = command.parse_args()
    if options.prepare:
        return prepare(options)
    rows = load_all(options.load) if options.load else measure_all(options)
    if options.save:
        options.save.write_text(json.dumps(rows, indent=1))
    show(rows)
    if options.plot:
        draw(rows, options.plot)


def load_all(paths: list[Path]) -> list[dict]:
    """Read rows, each workload and step once."""
    rows = [row for path in paths for row in json.loads(path.read_text())]
    return list({(row["workload"], row["step"]): row for row in rows}.values())


def prepare(options) -> None:
    """Write the workloads, one file each."""
    for name in options.sets:
        batch, kernel = make(name, options.data)
        work = Ordered(batch, kernel, order=node_order(batch, "partition"))
        pairs = work.all_pairs()
        cheap = pairs[cheaper_half(cost_of(pairs, work.n_entries()))]
        work.solve_exactly(np.random.default_rng(5).permutation(cheap)[:N_CHECKED])
        work.write(options.prepare, name)


def cost_of(pairs: np.ndarray, cost: np.ndarray) -> np.ndarray:
    """Cost of pairs: the product of those of their graphs."""
    return cost[pairs].prod(axis=1)


def cheaper_half(cost: np.ndarray) -> np.ndarray:
    """Places of what costs no more than the median."""
    return np.flatnonzero(cost <= np.median(cost))


def measure_all(options) -> list[dict]:
    """Measure all steps on all workloads; one row each."""
    rows = []
    for name in options.sets:
        work = Ordered.read(options.graphs, name)
        iterations = iterations_of_all(work)
        for step, prepared in steps(work, options):
            with prepared() as (solve, cost):
                row = measure(solve, cost, work, iterations, options.limit)
            rows.append({"workload": name, "step": step, **row})
            print(rows[-1], flush=True)
    return rows


def iterations_of_all(work: Ordered) -> np.ndarray:
    """Count the iterations of all pairs, without elimination as in the paper."""
    with without(("elimination", "strips")):
        solve, _ = work.anew().solver("cuda")
        return solve(work.all_pairs()).iterations


def steps(work: Ordered, options) -> Iterator[tuple[str, Callable]]:
    """Yield names and contexts that give a solver and the cost of each graph for it."""
    techniques = replace(PLAIN, warps=options.warps)
    for step, switch in () if options.ours else PAPER.items():
        known = {"order": work.order} if "order" in switch else switch
        techniques = replace(techniques, **known)
        yield step, lambda chosen=techniques: by_techniques(work, chosen)
    for step, left_out in OURS.items():
        yield step, lambda left_out=left_out: by_package(work, left_out)


@contextmanager
def by_techniques(work: Ordered, techniques: Techniques):
    from sklearn_mgk.solver.cuda_techniques import TechniqueSolver

    solve = TechniqueSolver(work.problem("cuda"), techniques)
    yield solve, solve.form.cost


@contextmanager
def by_package(work: Ordered, left_out: tuple[str, ...]):
    with without(left_out):
        solve, _ = work.anew().solver("cuda")
        yield solve, work.n_entries()


@contextmanager
def without(left_out: tuple[str, ...]):
    """Leave something of the package's solver out for a while."""
    from sklearn_mgk.solver import cuda, cuda_graphs
    from sklearn_mgk.solver.layout import plain_order

    def no_strips(xp, graphs, pairs, itemsize, limit):
        return orient(xp, graphs, pairs, itemsize, 0)

    orient = cuda.orient_for_strips
    instead = {
        "windows": (cuda, "find_reach", lambda *_: None),
        "elimination": (cuda_graphs, "colour_order", plain_order),
        "strips": (cuda, "orient_for_strips", no_strips),
    }
    before = [(module, name, getattr(module, name)) for module, name, _ in instead.values()]
    try:
        for part in left_out:
            setattr(*instead[part])
        yield
    finally:
        for place in before:
            setattr(*place)


def measure(solve, cost: np.ndarray, work: Ordered, iterations: np.ndarray, limit: float) -> dict:
    """Time of all pairs [s], pairs timed, and the largest error."""
    error = float(np.abs(solve(work.pairs).values / work.values - 1).max())
    if not error < LARGEST_ERROR:
        raise SystemExit(f"relative error {error:.1e}")
    pairs = work.all_pairs()
    of_pairs = cost_of(pairs, cost)
    total = of_pairs * np.maximum(iterations, 1)
    drawn = np.random.default_rng(7).permutation(cheaper_half(of_pairs))
    some, spent = pilot(solve, pairs, drawn)
    guess = spent * total.sum() / total[some].sum()
    if guess <= limit:
        best = timing.times(lambda: solve(pairs), warm_up=False)[0]
        return {"seconds": best, "timed": len(pairs), "pairs": len(pairs), "error": error}
    n = min(int(len(some) * limit / spent), len(drawn))
    if n > len(some):
        some = drawn[:n]
        spent = seconds(solve, pairs[some])
    scaled = spent * float(total.sum() / total[some].sum())
    return {"seconds": scaled, "timed": len(some), "pairs": len(pairs), "error": error}


def pilot(solve, pairs: np.ndarray, drawn: np.ndarray) -> tuple[np.ndarray, float]:
    """As many pairs as take a measurable time, and that time [s]."""
    n = PILOT
    while True:
        some = drawn[:n]
        solve(pairs[some])
        spent = seconds(solve, pairs[some])
        if spent >= LEAST or n >= len(drawn):
            return some, spent
        n *= 8


def seconds(solve, pairs: np.ndarray) -> float:
    """Time of one call; it ends when the values are on the host."""
    return timing.times(lambda: solve(pairs), 1, warm_up=False)[0]


def by_workload(rows: list[dict]) -> dict[str, list[dict]]:
    """Rows of each workload, in order."""
    found: dict[str, list[dict]] = {}
    for row in rows:
        found.setdefault(row["workload"], []).append(row)
    return found


def show(rows: list[dict]) -> None:
    """Print one table for each workload."""
    for name, own in by_workload(rows).items():
        before, table = own[0]["seconds"], []
        for row in own:
            timed = row["timed"] / row["pairs"]
            table.append(
                [
                    row["step"],
                    timing.number(1e3 * row["seconds"]),
                    timing.number(before / row["seconds"]),
                    timing.number(own[0]["seconds"] / row["seconds"]),
                    "all" if timed == 1 else f"{row['timed']:,} ({timed:.1%})",
                    f"{row['error']:.1e}",
                ]
            )
            before = row["seconds"]
        print(f"\n{name}, {own[0]['pairs']:,} pairs")
        timing.show(["step", "ms", "over the last", "over naive", "timed pairs", "error"], table)


def draw(rows: list[dict], path: Path) -> None:
    """Draw the speed over the naive solver, one panel for each workload."""
    from matplotlib.figure import Figure

    panels = by_workload(rows)
    figure = Figure(figsize=(3.1 * len(panels), 4.2), layout="constrained")
    for axes, (name, own) in zip(
        figure.subplots(1, len(panels), sharey=True, squeeze=False)[0], panels.items(), strict=True
    ):
        speed: Any = [own[0]["seconds"] / row["seconds"] for row in own]
        colours = ["#7fb3d5" if row["step"] in PAPER else "#0b3c6f" for row in own]
        axes.bar(range(len(own)), speed, color=colours)
        axes.set(title=name, yscale="log")
        axes.set_xticks(range(len(own)), [row["step"] for row in own], rotation=90)
        for k, value in enumerate(speed):
            axes.annotate(timing.number(value, 2), (k, value), ha="center", va="bottom", fontsize=7)
    figure.axes[0].set_ylabel("speed over the naive solver")
    figure.savefig(path, dpi=110)


if __name__ == "__main__":
    main()
