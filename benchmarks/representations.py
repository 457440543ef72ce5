# SPDX-License-Identifier: BSD-3-Clause
"""Which way to a base kernel is the fastest: one table, a table for each pair, or factors.

Part 1: one table over all L distinct edge labels against a table for each pair of graphs, by L.
It justifies ``MAX_TABLE_LABELS``. Part 2: windows of similar labels against factors, by the
degree of the nodes and by the length scale of the edge kernel, which sets the rank. It justifies
``FACTOR_GAIN_OVER_WINDOWS``: factors are used where rank <= that x distinct labels at a node.
Part 3: windows against a table for each pair, by degree and length scale. It justifies
``WINDOW_LABELS``.
"""

from __future__ import annotations

import itertools

import numpy as np
import timing  # first: sets the number of threads
import workloads

from sklearn_mgk import MarginalizedGraphKernel
from sklearn_mgk.base_kernels import KroneckerDelta, SquaredExponential
from sklearn_mgk.plan import make_problem
from sklearn_mgk.solver import factored, get_backend, tables
from sklearn_mgk.solver.factored import TOLERANCE, labels_per_node
from sklearn_mgk.solver.topology import topology

NEVER, ALWAYS = 0, 10**9
MAX_RANK = 200


def main():
    command = timing.parser(__doc__, data=False)
    command.add_argument("--pairs", type=int, default=1000, help="pairs of part 1, default 1000")
    command.add_argument("--quick", action="store_true", help="a few cases only")
    options = command.parse_args()
    crossover_of_tables(options)
    crossover_of_factors(options)
    crossover_of_windows(options)


def seconds(kernel, batch, labels: float, gain: float, windows: float = ALWAYS) -> float:
    """Time of all pairs, preparation included, with the rules set to the given limits."""
    rules = {
        (tables, "MAX_TABLE_LABELS"): labels,
        (factored, "FACTOR_GAIN"): gain,
        (factored, "FACTOR_GAIN_OVER_WINDOWS"): gain,
        (factored, "WINDOW_LABELS"): windows,
    }
    saved = {rule: getattr(*rule) for rule in rules}
    for rule, value in rules.items():
        setattr(*rule, value)
    pairs = np.stack(np.triu_indices(len(batch)), axis=1)
    try:
        problem = make_problem(kernel, batch)
        return timing.seconds(lambda: get_backend("cpu").solver(problem, False)(pairs))
    finally:
        for rule, value in saved.items():
            setattr(*rule, value)


def kernel_of_length(length_scale: float) -> MarginalizedGraphKernel:
    """Kernel for `workloads.random_graphs`."""
    return MarginalizedGraphKernel(
        KroneckerDelta("label", h=0.5),
        SquaredExponential("length", length_scale=length_scale),
        cache_size=0,
    )


def crossover_of_tables(options):
    """One table against a table for each pair."""
    n_graphs = int(np.sqrt(2 * options.pairs))
    rows, ratios = [], {}
    shapes = [(15, 2.2)] if options.quick else [(15, 2.2), (24, 6.0), (60, 8.0)]
    numbers = [64, 1024] if options.quick else [16, 64, 128, 256, 512, 1024, 2048, 4096]
    for (nodes, degree), n_labels in itertools.product(shapes, numbers):
        labels = np.linspace(0, 3, n_labels)
        batch = workloads.random_graphs(n_graphs, nodes, degree, labels)
        kernel = kernel_of_length(0.1)
        table = seconds(kernel, batch, ALWAYS, NEVER)
        pair = seconds(kernel, batch, 0, NEVER)
        ratios.setdefault((nodes, degree), {})[n_labels] = table / pair
        rows.append(
            [
                nodes,
                degree,
                n_labels,
                f"{table * 1e3:.0f}",
                f"{pair * 1e3:.0f}",
                f"{table / pair:.2f}",
            ]
        )
        print(*rows[-1], sep=" | ", flush=True)
    pairs = workloads.n_pairs(n_graphs)
    timing.show(["nodes", "degree", "labels", "one table, ms", "table a pair, ms", "ratio"], rows)
    for shape, found in ratios.items():
        faster = [n for n, ratio in found.items() if ratio <= 1]
        print(
            f"{pairs} pairs of graphs of {shape[0]} nodes, degree {shape[1]}: "
            f"one table is the faster up to {max(faster, default=0)} labels."
        )
    print(f"MAX_TABLE_LABELS is {tables.MAX_TABLE_LABELS}.")


def crossover_of_factors(options):
    """Windows against factors."""
    rows, points = [], []
    degrees = [4, 24] if options.quick else [4, 8, 16, 32, 48]
    scales = [0.5, 4.0] if options.quick else [0.3, 0.6, 1.0, 2.0, 4.0, 8.0, 16.0]
    for degree, scale in itertools.product(degrees, scales):
        nodes = max(24, degree * 3 // 2)
        batch = workloads.random_graphs(6, nodes, degree, np.linspace(0, 1, 20000))
        kernel = kernel_of_length(scale)
        problem = make_problem(kernel, batch)
        found = factored.find_factors(problem.edge, TOLERANCE[problem.dtype], MAX_RANK)
        if found is None:
            continue
        rank = found.shape[1]
        per_node = labels_per_node(problem.edge, batch, topology(batch))
        pair = seconds(kernel, batch, 0, NEVER, NEVER)
        factors = seconds(kernel, batch, 0, MAX_RANK / per_node)
        points.append((rank / per_node, pair / factors))
        rows.append(
            [
                nodes,
                f"{per_node:.1f}",
                scale,
                rank,
                f"{rank / per_node:.2f}",
                f"{pair * 1e3:.0f}",
                f"{factors * 1e3:.0f}",
                f"{pair / factors:.2f}",
            ]
        )
        print(*rows[-1], sep=" | ", flush=True)
    header = ["nodes", "labels at a node", "length scale", "rank R", "R / labels"]
    timing.show([*header, "windows, ms", "factors, ms", "gain"], rows)
    print(f"FACTOR_GAIN_OVER_WINDOWS is {factored.FACTOR_GAIN_OVER_WINDOWS}; {recommend(points)}")


def crossover_of_windows(options):
    """Windows against a table for each pair; lengths lie between 0 and 1."""
    rows = []
    degrees = [2, 8] if options.quick else [2, 3, 4, 6, 8, 12]
    n_graphs = int(np.sqrt(2 * options.pairs))
    for degree, scale in itertools.product(degrees, [0.02, 0.1, 10.0]):
        batch = workloads.random_graphs(n_graphs, 24, degree, np.linspace(0, 1, 20000))
        kernel = kernel_of_length(scale)
        pair = seconds(kernel, batch, 0, NEVER)
        windows = seconds(kernel, batch, 0, NEVER, NEVER)
        times = f"{pair * 1e3:.0f}", f"{windows * 1e3:.0f}", f"{pair / windows:.2f}"
        rows.append([24, degree, scale, *times])
        print(*rows[-1], sep=" | ", flush=True)
    header = ["nodes", "degree", "length scale", "table a pair, ms", "windows, ms", "gain"]
    timing.show(header, rows)
    print(f"WINDOW_LABELS is {factored.WINDOW_LABELS}.")


def recommend(points: list[tuple[float, float]]) -> str:
    """Find the limit on R / labels that loses the least time over all cases."""
    limits = sorted(ratio for ratio, _ in points)
    # Loss of a rule: the sum of the logarithms of chosen over best time.
    losses = [
        sum(
            max(np.log(gain), 0) if ratio > limit else max(-np.log(gain), 0)
            for ratio, gain in points
        )
        for limit in limits
    ]
    best = limits[int(np.argmin(losses))]
    above = min((ratio for ratio in limits if ratio > best), default=best)
    return (
        f"the best limit on these cases lies between {best:.2f} and {above:.2f} "
        f"(chosen times are then {np.expm1(min(losses) / len(points)):.1%} above the best)."
    )


if __name__ == "__main__":
    main()
