# SPDX-License-Identifier: BSD-3-Clause
"""CUDA backend, through CuPy: kernels compiled at run time from the headers in ``cuda/``.

Uses CuPy's current device, stream and memory pool, and no context of its own.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields
from functools import cache

import cupy
import numpy as np
from numpy.typing import NDArray

from sklearn_mgk.solver.cuda_memory import (
    Answers,
    Blocks,
    address,
    device_limits,
    free_memory,
    structure,
    upload,
)
from sklearn_mgk.solver.device_labels import represent
from sklearn_mgk.solver.device_layout import (
    Entries,
    RowEdges,
    arcs,
    bonds,
    sort_entries,
)
from sklearn_mgk.solver.device_plan import (
    RESERVED,
    STRIP_ENTRIES,
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
    strips_a_block,
)
from sklearn_mgk.solver.device_problem import DeviceProblem
from sklearn_mgk.solver.device_source import (
    BlockKernel,
    KernelForm,
    StripKernel,
    solver_source,
)
from sklearn_mgk.solver.layout import colour_order, plain_order
from sklearn_mgk.solver.problem import NodalTarget, Problem, Solution
from sklearn_mgk.solver.topology import Topology, topology
from sklearn_mgk.solver.windows import find_reach

WORKSPACE_SHARE = 0.5
"""Share of the free device memory that vectors may take."""

DENSE = 4
"""Entries of a node, in the mean, from which lanes of a block keep 8 of them rather than 4."""

STRIP_SLOTS = {True: (4, 8), False: (8, 16)}
"""Entries in registers that kernels of strips are compiled for, with tables and with code."""

THREADS = {True: 1024, False: 768}
"""Threads in blocks of one pair that a multiprocessor is to hold, with tables and with code: more
would make registers spill."""

THREADS_WITH_GRADIENT = 512
"""The same where derivatives are computed."""

WARPS_OF_STRIPS = {4: 32, 8: 24, 16: 16}
"""Warps in blocks of strips that a multiprocessor is to hold, by entries in registers."""

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


class _Solver:
    def __init__(self, problem: Problem, eval_gradient: bool):
        batch, edges = problem.batch, topology(problem.batch)
        self.problem, self.eval_gradient = problem, eval_gradient
        self.n_theta = problem.n_theta if eval_gradient else 0
        self.node = represent(problem.node, eval_gradient, problem.dtype)
        attribute, self.reach = find_reach(problem, edges) or (None, np.inf)
        self.edge = represent(problem.edge, eval_gradient, problem.dtype, attribute)
        self.threads = THREADS_WITH_GRADIENT if eval_gradient else THREADS[self.edge.is_table]
        self.order = colour_order(batch, edges)
        entries = sort_entries(batch, edges, self.order, self.edge.key)
        self.kept: list[cupy.ndarray] = []
        form = DeviceProblem(
            problem, self.node, self.edge, entries, self.order.n_red, self.reach, eval_gradient
        )
        self.problem_words = structure(form.words(self._keep))
        self.strip_words = self._strip_words(edges, entries)
        self.is_dense = len(entries.edge) >= DENSE * batch.n_nodes

    def _keep(self, array: NDArray) -> int:
        """Copy an array to the device for as long as the solver lives; returns its address."""
        self.kept.append(upload(array))
        return self.kept[-1].data.ptr

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
        if not self.edge.is_table:
            most = np.where(most > STRIP_ENTRIES, most, np.minimum(most, self.slots[-1]))
        ranked = rank_for_strips(
            batch.sizes, most, form.n_red.astype(np.int64), entries.has_loop > 0, self.slots
        )
        self.strips = StripGraphs(*(cupy.asarray(getattr(ranked, f.name)) for f in fields(ranked)))
        n_entries = np.add.reduceat(count, batch.node_ptr[:-1]).astype(np.int64)
        is_bipartite = self.order.n_red.astype(np.int64) < batch.sizes
        self.block_graphs = BlockGraphs(*map(cupy.asarray, (batch.sizes, n_entries, is_bipartite)))
        return [self._keep(getattr(form, field.name)) for field in fields(RowEdges)]

    def __call__(self, pairs: NDArray, nodal: NodalTarget | None = None) -> Solution:
        """Solve a list of pairs; answers come in its order."""
        graphs = cupy.asarray(np.ascontiguousarray(pairs.T))
        answers = Answers.of(len(pairs), self.n_theta)
        oriented, swapped, fits = orient_for_strips(cupy, self.strips, graphs)
        if self.eval_gradient or nodal is not None or self.problem.min_steps:
            fits[:] = False
        itemsize, limit = self.problem.dtype.itemsize, device_limits()["shared_all"]
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
        self, plan: Plan, places: cupy.ndarray, answers: Answers, nodal: NodalTarget | None
    ) -> None:
        """Start the kernels of a plan on the current stream, and put their answers in place."""
        found = Answers.of(plan.pairs.shape[1], self.n_theta)
        blocks = (
            None if nodal is None else Blocks.of(self.block_graphs.size[plan.pairs], self.problem)
        )
        taken = cupy.zeros(len(plan.launches), np.int64)
        held = []
        for k, launch in enumerate(plan.launches):
            begins = plan.strip_begin[k] if launch.warps else None
            n_items = len(begins) - 1 if launch.warps else launch.end - launch.begin
            kernel = self._kernel(launch)
            n_blocks, workspace = self._resident(launch, n_items)
            begin = 0 if launch.warps else launch.begin
            work = [
                *(address(side, begin) for side in plan.pairs),
                n_items,
                address(taken, k),
                address(workspace),
                launch.size,
            ]
            results = [*found.words(begin), *([0] * 4 if blocks is None else blocks.words(begin))]
            a_strip = launch.shared_bytes // strips_a_block(launch.warps)
            strips = [*self.strip_words, address(begins), a_strip]
            arguments = (self.problem_words, *map(structure, (strips, work, results)))
            held.append(workspace)
            kernel((n_blocks,), (launch.threads,), arguments, shared_mem=launch.shared_bytes)
        answers.put(places[plan.order], found)
        if nodal is not None:
            blocks.scatter(nodal, places[plan.order].get(), plan.swapped.get())

    def _kernel(self, launch: Launch) -> cupy.RawKernel:
        """Compile what a launch needs."""
        wide = self.problem.dtype.itemsize // 4
        if launch.warps:
            threads = WARPS_OF_STRIPS[launch.slots] * WARP // wide
            blocks = max(threads // launch.threads, 1)
            kernel = StripKernel(launch.threads, blocks, launch.warps, launch.slots)
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
        limits = device_limits()
        resident = max(limits["threads"] // launch.threads, 1)
        fit = limits["shared_all"] // (launch.shared_bytes + RESERVED)
        n_blocks = min(
            limits["processors"] * min(resident, fit), -(-n_items // strips_a_block(launch.warps))
        )
        if launch.size == 0:
            return n_blocks, None
        itemsize, free = self.problem.dtype.itemsize, free_memory()
        n_blocks = min(n_blocks, int(WORKSPACE_SHARE * free / (launch.size * itemsize)))
        if n_blocks < 1:
            raise MemoryError(
                f"the largest pair needs {launch.size * itemsize / 1e9:.1f} GB of device memory; "
                f"{free / 1e9:.1f} GB are free, of which half may be used: free some, or use "
                "backend='cpu'"
            )
        return n_blocks, cupy.empty(n_blocks * launch.size, self.problem.dtype)


@cache
def _compiled(
    node: KernelForm, edge: KernelForm, dtype: np.dtype, kernel: BlockKernel | StripKernel
) -> cupy.RawKernel:
    """Compile a kernel; CuPy keeps the binary on disk."""
    text = solver_source(node, edge, dtype, kernel)
    return cupy.RawKernel(text, "solve", options=OPTIONS, backend="nvrtc")
