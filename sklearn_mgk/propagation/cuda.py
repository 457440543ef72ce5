# SPDX-License-Identifier: BSD-3-Clause
"""Sparse times dense on a GPU, through CuPy; the kernel stands in cuda/spmm.cuh."""

from __future__ import annotations

from contextlib import AbstractContextManager
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sklearn_mgk.device import explained_memory, import_cupy
from sklearn_mgk.propagation.backends import checked_output
from sklearn_mgk.propagation.matrices import Rows, as_dense, float_type
from sklearn_mgk.propagation.partition import Partition

_THREADS = 256
_WARPS = _THREADS // 32
_BLOCK_WORK = 64, 1024  # entries and starts of rows that a block of threads gets, least and most
_ENOUGH_BLOCKS = 2048  # to fill a device: 16 for each of its multiprocessors
_LONG = 512  # entries from which several blocks share a row
_PIECE = 256  # entries of a row that one of them takes
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


def make_items(rows: Rows, partition: Partition) -> tuple[NDArray, int]:
    """Make the items of the kernel from the blocks of a plan.

    Parameters
    ----------
    rows : Rows
        The matrix.
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
    if len(partition.order) == 0:
        items = np.zeros((len(blocks) - 1, 5), np.int64)
        items[:, 1], items[:, 2] = blocks[:-1], blocks[1:]
        return items, 0
    lengths = rows.lengths[partition.order]
    long = np.flatnonzero(lengths > _LONG)
    cuts = np.unique(np.concatenate([blocks, long, long + 1]))
    whole = np.zeros((len(cuts) - 1, 5), np.int64)
    whole[:, 1], whole[:, 2] = cuts[:-1], cuts[1:]
    if len(whole):
        dense = partition.dense[np.searchsorted(blocks, cuts[:-1], side="right") - 1]
        most = np.maximum.reduceat(lengths, cuts[:-1])
        needed = np.clip(-(-most // 32), 1, _WARPS)
        whole[:, 0] = np.where(dense, 1 << np.ceil(np.log2(needed)).astype(np.int64), 0)
    pieces = _pieces(long, lengths[long])
    whole = whole[~np.isin(cuts[:-1], long)]
    return np.concatenate([pieces, whole]), len(pieces)


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


class CUDABackend:
    """The kernel on the current device."""

    def __init__(self):
        import_cupy()

    def engine(self, rows: Rows) -> str:
        # Several rows share a warp where X is narrow, and it goes on until the longest ends.
        lengths = rows.lengths
        return "degree" if len(lengths) and lengths.std() > lengths.mean() else "heavy"

    def n_blocks(self, rows: Rows) -> int:
        total = int(rows.total_work[-1])
        return max(1, total // int(np.clip(total // _ENOUGH_BLOCKS, *_BLOCK_WORK)))

    def prepare(self, rows: Rows, partition: Partition) -> DeviceProduct:
        with _memory_for(rows, 0):
            return DeviceProduct(rows, partition)


class DeviceProduct:
    """A matrix and its plan in the memory of the device.

    Parameters
    ----------
    rows : Rows
        The matrix.
    partition : Partition
        The blocks.
    vec, ways : int
        See `shape_for`.
    """

    def __init__(self, rows: Rows, partition: Partition, vec: int | None = None, ways: int = 4):
        cp = self.cp = import_cupy()
        self.rows, self.vec, self.ways = rows, vec, ways
        small = max(rows.n_entries, *rows.shape) < _SMALL
        self.index = np.dtype(np.int32 if small else np.int64)
        order = partition.order if len(partition.order) else np.arange(rows.shape[0])
        items, self.n_slots = make_items(rows, partition)
        self.n_items = len(items)
        self.items = cp.asarray(items)
        parts = (rows.ptr, rows.indices, order)
        self.ptr, self.indices, self.order = (cp.asarray(p.astype(self.index)) for p in parts)
        self._values: dict[np.dtype, Any] = {}
        self._rooms: dict[tuple, Any] = {}

    def __call__(self, X: Any, out: Any = None) -> Any:
        """Multiply; see `SpMMPlan.multiply`."""
        on_device = isinstance(X, self.cp.ndarray)
        n_rows, n_inner = self.rows.shape
        dense = self._dense(X) if on_device else as_dense(X, n_inner, self.rows.data.dtype)
        shape = (n_rows, *np.shape(X)[1:])
        if out is not None:
            checked_output(out, shape, dense.dtype)
        writes_there = isinstance(out, self.cp.ndarray)
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
        dtype = float_type(self.rows.data.dtype, X.dtype, "X")
        if X.ndim not in (1, 2) or len(X) != self.rows.shape[1]:
            raise ValueError(
                f"X must have shape ({self.rows.shape[1]}, n_columns) to be multiplied by A, got "
                f"{X.shape}"
            )
        return self.cp.ascontiguousarray(X[:, None] if X.ndim == 1 else X, dtype=dtype)

    def launch(self, x: Any, y: Any) -> None:
        """Write A @ x to y, both C-contiguous on the device and of one type."""
        n_columns = x.shape[1]
        if self.n_items == 0 or n_columns == 0:
            return
        if x.dtype not in self._values:
            self._values[x.dtype] = self.cp.asarray(self.rows.as_type(x.dtype).data)
        shape = self._shape(x, y)
        n_tiles = shape.n_tiles(n_columns)
        sums, n_done = self._room(n_columns, n_tiles, x.dtype)
        matrices = (self.ptr, self.indices, self._values[x.dtype], self.order, self.items, x, y)
        kernel = _kernel(self.cp.cuda.Device().id, x.dtype, self.index, shape)
        arguments = (*matrices, np.int64(n_columns), sums, n_done)
        kernel((self.n_items, n_tiles), (_THREADS,), arguments)

    def _shape(self, x: Any, y: Any) -> Shape:
        """Layout of threads; slices of arrays may not lie where wide loads need them."""
        aligned = x.data.ptr % _WORD == 0 and y.data.ptr % _WORD == 0
        return shape_for(x.shape[1], x.itemsize, self.vec if aligned else 1, self.ways)

    def _room(self, n_columns: int, n_tiles: int, dtype: Any) -> tuple[Any, Any]:
        """Room for the sums of pieces, and their counts, which the kernel leaves at 0."""
        key = n_columns, n_tiles, dtype
        if key not in self._rooms:
            self._rooms[key] = (
                self.cp.empty((max(self.n_slots, 1), n_columns), dtype),
                self.cp.zeros(max(self.n_slots, 1) * n_tiles, np.uint32),
            )
        return self._rooms[key]
