# SPDX-License-Identifier: BSD-3-Clause
"""Where products are computed: one small class each for the CPU and CUDA."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from sklearn_mgk.propagation.cpu import multiply
from sklearn_mgk.propagation.matrices import Rows, as_dense
from sklearn_mgk.propagation.partition import Degrees, Partition


class Product(Protocol):
    """A matrix where it is computed with; `follow` makes it ready to multiply."""

    @property
    def degrees(self) -> Degrees:
        """Numbers of entries of the rows."""

    def follow(self, partition: Partition) -> None:
        """Take the blocks of a plan."""

    def __call__(self, X: Any, out: Any) -> Any:
        """Multiply, into an array given or None; see `SpMMPlan.multiply`."""

    def put(self, X: Any) -> Any:
        """Return X where this product computes."""

    def get(self, X: Any) -> NDArray:
        """Return X as an array of the host."""


class Backend(Protocol):
    """What a backend answers."""

    def load(self, rows: Rows) -> Product:
        """Bring a matrix to where it is computed with."""

    def engine(self, product: Product) -> str:
        """Which engine was faster for such a matrix."""

    def n_blocks(self, rows: Rows) -> int:
        """How many blocks to cut it into."""


class CPUBackend:
    """Vector loops in plain threads."""

    def load(self, rows: Rows) -> CPUProduct:
        return CPUProduct(rows)

    def engine(self, product: Product) -> str:
        return "rows"

    def n_blocks(self, rows: Rows) -> int:
        # Small enough that the last block of a thread ends soon after that of the others.
        return int(np.clip(rows.n_entries // 4096, 1, 1024))


class CPUProduct:
    """A matrix and its blocks in the memory of the host.

    Parameters
    ----------
    rows : Rows
        The matrix.
    """

    def __init__(self, rows: Rows):
        self.rows = rows
        self._typed = {rows.data.dtype: rows}

    @property
    def degrees(self) -> Degrees:
        """Numbers of entries of the rows."""
        return Degrees(np, self.rows.lengths)

    def follow(self, partition: Partition) -> None:
        """Take the blocks of a plan."""
        self.partition = partition

    def __call__(self, X: Any, out: NDArray | None = None) -> NDArray:
        """Multiply; see `SpMMPlan.multiply`."""
        x = as_dense(X, self.rows.shape[1], self.rows.data.dtype)
        if x.dtype not in self._typed:
            self._typed[x.dtype] = self.rows.as_type(x.dtype)
        shape = (self.rows.shape[0], *np.shape(X)[1:])
        y = np.empty(shape, x.dtype) if out is None else checked_output(out, shape, x.dtype)
        flat = y.reshape(self.rows.shape[0], x.shape[1])
        multiply(self._typed[x.dtype], self.partition.order, self.partition.blocks, x, flat)
        return y

    def put(self, X: Any) -> Any:
        """Return X."""
        return X

    def get(self, X: Any) -> NDArray:
        """Return X."""
        return X


def checked_output(out: Any, shape: tuple[int, ...], dtype: Any) -> Any:
    """Return an array to write to, or raise unless the result fits."""
    if out.shape != shape or out.dtype != dtype or not out.flags.c_contiguous:
        layout = "" if out.flags.c_contiguous else ", not C-contiguous"
        raise ValueError(
            f"out must be a C-contiguous array of shape {shape} and type {np.dtype(dtype)}, got "
            f"shape {out.shape} and type {out.dtype}{layout}"
        )
    return out


def _cuda() -> Backend:
    from sklearn_mgk.propagation.cuda import CUDABackend

    return CUDABackend()


BACKENDS: dict[str, Callable[[], Backend]] = {"cpu": CPUBackend, "cuda": _cuda}
"""Makers of backends, by name."""
