# SPDX-License-Identifier: BSD-3-Clause
"""Plans on a GPU: made there by cuda/spmm_plan.cuh, or brought there from the host."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from itertools import accumulate
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sklearn_mgk.propagation.cuda_launch import WORDS, Launch, compiled, source
from sklearn_mgk.propagation.matrices import ROW_COST, Rows
from sklearn_mgk.propagation.partition import Partition, without_repeats

HEADER = 4
"""Words of 64 bits before the items: items, pieces, number of the engine, threshold."""

_ENGINES = ("auto", "rows", "heavy", "degree", "dual")  # by their numbers
_ITEM = 5  # words of an item
_WARPS = 8  # of a block of threads in the product
_TEAMS = np.array([1 << max(n - 1, 0).bit_length() for n in range(_WARPS + 1)])  # up to powers of 2
_LONG = 512  # entries above which several blocks share a row
_PIECE = 256  # entries of a row that one of them takes
_BINS = _LONG + 2  # numbers of entries that rows are sorted by
_TABLE = 3 + 2 * (_BINS + 1)  # words of what the planning keeps of them
_THREADS = 544  # of a block in the planning: enough for all bins
_ONE_TILE = 8192  # rows up to which one block, and one launch, plans all
_TILE = 2048  # least rows of a tile otherwise
_MOST_TILES = 256  # since one block adds up the counts of all
_MOST_BLOCKS = 1 << 26  # so that products with the work stay within 64 bits
_STEPS = 1, 2, 4  # count, sum, place


@dataclass(frozen=True)
class DevicePlan:
    """An order of rows and what each block of threads does, on the device.

    Attributes
    ----------
    order : CuPy array of shape (n_rows,)
        Rows as they follow each other.
    room : CuPy array of int64
        The header, then items: warps of a team (0: sparse, -1: split), first, last, slot, number of
        pieces. The rest is of no use once the plan is made.
    n_blocks : int
        Blocks of threads to launch; those that have done an item go on with a later one.
    most_slots : int
        Places for the sums of pieces that are enough.
    """

    order: Any
    room: Any
    n_blocks: int
    most_slots: int

    def n_slots(self) -> int:
        """Return how many places the sums of pieces take; waits for the device."""
        return int(self.room[1])

    def on_host(self) -> tuple[str, float, NDArray, NDArray]:
        """Return the engine, the threshold, the order and the items."""
        n_items, _, engine, bits = self.room[:HEADER].get()
        items = self.room[HEADER : HEADER + _ITEM * int(n_items)].get()
        return _ENGINES[engine], float(bits.view(np.float64)), self.order.get(), _as_items(items)


def _as_items(words: NDArray) -> NDArray:
    return words.reshape(-1, _ITEM)


def work_of(items: NDArray, lengths: NDArray) -> NDArray:
    """Return the work of each item: entries, and starts of rows.

    Parameters
    ----------
    items : ndarray of shape (n_items, 5), int64
        See `DevicePlan`.
    lengths : ndarray of shape (n_rows,)
        Entries of the rows in their order.

    Returns
    -------
    ndarray of shape (n_items,), int64
        The work; a piece has its share of the row, and one start.
    """
    n_warps, first, last, _, n_pieces = items.T
    is_piece = n_warps < 0
    before = np.append(0, np.cumsum(lengths + ROW_COST))
    work = before[np.where(is_piece, 0, last)] - before[np.where(is_piece, 0, first)]
    of_row = lengths[first[is_piece]]
    begin, end = (
        of_row * piece // n_pieces[is_piece] for piece in (last[is_piece], last[is_piece] + 1)
    )
    work[is_piece] = end - begin + ROW_COST
    return work


def make_items(partition: Partition, lengths: NDArray) -> tuple[NDArray, int]:
    """Make items from the blocks of a plan of the host.

    Parameters
    ----------
    partition : Partition
        The blocks.
    lengths : ndarray of shape (n_rows,)
        Entries of the rows in their order.

    Returns
    -------
    items : ndarray of shape (n_items, 5), int64
        See `DevicePlan`.
    n_slots : int
        Places for the sums of pieces.
    """
    blocks, long = partition.blocks, np.flatnonzero(lengths > _LONG)
    cuts = without_repeats(np.concatenate([blocks, long, long + 1]))
    dense = partition.dense[np.searchsorted(blocks, cuts[:-1], side="right") - 1]
    is_whole = np.ones(len(dense), bool)
    is_whole[np.searchsorted(cuts, long)] = False
    whole = np.zeros((len(dense), _ITEM), np.int64)
    whole[:, 1], whole[:, 2] = cuts[:-1], cuts[1:]
    if dense.any():
        most = np.maximum.reduceat(lengths, cuts[:-1])[dense]
        whole[dense, 0] = _TEAMS[np.clip(-(-most // 32), 1, _WARPS)]
    pieces = _pieces(long, lengths[long])
    return np.concatenate([pieces, whole[is_whole]]), len(pieces)


def _pieces(long: NDArray, lengths: NDArray) -> NDArray:
    """Items for the pieces of long rows."""
    n_pieces = -(-lengths // _PIECE)
    first_slot = np.cumsum(n_pieces) - n_pieces
    items = np.empty((n_pieces.sum(), _ITEM), np.int64)
    items[:, 0] = -1
    items[:, 1] = np.repeat(long, n_pieces)
    items[:, 3] = np.repeat(first_slot, n_pieces)
    items[:, 2] = np.arange(len(items)) - items[:, 3]
    items[:, 4] = np.repeat(n_pieces, n_pieces)
    return items


def bring(cp: Any, partition: Partition, rows: Rows, index: Any, engine: str) -> DevicePlan:
    """Bring a plan of the host to the device.

    Parameters
    ----------
    cp : module
        CuPy.
    partition : Partition
        The plan.
    rows : Rows
        The matrix.
    index : dtype
        Type of the order.
    engine : str
        What made it.

    Returns
    -------
    DevicePlan
        The plan there.
    """
    items, n_slots = make_items(partition, rows.lengths[partition.order])
    threshold = np.float64(partition.threshold).view(np.int64)
    header = np.array([len(items), n_slots, _ENGINES.index(engine), threshold])
    room = cp.asarray(np.concatenate([header, items.ravel()]))
    return DevicePlan(cp.asarray(partition.order.astype(index)), room, len(items), n_slots)


def options() -> tuple[str, ...]:
    """Return the constants of the planning as options of a compiler."""
    return f"-DSPMM_LONG={_LONG}", f"-DSPMM_PIECE={_PIECE}", f"-DSPMM_ROW_COST={ROW_COST}"


def plan_source() -> str:
    """Return the CUDA C++ text of the planning."""
    return source("spmm", "spmm_count", "spmm_plan")


def kernel_name(index: Any) -> str:
    """Name of the planning for a type of indices, as a C++ expression."""
    return f"spmm::plan<{WORDS[np.dtype(index).name]}>"


@cache
def _kernel(device: int, index: Any) -> tuple[int, Any]:
    """Compile the planning for the current device."""
    return compiled(plan_source(), kernel_name(index), options())


def most_pieces(n_entries: int) -> int:
    """Return how many pieces long rows are cut into at most."""
    n_long = n_entries // (_LONG + 1)
    return n_entries // _PIECE + n_long if n_long else 0


def tiles_of(n_rows: int) -> tuple[int, int]:
    """Return the number of tiles that rows are planned in, and the rows of a tile."""
    tile = n_rows if n_rows <= _ONE_TILE else max(_TILE, -(-n_rows // _MOST_TILES))
    return -(-n_rows // tile), tile


def make(cp: Any, ptr: Any, n_entries: int, engine: str, n_blocks: int) -> DevicePlan:
    """Make a plan on the current stream of the device, without waiting for it.

    Parameters
    ----------
    cp : module
        CuPy; its runtime has been used in this thread.
    ptr : CuPy array of shape (n_rows + 1,)
        Where each row begins; at least one row.
    n_entries : int
        Entries of all rows.
    engine : {"auto", "rows", "heavy", "degree"}
        See `SpMMPlan`; the device makes the choice of "auto".
    n_blocks : int
        Blocks to cut all rows into.

    Returns
    -------
    DevicePlan
        The plan.
    """
    n_rows = len(ptr) - 1
    n_tiles, tile = tiles_of(n_rows)
    most = 0 if engine == "rows" else most_pieces(n_entries)
    n_blocks = min(n_blocks, _MOST_BLOCKS)
    whole = min(n_blocks, n_rows)
    sizes = (HEADER, _ITEM * (whole + most), _TABLE, 2 * n_tiles, (n_tiles * _BINS + 1) // 2)
    room, order = cp.empty(sum(sizes), np.int64), cp.empty(n_rows, ptr.dtype)
    header, items, table, longs, counts, _ = accumulate((room.data.ptr, *(8 * n for n in sizes)))
    function, _ = _kernel(cp.cuda.runtime.getDevice(), ptr.dtype)
    places = (ptr.data.ptr, order.data.ptr, header, items, table, longs, counts)
    numbers = (n_rows, n_blocks, n_tiles, tile, _ENGINES.index(engine), sum(_STEPS))
    launch = Launch(cp.cuda.driver.launchKernel, function, _THREADS, (*places, *numbers))
    stream = cp.cuda.get_current_stream().ptr
    if n_tiles == 1:
        launch(1, 1, stream)
    else:
        for step, n in zip(_STEPS, (n_tiles, 1, n_tiles), strict=True):
            launch.numbers[len(places) + len(numbers) - 1] = step
            launch(n, 1, stream)
    # Blocks without an item cost time too; where there are more pieces, blocks do several items.
    extra = min(most, whole // 16 + 32)
    return DevicePlan(order, room, whole + extra, most)
