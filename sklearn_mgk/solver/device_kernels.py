# SPDX-License-Identifier: BSD-3-Clause
"""Which kernel of the CUDA solver a launch needs, and for how many threads; needs no device."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from sklearn_mgk.solver.device_launch import MEMORY, WARP, Launch
from sklearn_mgk.solver.device_source import BlockKernel, GridKernel, Kernel, StripKernel

THREADS = {
    (4, True, False): (768, 1024, 1024),
    (4, False, False): (768, 1024, 1024),
    (8, True, False): (640, 640, 768),
    (8, False, False): (640, 768, 768),
    (4, True, True): (768, 768, 768),
    (4, False, True): (768, 768, 768),
    (8, True, True): (640, 640, 640),
    (8, False, True): (640, 768, 768),
}
"""Threads in blocks of one pair that a multiprocessor is to hold, for each of `MEMORY`; by entries
in registers, whether the edge kernel is read from a table, and whether derivatives are computed.
More would make registers spill."""

THREADS_OF_DOUBLES = {
    (4, True, False): 512,
    (8, True, False): 512,
    (4, True, True): 512,
    (8, True, True): 512,
    (4, False, False): 512,
    (8, False, False): 384,
    (4, False, True): 384,
    (8, False, True): 384,
}
"""The same in float64, whatever the memory."""

WARPS_OF_STRIPS = {
    "VALUES": {4: 32, 8: 24, 16: 16},
    "SOLUTIONS": {4: 28, 8: 16, 16: 16},
    "GRADIENTS": {4: 24, 8: 16, 16: 16},
}
"""Warps in blocks of strips that a multiprocessor is to hold, by what is asked for and entries in
registers; half as many in float64."""

STRIP_SLOTS = {True: (4, 8), False: (8, 16)}
"""Entries in registers that kernels of strips are compiled for, with tables and with code."""

DENSE = 4
"""Entries of a node, in the mean, from which lanes of a block keep 8 of them rather than 4."""


@dataclass(frozen=True)
class Choice:
    """What the kernels of a call have in common.

    Attributes
    ----------
    dtype : numpy.dtype
        Type of the solve.
    slots : int
        Entries of a node that a lane of a block keeps in registers.
    is_table, gradient : bool
        Whether the edge kernel is read from a table, and whether derivatives are computed.
    """

    dtype: np.dtype
    slots: int
    is_table: bool
    gradient: bool

    @classmethod
    def of(
        cls, dtype: np.dtype, n_entries: int, n_nodes: int, is_table: bool, gradient: bool
    ) -> Choice:
        """Choose by the entries of all adjacency matrices, and their nodes."""
        return cls(dtype, 8 if n_entries >= DENSE * n_nodes else 4, is_table, gradient)

    @property
    def threads(self) -> dict[str, int]:
        """Threads in blocks of one pair that a multiprocessor is to hold, by `MEMORY`."""
        key = self.slots, self.is_table, self.gradient
        if self.dtype.itemsize == 8:
            return dict.fromkeys(MEMORY, THREADS_OF_DOUBLES[key])
        return dict(zip(MEMORY, THREADS[key], strict=True))

    def kernel(self, launch: Launch) -> Kernel:
        """Say which kernel a launch needs."""
        if launch.together:
            return GridKernel(launch.threads, 1, self.gradient)
        if not launch.warps:
            threads = self.threads[launch.memory]
            # The same registers for blocks of all sizes, so that there is one kernel to compile.
            return BlockKernel(threads, 1, self.slots, launch.memory, self.gradient)
        warps = WARPS_OF_STRIPS[launch.wanted][launch.slots]
        threads = warps * WARP // (self.dtype.itemsize // 4)
        blocks = max(threads // launch.threads, 1)
        return StripKernel(launch.threads, blocks, launch.warps, launch.slots, launch.wanted)
