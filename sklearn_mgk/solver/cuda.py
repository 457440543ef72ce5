# SPDX-License-Identifier: BSD-3-Clause
"""CUDA backend, through CuPy: kernels compiled at run time from the headers in ``cuda/``.

Uses CuPy's current device, stream and memory pool, and no context of its own.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

import cupy
import numpy as np
from numpy.typing import NDArray

from sklearn_mgk.solver.cuda_graphs import DeviceGraphs, device_graphs
from sklearn_mgk.solver.cuda_memory import (
    Answers,
    Blocks,
    address,
    device_limits,
    free_memory,
    on_host,
    structure,
    upload,
)
from sklearn_mgk.solver.device_labels import represent
from sklearn_mgk.solver.device_layout import node_columns
from sklearn_mgk.solver.device_plan import (
    RESERVED,
    STRIPS_AT_A_TIME,
    VECTORS,
    VECTORS_WITH_GRADIENT,
    WARP,
    Launch,
    Plan,
    orient_for_strips,
    plan_blocks,
    plan_strips,
    strips_a_block,
)
from sklearn_mgk.solver.device_source import (
    BlockKernel,
    KernelForm,
    StripKernel,
    solver_source,
)
from sklearn_mgk.solver.problem import NodalTarget, Problem, Solution
from sklearn_mgk.solver.reach import find_reach
from sklearn_mgk.solver.topology import topology

WORKSPACE_SHARE = 0.5
"""Share of the free device memory that vectors may take."""

DENSE = 4
"""Entries of a node, in the mean, from which lanes of a block keep 8 of them rather than 4."""

STRIP_SLOTS = {True: (4, 8), False: (8, 16)}
"""Entries in registers that kernels of strips are compiled for, with tables and with code."""

THREADS = {4: 1024, 8: 768}
"""Threads in blocks of one pair that a multiprocessor is to hold, by entries in registers: more
would make these spill."""

THREADS_WITH_GRADIENT = 768
"""The same where derivatives are computed."""

WARPS_OF_STRIPS = {4: 32, 8: 24, 16: 16}
"""Warps in blocks of strips that a multiprocessor is to hold, by entries in registers."""

WARPS_WITH_GRADIENT = {4: 20, 8: 16, 16: 16}
"""The same where derivatives are computed."""

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
    xp = cupy

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
        self.slots = STRIP_SLOTS[self.edge.is_table]
        graphs = device_graphs(problem, self.node, self.edge, attribute, self.slots)
        self.strips, self.block_graphs = graphs.strips, graphs.blocks
        self.kept: list[cupy.ndarray] = [*graphs.first, *graphs.last, *graphs.rows]
        self.problem_words = self._problem_words(graphs)
        self.strip_words = [address(array) for array in graphs.rows]
        self.block_slots = 8 if graphs.n_entries >= DENSE * batch.n_nodes else 4
        self.threads = THREADS_WITH_GRADIENT if eval_gradient else THREADS[self.block_slots]

    def _keep(self, array: NDArray) -> int:
        """Copy an array to the device for as long as the solver lives; returns its address."""
        self.kept.append(upload(array))
        return self.kept[-1].data.ptr

    def _problem_words(self, graphs: DeviceGraphs) -> NDArray:
        """Fields of ``mgk::Problem``, each of eight bytes."""
        problem, node, edge = self.problem, self.node, self.edge
        limits, none = np.finfo(problem.dtype), np.zeros(1, problem.dtype)
        tiny, epsilon = float(limits.tiny) * 1e10, float(limits.eps) * 8
        reals = np.array([problem.tol, tiny, epsilon, min(self.reach, float(limits.max) / 4)])
        edge_columns = (none, none, edge.values, edge.slopes, edge.theta)
        words = [
            *map(address, graphs.first),
            *map(self._keep, node_columns(problem, graphs.node)),
            *map(address, graphs.last),
            *map(self._keep, (node.values, node.slopes, node.theta)),
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
        return structure(words)

    def __call__(self, pairs: NDArray, nodal: NodalTarget | None = None) -> Solution:
        """Solve a list of pairs; answers come in its order, and lie where it lies."""
        graphs = cupy.ascontiguousarray(cupy.asarray(pairs).T)
        answers = Answers.of(len(pairs), self.n_theta)
        is_plain = nodal is None and self.problem.min_steps == 0
        wanted = "GRADIENTS" if self.eval_gradient else "VALUES" if is_plain else "SOLUTIONS"
        itemsize, limit = self.problem.dtype.itemsize, device_limits()["shared_all"]
        room = (limit / STRIPS_AT_A_TIME - 2 * RESERVED) / itemsize
        oriented, swapped, fits = orient_for_strips(cupy, self.strips, graphs, room)
        chosen = cupy.flatnonzero(fits)
        if len(chosen):
            few = oriented[:, chosen], swapped[chosen]
            plan = plan_strips(cupy, self.strips, *few, self.slots, itemsize, wanted)
            self._run(plan, chosen, answers, nodal)
        chosen = cupy.flatnonzero(~fits)
        if len(chosen):
            n_vectors = VECTORS_WITH_GRADIENT if self.eval_gradient else VECTORS
            plan = plan_blocks(
                cupy, self.block_graphs, graphs[:, chosen], n_vectors, itemsize, limit, self.threads
            )
            self._run(plan, chosen, answers, nodal)
        solution = answers.solution(self.eval_gradient)
        return on_host(solution) if isinstance(pairs, np.ndarray) else solution

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
                0,
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
            warps = WARPS_WITH_GRADIENT if launch.wanted == "GRADIENTS" else WARPS_OF_STRIPS
            threads = warps[launch.slots] * WARP // wide
            blocks = max(threads // launch.threads, 1)
            shape = launch.warps, launch.slots, launch.wanted
            kernel = StripKernel(launch.threads, blocks, *shape)
        else:
            # The same registers for blocks of all sizes, so that there is one kernel to compile.
            where = self.block_slots, launch.memory, self.eval_gradient
            kernel = BlockKernel(self.threads, 1, *where)
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
