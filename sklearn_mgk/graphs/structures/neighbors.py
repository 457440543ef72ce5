# SPDX-License-Identifier: BSD-3-Clause
"""Pairs of points closer than a distance, in open space or among periodic images."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.spatial import cKDTree

# Rounding may take an image out of the box in which images are sought.
_MARGIN = 1e-9


@dataclass(frozen=True)
class Pairs:
    """Pairs of points, each undirected pair once.

    Parameters
    ----------
    i, j : ndarray of shape (n_pairs,), int64
        The two points, i <= j, sorted by i, j and length. A pair of a point with its own image
        (i = j) stands once for each direction.
    length : ndarray of shape (n_pairs,), float64
        Their distance, in the unit of the positions.
    """

    i: NDArray[np.int64]
    j: NDArray[np.int64]
    length: NDArray[np.float64]

    def where(self, mask: NDArray[np.bool_]) -> Pairs:
        """Return the chosen pairs."""
        return Pairs(self.i[mask], self.j[mask], self.length[mask])


def neighbor_pairs(
    positions: NDArray[np.float64], reach: float, lattice: NDArray[np.float64] | None = None
) -> Pairs:
    """Find all pairs of points at most `reach` apart by a k-d tree.

    Parameters
    ----------
    positions : ndarray of shape (n, 3), float64
        The points.
    reach : float
        The greatest distance.
    lattice : ndarray of shape (n_periodic, 3), default=None
        Linearly independent vectors by which the points repeat, one to three. Every image within
        reach makes a pair.

    Returns
    -------
    Pairs
        The pairs.

    Examples
    --------
    >>> neighbor_pairs(np.array([[0.0, 0, 0], [0, 0, 2]]), 3.0)
    Pairs(i=array([0]), j=array([1]), length=array([2.]))
    >>> neighbor_pairs(np.zeros((1, 3)), 3.0, np.array([[0.0, 0, 2]])).length
    array([2., 2.])
    """
    if lattice is None or len(lattice) == 0:
        i, j = cKDTree(positions).query_pairs(reach, output_type="ndarray").astype(np.int64).T
        vectors = positions[j] - positions[i]
    else:
        i, j, vectors = _periodic(positions, reach, lattice)
    length = np.linalg.norm(vectors, axis=1)
    order = np.lexsort((length, j, i))
    return Pairs(i[order], j[order], length[order])


def _periodic(
    positions: NDArray, reach: float, lattice: NDArray
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.float64]]:
    """Return the pairs of points with images, and the vectors between them.

    The points are moved into the cell first, which changes no vector between a point and all images
    of another. A pair i < j stands once for each image of j around i; the images of i around j are
    the same pairs seen from the other end. A point and its own images at T and -T are two pairs.
    """
    reciprocal = np.linalg.pinv(lattice)
    inside = positions - np.floor(positions @ reciprocal) @ lattice
    points, offsets, images = _images(inside, reach, lattice, reciprocal)
    found = cKDTree(inside).sparse_distance_matrix(cKDTree(images), reach, output_type="ndarray")
    i, image = found["i"].astype(np.int64), found["j"].astype(np.int64)
    j = points[image]
    keep = (i < j) | ((i == j) & offsets[image].any(axis=1))
    i, j, image = i[keep], j[keep], image[keep]
    return i, j, images[image] - inside[i]


def _images(
    inside: NDArray, reach: float, lattice: NDArray, reciprocal: NDArray
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.float64]]:
    """Return the number, the cell and the position of each image that may be within reach.

    Along lattice vector k the fractional coordinates of two points `reach` apart differ by at most
    reach |b_k|, with b_k the reciprocal vector. The points have coordinates in [0, 1).
    """
    margin = reach * np.linalg.norm(reciprocal, axis=0) + _MARGIN
    steps = np.ceil(margin).astype(np.int64)
    grid = np.meshgrid(*(np.arange(-n, n + 1) for n in steps), indexing="ij")
    cells = np.stack(grid, axis=-1).reshape(-1, len(lattice))
    fraction = (inside @ reciprocal)[:, None, :] + cells
    near = ((fraction >= -margin) & (fraction <= 1 + margin)).all(axis=2)
    points, cell = np.nonzero(near)
    return points, cells[cell], inside[points] + cells[cell] @ lattice
