# SPDX-License-Identifier: BSD-3-Clause
"""Graphs from networkx, and back."""

from itertools import pairwise

import networkx as nx
import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.pipeline import make_pipeline

from sklearn_mgk.graphs import NetworkXToGraphs, from_networkx


def labeled(*nodes):
    """Return a path of the given nodes with elements and bond orders."""
    G = nx.Graph()
    for node, element in nodes:
        G.add_node(node, element=element)
    ids = [node for node, _ in nodes]
    for order, (u, v) in enumerate(pairwise(ids), start=1):
        G.add_edge(u, v, order=order)
    return G


def test_attributes_belong_to_node_ids_whatever_the_order():
    G = labeled(("a", "C"), ("b", "O"))
    H = nx.Graph()
    H.add_edge("b", "a", order=1)
    H.nodes["a"]["element"] = "C"
    H.nodes["b"]["element"] = "O"
    batch = from_networkx([G, H])
    assert batch.nodes["element"].tolist() == ["C", "O", "O", "C"]
    assert batch.edge_index.tolist() == [[0, 0], [1, 1]]
    assert batch.edges["order"].tolist() == [1, 1]


def test_columns_of_a_small_batch():
    G = labeled((7, "C"), (3, "N"), (5, "O"))
    G.add_edge(7, 7, order=9)
    G.edges[7, 3]["weight"] = 0.5
    lone = nx.Graph()
    lone.add_node("x", element="Na")
    batch = from_networkx([G, lone])
    assert batch.node_ptr.tolist() == [0, 3, 4]
    assert batch.edge_ptr.tolist() == [0, 3, 3]
    assert batch.edge_index.tolist() == [[0, 0, 1], [1, 0, 2]]
    assert batch.edge_weight.tolist() == [0.5, 1.0, 1.0]
    assert batch.edges["order"].tolist() == [1, 9, 2]
    assert list(batch.edges) == ["order"]
    assert batch.nodes["element"].tolist() == ["C", "N", "O", "Na"]


def test_weight_parameter():
    G = nx.Graph()
    G.add_edge(0, 1, weight=0.5, length=2)
    assert from_networkx([G], weight=None).edge_weight.tolist() == [1.0]
    assert from_networkx([G], weight=None).edges["weight"].tolist() == [0.5]
    other = from_networkx([G], weight="length")
    assert other.edge_weight.tolist() == [2.0]
    assert list(other.edges) == ["weight"]


def test_parallel_edges_stay_parallel():
    G = nx.MultiGraph()
    G.add_edge("a", "b", order=1)
    G.add_edge("b", "a", order=2)
    batch = from_networkx([G])
    assert batch.edge_index.tolist() == [[0, 0], [1, 1]]
    assert batch.edges["order"].tolist() == [1, 2]


def test_graphs_without_edges_or_attributes():
    batch = from_networkx([nx.empty_graph(3)])
    assert (batch.n_nodes, batch.n_edges) == (3, 0)
    assert len(batch.read("edge", "anything")) == 0


@pytest.mark.parametrize("multigraph", [False, True])
def test_round_trip(multigraph):
    G = (nx.MultiGraph if multigraph else nx.Graph)()
    G.add_node(0, element="C", rings=[3, 5], position=[0.5, 1.0], aromatic=True)
    G.add_node(1, element="O", rings=[], position=[1.0, 2.0], aromatic=False)
    G.add_edge(0, 1, order=2, weight=0.5)
    G.add_edge(1, 1, order=1, weight=1.0)
    if multigraph:
        G.add_edge(0, 1, order=3, weight=2.0)
    H = from_networkx([G])[0].to_networkx()
    assert type(H) is type(G)
    assert nx.utils.graphs_equal(G, H)
    assert type(H.nodes[0]["aromatic"]) is bool


def test_weights_need_a_free_name():
    G = nx.Graph()
    G.add_edge(0, 1, weight=0.5)
    graph = from_networkx([G], weight=None)[0]
    with pytest.raises(
        ValueError, match="there is an edge attribute 'weight': choose another name"
    ):
        graph.to_networkx()
    assert graph.to_networkx(weight=None).edges[0, 1] == {"weight": 0.5}
    assert graph.to_networkx(weight="w").edges[0, 1] == {"weight": 0.5, "w": 1.0}


def test_odd_attributes_matter_only_when_read():
    G, H = labeled(("a", "C"), ("b", "O")), labeled(("a", "C"), ("b", "O"))
    G.nodes["a"]["object"] = G.nodes["b"]["object"] = {}
    H.nodes["a"]["object"] = H.nodes["b"]["object"] = {}
    G.nodes["a"]["mass"] = 12
    H.nodes["b"]["element"] = 8
    G.nodes["a"][17] = "names of other types are ignored"
    H.edges["a", "b"]["order"] = None
    batch = from_networkx([G, H])
    for kind, name, message in [
        ("node", "mass", "graph 0, node 'b' lacks it"),
        ("node", "object", "the value of graph 0, node 'a' is a dict"),
        ("node", "element", "graph 1, node 'b' is a number.*while graph 0, node 'a' is a string"),
        ("edge", "order", r"graph 1, edge \('a', 'b'\) is missing \(None\)"),
    ]:
        with pytest.raises(ValueError, match=f"{name}' cannot be used: .*{message}"):
            batch.read(kind, name)


@pytest.mark.parametrize(
    ("weight", "message"),
    [
        (-1.0, "graph 1, edge 0 has weight -1.0"),
        (np.nan, "graph 1, edge 0 has weight nan"),
        ("heavy", r"graph 1, edge \(0, 1\): 'weight' is 'heavy', not a weight"),
        (None, r"graph 1, edge \(0, 1\): 'weight' is None"),
    ],
)
def test_wrong_weights_are_refused(weight, message):
    G = nx.path_graph(2)
    G.edges[0, 1]["weight"] = weight
    with pytest.raises(ValueError, match=message):
        from_networkx([nx.path_graph(2), G])


@pytest.mark.parametrize(
    ("X", "error", "message"),
    [
        (
            [nx.path_graph(2), nx.DiGraph([(0, 1)])],
            ValueError,
            r"graph 1 is directed.*to_undirected",
        ),
        ([nx.Graph()], ValueError, "graph 0 has no nodes"),
        (nx.path_graph(2), TypeError, "networkx graphs, got Graph: wrap a single one in a list"),
        ([nx.path_graph(2), "CCO"], TypeError, "row 1 of X is of type str, not a networkx graph"),
        ([], ValueError, "X is empty: a list of networkx graphs is needed"),
        (iter([nx.path_graph(2)]), TypeError, "read only once"),
    ],
)
def test_wrong_graphs_are_refused(X, error, message):
    with pytest.raises(error, match=message):
        from_networkx(X)


def test_graphs_of_equal_size_are_not_unpacked():
    graphs = [nx.path_graph(3) for _ in range(4)]
    column = np.empty((4, 1), dtype=object)
    column[:, 0] = graphs
    for X in (graphs, tuple(graphs), column, column[:, 0], pd.Series(graphs)):
        assert make_pipeline(NetworkXToGraphs()).fit_transform(X).sizes.tolist() == [3] * 4
    assert len(NetworkXToGraphs().transform(graphs[:1])) == 1


def test_transformer_is_an_estimator():
    transformer = clone(NetworkXToGraphs(weight=None)).set_params(weight="length")
    assert transformer.get_params() == {"weight": "length"}
    assert transformer.set_output(transform="pandas") is transformer
    with pytest.raises(
        ValueError, match="weight must be the name of an edge attribute or None, got 3"
    ):
        NetworkXToGraphs(weight=3).fit([nx.path_graph(2)])
