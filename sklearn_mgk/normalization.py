# SPDX-License-Identifier: BSD-3-Clause
"""Normalisations of a Gram matrix by the self-similarity of its graphs, and their derivatives.

With s = K(G, G) and s' = K(G', G'), "cosine" is K / sqrt(s s') and "size" is the cosine times
exp(-((s - s') / size_scale)^2), the size-dependent normalisation of [1]_. A graph with K(G, G) = 0
has cosine 0 with every graph, itself included.

References
----------
.. [1] Y. Xiang, Y.-H. Tang, G. Lin, H. Sun, "A comparative study of marginalized graph kernel and
   message-passing neural network", J. Chem. Inf. Model. 61, 5414, 2021.
   https://doi.org/10.1021/acs.jcim.1c01118
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

NORMALIZATIONS = (None, "cosine", "size")


def normalize_matrix(
    values: NDArray, slopes: NDArray, diagonals: Sequence[NDArray] | None, kernel
) -> None:
    """Normalise a matrix and its derivatives in place.

    Parameters
    ----------
    values : ndarray of shape (n_left, n_right)
        Raw kernel values; overwritten.
    slopes : ndarray of shape (n_left, n_right, n_theta)
        Their derivatives; overwritten. There are none between two sides.
    diagonals : sequence of two ndarray of shape (n_left,) and (n_right,), or None
        Raw self-similarities of both sides; None where the sides are one, whose diagonal has them.
    kernel : GraphKernel
        Whose ``normalization`` and ``size_scale`` are read.
    """
    own, raw_slopes = values.diagonal().copy(), slopes.diagonal().T.copy()
    left, right = (own, own) if diagonals is None else diagonals
    normalize(values, left, right, kernel)
    if diagonals is None:
        np.fill_diagonal(values, normalized_diagonal(own, kernel))
    if slopes.shape[2]:
        normalize_gradient(slopes, values, own, raw_slopes, kernel)


def normalize(gram: NDArray, left: NDArray, right: NDArray, kernel) -> None:
    """Normalise a matrix of raw values in place.

    Parameters
    ----------
    gram : ndarray of shape (n_left, n_right)
        Raw kernel values; overwritten.
    left, right : ndarray of shape (n_left,) and (n_right,)
        Raw self-similarities.
    kernel : MarginalizedGraphKernel
        Whose ``normalization`` and ``size_scale`` are read.
    """
    if kernel.normalization is None:
        return
    for row, s in zip(gram, left, strict=True):
        # The root of the product: exactly symmetric, and exactly 1 between equal graphs.
        root = np.sqrt(s * right)
        row *= root > 0
        np.divide(row, root, out=row, where=root > 0)
        if kernel.normalization == "size":
            row *= np.exp(-(((s - right) / kernel.size_scale) ** 2))


def normalize_gradient(
    gradient: NDArray, gram: NDArray, diagonal: NDArray, slopes: NDArray, kernel
) -> None:
    """Turn the derivatives of raw values into those of normalised ones, in place.

    Parameters
    ----------
    gradient : ndarray of shape (n, n, n_theta)
        Derivatives of the raw Gram matrix; overwritten. The last one belongs to ``size_scale``
        where that is a free hyperparameter.
    gram : ndarray of shape (n, n)
        Normalised Gram matrix.
    diagonal : ndarray of shape (n,)
        Raw self-similarities.
    slopes : ndarray of shape (n, n_theta)
        Their derivatives.
    kernel : MarginalizedGraphKernel
        Whose parameters are read.
    """
    if kernel.normalization is None:
        return
    root = _inverse_root(diagonal)
    by_size = kernel.normalization == "size"
    scale = kernel.size_scale if by_size else np.inf
    difference = (diagonal[:, None] - diagonal) / scale
    factor = np.exp(-(difference**2)) if by_size else 1.0
    for k in range(gradient.shape[2]):
        relative = slopes[:, k] * root**2 / 2
        change = relative[:, None] + relative
        if by_size:
            change += 2 * difference * (slopes[:, k][:, None] - slopes[:, k]) / scale
        gradient[:, :, k] *= root[:, None] * root * factor
        gradient[:, :, k] -= gram * change
    if by_size and kernel.size_scale_bounds != "fixed":
        gradient[:, :, -1] = gram * 2 * difference**2


def normalized_diagonal(diagonal: NDArray, kernel) -> NDArray:
    """Return the diagonal after normalisation: 1, or 0 where the raw value is 0."""
    return diagonal if kernel.normalization is None else (diagonal > 0).astype(float)


def _inverse_root(diagonal: NDArray) -> NDArray:
    """1 / sqrt of self-similarities, 0 for those that are 0."""
    positive = diagonal > 0
    return np.where(positive, 1 / np.sqrt(np.where(positive, diagonal, 1.0)), 0.0)
