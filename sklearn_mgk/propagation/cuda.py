# SPDX-License-Identifier: BSD-3-Clause
"""Sparse times dense on a GPU, through CuPy; the kernel stands in cuda/spmm.cuh."""

from __future__ import annotations

from contextlib import AbstractContextManager
from ctypes import addressof, c_uint64
from dataclasses import dataclass
from functools import cache, cached_property
from importlib.resources import files
from threading import local
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sklearn_mgk.device import explained_memory, import_cupy
from sklearn_mgk.propagation.backends import Product, checked_output
from sklearn_mgk.propagation.matrices import Rows, as_dense, float_type
from sklearn_mgk.propagation.partition import Degrees, Partition, Runs, without_repeats

_THREADS = 256
_WARPS = _THREADS // 32
_TEAMS = np.array([1 << max(n - 1, 0).bit_length() for n in range(_WARPS + 1)])  # up to powers of 2
_BLOCK_WORK = 64, 1024  # entries and starts of rows that a block of threads gets, least and most
_ENOUGH_BLOCKS = 2048  # to fill a device: 16 for each of its multiprocessors
_LONG = 512  # entries from which several blocks share a row
_PIECE = 256  # entries of a row that one of them takes
_SHORT = 32  # entries up to which a row is no burden for the others of its warp
_MANY = 1 << 14  # rows from which the device sorts them
_X, _Y = 5, 6  # among the arguments of the kernel
_SMALL = np.iinfo(np.int32).max  # numbers below are kept in 32 bits
_WORD = 16  # bytes of the widest load
_WORDS = {"float32": "float", "float64": "double", "int32": "int", "int64": "long long"}


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


def source() -> str:
    """Return the CUDA C++ text of the kernel."""
    return (files("sklearn_mgk.cuda") / "spmm.cuh").read_text()


def kernel_name(dtype: Any, index: Any, shape: Shape) -> str:
    """Name of the kernel for types and a shape, as a C++ expression."""
    number, place = (_WORDS[np.dtype(kind).name] for kind in (dtype, index))
    return f"spmm::multiply<{number}, {place}, {shape.vec}, {shape.group}, {shape.ways}>"


@cache
def _kernel(device: int, dtype: Any, index: Any, shape: Shape) -> Any:
    """Compile the kernel for the current device."""
    name = kernel_name(dtype, index, shape)
    options = ("--std=c++17",)
    module = import_cupy().RawModule(
        code=source(), options=options, name_expressions=[name], backend="nvrtc"
    )
    return module.get_function(name)


def _memory_for(rows: Rows, n_columns: int) -> AbstractContextManager[None]:
    """Say what to do where the device has too little memory."""
    what = f"a matrix with {rows.n_entries} entries times {n_columns} columns"
    return explained_memory(what, "multiply fewer columns at once, or use backend='cpu'")


def make_items(partition: Partition) -> tuple[NDArray, int]:
    """Make the items of the kernel from the blocks of a plan.

    Parameters
    ----------
    partition : Partition
        The blocks; without an order all are sparse, and no row is split.

    Returns
    -------
    items : ndarray of shape (n_items, 5), int64
        Warps of a team (0: sparse, -1: split), first, last, slot, number of pieces.
    n_slots : int
        Places for the sums of pieces.
    """
    blocks = partition.blocks
    if partition.runs is None:
        items = np.zeros((len(blocks) - 1, 5), np.int64)
        items[:, 1], items[:, 2] = blocks[:-1], blocks[1:]
        return items, 0
    long, of_long = partition.runs.longer_than(_LONG)
    if len(long) == 0:
        return _whole(partition.runs, blocks, partition.dense), 0
    cuts = without_repeats(np.concatenate([blocks, long, long + 1]))
    dense = partition.dense[np.searchsorted(blocks, cuts[:-1], side="right") - 1]
    is_whole = np.ones(len(dense), bool)
    is_whole[np.searchsorted(cuts, long)] = False
    pieces = _pieces(long, of_long)
    whole = _whole(partition.runs, cuts, dense)
    return np.concatenate([pieces, whole[is_whole]]), len(pieces)


def _whole(runs: Runs, cuts: NDArray, dense: NDArray) -> NDArray:
    """Items for all rows between cuts."""
    items = np.zeros((len(dense), 5), np.int64)
    items[:, 1], items[:, 2] = cuts[:-1], cuts[1:]
    if dense.any():
        needed = np.clip(-(-runs.most(cuts[:-1])[dense] // 32), 1, _WARPS)
        items[dense, 0] = _TEAMS[needed]
    return items


def _pieces(long: NDArray, lengths: NDArray) -> NDArray:
    """Items for the pieces of long rows."""
    n_pieces = -(-lengths // _PIECE)
    first_slot = np.cumsum(n_pieces) - n_pieces
    items = np.empty((n_pieces.sum(), 5), np.int64)
    items[:, 0] = -1
    items[:, 1] = np.repeat(long, n_pieces)
    items[:, 3] = np.repeat(first_slot, n_pieces)
    items[:, 2] = np.arange(len(items)) - items[:, 3]
    items[:, 4] = np.repeat(n_pieces, n_pieces)
    return items


class Launch:
    """A kernel and its arguments as the driver takes them; X and Y are set in each call.

    CuPy looks at all arguments in every call, which takes longer than a small product.

    Parameters
    ----------
    driver : callable
        Launches a kernel, as ``cuLaunchKernel`` does.
    function : int
        Handle of the kernel.
    grid : tuple of int
        Items and tiles of columns.
    arguments : tuple
        Arguments of the kernel, each of 8 bytes: arrays of the device and numbers.
    """

    def __init__(self, driver: Any, function: int, grid: tuple[int, int], arguments: tuple):
        numbers = [a.data.ptr if hasattr(a, "data") and a.ndim else int(a) for a in arguments]
        self._numbers = (c_uint64 * len(numbers))(*numbers)
        first = addressof(self._numbers)
        self._places = (c_uint64 * len(numbers))(*(first + 8 * k for k in range(len(numbers))))
        self._held = arguments[:_X] + arguments[_Y + 1 :]
        self._driver = driver
        self._fixed = function, *grid, 1, _THREADS, 1, 1, 0
        self._address = addressof(self._places)

    def __call__(self, x: int, y: int, stream: int) -> None:
        """Launch on a stream, with the addresses of X and Y."""
        self._numbers[_X], self._numbers[_Y] = x, y
        self._driver(*self._fixed, stream, self._address, 0)


class CUDABackend:
    """The kernel on the current device."""

    def __init__(self):
        import_cupy()

    def load(self, rows: Rows) -> DeviceProduct:
        with _memory_for(rows, 0):
            return DeviceProduct(rows)

    def engine(self, product: Product) -> str:
        # Several rows share a warp where X is narrow, and it goes on until the longest ends.
        mean, deviation = product.degrees.mean_and_deviation
        if deviation > mean:
            return "degree"
        return "rows" if product.degrees.most <= _SHORT else "heavy"

    def n_blocks(self, rows: Rows) -> int:
        total = rows.total_work
        return max(1, total // int(np.clip(total // _ENOUGH_BLOCKS, *_BLOCK_WORK)))


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
        self._launches = local()

    @cached_property
    def degrees(self) -> Degrees:
        """Numbers of entries of the rows, on the device where there are many."""
        if self.rows.shape[0] < _MANY:
            return Degrees(np, self.rows.lengths)
        return Degrees(self.cp, self.cp.diff(self.ptr))

    def follow(self, partition: Partition) -> None:
        """Take the blocks of a plan."""
        cp, n_rows = self.cp, self.rows.shape[0]
        with _memory_for(self.rows, 0):
            order = partition.order
            if partition.runs is None:
                order = cp.arange(n_rows, dtype=self.index)
            self.order = cp.asarray(order.astype(self.index, copy=False))
            items, self.n_slots = make_items(partition)
            self.items = cp.asarray(items)
        self.n_items = len(items)
        self._launches = local()

    def __call__(self, X: Any, out: Any = None) -> Any:
        """Multiply; see `SpMMPlan.multiply`."""
        on_device = isinstance(X, self.cp.ndarray)
        n_rows, n_inner = self.rows.shape
        dense = self._dense(X) if on_device else as_dense(X, n_inner, self.rows.data.dtype)
        shape = (n_rows, *np.shape(X)[1:])
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
        if known is not None:
            known(at, to, self.cp.cuda.get_current_stream().ptr)
        elif self.n_items and n_columns:
            self._first_launch(key, x, y)

    def _first_launch(self, key: tuple, x: Any, y: Any) -> None:
        """Launch through CuPy, which readies the thread for the driver, and keep the arguments."""
        n_columns, itemsize, aligned, device = key
        shape = shape_for(n_columns, itemsize, self.vec if aligned else 1, self.ways)
        n_tiles = shape.n_tiles(n_columns)
        kernel = _kernel(device, x.dtype, self.index, shape)
        n_slots = max(self.n_slots, 1)
        with _memory_for(self.rows, n_columns):
            if x.dtype not in self._values:
                self._values[x.dtype] = self.cp.asarray(self.rows.as_type(x.dtype).data)
            # Room for the sums of pieces, and their counts, which the kernel leaves at 0.
            sums = self.cp.empty((n_slots, n_columns), x.dtype)
            n_done = self.cp.zeros(n_slots * n_tiles, np.uint32)
        matrices = (self.ptr, self.indices, self._values[x.dtype], self.order, self.items, x, y)
        arguments = (*matrices, np.int64(n_columns), sums, n_done)
        grid = self.n_items, n_tiles
        kernel(grid, (_THREADS,), arguments)
        driver = self.cp.cuda.driver.launchKernel
        self._launches.__dict__[key] = Launch(driver, kernel.kernel.ptr, grid, arguments)
