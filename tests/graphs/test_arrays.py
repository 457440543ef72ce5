# SPDX-License-Identifier: BSD-3-Clause
"""Graphs from edge lists and adjacency matrices."""

import numpy as np
import pytest
from scipy import sparse

from sklearn_mgk.graphs import from_adjacency, from_arrays

BENT = {
    "edge_index": [[0, 1], [1, 2]],
    "edge_weight": [1.0, 0.5],
    "nodes": {"element": ["O", "H", "H"], "rings": [[], [3], []]},
    "edges": {"order": [1, 2]},
}
LONE = {"n_nodes": 1, "nodes": {"element": ["Na"], "rings": [[3, 4]]}}


def test_columns_are_joined():
    batch = from_arrays([LONE, BENT, LONE])
    assert batch.node_ptr.tolist() == [0, 1, 4, 5]
    assert batch.edge_ptr.tolist() == [0, 0, 2, 2]
    assert batch.edge_index.tolist() == [[0, 1], [1, 2]]
    assert batch.edge_weight.tolist() == [1.0, 0.5]
    assert batch.nodes["element"].tolist() == ["Na", "O", "H", "H", "Na"]
    assert batch.nodes["rings"].ptr.tolist() == [0, 2, 2, 3, 3, 5]
    assert batch.edges["order"].tolist() == [1, 2]


def test_graphs_may_have_no_attributes():
    batch = from_arrays([{"n_nodes": 2, "edge_index": [[0], [1]]}, {"n_nodes": 1}])
    assert (batch.sizes.tolist(), batch.n_edges, batch.edge_weight.tolist()) == ([2, 1], 1, [1.0])


@pytest.mark.parametrize(
    ("nodes", "message"),
    [
        ({}, "the value of graph 1, node 0 is missing"),
        (
            {"element": [8]},
            "the value of graph 1, node 0 is one of numbers while others are strings",
        ),
        ({"element": [None]}, r"the value of graph 1, node 0 is missing \(None\)"),
    ],
)
def test_odd_attributes_matter_only_when_read(nodes, message):
    batch = from_arrays([BENT, {"n_nodes": 1, "nodes": nodes}])
    with pytest.raises(ValueError, match=f"'element' cannot be used: {message}"):
        batch.read("node", "element")


@pytest.mark.parametrize(
    ("changes", "error", "message"),
    [
        (
            {"edge_index": [[0, 1, 2]]},
            ValueError,
            r"graph 1: edge_index must have shape \(2, n_edges",
        ),
        ({"edge_index": [[0, 1.5], [1, 2]]}, TypeError, "graph 1: edge_index must hold integers"),
        ({"edge_index": [[0, 1], [1, 3]]}, ValueError, r"graph 1, edge 1 joins nodes \[1, 3\]"),
        ({"edge_weight": [1.0]}, ValueError, r"graph 1: edge_weight has shape \(1,\), not \(2,\)"),
        ({"edge_weight": [1.0, -1.0]}, ValueError, "graph 1, edge 1 has weight -1.0"),
        (
            {"n_nodes": 4},
            ValueError,
            "graph 1: node attribute 'element' has 3 values, .* has 4 nodes",
        ),
        ({"edges": {"order": [1]}}, ValueError, "graph 1: edge attribute 'order' has 1 values"),
        ({"weights": [1.0]}, ValueError, r"graph 1: unknown keys \['weights'\]; known are"),
        ({"nodes": {}}, ValueError, "graph 1: without node attributes n_nodes is needed"),
        ({"nodes": {}, "n_nodes": 0}, ValueError, "graph 1 has no nodes|graph 1, edge 0 joins"),
    ],
)
def test_wrong_graphs_are_refused(changes, error, message):
    with pytest.raises(error, match=message):
        from_arrays([LONE, {**BENT, **changes}])


@pytest.mark.parametrize("function", [from_arrays, from_adjacency])
def test_a_list_is_needed(function):
    with pytest.raises(TypeError, match="must be a list of"):
        function(iter([]))
    with pytest.raises(ValueError, match="empty"):
        function([])


@pytest.mark.parametrize("convert", [np.asarray, sparse.csr_array, sparse.coo_matrix, list])
def test_adjacency_matrices(convert):
    A = np.array([[0.5, 1.0, 0.0], [1.0, 0.0, 2.0], [0.0, 2.0, 0.0]])
    batch = from_adjacency(
        [convert(A), convert(np.zeros((1, 1)))], nodes=[{"a": [1, 2, 3]}, {"a": [4]}]
    )
    edges = zip(*batch.edge_index.tolist(), batch.edge_weight.tolist(), strict=True)
    assert sorted(edges) == [(0, 0, 0.5), (0, 1, 1.0), (1, 2, 2.0)]
    assert batch.sizes.tolist() == [3, 1]
    assert batch.nodes["a"].tolist() == [1, 2, 3, 4]


def test_rounding_does_not_make_a_matrix_unsymmetric():
    batch = from_adjacency([[[0.0, 0.1 + 0.2], [0.3, 0.0]]])
    assert batch.edge_weight.tolist() == pytest.approx([0.3])


@pytest.mark.parametrize(
    ("matrix", "message"),
    [
        ([[0, 1], [0, 0]], r"graph 1: the adjacency matrix is not symmetric, entry \(0, 1\) is 1"),
        ([[0, 1]], r"graph 1: an adjacency matrix must be square, got \(1, 2\)"),
        ([[0, -1], [-1, 0]], "graph 1, edge 0 has weight -1.0"),
        ([[0, np.nan], [np.nan, 0]], "graph 1, edge 0 has weight nan"),
    ],
)
def test_wrong_matrices_are_refused(matrix, message):
    with pytest.raises(ValueError, match=message):
        from_adjacency([[[0]], matrix])


def test_each_matrix_has_its_attributes():
    with pytest.raises(ValueError, match="there are 1 matrices, but node attributes for 2"):
        from_adjacency([[[0]]], nodes=[{}, {}])
