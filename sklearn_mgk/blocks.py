# SPDX-License-Identifier: BSD-3-Clause
"""Sides of a matrix, and the blocks that it is solved in.

Cells of a block are arrays of NumPy or CuPy, as the backend wants them, and so is the matrix where
it finds room there: making pairs and putting millions of values in their places is work for the
device.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from itertools import pairwise
from types import ModuleType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sklearn_mgk.device import to_host
from sklearn_mgk.identity import unique


@dataclass(frozen=True)
class Side:
    """The graphs along one side of a matrix.

    Attributes
    ----------
    graphs : ndarray of shape (n,), int64
        Graph numbers in the batch of the problem.
    first : ndarray of shape (n_unique,), int64
        Places along the side where each distinct graph comes first.
    inverse : ndarray of shape (n,), int64
        Number of the distinct graph at each place.
    prints : list of bytes
        Fingerprints of the distinct graphs.
    name : str
        What the graphs are called in messages, such as ``"X"``.
    """

    graphs: NDArray
    first: NDArray
    inverse: NDArray
    prints: list[bytes]
    name: str

    @classmethod
    def of(cls, graphs: NDArray, prints: list[bytes], name: str) -> Side:
        """Find the distinct graphs; ``prints`` are their fingerprints."""
        first, inverse = unique(prints)
        return cls(graphs, first, inverse, [prints[k] for k in first], name)

    @classmethod
    def of_all(cls, graphs: NDArray, name: str) -> Side:
        """Take every graph as distinct."""
        places = np.arange(len(graphs))
        return cls(graphs, places, places, [], name)

    @property
    def representatives(self) -> NDArray:
        """Graph number of each distinct graph."""
        return self.graphs[self.first]

    @property
    def all_distinct(self) -> bool:
        """Whether no graph comes twice."""
        return len(self.first) == len(self.graphs)

    @property
    def repeated(self) -> tuple[NDArray, NDArray]:
        """Places of graphs that came before, and where they came first."""
        is_repeated = np.ones(len(self.graphs), bool)
        is_repeated[self.first] = False
        repeated = np.flatnonzero(is_repeated)
        return repeated, self.first[self.inverse[repeated]]

    def places(self, lo: int, hi: int) -> slice | NDArray:
        """Places along the side of some distinct graphs, as an index."""
        return slice(lo, hi) if self.all_distinct else self.first[lo:hi]


@dataclass(frozen=True)
class Matrix:
    """A matrix between all graphs of two sides while it is filled in.

    Attributes
    ----------
    xp : module
        NumPy or CuPy, whose array it is.
    array : array of shape (n_rows, n_columns, ...)
        The numbers.
    """

    xp: ModuleType
    array: Any

    @classmethod
    def of(cls, xp: ModuleType, room: float, shape: tuple[int, ...]) -> Matrix:
        """Make a matrix of zeros, by xp if it has no more bytes than there is room."""
        if 8 * math.prod(shape) <= room:
            try:
                return cls(xp, xp.zeros(shape))
            except MemoryError:  # in pieces that are too small
                pass
        return cls(np, np.zeros(shape))

    def first(self, n: int) -> Matrix:
        """Return the first layers of a matrix with a third axis; a view."""
        return Matrix(self.xp, self.array[:, :, :n])

    def write(self, found: Any, i: slice | NDArray, j: slice | NDArray) -> None:
        """Write an array, on the host or the device, to rows i and columns j."""
        found = to_host(found) if self.xp is np else self.xp.asarray(found)
        self.array[index(self.xp, i, j)] = found

    def read(self, i: slice | NDArray, j: slice | NDArray) -> NDArray:
        """Return rows i and columns j, on the host."""
        return to_host(self.array[index(self.xp, i, j)])

    def copy_duplicates(self, rows: Side, columns: Side) -> None:
        """Copy the rows and columns of distinct graphs to the places of their duplicates."""
        if not columns.all_distinct:
            repeated, first = map(self.xp.asarray, columns.repeated)
            self.array[:, repeated] = self.array[:, first]
        if not rows.all_distinct:
            repeated, first = map(self.xp.asarray, rows.repeated)
            self.array[repeated] = self.array[first]


@dataclass(frozen=True)
class Block:
    """Some rows of a matrix between distinct graphs; where it is symmetric, from the diagonal on.

    Attributes
    ----------
    rows, columns : Side
        The graphs along the sides of the matrix.
    lo, hi : int
        Rows.
    symmetric : bool
        Whether the columns before `lo` are left out, and the block is mirrored.
    known : ndarray of shape (hi - lo, n_columns) or None
        Values known before, NaN where unknown; None where nothing is known.
    """

    rows: Side
    columns: Side
    lo: int
    hi: int
    symmetric: bool
    known: NDArray | None = None

    def halves(self) -> list[Block]:
        """Cut the block in two, of which nothing is known; a single row stays whole."""
        cuts = sorted({self.lo, (self.lo + self.hi) // 2, self.hi})
        return [replace(self, lo=lo, hi=hi, known=None) for lo, hi in pairwise(cuts)]

    @property
    def left(self) -> int:
        """First column."""
        return self.lo if self.symmetric else 0

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and columns."""
        return self.hi - self.lo, len(self.columns.first) - self.left

    @property
    def prints(self) -> tuple[list[bytes], list[bytes]]:
        """Fingerprints of the graphs along both sides."""
        return self.rows.prints[self.lo : self.hi], self.columns.prints[self.left :]

    @property
    def n_unknown(self) -> int:
        """Number of pairs to solve."""
        n, m = self.shape
        if self.known is not None:
            unknown = np.isnan(self.known)
            return int(np.count_nonzero(np.triu(unknown) if self.symmetric else unknown))
        return n * m - n * (n - 1) // 2 if self.symmetric else n * m

    def cells(self, xp: ModuleType) -> tuple[Any, Any]:
        """Rows and columns of the pairs to solve, counted within the block; arrays of xp."""
        if self.known is None:
            unknown = xp.ones(self.shape, bool)
        else:
            unknown = xp.isnan(xp.asarray(self.known))
        if self.symmetric:
            unknown &= _upper(xp, *self.shape)
        return xp.nonzero(unknown)

    def graphs(self, xp: ModuleType, cells: tuple[Any, Any]) -> Any:
        """Pairs of graphs in some cells, shape (n_pairs, 2)."""
        sides = self.rows.representatives[self.lo :], self.columns.representatives[self.left :]
        return xp.stack([xp.asarray(side)[at] for side, at in zip(sides, cells, strict=True)]).T

    def lay_out(self, xp: ModuleType, cells: tuple[Any, Any], solved: Any) -> Any:
        """Put values (or derivatives) into their cells; the square at the diagonal is mirrored."""
        if self.known is None:
            found = xp.zeros(self.shape + solved.shape[1:])
        else:
            found = xp.asarray(self.known)
        found[cells] = solved
        if self.symmetric:
            n = self.hi - self.lo
            square, upper = found[:, :n], _upper(xp, n, n)
            upper = upper.reshape(n, n, *(1,) * (found.ndim - 2))
            found[:, :n] = xp.where(upper, square, square.swapaxes(0, 1))
        return found

    def write(self, found: Any, matrix: Matrix) -> None:
        """Write what `lay_out` gave to the matrix of all graphs, and mirror it below the block."""
        n, end = self.hi - self.lo, len(self.columns.first)
        i, j = self.rows.places(self.lo, self.hi), self.columns.places(self.left, end)
        matrix.write(found, i, j)
        if self.symmetric and self.hi < end:
            below = self.columns.places(self.hi, end)
            matrix.write(found[:, n:].swapaxes(0, 1), below, i)

    def read(self, matrix: Matrix, without: NDArray) -> NDArray:
        """Read the block from the matrix of all graphs, NaN in some cells, shape (n, 2)."""
        end = len(self.columns.first)
        i, j = self.rows.places(self.lo, self.hi), self.columns.places(self.left, end)
        found = matrix.read(i, j)
        if len(without) == 0:
            return found
        found, (i, j) = found.copy(), without.T
        found[i, j] = np.nan
        if self.symmetric:
            inside = j < self.hi - self.lo
            found[j[inside], i[inside]] = np.nan
        return found


def cut(rows: Side, columns: Side, symmetric: bool, n_pairs: int) -> list[Block]:
    """Cut a matrix into blocks of about the same number of pairs, and at least one row."""
    n, m = len(rows.first), len(columns.first)
    blocks, lo = [], 0
    while lo < n:
        hi = min(lo + max(1, n_pairs // (m - lo if symmetric else m)), n)
        blocks.append(Block(rows, columns, lo, hi, symmetric))
        lo = hi
    return blocks


def index(xp: ModuleType, i: slice | NDArray, j: slice | NDArray) -> tuple:
    """Index of all cells between some rows and some columns of an array of xp."""
    i, j = (side if isinstance(side, slice) else xp.asarray(side) for side in (i, j))
    return (i, j) if isinstance(i, slice) or isinstance(j, slice) else xp.ix_(i, j)


def _upper(xp: ModuleType, n: int, m: int) -> Any:
    """Mask of the upper triangle."""
    return xp.arange(m) >= xp.arange(n)[:, None]
