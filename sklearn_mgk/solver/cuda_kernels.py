# SPDX-License-Identifier: BSD-3-Clause
"""Kernels of the CUDA solver, compiled side by side and kept."""

from __future__ import annotations

from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import cupy
import numpy as np

from sklearn_mgk.solver.device_kernels import Choice
from sklearn_mgk.solver.device_launch import Launch
from sklearn_mgk.solver.device_source import Kernel, KernelForm, solver_source

OPTIONS = ("--std=c++17", "--use_fast_math")

MOST_COMPILERS = 8
"""Kernels that are compiled at the same time."""

_Key = tuple[int, KernelForm, KernelForm, np.dtype, Kernel]
"""Device, and all that the text of a kernel depends on."""

_compiled: dict[_Key, cupy.RawKernel] = {}


@dataclass(frozen=True)
class Kernels:
    """Kernels for one pair of base kernels.

    Attributes
    ----------
    node, edge : KernelForm
        The base kernels.
    choice : Choice
        Which kernel a launch needs.
    """

    node: KernelForm
    edge: KernelForm
    choice: Choice

    def compile(self, launches: Iterable[Launch]) -> None:
        """Compile what launches need and is not there yet; CuPy keeps the binaries on disk."""
        missing = {self._key(launch) for launch in launches} - _compiled.keys()
        if missing:
            with ThreadPoolExecutor(min(len(missing), MOST_COMPILERS)) as pool:
                _compiled.update(zip(missing, pool.map(_compile, missing), strict=True))

    def __getitem__(self, launch: Launch) -> cupy.RawKernel:
        """Kernel for a launch, compiled before."""
        kernel = _compiled[self._key(launch)]
        # Never lowered: another thread may be about to launch it.
        if launch.shared_bytes > kernel.max_dynamic_shared_size_bytes:
            kernel.max_dynamic_shared_size_bytes = launch.shared_bytes
        return kernel

    def _key(self, launch: Launch) -> _Key:
        device, dtype = cupy.cuda.Device().id, self.choice.dtype
        return device, self.node, self.edge, dtype, self.choice.kernel(launch)


def _compile(key: _Key) -> cupy.RawKernel:
    device, *text = key
    with cupy.cuda.Device(device):
        compiled = cupy.RawKernel(solver_source(*text), "solve", options=OPTIONS, backend="nvrtc")
        compiled.compile()
    return compiled
