# SPDX-License-Identifier: BSD-3-Clause
"""The GPU as all parts reach it: CuPy if installed, memory that runs out, copies to the host."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager
from types import ModuleType
from typing import Any

import numpy as np
from numpy.typing import NDArray

PIECE = 1 << 23
"""Bytes of a piece of an array that is copied to the host."""

PIECES = 4
"""Pieces from which an array is copied by several threads."""

COPIERS = 8
"""Threads that copy pieces: one alone is kept back by the first touch of new memory."""


def import_cupy() -> ModuleType:
    """Import CuPy, or say what to install."""
    try:
        import cupy
    except ImportError as error:
        raise ImportError(
            "backend 'cuda' needs CuPy: pip install 'sklearn-mgk[cuda13]', or "
            "'sklearn-mgk[cuda12]' for a driver of CUDA 12"
        ) from error
    return cupy


class ExplainedMemory(AbstractContextManager):
    """Says for what the device has too little memory, and what to do.

    A class, since a generator takes as long to enter and leave as a small array to make.
    """

    def __init__(self, what: str, remedy: str):
        self._what, self._remedy = what, remedy

    def __exit__(self, kind: Any, error: Any, _: Any) -> None:
        if kind is not None and issubclass(kind, import_cupy().cuda.memory.OutOfMemoryError):
            text = f"the GPU has too little memory for {self._what}: {self._remedy}"
            raise MemoryError(text) from error


def to_host(array: Any) -> NDArray:
    """Bring an array of CuPy to the host; one of NumPy stays as it is."""
    if isinstance(array, np.ndarray):
        return array
    return array.get() if array.nbytes < PIECES * PIECE else _in_pieces(array)


def _in_pieces(array: Any) -> NDArray:
    """Copy a large array through pinned memory, by several threads."""
    cupy = import_cupy()
    found = np.empty(array.shape, array.dtype)
    target, source = found.reshape(-1).view(np.uint8), cupy.ascontiguousarray(array).data
    device, written = cupy.cuda.Device(), cupy.cuda.get_current_stream().record()

    def copy(begin: int) -> None:
        size = min(PIECE, len(target) - begin)
        pinned = cupy.cuda.alloc_pinned_memory(size)
        with device, cupy.cuda.Stream(non_blocking=True) as stream:
            stream.wait_event(written)
            (source + begin).copy_to_host_async(pinned.ptr, size, stream)
            stream.synchronize()
        target[begin : begin + size] = np.frombuffer(pinned, np.uint8, size)

    with ThreadPoolExecutor(COPIERS) as pool:
        list(pool.map(copy, range(0, len(target), PIECE)))  # raises what a thread raised
    return found
