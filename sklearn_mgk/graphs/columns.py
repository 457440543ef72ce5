# SPDX-License-Identifier: BSD-3-Clause
"""Columns: one attribute of many nodes or edges, packed into arrays.

A column with ``n`` rows is one of

- an ndarray of shape (n,): booleans, int64, float64 or strings (kind ``"U"``);
- an ndarray of shape (n, d): numeric vectors of a fixed length;
- a `ListColumn`: lists of varying length, of numbers or strings.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from numbers import Integral, Real
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

# The first entry that a type is a subclass of names its family. bool is a subclass of int, so it
# stands first.
_FAMILIES = (
    ((bool, np.bool_), "number", np.bool_),
    ((Integral,), "number", np.int64),
    ((Real,), "number", np.float64),
    ((str,), "string", np.str_),
    ((list, tuple, np.ndarray), "list", None),
)
_DTYPES = {"b": np.bool_, "i": np.int64, "u": np.int64, "f": np.float64, "U": np.str_}


class ColumnError(ValueError):
    """Values that cannot become a column; `row` says where, `problem` why."""

    def __init__(self, row: int, problem: str):
        super().__init__(row, problem)
        self.row = row
        self.problem = problem

    def __str__(self) -> str:
        """Return the message."""
        return f"row {self.row} {self.problem}"


@dataclass(frozen=True, eq=False)
class ListColumn:
    """Lists of varying length, one a row, stored end to end.

    Parameters
    ----------
    values : ndarray of shape (n_values,)
        The elements of all lists: booleans, int64, float64 or strings.
    ptr : ndarray of shape (n_rows + 1,), int64
        Row i holds ``values[ptr[i]:ptr[i + 1]]``.

    Examples
    --------
    >>> rings = ListColumn.from_rows([[6], [], [5, 6]])
    >>> len(rings), rings[2].tolist()
    (3, [5, 6])
    """

    values: NDArray
    ptr: NDArray[np.int64]

    def __post_init__(self) -> None:
        """Check that ptr cuts the values into rows."""
        values, ptr = as_column(self.values), np.asarray(self.ptr, dtype=np.int64)
        if isinstance(values, ListColumn) or values.ndim != 1:
            raise ValueError("the values of a ListColumn must be numbers or strings, not lists")
        check_ptr(ptr, len(values), "ListColumn.ptr")
        object.__setattr__(self, "values", values)
        object.__setattr__(self, "ptr", ptr)

    @classmethod
    def from_rows(cls, rows: Iterable[Sequence]) -> ListColumn:
        """Pack Python lists; `ColumnError` names the row of an element of another type."""
        rows = list(rows)
        ptr = np.cumsum([0, *map(len, rows)], dtype=np.int64)
        try:
            values = as_column([value for row in rows for value in row])
        except ColumnError as error:
            row = int(np.searchsorted(ptr, error.row, side="right")) - 1
            problem = f"holds an element that {error.problem}".replace("row 0", "the first element")
            raise ColumnError(row, problem) from None
        if isinstance(values, ListColumn) or values.ndim != 1:
            raise ColumnError(
                0, "holds lists inside lists; an element must be a number or a string"
            )
        return cls(values, ptr)

    def __len__(self) -> int:
        """Return the number of rows."""
        return len(self.ptr) - 1

    def __getitem__(self, row: int) -> NDArray:
        """Return the elements of one row."""
        if not -len(self) <= row < len(self):
            raise IndexError(f"row {row} of a ListColumn with {len(self)} rows")
        row %= len(self)
        return self.values[self.ptr[row] : self.ptr[row + 1]]

    @property
    def lengths(self) -> NDArray[np.int64]:
        """Number of elements of each row, shape (n_rows,)."""
        return np.diff(self.ptr)


Column = NDArray | ListColumn


def check_ptr(ptr: NDArray[np.int64], n_rows: int, name: str) -> None:
    """Raise a ValueError unless ptr cuts ``n_rows`` rows into consecutive groups."""
    if ptr.ndim != 1 or len(ptr) == 0:
        raise ValueError(f"{name} must be one-dimensional and start with 0, got shape {ptr.shape}")
    if ptr[0] != 0 or ptr[-1] != n_rows or (np.diff(ptr) < 0).any():
        raise ValueError(f"{name} must rise from 0 to {n_rows}, got {ptr}")


def gather(
    ptr: NDArray[np.int64], groups: ArrayLike
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Find the rows of the chosen groups of consecutive rows.

    Parameters
    ----------
    ptr : ndarray of shape (n_groups + 1,), int64
        Group g holds the rows ``ptr[g]`` to ``ptr[g + 1] - 1``.
    groups : array-like of int
        The groups to take, in order.

    Returns
    -------
    rows : ndarray of int64
        The rows of these groups, one group after the other.
    new_ptr : ndarray of shape (len(groups) + 1,), int64
        Where each chosen group starts in ``rows``.
    """
    start, stop = ptr[:-1][groups], ptr[1:][groups]
    new_ptr = np.concatenate(([0], np.cumsum(stop - start, dtype=np.int64)))
    return np.repeat(start - new_ptr[:-1], stop - start) + np.arange(new_ptr[-1]), new_ptr


def as_column(values: Any) -> Column:
    """Pack any sequence of scalars, strings, vectors or lists into a column.

    Numbers of several types are promoted (bool, int64, float64). Rows that are numeric sequences of
    one length become vectors; other sequences become a `ListColumn`. No rows at all give an empty
    float64 column.

    Parameters
    ----------
    values : sequence, ndarray, pandas Series or Categorical, or ListColumn
        One value a row.

    Returns
    -------
    ndarray of shape (n,) or (n, d), or ListColumn
        The column.

    Raises
    ------
    ColumnError
        A ValueError: a row is missing (None), is of another type than the first, or is an object.

    Examples
    --------
    >>> as_column([True, 2]), as_column(["C", "Cl"]), as_column([(0, 1), (2, 3.5)]).shape
    (array([1, 2]), array(['C', 'Cl'], dtype='<U2'), (2, 2))
    >>> as_column(["C", None])
    Traceback (most recent call last):
    ...
    sklearn_mgk.graphs.columns.ColumnError: row 1 is missing (None)
    """
    if isinstance(values, ListColumn):
        return values
    if not isinstance(values, (list, tuple)):
        values = np.asarray(values)
        if values.ndim == 0:
            raise TypeError(f"a column needs one value a row, got {values!r}")
        if values.dtype.kind in _DTYPES and values.ndim == 1:
            return _cast(values)
        if values.dtype.kind in "biuf" and values.ndim == 2:
            return _cast(values)
        values = values.tolist()
    if len(values) == 0:
        return np.empty(0)
    family = _common_family(values)
    if family != "list":
        return _pack(values, family)
    return _pack_sequences(values)


def _cast(array: NDArray) -> NDArray:
    """Return the array in the dtype that columns of its kind have."""
    if array.dtype.kind == "u" and array.size and array.max() > np.iinfo(np.int64).max:
        row = int(np.argwhere(array == array.max())[0, 0])
        raise ColumnError(row, f"is {array.max()}, too large for int64: pass floats or strings")
    return np.asarray(array, dtype=_DTYPES[array.dtype.kind])


def _family(kind: type) -> tuple[str | None, type | None]:
    """Return the family of a Python type and its dtype, (None, None) for objects."""
    return next((entry[1:] for entry in _FAMILIES if issubclass(kind, entry[0])), (None, None))


def _common_family(values: Sequence) -> str:
    """Return the family that all values belong to, or raise naming the first that does not."""
    families = {kind: _family(kind)[0] for kind in set(map(type, values))}
    if len(set(families.values())) == 1 and None not in families.values():
        return families[type(values[0])]
    found = [families[type(value)] for value in values]
    if None in found:
        row = found.index(None)
        raise ColumnError(row, _describe_object(values[row]))
    row = next(i for i, family in enumerate(found) if family != found[0])
    first, other = _shorten(values[0]), _shorten(values[row])
    raise ColumnError(
        row, f"is a {found[row]} ({other}) while row 0 is a {found[0]} ({first}): use one type"
    )


def _describe_object(value: Any) -> str:
    """Say why a value fits no column."""
    if value is None:
        return "is missing (None)"
    return (
        f"is a {type(value).__name__} ({_shorten(value)}); "
        "an attribute must be a number, a string, or a list of either"
    )


def _shorten(value: Any) -> str:
    """Return the repr, cut to a readable length."""
    text = repr(value)
    return text if len(text) <= 40 else text[:37] + "..."


def _pack(values: Sequence, family: str) -> NDArray:
    """Return numbers or strings as an array."""
    if family == "string":
        return np.array(values, dtype=np.str_)
    dtype = np.result_type(*{_family(kind)[1] for kind in set(map(type, values))})
    try:
        return np.array(values, dtype=dtype)
    except OverflowError:
        limit = np.iinfo(np.int64).max
        row = next(i for i, value in enumerate(values) if not -limit - 1 <= value <= limit)
        raise ColumnError(
            row, f"is {values[row]}, too large for int64: pass floats or strings"
        ) from None


def _pack_sequences(values: Sequence) -> Column:
    """Return sequences as vectors if they are numeric and of one length, else as lists."""
    for row, value in enumerate(values):
        if isinstance(value, np.ndarray) and value.ndim != 1:
            raise ColumnError(row, f"is an array of shape {value.shape}; use one dimension")
    lists = ListColumn.from_rows(values)
    length = len(values[0])
    if length and (lists.lengths == length).all() and lists.values.dtype.kind != "U":
        return lists.values.reshape(len(lists), length)
    return lists


def as_lists(column: Column) -> ListColumn:
    """View a column of vectors as lists; a `ListColumn` is returned itself."""
    if isinstance(column, ListColumn):
        return column
    if column.ndim != 2:
        raise ValueError(f"a column of single values ({column.dtype}) holds no lists")
    n_rows, length = column.shape
    return ListColumn(column.reshape(-1), np.arange(n_rows + 1, dtype=np.int64) * length)


def n_rows(column: Column) -> int:
    """Return the number of rows of a column."""
    return len(column)


def take(column: Column, rows: ArrayLike) -> Column:
    """Return the chosen rows of a column, in the order given."""
    if isinstance(column, ListColumn):
        positions, ptr = gather(column.ptr, rows)
        return ListColumn(column.values[positions], ptr)
    return column[rows]


def concatenate(columns: Sequence[Column]) -> Column:
    """Join columns end to end.

    Numbers are promoted (bool, int64, float64); vectors of unequal lengths, or vectors and lists,
    become lists. Columns without rows adapt to the others.

    Parameters
    ----------
    columns : sequence of columns
        At least one.

    Returns
    -------
    ndarray or ListColumn
        The column of all rows.

    Raises
    ------
    ColumnError
        A ValueError: the columns hold different kinds of values; `row` is the first row of the
        first column that differs.
    """
    filled = [column for column in columns if len(column)] or list(columns[:1])
    kinds = [_kind(column) for column in filled]
    first = next((kind for kind in kinds if kind != "empty lists"), kinds[0])
    accepted = {first, "empty lists"} if "lists" in first else {first}
    odd = next((i for i, kind in enumerate(kinds) if kind not in accepted), None)
    if odd is not None:
        row = sum(map(len, filled[:odd]))
        raise ColumnError(row, f"is one of {kinds[odd]} while others are {first}: use one type")
    shapes = {column.shape[1:] if isinstance(column, np.ndarray) else None for column in filled}
    if len(shapes) == 1 and None not in shapes:
        return np.concatenate(filled)
    return _concatenate_lists([as_lists(column) for column in filled])


def _kind(column: Column) -> str:
    """Name what the rows of a column are."""
    if isinstance(column, ListColumn) and len(column.values) == 0:
        return "empty lists"
    values = column.values if isinstance(column, ListColumn) else column
    content = "strings" if values.dtype.kind == "U" else "numbers"
    return content if values is column and values.ndim == 1 else f"lists of {content}"


def _concatenate_lists(columns: Sequence[ListColumn]) -> ListColumn:
    """Join list columns; those without values adapt to the others."""
    values = [column.values for column in columns if len(column.values)] or [columns[0].values]
    lengths = np.concatenate([column.lengths for column in columns])
    return ListColumn(np.concatenate(values), np.concatenate(([0], np.cumsum(lengths))))


def factorize(column: Column) -> tuple[NDArray[np.int32], Column]:
    """Return numbers for the distinct rows of a column.

    The numbers follow from the content alone: scalars and vectors are sorted (vectors
    lexicographically), lists first by length. -0.0 equals 0.0.

    Parameters
    ----------
    column : ndarray or ListColumn
        A column of n rows.

    Returns
    -------
    codes : ndarray of shape (n,), int32
        The number of each row.
    distinct : ndarray or ListColumn
        The distinct rows, so that ``take(distinct, codes)`` is the column.

    Examples
    --------
    >>> codes, distinct = factorize(np.array(["O", "C", "C"]))
    >>> codes.tolist(), distinct.tolist()
    ([1, 0, 0], ['C', 'O'])
    """
    if isinstance(column, ListColumn):
        return _factorize_lists(column)
    if column.dtype.kind == "f":
        column = column + 0.0
    if column.ndim == 1:
        distinct, codes = np.unique(column, return_inverse=True)
        return codes.astype(np.int32), distinct
    codes, first = _factorize_rows(column)
    return codes, column[first]


def _factorize_rows(matrix: NDArray) -> tuple[NDArray[np.int32], NDArray[np.int64]]:
    """Return numbers for the distinct rows, in lexicographic order, and where each occurs."""
    n, width = matrix.shape
    order = np.lexsort(matrix.T[::-1]) if width else np.arange(n)
    new = np.ones(n, dtype=bool)
    new[1:] = (matrix[order[1:]] != matrix[order[:-1]]).any(axis=1)
    codes = np.empty(n, dtype=np.int32)
    codes[order] = np.cumsum(new) - 1
    return codes, order[new]


def _factorize_lists(column: ListColumn) -> tuple[NDArray[np.int32], ListColumn]:
    """Return numbers for the distinct lists; those of one length form a matrix of value codes."""
    value_codes, _ = factorize(column.values)
    codes, firsts, n_distinct = np.empty(len(column), dtype=np.int32), [], 0
    for length in np.unique(column.lengths):
        rows = np.flatnonzero(column.lengths == length)
        matrix = value_codes[column.ptr[rows, None] + np.arange(length)]
        group_codes, first = _factorize_rows(matrix)
        codes[rows] = group_codes + n_distinct
        firsts.append(rows[first])
        n_distinct += len(first)
    return codes, take(column, np.concatenate(firsts or [np.empty(0, dtype=np.int64)]))


_SEEDS = np.array([0x9E3779B97F4A7C15, 0xC2B2AE3D27D4EB4F], dtype=np.uint64)
_SEED_OF_KIND = {"number": np.uint64(1), "string": np.uint64(2), "list": np.uint64(3)}


def digest(column: Column) -> NDArray[np.uint64]:
    """Hash each row by its content.

    Equal labels hash equally in every batch and process: ``True``, ``1`` and ``1.0`` are one label,
    the width of the string dtype does not matter, and a vector equals the list of its elements.

    Parameters
    ----------
    column : ndarray or ListColumn
        A column of n rows.

    Returns
    -------
    ndarray of shape (n, 2), uint64
        128 bits for each row. Not a cryptographic hash.
    """
    if isinstance(column, ListColumn) or column.ndim == 2:
        lists = as_lists(column)
        return _digest_sequences(digest(lists.values), lists.ptr, _SEED_OF_KIND["list"])
    if column.dtype.kind == "U":
        points, ptr = _code_points(column)
        return _digest_sequences(_digest_words(points), ptr, _SEED_OF_KIND["string"])
    rounded = column.astype(np.float64) + 0.0
    with np.errstate(invalid="ignore"):
        rest = column.astype(np.int64) - rounded.astype(np.int64)
    rest = np.zeros_like(rest) if column.dtype.kind == "f" else rest
    return _digest_words(rounded.view(np.uint64), rest.view(np.uint64), _SEED_OF_KIND["number"])


def _mix(words: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """Scramble 64-bit words (the finaliser of SplitMix64, doi:10.1145/2660193.2660195)."""
    words = (words ^ (words >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    words = (words ^ (words >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return words ^ (words >> np.uint64(31))


def _digest_words(*words: NDArray[np.uint64] | np.uint64) -> NDArray[np.uint64]:
    """Hash rows of 64-bit words, given word by word, to (n, 2)."""
    state = _mix(words[0][:, None] + _SEEDS)
    for word in words[1:]:
        state = _mix(state + _mix(np.atleast_1d(word)[:, None] + _SEEDS))
    return state


def _digest_sequences(
    elements: NDArray[np.uint64], ptr: NDArray[np.int64], seed: np.uint64
) -> NDArray[np.uint64]:
    """Hash sequences from the hashes of their elements, each mixed with its position."""
    lengths = np.diff(ptr)
    position = np.arange(len(elements)) - np.repeat(ptr[:-1], lengths)
    placed = _mix(elements + _mix(position.astype(np.uint64)[:, None] + _SEEDS))
    total = np.zeros((len(elements) + 1, 2), dtype=np.uint64)
    np.cumsum(placed, axis=0, out=total[1:])
    sums = total[ptr[1:]] - total[ptr[:-1]]
    return _mix(sums + _mix(lengths.astype(np.uint64)[:, None] * _SEEDS + seed))


def _code_points(strings: NDArray[np.str_]) -> tuple[NDArray[np.uint64], NDArray[np.int64]]:
    """Return the characters of all strings, end to end, and where each string starts."""
    strings = np.ascontiguousarray(strings)
    points = strings.view(np.uint32).reshape(len(strings), strings.dtype.itemsize // 4)
    used = np.arange(points.shape[1]) < np.strings.str_len(strings)[:, None]
    ptr = np.concatenate(([0], np.cumsum(used.sum(axis=1), dtype=np.int64)))
    return points[used].astype(np.uint64), ptr
