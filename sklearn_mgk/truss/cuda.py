# SPDX-License-Identifier: BSD-3-Clause
"""The k-truss on a GPU, through CuPy; the kernels stand in cuda/truss.cuh."""

from __future__ import annotations

from contextlib import AbstractContextManager
from functools import cache
from importlib.resources import files
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sklearn_mgk.device import ExplainedMemory, import_cupy
from sklearn_mgk.truss.eager import greatest_k
from sklearn_mgk.truss.edges import EdgeSet, Rows, make_rows
from sklearn_mgk.truss.peeling import whole_rows

_THREADS = 256
_GRID_THREADS = 1024  # of each block where all blocks peel one graph
_MOST_BLOCKS = 2**20  # kernels go on in steps of the whole grid
_LARGE = 20_000  # edges from which the whole device peels one graph
# Threads that share a task of each list, and the length of a row beyond which there may be such
# tasks: kLongForThread / 2 and kLongForWarp in truss.cuh.
_LISTED = ((32, 32), (_THREADS, 2048))
_WORDS = {np.dtype(np.int32): "int", np.dtype(np.int64): "long long"}
_KERNELS = (
    "support_coarse<{0}>",
    "support_fine<{0}>",
    "support_listed<32, {0}>",
    f"support_listed<{_THREADS}, {{0}}>",
    "prune<{0}>",
    "peel_blocks<{0}>",
    "peel_grid<{0}>",
)


def source() -> str:
    """Return the CUDA C++ text of all kernels."""
    return (files("sklearn_mgk.cuda") / "truss.cuh").read_text()


def kernel_names(dtype: Any) -> list[str]:
    """Names of all kernels for one index type, as C++ expressions."""
    return [f"truss::{name.format(_WORDS[np.dtype(dtype)])}" for name in _KERNELS]


def _kernels(dtype: np.dtype) -> dict[str, Any]:
    """Kernels for one index type on the current device, by name up to the type."""
    return _compile(dtype, import_cupy().cuda.runtime.getDevice())


@cache
def _compile(dtype: np.dtype, device: int) -> dict[str, Any]:
    names = kernel_names(dtype)
    module = import_cupy().RawModule(
        code=source(), options=("--std=c++17",), name_expressions=names, backend="nvrtc"
    )
    return {
        plain.replace(", {0}", "").replace("<{0}>", ""): module.get_function(name)
        for plain, name in zip(_KERNELS, names, strict=True)
    }


def _n_multiprocessors() -> int:
    return _of_device(import_cupy().cuda.runtime.getDevice())


@cache
def _of_device(device: int) -> int:
    return import_cupy().cuda.Device(device).attributes["MultiProcessorCount"]


def _memory_of(edges: EdgeSet) -> AbstractContextManager[None]:
    """Say what to do where the device has too little memory."""
    what = f"{len(edges.node_ptr) - 1} graphs with {edges.n_edges} edges"
    return ExplainedMemory(what, "pass fewer graphs at once, or backend='cpu'")


class DeviceRows:
    """Rows in the memory of the device, and the counts on them.

    Parameters
    ----------
    rows : Rows
        The rows.
    """

    def __init__(self, rows: Rows):
        cp = self.cp = import_cupy()
        self.dtype = rows.columns.dtype
        self.kernels = _kernels(self.dtype)
        self.ptr, self.columns = cp.asarray(rows.ptr), cp.asarray(rows.columns)
        self.edge = cp.asarray(rows.edge)
        self.stop = self.ptr[1:] - self.dtype.type(1)
        self.support = cp.zeros_like(self.columns)
        # Edges left, then the lengths of the two lists of tasks; each kernel clears for the next.
        self.counters = cp.zeros(3, self.dtype)
        self.longest = int(np.diff(rows.ptr).max(initial=1)) - 1
        self._lists: tuple | None = None

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return len(self.stop)

    def count(self, granularity: str = "fine") -> None:
        """Add the triangles on each edge to the support; to be followed by `prune`.

        Parameters
        ----------
        granularity : {"fine", "coarse", "threads"}, default="fine"
            A non-zero for a thread, warp or block; a row for a thread; a non-zero for a thread.
        """
        rows = (self.ptr, self.stop, self.columns, self.support)
        if granularity == "coarse":
            n_rows = self._number(self.n_rows)
            self._launch("support_coarse", self.n_rows, *rows, n_rows, self.counters)
            return
        n_slots = len(self.columns)
        row, tasks = self._task_lists()
        wanted = [size for size, least in _LISTED if granularity == "fine" and self.longest > least]
        lists = tasks if wanted else np.uintp(0)
        arguments = (row, self._number(n_slots), lists, self.counters)
        self._launch("support_fine", n_slots, *rows, *arguments)
        # How long the lists are is known on the device only: enough blocks to fill it.
        blocks = 16 * _n_multiprocessors()
        for which, size in enumerate(wanted):
            own = (row, tasks[which * n_slots :], self.counters[1 + which :])
            self.kernels[f"support_listed<{size}>"]((blocks,), (_THREADS,), (*rows, *own))

    def prune(self, k: int) -> int:
        """Drop the edges with less than k - 2 triangles, and return how many are left."""
        arrays = (self.ptr, self.stop, self.columns, self.edge, self.support)
        numbers = self._number(self.n_rows), self._number(k - 2)
        self._launch("prune", 32 * self.n_rows, *arrays, *numbers, self.counters)
        return int(self.counters[0])

    def left(self, n_edges: int) -> NDArray:
        """Mask of the edges that are left."""
        mask = self.cp.zeros(n_edges, bool)
        mask[self.edge[self.columns != 0]] = True
        return mask.get()

    def _task_lists(self) -> tuple:
        """Row of each place, and room for two lists of places; made once."""
        if self._lists is None:
            cp, n_slots = self.cp, len(self.columns)
            # The first place of each row but the first one counts one up.
            row = cp.zeros(n_slots, self.dtype)
            row[self.ptr[1:-1]] = 1
            self._lists = cp.cumsum(row, dtype=self.dtype), cp.empty(2 * n_slots, self.dtype)
        return self._lists

    def _number(self, value: int) -> np.integer:
        return self.dtype.type(value)

    def _launch(self, name: str, n_threads: int, *arguments: Any) -> None:
        blocks = min(_MOST_BLOCKS, max(1, -(-n_threads // _THREADS)))
        self.kernels[name]((blocks,), (_THREADS,), arguments)


class CUDABackend:
    """Kernels on the current device."""

    def __init__(self):
        import_cupy()

    def k_truss(self, edges: EdgeSet, k: int, granularity: str, order: str) -> NDArray:
        """Mask of the edges of the k-truss."""
        if k == 2 or edges.n_edges == 0:
            return np.ones(edges.n_edges, bool)
        with _memory_of(edges):
            rows = DeviceRows(make_rows(edges, order))
            prune_and_repeat(rows, edges.n_edges, k, _granularity(granularity))
            return rows.left(edges.n_edges)

    def support(self, edges: EdgeSet, granularity: str, order: str) -> NDArray:
        """Triangles on each edge, int64."""
        if edges.n_edges == 0:
            return np.zeros(0, np.int64)
        with _memory_of(edges):
            rows = DeviceRows(make_rows(edges, order))
            rows.count(_granularity(granularity))
            found, there = np.empty(edges.n_edges, np.int64), rows.columns != 0
            found[rows.edge[there].get()] = rows.support[there].get()
            return found

    def trussness(self, edges: EdgeSet) -> NDArray:
        """Trussness of each edge, int64."""
        if edges.n_edges == 0:
            return np.zeros(0, np.int64)
        with _memory_of(edges):
            return DevicePeel(edges).run()

    def max_truss(self, edges: EdgeSet) -> int:
        """Greatest trussness, 0 without edges."""
        return greatest_k(
            edges, lambda part, k: self.k_truss(part, k, "auto", "degree"), self.trussness
        )


def prune_and_repeat(rows: DeviceRows, n_edges: int, k: int, granularity: str) -> int:
    """Count and prune until nothing goes, and return how many edges are left."""
    n_left, settled = n_edges, False
    while n_left and not settled:
        n_before = n_left
        rows.count(granularity)
        n_left = rows.prune(k)
        # An edge in no triangle takes none from others: the first pass settles k = 3.
        settled = n_left == n_before or k == 3
    return n_left


def _granularity(name: str) -> str:
    return "fine" if name == "auto" else name


class DevicePeel:
    """Graphs in the memory of the device, to be peeled once.

    Parameters
    ----------
    edges : EdgeSet
        The graphs.
    """

    def __init__(self, edges: EdgeSet):
        cp = self.cp = import_cupy()
        self.edges = edges
        rows = make_rows(edges)
        self.places = np.flatnonzero(rows.columns)
        self.edge = rows.edge
        self.number, *whole = whole_rows(rows, edges.n_edges)
        dtype = self.dtype = rows.columns.dtype
        device = DeviceRows(rows)
        device.count("fine")
        places = cp.asarray(self.places)
        self.support = cp.empty(edges.n_edges, dtype)
        self.support[cp.asarray(self.number[self.places])] = device.support[places]
        self.queue, self.trussness = (cp.empty(edges.n_edges, dtype) for _ in range(2))
        self.arrays = [cp.asarray(array.astype(dtype, copy=False)) for array in whole]

    def run(self) -> NDArray:
        """Peel all graphs, and return the trussness of each edge."""
        sizes = np.diff(self.edges.edge_ptr)
        for graph in np.flatnonzero(sizes >= _LARGE):
            self._peel_large(int(graph))
        small = np.flatnonzero((sizes > 0) & (sizes < _LARGE))
        if len(small):
            self._peel_small(small[np.argsort(-sizes[small], kind="stable")])
        found = np.empty(self.edges.n_edges, np.int64)
        found[self.edge[self.places]] = self.trussness.get()[self.number[self.places]]
        return found

    def _peel_large(self, graph: int) -> None:
        """Put all threads on one graph: a block for each multiprocessor, so that all blocks run."""
        first, last = (self.dtype.type(p) for p in self.edges.edge_ptr[graph : graph + 2])
        counters, arrived = self.cp.zeros(2, self.dtype), self.cp.zeros(1, np.uint32)
        blocks = _n_multiprocessors()
        arguments = (*self._arguments, first, last, counters, arrived)
        _kernels(self.dtype)["peel_grid"]((blocks,), (_GRID_THREADS,), arguments)

    def _peel_small(self, graphs: NDArray) -> None:
        """Give each graph to a block."""
        cp, dtype = self.cp, self.dtype
        arguments = (
            *self._arguments,
            cp.asarray(self.edges.edge_ptr.astype(dtype)),
            cp.asarray(graphs.astype(dtype)),
            dtype.type(len(graphs)),
            cp.zeros(2 * len(graphs), dtype),
            cp.zeros(1, dtype),
        )
        blocks = min(len(graphs), 16 * _n_multiprocessors())
        _kernels(dtype)["peel_blocks"]((blocks,), (_THREADS,), arguments)

    @property
    def _arguments(self) -> tuple:
        return (*self.arrays, self.support, self.queue, self.trussness)
