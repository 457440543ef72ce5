# SPDX-License-Identifier: BSD-3-Clause
"""Kernels of the CUDA solver: which one a launch needs, and compiling them side by side."""

from __future__ import annotations

from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import cupy
import numpy as np

from sklearn_mgk.solver.device_plan import WARP, Launch
from sklearn_mgk.solver.device_source import (
    BlockKernel,
    GridKernel,
    Kernel,
    KernelForm,
    StripKernel,
    solver_source,
)

THREADS = {4: 1024, 8: 768}
"""Threads in blocks of one pair that a multiprocessor is to hold, by entries in registers: more
would make these spill."""

THREADS_WITH_GRADIENT = 768
"""The same where derivatives are computed."""

WARPS_OF_STRIPS = {4: 32, 8: 24, 16: 16}
"""Warps in blocks of strips that a multiprocessor is to hold, by entries in registers."""

WARPS_WITH_GRADIENT = {4: 20, 8: 16, 16: 16}
"""The same where derivatives are computed."""

OPTIONS = ("--std=c++17", "--use_fast_math")

MOST_COMPILERS = 8
"""Kernels that are compiled at the same time."""

_compiled: dict[tuple, cupy.RawKernel] = {}


@dataclass(frozen=True)
class Kernels:
    """Kernels for one pair of base kernels.

    Attributes
    ----------
    node, edge : KernelForm
        The base kernels.
    dtype : numpy.dtype
        Type of the solve.
    slots : int
        Entries of a node that a lane of a block keeps in registers.
    gradient : bool
        Whether derivatives are computed.
    """

    node: KernelForm
    edge: KernelForm
    dtype: np.dtype
    slots: int
    gradient: bool

    @property
    def threads(self) -> int:
        """Threads in blocks of one pair that a multiprocessor is to hold."""
        return THREADS_WITH_GRADIENT if self.gradient else THREADS[self.slots]

    def compile(self, launches: Iterable[Launch]) -> None:
        """Compile what launches need and is not there yet; CuPy keeps the binaries on disk."""
        device = cupy.cuda.Device().id
        missing = {(device, self, self._of(launch)) for launch in launches} - _compiled.keys()
        if missing:
            with ThreadPoolExecutor(min(len(missing), MOST_COMPILERS)) as pool:
                _compiled.update(zip(missing, pool.map(_compile, missing), strict=True))

    def __getitem__(self, launch: Launch) -> cupy.RawKernel:
        """Kernel for a launch, compiled before."""
        kernel = _compiled[cupy.cuda.Device().id, self, self._of(launch)]
        # Never lowered: another thread may be about to launch it.
        if launch.shared_bytes > kernel.max_dynamic_shared_size_bytes:
            kernel.max_dynamic_shared_size_bytes = launch.shared_bytes
        return kernel

    def _of(self, launch: Launch) -> Kernel:
        if launch.together:
            return GridKernel(launch.threads, 1, self.slots, self.gradient)
        if not launch.warps:
            # The same registers for blocks of all sizes, so that there is one kernel to compile.
            return BlockKernel(self.threads, 1, self.slots, launch.memory, self.gradient)
        warps = WARPS_WITH_GRADIENT if launch.wanted == "GRADIENTS" else WARPS_OF_STRIPS
        threads = warps[launch.slots] * WARP // (self.dtype.itemsize // 4)
        blocks = max(threads // launch.threads, 1)
        return StripKernel(launch.threads, blocks, launch.warps, launch.slots, launch.wanted)


def _compile(key: tuple[int, Kernels, Kernel]) -> cupy.RawKernel:
    device, kernels, kernel = key
    text = solver_source(kernels.node, kernels.edge, kernels.dtype, kernel)
    with cupy.cuda.Device(device):
        compiled = cupy.RawKernel(text, "solve", options=OPTIONS, backend="nvrtc")
        compiled.compile()
    return compiled
