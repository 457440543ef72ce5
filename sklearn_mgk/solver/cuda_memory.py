# SPDX-License-Identifier: BSD-3-Clause
"""Memory of the device: what it holds, what launches read there and write."""

from __future__ import annotations

from dataclasses import dataclass, fields
from functools import cache

import cupy
import numpy as np
from numpy.typing import NDArray

from sklearn_mgk.solver.problem import NodalTarget, Problem, Solution


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

    def __call__(self, array: NDArray) -> int:
        """Copy an array to the device; returns its address."""
        self.append(upload(array))
        return address(self[-1])


def structure(words: list[int]) -> np.void:
    """Lay words of eight bytes out as one structure, which a kernel takes by value."""
    layout = np.dtype([(f"f{k}", np.uint64) for k in range(len(words))])
    return np.array([tuple(int(word) for word in words)], layout)[0]


def address(array: cupy.ndarray | None, row: int = 0) -> int:
    """Address of a row of an array; 0 for none."""
    return 0 if array is None else array.data.ptr + row * array.strides[0]


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
class Blocks:
    """Node-by-node values of pairs, one block behind the other.

    Attributes
    ----------
    shape : ndarray of shape (2, n_pairs)
        Rows and columns of each block.
    base : ndarray of shape (n_pairs,)
        Place of its first number.
    values : cupy.ndarray
        All blocks.
    places : cupy.ndarray of shape (3, n_pairs)
        ``base``, and the steps from one row and from one column to the next.
    """

    shape: NDArray
    base: NDArray
    values: cupy.ndarray
    places: cupy.ndarray

    @classmethod
    def of(cls, shape: cupy.ndarray, problem: Problem) -> Blocks:
        """Allocate blocks of the given shapes."""
        shape = shape.get()
        size = shape[0] * shape[1]
        base = np.cumsum(size) - size
        places = cupy.asarray(np.stack([base, shape[1], np.ones_like(base)]))
        return cls(shape, base, cupy.empty(int(size.sum()), problem.dtype), places)

    def words(self, begin: int) -> list[int]:
        """Last fields of ``mgk::Results``."""
        return [address(self.values), *(address(row, begin) for row in self.places)]

    def scatter(self, nodal: NodalTarget, order: NDArray, swapped: NDArray) -> None:
        """Write the block of each pair to its place in the matrix."""
        values = self.values.get()
        for k, place in enumerate(order):
            n_rows, n_columns = self.shape[:, k]
            block = values[self.base[k] :][: n_rows * n_columns].reshape(n_rows, n_columns)
            block = block.T if swapped[k] else block
            row, column = nodal.row[place], nodal.column[place]
            nodal.matrix[row : row + block.shape[0], column : column + block.shape[1]] = block
