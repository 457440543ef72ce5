# SPDX-License-Identifier: BSD-3-Clause
"""Kernel values already solved, shared by all kernels of the process.

Model selection evaluates one kernel on overlapping sets of graphs again and again: each fold of a
cross-validation, each value of C. Values are kept by settings of the kernel and content of the two
graphs, within a bound on the memory; the settings used longest ago go first.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from sklearn_mgk.blocks import index

_LOCK = threading.Lock()
_SQUARES: OrderedDict[Hashable, _Square] = OrderedDict()


@dataclass
class _Square:
    """Values between the graphs met so far under one setting; NaN where not solved.

    The last row and column belong to no graph and stay NaN.
    """

    number: dict[bytes, int] = field(default_factory=dict)
    values: NDArray = field(default_factory=lambda: np.full((1, 1), np.nan))

    def grow(self, graphs: list[bytes], most: int) -> None:
        """Give each graph a row, starting afresh if there would be more than ``most``."""
        new = [g for g in graphs if g not in self.number]
        if len(self.number) + len(new) > most:
            self.number, self.values, new = {}, np.full((1, 1), np.nan), graphs
        size, needed = len(self.values) - 1, len(self.number) + len(new)
        if needed > size:
            values = np.full((min(most, max(needed, size + size // 2)) + 1,) * 2, np.nan)
            values[:size, :size] = self.values[:size, :size]
            self.values = values
        self.number |= {g: len(self.number) + k for k, g in enumerate(new)}


def lookup(key: Hashable, rows: list[bytes], columns: list[bytes]) -> NDArray | None:
    """Values that are known between two lists of graphs.

    Parameters
    ----------
    key : hashable
        Settings of the kernel.
    rows, columns : list of bytes
        Fingerprints of the graphs.

    Returns
    -------
    ndarray of shape (n_rows, n_columns), float64, or None
        A copy, NaN where unknown. None where nothing is known under these settings.
    """

    def cells(number: dict[bytes, int]) -> tuple:
        return index(np, *(_run(_places(number, side)) for side in (rows, columns)))

    return _read(key, cells)


def lookup_diagonal(key: Hashable, prints: list[bytes]) -> NDArray | None:
    """Values that are known between each graph and itself, shape (n,); see `lookup`."""
    return _read(key, lambda number: (_places(number, prints),) * 2)


def store(
    key: Hashable,
    graphs: list[bytes],
    prints: tuple[list[bytes], list[bytes]],
    values: NDArray,
    limit: float,
) -> None:
    """Remember values between two lists of graphs.

    Parameters
    ----------
    key : hashable
        Settings of the kernel.
    graphs : list of bytes
        Fingerprints of all graphs of the call, each once: they get their places together.
    prints : pair of lists of bytes
        Fingerprints of the graphs along the rows and columns of ``values``, all among ``graphs``.
    values : ndarray of shape (n_rows, n_columns), float64
        Kernel values, NaN where there is none to keep.
    limit : float
        Memory that the cache may take [bytes]. Nothing is stored where the graphs of this call
        alone exceed it.
    """

    def write(square: _Square) -> None:
        i, j = (_run(_places(square.number, side)) for side in prints)
        square.values[index(np, i, j)] = values
        if prints[0] != prints[1]:
            square.values[index(np, j, i)] = values.T

    _store(key, graphs, write, limit)


def store_diagonal(key: Hashable, prints: list[bytes], values: NDArray, limit: float) -> None:
    """Remember values between each graph and itself, shape (n,); see `store`."""

    def write(square: _Square) -> None:
        places = _places(square.number, prints)
        square.values[places, places] = values

    _store(key, prints, write, limit)


def _store(key: Hashable, graphs: list[bytes], write: Callable, limit: float) -> None:
    """Give graphs their places and write; the settings used longest ago make room."""
    most = int(np.sqrt(limit / 8)) - 1  # one row belongs to no graph
    if len(graphs) > most:
        return
    with _LOCK:
        square = _SQUARES.setdefault(key, _Square())
        _SQUARES.move_to_end(key)
        square.grow(graphs, most)
        write(square)
        while sum(s.values.nbytes for s in _SQUARES.values()) > limit and len(_SQUARES) > 1:
            _SQUARES.popitem(last=False)


def _read(key: Hashable, places: Callable) -> NDArray | None:
    """Copy some values; the last row and column, which no graph owns, answer for unknown graphs."""
    with _LOCK:
        square = _SQUARES.get(key)
        if square is None:
            return None
        _SQUARES.move_to_end(key)
        return square.values[places(square.number)].copy()


def _places(number: dict[bytes, int], prints: list[bytes]) -> NDArray:
    return np.array([number.get(p, -1) for p in prints], np.int64)


def _run(places: NDArray) -> slice | NDArray:
    """Consecutive places as a slice, which is several times as fast."""
    if len(places) and places[0] >= 0 and (np.diff(places) == 1).all():
        return slice(places[0], places[-1] + 1)
    return places


def clear_cache() -> None:
    """Forget all kernel values kept in memory."""
    with _LOCK:
        _SQUARES.clear()


def cache_size() -> int:
    """Memory that kept kernel values take [bytes]."""
    with _LOCK:
        return sum(square.values.nbytes for square in _SQUARES.values())
