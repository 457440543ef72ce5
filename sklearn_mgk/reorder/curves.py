# SPDX-License-Identifier: BSD-3-Clause
"""Places of points along curves that fill space, for all graphs at once.

Coordinates are rounded to 21 bits within the bounding cube of each graph: 3 x 21 bits fill one
64-bit key.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

_N_BITS = 21


def morton(cells: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the keys of the Morton curve: the bits of all coordinates, interleaved.

    Parameters
    ----------
    cells : ndarray of shape (n, d), int64
        Coordinates of 21 bits, d <= 3.

    Returns
    -------
    ndarray of shape (n,), int64
        Place of each point along the curve.
    """
    key = np.zeros(len(cells), dtype=np.int64)
    for bit in range(_N_BITS - 1, -1, -1):
        for axis in range(cells.shape[1]):
            key = key << 1 | cells[:, axis] >> bit & 1
    return key


def hilbert(cells: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the keys of the Hilbert curve, on which consecutive cells are always neighbours.

    Parameters
    ----------
    cells : ndarray of shape (n, d), int64
        Coordinates of 21 bits, d <= 3.

    Returns
    -------
    ndarray of shape (n,), int64
        Place of each point along the curve.

    References
    ----------
    .. [1] J. Skilling, "Programming the Hilbert curve", AIP Conf. Proc. 707 (2004).
       https://doi.org/10.1063/1.1751381
    """
    x = cells.T.copy()
    # From the coarsest cells to the finest: turn each cell so that the curve enters it at its
    # origin. Where a coordinate has the bit set, the finer bits of the first axis are mirrored,
    # elsewhere they change places with those of that axis.
    for bit in range(_N_BITS - 1, 0, -1):
        finer = (1 << bit) - 1
        for axis in range(len(x)):
            is_set = x[axis] >> bit & 1 == 1
            differing = np.where(is_set, 0, (x[0] ^ x[axis]) & finer)
            x[0] ^= np.where(is_set, finer, differing)
            x[axis] ^= differing
    # What is left is a Gray code over the axes, and between the levels.
    np.bitwise_xor.accumulate(x, axis=0, out=x)
    carried = np.zeros_like(x[0])
    for bit in range(_N_BITS - 1, 0, -1):
        carried ^= np.where(x[-1] >> bit & 1 == 1, (1 << bit) - 1, 0)
    return morton((x ^ carried).T)


def grid_cells(position: NDArray, node_ptr: NDArray[np.int64]) -> NDArray[np.int64]:
    """Round coordinates to cells of a cube around each graph.

    Parameters
    ----------
    position : ndarray of shape (n_nodes, d)
        Finite coordinates.
    node_ptr : ndarray of shape (n_graphs + 1,), int64
        Which nodes each graph owns.

    Returns
    -------
    ndarray of shape (n_nodes, d), int64
        Coordinates from 0 to 2^21 - 1.
    """
    position = np.asarray(position, dtype=np.float64)
    sizes = np.diff(node_ptr)
    low = np.minimum.reduceat(position, node_ptr[:-1])
    extent = (np.maximum.reduceat(position, node_ptr[:-1]) - low).max(axis=1)
    scale = (2**_N_BITS - 1) / np.where(extent > 0, extent, 1.0)
    shifted = position - np.repeat(low, sizes, axis=0)
    return (shifted * np.repeat(scale, sizes)[:, None]).astype(np.int64)
