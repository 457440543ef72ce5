# SPDX-License-Identifier: BSD-3-Clause
"""How pairs of the marginalized kernel are best given to the workers of a GPU, by simulation.

The work of a pair is its cost (entries of the product operator and vectors, what the solvers sort
by) times the iterations that it took. Pairs are handed out one by one to the first worker that is
free, as the CUDA solver does, or cut beforehand into one run for each worker: of equal predicted
cost, as a plan of sparse products cuts rows, or of equally many pairs. Figures are the end of the
last worker over the mean; 1 is perfect. The hybrid metric H of sparse products is tried as cost.
"""

from __future__ import annotations

import heapq

import numpy as np
import timing  # first: sets the number of threads
import workloads

from sklearn_mgk import MarginalizedGraphKernel, from_smiles
from sklearn_mgk.base_kernels import KroneckerDelta, SquaredExponential
from sklearn_mgk.graphs import GraphBatch
from sklearn_mgk.plan import make_problem
from sklearn_mgk.propagation.matrices import as_rows_of
from sklearn_mgk.propagation.partition import hybrid_metric, imbalance, walk_density
from sklearn_mgk.solver import get_backend
from sklearn_mgk.solver.schedule import estimate_cost

WORKERS = (132, 1056)  # multiprocessors, and eight blocks on each


def main():
    command = timing.parser(__doc__)
    command.add_argument("--pairs", type=int, default=20_000)
    options = command.parse_args()
    for name, make in WORKLOADS.items():
        batch, kernel = make(options.data)
        show(name, *measure(batch, kernel, options.pairs))


def molecules(name):
    """Return what makes a set of molecules and its kernel."""
    return lambda data: (
        from_smiles(workloads.smiles_with_bonds(data, name)),
        workloads.molecule_kernel(),
    )


def mixed(data):
    """Random graphs of 8 to 64 nodes, and a kernel of labels and lengths."""
    sizes = np.geomspace(8, 64, 40).astype(int)
    parts = [
        workloads.random_graphs(5, int(n), 5.0, [0.5, 1.0, 1.5], seed)
        for seed, n in enumerate(sizes)
    ]
    node, edge = KroneckerDelta("label", h=0.5), SquaredExponential("length", length_scale=1.0)
    return GraphBatch.concatenate(parts), MarginalizedGraphKernel(node, edge, cache_size=0)


WORKLOADS = {"esol": molecules("esol"), "drugs": molecules("drugs"), "random, 8 to 64": mixed}


def measure(batch, kernel, n_pairs):
    """Return the models of the cost of random pairs, their work, iterations and density."""
    pairs = np.random.default_rng(0).integers(0, len(batch), (n_pairs, 2))
    iterations = get_backend("cpu").solver(make_problem(kernel, batch), False)(pairs).iterations
    A = as_rows_of(batch)
    n_entries = np.add.reduceat(A.lengths, batch.node_ptr[:-1])
    cost = estimate_cost(n_entries, batch.sizes.astype(float), pairs)
    density = np.add.reduceat(walk_density(A, 8, 4, 0), batch.node_ptr[:-1]) / batch.sizes
    of_pairs = density[pairs].sum(axis=1)
    models = {
        "cost": cost,
        "H, α = 0.5": hybrid_metric(cost, of_pairs, 0.5),
        "H, α = 0.1": hybrid_metric(cost, of_pairs, 0.1),
    }
    return models, cost * iterations, iterations, of_pairs


def show(name, models, work, iterations, density) -> None:
    """Print the table of a workload."""
    as_given = np.arange(len(work))
    schemes = {"equal numbers, as given": (as_given, np.ones(len(work)))}
    schemes["cost, as given"] = as_given, models["cost"]
    for model, cost in models.items():
        schemes[f"{model}, largest first"] = np.argsort(-cost, kind="stable"), cost
    rows = []
    for scheme, (order, cost) in schemes.items():
        known = f"{np.corrcoef(cost, work)[0, 1]:.3f}" if np.ptp(cost) else "-"
        cells = [f"{makespan(work[order], n):.3f}" for n in WORKERS]
        cells += [f"{cut(cost[order], work[order], n):.3f}" for n in WORKERS]
        rows.append([scheme, *cells, known])
    print(
        f"\n{name}: {len(work)} pairs, {iterations.min()} to {iterations.max()} iterations, mean "
        f"{iterations.mean():.1f}; their correlation with density "
        f"{np.corrcoef(density, iterations)[0, 1]:.2f}; least possible with the largest pair: "
        + ", ".join(f"{max(1, work.max() * n / work.sum()):.3f}" for n in WORKERS)
    )
    header = [f"handed out to {n}" for n in WORKERS] + [f"cut for {n}" for n in WORKERS]
    timing.show(["pairs by", *header, "correlation with the work"], rows)


def makespan(work, n_workers) -> float:
    """End of the last of some workers, each taking the next item when it is free, over the mean."""
    ends = [0.0] * n_workers
    for item in work:
        heapq.heapreplace(ends, ends[0] + item)
    return max(ends) * n_workers / work.sum()


def cut(cost, work, n_workers) -> float:
    """Work of the heaviest of some runs of equal predicted cost, over the mean."""
    total = np.append(0, np.cumsum(cost))
    blocks = np.searchsorted(total, np.linspace(0, total[-1], n_workers + 1)[:-1])
    return imbalance(np.diff(np.append(0, np.cumsum(work))[np.append(blocks, len(work))]))


if __name__ == "__main__":
    main()
