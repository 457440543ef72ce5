# SPDX-License-Identifier: BSD-3-Clause
"""The GPU as truss and propagation reach it: CuPy if installed, memory that runs out explained."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from types import ModuleType


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


@contextmanager
def explained_memory(what: str, remedy: str) -> Iterator[None]:
    """Say for what the device has too little memory, and what to do."""
    try:
        yield
    except import_cupy().cuda.memory.OutOfMemoryError as error:
        raise MemoryError(f"the GPU has too little memory for {what}: {remedy}") from error
