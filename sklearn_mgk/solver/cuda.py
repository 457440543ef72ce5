# SPDX-License-Identifier: BSD-3-Clause
"""CUDA backend, through CuPy: kernels compiled at run time from the headers in ``cuda/``.

Uses CuPy's current device, stream and memory pool, and no context of its own.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields
from functools import cache

import cupy
import numpy as np
from numpy.typing import NDArray

from sklearn_mgk.base_kernels.codegen import feature_dims, features
from sklearn_mgk.solver.device_layout import (
    Entries,
    RowEdges,
    arcs,
    bonds,
    entry_records,
    node_columns,
    sort_entries,
)
from sklearn_mgk.solver.device_plan import (
    BLOCK_WARPS,
    RESERVED,
    VECTORS,
    VECTORS_WITH_GRADIENT,
    WARP,
    BlockGraphs,
    Launch,
    Plan,
    StripGraphs,
    orient_for_strips,
    plan_blocks,
    plan_strips,
    rank_for_strips,
)
from sklearn_mgk.solver.device_source import (
    BlockKernel,
    KernelForm,
    StripKernel,
    solver_source,
)
from sklearn_mgk.solver.layout import colour_order, plain_order
from sklearn_mgk.solver.problem import LabelKernel, NodalTarget, Problem, Solution
from sklearn_mgk.solver.tables import MAX_TABLE_LABELS, check_sample, shared_table
from sklearn_mgk.solver.topology import Topology, topology
from sklearn_mgk.solver.windows import find_reach

LARGEST_TABLE = 8192
"""Distinct labels up to which a kernel that is no formula is read from a table."""

WORKSPACE_SHARE = 0.5
"""Share of the free device memory that vectors may take."""

DENSE = 4
"""Entries of a node, in the mean, from which lanes of a block keep 8 of them rather than 4."""

STRIP_SLOTS = {True: (4, 8), False: (4,)}
"""Entries in registers that kernels of strips are compiled for, with tables and with code."""

THREADS = {True: 1024, False: 768}
"""Threads in blocks of one pair that a multiprocessor is to hold, with tables and with code: more
would make registers spill."""

THREADS_WITH_GRADIENT = 512
"""The same where derivatives are computed."""

WARPS_OF_STRIPS = {8: 32, 16: 24, 24: 20, 32: 16}
"""Warps in blocks of strips that a multiprocessor is to hold, by rows."""

OPTIONS = ("--std=c++17", "--use_fast_math")


def why_no_device() -> str | None:
    """Say why no device can be used, and what to do; None where one can."""
    try:
        count = cupy.cuda.runtime.getDeviceCount()
    except cupy.cuda.runtime.CUDARuntimeError as error:
        return f"CUDA does not start ({error}): check with nvidia-smi that a driver is installed"
    return None if count > 0 else "there is no CUDA device"


class CUDABackend:
    """Preconditioned conjugate gradients on the current device of CuPy."""

    name = "cuda"

    def solver(self, problem: Problem, eval_gradient: bool) -> Callable[..., Solution]:
        """Bring the graphs to the device, and evaluate or compile the base kernels."""
        return _Solver(problem, eval_gradient)


@dataclass(frozen=True)
class _LabelColumns:
    """A base kernel and its labels, on the host.

    Attributes
    ----------
    form : KernelForm
        How the kernel is compiled.
    labels : ndarray of shape (n_rows,) or (n_rows, n_features)
        Number of the label of each node or edge of the batch, or its features.
    values, slopes, theta : ndarray
        Table, its derivatives, and arguments of the code; empty where they are not read.
    n_labels : int
        Distinct labels.
    key : ndarray of shape (n_rows,) or None
        Attribute that windows go by.
    """

    form: KernelForm
    labels: NDArray
    values: NDArray
    slopes: NDArray
    theta: NDArray
    n_labels: int
    key: NDArray | None = None

    @property
    def is_table(self) -> bool:
        """Whether the kernel is read from a table."""
        return not self.form.source


class _Solver:
    def __init__(self, problem: Problem, eval_gradient: bool):
        batch, edges = problem.batch, topology(problem.batch)
        self.problem, self.eval_gradient = problem, eval_gradient
        self.n_theta = problem.n_theta if eval_gradient else 0
        self.node = _represent(problem.node, eval_gradient, problem.dtype)
        attribute, self.reach = find_reach(problem, edges) or (None, np.inf)
        self.edge = _represent(problem.edge, eval_gradient, problem.dtype, attribute)
        self.threads = THREADS_WITH_GRADIENT if eval_gradient else THREADS[self.edge.is_table]
        self.order = colour_order(batch, edges)
        entries = sort_entries(batch, edges, self.order, self.edge.key)
        self.kept: list[cupy.ndarray] = []
        self.problem_words = self._problem_words(entries)
        self.strip_words = self._strip_words(edges, entries)
        self.is_dense = len(entries.edge) >= DENSE * batch.n_nodes

    def _keep(self, array: NDArray) -> int:
        """Copy an array to the device for as long as the solver lives; returns its address."""
        self.kept.append(_upload(array))
        return self.kept[-1].data.ptr

    def _problem_words(self, entries: Entries) -> NDArray:
        """Fields of ``mgk::Problem``, each of eight bytes."""
        problem, node, edge = self.problem, self.node, self.edge
        limits, none = np.finfo(problem.dtype), np.zeros(1, problem.dtype)
        labels = node.labels[entries.node]
        node_labels = (labels.astype(np.int32), none) if node.is_table else (none, labels)
        tiny, epsilon = float(limits.tiny) * 1e10, float(limits.eps) * 8
        reals = np.array([problem.tol, tiny, epsilon, min(self.reach, float(limits.max) / 4)])
        columns = (
            problem.batch.node_ptr.astype(np.int32),
            entries.row_ptr,
            entry_records(entries, edge.labels, problem.dtype),
            *node_columns(problem, entries.node),
            entries.local,
            entries.has_loop,
            self.order.n_red.astype(np.int32),
            *node_labels,
            *(node.values, node.slopes, node.theta),
        )
        edge_columns = (none, none, edge.values, edge.slopes, edge.theta)
        words = [
            *map(self._keep, columns),
            node.n_labels,
            *map(self._keep, edge_columns),
            edge.n_labels,
            *reals.view(np.uint64),
            problem.max_iter,
            problem.min_steps,
            problem.n_categories if self.eval_gradient else 0,
            problem.trainable_stop,
            self.n_theta,
        ]
        return _structure(words)

    def _strip_words(self, edges: Topology, entries: Entries) -> list[int]:
        """Fields of ``mgk::Strips`` except for the last, and what planning reads."""
        problem, batch, labels = self.problem, self.problem.batch, self.edge.labels
        if self.edge.is_table:
            order = self.order
            form = arcs(edges, order, entries, labels, problem.dtype)
        else:
            order = plain_order(batch)
            form = bonds(problem, edges, order, entries, labels, self.edge.key)
        count = np.diff(entries.row_ptr)
        # Code takes several rounds of entries, so that the last number serves all.
        self.slots = STRIP_SLOTS[self.edge.is_table]
        most = np.maximum.reduceat(count, batch.node_ptr[:-1])
        ranked = rank_for_strips(
            batch.sizes,
            most if self.edge.is_table else np.minimum(most, self.slots[-1]),
            order.n_red.astype(np.int64) < batch.sizes,
            entries.has_loop > 0,
            self.slots,
        )
        self.strips = StripGraphs(*(cupy.asarray(getattr(ranked, f.name)) for f in fields(ranked)))
        n_entries = np.add.reduceat(count, batch.node_ptr[:-1]).astype(np.int64)
        is_bipartite = self.order.n_red.astype(np.int64) < batch.sizes
        self.block_graphs = BlockGraphs(*map(cupy.asarray, (batch.sizes, n_entries, is_bipartite)))
        return [self._keep(getattr(form, field.name)) for field in fields(RowEdges)]

    def __call__(self, pairs: NDArray, nodal: NodalTarget | None = None) -> Solution:
        """Solve a list of pairs; answers come in its order."""
        graphs = cupy.asarray(np.ascontiguousarray(pairs.T))
        answers = _Answers.of(len(pairs), self.n_theta)
        oriented, swapped, fits = orient_for_strips(cupy, self.strips, graphs)
        if self.eval_gradient or nodal is not None or self.problem.min_steps:
            fits[:] = False
        itemsize, limit = self.problem.dtype.itemsize, _device_limits()["shared_all"]
        chosen = cupy.flatnonzero(fits)
        if len(chosen):
            few = oriented[:, chosen], swapped[chosen]
            plan = plan_strips(cupy, self.strips, *few, self.slots, itemsize)
            self._run(plan, chosen, answers, None)
        chosen = cupy.flatnonzero(~fits)
        if len(chosen):
            n_vectors = VECTORS_WITH_GRADIENT if self.eval_gradient else VECTORS
            plan = plan_blocks(
                cupy, self.block_graphs, graphs[:, chosen], n_vectors, itemsize, limit, self.threads
            )
            self._run(plan, chosen, answers, nodal)
        return answers.solution(self.eval_gradient)

    def _run(
        self, plan: Plan, places: cupy.ndarray, answers: _Answers, nodal: NodalTarget | None
    ) -> None:
        """Start the kernels of a plan on the current stream, and put their answers in place."""
        found = _Answers.of(plan.pairs.shape[1], self.n_theta)
        blocks = (
            None if nodal is None else _Blocks.of(self.block_graphs.size[plan.pairs], self.problem)
        )
        taken = cupy.zeros(len(plan.launches), np.int64)
        held = []
        for k, launch in enumerate(plan.launches):
            begins = plan.strip_begin[k] if launch.rows else None
            n_items = len(begins) - 1 if launch.rows else launch.end - launch.begin
            kernel = self._kernel(launch)
            n_blocks, workspace = self._resident(launch, n_items)
            begin = 0 if launch.rows else launch.begin
            work = [
                *(_address(side, begin) for side in plan.pairs),
                n_items,
                _address(taken, k),
                _address(workspace),
                launch.size,
            ]
            results = [*found.words(begin), *([0] * 4 if blocks is None else blocks.words(begin))]
            strips = [*self.strip_words, _address(begins)]
            arguments = (self.problem_words, *map(_structure, (strips, work, results)))
            held.append(workspace)
            kernel((n_blocks,), (launch.threads,), arguments, shared_mem=launch.shared_bytes)
        answers.put(places[plan.order], found)
        if nodal is not None:
            blocks.scatter(nodal, places[plan.order].get(), plan.swapped.get())

    def _kernel(self, launch: Launch) -> cupy.RawKernel:
        """Compile what a launch needs."""
        wide = self.problem.dtype.itemsize // 4
        if launch.rows:
            threads = WARPS_OF_STRIPS[launch.rows] * WARP // wide
            blocks = max(threads // launch.threads, 1)
            shape = launch.warps, launch.rows, launch.slots
            kernel = StripKernel(launch.threads, blocks, *shape)
        else:
            blocks, slots = max(self.threads // launch.threads, 1), 8 if self.is_dense else 4
            kernel = BlockKernel(launch.threads, blocks, slots, launch.memory, self.eval_gradient)
        form = self.node.form, self.edge.form, self.problem.dtype, kernel
        compiled = _compiled(*form)
        # Never lowered: another thread may be about to launch it.
        if launch.shared_bytes > compiled.max_dynamic_shared_size_bytes:
            compiled.max_dynamic_shared_size_bytes = launch.shared_bytes
        return compiled

    def _resident(self, launch: Launch, n_items: int) -> tuple[int, cupy.ndarray | None]:
        """Blocks that run at a time, and the workspace for their vectors."""
        limits = _device_limits()
        resident = max(limits["threads"] // launch.threads, 1)
        fit = limits["shared_all"] // (launch.shared_bytes + RESERVED)
        a_block = BLOCK_WARPS if launch.warps == 1 else 1
        n_blocks = min(limits["processors"] * min(resident, fit), -(-n_items // a_block))
        if launch.size == 0:
            return n_blocks, None
        itemsize, free = self.problem.dtype.itemsize, _free_memory()
        n_blocks = min(n_blocks, int(WORKSPACE_SHARE * free / (launch.size * itemsize)))
        if n_blocks < 1:
            raise MemoryError(
                f"the largest pair needs {launch.size * itemsize / 1e9:.1f} GB of device memory; "
                f"{free / 1e9:.1f} GB are free, of which half may be used: free some, or use "
                "backend='cpu'"
            )
        return n_blocks, cupy.empty(n_blocks * launch.size, self.problem.dtype)


@dataclass(frozen=True)
class _Answers:
    """What the launches write: the first fields of ``mgk::Results``, in its order."""

    values: cupy.ndarray
    gradient: cupy.ndarray
    outcome: cupy.ndarray
    iterations: cupy.ndarray

    @classmethod
    def of(cls, n: int, n_theta: int) -> _Answers:
        """Allocate answers for n pairs."""
        small = (cupy.empty(n, np.int32) for _ in range(2))
        return cls(cupy.empty(n), cupy.zeros((n, n_theta)), *small)

    def words(self, begin: int) -> list[int]:
        """Fields as words of eight bytes, for a launch that begins at some pair."""
        return [_address(getattr(self, field.name), begin) for field in fields(self)]

    def put(self, places: cupy.ndarray, found: _Answers) -> None:
        """Take over answers for the pairs at some places."""
        for field in fields(self):
            getattr(self, field.name)[places] = getattr(found, field.name)

    def solution(self, eval_gradient: bool) -> Solution:
        """Bring the answers to the host."""
        return Solution(
            self.values.get(),
            self.gradient.get() if eval_gradient else None,
            self.outcome.get().astype(np.uint8),
            self.iterations.get(),
        )


@dataclass(frozen=True)
class _Blocks:
    """Node-by-node values of pairs, one block behind the other.

    Attributes
    ----------
    shape : ndarray of shape (2, n_pairs)
        Rows and columns of each block.
    base : ndarray of shape (n_pairs,)
        Place of its first number.
    values : cupy.ndarray
        All blocks.
    places : cupy.ndarray of shape (3, n_pairs)
        ``base``, and the steps from one row and from one column to the next.
    """

    shape: NDArray
    base: NDArray
    values: cupy.ndarray
    places: cupy.ndarray

    @classmethod
    def of(cls, shape: cupy.ndarray, problem: Problem) -> _Blocks:
        """Allocate blocks of the given shapes."""
        shape = shape.get()
        size = shape[0] * shape[1]
        base = np.cumsum(size) - size
        places = cupy.asarray(np.stack([base, shape[1], np.ones_like(base)]))
        return cls(shape, base, cupy.empty(int(size.sum()), problem.dtype), places)

    def words(self, begin: int) -> list[int]:
        """Last fields of ``mgk::Results``."""
        return [_address(self.values), *(_address(row, begin) for row in self.places)]

    def scatter(self, nodal: NodalTarget, order: NDArray, swapped: NDArray) -> None:
        """Write the block of each pair to its place in the matrix."""
        values = self.values.get()
        for k, place in enumerate(order):
            n_rows, n_columns = self.shape[:, k]
            block = values[self.base[k] :][: n_rows * n_columns].reshape(n_rows, n_columns)
            block = block.T if swapped[k] else block
            row, column = nodal.row[place], nodal.column[place]
            nodal.matrix[row : row + block.shape[0], column : column + block.shape[1]] = block


def _represent(
    source: LabelKernel, eval_gradient: bool, dtype: np.dtype, attribute: str | None = None
) -> _LabelColumns:
    """Choose how the device gets at a base kernel: by its table, or by code.

    With code, windows go by the given attribute.
    """
    kernel, labels = source.kernel, source.labels
    none, n_free = np.zeros(1, dtype), kernel.n_dims if eval_gradient else 0
    if source.n_labels > MAX_TABLE_LABELS and kernel.is_formula:
        check_sample(source)
        dims = feature_dims(labels.columns, kernel.attributes)
        rows = features(labels.columns, kernel.attributes)[labels.codes].astype(dtype)
        place, key = -1, None
        if attribute is not None:
            before = kernel.attributes[: kernel.attributes.index(attribute)]
            place = sum(max(dims[name], 1) for name in before)
            key = rows[:, place]
        form = KernelForm.of_code(kernel, dims, n_free, place)
        theta = kernel.hyperparameter_values.astype(dtype)
        return _LabelColumns(form, rows, none, none, theta, 0, key)
    if source.n_labels > LARGEST_TABLE:
        raise ValueError(
            f"{source.role} {kernel!r} is no formula and meets {source.n_labels} distinct labels, "
            f"more than the {LARGEST_TABLE} of a table on the device: write it as a formula, round "
            "the labels, or use backend='cpu'"
        )
    table = shared_table(source, eval_gradient, dtype)
    slopes = np.ascontiguousarray(table.slopes.T)
    codes = labels.codes.astype(np.int64)
    return _LabelColumns(KernelForm(n_free), codes, table.values, slopes, none, table.n_labels)


@cache
def _compiled(
    node: KernelForm, edge: KernelForm, dtype: np.dtype, kernel: BlockKernel | StripKernel
) -> cupy.RawKernel:
    """Compile a kernel; CuPy keeps the binary on disk."""
    text = solver_source(node, edge, dtype, kernel)
    return cupy.RawKernel(text, "solve", options=OPTIONS, backend="nvrtc")


@cache
def _limits_of(device: int) -> dict[str, int]:
    properties = cupy.cuda.runtime.getDeviceProperties(device)
    return {
        "processors": properties["multiProcessorCount"],
        "threads": properties["maxThreadsPerMultiProcessor"],
        "shared": properties["sharedMemPerBlockOptin"],
        "shared_all": properties["sharedMemPerMultiprocessor"],
    }


def _device_limits() -> dict[str, int]:
    return _limits_of(cupy.cuda.Device().id)


def _free_memory() -> int:
    """Bytes that the device or CuPy's pool can still give."""
    return cupy.cuda.runtime.memGetInfo()[0] + cupy.get_default_memory_pool().free_bytes()


def _upload(array: NDArray) -> cupy.ndarray:
    """Copy an array to the device; an empty one gets an element, so that it has an address."""
    array = array if array.size else np.zeros(1, array.dtype)
    # Records travel as bytes: CuPy has no structured types.
    return cupy.asarray(array.view(np.uint8) if array.dtype.names else array)


def _structure(words: list[int]) -> np.void:
    """Lay words of eight bytes out as one structure, which a kernel takes by value."""
    layout = np.dtype([(f"f{k}", np.uint64) for k in range(len(words))])
    return np.array([tuple(int(word) for word in words)], layout)[0]


def _address(array: cupy.ndarray | None, row: int = 0) -> int:
    """Address of a row of an array; 0 for none."""
    return 0 if array is None else array.data.ptr + row * array.strides[0]
