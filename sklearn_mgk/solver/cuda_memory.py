# SPDX-License-Identifier: BSD-3-Clause
"""Memory of the device: what it holds, what launches read there and write."""

from __future__ import annotations

from dataclasses import dataclass, fields
from functools import cache

import cupy
import numpy as np
from numpy.typing import NDArray

from sklearn_mgk.solver.problem import NodalTarget, Solution

ALIGNMENT = 256
"""Bytes that an array of the device starts at a multiple of."""


@cache
def _limits_of(device: int) -> dict[str, int]:
    properties = cupy.cuda.runtime.getDeviceProperties(device)
    return {
        "processors": properties["multiProcessorCount"],
        "threads": properties["maxThreadsPerMultiProcessor"],
        "shared": properties["sharedMemPerBlockOptin"],
        "shared_all": properties["sharedMemPerMultiprocessor"],
    }


def device_limits() -> dict[str, int]:
    """Processors of the current device, and threads and shared memory of each [bytes]."""
    return _limits_of(cupy.cuda.Device().id)


def free_memory() -> int:
    """Bytes that the device or CuPy's pool can still give."""
    return cupy.cuda.runtime.memGetInfo()[0] + cupy.get_default_memory_pool().free_bytes()


def upload(array: NDArray) -> cupy.ndarray:
    """Copy an array to the device; an empty one gets an element, so that it has an address."""
    array = array if array.size else np.zeros(1, array.dtype)
    # Records travel as bytes: CuPy has no structured types.
    return cupy.asarray(array.view(np.uint8) if array.dtype.names else array)


class Kept(list):
    """Arrays on the device, there for as long as this list is."""

    def __call__(self, *arrays: NDArray) -> list[int]:
        """Copy arrays to the device, all in one transfer; returns their addresses."""
        rows = [np.ascontiguousarray(array).reshape(-1).view(np.uint8) for array in arrays]
        steps = [-(-max(len(row), 1) // ALIGNMENT) * ALIGNMENT for row in rows]
        begins = np.cumsum(steps) - steps
        packed = np.zeros(sum(steps), np.uint8)
        for begin, row in zip(begins, rows, strict=True):
            packed[begin : begin + len(row)] = row
        self.append(cupy.asarray(packed))
        return [address(self[-1]) + int(begin) for begin in begins]


@cache
def _words(n: int) -> np.dtype:
    return np.dtype([(f"f{k}", np.uint64) for k in range(n)])


def structure(words: list[int]) -> np.void:
    """Lay words of eight bytes out as one structure, which a kernel takes by value."""
    return np.array(words, np.uint64).view(_words(len(words)))[0]


def address(array: cupy.ndarray | None, row: int = 0) -> int:
    """Address of a row of an array; 0 for none."""
    return 0 if array is None else array.data.ptr + row * array.strides[0]


def work_words(
    pairs: cupy.ndarray,
    begin: int,
    n_items: int,
    taken: int,
    workspace: cupy.ndarray | None,
    stride: int,
    sums: cupy.ndarray | None = None,
) -> list[int]:
    """Fields of ``mgk::Work``, in its order, for pairs from some place of a list on."""
    sides = (address(side, begin) for side in pairs)
    return [*sides, n_items, taken, address(workspace), stride, address(sums)]


@dataclass(frozen=True)
class Answers:
    """What the launches write: the first fields of ``mgk::Results``, in its order."""

    values: cupy.ndarray
    gradient: cupy.ndarray
    outcome: cupy.ndarray
    iterations: cupy.ndarray

    @classmethod
    def of(cls, n: int, n_theta: int) -> Answers:
        """Allocate answers for n pairs."""
        small = (cupy.empty(n, np.int32) for _ in range(2))
        return cls(cupy.empty(n), cupy.zeros((n, n_theta)), *small)

    def words(self, begin: int) -> list[int]:
        """Fields as words of eight bytes, for a launch that begins at some pair."""
        return [address(getattr(self, field.name), begin) for field in fields(self)]

    def put(self, places: cupy.ndarray, found: Answers) -> None:
        """Take over answers for the pairs at some places."""
        for field in fields(self):
            getattr(self, field.name)[places] = getattr(found, field.name)

    def solution(self, eval_gradient: bool) -> Solution:
        """Answers as they are, on the device."""
        gradient = self.gradient if eval_gradient else None
        return Solution(self.values, gradient, self.outcome, self.iterations)


def on_host(solution: Solution) -> Solution:
    """Bring a solution to the host."""
    return Solution(
        solution.values.get(),
        None if solution.gradient is None else solution.gradient.get(),
        solution.outcome.get().astype(np.uint8),
        solution.iterations.get(),
    )


@dataclass(frozen=True)
class NodalPlaces:
    """Where node-by-node values of pairs go: the last fields of ``mgk::Results``.

    Attributes
    ----------
    matrix : cupy.ndarray
        All of them.
    places : cupy.ndarray of shape (3, n_pairs)
        For each pair the first number, and the steps from one row and from one column to the next.
    """

    matrix: cupy.ndarray
    places: cupy.ndarray

    @classmethod
    def of(cls, nodal: NodalTarget, order: cupy.ndarray, swapped: cupy.ndarray) -> NodalPlaces:
        """Find the places of pairs, which a plan takes in some order and partly exchanged."""
        width = nodal.matrix.shape[1]
        base = nodal.row[order] * width + nodal.column[order]
        steps = cupy.where(swapped, 1, width), cupy.where(swapped, width, 1)
        return cls(nodal.matrix, cupy.stack([base, *steps]))

    def words(self, begin: int) -> list[int]:
        """Fields as words of eight bytes, for a launch that begins at some pair."""
        return [address(self.matrix), *(address(row, begin) for row in self.places)]
