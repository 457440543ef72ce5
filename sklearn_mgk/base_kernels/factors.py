# SPDX-License-Identifier: BSD-3-Clause
"""Low-rank factors of a base kernel with a certified error."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True)
class Factors:
    r"""A kernel as a sum of products, :math:`k(x, y) \approx \sum_r \phi_r(x) \phi_r(y)`.

    Parameters
    ----------
    phi : ndarray of shape (L, R), float64
        Values of the R factors at the L labels.
    residual : float
        The largest error of any entry of the table.
    """

    phi: NDArray
    residual: float

    @property
    def rank(self) -> int:
        """Number of factors."""
        return self.phi.shape[1]


def pivoted_cholesky(
    diagonal: NDArray, row: Callable[[int], NDArray], tolerance: float, max_rank: int | None = None
) -> Factors | None:
    """Factorise a positive semidefinite table, of which only some rows are looked at.

    The label that the factors so far describe worst is taken as the next pivot, until the
    remaining diagonal is within the tolerance. What remains of a positive semidefinite table is so
    too, so its largest entry lies on the diagonal and bounds all errors.

    Parameters
    ----------
    diagonal : ndarray of shape (L,)
        The kernel between each label and itself.
    row : callable
        ``row(i)`` returns the kernel between label i and all labels, shape (L,).
    tolerance : float
        Largest error allowed for an entry of the table, absolute; > 0.
    max_rank : int, optional
        Largest number of factors. Default: L.

    Returns
    -------
    Factors or None
        None if the table is not positive semidefinite within rounding, or would need more than
        `max_rank` factors.

    References
    ----------
    .. [1] H. Harbrecht, M. Peters, R. Schneider, "On the low-rank approximation by the pivoted
       Cholesky decomposition", Applied Numerical Mathematics 62 (2012).
       doi:10.1016/j.apnum.2011.10.001
    """
    remaining = np.array(diagonal, dtype=np.float64)
    n = len(remaining)
    max_rank = n if max_rank is None else min(max_rank, n)
    # A sum of n products is computed to n units in the last place of the largest of them.
    rounding = 4 * max(n, 1) * np.finfo(np.float64).eps * np.abs(remaining).max(initial=0.0)
    phi = np.empty((max_rank, n))
    for rank in range(max_rank + 1):
        if remaining.min(initial=0.0) < -rounding:
            return None
        error = remaining.max(initial=0.0)
        if error <= max(tolerance, rounding):
            return Factors(np.ascontiguousarray(phi[:rank].T), float(max(error, 0.0)))
        if rank < max_rank:
            pivot = int(np.argmax(remaining))
            column = np.asarray(row(pivot), dtype=np.float64) - phi[:rank, pivot] @ phi[:rank]
            phi[rank] = column / np.sqrt(error)
            remaining -= phi[rank] ** 2
            remaining[pivot] = 0.0
    return None


def factorize_table(
    table: NDArray, tolerance: float, max_rank: int | None = None
) -> Factors | None:
    """Factorise a whole table, and check every entry.

    Parameters
    ----------
    table : ndarray of shape (L, L)
        A symmetric table of kernel values.
    tolerance : float
        Largest error allowed for an entry, absolute; > 0.
    max_rank : int, optional
        Largest number of factors. Default: L.

    Returns
    -------
    Factors or None
        As for `pivoted_cholesky`; `Factors.residual` is the largest error found.
    """
    factors = pivoted_cholesky(np.diagonal(table), table.__getitem__, tolerance, max_rank)
    if factors is None:
        return None
    error = float(np.abs(table - factors.phi @ factors.phi.T).max(initial=0.0))
    bound = max(tolerance, 2 * factors.residual)
    return Factors(factors.phi, error) if error <= bound else None
