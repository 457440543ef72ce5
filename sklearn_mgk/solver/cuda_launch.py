# SPDX-License-Identifier: BSD-3-Clause
"""Launches of the CUDA solver: plans become kernels on several streams."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import cupy
import numpy as np

from sklearn_mgk.solver.cuda_kernels import Kernels
from sklearn_mgk.solver.cuda_memory import (
    Answers,
    NodalPlaces,
    address,
    device_limits,
    free_memory,
    structure,
    work_words,
)
from sklearn_mgk.solver.cuda_run import SETTING, memory_share
from sklearn_mgk.solver.device_kernels import Choice
from sklearn_mgk.solver.device_launch import RESERVED, Launch, Plan
from sklearn_mgk.solver.device_strips import strips_a_block

N_STREAMS = 4
"""Streams that launches take in turn, so that one fills the processors that another has left."""


@dataclass(frozen=True)
class Run:
    """A plan, and what its launches write.

    Attributes
    ----------
    plan : Plan
        What to launch.
    places : cupy.ndarray of shape (n_pairs,)
        Place among the pairs of the call of each pair, in the order of the plan.
    found : Answers
        Answers in the order of the plan.
    nodal : NodalPlaces or None
        Where node-by-node values go, if they are asked for.
    """

    plan: Plan
    places: cupy.ndarray
    found: Answers
    nodal: NodalPlaces | None


def start(
    runs: list[Run], kernels: Kernels, problem: np.void, strips: list[int], taken: cupy.ndarray
) -> None:
    """Start the kernels of all runs; what follows on the current stream waits for them.

    Parameters
    ----------
    runs : list of Run
        What to run.
    kernels : Kernels
        Compiled kernels.
    problem : numpy.void
        ``mgk::Problem``.
    strips : list of int
        Fields of ``mgk::Strips`` that do not depend on the launch.
    taken : cupy.ndarray of shape (n_launches,), int64
        Counters of items.
    """
    launches = [(run, k) for run in runs for k in range(len(run.plan.launches))]
    held = []  # until the current stream waits for all that write there
    with _beside() as streams:
        for number, (run, k) in enumerate(launches):
            launch = run.plan.launches[k]
            begins = run.plan.strip_begin[k] if launch.warps else None
            n_items = len(begins) - 1 if launch.warps else launch.end - launch.begin
            n_blocks, workspace = _resident(launch, n_items, kernels.choice)
            sums = cupy.zeros(2 * n_blocks + 3) if launch.together else None
            held.append((workspace, sums))
            begin = 0 if launch.warps else launch.begin
            counter = address(taken, number)
            work = work_words(run.plan.pairs, begin, n_items, counter, workspace, launch.size, sums)
            own_strips = [
                *strips,
                address(begins),
                launch.shared_bytes // strips_a_block(launch.warps),
            ]
            arguments = problem, *map(structure, (own_strips, work, _results(run, begin)))
            with streams[number % len(streams)]:
                # Blocks that wait for each other must run at once: a cooperative launch makes sure.
                kernels[launch].kernel(
                    (n_blocks,),
                    (launch.threads,),
                    arguments,
                    shared_mem=launch.shared_bytes,
                    enable_cooperative_groups=launch.together,
                )


def _results(run: Run, begin: int) -> list[int]:
    """Fields of ``mgk::Results``."""
    by_node = [0] * 4 if run.nodal is None else run.nodal.words(begin)
    return [*run.found.words(begin), *by_node]


@contextmanager
def _beside() -> Iterator[list[cupy.cuda.Stream]]:
    """Streams that go on from the current one, and that it waits for in the end."""
    current = cupy.cuda.get_current_stream()
    streams = [cupy.cuda.Stream(non_blocking=True) for _ in range(N_STREAMS)]
    ready = current.record()
    for stream in streams:
        stream.wait_event(ready)
    try:
        yield streams
    finally:
        for stream in streams:
            current.wait_event(stream.record())


def _resident(launch: Launch, n_items: int, choice: Choice) -> tuple[int, cupy.ndarray | None]:
    """Blocks that run at a time, and the workspace for their vectors."""
    limits, dtype = device_limits(), choice.dtype
    held = limits["threads"] if launch.warps else choice.threads[launch.memory]
    resident = max(min(held, limits["threads"]) // launch.threads, 1)
    fit = limits["shared_all"] // (launch.shared_bytes + RESERVED)
    a_block = strips_a_block(launch.warps)
    n_blocks = min(limits["processors"] * min(resident, fit), -(-n_items // a_block))
    if launch.size == 0:
        return n_blocks, None
    free, share = free_memory(), memory_share()
    room = int(share * free / (launch.size * dtype.itemsize))
    if room < 1:
        raise MemoryError(
            f"the largest pair needs {launch.size * dtype.itemsize / 1e9:.1f} GB of device memory; "
            f"{free / 1e9:.1f} GB are free, of which a share of {share:g} may be used: free "
            f"some, raise the environment variable {SETTING}, or use backend='cpu'"
        )
    if launch.together:
        return limits["processors"], cupy.empty(launch.size, dtype)
    n_blocks = min(n_blocks, room)
    return n_blocks, cupy.empty(n_blocks * launch.size, dtype)
