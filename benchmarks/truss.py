# SPDX-License-Identifier: BSD-3-Clause
"""k-truss on the CPU: known counts, beside other libraries, batches of small graphs, growth.

Each table can be chosen with --tables. Times of one k have the graph at hand in the library's own
form on all sides; ours include numbering the nodes by degree. networkx runs once, the others
several times (median). python-graphblas runs in a process of its own, where it is installed.
"""

from __future__ import annotations

import multiprocessing
import time

import networkx as nx
import numpy as np
import timing  # first: sets the number of threads
import truss_graphs as data

from sklearn_mgk import from_arrays
from sklearn_mgk.truss import trussness
from sklearn_mgk.truss.backends import BACKENDS
from sklearn_mgk.truss.cores import core_numbers
from sklearn_mgk.truss.eager import k_truss_edges
from sklearn_mgk.truss.edges import make_rows
from sklearn_mgk.truss.peeling import edge_trussness
from sklearn_mgk.truss.sources import as_source
from sklearn_mgk.truss.support import row_support

PEERS = ("facebook_combined", "wiki-Vote", "ca-HepPh")
CPU = BACKENDS["cpu"]()


def main():
    tables = {f.__name__: f for f in (counts, peers, greatest, contacts, ratios, growth)}
    command = timing.parser(__doc__)
    command.add_argument("--tables", nargs="*", default=list(tables), choices=list(tables))
    command.add_argument("--repeats", type=int, default=7)
    command.add_argument("--largest", type=float, default=1e6, help="edges of the growth table")
    command.add_argument("--plot", help="file for a figure of the growth table")
    options = command.parse_args()
    for name in options.tables:
        tables[name](options)


def edges_of(options, name):
    """Distinct edges of a graph of the collection."""
    return as_source(data.load(options.data, data.reference(options.data)[name])).edges


def counts(options) -> None:
    """Compare triangles, kmax and the size of every k-truss with the known ones."""
    rows = []
    known, sizes = data.reference(options.data), data.truss_sizes(options.data)
    for name, row in known.items():
        edges = edges_of(options, name)
        of_edges = edge_trussness(edges)
        triangles = int(row_support(make_rows(edges)).sum()) // 3
        found = (edges.n_edges, triangles, CPU.max_truss(edges))
        expected = tuple(int(row[key]) for key in ("undirected_edges", "triangles", "kmax"))
        by_k = sizes.get(name, {})
        eager = [
            k_truss_edges(edges, k, granularity).sum() == n == (of_edges >= k).sum()
            for k, n in by_k.items()
            for granularity in ("coarse", "fine")
        ]
        agrees = found == expected and all(eager) and of_edges.max() == max(expected[2], 2)
        rows.append([name, *found, len(by_k), "yes" if agrees else f"NO: {expected}"])
    print("\nKnown counts")
    timing.show(["graph", "edges", "triangles", "kmax", "values of k", "all agree"], rows)


def peers(options) -> None:
    """Time one k beside networkx and graphblas."""
    rows = []
    for name in PEERS:
        matrix = data.load(options.data, data.reference(options.data)[name])
        edges, graph = as_source(matrix).edges, nx.from_scipy_sparse_array(matrix)
        for k in (3, CPU.max_truss(edges)):
            ours = [
                timing.seconds(lambda g=g, k=k, e=edges: k_truss_edges(e, k, g), options.repeats)
                for g in ("coarse", "fine")
            ]
            begin = time.perf_counter()
            size = nx.k_truss(graph, k).number_of_edges()
            networkx = time.perf_counter() - begin
            assert size == k_truss_edges(edges, k).sum()
            graphblas = in_own_process(graphblas_seconds, matrix, k, size)
            ratio = [f"{other / ours[0]:.1f}" if other else "-" for other in (graphblas, networkx)]
            cells = (f"{1e3 * t:.1f}" if t else "-" for t in (*ours, graphblas, networkx))
            rows.append([name, f"{edges.n_edges:,}", k, *cells, *ratio])
    print("\nOne k: ms (targets: 4 times graphblas, 25 times networkx)")
    header = ["graph", "edges", "k", "coarse", "fine", "graphblas", "networkx"]
    timing.show([*header, "graphblas : ours", "networkx : ours"], rows)


def in_own_process(function, *arguments):
    """Call a function in a new process: thread pools of two libraries disturb each other."""
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        return pool.apply(function, arguments)


def graphblas_seconds(matrix, k, size):
    """Seconds of the k-truss with python-graphblas, None where it is not installed."""
    try:
        import graphblas as gb
    except ImportError:
        return None
    gb.ss.config["nthreads"] = timing.THREADS
    u, v = matrix.nonzero()
    adjacency = gb.Matrix.from_coo(u, v, np.int64(1), nrows=matrix.shape[0], ncols=matrix.shape[0])

    def run():
        truss, before = adjacency, -1
        while truss.nvals != before:
            before = truss.nvals
            support = truss.mxm(truss.T, gb.semiring.plus_pair).new(mask=truss.S)
            truss = support.select(">=", k - 2).new()
        return truss

    assert run().nvals == 2 * size
    return timing.seconds(run, 5)


def greatest(options) -> None:
    """Time the search for the greatest k beside peeling everything."""
    rows = []
    for name in PEERS:
        edges = edges_of(options, name)
        search = timing.seconds(lambda e=edges: CPU.max_truss(e), options.repeats)
        peel = timing.seconds(lambda e=edges: edge_trussness(e), options.repeats)
        rows.append([name, CPU.max_truss(edges), f"{1e3 * search:.1f}", f"{1e3 * peel:.1f}"])
    print("\nGreatest k: ms")
    timing.show(["graph", "kmax", "search", "peeling everything"], rows)


def contacts(options) -> None:
    """Time 1000 residue-contact graphs, packing included, beside networkx on 20 of them."""
    batch = from_arrays(data.contact_graphs())
    ours = timing.seconds(lambda: trussness(batch), options.repeats)
    few = [batch[k].to_networkx() for k in range(20)]
    begin = time.perf_counter()
    for graph in few:
        k = 3
        while nx.k_truss(graph, k).number_of_edges():
            k += 1
    networkx = (time.perf_counter() - begin) * len(batch) / len(few)
    print("\n1000 residue-contact graphs (targets: 0.35 s, 100 times networkx)")
    header = ["nodes", "edges", "kmax", "ours, s", "networkx every k, from 20 graphs, s", "ratio"]
    cells = [f"{ours:.3f}", f"{networkx:.1f}", f"{networkx / ours:.0f}"]
    greatest_k = int(trussness(batch).max())
    timing.show(header, [[f"{batch.n_nodes:,}", f"{batch.n_edges:,}", greatest_k, *cells]])


def ratios(options) -> None:
    """Time the trussness of all edges over one k = 3 pass of the fine variant."""
    rows = []
    for name in ("ca-HepPh", "facebook_combined", "wiki-Vote"):
        edges = edges_of(options, name)
        full = timing.seconds(lambda e=edges: edge_trussness(e), options.repeats)
        one = [
            timing.seconds(lambda e=edges, o=o: k_truss_edges(e, 3, "fine", o), options.repeats)
            for o in ("degree", "natural")
        ]
        ratio = (f"{full / t:.1f}" for t in one)
        rows.append([name, *(f"{1e3 * t:.1f}" for t in (full, *one)), *ratio])
    print("\nTrussness over one k = 3 pass of the fine variant: ms (target: ratio 3)")
    header = ["graph", "trussness", "k = 3, by degree", "k = 3, as in the paper"]
    timing.show([*header, "ratio", "ratio, as in the paper"], rows)


def growth(options) -> None:
    """Time RMAT graphs of growing size: time per edge and degeneracy should stay flat."""
    rows, points = [], []
    for n in 10.0 ** np.arange(4, np.log10(options.largest) + 0.01, 0.5):
        edges = as_source(data.rmat(int(n))).edges
        degeneracy = int(core_numbers(edges).max())
        repeats = 3 if n < 3e6 else 1
        times = [
            timing.seconds(lambda e=edges: k_truss_edges(e, 3), repeats, warm_up=n < 3e6),
            timing.seconds(lambda e=edges: edge_trussness(e), repeats, warm_up=n < 3e6),
        ]
        each = [1e9 * t / (edges.n_edges * degeneracy) for t in times]
        points.append([edges.n_edges, *each])
        cells = (f"{1e3 * t:.1f} ({e:.2f})" for t, e in zip(times, each, strict=True))
        rows.append([f"{edges.n_edges:,}", degeneracy, *cells])
    print("\nRMAT graphs: ms (ns per edge and degeneracy)")
    timing.show(["edges", "degeneracy", "k = 3", "trussness"], rows)
    if options.plot:
        plot(np.array(points), options.plot)


def plot(points, path) -> None:
    """Draw time per edge and degeneracy."""
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(figsize=(5, 3.5), layout="constrained")
    axes.loglog(points[:, 0], points[:, 1], "o-", label="k = 3")
    axes.loglog(points[:, 0], points[:, 2], "s-", label="trussness")
    axes.set(xlabel="edges", ylabel="ns per edge and degeneracy", ylim=(0.1, 100))
    axes.legend()
    figure.savefig(path, dpi=150)


if __name__ == "__main__":
    main()
