# SPDX-License-Identifier: BSD-3-Clause
"""Launches of kernels by the driver, with arguments that are kept."""

from __future__ import annotations

from array import array
from importlib.resources import files
from typing import Any

from sklearn_mgk.device import import_cupy

WORDS = {"float32": "float", "float64": "double", "int32": "int", "int64": "long long"}
"""Names of types in CUDA C++."""


def source(*names: str) -> str:
    """Return the CUDA C++ text of files in cuda/."""
    return "".join((files("sklearn_mgk.cuda") / f"{name}.cuh").read_text() for name in names)


def compiled(text: str, name: str, options: tuple[str, ...] = ()) -> tuple[int, Any]:
    """Compile a kernel for the current device; returns its handle, and what keeps it loaded."""
    module = import_cupy().RawModule(
        code=text, options=("--std=c++17", *options), name_expressions=[name], backend="nvrtc"
    )
    kernel = module.get_function(name)
    return kernel.kernel.ptr, kernel


class Launch:
    """A kernel and its arguments as the driver takes them.

    CuPy looks at all arguments in every call, which takes longer than a small product. It also
    readies the thread for the driver; here the caller has to have used the runtime in the thread.

    Parameters
    ----------
    driver : callable
        Launches a kernel, as ``cuLaunchKernel`` does.
    function : int
        Handle of the kernel.
    n_threads : int
        Threads of a block.
    arguments : sequence of int
        Arguments of the kernel, each of 8 bytes: addresses and numbers.
    held : object, default=None
        What has to live as long as the addresses.

    Attributes
    ----------
    numbers : array of 64 bits
        The arguments; they may be changed between calls.
    """

    def __init__(
        self, driver: Any, function: int, n_threads: int, arguments: Any, held: Any = None
    ):
        self.numbers = array("Q", arguments)
        first, n = self.numbers.buffer_info()
        self._places = array("Q", range(first, first + 8 * n, 8))
        self._held = held
        self._driver, self._function = driver, function
        self._fixed = 1, n_threads, 1, 1, 0
        self._address, _ = self._places.buffer_info()

    def __call__(self, n_blocks: int, n_tiles: int, stream: int) -> None:
        """Launch a grid on a stream."""
        self._driver(self._function, n_blocks, n_tiles, *self._fixed, stream, self._address, 0)
