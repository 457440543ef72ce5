# SPDX-License-Identifier: BSD-3-Clause
"""Octiles: the way there and back, by plain loops and by hand."""

import numpy as np
import pytest
from cases import GRAPH_SETS, make_kernel
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_array_equal
from oracles import as_batch
from sklearn.pipeline import make_pipeline

from sklearn_mgk import OctileFeaturizer, SmilesToGraphs, from_arrays, from_smiles, to_octiles
from sklearn_mgk.base_kernels import KroneckerDelta


@st.composite
def graphs(draw):
    """Draw up to 3 graphs with self-loops, parallel edges and edges of weight 0."""
    batch = []
    for _ in range(draw(st.integers(1, 3))):
        n = draw(st.integers(1, 20))
        node = st.integers(0, n - 1)
        # Few weights and labels, so that equal edges occur.
        edge = st.tuples(node, node, st.sampled_from([0.0, 0.5, 1.0, 3.0]), st.integers(0, 2))
        edges = draw(st.lists(edge, max_size=40))
        batch.append(
            {
                "n_nodes": n,
                "edge_index": np.array([e[:2] for e in edges], dtype=int).reshape(-1, 2).T,
                "edge_weight": [e[2] for e in edges],
                "edges": {"kind": [e[3] for e in edges]},
            }
        )
    return from_arrays(batch)


def plain_dense(graph):
    """Adjacency matrix of a graph, edge by edge."""
    matrix = np.zeros((graph.n_nodes, graph.n_nodes))
    for (i, j), weight in zip(graph.edge_index.T, graph.edge_weight, strict=True):
        matrix[i, j] += weight
        if i != j:
            matrix[j, i] += weight
    return matrix


def plain_tiles(graph):
    """Return {(row, column, layer): {bit: edge}} of a graph, edge by edge."""
    tiles = {}
    for edge, ((i, j), weight) in enumerate(
        zip(graph.edge_index.T.tolist(), graph.edge_weight, strict=True)
    ):
        for r, c in {(i, j), (j, i)} if weight > 0 else ():
            bit, layer = 8 * (r % 8) + c % 8, 0
            while bit in tiles.setdefault((r // 8, c // 8, layer), {}):
                layer += 1
            tiles[r // 8, c // 8, layer][bit] = edge
    return tiles


@given(graphs())
def test_the_way_back_to_matrices_is_exact(batch):
    octiles = to_octiles(batch, "kind")
    for g, graph in enumerate(batch):
        assert_array_equal(octiles.to_dense(g), plain_dense(graph))


@given(graphs())
def test_tiles_are_those_found_edge_by_edge(batch):
    octiles = to_octiles(batch)
    for g, graph in enumerate(batch):
        expected = plain_tiles(graph)
        own = range(*octiles.tile_ptr[g : g + 2])
        assert len(own) == len(expected)
        for t, (row, column, layer) in zip(own, sorted(expected), strict=True):
            bits = expected[row, column, layer]
            assert (octiles.row[t], octiles.column[t]) == (row, column)
            assert octiles.bitmap[t] == sum(1 << bit for bit in bits)
            packed = octiles.edge[octiles.nnz_ptr[t] : octiles.nnz_ptr[t + 1]]
            assert (packed - batch.edge_ptr[g]).tolist() == [bits[bit] for bit in sorted(bits)]


@given(graphs())
def test_the_way_back_to_edges_is_exact(batch):
    octiles = to_octiles(batch, "kind")
    graph, row, column = octiles.entries()
    upper = row <= column
    found = zip(
        graph[upper],
        row[upper],
        column[upper],
        octiles.weight[upper],
        octiles.labels["kind"][octiles.label[upper]],
        strict=True,
    )
    ends = np.sort(batch.edge_index, axis=0)
    given_edges = zip(
        batch.edge_graph, *ends, batch.edge_weight, batch.edges.get("kind", ()), strict=True
    )
    assert sorted(found) == sorted(edge for edge in given_edges if edge[3] > 0)


@given(graphs())
def test_tiles_on_both_sides_of_the_diagonal_are_transposed(batch):
    octiles = to_octiles(batch)
    graph = np.repeat(np.arange(len(batch)), octiles.tiles_per_graph)
    seen = {}
    for g, row, column, bits in zip(
        graph, octiles.row, octiles.column, octiles.bitmap.tolist(), strict=True
    ):
        seen.setdefault((g, row, column), []).append(bits)
    for (g, row, column), stack in seen.items():
        cells = [[bits >> k & 1 for k in range(64)] for bits in stack]
        turned = [np.reshape(c, (8, 8)).T.ravel() for c in cells]
        expected = [sum(int(bit) << k for k, bit in enumerate(t)) for t in turned]
        assert seen[g, column, row] == expected


@given(graphs())
def test_node_arrays_are_padded_to_whole_tiles(batch):
    octiles = to_octiles(batch)
    assert (octiles.node_ptr % 8 == 0).all()
    assert_array_equal(octiles.sizes, batch.sizes)
    for g, graph in enumerate(batch):
        places = slice(*octiles.node_ptr[g : g + 2])
        n = graph.n_nodes
        assert 0 <= len(octiles.node[places]) - n < 8
        assert_array_equal(octiles.node[places][:n], batch.node_ptr[g] + np.arange(n))
        assert_array_equal(octiles.node[places][n:], -1)
        assert_array_equal(octiles.degree[places][:n], plain_dense(graph).sum(1))
        assert_array_equal(octiles.degree[places][n:], 0)


def test_one_graph_by_hand():
    batch = from_arrays(
        [
            {"n_nodes": 1, "edge_index": [[], []]},
            {
                "n_nodes": 9,
                "edge_index": [[8, 0, 2, 1, 7], [8, 8, 2, 0, 0]],
                "edge_weight": [2.0, 3.0, 4.0, 5.0, 0.0],
            },
        ]
    )
    octiles = to_octiles(batch)
    assert octiles.tile_ptr.tolist() == [0, 0, 4]
    assert octiles.row.tolist() == [0, 0, 1, 1]
    assert octiles.column.tolist() == [0, 1, 0, 1]
    # Cells (0, 1), (1, 0), (2, 2); then (0, 8), (8, 0) and (8, 8), each at the corner of its tile.
    assert octiles.bitmap.tolist() == [1 << 1 | 1 << 8 | 1 << 18, 1, 1, 1]
    assert octiles.nnz_ptr.tolist() == [0, 3, 4, 5, 6]
    assert octiles.weight.tolist() == [5.0, 5.0, 4.0, 3.0, 3.0, 2.0]
    assert octiles.edge.tolist() == [3, 3, 2, 1, 1, 0]
    assert octiles.node_ptr.tolist() == [0, 8, 24]
    assert octiles.degree[8:].tolist() == [8.0, 5.0, 4.0, 0, 0, 0, 0, 0, 5.0] + [0.0] * 7
    assert repr(octiles) == "Octiles(n_graphs=2, n_tiles=4, n_nonzeros=6)"


def test_parallel_edges_open_tiles_at_the_same_place():
    edges = {"kind": ["a", "b", "a", "c"]}
    batch = from_arrays(
        [{"n_nodes": 2, "edge_index": [[0, 1, 0, 1], [1, 0, 1, 1]], "edges": edges}]
    )
    octiles = to_octiles(batch, "kind")
    assert octiles.row.tolist() == octiles.column.tolist() == [0, 0, 0]
    assert octiles.bitmap.tolist() == [1 << 1 | 1 << 8 | 1 << 9, 1 << 1 | 1 << 8, 1 << 1 | 1 << 8]
    assert octiles.label.tolist() == [0, 0, 2, 1, 1, 0, 0]


def test_labels_of_attributes():
    batch = from_smiles(["C=CC=O", "C#N"])
    both = to_octiles(batch, ["order", "conjugated"])
    distinct = list(zip(both.labels["order"], both.labels["conjugated"], strict=True))
    assert distinct == sorted(set(distinct))
    for name in ("order", "conjugated"):
        assert_array_equal(both.labels[name][both.label], batch.edges[name][both.edge])
    assert to_octiles(batch).label.tolist() == [0] * 8
    assert to_octiles(batch).labels == {}
    kernel = make_kernel("none", "none").set_params(edge_kernel=KroneckerDelta("order", h=0.5))
    of_kernel = to_octiles(batch, kernel.edge_kernel.attributes)
    assert_array_equal(of_kernel.label, to_octiles(batch, "order").label)


def test_labels_as_numbers():
    batch = from_smiles(["CCO"])
    assert to_octiles(batch, labels=[5, 3]).label.tolist() == [5, 5, 3, 3]
    assert to_octiles(batch, labels=np.array([5, 3], np.uint8)).label.dtype == np.int32


@pytest.mark.parametrize(
    ("labels", "error", "message"),
    [
        ([1], ValueError, r"labels has shape \(1,\), the graphs have 3 edges: pass one"),
        ([1.0, 2.0, 3.0], TypeError, "labels must hold integers, got float64"),
        ([1, 2, -1], ValueError, "graph 1, edge 0 has label -1: labels must lie between 0 and"),
        ([1, 2**31, 0], ValueError, "graph 0, edge 1 has label 2147483648"),
    ],
)
def test_bad_labels(labels, error, message):
    with pytest.raises(error, match=message):
        to_octiles(from_smiles(["CCO", "CC"]), labels=labels)


def test_bad_input():
    batch = from_smiles(["CCO"])
    with pytest.raises(ValueError, match="have no edge attribute 'length'; they have: 'order'"):
        to_octiles(batch, "length")
    with pytest.raises(ValueError, match="edge_attributes='order' and labels are both given"):
        to_octiles(batch, "order", labels=[0, 0])
    with pytest.raises(TypeError, match="row 0 of X is of type str, not a Graph"):
        to_octiles(["CCO"])
    with pytest.raises(IndexError, match="graph 1 of octiles of 1 graphs"):
        to_octiles(batch).to_dense(1)


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"dtype": "float16"}, "dtype='float16' of octiles must be 'float64' or 'float32'"),
        ({"edge_attributes": [1]}, r"edge_attributes=\[1\] of octiles must be the name"),
        ({"edge_attributes": None}, "edge_attributes=None of octiles must be the name"),
    ],
)
def test_bad_parameters(parameters, message):
    for use in (OctileFeaturizer.fit, OctileFeaturizer.transform):
        with pytest.raises(ValueError, match=message):
            use(OctileFeaturizer(**parameters), from_smiles(["CC"]))


def test_dtype_and_its_range():
    weights = [1e300, 0.1]
    batch = from_arrays([{"n_nodes": 3, "edge_index": [[0, 1], [1, 2]], "edge_weight": weights}])
    assert to_octiles(batch).to_dense(0)[0, 1] == 1e300
    with pytest.raises(ValueError, match=r"graph 0, edge 0 has weight 1e\+300, too large for fl"):
        to_octiles(batch, dtype="float32")
    small = to_octiles(from_smiles(["CC"]), dtype=np.float32)
    assert small.weight.dtype == small.degree.dtype == small.to_dense(0).dtype == np.float32


def test_summary():
    batch = from_arrays(
        [
            {"n_nodes": 9, "edge_index": [[0, 0], [1, 8]]},
            {"n_nodes": 2, "edge_index": [[0], [0]]},
            {"n_nodes": 1, "edge_index": [[], []]},
        ]
    )
    summary = to_octiles(batch, dtype="float32").summary()
    assert (summary.n_graphs, summary.n_tiles, summary.n_nonzeros) == (3, 4, 5)
    assert summary.tiles_per_graph.tolist() == [3, 1, 0]
    assert summary.fill == 5 / (4 * 64)
    assert summary.histogram.shape == (65,)
    assert summary.histogram[:3].tolist() == [0, 3, 1]
    # A tile takes 2 x 4 bytes for its place, 8 for its bitmap and 8 for where its non-zeros begin.
    assert summary.octile_bytes == 4 * 24 + 8 + 5 * 8
    assert summary.dense_bytes == (81 + 4 + 1) * 8
    assert summary.csr_bytes == 5 * 12 + (10 + 3 + 2) * 8
    assert "4 non-empty tiles (1.3 a graph)" in str(summary)


def test_summary_without_edges():
    summary = to_octiles(from_smiles(["C", "N"])).summary()
    assert (summary.n_tiles, summary.fill, summary.histogram.sum()) == (0, 0.0, 0)


def test_transformer_in_a_pipeline():
    model = make_pipeline(SmilesToGraphs(), OctileFeaturizer("order"))
    octiles = model.fit_transform(["CCO", "C"])
    assert len(octiles) == 2
    assert_array_equal(octiles.bitmap, to_octiles(from_smiles(["CCO", "C"])).bitmap)


def test_octiles_are_made_once_and_cannot_be_written():
    batch = as_batch(GRAPH_SETS["dense"])
    first = OctileFeaturizer("order").transform(batch)
    assert OctileFeaturizer(["order"]).transform(list(batch)) is first
    assert OctileFeaturizer("order", dtype="float32").transform(batch) is not first
    with pytest.raises(ValueError, match="read-only"):
        first.weight[0] = 2.0
