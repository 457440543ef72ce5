# SPDX-License-Identifier: BSD-3-Clause
"""Launches of the CUDA solver: what one is, and the pairs in their order; needs no device."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

WARP = 32

RESERVED = 3072
"""Shared memory that a block costs besides its vectors, at most [bytes]."""

MEMORY = ("GLOBAL", "SHARED_P", "SHARED")
"""Where the vectors of a pair may lie, as ``mgk::Memory`` says."""

WANTED = ("VALUES", "SOLUTIONS", "GRADIENTS")
"""What strips may be asked for, as ``mgk::Wanted`` says; each keeps one more vector of all rows."""


@dataclass(frozen=True)
class Launch:
    """Pairs that are solved by one launch.

    Attributes
    ----------
    begin, end : int
        Their places in the list.
    threads : int
        Threads of a block.
    shared_bytes : int
        Shared memory of a block.
    memory : str
        One of `MEMORY`; for strips always ``"SHARED"``, for the grid ``"GLOBAL"``.
    size : int
        Numbers in the workspace for each block, or for the grid.
    together : bool
        Whether all blocks solve one pair after the other.
    warps, slots : int
        For strips, warps and entries in registers that the kernel is compiled for; 0 for blocks of
        one pair.
    wanted : str
        For strips, one of `WANTED`.
    """

    begin: int
    end: int
    threads: int
    shared_bytes: int
    memory: str = "SHARED"
    size: int = 0
    together: bool = False
    warps: int = 0
    slots: int = 0
    wanted: str = ""


@dataclass(frozen=True)
class Plan:
    """Pairs in the order of the launches.

    Attributes
    ----------
    pairs : array of shape (2, n_pairs), int32
        Graphs along the rows, and along the columns.
    order : array of shape (n_pairs,)
        Place of each pair in the list of the call.
    swapped : array of shape (n_pairs,), bool
        Whether rows and columns are exchanged.
    strip_begin : list of array
        For each launch of strips, the pairs at which they begin, and the end.
    launches : list of Launch
        What to launch.
    """

    pairs: Any
    order: Any
    swapped: Any
    strip_begin: list
    launches: list[Launch]


def cuts(xp, kind) -> list[int]:
    """Find the ends of the runs of equal elements; 0 stands in front."""
    if len(kind) == 0:
        return []
    return [0, *(xp.flatnonzero(kind[1:] != kind[:-1]) + 1).tolist(), len(kind)]
