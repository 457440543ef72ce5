# SPDX-License-Identifier: BSD-3-Clause
"""Pairs of ESOL molecules per second, here and with what else can be installed.

Peers run on molecules of the same set, evenly spaced in size, as many as take about ``--seconds``.
They do less than is asked here: GraKeL reads one label for each node and none for edges, and stops
after 20 iterations; graphkit-learn reads one label for nodes and one for edges, and matches hard.
SciPy solves the very systems that are solved here, to the same tolerance.
"""

from __future__ import annotations

import contextlib
import io
import time
import warnings
from collections.abc import Callable

import numpy as np
import timing  # first: sets the number of threads
import workloads
from joblib import Parallel, delayed
from rdkit import Chem
from scipy import sparse
from scipy.sparse.linalg import cg, spsolve

from sklearn_mgk import MarginalizedGraphKernel, from_smiles
from sklearn_mgk.base_kernels import KroneckerDelta
from sklearn_mgk.plan import make_problem

TOLERANCE = 1e-8
DECAY = "lamda"  # GraKeL's spelling; codespell:ignore lamda
AGREEMENT = 1e-6
"""Relative error to which graphkit-learn's fixed-point iteration is run."""


def main():
    command = timing.parser(__doc__)
    command.add_argument("--graphs", type=int, help="molecules in our Gram matrix, default all")
    command.add_argument("--seconds", type=float, default=20, help="time of each peer, default 20")
    command.add_argument("--mutag", type=int, default=30, help="graphs compared, default 30")
    options = command.parse_args()
    warnings.simplefilter("ignore")

    smiles = workloads.smiles_with_bonds(options.data, "esol")
    batch = from_smiles(smiles)
    by_size = np.argsort(batch.sizes, kind="stable")
    chosen = np.sort(evenly(by_size, options.graphs or len(batch)))
    batch = batch[chosen]
    ours = our_rate(batch)
    peers = {
        f"GraKeL {timing.version_of('grakel')} RandomWalkLabeled, {DECAY}=0.1 (default)": (
            lambda subset: grakel_seconds(subset),
            40,
        ),
        f"the same, {DECAY}=0.01": (lambda subset: grakel_seconds(subset, **{DECAY: 0.01}), None),
        f"graphkit-learn {timing.version_of('graphkit-learn')} marginalizedkernel": (
            lambda subset: gklearn_seconds(subset),
            100,
        ),
        **scipy_peers(),
    }
    rows = [[f"ours, float64, {timing.THREADS} threads", "", f"{ours:,.0f}", "", ""]]
    sorted_smiles = [smiles[k] for k in by_size]
    for name, (run, target) in peers.items():
        rate, detail = peer_rate(run, sorted_smiles, options.seconds)
        ratio = f"{ours / rate:,.0f}" if rate else ""
        rows.append(
            [
                name,
                detail,
                timing.number(rate) if rate else "",
                ratio,
                f"≥ {target}" if target else "",
            ]
        )
        print(*rows[-1], sep=" | ", flush=True)
    timing.show(["ESOL, values", "measured on", "pairs/s", "ours / peer", "target"], rows)
    compare_with_gklearn(workloads.read_tu(options.data, "MUTAG"), options.mutag)


def evenly(items, n: int):
    """Take some items, evenly spaced."""
    n = min(n, len(items))
    return [items[k] for k in ((np.arange(n) + 0.5) * len(items) / n).astype(int)]


def our_rate(batch) -> float:
    """Pairs per second of one Gram matrix; prints its error against dense solves."""
    kernel = workloads.molecule_kernel(tol=TOLERANCE)
    took = timing.seconds(lambda: kernel(batch), 5)
    values = kernel(batch)
    by_size = np.argsort(batch.sizes, kind="stable")
    sample = np.array([by_size[0], *evenly(by_size, 22), by_size[-1]])
    exact = workloads.molecule_kernel(backend="reference")(batch[sample])
    error = np.abs(values[np.ix_(sample, sample)] / exact - 1).max()
    single = workloads.molecule_kernel(dtype="float32", tol=1e-5)
    took32 = timing.seconds(lambda: single(batch))
    error32 = np.abs(single(batch)[np.ix_(sample, sample)] / exact - 1).max()
    pairs = workloads.n_pairs(len(batch))
    print(
        f"ours: {len(batch)} molecules, {pairs:,} pairs\n"
        f"  float64: {took:.2f} s, {pairs / took:,.0f} pairs/s; largest relative error against the "
        f"reference backend on {workloads.n_pairs(len(sample))} pairs: {error:.1e} (target 1e-8)\n"
        f"  float32, tol=1e-5: {took32:.2f} s, {pairs / took32:,.0f} pairs/s; error {error32:.1e}",
        flush=True,
    )
    return pairs / took


def peer_rate(run: Callable, smiles: list[str], limit: float) -> tuple[float, str]:
    """Pairs per second on as many molecules as fit the limit, and what was run."""
    try:
        run(evenly(smiles, 8))
        n, took = 12, run(evenly(smiles, 12))
    except ImportError as error:
        return 0.0, f"not installed: pip install {error.name}"
    n = int(np.clip(n * np.sqrt(limit / took), n, len(smiles)))
    subset = evenly(smiles, n)
    took = run(subset)
    return workloads.n_pairs(len(subset)) / took, f"{len(subset)} molecules, {took:.0f} s"


def grakel_seconds(smiles: list[str], **options) -> float:
    """GraKeL's random walk kernel with elements as node labels; 1 thread, more bring it nothing."""
    try:
        from grakel import Graph
        from grakel.kernels import RandomWalkLabeled
    except ImportError:
        raise ImportError("GraKeL", name="grakel") from None

    def graph(text):
        molecule = Chem.MolFromSmiles(text)
        edges = {}
        for bond in molecule.GetBonds():
            i, j = bond.GetBeginAtomIdx(), bond.GetEndAtomIdx()
            edges[i, j] = edges[j, i] = 1.0
        return Graph(edges, node_labels={a.GetIdx(): a.GetSymbol() for a in molecule.GetAtoms()})

    graphs = [graph(text) for text in smiles]
    begin = time.perf_counter()
    RandomWalkLabeled(**options).fit_transform(graphs)
    return time.perf_counter() - begin


def gklearn_seconds(smiles: list[str]) -> float:
    """graphkit-learn's marginalized kernel on elements and bond orders, all threads."""
    graphs = []
    for graph in from_smiles(smiles):
        converted = graph.to_networkx()
        for _, attributes in converted.nodes(data=True):
            attributes["label"] = str(attributes["element"])
        for *_, attributes in converted.edges(data=True):
            attributes["label"] = str(attributes["order"])
        graphs.append(converted)
    begin = time.perf_counter()
    gklearn_gram(graphs, gklearn_iterations(evenly(graphs, 4)))
    return time.perf_counter() - begin


def gklearn_gram(graphs, n_iteration: int):
    """Gram matrix of graphkit-learn, q = 0.05."""
    try:
        from gklearn.kernels.marginalizedKernel import marginalizedkernel
    except ImportError:
        raise ImportError("graphkit-learn", name="graphkit-learn") from None
    with contextlib.redirect_stdout(io.StringIO()):
        values, _ = marginalizedkernel(
            graphs,
            node_label="label",
            edge_label="label",
            p_quit=0.05,
            n_iteration=n_iteration,
            remove_totters=False,
            n_jobs=timing.THREADS,
            verbose=False,
        )
    return values


_ITERATIONS: list[int] = []


def gklearn_iterations(graphs) -> int:
    """Fewest iterations (of a few choices) that reach `AGREEMENT`; found once."""
    if not _ITERATIONS:
        upper = np.triu_indices(len(graphs))
        exact = gklearn_gram(graphs, 300)[upper]
        for n in (10, 20, 30, 50, 70, 100, 140):
            error = np.abs(gklearn_gram(graphs, n)[upper] / exact - 1).max()
            if error <= AGREEMENT:
                break
        print(f"graphkit-learn: n_iteration={n} for a relative error of {error:.0e}", flush=True)
        _ITERATIONS.append(n)
    return _ITERATIONS[0]


def scipy_peers() -> dict:
    """Solve each pair with SciPy: two ways to assemble the system, two ways to solve it."""
    scipy = f"SciPy {timing.version_of('scipy')}"
    return {
        f"{scipy}, {name}, {solve.__name__}, {timing.THREADS} processes": (
            lambda subset, a=assembly, s=solve: scipy_seconds(subset, a, s),
            target,
        )
        for name, assembly, target in (
            ("Kronecker products by label", sum_of_kron, 100),
            ("entries by NumPy", outer_entries, None),
        )
        for solve in (cg, spsolve)
    }


def scipy_seconds(smiles: list[str], assembly: Callable, solve: Callable) -> float:
    """Solve all pairs in as many processes as we use threads."""
    batch = from_smiles(smiles)
    problem = make_problem(workloads.molecule_kernel(), batch)
    graphs = [scipy_graph(problem, g) for g in range(len(batch))]
    tables = tuple(k.kernel.table(k.labels) for k in (problem.node, problem.edge))
    pairs = [(i, j) for i in range(len(graphs)) for j in range(i, len(graphs))]
    pool = Parallel(n_jobs=timing.THREADS)
    chunks = [pairs[k :: 4 * timing.THREADS] for k in range(4 * timing.THREADS)]
    jobs = [delayed(scipy_chunk)(graphs, tables, chunk, assembly, solve) for chunk in chunks]
    pool([delayed(int)()] * timing.THREADS)  # starts the processes
    begin = time.perf_counter()
    pool(jobs)
    return time.perf_counter() - begin


def scipy_graph(problem, g: int) -> dict:
    """Keep of a graph what a SciPy user would: an adjacency matrix for each edge label."""
    batch = problem.batch
    nodes, edges = (slice(*ptr[g : g + 2]) for ptr in (batch.node_ptr, batch.edge_ptr))
    n = nodes.stop - nodes.start
    first, second = batch.edge_index[:, edges]
    code = problem.edge.labels.codes[edges]
    source, target = np.concatenate([first, second]), np.concatenate([second, first])
    code = np.concatenate([code, code])
    adjacency = {
        label: sparse.csr_array(
            (np.ones((code == label).sum()), (source[code == label], target[code == label])), (n, n)
        )
        for label in np.unique(code)
    }
    return {
        "adjacency": adjacency,
        "entries": (source, target, code),
        "node": problem.node.labels.codes[nodes],
        "degree": problem.degree[nodes],
        "flow": (problem.degree * problem.stop)[nodes],
    }


def scipy_chunk(graphs, tables, pairs, assembly, solve) -> list[float]:
    """Kernel values of some pairs."""
    node_table, edge_table = tables
    values = []
    for i, j in pairs:
        left, right = graphs[i], graphs[j]
        v = node_table[np.ix_(left["node"], right["node"])].ravel()
        diagonal = np.outer(left["degree"], right["degree"]).ravel() / v
        system = sparse.diags_array(diagonal) - assembly(left, right, edge_table)
        b = np.outer(left["flow"], right["flow"]).ravel()
        if solve is cg:
            x, _ = cg(system, b, rtol=TOLERANCE, M=sparse.diags_array(1 / diagonal))
        else:
            x = spsolve(system.tocsc(), b)
        values.append(x.sum())
    return values


def sum_of_kron(left, right, table):
    """Add up the Kronecker products of adjacency matrices, one for each pair of labels."""
    return sum(
        table[a, b] * sparse.kron(A, B, "csr")
        for a, A in left["adjacency"].items()
        for b, B in right["adjacency"].items()
    )


def outer_entries(left, right, table):
    """Place all entries of the product at once."""
    source, target, code = left["entries"]
    source2, target2, code2 = right["entries"]
    n, n2 = len(left["node"]), len(right["node"])
    row = np.add.outer(source * n2, source2).ravel()
    column = np.add.outer(target * n2, target2).ravel()
    return sparse.csr_array((table[np.ix_(code, code2)].ravel(), (row, column)), (n * n2,) * 2)


def compare_with_gklearn(batch, n: int):
    """Largest relative difference from graphkit-learn on some graphs of MUTAG."""
    batch = batch[np.array(evenly(np.argsort(batch.sizes, kind="stable"), n))]
    exact = KroneckerDelta("label", h=0.0, h_bounds="fixed")
    kernel = MarginalizedGraphKernel(
        exact, exact, starting_probability="share", tol=1e-13, cache_size=0
    )
    upper = np.triu_indices(len(batch))
    try:
        theirs = gklearn_gram([graph.to_networkx() for graph in batch], 200)[upper]
    except ImportError as error:
        print(f"MUTAG: not compared, pip install {error.name}")
        return
    difference = np.abs(kernel(batch)[upper] / theirs - 1).max()
    print(
        f"\nMUTAG, {len(batch)} graphs, {len(upper[0])} pairs, hard matching, p = 1/n, q = 0.05: "
        f"largest relative difference from graphkit-learn (200 iterations) {difference:.1e}"
    )


if __name__ == "__main__":
    main()
