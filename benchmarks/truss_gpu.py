# SPDX-License-Identifier: BSD-3-Clause
"""Eager k-truss on the GPU: every variant against the CPU, then times and million edges a second.

Times are the median of --repeats calls, with the graph packed and on the device: counting, pruning,
and the number of edges left, which the host reads after each pass. K = 3 and K = Kmax start from
the whole graph, as in Table I of the paper (doi:10.48550/arXiv.2009.07929).
"threads" a thread a non-zero as in the paper, "fine" a thread, warp or block a non-zero. A graph
that fails is reported, and the next one runs.
"""

from __future__ import annotations

import sys
import traceback

import numpy as np
import timing  # first: sets the number of threads
import truss_graphs as data
from scipy.stats import gmean

from sklearn_mgk import from_arrays
from sklearn_mgk.truss import cuda, eager
from sklearn_mgk.truss.backends import BACKENDS
from sklearn_mgk.truss.edges import ORDERS, EdgeSet, make_rows
from sklearn_mgk.truss.peeling import edge_trussness
from sklearn_mgk.truss.sources import as_source
from sklearn_mgk.truss.support import row_support

VARIANTS = ("coarse", "threads", "fine")


def main():
    command = timing.parser(__doc__)
    command.add_argument("--repeats", type=int, default=10)
    command.add_argument("--rmat", type=float, nargs="*", default=[1e5, 1e6, 1e7])
    command.add_argument("--skip-checks", action="store_true")
    options = command.parse_args()
    known = data.reference(options.data)
    matrices = {name: lambda row=row: data.load(options.data, row) for name, row in known.items()}
    for n in options.rmat:
        matrices[f"RMAT {n:.0e}"] = lambda n=n: data.rmat(int(n))
    graphs = {name: lambda make=make: as_source(make()).edges for name, make in matrices.items()}
    contacts = "1000 contact graphs"
    graphs[contacts] = lambda: as_source(from_arrays(data.contact_graphs())).edges
    if not options.skip_checks:
        checked = [name for name in graphs if not name.startswith("RMAT")] + ["RMAT 1e+05"]
        rows = [(name, attempt(check, graphs[name])) for name in checked if name in graphs]
        timing.show(["graph", "all variants and both orders against the CPU"], rows)
    timed = [*data.SKEWED, "4elt", "wing", "pubmed", *(f"RMAT {n:.0e}" for n in options.rmat)]
    timed = [name for name in timed if name in graphs]
    for order in ORDERS:
        for greatest in (False, True):
            show_times(order, greatest, timed, graphs, options.repeats)
    show_trussness([*timed, contacts], graphs, options.repeats)


def attempt(function, make, *arguments):
    """Call a function on a graph; text of the error where it fails."""
    try:
        return function(make(), *arguments)
    except Exception as error:
        traceback.print_exc(file=sys.stdout)
        return f"FAILED: {type(error).__name__}: {error}"


def check(edges: EdgeSet) -> str:
    """Compare supports, trusses and trussness; "ok" or what differs."""
    wrong = []
    expected = edge_trussness(edges)
    gpu = BACKENDS["cuda"]()
    for order in ORDERS:
        rows = make_rows(edges, order)
        support = row_support(rows)
        for variant in VARIANTS:
            device = cuda.DeviceRows(rows)
            device.count(variant)
            if not np.array_equal(device.support.get(), support):
                wrong.append(f"support {variant} {order}")
            for k in {3, 4, int(expected.max(initial=2))} - {2}:
                device = cuda.DeviceRows(rows)
                cuda.prune_and_repeat(device, edges.n_edges, k, variant)
                if not np.array_equal(device.left(edges.n_edges), expected >= k):
                    wrong.append(f"{k}-truss {variant} {order}")
    if not np.array_equal(gpu.trussness(edges), expected):
        wrong.append("trussness")
    if edges.n_edges and gpu.max_truss(edges) != expected.max():
        wrong.append("max_truss")
    return "ok" if not wrong else "WRONG: " + ", ".join(wrong)


def show_times(order, greatest, names, graphs, repeats) -> None:
    """Table of one order, at K = 3 or Kmax."""
    rows, ratios = [], []
    for name in names:
        found = attempt(time_graph, graphs[name], order, greatest, repeats)
        if isinstance(found, str):
            rows.append([name, found])
            continue
        n_edges, k, times = found
        rate = [f"{1e3 * t:.3f} / {n_edges / t / 1e6:.0f}" for t in times.values()]
        ratio = times["coarse"] / times["fine"]
        if name in data.SKEWED:
            ratios.append(ratio)
        rows.append([name, f"{n_edges:,}", k, *rate, f"{ratio:.1f}"])
    kind = "Kmax" if greatest else "3"
    print(f"\nK = {kind}, order {order!r}: ms / million edges a second")
    header = ["graph", "edges", "K", *(f"GPU {v}" for v in VARIANTS), "CPU coarse", "CPU fine"]
    timing.show([*header, "GPU coarse : fine"], rows)
    if ratios:
        print(
            f"geometric mean of coarse : fine over {len(ratios)} skewed graphs: {gmean(ratios):.2f}"
        )


def time_graph(edges: EdgeSet, order, greatest, repeats):
    """Seconds of each variant on the device, and of both granularities on the CPU."""
    k = BACKENDS["cpu"]().max_truss(edges) if greatest else 3
    rows = make_rows(edges, order)
    times = {
        variant: device_seconds(rows, edges.n_edges, k, variant, repeats) for variant in VARIANTS
    }
    for granularity in ("coarse", "fine"):
        copies = [rows.copy() for _ in range(4)]
        times[f"CPU {granularity}"] = timing.seconds(
            lambda g=granularity, c=copies: eager.prune_rows(c.pop(), edges.n_edges, k, g), 3
        )
    return edges.n_edges, k, times


def device_seconds(rows, n_edges, k, variant, repeats) -> float:
    """Median time of pruning to the k-truss, restored before each call."""
    import cupy as cp

    device = cuda.DeviceRows(rows)
    kept = [(a, a.copy()) for a in (device.columns, device.edge, device.stop, device.support)]
    times = []
    for _ in range(repeats + 1):
        for array, original in kept:
            array[...] = original
        begin, end = cp.cuda.Event(), cp.cuda.Event()
        cp.cuda.Device().synchronize()
        begin.record()
        cuda.prune_and_repeat(device, n_edges, k, variant)
        end.record()
        end.synchronize()
        times.append(cp.cuda.get_elapsed_time(begin, end) / 1e3)
    return float(np.median(times[1:]))


def show_trussness(names, graphs, repeats) -> None:
    """Table of the full decomposition, and of peeling alone."""
    rows = []
    for name in names:
        found = attempt(time_trussness, graphs[name], repeats)
        if isinstance(found, str):
            rows.append([name, found])
            continue
        n_edges, gpu, peel, cpu = found
        cells = (f"{1e3 * t:.2f} / {n_edges / t / 1e6:.1f}" for t in (gpu, peel, cpu))
        rows.append([name, f"{n_edges:,}", *cells])
    print("\nTrussness of every edge: ms / million edges a second, packing and transfer included")
    timing.show(["graph", "edges", "GPU", "GPU, peeling only", "CPU"], rows)


def time_trussness(edges: EdgeSet, repeats):
    """Seconds of the whole on the device, of the peel alone, and on the CPU."""
    import cupy as cp

    gpu = timing.seconds(lambda: BACKENDS["cuda"]().trussness(edges), min(3, repeats))
    peels = [cuda.DevicePeel(edges) for _ in range(4)]

    def run():
        peels.pop().run()
        cp.cuda.Device().synchronize()

    peel = timing.seconds(run, 3)
    return edges.n_edges, gpu, peel, timing.seconds(lambda: edge_trussness(edges), 3)


if __name__ == "__main__":
    main()
