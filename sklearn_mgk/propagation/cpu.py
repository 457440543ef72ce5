# SPDX-License-Identifier: BSD-3-Clause
"""Sparse times dense on the CPU: threads take blocks of rows, the inner loop is in vectors.py.

The work is bound by reading rows of X, which lie anywhere. So each row is read in one go as wide as
the registers hold (up to 512 bytes), once for each non-zero, a few non-zeros ahead of its use; more
columns are done one tile after the other, so that the tile of X has a chance to stay in the cache.
"""

from __future__ import annotations

import numpy as np
from numba import njit
from numpy.typing import NDArray

from sklearn_mgk.atomic import atomic_add
from sklearn_mgk.propagation.matrices import Rows
from sklearn_mgk.propagation.vectors import WIDTHS, multiply_row, widest
from sklearn_mgk.threads import n_threads, run


def column_tiles(n_columns: int, itemsize: int) -> NDArray:
    """Cut columns into tiles that the inner loop is compiled for.

    Parameters
    ----------
    n_columns : int
        Number of columns.
    itemsize : int
        Bytes of a number.

    Returns
    -------
    ndarray of shape (n_tiles, 2), int64
        First column and width of each tile.

    Examples
    --------
    >>> column_tiles(11, 8).tolist()
    [[0, 8], [8, 2], [10, 1]]
    """
    tiles, column = [], 0
    for width in WIDTHS:
        while width <= widest(itemsize) and n_columns - column >= width:
            tiles.append((column, width))
            column += width
    return np.array(tiles, np.int64).reshape(-1, 2)


def multiply(rows: Rows, order: NDArray, blocks: NDArray, x: NDArray, out: NDArray) -> None:
    """Write A @ x to out.

    Parameters
    ----------
    rows : Rows
        A, with values of the type of x.
    order : ndarray of shape (n_rows,) or (0,), int64
        The order of rows; without entries they stay in theirs.
    blocks : ndarray of shape (n_blocks + 1,), int64
        Where in this order each block of rows begins.
    x : ndarray of shape (n_columns_of_A, n_columns), float32 or float64, C-contiguous
        The dense matrix.
    out : ndarray of shape (n_rows, n_columns), C-contiguous
        The result; it is overwritten.
    """
    tiles = column_tiles(x.shape[1], x.itemsize)
    flat = rows.ptr, rows.indices, rows.data, x.reshape(-1), out.reshape(-1)

    def work(thread: int, counter: NDArray) -> None:
        _multiply_blocks(*flat, np.int64(x.shape[1]), order, blocks, tiles, counter)

    run(work, n_threads(rows.n_entries * max(1, x.shape[1] // 8)))


@njit(cache=True, nogil=True)
def _multiply_blocks(ptr, indices, data, x, y, n_columns, order, blocks, tiles, counter):
    """Take (tile, block) after (tile, block) off the counter."""
    n_blocks = len(blocks) - 1
    n_tasks = n_blocks * len(tiles)
    task = atomic_add(counter, 0, np.int64(1))
    while task < n_tasks:
        tile = task // n_blocks
        block = task - tile * n_blocks
        for position in range(blocks[block], blocks[block + 1]):
            row = order[position] if len(order) else position
            _multiply_tile(ptr, indices, data, x, y, n_columns, row, tiles[tile, 0], tiles[tile, 1])
        task = atomic_add(counter, 0, np.int64(1))


@njit(cache=True, nogil=True)
def _multiply_tile(ptr, indices, data, x, y, n_columns, row, column, width):
    """Do one tile of one row; the width of a vector is fixed when it is compiled."""
    begin, end, last = ptr[row], ptr[row + 1], np.int64(len(indices) - 1)
    to = np.int64(row * n_columns + column)
    if width == 128:
        multiply_row(128, y, to, data, indices, begin, end, last, x, n_columns, column)
    elif width == 64:
        multiply_row(64, y, to, data, indices, begin, end, last, x, n_columns, column)
    elif width == 32:
        multiply_row(32, y, to, data, indices, begin, end, last, x, n_columns, column)
    elif width == 16:
        multiply_row(16, y, to, data, indices, begin, end, last, x, n_columns, column)
    elif width == 8:
        multiply_row(8, y, to, data, indices, begin, end, last, x, n_columns, column)
    elif width == 4:
        multiply_row(4, y, to, data, indices, begin, end, last, x, n_columns, column)
    elif width == 2:
        multiply_row(2, y, to, data, indices, begin, end, last, x, n_columns, column)
    else:
        multiply_row(1, y, to, data, indices, begin, end, last, x, n_columns, column)
