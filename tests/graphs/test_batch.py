# SPDX-License-Identifier: BSD-3-Clause
"""GraphBatch and Graph: structure, selection, attributes, and what scikit-learn does with them."""

import pickle
from itertools import product

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.model_selection import KFold
from sklearn.utils import _safe_indexing, check_array

from sklearn_mgk.graphs import Graph, GraphBatch, ListColumn, as_batch


def make_batch(**changes):
    """Return a carbonyl, a single nitrogen, and a triangle with a self-loop."""
    arrays = {
        "node_ptr": [0, 2, 3, 6],
        "edge_ptr": [0, 1, 1, 5],
        "edge_index": [[0, 0, 1, 2, 2], [1, 1, 2, 0, 2]],
        "edge_weight": [1.0, 1.0, 0.0, 2.0, 0.5],
        "nodes": {
            "element": ["C", "O", "N", "C", "C", "C"],
            "charge": [0, -1, 1, 0, 0, 0],
            "rings": [[], [], [], [3], [3], [3, 4]],
            "position": np.arange(12.0).reshape(6, 2),
        },
        "edges": {"order": [2.0, 1.0, 1.0, 1.5, 1.0]},
    }
    return GraphBatch(**{**arrays, **changes})


def as_dicts(batch):
    """Return the content of each graph as plain Python objects."""
    return [
        {
            "n_nodes": graph.n_nodes,
            "edge_index": graph.edge_index.tolist(),
            "edge_weight": graph.edge_weight.tolist(),
            **{name: [row.tolist() for row in column] for name, column in graph.nodes.items()},
            **{name: [row.tolist() for row in column] for name, column in graph.edges.items()},
        }
        for graph in batch
    ]


def test_arrays():
    batch = make_batch()
    assert (len(batch), batch.n_nodes, batch.n_edges) == (3, 6, 5)
    assert batch.sizes.tolist() == [2, 1, 3]
    assert batch.node_graph.tolist() == [0, 0, 1, 2, 2, 2]
    assert batch.edge_graph.tolist() == [0, 2, 2, 2, 2]
    assert batch.nodes["charge"].dtype == np.int64
    assert batch.nodes["rings"].values.tolist() == [3, 3, 3, 4]
    assert make_batch(edge_weight=None).edge_weight.tolist() == [1.0] * 5
    assert repr(batch) == (
        "GraphBatch(n_graphs=3, n_nodes=6, n_edges=5, "
        "nodes=['element', 'charge', 'rings', 'position'], edges=['order'])"
    )


def test_arrays_are_read_only_copies():
    charge = np.zeros(6, dtype=np.int64)
    batch = make_batch(nodes={"charge": charge})
    charge[0] = 1
    assert batch.nodes["charge"][0] == 0
    for array in (batch.nodes["charge"], batch.edge_index, batch.edge_weight, batch.node_graph):
        with pytest.raises(ValueError, match="read-only"):
            array[...] = 0


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"node_ptr": [0, 2, 2, 6]}, "graph 1 has no nodes: remove it"),
        ({"node_ptr": [0, 3, 2, 6]}, "node_ptr must rise from 0 to 6"),
        ({"edge_ptr": [0, 1, 1, 4]}, "edge_ptr must rise from 0 to 5"),
        ({"edge_ptr": [0, 5]}, "node_ptr is for 3 graphs, edge_ptr for 1"),
        ({"edge_index": [0, 1]}, r"edge_index must have shape \(2, n_edges\), got \(2,\)"),
        (
            {"edge_index": [[0, 0, 1, 2, 2], [1, 1, 3, 0, 2]]},
            r"graph 2, edge 1 joins nodes \[1, 3\], but the graph has the nodes 0 to 2",
        ),
        ({"edge_index": [[-1, 0, 1, 2, 2], [1, 1, 2, 0, 2]]}, r"graph 0, edge 0 joins nodes \[-1"),
        ({"edge_weight": [1, 1, 1, -2, 1]}, "graph 2, edge 2 has weight -2.0: weights must be fin"),
        ({"edge_weight": [np.nan, 1, 1, 1, 1]}, "graph 0, edge 0 has weight nan"),
        ({"edge_weight": [1.0]}, r"edge_weight must have shape \(5,\), got \(1,\)"),
        (
            {"nodes": {"charge": [0, 1]}},
            "node attribute 'charge' has 2 rows, the graphs have 6 nodes",
        ),
        ({"edges": {"order": [1, 1, "a", 1, 1]}}, "edge attribute 'order': row 2 is a string"),
    ],
)
def test_wrong_arrays_are_refused(changes, message):
    with pytest.raises(ValueError, match=message):
        make_batch(**changes)


def test_node_numbers_must_be_integers():
    with pytest.raises(TypeError, match="edge_index must hold integers, got float64"):
        make_batch(edge_index=np.zeros((2, 5)))


def test_graph_is_a_view():
    batch = make_batch()
    graph = batch[2]
    assert (graph.n_nodes, graph.n_edges) == (3, 4)
    assert graph.edge_index.tolist() == [[0, 1, 2, 2], [1, 2, 0, 2]]
    assert graph.edge_weight.tolist() == [1.0, 0.0, 2.0, 0.5]
    assert graph.nodes["element"].tolist() == ["C", "C", "C"]
    assert np.shares_memory(graph.nodes["charge"], batch.nodes["charge"])
    assert graph.nodes["rings"][2].tolist() == [3, 4]
    assert graph.edges["order"].tolist() == [1.0, 1.0, 1.5, 1.0]
    assert repr(batch[1]).startswith("Graph(n_nodes=1, n_edges=0, nodes=['element'")


def test_graphs_are_equal_if_they_are_the_same_view():
    batch = make_batch()
    assert batch[0] == batch[-3]
    assert hash(batch[0]) == hash(Graph(batch, 0))
    assert batch[0] != batch[1]
    assert batch[0] != make_batch()[0]
    assert batch[0] != 0


def test_graphs_stay_whole_in_numpy():
    batch = make_batch()
    for array in (
        np.asarray(list(batch)),
        np.asarray(batch),
        check_array(batch, ensure_2d=False, dtype=None),
    ):
        assert array.shape == (3,)
        assert array.dtype == object
        assert as_batch(array) is batch


@given(st.lists(st.integers(-3, 2), max_size=6))
def test_take_is_graph_by_graph(indices):
    batch = make_batch()
    expected = [as_dicts(batch)[i] for i in indices]
    assert as_dicts(batch.take(indices)) == expected
    assert as_dicts(batch[np.array(indices, dtype=int)]) == expected


def test_slices_and_masks():
    batch = make_batch()
    assert as_dicts(batch[1:]) == as_dicts(batch)[1:]
    assert as_dicts(batch[::-1]) == as_dicts(batch)[::-1]
    assert as_dicts(batch[np.array([True, False, True])]) == as_dicts(batch)[::2]


@pytest.mark.parametrize(
    ("key", "message"),
    [
        (3, "graph 3 of a batch of 3 graphs"),
        (-4, "graph -4 of a batch of 3"),
        ([0, 3], "index 3 is out of bounds"),
        ([0.5], "selected by a 1-D array of integers or booleans, got float64"),
        ([True], "boolean index did not match"),
    ],
)
def test_wrong_indices_are_refused(key, message):
    with pytest.raises(IndexError, match=message):
        make_batch()[key]


def test_concatenate_is_graph_by_graph():
    batch = make_batch()
    joined = GraphBatch.concatenate([batch[1:], batch, batch[:1]])
    assert as_dicts(joined) == [as_dicts(batch)[i] for i in (1, 2, 0, 1, 2, 0)]


def test_concatenate_promotes_and_reports_what_does_not_fit():
    first = make_batch(nodes={"a": [1] * 6, "b": ["x"] * 6, "c": [1] * 6}, edges={"d": [True] * 5})
    second = make_batch(nodes={"a": [0.5] * 6, "b": [1] * 6}, edges={"d": [2] * 5})
    joined = GraphBatch.concatenate([first, second])
    assert joined.nodes["a"].dtype == np.float64
    assert joined.edges["d"].dtype == np.int64
    with pytest.raises(
        ValueError, match="node attribute 'b' cannot be used: graph 3: the value is one"
    ):
        joined.read("node", "b")
    with pytest.raises(ValueError, match="node attribute 'c' cannot be used: graph 3 lacks it"):
        joined.read("node", "c")
    with pytest.raises(ValueError, match="no batches"):
        GraphBatch.concatenate([])


def test_batches_without_edges_lack_no_edge_attribute():
    single = GraphBatch(node_ptr=[0, 1], edge_ptr=[0, 0], edge_index=[[], []])
    assert len(single.read("edge", "order")) == 0
    joined = GraphBatch.concatenate([single, make_batch()])
    assert joined.read("edge", "order").tolist() == [2.0, 1.0, 1.0, 1.5, 1.0]


def test_read_returns_the_column():
    batch = make_batch()
    assert batch.read("node", "element") is batch.nodes["element"]
    codes, distinct = batch.factorized("node", "element")
    assert codes.tolist() == [0, 2, 1, 0, 0, 0]
    assert distinct.tolist() == ["C", "N", "O"]
    assert batch.factorized("node", "element")[0] is codes
    assert isinstance(batch.factorized("node", "rings")[1], ListColumn)


@pytest.mark.parametrize(
    ("kind", "name", "message"),
    [
        (
            "node",
            "order",
            "no node attribute 'order'; they have: 'element', 'charge', 'rings', 'pos",
        ),
        ("edge", "element", "no edge attribute 'element'; they have: 'order'"),
        ("atom", "element", 'kind must be "node" or "edge", got \'atom\''),
    ],
)
def test_unknown_attributes_are_refused(kind, name, message):
    with pytest.raises(ValueError, match=message):
        make_batch().read(kind, name)


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ([0, 0, np.nan, 0, 0, 0], "graph 1, node 0: attribute 'a' is nan"),
        ([[0, 0]] * 4 + [[0, -np.inf]] * 2, "graph 2, node 1: attribute 'a' is -inf"),
        ([[], [1.0], [], [], [2.0, np.inf], []], "graph 2, node 1: attribute 'a' is inf"),
    ],
)
def test_values_that_are_not_finite_are_refused_when_read(values, message):
    batch = make_batch(nodes={"a": values})
    with pytest.raises(ValueError, match=message):
        batch.read("node", "a")
    with pytest.raises(ValueError, match=message):
        batch.factorized("node", "a")


def test_unusable_attributes_matter_when_read():
    batch = make_batch(unusable_nodes={"mass": "graph 2, node 'b' lacks it"})
    with pytest.raises(ValueError, match=r"'mass' cannot be used: graph 2, node 'b' lacks it$"):
        batch.read("node", "mass")
    with pytest.raises(ValueError, match=r"lacks it \(graph number before the selection\)$"):
        batch[1:][1:].read("node", "mass")


def test_pickles_leave_the_cache_behind():
    batch = make_batch()
    batch.factorized("node", "element")
    batch.read("edge", "order")
    graphs = pickle.loads(pickle.dumps(list(batch)))
    assert as_batch(graphs) is graphs[0].batch
    assert as_dicts(graphs[0].batch) == as_dicts(batch)
    assert ("read", "edge", "order") not in pickle.loads(pickle.dumps(batch))._cache
    assert not graphs[0].batch.nodes["charge"].flags.writeable
    assert pickle.dumps(batch) == pickle.dumps(make_batch())


def test_as_batch_accepts_what_scikit_learn_slices():
    batch = make_batch()
    assert as_batch(batch) is batch
    for X in (list(batch), tuple(batch), pd.Series(list(batch)), np.asarray(batch)[:, None]):
        assert as_batch(X) is batch
    assert as_batch(pd.DataFrame({"graph": list(batch)})) is batch
    for train, test in KFold(3).split(batch):
        for indices in (train, test):
            part = as_batch(_safe_indexing(batch, indices))
            assert as_dicts(part) == [as_dicts(batch)[i] for i in indices]
            assert as_batch(_safe_indexing(np.asarray(batch), indices)) is part


def test_as_batch_remembers_a_few_selections():
    batch = make_batch()
    part = as_batch([batch[2], batch[0]])
    assert as_batch([batch[2], batch[0]]) is part
    for numbers in product(range(3), repeat=4):
        as_batch([batch[k] for k in numbers])
    assert as_batch([batch[2], batch[0]]) is not part


def test_as_batch_joins_views_of_several_batches_in_order():
    first, second = make_batch(), make_batch(nodes={"element": list("FFFFFF")})
    graphs = [second[2], first[1], second[0], first[1]]
    joined = as_batch(graphs)
    assert joined.sizes.tolist() == [3, 1, 2, 1]
    assert joined.nodes["element"].tolist() == ["F", "F", "F", "N", "F", "F", "N"]


@pytest.mark.parametrize(
    ("make", "error", "message"),
    [
        (lambda batch: batch[0], TypeError, r"got Graph: wrap a single one in a list, \[x\]"),
        (iter, TypeError, "can be read only once: pass list"),
        (
            lambda batch: (graph for graph in batch),
            TypeError,
            "X is a generator, which can be read",
        ),
        (lambda batch: [], ValueError, "X is empty: a list of graphs is needed"),
        (lambda batch: batch[:0], ValueError, "X is empty: at least one graph"),
        (lambda batch: [batch[0], None], TypeError, "row 1 of X is of type NoneType, not a Graph"),
        (lambda batch: ["CCO"], TypeError, "row 0 of X is of type str.*SmilesToGraphs"),
        (lambda batch: np.zeros((2, 2)), ValueError, r"one column of graphs, got shape \(2, 2\)"),
        (lambda batch: {"a": 1}, TypeError, "X must be a sequence of graphs, got dict"),
        (lambda batch: "CCO", TypeError, "X must be a sequence of graphs, got str"),
        (lambda batch: np.array(1), TypeError, "X must be a sequence of graphs, got ndarray"),
    ],
)
def test_as_batch_refuses_what_holds_no_graphs(make, error, message):
    with pytest.raises(error, match=message):
        as_batch(make(make_batch()))


def test_with_columns_adds_and_replaces_attributes():
    batch = GraphBatch(
        node_ptr=[0, 2],
        edge_ptr=[0, 1],
        edge_index=[[0], [1]],
        nodes={"a": [1, 2]},
        edges={"order": [1.0]},
        unusable_nodes={"b": "graph 0, node 1 lacks it"},
    )
    more = batch.with_columns(nodes={"b": [0.5, 1.5]}, edges={"order": [2.0]})
    assert more.read("node", "b").tolist() == [0.5, 1.5]
    assert more.read("node", "a").tolist() == [1, 2]
    assert more.edges["order"].tolist() == [2.0]
    assert batch.edges["order"].tolist() == [1.0]
    with pytest.raises(ValueError, match="b"):
        batch.with_columns(nodes={"b": [0.5]})
