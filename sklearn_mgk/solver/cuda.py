# SPDX-License-Identifier: BSD-3-Clause
"""CUDA backend, through CuPy: kernels compiled at run time from the headers in ``cuda/``.

Uses CuPy's current device, stream and memory pool, and no context of its own.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import cupy
import numpy as np
from numpy.typing import NDArray

from sklearn_mgk.solver.cuda_graphs import device_graphs
from sklearn_mgk.solver.cuda_kernels import Kernels
from sklearn_mgk.solver.cuda_launch import Run, start
from sklearn_mgk.solver.cuda_memory import (
    Answers,
    Kept,
    NodalPlaces,
    address,
    device_limits,
    free_memory,
    on_host,
    structure,
)
from sklearn_mgk.solver.cuda_run import explained, interruptible, memory_share
from sklearn_mgk.solver.device_kernels import STRIP_SLOTS, Choice
from sklearn_mgk.solver.device_labels import represent
from sklearn_mgk.solver.device_launch import Launch, Plan
from sklearn_mgk.solver.device_plan import VECTORS, VECTORS_WITH_GRADIENT, plan_blocks
from sklearn_mgk.solver.device_problem import problem_words
from sklearn_mgk.solver.device_strips import orient_for_strips, plan_strips
from sklearn_mgk.solver.problem import NodalTarget, Problem, Solution
from sklearn_mgk.solver.reach import find_reach
from sklearn_mgk.solver.topology import topology


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

    def room(self) -> float:
        """Return the bytes that a matrix may take: half of what vectors may."""
        return memory_share() * free_memory() / 2

    def solver(self, problem: Problem, eval_gradient: bool) -> Callable[..., Solution]:
        """Bring the graphs to the device, and evaluate or compile the base kernels."""
        with explained(f"{len(problem.batch)} graphs"):
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
        self.kept = Kept([*graphs.first, *graphs.last, *graphs.rows])
        columns = map(address, graphs.first), map(address, graphs.last)
        words = problem_words(
            problem,
            (self.node, self.edge),
            graphs.node,
            columns,
            self.kept,
            self.reach,
            eval_gradient,
        )
        self.problem_words = structure(words)
        self.strip_words = [address(array) for array in graphs.rows]
        entries = graphs.n_entries, batch.n_nodes
        choice = Choice.of(problem.dtype, *entries, self.edge.is_table, eval_gradient)
        self.kernels = Kernels(self.node.form, self.edge.form, choice)

    def __call__(self, pairs: NDArray, nodal: NodalTarget | None = None) -> Solution:
        """Solve a list of pairs; answers come in its order, and lie where it lies."""
        with explained(f"{len(pairs)} pairs at a time"):
            solution = self._solve(cupy.ascontiguousarray(cupy.asarray(pairs).T), nodal)
        return on_host(solution) if isinstance(pairs, np.ndarray) else solution

    def _solve(self, graphs: cupy.ndarray, nodal: NodalTarget | None) -> Solution:
        """Plan, compile what is missing, run, and put answers in the order of the call."""
        answers = Answers.of(graphs.shape[1], self.n_theta)
        is_plain = nodal is None and self.problem.min_steps == 0
        wanted = "GRADIENTS" if self.eval_gradient else "VALUES" if is_plain else "SOLUTIONS"
        runs = [self._run(plan, places, nodal) for plan, places in self._plans(graphs, wanted)]
        launches = [launch for run in runs for launch in run.plan.launches]
        self._compile(launches)
        taken = cupy.zeros(len(launches), np.int64)
        with interruptible(taken):
            start(runs, self.kernels, self.problem_words, self.strip_words, taken)
        for run in runs:
            answers.put(run.places, run.found)
        return answers.solution(self.eval_gradient)

    def _compile(self, launches: list[Launch]) -> None:
        """Compile what is missing, or name the base kernels that cannot be compiled."""
        try:
            self.kernels.compile(launches)
        except cupy.cuda.compiler.CompileException as error:
            node, edge = self.problem.node.kernel, self.problem.edge.kernel
            raise RuntimeError(
                f"the code of node_kernel {node!r} and edge_kernel {edge!r} does not compile for "
                f"this device: {error}. Write them as a FunctionKernel, or use backend='cpu'"
            ) from error

    def _run(self, plan: Plan, chosen: cupy.ndarray, nodal: NodalTarget | None) -> Run:
        """Say where the answers of a plan go, which takes some of the pairs of the call."""
        places = chosen[plan.order]
        by_node = None if nodal is None else NodalPlaces.of(nodal, places, plan.swapped)
        return Run(plan, places, Answers.of(len(places), self.n_theta), by_node)

    def _plans(self, graphs: cupy.ndarray, wanted: str) -> Iterator[tuple[Plan, cupy.ndarray]]:
        """Plan pairs that need blocks or the grid, then small ones in strips; with their places."""
        itemsize, limits = self.problem.dtype.itemsize, device_limits()
        memory = itemsize, limits["shared_all"]
        oriented, swapped, fits = orient_for_strips(cupy, self.strips, graphs, *memory)
        chosen = cupy.flatnonzero(~fits)
        if len(chosen):
            n_vectors = VECTORS_WITH_GRADIENT if self.eval_gradient else VECTORS
            room = n_vectors, *memory, self.kernels.choice.threads, limits["processors"]
            yield plan_blocks(cupy, self.block_graphs, graphs[:, chosen], *room), chosen
        chosen = cupy.flatnonzero(fits)
        if len(chosen):
            few = oriented[:, chosen], swapped[chosen]
            yield plan_strips(cupy, self.strips, *few, self.slots, itemsize, wanted), chosen
