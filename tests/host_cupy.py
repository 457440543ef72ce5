# SPDX-License-Identifier: BSD-3-Clause
"""What the CUDA solver uses of CuPy, on the host: arrays of NumPy, kernels built by g++.

The text of a kernel is the one that a device would compile; `device.hpp` runs it. A module of this
name in place of ``cupy`` runs the solver where there is no GPU.
"""

import ctypes
import subprocess
import sys
import tempfile
from contextlib import nullcontext
from functools import cache
from pathlib import Path
from types import SimpleNamespace

import numpy as np

HERE = Path(__file__).parent
PROCESSORS = 3
"""Blocks that run at once; each takes a thread of the host where they wait for each other."""

_RUN = """
namespace mgk {
thread_local double dynamic[1 << 15];
}
extern "C" void run(int together, unsigned blocks, unsigned threads, const void** arguments) {
  launch(solve, together != 0, {blocks, 1}, threads,
         *static_cast<const mgk::Problem<Real>*>(arguments[0]),
         *static_cast<const mgk::Strips*>(arguments[1]),
         *static_cast<const mgk::Work*>(arguments[2]),
         *static_cast<const mgk::Results<Real>*>(arguments[3]));
}
"""


class ndarray(np.ndarray):
    """Array in the memory of the device."""

    @property
    def data(self):
        pointer = self.ctypes.data
        return SimpleNamespace(
            ptr=pointer,
            copy_from_host_async=lambda source, n, _: ctypes.memmove(pointer, source, n),
        )

    def astype(self, dtype):
        return super().astype(dtype, order="C")  # the rows of CuPy's arrays stand together

    def get(self):
        return np.array(self)


def _on_device(function):
    def call(*args, **options):
        found = function(*args, **options)
        return found.view(ndarray) if isinstance(found, np.ndarray) else found

    return call


asarray, zeros, empty = (
    _on_device(f) for f in (lambda x: np.array(x, order="C"), np.zeros, np.empty)
)


def __getattr__(name):
    return _on_device(getattr(np, name))


@cache
def _build(text):
    folder = Path(tempfile.mkdtemp())
    (folder / "kernel.cpp").write_text('#include "device.hpp"\n' + text + _RUN)
    options = [
        "-std=c++20",
        "-O1",
        "-U_FORTIFY_SOURCE",
        "-fno-extern-tls-init",
        "-w",
        "-shared",
        "-fPIC",
        "-pthread",
        f"-I{HERE}",
    ]
    command = ["g++", *options, "-o", str(folder / "kernel.so"), str(folder / "kernel.cpp")]
    subprocess.run(command, check=True)
    return ctypes.CDLL(str(folder / "kernel.so")).run


class RawKernel:
    """Kernel of the host."""

    max_dynamic_shared_size_bytes = 0

    def __init__(self, text, name, options, backend):
        self.text = text

    def compile(self):
        _build(self.text)

    def kernel(self, grid, block, arguments, shared_mem, enable_cooperative_groups):
        held = [np.frombuffer(words.tobytes(), np.uint64) for words in arguments]
        pointers = (ctypes.c_void_p * len(held))(*(words.ctypes.data for words in held))
        _build(self.text)(int(enable_cooperative_groups), *grid, *block, pointers)


class OutOfMemoryError(MemoryError):
    """As of CuPy."""


class _Stream(nullcontext):
    def __init__(self, non_blocking=False):
        super().__init__()

    def synchronize(self):
        pass

    def record(self):
        pass

    def wait_event(self, event):
        pass


class _Device(nullcontext):
    id = 0


class _Event:
    ptr = 0

    def __init__(self, disable_timing):
        pass

    def record(self):
        pass

    def synchronize(self):
        pass


PROPERTIES = {
    "multiProcessorCount": PROCESSORS,
    "maxThreadsPerMultiProcessor": 256,
    "sharedMemPerBlockOptin": 1 << 18,
    "sharedMemPerMultiprocessor": 1 << 18,
}
cuda = SimpleNamespace(
    Device=_Device,
    Event=_Event,
    Stream=_Stream,
    get_current_stream=_Stream,
    memory=SimpleNamespace(OutOfMemoryError=OutOfMemoryError),
    runtime=SimpleNamespace(
        getDeviceProperties=lambda device: PROPERTIES,
        memGetInfo=lambda: (1 << 30, 1 << 30),
        eventQuery=lambda pointer: 0,
    ),
)


def get_default_memory_pool():
    return SimpleNamespace(free_bytes=lambda: 0, free_all_blocks=lambda: None)


def as_cupy(monkeypatch):
    """Import the CUDA solver with this module in place of CuPy; returns it."""
    monkeypatch.setitem(sys.modules, "cupy", sys.modules[__name__])
    for name in ("", "_graphs", "_kernels", "_launch", "_memory", "_run"):
        monkeypatch.delitem(sys.modules, f"sklearn_mgk.solver.cuda{name}", raising=False)
    from importlib import import_module

    return import_module("sklearn_mgk.solver.cuda")
