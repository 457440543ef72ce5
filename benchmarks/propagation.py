# SPDX-License-Identifier: BSD-3-Clause
"""Sparse products on the CPU beside scipy, torch and MKL; walks, accuracy on cora, memory.

Each table can be chosen with --tables. Products are float32, with a new array for the result in
each call, on all sides; libraries run one after the other in processes of their own, since thread
pools of two disturb each other, several rounds in turn, and the best call counts. torch and
sparse_dot_mkl are left out where they are not installed; MKL is found by the variable MKL_RT.
"""

from __future__ import annotations

import multiprocessing
import os
import time
import warnings

import numpy as np
import timing  # first: sets the number of threads
import workloads
from memory import peak, reset_peak, resident
from propagation_graphs import collected, many_graphs, planetoid, power_law
from scipy import sparse
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, PredefinedSplit

from sklearn_mgk.propagation import AnonymousWalkEmbedding, SpMMPlan, propagate, spmm

COLUMNS = (16, 32, 64, 128)
N = 100_000


def main():
    tables = {f.__name__: f for f in (products, plans, walks, accuracy, memory)}
    command = timing.parser(__doc__)
    command.add_argument("--tables", nargs="*", default=list(tables), choices=list(tables))
    command.add_argument("--repeats", type=int, default=5, help="calls of a round")
    command.add_argument("--rounds", type=int, default=2)
    options = command.parse_args()
    for name in options.tables:
        tables[name](options)


def ours(A, dense):
    """Return a function of no arguments for each dense matrix."""
    return [lambda X=X: spmm(A, X) for X in dense]


def planned(A, dense):
    """Return the same with a plan that is made once."""
    plan = SpMMPlan(A)
    return [lambda X=X: plan.multiply(X) for X in dense]


def with_scipy(A, dense):
    return [lambda X=X: A @ X for X in dense]


def with_torch(A, dense):
    import torch

    torch.set_num_threads(timing.THREADS)
    warnings.filterwarnings("ignore", "Sparse CSR tensor support")
    parts = (torch.from_numpy(part) for part in (A.indptr, A.indices, A.data))
    matrix = torch.sparse_csr_tensor(*parts, size=A.shape)
    return [lambda X=X: (matrix @ torch.from_numpy(X)).numpy() for X in dense]


def with_mkl(A, dense):
    os.environ["MKL_NUM_THREADS"] = str(timing.THREADS)
    from sparse_dot_mkl import dot_product_mkl

    matrix = sparse.csr_matrix(A)
    return [lambda X=X: dot_product_mkl(matrix, X) for X in dense]


LIBRARIES = {
    "ours": ours,
    "ours, plan kept": planned,
    "scipy": with_scipy,
    "torch": with_torch,
    "MKL": with_mkl,
}


def round_of(library, degree, uniform, repeats):
    """Return the best time for each number of columns; None where the library is missing."""
    A = power_law(N, degree, uniform)
    dense = [np.random.default_rng(1).random((N, f), dtype=np.float32) for f in COLUMNS]
    try:
        calls = LIBRARIES[library](A, dense)
    except ImportError:
        return None
    best = []
    for call, X in zip(calls, dense, strict=True):
        rows = np.arange(0, N, 997)
        assert np.allclose(call()[rows], A[rows] @ X, rtol=1e-3, atol=1e-3)
        times = []
        for _ in range(repeats):
            begin = time.perf_counter()
            call()
            times.append(time.perf_counter() - begin)
        best.append(min(times))
    return best


def products(options) -> None:
    """Time the product of power-law matrices."""
    rows = []
    for degree in (10, 50):
        for uniform in (False, True):
            best = {library: np.full(len(COLUMNS), np.inf) for library in LIBRARIES}
            for _ in range(options.rounds):
                for library in LIBRARIES:
                    arguments = library, degree, uniform, options.repeats
                    with multiprocessing.get_context("spawn").Pool(1) as pool:
                        found = pool.apply(round_of, arguments)
                    if found is not None:
                        best[library] = np.minimum(best[library], found)
            for k, f in enumerate(COLUMNS):
                times = [best[library][k] for library in LIBRARIES]
                peer = min(times[3:])
                ratios = [times[2] / times[0], peer / times[0], peer / times[1]]
                target = "≥ 3; ≥ 1.5" if f >= 64 else "; ≥ 0.9"
                kind = "uniform" if uniform else "power law"
                cells = [f"{1e3 * t:.1f}" if t < np.inf else "-" for t in times]
                rows.append([degree, kind, f, *cells, *(f"{r:.1f}" for r in ratios), target])
    print("\nProducts of 100,000 rows, float32: ms")
    header = ["entries a row", "columns drawn", "columns of X", *LIBRARIES]
    timing.show(
        [
            *header,
            "scipy : ours",
            "better of torch and MKL : ours",
            "the same, plan kept",
            "targets",
        ],
        rows,
    )


def plans(options) -> None:
    """Show balance and time of plans, and what sorting rows costs or brings on the CPU."""
    matrices = {name: collected(options.data, name) for name in ("cora", "pubmed", "ca-HepPh")}
    matrices["NCI1, all graphs"] = many_graphs(options.data, "NCI1")
    matrices["power law, 10 a row"] = power_law(N, 10)
    matrices["power law, 50 a row"] = power_law(N, 50)
    rows = []
    for name, A in matrices.items():
        X = np.random.default_rng(1).random((A.shape[0], 64), dtype=np.float32)
        cells = []
        for engine in ("rows", "degree", "dual"):
            plan = SpMMPlan(A, engine=engine, n_blocks=64)
            summary = SpMMPlan(A, engine=engine, n_blocks=64).summary
            product = timing.seconds(lambda plan=plan, X=X: plan.multiply(X), options.repeats)
            cells += [f"{summary.imbalance:.2f}", f"{1e3 * summary.seconds:.1f}"]
            cells += [f"{1e3 * product:.2f}"]
        rows.append([name, f"{A.nnz:,}", f"{summary.imbalance_without:.2f}", *cells])
    print("\n64 blocks: work of the heaviest over the mean, time of the plan, time of A @ X, ms")
    parts = ("balance", "plan", "product")
    header = [f"{engine}: {part}" for engine in ("rows", "degree", "dual") for part in parts]
    timing.show(["matrix", "entries", "balance of equal numbers of rows", *header], rows)


def walks(options) -> None:
    """Time exact anonymous walks on MUTAG beside a plain Python walker."""
    batch = workloads.read_tu(options.data, "MUTAG")
    rows = []
    for length in (3, 5, 7):
        model = AnonymousWalkEmbedding(length).fit(batch)
        took = timing.seconds(lambda m=model: m.transform(batch), options.repeats)
        few = range(0, len(batch), 10)
        begin = time.perf_counter()
        plain = [python_walker(batch[g].to_networkx(), length) for g in few]
        python = (time.perf_counter() - begin) * len(batch) / len(few)
        table, names = model.transform(batch), model.get_feature_names_out()
        for g, expected in zip(few, plain, strict=True):
            found = {n: x for n, x in zip(names, table[g], strict=True) if x}
            assert found.keys() == expected.keys()
            assert np.allclose([found[n] for n in expected], list(expected.values()))
        cells = f"{1e3 * took:.1f}", f"{1e3 * python:.0f}", f"{python / took:.0f}"
        rows.append([length, table.shape[1], *cells])
    print("\nAnonymous walks of the 188 graphs of MUTAG, exact (targets at 7: 50 ms, 100 times)")
    timing.show(["length", "types", "ours, ms", "plain Python, ms", "ratio"], rows)


def python_walker(graph, length):
    """Return the distribution over anonymous walks, by names as our features have."""
    found: dict[str, float] = {}

    def walk(path, share):
        if len(path) == length + 1:
            names = {node: name for name, node in enumerate(dict.fromkeys(path))}
            key = "walk_" + "-".join(str(names[node]) for node in path)
            found[key] = found.get(key, 0.0) + share
            return
        neighbors = graph[path[-1]]
        for node in neighbors:
            walk([*path, node], share / len(neighbors))

    starts = [node for node in graph if graph.degree(node)]
    for node in starts:
        walk([node], 1 / len(starts))
    return found


def accuracy(options) -> None:
    """Classify the nodes of citation graphs: two hops and logistic regression, Planetoid split."""
    rows = []
    for name in ("cora", "citeseer"):
        A, X, label, split = planetoid(options.data, name)
        X = X / np.maximum(X.sum(axis=1, keepdims=True), 1)
        begin = time.perf_counter()
        features = propagate(A, X, 2)
        took = time.perf_counter() - begin
        tuned = np.isin(split, ("train", "val"))
        folds = PredefinedSplit(np.where(split[tuned] == "val", 0, -1))
        scores = []
        for inputs in (X, features):
            model = LogisticRegression(max_iter=1000)
            search = GridSearchCV(model, {"C": 10 ** np.arange(1, 5, 0.5)}, cv=folds, refit=False)
            search.fit(inputs[tuned], label[tuned])
            model.set_params(**search.best_params_)
            model.fit(inputs[split == "train"], label[split == "train"])
            test = split == "test"
            test &= label >= 0
            scores.append(model.score(inputs[test], label[test]))
        cells = [f"{score:.3f}" for score in scores]
        rows.append([name, *cells, f"{1e3 * took:.0f}", "≥ 0.80" if name == "cora" else ""])
    print("\nTest accuracy, C chosen on the validation nodes")
    timing.show(["graph", "features alone", "after two hops", "two hops, ms", "target"], rows)


def memory(options) -> None:
    """Measure the memory of a product with ten million entries, in a process of its own."""
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        held, peak, took = pool.apply(measure_memory)
    print("\n10^7 entries, 10^6 rows, 128 columns, float32 (target: 1.2)")
    cells = f"{held / 1e6:.0f} MB", f"{peak / 1e6:.0f} MB", f"{peak / held:.2f}", f"{took:.2f} s"
    timing.show(["A, X and Y", "peak beyond the libraries", "ratio", "time"], [cells])


def measure_memory():
    """Bytes of A, X and Y; peak of the process beyond what it held before X and Y; seconds."""
    n, n_columns = 1_000_000, 128
    rng = np.random.default_rng(0)
    small = power_law(1000, 10)
    spmm(small, np.ones((1000, n_columns), np.float32))  # loads and compiles
    before = resident()
    reset_peak()
    indptr = np.arange(n + 1, dtype=np.int32) * 10
    indices = np.empty(10 * n, np.int32)
    for k in range(0, 10 * n, n):
        indices[k : k + n] = rng.integers(0, n, n, dtype=np.int32)
    A = sparse.csr_array((np.ones(10 * n, np.float32), indices, indptr), shape=(n, n))
    X = np.ones((n, n_columns), np.float32)
    begin = time.perf_counter()
    Y = spmm(A, X)
    took = time.perf_counter() - begin
    assert (Y[::1000] == 10).all()
    held = sum(a.nbytes for a in (A.data, A.indices, A.indptr, X, Y))
    return held, (peak() - before) * 1e6, took


if __name__ == "__main__":
    main()
