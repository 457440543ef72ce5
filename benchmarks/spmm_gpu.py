# SPDX-License-Identifier: BSD-3-Clause
"""Sparse products on the GPU: every variant against scipy, then times beside cuSPARSE.

Matrices are the npz files of a folder that `propagation_graphs.py` writes, and power laws made
here. float32, row-major, on the device; a time is the median of --repeats batches of ten products
between two events. "default" is SpMMPlan(A, backend="cuda").multiply(X, out=Y), as users call it;
the ratios below the tables are its own, without its plan and with a share of it, where the plan is
all that a first product takes longer than later ones, A being on the device. Variants are bare
launches of one engine each. cuSPARSE is called through torch (CSR) and through CuPy, with X in its
own layout (Fortran) and in ours; where the algorithms of cuSPARSE can be chosen through CuPy's
bindings they are all tried. "graph" is the default and torch replayed from a captured CUDA graph:
without the overhead of calls.
A case that fails is reported, and the next one runs.
"""

from __future__ import annotations

import argparse
import sys
import traceback
from pathlib import Path

import numpy as np
import timing  # first: sets the number of threads
from propagation_graphs import power_law
from scipy import sparse
from scipy.stats import gmean

from sklearn_mgk.propagation import SpMMPlan

COLUMNS = (16, 32, 64, 128)
# Engine, columns of a lane (None: the widest load), rows of X on their way.
VARIANTS = {
    "rows": ("rows", None, 4),
    "heavy": ("heavy", None, 4),
    "degree": ("degree", None, 4),
    "dual": ("dual", None, 4),
    "degree, 8 ways": ("degree", None, 8),
    "degree, chunks of 32": ("degree", 1, 4),
    "dual, chunks of 32": ("dual", 1, 4),
}
PLANS = ("rows", "heavy", "degree", "dual")
CALLS = 10
POWER_LAWS = ((10_000, 10), (100_000, 10), (100_000, 50), (1_000_000, 10))


def main():
    command = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    command.add_argument("--graphs", type=Path, help="folder of npz files")
    command.add_argument("--repeats", type=int, default=7)
    command.add_argument("--columns", type=int, nargs="*", default=list(COLUMNS))
    command.add_argument("--most", type=float, default=1e7, help="entries of the power laws")
    command.add_argument("--skip-checks", action="store_true")
    options = command.parse_args()
    for arguments in VARIANTS.values():
        prepare(power_law(40_000, 5), *arguments)  # compiles what plans need
    if not options.skip_checks:
        show_checks()
    matrices = dict(load(options))
    rows, plans, cases = [], [], []
    for name, make in matrices.items():
        found = attempt(time_matrix, make, options)
        if isinstance(found, str):
            rows.append([name, found])
            continue
        A, prepared, costs, times = found
        plans.append(plan_row(name, A, prepared, costs))
        for n_columns, own, peers, captured in times:
            rows.append(table_row(name, A, n_columns, own, peers, captured))
            if "default" in own and peers:
                cases.append((name, n_columns, own, min(peers.values()), costs))
    show(rows, plans)
    show_ratios(cases)


def load(options):
    """Yield names and functions that make the matrix."""
    for path in sorted(options.graphs.glob("*.npz")) if options.graphs else ():
        yield path.stem, lambda path=path: sparse.csr_array(sparse.load_npz(path))
    for n, degree in POWER_LAWS:
        if n * degree <= options.most:
            for uniform in (False, True):
                kind = "uniform columns" if uniform else "power law"
                yield f"{kind} {n} x {degree}", lambda a=(n, degree, uniform): power_law(*a)


def attempt(function, *arguments):
    """Call a function; text of the error where it fails."""
    try:
        return function(*arguments)
    except Exception as error:
        traceback.print_exc(file=sys.stdout)
        return f"FAILED: {type(error).__name__}: {error}"


def prepare(A, engine, vec, ways):
    """Return a product of one variant, and the summary of its plan."""
    plan = SpMMPlan(A, engine=engine, backend="cuda")
    product = plan._product
    product.vec, product.ways = vec, ways
    return product, plan.summary


def costs_of(A, n_columns=64, repeats=15) -> tuple[float, float, float]:
    """Seconds of planning, of planning and bringing A to the device, and of the latter by CuPy.

    Ours are those of a first product, with all that a plan takes until the device is done, less
    those of a later one.
    """
    import cupy as cp
    from cupyx.scipy import sparse as device

    x, y = (cp.ones((n, n_columns), np.float32) for n in A.shape[::-1])
    plan = SpMMPlan(A, backend="cuda")
    product = plan._product

    def alone():
        product.follow("auto", None, plan._make_partition)
        plan.multiply(x, out=y)

    def seconds(call):
        def done():
            call()
            cp.cuda.Device().synchronize()

        return timing.seconds(done, repeats)

    later = seconds(lambda: plan.multiply(x, out=y))
    ours = alone, lambda: SpMMPlan(A, backend="cuda").multiply(x, out=y)
    by_cupy = seconds(lambda: device.csr_matrix(sparse.csr_matrix(A)))
    return *(max(seconds(call) - later, 0.0) for call in ours), by_cupy


def show_checks() -> None:
    """Compare all variants with scipy on small matrices, in both precisions."""
    small = {
        "power law": power_law(3000, 8),
        "star": star(6000),
        "molecules": sparse.block_diag([sparse.eye_array(7, k=1)] * 500, format="csr"),
        "empty": sparse.csr_array((50, 50)),
    }
    rows = [[name, attempt(check, A)] for name, A in small.items()]
    timing.show(["matrix", "all variants, 1 to 300 columns, float32 and float64"], rows)


def star(n):
    """Return a matrix with one full row, which is split, and one full column."""
    at = np.arange(n)
    ends = np.concatenate([at, at * 0 + 3]), np.concatenate([at * 0 + 3, at])
    return sparse.csr_array((np.ones(2 * n), ends), shape=(n, n))


def check(A) -> str:
    """Return "ok" or what differs."""
    import cupy as cp

    wrong = []
    for dtype, tolerance in ((np.float32, 1e-4), (np.float64, 1e-12)):
        typed = sparse.csr_array(A.astype(dtype))
        for variant, (engine, vec, ways) in VARIANTS.items():
            product, _ = prepare(typed, engine, vec, ways)
            plain = (vec, ways) == (None, 4)
            for n_columns in (1, 3, 16, 33, 64, 100, 128, 300) if plain else (33, 128):
                X = np.random.default_rng(0).normal(size=(A.shape[1], n_columns)).astype(dtype)
                expected = A @ X.astype(float)
                scale = abs(A) @ abs(X.astype(float)) + 1e-300
                for _ in range(2):
                    found = product(cp.asarray(X)).get()
                    if not (abs(found - expected) <= tolerance * scale).all():
                        wrong.append(f"{variant} {np.dtype(dtype)} {n_columns}")
    return "ok" if not wrong else f"WRONG: {', '.join(wrong[:8])}"


def time_matrix(make, options):
    """Return the matrix, the prepared variants, and times for each number of columns."""
    A = make()
    prepared = {}
    for name, arguments in VARIANTS.items():
        found = attempt(prepare, A, *arguments)
        if not isinstance(found, str):
            prepared[name] = found
    times = [
        (n_columns, *time_columns(A, prepared, n_columns, options.repeats))
        for n_columns in options.columns
    ]
    return A, prepared, costs_of(A), times


def time_columns(A, prepared, n_columns, repeats):
    """Seconds of our variants, of the peers, and of both from captured graphs."""
    import cupy as cp

    X = np.random.default_rng(0).random((A.shape[1], n_columns), dtype=np.float32)
    x, y = cp.asarray(X), cp.empty((A.shape[0], n_columns), np.float32)
    checked = np.arange(0, A.shape[0], max(1, A.shape[0] // 500))
    expected = A[checked] @ X
    plan = SpMMPlan(A, backend="cuda")
    calls = {"default": lambda: plan.multiply(x, out=y)}
    for name, (product, _) in prepared.items():
        calls[name] = lambda product=product: product.launch(x, y)
    own = {}
    for name, call in calls.items():
        y.fill(np.nan)
        seconds = attempt(event_seconds, call, repeats)
        good = np.allclose(y[checked].get(), expected, rtol=1e-3, atol=1e-3)
        if isinstance(seconds, str) or not good:
            print(
                f"{name}, {n_columns} columns: {seconds if isinstance(seconds, str) else 'WRONG'}"
            )
        else:
            own[name] = seconds
    peers = {}
    for name, make in PEERS.items():
        call = attempt(make, A, x)
        seconds = call if isinstance(call, str) else attempt(event_seconds, call, repeats)
        if isinstance(seconds, str):
            print(f"{name} with {n_columns} columns: {seconds}")
        else:
            peers[name] = seconds
    captured = {}
    if own:
        captured["ours"] = attempt(graph_seconds, calls["default"], repeats)
    captured["torch"] = attempt(torch_graph_seconds, A, X, repeats)
    return own, peers, captured


def event_seconds(call, repeats) -> float:
    """Median seconds of a call, in batches."""
    import cupy as cp

    for _ in range(3):
        call()
    times = []
    for _ in range(repeats):
        begin, end = cp.cuda.Event(), cp.cuda.Event()
        cp.cuda.Device().synchronize()
        begin.record()
        for _ in range(CALLS):
            call()
        end.record()
        end.synchronize()
        times.append(cp.cuda.get_elapsed_time(begin, end) / 1e3 / CALLS)
    return float(np.median(times))


def graph_seconds(call, repeats) -> float:
    """Median seconds of a call replayed from a captured graph of ten."""
    import cupy as cp

    call()
    cp.cuda.Device().synchronize()
    stream = cp.cuda.Stream(non_blocking=True)
    with stream:
        stream.begin_capture()
        for _ in range(CALLS):
            call()
        graph = stream.end_capture()
        graph.launch(stream)
        stream.synchronize()
        times = []
        for _ in range(repeats):
            begin, end = cp.cuda.Event(), cp.cuda.Event()
            begin.record(stream)
            graph.launch(stream)
            end.record(stream)
            end.synchronize()
            times.append(cp.cuda.get_elapsed_time(begin, end) / 1e3 / CALLS)
    return float(np.median(times))


def torch_csr(A, X):
    """Return a matrix and X on the device, and torch."""
    import warnings

    import torch

    warnings.filterwarnings("ignore", "Sparse (CSR tensor|invariant)")
    parts = [torch.from_numpy(part).cuda() for part in (A.indptr, A.indices, A.data)]
    return torch.sparse_csr_tensor(*parts, size=A.shape), torch.from_numpy(X).cuda(), torch


def torch_graph_seconds(A, X, repeats) -> float:
    """Median seconds of torch's product replayed from a captured graph of ten."""
    matrix, dense, torch = torch_csr(A, X)
    warm = torch.cuda.Stream()
    warm.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(warm):
        for _ in range(3):
            matrix @ dense
    torch.cuda.current_stream().wait_stream(warm)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        for _ in range(CALLS):
            matrix @ dense
    times = []
    for _ in range(repeats + 1):
        begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        begin.record()
        graph.replay()
        end.record()
        end.synchronize()
        times.append(begin.elapsed_time(end) / 1e3 / CALLS)
    return float(np.median(times[1:]))


def with_torch(A, x):
    """Return torch's product; both libraries use the default stream, as the events do."""
    import cupy as cp

    matrix, dense, _ = torch_csr(A, cp.asnumpy(x))
    return lambda: matrix @ dense


def with_cupy(A, x, order):
    """Return CuPy's product, with X in one layout."""
    import cupy as cp
    from cupyx.scipy import sparse as device

    matrix = device.csr_matrix(sparse.csr_matrix(A))
    dense = cp.asarray(x, order=order)
    return lambda: matrix @ dense


def with_algorithm(A, x, number):
    """Return cuSPARSE's product on row-major matrices by one of its algorithms."""
    import cupy as cp
    from cupy_backends.cuda.libs import cusparse

    parts = [cp.asarray(part) for part in (A.indptr, A.indices, A.data)]
    y = cp.empty((A.shape[0], x.shape[1]), np.float32)
    handle = cp.cuda.device.get_cusparse_handle()
    pointers = [part.data.ptr for part in parts]
    # Indices of 32 bits from 0, numbers of 32 bits; the second layout is row-major.
    matrix = cusparse.createCsr(*A.shape, A.nnz, *pointers, 2, 2, 0, 0)
    dense, result = (cusparse.createDnMat(*m.shape, m.shape[1], m.data.ptr, 0, 2) for m in (x, y))
    one, zero = np.ones(1, np.float32), np.zeros(1, np.float32)
    numbers = one.ctypes.data, matrix, dense, zero.ctypes.data, result, 0, number
    size = cusparse.spMM_bufferSize(handle, 0, 0, *numbers)
    room = cp.empty(max(size, 1), np.int8)
    kept = parts, y, one, zero, room, x

    def call():
        cusparse.spMM(handle, 0, 0, *numbers, kept[4].data.ptr)
        return y

    call()
    expected = with_cupy(A, x, "F")()
    assert np.allclose(y.get(), expected.get(), rtol=1e-3, atol=1e-3), "another result than CuPy"
    return call


PEERS = {
    "torch": with_torch,
    "CuPy, Fortran X": lambda A, x: with_cupy(A, x, "F"),
    "CuPy, C X": lambda A, x: with_cupy(A, x, "C"),
    # cuSPARSE numbers its algorithms for compressed rows 4, 6 and 12.
    "cuSPARSE CSR 1": lambda A, x: with_algorithm(A, x, 4),
    "cuSPARSE CSR 2": lambda A, x: with_algorithm(A, x, 6),
    "cuSPARSE CSR 3": lambda A, x: with_algorithm(A, x, 12),
}


def cell(times, name) -> str:
    seconds = times.get(name)
    return f"{1e3 * seconds:.3f}" if isinstance(seconds, float) else "-"


def table_row(name, A, n_columns, own, peers, captured):
    """One line of the main table."""
    cells = [cell(own, v) for v in ("default", *VARIANTS)] + [cell(peers, p) for p in PEERS]
    known = "default" in own and peers
    ratio = f"{min(peers.values()) / own['default']:.2f}" if known else "-"
    graphs = [cell(captured, which) for which in ("ours", "torch")]
    moved = A.nnz * n_columns * 4 / own["default"] / 1e12 if known else float("nan")
    return [name, f"{A.nnz:,}", n_columns, *cells, ratio, *graphs, f"{moved:.2f}"]


def plan_row(name, A, prepared, costs):
    """One line on the plans of a matrix."""
    cells = [f"{1e3 * seconds:.3f}" for seconds in costs]
    for variant in PLANS:
        if variant in prepared:
            s = prepared[variant][1]
            balance = f"{s.imbalance:.2f} ({s.imbalance_without:.2f})"
            cells += [f"{1e3 * s.seconds:.2f}", balance, f"{s.n_dense} of {s.n_blocks}"]
    products = [product for product, _ in prepared.values()]
    counts = [product.plan.room[:2].get() for product in products[: len(PLANS)]]
    items = ", ".join(f"{n_items} ({n_pieces})" for n_items, n_pieces in counts)
    return [name, SpMMPlan(A, backend="cuda").summary.engine, *cells, items]


def show(rows, plans) -> None:
    """Print the tables."""
    print("\nA @ X, float32: ms")
    header = ["matrix", "entries", "columns", "default", *VARIANTS, *PEERS, "best peer : default"]
    timing.show([*header, "graph: default", "graph: torch", "X read, TB/s"], rows)
    print("\nPlans: time in ms, imbalance (of equal numbers of rows), dense blocks")
    header = [
        "matrix",
        "default",
        "default: ms",
        "and A to the device: ms",
        "CuPy, A to the device",
    ]
    parts = [f"{v}: {what}" for v in PLANS for what in ("ms", "", "dense")]
    timing.show([*header, *parts, "items (of them pieces of rows)"], plans)


def show_ratios(cases) -> None:
    """Print geometric means and losses of the default, and what single choices bring."""
    if not cases:
        return
    print(f"\nBest peer over the default, geometric mean over {len(cases)} cases (target 1.2)")
    for what, share in (
        ("product alone", lambda plan, whole, by_cupy: (0, 0)),
        ("with the plan over 1000 products", lambda plan, whole, by_cupy: (plan / 1000, 0)),
        ("with the plan over 100 products", lambda plan, whole, by_cupy: (plan / 100, 0)),
        ("with the plan over 10 products", lambda plan, whole, by_cupy: (plan / 10, 0)),
        (
            "with A brought to the device and the plan over 10 products, by CuPy for the peer",
            lambda plan, whole, by_cupy: (whole / 10, by_cupy / 10),
        ),
    ):
        ratios = {}
        for name, n_columns, own, peer, costs in cases:
            ours, theirs = share(*costs)
            ratios[f"{name}, {n_columns}"] = (peer + theirs) / (own["default"] + ours)
        losses = [f"{case}: {ratio:.2f}" for case, ratio in ratios.items() if ratio < 1]
        print(f"{what}: {gmean(list(ratios.values())):.2f}; losses: {'; '.join(losses) or 'none'}")
    best = [peer / min(own.values()) for _, _, own, peer, _ in cases]
    print(f"best variant of each case, product alone: {gmean(best):.2f}")
    for variant in ("heavy", "dual", "degree, chunks of 32"):
        gains = [c[2]["degree"] / c[2][variant] for c in cases if {"degree", variant} <= set(c[2])]
        print(f"degree : {variant}, geometric mean {gmean(gains):.3f}")


if __name__ == "__main__":
    main()
