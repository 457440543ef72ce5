# SPDX-License-Identifier: BSD-3-Clause
"""What the operation count allows on this machine for the Gram matrix of ESOL.

Floor 1 is the plain method: conjugate gradients with the Jacobi preconditioner on the whole system,
one gathered multiply-add for each non-zero of the product operator and iteration, and nothing else.
Floor 2 is the method of the solver: the iterations that it needs on half of each bipartite graph's
product nodes, the edges of a node that bear one label taken together, vector updates included. Both
are divided by the rate at which this machine does such multiply-adds on data in the first-level
cache. For comparison, the plain method written as a double loop over neighbours.
"""

from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import timing  # first: sets the number of threads
import workloads
from numba import njit

from sklearn_mgk import from_smiles
from sklearn_mgk.plan import make_problem
from sklearn_mgk.solver import get_backend
from sklearn_mgk.solver.topology import topology

TOLERANCE = 1e-8
VECTOR_STREAMS = 6
"""Multiply-adds for each unknown and iteration: two dot products, three updates, the diagonal."""


def main():
    command = timing.parser(__doc__)
    command.add_argument("--graphs", type=int, help="use the first molecules only, default all")
    options = command.parse_args()
    batch = from_smiles(workloads.smiles_with_bonds(options.data, "esol"))
    batch = batch[: options.graphs] if options.graphs else batch
    kernel = workloads.molecule_kernel(tol=TOLERANCE)
    problem = make_problem(kernel, batch)
    pairs = np.stack(np.triu_indices(len(batch)), axis=1)

    solve = get_backend("cpu").solver(problem, False)
    took_solver = timing.seconds(lambda: solve(pairs))
    took_gram = timing.seconds(lambda: kernel(batch))
    solution = solve(pairs)
    plain, took_plain = solve_plainly(problem, pairs)
    error = np.abs(plain["value"] / solution.values - 1).max()

    counts = Counts(problem, pairs)
    work = {
        "plain": counts.plain_products * plain["iterations"],
        "solver": counts.grouped_gathers * solution.iterations,
        "additions": counts.grouped_additions * solution.iterations,
        "vectors": counts.unknowns * VECTOR_STREAMS * solution.iterations,
    }
    gather, stream = peak(gather_loop), peak(stream_loop)
    floor_plain = work["plain"].sum() / gather
    floor_solver = (
        work["solver"].sum() / gather + (work["additions"] + work["vectors"]).sum() / stream
    )
    n = len(pairs)
    print(
        f"{len(batch)} molecules, {n:,} pairs, {batch.sizes.mean():.1f} atoms on average.\n"
        f"Peak of {timing.THREADS} threads: {gather / 1e9:.2f} G gathered multiply-adds/s, "
        f"{stream / 1e9:.2f} G streamed ones.\n"
        f"Mean of a pair: {counts.plain_products.mean():.0f} non-zeros of the product operator; "
        f"plain method {plain['iterations'].mean():.1f} iterations, "
        f"{work['plain'].mean():,.0f} multiply-adds; solver {solution.iterations.mean():.1f} "
        f"iterations, {work['solver'].mean():,.0f} gathered, "
        f"{work['additions'].mean():,.0f} streamed in products, "
        f"{work['vectors'].mean():,.0f} in vectors.\n"
        f"Plain loop against the solver: largest relative difference {error:.1e}."
    )
    rows = [
        ["Gram matrix (graphs to float64 matrix)", took_gram],
        ["solver alone", took_solver],
        ["plain numba, double loop over neighbours", took_plain],
        ["floor 1: plain method", floor_plain],
        ["floor 2: method of the solver", floor_solver],
    ]
    timing.show(
        ["ESOL, values, float64", "s", "pairs/s", "of floor 1", "of floor 2"],
        [
            [
                name,
                timing.number(t),
                f"{n / t:,.0f}",
                f"{floor_plain / t:.0%}",
                f"{floor_solver / t:.0%}",
            ]
            for name, t in rows
        ],
    )


class Counts:
    """Multiply-adds of one product with W, for each pair of graphs."""

    def __init__(self, problem, pairs):
        batch, edges = problem.batch, topology(problem.batch)
        n_graphs = len(batch)
        entries = np.bincount(edges.graph, minlength=n_graphs)
        label = problem.edge.labels.codes[edges.edge].astype(np.int64)
        # The edges that leave one node and bear one label make a group.
        _, first = np.unique(edges.source * problem.edge.n_labels + label, return_index=True)
        groups = np.bincount(edges.graph[first], minlength=n_graphs)
        sizes = batch.sizes
        red = red_nodes(batch, edges)
        i, j = pairs.T
        self.plain_products = entries[i] * entries[j]
        # Each pair has one graph whose nodes are halved (where bipartite) and whose edges are
        # grouped, and one whose entries are run through; the cheaper way round.
        ways = []
        for a, b in ((i, j), (j, i)):
            gathers, additions = groups[a] * entries[b], entries[a] * sizes[b]
            unknowns = red[a] * sizes[b]
            ways.append((gathers, additions, unknowns))
        total = [gathers + additions + VECTOR_STREAMS * n for gathers, additions, n in ways]
        # Half the unknowns also halve the iterations, which were counted for the solver's way.
        better = (red[i] / sizes[i] > red[j] / sizes[j]) | (
            (red[i] / sizes[i] == red[j] / sizes[j]) & (total[1] < total[0])
        )
        self.grouped_gathers, self.grouped_additions, self.unknowns = (
            np.where(better, second, first) for first, second in zip(*ways, strict=True)
        )


def red_nodes(batch, edges) -> np.ndarray:
    """Nodes in the larger colour class of each bipartite graph, all nodes of the others."""
    colour = np.full(batch.n_nodes, -1)
    neighbours = [[] for _ in range(batch.n_nodes)]
    for a, b in zip(edges.source.tolist(), edges.target.tolist(), strict=True):
        neighbours[a].append(b)
    bipartite = np.ones(len(batch), bool)
    for root in range(batch.n_nodes):
        stack = [root] if colour[root] < 0 else []
        colour[root] = max(colour[root], 0)
        while stack:
            node = stack.pop()
            for other in neighbours[node]:
                if colour[other] < 0:
                    colour[other] = 1 - colour[node]
                    stack.append(other)
                elif colour[other] == colour[node]:
                    bipartite[batch.node_graph[node]] = False
    ones = np.bincount(batch.node_graph, weights=colour, minlength=len(batch)).astype(int)
    return np.where(bipartite, np.maximum(ones, batch.sizes - ones), batch.sizes)


@njit(nogil=True, fastmath=True, error_model="numpy")
def gather_loop(values, index, source, out, repeats):
    """Gathered multiply-adds as in a product with a sparse matrix of two entries a row."""
    for r in range(repeats):
        for t in range(len(out)):
            k = np.uint64(2) * np.uint64(t)
            out[t] = (
                values[k] * source[index[k]]
                + values[k + np.uint64(1)] * source[index[k + np.uint64(1)]]
            )
        source[r % len(source)] = out[r % len(out)]
    return 2 * len(out) * repeats


@njit(nogil=True, fastmath=True, error_model="numpy")
def stream_loop(values, index, source, out, repeats):
    """Multiply-adds of one vector to another."""
    for r in range(repeats):
        factor = values[r % len(values)]
        for t in range(len(source)):
            values[t] += factor * source[t]
    return len(source) * repeats


def peak(loop) -> float:
    """Multiply-adds per second of all threads, on 20 kB for each; the best of several runs."""
    rng = np.random.default_rng(0)
    n = 512

    def run(repeats):
        index = rng.integers(0, n, 2 * n).astype(np.uint64)
        arrays = rng.random(2 * n), index, rng.random(n), np.zeros(n)
        begin = time.perf_counter()
        return loop(*arrays, repeats) / (time.perf_counter() - begin)

    run(10)
    with ThreadPoolExecutor(timing.THREADS) as pool:
        runs = [sum(pool.map(run, [200_000] * timing.THREADS)) for _ in range(5)]
    return max(runs)


@njit(nogil=True, fastmath=True, error_model="numpy")
def solve_pair(node, degree, flow, ptr, other, code, node_table, edge_table, work):
    """Preconditioned conjugate gradients; each argument but the last three is a pair of arrays."""
    n, n2 = len(node[0]), len(node[1])
    size = n * n2
    x, r, p, y, diagonal = work[0][:size], work[1][:size], work[2][:size], work[3], work[4]
    rz = 0.0
    for i in range(n):
        for i2 in range(n2):
            k = i * n2 + i2
            diagonal[k] = degree[0][i] * degree[1][i2] / node_table[node[0][i], node[1][i2]]
            x[k], r[k] = 0, flow[0][i] * flow[1][i2]
            p[k] = r[k] / diagonal[k]
            rz += r[k] * p[k]
    limit, iterations = 1e-16 * rz, 0
    while rz > limit:
        curvature = 0.0
        for i in range(n):
            for i2 in range(n2):
                total = 0.0
                for e in range(ptr[0][i], ptr[0][i + 1]):
                    for e2 in range(ptr[1][i2], ptr[1][i2 + 1]):
                        total += (
                            edge_table[code[0][e], code[1][e2]] * p[other[0][e] * n2 + other[1][e2]]
                        )
                k = i * n2 + i2
                y[k] = diagonal[k] * p[k] - total
                curvature += p[k] * y[k]
        alpha, new = rz / curvature, 0.0
        for k in range(size):
            x[k] += alpha * p[k]
            r[k] -= alpha * y[k]
            new += r[k] * r[k] / diagonal[k]
        for k in range(size):
            p[k] = r[k] / diagonal[k] + new / rz * p[k]
        rz = new
        iterations += 1
    return x.sum(), iterations


@njit(nogil=True)
def solve_chunk(pairs, node_ptr, entry_ptr, columns, tables, values, iterations):
    """Solve some pairs; the index of the neighbours of each node is that of its graph."""
    node, degree, flow, ptr, other, code = columns
    work = np.empty((5, np.diff(node_ptr).max() ** 2))
    for k in range(len(pairs)):
        g, h = pairs[k]
        a, b, a2, b2 = node_ptr[g], node_ptr[g + 1], node_ptr[h], node_ptr[h + 1]
        e, f, e2, f2 = entry_ptr[g], entry_ptr[g + 1], entry_ptr[h], entry_ptr[h + 1]
        values[k], iterations[k] = solve_pair(
            (node[a:b], node[a2:b2]),
            (degree[a:b], degree[a2:b2]),
            (flow[a:b], flow[a2:b2]),
            (ptr[a : b + 1] - e, ptr[a2 : b2 + 1] - e2),
            (other[e:f], other[e2:f2]),
            (code[e:f], code[e2:f2]),
            tables[0],
            tables[1],
            work,
        )


def solve_plainly(problem, pairs):
    """Values and iterations of the plain loop, and its time on all threads [s]."""
    batch, edges = problem.batch, topology(problem.batch)
    order = np.argsort(edges.source, kind="stable")
    ptr = np.concatenate([[0], np.cumsum(np.bincount(edges.source, minlength=batch.n_nodes))])
    columns = (
        problem.node.labels.codes,
        problem.degree,
        problem.degree * problem.stop,
        ptr,
        (edges.target - batch.node_ptr[edges.graph])[order],
        problem.edge.labels.codes[edges.edge][order],
    )
    tables = tuple(k.kernel.table(k.labels) for k in (problem.node, problem.edge))
    values, iterations = np.empty(len(pairs)), np.empty(len(pairs), np.int64)
    shuffled = np.random.default_rng(0).permutation(len(pairs))

    def run(places):
        found = np.empty(len(places)), np.empty(len(places), np.int64)
        solve_chunk(pairs[places], batch.node_ptr, ptr[batch.node_ptr], columns, tables, *found)
        values[places], iterations[places] = found

    def run_all():
        with ThreadPoolExecutor(timing.THREADS) as pool:
            list(pool.map(run, np.array_split(shuffled, 16 * timing.THREADS)))

    took = timing.seconds(run_all)
    return {"value": values, "iterations": iterations}, took


if __name__ == "__main__":
    main()
