# SPDX-License-Identifier: BSD-3-Clause
"""Interning and checks of tables."""

from dataclasses import dataclass

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_array_equal

from sklearn_mgk.base_kernels import labels as labels_module
from sklearn_mgk.base_kernels.checks import check_table
from sklearn_mgk.base_kernels.labels import intern
from sklearn_mgk.graphs.columns import ListColumn, as_column, factorize, take


@dataclass
class Batch:
    """What `intern` asks of a batch."""

    nodes: dict

    @property
    def n_nodes(self):
        return len(next(iter(self.nodes.values())))

    def factorized(self, kind, name):
        assert kind == "node"
        return factorize(self.nodes[name])


row = st.tuples(
    st.sampled_from(["C", "N", "Cl"]),
    st.integers(-1, 1),
    st.lists(st.integers(5, 6), max_size=2),
)
NAMES = ("element", "charge", "rings")


def batch_of(rows):
    columns = zip(*rows, strict=True)
    nodes = dict(zip(NAMES, map(list, columns), strict=True))
    rings = ListColumn.from_rows(nodes["rings"])
    return Batch({**{n: as_column(nodes[n]) for n in NAMES[:2]}, "rings": rings})


def plain(column):
    if isinstance(column, ListColumn):
        return [column[i].tolist() for i in range(len(column))]
    return column.tolist()


@given(st.lists(row, min_size=1, max_size=20), st.permutations(NAMES))
def test_labels_stand_for_their_rows(rows, names):
    batch = batch_of(rows)
    labels = intern(batch, "node", names)
    assert labels.codes.dtype == np.int32
    assert labels.n_labels == len({repr(r) for r in rows})
    assert_array_equal(np.unique(labels.codes), np.arange(labels.n_labels))
    for name in names:
        got = plain(take(labels.columns[name], labels.codes))
        assert got == [r[NAMES.index(name)] for r in rows]


@given(st.lists(row, min_size=1, max_size=20), st.randoms())
def test_labels_do_not_depend_on_the_order_of_rows(rows, random):
    shuffled = random.sample(rows, len(rows))
    one, two = (intern(batch_of(r), "node", NAMES) for r in (rows, shuffled))
    for name in NAMES:
        assert plain(one.columns[name]) == plain(two.columns[name])


def test_no_attributes_give_one_label():
    labels = intern(batch_of([("C", 0, [])] * 3), "node", ())
    assert_array_equal(labels.codes, [0, 0, 0])
    assert (labels.n_labels, labels.columns) == (1, {})


def test_many_distinct_values_do_not_overflow(monkeypatch):
    monkeypatch.setattr(labels_module, "_LARGEST", 30)
    rng = np.random.default_rng(0)
    nodes = {name: rng.integers(0, 9, 50) for name in "abc"}
    labels = intern(Batch(nodes), "node", tuple("abc"))
    rows = np.column_stack(list(nodes.values()))
    assert_array_equal(labels.codes, np.unique(rows, axis=0, return_inverse=True)[1])


LABELS = {"element": as_column(["C", "O"]), "rings": as_column([[5, 6], []])}
FIRST, SECOND = r"\(element='C', rings=\[5, 6\]\)", r"\(element='O', rings=\[\]\)"


@pytest.mark.parametrize(
    ("table", "message"),
    [
        (
            [[1, 1.5], [1.5, 1]],
            rf"node_kernel is 1.5 between the labels {FIRST} and {SECOND}.*Normali",
        ),
        ([[1, -0.5], [-0.5, 1]], r"node_kernel is -0.5 between .*\[0, 1\]\. Use non-negative"),
        ([[1, 0.5], [0.4, 1]], r"is 0.5 .*symmetric, but is 0.4 the other way.*Symmetrise"),
        ([[1, np.nan], [np.nan, 1]], rf"is nan between the labels {FIRST} and .*finite"),
        ([[1, 0], [0, np.inf]], rf"is inf between the labels {SECOND} and {SECOND}"),
    ],
)
def test_tables_out_of_range_are_refused(table, message):
    with pytest.raises(ValueError, match=message):
        check_table(np.array(table, dtype=float), "node_kernel", LABELS)


def test_tables_in_range_pass():
    check_table(np.array([[1 + 1e-15, 0.0], [0.0, 1.0]]), "node_kernel", LABELS)
    one = {"element": as_column(["N"])}
    check_table(np.array([[0.5], [0.2]]), "edge_kernel", {"element": LABELS["element"]}, one)
    with pytest.raises(
        ValueError, match=r"edge_kernel is 2 between .*\(element='O'\) and \(element='N'\)"
    ):
        check_table(np.array([[0.5], [2.0]]), "edge_kernel", {"element": LABELS["element"]}, one)
