# SPDX-License-Identifier: BSD-3-Clause
"""Runs of the CUDA solver: waiting that can be interrupted, and less at a time for less memory."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import cupy
import numpy as np
from numpy.typing import NDArray

from sklearn_mgk.solver.problem import NodalTarget, Solution

SETTING = "SKLEARN_MGK_MEMORY_SHARE"
"""Environment variable: share of the free device memory that vectors may take, 0.5 if not set."""

FEWEST = 16
"""Pairs that are not divided any more when memory runs out."""

STOP = 2**62
"""Number of items taken that says that none is left."""

SPIN = 0.002
"""Time for which the end of the kernels is watched without a pause [s]."""

LONGEST_PAUSE = 0.01
"""Pause between two looks at kernels that run for long [s]."""

NOT_READY = 600
"""What CUDA says of an event that has not happened, ``cudaErrorNotReady``."""


def memory_share() -> float:
    """Read the share of the free device memory that vectors may take."""
    text = os.environ.get(SETTING, "0.5")
    try:
        share = float(text)
    except ValueError:
        share = np.nan
    if not 0 < share <= 1:
        raise ValueError(f"{SETTING}={text!r}: give a number above 0 and up to 1, such as 0.5")
    return share


@contextmanager
def interruptible(taken: cupy.ndarray) -> Iterator[None]:
    """Wait in the end for the kernels that were started; end them early if anything is raised.

    A kernel cannot be ended from outside, but takes its next item from a counter: one that says
    that none is left ends all blocks after their present pair, and a pair that all blocks solve
    together after its present iteration.

    Parameters
    ----------
    taken : cupy.ndarray of int64
        The counters.
    """
    try:
        yield
        _wait()
    except BaseException:
        _stop(taken)
        raise


def _wait() -> None:
    """Wait for the current stream so that Python hears of signals in between."""
    event = cupy.cuda.Event(disable_timing=True)
    event.record()
    begin = time.perf_counter()
    while cupy.cuda.runtime.eventQuery(event.ptr) == NOT_READY:
        waited = time.perf_counter() - begin
        if waited > SPIN:
            time.sleep(min(waited / 50, LONGEST_PAUSE))
    event.synchronize()  # raises what went wrong on the device


def _stop(taken: cupy.ndarray) -> None:
    """Tell the kernels that no items are left, and wait until they have ended."""
    none_left = np.full(taken.shape, STOP, taken.dtype)
    beside = cupy.cuda.Stream(non_blocking=True)
    # A copy, which needs no multiprocessor: all may be taken.
    taken.data.copy_from_host_async(none_left.ctypes.data, none_left.nbytes, beside)
    beside.synchronize()
    cupy.cuda.get_current_stream().synchronize()


def in_parts(solve: Callable[..., Solution]) -> Callable[..., Solution]:
    """Solve half of the pairs at a time, and so on, where the memory of the device runs out."""

    def solve_in_parts(pairs: NDArray, nodal: NodalTarget | None = None) -> Solution:
        try:
            return solve(pairs, nodal)
        except cupy.cuda.memory.OutOfMemoryError as error:
            if len(pairs) <= FEWEST:
                raise MemoryError(
                    f"the GPU has too little memory even for {len(pairs)} pairs at a time: free "
                    f"some, set the environment variable {SETTING} below {memory_share():g} if "
                    "other programs use the device, or use backend='cpu'"
                ) from error
        # Outside of the handler, whose traceback keeps the arrays of the attempt alive.
        cupy.get_default_memory_pool().free_all_blocks()
        half = len(pairs) // 2
        cuts = slice(None, half), slice(half, None)
        return _joined([solve_in_parts(pairs[cut], _part_of(nodal, cut)) for cut in cuts])

    return solve_in_parts


def _part_of(nodal: NodalTarget | None, cut: slice) -> NodalTarget | None:
    if nodal is None:
        return None
    return NodalTarget(nodal.matrix, nodal.row[cut], nodal.column[cut])


def _joined(parts: list[Solution]) -> Solution:
    gradients = [part.gradient for part in parts]
    return Solution(
        np.concatenate([part.values for part in parts]),
        None if gradients[0] is None else np.concatenate(gradients),
        np.concatenate([part.outcome for part in parts]),
        np.concatenate([part.iterations for part in parts]),
    )
