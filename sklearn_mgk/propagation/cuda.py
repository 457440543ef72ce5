# SPDX-License-Identifier: BSD-3-Clause
"""Sparse times dense on a GPU, through CuPy; the kernel stands in cuda/spmm.cuh."""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass
from functools import cache
from threading import local
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sklearn_mgk.device import ExplainedMemory, import_cupy
from sklearn_mgk.propagation.backends import checked_output
from sklearn_mgk.propagation.cuda_launch import WORDS, Launch, compiled, source
from sklearn_mgk.propagation.cuda_plan import HEADER, DevicePlan, bring, work_of
from sklearn_mgk.propagation.cuda_plan import make as make_plan
from sklearn_mgk.propagation.matrices import Rows, as_dense, float_type
from sklearn_mgk.propagation.partition import Partition, PlanSummary, equal_rows, imbalance

_THREADS = 256
_BLOCK_WORK = 64, 1024  # entries and starts of rows that a block of threads gets, least and most
_ENOUGH_BLOCKS = 2048  # to fill a device: 16 for each of its multiprocessors
_ENOUGH_ROOM = 1 << 24  # bytes for sums of pieces below which their number is not asked for
_X, _Y = 5, 6  # among the arguments of the kernel
_SMALL = np.iinfo(np.int32).max  # numbers below are kept in 32 bits
_WORD = 16  # bytes of the widest load


@dataclass(frozen=True)
class Shape:
    """How threads are laid over the columns of X.

    Attributes
    ----------
    vec : int
        Columns of a lane.
    group : int
        Lanes of a row, a power of two.
    ways : int, default=4
        Rows of X that a lane waits for at a time.
    """

    vec: int
    group: int
    ways: int = 4

    def n_tiles(self, n_columns: int) -> int:
        """Return how many times the columns of a group cover those of X."""
        return -(-n_columns // (self.vec * self.group))


@cache
def shape_for(n_columns: int, itemsize: int, vec: int | None = None, ways: int = 4) -> Shape:
    """Choose the widest loads that fit the rows of X, and no more lanes than they need.

    Parameters
    ----------
    n_columns : int
        Columns of X.
    itemsize : int
        Bytes of a number.
    vec : int or None, default=None
        Columns of a lane instead: with 1 a warp moves in chunks of 32 columns.
    ways : int, default=4
        Rows of X that a lane waits for at a time.

    Returns
    -------
    Shape
        The layout.

    Examples
    --------
    >>> shape_for(128, 4), shape_for(10, 4), shape_for(33, 8)
    (Shape(vec=4, group=32, ways=4), Shape(vec=2, group=8, ways=4), Shape(vec=1, group=32, ways=4))
    """
    if vec is None:
        vec = max(v for v in (1, 2, 4) if v * itemsize <= _WORD and n_columns % v == 0)
    lanes = max(1, -(-n_columns // vec))
    return Shape(vec, min(32, 1 << (lanes - 1).bit_length()), ways)


def kernel_name(dtype: Any, index: Any, shape: Shape) -> str:
    """Name of the kernel for types and a shape, as a C++ expression."""
    number, place = (WORDS[np.dtype(kind).name] for kind in (dtype, index))
    return f"spmm::multiply<{number}, {place}, {shape.vec}, {shape.group}, {shape.ways}>"


@cache
def _kernel(device: int, dtype: Any, index: Any, shape: Shape) -> tuple[int, Any]:
    """Compile the kernel for the current device."""
    return compiled(source("spmm"), kernel_name(dtype, index, shape))


def _memory_for(rows: Rows, n_columns: int) -> AbstractContextManager[None]:
    """Say what to do where the device has too little memory."""
    what = f"a matrix with {rows.n_entries} entries times {n_columns} columns"
    return ExplainedMemory(what, "multiply fewer columns at once, or use backend='cpu'")


class DeviceProduct:
    """A matrix and its plan in the memory of the device.

    Products of one plan must follow each other: the sums of split rows have one place.

    Parameters
    ----------
    rows : Rows
        The matrix.
    vec, ways : int
        See `shape_for`.
    """

    def __init__(self, rows: Rows, vec: int | None = None, ways: int = 4):
        cp = self.cp = import_cupy()
        self.rows, self.vec, self.ways = rows, vec, ways
        small = max(rows.n_entries, *rows.shape) < _SMALL
        self.index = np.dtype(np.int32 if small else np.int64)
        parts = (rows.ptr, rows.indices)
        self.ptr, self.indices = (cp.asarray(p.astype(self.index, copy=False)) for p in parts)
        self._values: dict[np.dtype, Any] = {}

    def follow(
        self, engine: str, n_blocks: int | None, make: Callable[[str, int], Partition]
    ) -> None:
        """Plan on the device; what needs walks is planned on the host."""
        begin = time.perf_counter()
        total, has_rows = self.rows.total_work, self.rows.shape[0] > 0
        size = min(max(total // _ENOUGH_BLOCKS, _BLOCK_WORK[0]), _BLOCK_WORK[1])
        self._engine = "rows" if engine == "auto" and not has_rows else engine
        self._n_blocks = int(n_blocks or max(1, total // size))
        self._on_host = engine == "dual" or not has_rows
        self.plan = self._brought(make) if self._on_host else self._made()
        self._launches = local()
        self._seconds = time.perf_counter() - begin

    def _brought(self, make: Callable[[str, int], Partition]) -> DevicePlan:
        partition = make(self._engine, self._n_blocks)
        with _memory_for(self.rows, 0):
            return bring(self.cp, partition, self.rows, self.index, self._engine)

    def _made(self) -> DevicePlan:
        n_entries = self.rows.n_entries
        with _memory_for(self.rows, 0):
            return make_plan(self.cp, self.ptr, n_entries, self._engine, self._n_blocks)

    @property
    def summary(self) -> PlanSummary:
        """What the plan came to; a plan of the device is made once more to take its time."""
        engine, threshold, order, items = self.plan.on_host()
        work = work_of(items, self.rows.lengths[order])
        some = (items[:, 0] < 0) | (items[:, 1] < items[:, 2])
        return PlanSummary(
            engine=engine,
            n_blocks=int(some.sum()),
            n_dense=int((items[some, 0] != 0).sum()),
            threshold=threshold,
            imbalance=imbalance(work[some]),
            imbalance_without=equal_rows(self.rows, int(some.sum())),
            seconds=self._seconds if self._on_host else self._seconds_again(),
        )

    def _seconds_again(self) -> float:
        device = self.cp.cuda.Device()
        device.synchronize()
        begin = time.perf_counter()
        self._made()
        device.synchronize()
        return time.perf_counter() - begin

    def __call__(self, X: Any, out: Any = None) -> Any:
        """Multiply; see `SpMMPlan.multiply`."""
        on_device = isinstance(X, self.cp.ndarray)
        n_rows, n_inner = self.rows.shape
        dense = self._dense(X) if on_device else as_dense(X, n_inner, self.rows.data.dtype)
        shape = (n_rows, *(X.shape if on_device else np.shape(X))[1:])
        if out is not None:
            checked_output(out, shape, dense.dtype)
        writes_there = isinstance(out, self.cp.ndarray)
        if on_device and writes_there:
            self.launch(dense, out)
            return out
        with _memory_for(self.rows, dense.shape[1]):
            y = out if writes_there else self.cp.empty(shape, dense.dtype)
            self.launch(self.cp.asarray(dense), y)
        return y if on_device or writes_there else y.get(out=out)

    def put(self, X: Any) -> Any:
        """Return X on the device."""
        with _memory_for(self.rows, X.shape[-1]):
            return self.cp.asarray(X)

    def get(self, X: Any) -> NDArray:
        """Return X on the host."""
        return self.cp.asnumpy(X)

    def _dense(self, X: Any) -> Any:
        """Read a matrix that is on the device, see `as_dense`."""
        if X.ndim not in (1, 2) or X.shape[0] != self.rows.shape[1]:
            raise ValueError(
                f"X must have shape ({self.rows.shape[1]}, n_columns) to be multiplied by A, got "
                f"{X.shape}"
            )
        if X.dtype in self._values and X.ndim == 2 and X.flags.c_contiguous:
            return X
        dtype = float_type(self.rows.data.dtype, X.dtype, "X")
        return self.cp.ascontiguousarray(X[:, None] if X.ndim == 1 else X, dtype=dtype)

    def launch(self, x: Any, y: Any) -> None:
        """Write A @ x to y, both C-contiguous on the device and of one type."""
        at, to, n_columns = x.data.ptr, y.data.ptr, x.shape[1]
        # Slices of arrays may not lie where wide loads need them.
        aligned = (at | to) % _WORD == 0
        key = n_columns, x.itemsize, aligned, self.cp.cuda.runtime.getDevice()
        known = self._launches.__dict__.get(key)
        if known is None:
            if not (self.rows.shape[0] and n_columns):
                return
            known = self._launches.__dict__[key] = self._prepared(key, x.dtype)
        launch, n_tiles = known
        launch.numbers[_X], launch.numbers[_Y] = at, to
        launch(self.plan.n_blocks, n_tiles, self.cp.cuda.get_current_stream().ptr)

    def _prepared(self, key: tuple, dtype: Any) -> tuple[Launch, int]:
        """Ready the thread for the driver; return the launch and the number of its tiles."""
        n_columns, itemsize, aligned, device = key
        shape = shape_for(n_columns, itemsize, self.vec if aligned else 1, self.ways)
        n_tiles, plan = shape.n_tiles(n_columns), self.plan
        function, _ = _kernel(device, dtype, self.index, shape)
        with _memory_for(self.rows, n_columns):
            if dtype not in self._values:
                self._values[dtype] = self.cp.asarray(self.rows.as_type(dtype).data)
            n_slots = plan.most_slots
            if n_slots * n_columns * itemsize > _ENOUGH_ROOM:
                n_slots = plan.n_slots()
            # Room for the sums of pieces, and their counts, which the kernel leaves at 0.
            sums = self.cp.empty(max(n_slots, 1) * n_columns, dtype)
            n_done = self.cp.zeros(max(n_slots, 1) * n_tiles, np.uint32)
        values, room = self._values[dtype], plan.room.data.ptr
        matrix = self.ptr.data.ptr, self.indices.data.ptr, values.data.ptr, plan.order.data.ptr
        arguments = (*matrix, room + 8 * HEADER, 0, 0, n_columns, sums.data.ptr, n_done.data.ptr)
        driver = self.cp.cuda.driver.launchKernel
        launch = Launch(driver, function, _THREADS, (*arguments, room), (values, sums, n_done))
        return launch, n_tiles
