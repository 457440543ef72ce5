# SPDX-License-Identifier: BSD-3-Clause
"""Runs of the CUDA solver: waiting that can be interrupted, and memory that runs out explained."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from contextlib import contextmanager

import cupy
import numpy as np

from sklearn_mgk.device import ExplainedMemory

SETTING = "SKLEARN_MGK_MEMORY_SHARE"
"""Environment variable: share of the free device memory that vectors may take, 0.5 if not set."""

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
def explained(what: str) -> Iterator[None]:
    """Say for what memory does not suffice, and give all that is not used back to the device."""
    remedy = (
        f"free some, set the environment variable {SETTING} below {memory_share():g} if other "
        "programs use the device, give fewer graphs, or use backend='cpu'"
    )
    try:
        with ExplainedMemory(what, remedy):
            yield
    except MemoryError:
        cupy.get_default_memory_pool().free_all_blocks()
        raise


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
