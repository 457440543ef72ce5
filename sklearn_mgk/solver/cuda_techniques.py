# SPDX-License-Identifier: BSD-3-Clause
"""Launches the solver of the paper with any of its techniques switched off, through CuPy."""

from __future__ import annotations

from functools import cache

import cupy
import numpy as np
from numpy.typing import NDArray

from sklearn_mgk.solver.cuda_kernels import OPTIONS
from sklearn_mgk.solver.cuda_memory import (
    Answers,
    Kept,
    address,
    device_limits,
    free_memory,
    on_host,
    structure,
    work_words,
)
from sklearn_mgk.solver.cuda_run import memory_share
from sklearn_mgk.solver.device_launch import WARP
from sklearn_mgk.solver.device_plan import VECTORS, padded
from sklearn_mgk.solver.problem import Problem, Solution
from sklearn_mgk.solver.techniques import TechniqueProblem, Techniques

MATRIX_SHARE = 0.4
"""Share of the free device memory that product matrices may take."""


class TechniqueSolver:
    """Kernel values of pairs of graphs, on the current device of CuPy.

    Parameters
    ----------
    problem : Problem
        What is solved.
    techniques : Techniques
        What is used.
    """

    def __init__(self, problem: Problem, techniques: Techniques):
        self.form = TechniqueProblem.of(problem, techniques)
        self.kept = Kept()
        self.problem_words = structure(self.form.words(self.kept))
        self.tile_words = self.form.tile_words(self.kept)
        self.kernel = _compiled(self.form.source())
        columns = problem.batch.sizes, self.form.cost, self.form.n_entries
        self.size, self.cost, self.n_entries = map(cupy.asarray, columns)

    def __call__(self, pairs: NDArray) -> Solution:
        """Solve a list of pairs, shape (n_pairs, 2); answers come in its order."""
        graphs = cupy.asarray(np.ascontiguousarray(pairs.T).astype(np.int32))
        order = cupy.arange(len(pairs))
        if self.form.techniques.dynamic:
            first, second = self.cost[graphs]
            order = cupy.argsort(-first * second)
        graphs = graphs[:, order]
        answers, found = Answers.of(len(pairs), 0), Answers.of(len(pairs), 0)
        if self.form.tiles is None:
            self._run_matrices(graphs, found)
        else:
            self._run(graphs, [0, 0, 0], 0, len(pairs), found)
        answers.put(order, found)
        return on_host(answers.solution(False))

    def _run_matrices(self, graphs: cupy.ndarray, found: Answers) -> None:
        """Launch for as many pairs at a time as there is memory for product matrices."""
        itemsize = self.form.problem.dtype.itemsize
        first, second = self.n_entries[graphs]
        last = cupy.cumsum(first * second).get()
        room = int(MATRIX_SHARE * free_memory()) // (itemsize + 4)
        base = cupy.asarray(last) - first * second
        values, columns, begin = None, None, 0
        while begin < len(last):
            before = last[begin - 1] if begin else 0
            end = int(np.searchsorted(last, before + room, side="right"))
            if end == begin:
                raise MemoryError(
                    f"a product matrix of {last[begin] - before} entries does not fit: keep "
                    "on_the_fly=True"
                )
            if values is None:
                n = min(room, int(last[-1])) + 1
                values = cupy.empty(n, self.form.problem.dtype)
                columns = cupy.empty(n, np.int32)
            starts = base[begin:end] - before
            self._run(
                graphs, [address(starts), address(values), address(columns)], begin, end, found
            )
            begin = end

    def _run(
        self, graphs: cupy.ndarray, matrices: list[int], begin: int, end: int, found: Answers
    ) -> None:
        """Launch for the pairs from one place of the list to another."""
        n_rows, n_columns = self.size[graphs[:, begin:end]]
        stride = VECTORS * int((n_rows * padded(n_columns)).max())
        threads, limits = self.form.techniques.warps * WARP, device_limits()
        itemsize = self.form.problem.dtype.itemsize
        n_blocks = min(
            limits["processors"] * (limits["threads"] // threads),
            end - begin,
            max(int(memory_share() * free_memory() / (stride * itemsize)), 1),
        )
        workspace = cupy.empty(n_blocks * stride, self.form.problem.dtype)
        taken = cupy.zeros(1, np.int64) if self.form.techniques.dynamic else None
        work = work_words(graphs, begin, end - begin, address(taken), workspace, stride)
        words = [*self.tile_words, *matrices], work, [*found.words(begin), 0, 0, 0, 0]
        self.kernel((n_blocks,), (threads,), (self.problem_words, *map(structure, words)))


@cache
def _compiled(text: str) -> cupy.RawKernel:
    """Compile a kernel; CuPy keeps the binary on disk."""
    return cupy.RawKernel(text, "solve", options=OPTIONS, backend="nvrtc")
