# SPDX-License-Identifier: BSD-3-Clause
"""Where products are computed: what the CPU and CUDA do alike, and the CPU."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from sklearn_mgk.propagation.cpu import multiply
from sklearn_mgk.propagation.matrices import Rows, as_dense
from sklearn_mgk.propagation.partition import Partition, PlanSummary, equal_rows, imbalance


class Product(Protocol):
    """A matrix where it is computed with; `follow` makes it ready to multiply."""

    def follow(
        self, engine: str, n_blocks: int | None, make: Callable[[str, int], Partition]
    ) -> None:
        """Plan, by oneself or by a function that makes partitions on the host."""

    @property
    def summary(self) -> PlanSummary:
        """What the plan came to."""

    def __call__(self, X: Any, out: Any) -> Any:
        """Multiply, into an array given or None; see `SpMMPlan.multiply`."""

    def put(self, X: Any) -> Any:
        """Return X where this product computes."""

    def get(self, X: Any) -> NDArray:
        """Return X as an array of the host."""


class CPUProduct:
    """A matrix and its blocks in the memory of the host: vector loops in plain threads.

    Parameters
    ----------
    rows : Rows
        The matrix.
    """

    def __init__(self, rows: Rows):
        self.rows = rows
        self._typed = {rows.data.dtype: rows}

    def follow(
        self, engine: str, n_blocks: int | None, make: Callable[[str, int], Partition]
    ) -> None:
        """Make blocks; "auto" means the rows as they are."""
        begin = time.perf_counter()
        # Small enough that the last block of a thread ends soon after that of the others.
        n_blocks = n_blocks or int(np.clip(self.rows.n_entries // 4096, 1, 1024))
        self._engine = "rows" if engine == "auto" else engine
        self.partition = make(self._engine, n_blocks)
        self._seconds = time.perf_counter() - begin

    @property
    def summary(self) -> PlanSummary:
        """What the plan came to."""
        partition = self.partition
        return PlanSummary(
            engine=self._engine,
            n_blocks=len(partition.dense),
            n_dense=int(partition.dense.sum()),
            threshold=partition.threshold,
            imbalance=imbalance(partition.work),
            imbalance_without=equal_rows(self.rows, len(partition.dense)),
            seconds=self._seconds,
        )

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


def _cuda(rows: Rows) -> Product:
    from sklearn_mgk.propagation.cuda import DeviceProduct

    return DeviceProduct(rows)


BACKENDS: dict[str, Callable[[Rows], Product]] = {"cpu": CPUProduct, "cuda": _cuda}
"""Functions that bring a matrix to where it is computed with, by name."""
