# SPDX-License-Identifier: BSD-3-Clause
"""Columns: packing, selection, numbering and hashing of attribute values."""

from fractions import Fraction

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sklearn_mgk.graphs.columns import (
    ColumnError,
    ListColumn,
    as_column,
    as_lists,
    concatenate,
    digest,
    factorize,
    gather,
    n_rows,
    take,
)

numbers = st.integers(-3, 3) | st.sampled_from([-0.0, 0.5, 1e300])
strings = st.text(alphabet="ab\u00e9", max_size=3)
vectors = st.tuples(numbers, numbers)
lists = st.lists(numbers, max_size=3) | st.just([])
rows = st.one_of(*(st.lists(kind, min_size=1, max_size=12) for kind in (numbers, strings, vectors)))
list_rows = st.lists(lists, min_size=1, max_size=12)


def plain(column):
    """Return the rows of a column as Python values that compare by content."""
    values = [column[i].tolist() for i in range(len(column))]
    return [tuple(value) if isinstance(value, list) else value for value in values]


@pytest.mark.parametrize(
    ("values", "dtype", "expected"),
    [
        ([True, False], "bool", [True, False]),
        ([True, 2], "int64", [1, 2]),
        ([1, 2.5], "float64", [1.0, 2.5]),
        ([np.float32(0.5), np.int8(1)], "float64", [0.5, 1.0]),
        ([Fraction(1, 2), 1], "float64", [0.5, 1.0]),
        (np.array([1, 2], dtype=np.float32), "float64", [1.0, 2.0]),
        (np.array([1, 2], dtype=np.uint8), "int64", [1, 2]),
        (["C", "Cl"], "<U2", ["C", "Cl"]),
        (np.array(["C", "Cl"], dtype=object), "<U2", ["C", "Cl"]),
        (pd.Series(["C", "Cl"]), "<U2", ["C", "Cl"]),
        (pd.Categorical(["C", "Cl", "C"]), "<U2", ["C", "Cl", "C"]),
        (pd.Series([1, 2], dtype="Int64"), "int64", [1, 2]),
        ([(0, 1), (2, 3.5)], "float64", [[0.0, 1.0], [2.0, 3.5]]),
        ([np.array([1, 2]), [3, 4]], "int64", [[1, 2], [3, 4]]),
        (np.eye(2, dtype=bool), "bool", [[True, False], [False, True]]),
        ([], "float64", []),
    ],
)
def test_as_column_packs_scalars_strings_and_vectors(values, dtype, expected):
    column = as_column(values)
    assert column.dtype == np.dtype(dtype)
    assert column.tolist() == expected


@pytest.mark.parametrize(
    ("rows", "values", "ptr"),
    [
        ([[6], [], [5, 6]], [6, 5, 6], [0, 1, 1, 3]),
        ([["a"], ["b"]], ["a", "b"], [0, 1, 2]),
        ([[], []], [], [0, 0, 0]),
        ([(1,), np.array([0.5, 2])], [1.0, 0.5, 2.0], [0, 1, 3]),
    ],
)
def test_as_column_packs_lists(rows, values, ptr):
    column = as_column(rows)
    assert column.values.tolist() == values
    assert column.ptr.tolist() == ptr
    assert as_column(column) is column


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ([1, 2, "C"], r"row 2 is a string \('C'\) while row 0 is a number \(1\): use one type"),
        (["C", None], r"row 1 is missing \(None\)"),
        ([1, {"a": 1}], r"row 1 is a dict \(\{'a': 1\}\); an attribute must be a number, a string"),
        ([[1], 2], r"row 1 is a number \(2\) while row 0 is a list"),
        (
            [[1], [2, "a"]],
            r"row 1 holds an element that is a string \('a'\) while the first element",
        ),
        ([[1], [None]], r"row 1 holds an element that is missing"),
        ([[[1]], [[2]]], "holds lists inside lists"),
        ([np.eye(2), np.eye(2)], r"row 0 is an array of shape \(2, 2\)"),
        ([1, 2**70], "row 1 is 1180591620717411303424, too large for int64"),
        (np.array([1, 2**63], dtype=np.uint64), "row 1 is 9223372036854775808, too large"),
        ([1j], "row 0 is a complex"),
        ([pd.NA], "row 0 is a NAType"),
    ],
)
def test_as_column_says_which_row_is_wrong(values, message):
    with pytest.raises(ColumnError, match=message):
        as_column(values)


def test_a_single_value_is_no_column():
    with pytest.raises(TypeError, match="needs one value a row, got"):
        as_column(3.0)


@pytest.mark.parametrize("ptr", [[0, 3], [1, 2], [0, 2, 1, 2]])
def test_list_column_checks_its_ptr(ptr):
    with pytest.raises(ValueError, match=r"ListColumn.ptr must rise from 0 to 2"):
        ListColumn(np.array([1, 2]), np.array(ptr))


def test_list_column_rows():
    column = ListColumn.from_rows([[1, 2], [3]])
    assert column[-1].tolist() == [3]
    assert column.lengths.tolist() == [2, 1]
    assert n_rows(column) == 2
    with pytest.raises(IndexError, match="row 2 of a ListColumn with 2 rows"):
        column[2]


def test_gather_finds_the_rows_of_groups():
    rows, ptr = gather(np.array([0, 2, 2, 5]), [2, 1, 0, 2])
    assert rows.tolist() == [2, 3, 4, 0, 1, 2, 3, 4]
    assert ptr.tolist() == [0, 3, 3, 5, 8]


@given(rows | list_rows, st.data())
def test_take_is_row_by_row(values, data):
    column = as_column(values)
    chosen = data.draw(st.lists(st.integers(0, len(values) - 1), max_size=8))
    assert plain(take(column, np.array(chosen, dtype=int))) == [plain(column)[i] for i in chosen]


@given(rows | list_rows)
def test_factorize_numbers_the_distinct_rows(values):
    column = as_column(values)
    codes, distinct = factorize(column)
    assert codes.dtype == np.int32
    assert plain(take(distinct, codes)) == plain(column)
    assert len(set(plain(distinct))) == len(distinct) == len(set(plain(column)))


@given(rows | list_rows, st.randoms())
def test_factorize_depends_on_content_alone(values, random):
    column = as_column(values)
    order = list(range(len(values)))
    random.shuffle(order)
    codes, distinct = factorize(column)
    shuffled_codes, shuffled_distinct = factorize(take(column, np.array(order)))
    assert plain(shuffled_distinct) == plain(distinct)
    assert shuffled_codes.tolist() == codes[order].tolist()


@pytest.mark.parametrize(
    ("values", "codes", "distinct"),
    [
        ([2.0, -0.0, 0.0], [1, 0, 0], [0.0, 2.0]),
        (["O", "C", "C"], [1, 0, 0], ["C", "O"]),
        ([(1, 2), (0, 5), (1, 2)], [1, 0, 1], [(0, 5), (1, 2)]),
        ([[5, 6], [], [7], [5, 6]], [2, 0, 1, 2], [(), (7,), (5, 6)]),
    ],
)
def test_factorize_sorts(values, codes, distinct):
    found_codes, found = factorize(as_column(values))
    assert found_codes.tolist() == codes
    assert plain(found) == distinct


@given(rows | list_rows, rows | list_rows)
def test_digests_are_equal_where_the_rows_are(first, second):
    first, second = as_column(first), as_column(second)
    labels = [(kind(c), row) for c in (first, second) for row in plain(c)]
    hashes = [tuple(pair) for c in (first, second) for pair in digest(c).tolist()]
    for label, own in zip(labels, hashes, strict=True):
        same = [other for other, found in zip(labels, hashes, strict=True) if found == own]
        assert set(same) == {label}


def kind(column):
    """Empty lists of strings and of numbers are one label, as are a vector and a list."""
    values = column.values if isinstance(column, ListColumn) else column
    sequence = isinstance(column, ListColumn) or column.ndim == 2
    return sequence, values.dtype.kind == "U"


@pytest.mark.parametrize(
    ("first", "second"),
    [
        (np.array(["C", "O"]), np.array(["C", "O"], dtype="<U20")),
        (np.array([0, 1]), np.array([-0.0, 1.0])),
        (np.array([0, 1]), np.array([False, True])),
        (as_column([(1, 2), (3, 4)]), ListColumn.from_rows([[1, 2], [3, 4]])),
        (np.array([1, 2], dtype=np.int32), np.array([1, 2])),
    ],
)
def test_digest_does_not_depend_on_the_dtype(first, second):
    np.testing.assert_array_equal(digest(first), digest(second))


@pytest.mark.parametrize(
    "labels",
    [
        np.array([2**53, 2**53 + 1, 2**62, 2**62 + 1, -(2**62) - 1]),
        np.array(["ab", "ba", "a", "", "aab"]),
        ListColumn.from_rows([[1, 2], [2, 1], [1], [], [0], [0, 0]]),
    ],
)
def test_digest_tells_labels_apart(labels):
    assert len(np.unique(digest(labels), axis=0)) == len(labels)


def test_digest_is_the_same_in_every_process():
    assert digest(np.array(["C", ""])).tolist() == [
        [12410392605429939920, 6131388625522561074],
        [5974825227474435752, 5974825227474435752],
    ]


@pytest.mark.parametrize(
    ("columns", "expected"),
    [
        ([[True], [2]], [1, 2]),
        ([[1], [0.5]], [1.0, 0.5]),
        ([["C"], ["Cl"]], ["C", "Cl"]),
        ([[], ["C"]], ["C"]),
        ([[(1, 2)], [(0.5, 1)]], [(1.0, 2.0), (0.5, 1.0)]),
        ([[(1, 2)], [(1,)]], [(1, 2), (1,)]),
        ([[(1, 2)], [[], [1]]], [(1, 2), (), (1,)]),
        ([[[], []], [["a"], []]], [(), (), ("a",), ()]),
    ],
)
def test_concatenate_promotes(columns, expected):
    joined = concatenate([as_column(values) for values in columns])
    assert plain(joined) == expected


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        ([[1, 2], ["C"]], "row 2 is one of strings while others are numbers"),
        ([[1], [(1, 2)]], "row 1 is one of lists of numbers while others are numbers"),
        (
            [[["a"], []], [[1], []]],
            "row 2 is one of lists of numbers while others are lists of str",
        ),
    ],
)
def test_concatenate_refuses_mixed_types(columns, message):
    with pytest.raises(ColumnError, match=message):
        concatenate([as_column(values) for values in columns])


def test_single_values_hold_no_lists():
    with pytest.raises(ValueError, match=r"single values \(int64\) holds no lists"):
        as_lists(np.array([1]))
