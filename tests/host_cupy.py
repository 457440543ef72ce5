# SPDX-License-Identifier: BSD-3-Clause
"""What the CUDA code uses of CuPy, on the host: arrays of NumPy, kernels built by g++.

The text of a kernel is the one that a device would compile; `device.hpp` runs it. A module of this
name in place of ``cupy`` runs the solver, or sparse products, where there is no GPU.
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
         *static_cast<const mgk::Results*>(arguments[3]));
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

    def get(self, out=None):
        if out is None:
            return np.array(self)
        out[...] = self
        return out


def _on_device(function):
    def call(*args, **options):
        found = function(*args, **options)
        return found.view(ndarray) if isinstance(found, np.ndarray) else found

    return call


asarray, zeros, empty = (
    _on_device(f) for f in (lambda x: np.array(x, order="C"), np.zeros, np.empty)
)


def asnumpy(array):
    return np.array(array)


def __getattr__(name):
    return _on_device(getattr(np, name))


# Runs a kernel with arguments as the driver takes them: each at an address.
_LAUNCH = """
template <typename... Arguments, size_t... K>
void launch_at(void (*kernel)(Arguments...), const unsigned* sizes, void** at,
               std::index_sequence<K...>) {
  launch(kernel, false, {sizes[0], sizes[1]}, sizes[2], *static_cast<Arguments*>(at[K])...);
}
template <typename... Arguments>
void launch_at(void (*kernel)(Arguments...), const unsigned* sizes, void** at) {
  launch_at(kernel, sizes, at, std::index_sequence_for<Arguments...>());
}
"""


@cache
def _build(text, more=()):
    folder = Path(tempfile.mkdtemp())
    (folder / "kernel.cpp").write_text('#include "device.hpp"\n' + text)
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
        *more,
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
        _build(self.text + _RUN)

    def kernel(self, grid, block, arguments, shared_mem, enable_cooperative_groups):
        assert shared_mem <= PROPERTIES["sharedMemPerBlockOptin"]
        held = [np.frombuffer(words.tobytes(), np.uint64) for words in arguments]
        pointers = (ctypes.c_void_p * len(held))(*(words.ctypes.data for words in held))
        _build(self.text + _RUN)(int(enable_cooperative_groups), *grid, *block, pointers)


_FUNCTIONS = []  # by their handles


class RawModule:
    """Kernels of the host that are templates."""

    def __init__(self, code, options, name_expressions, backend):
        self.text = code + _LAUNCH
        self.options = tuple(option for option in options if option.startswith("-D"))

    def get_function(self, name):
        call = f"launch_at({name}, sizes, at);"
        run = f'extern "C" void run(const unsigned* sizes, void** at) {{ {call} }}'
        _FUNCTIONS.append(_build(self.text + run, self.options))
        return SimpleNamespace(kernel=SimpleNamespace(ptr=len(_FUNCTIONS) - 1))


def launch_kernel(function, *rest):
    """Launch as the driver does."""
    (x, y, z, threads, *ones, shared, _, places, extra) = rest
    assert (z, *ones, shared, extra) == (1, 1, 1, 0, 0)
    sizes = (ctypes.c_uint * 3)(x, y, threads)
    _FUNCTIONS[function](sizes, ctypes.c_void_p(places))


class OutOfMemoryError(MemoryError):
    """As of CuPy."""


class CompileException(Exception):
    """As of CuPy."""


class _Stream(nullcontext):
    ptr = 77

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

    def synchronize(self):
        pass


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
    driver=SimpleNamespace(launchKernel=launch_kernel),
    compiler=SimpleNamespace(CompileException=CompileException),
    memory=SimpleNamespace(OutOfMemoryError=OutOfMemoryError),
    runtime=SimpleNamespace(
        getDevice=lambda: 0,
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
