# SPDX-License-Identifier: BSD-3-Clause
"""The GPU as truss and propagation reach it: CuPy if installed, memory that runs out explained."""

from __future__ import annotations

from contextlib import AbstractContextManager
from types import ModuleType
from typing import Any


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


def explained_memory(what: str, remedy: str) -> AbstractContextManager[None]:
    """Say for what the device has too little memory, and what to do."""
    return _ExplainedMemory(what, remedy)


class _ExplainedMemory(AbstractContextManager):
    """A class, since a generator takes as long to enter and leave as a small array to make."""

    def __init__(self, what: str, remedy: str):
        self._what, self._remedy = what, remedy

    def __exit__(self, kind: Any, error: Any, _: Any) -> None:
        if kind is not None and issubclass(kind, import_cupy().cuda.memory.OutOfMemoryError):
            text = f"the GPU has too little memory for {self._what}: {self._remedy}"
            raise MemoryError(text) from error
