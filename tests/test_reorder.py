# SPDX-License-Identifier: BSD-3-Clause
"""Node orders: permutations that keep kernel values, and how few tiles they need."""

import sys
from itertools import combinations

import numba
import numpy as np
import pymetis
import pytest
from cases import GRAPH_SETS, make_kernel, random_graph
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from oracles import as_batch
from scipy.spatial import cKDTree
from sklearn.model_selection import cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.svm import SVC

from sklearn_mgk import (
    GraphBatch,
    Reorder,
    SmilesToGraphs,
    from_arrays,
    from_smiles,
    node_order,
    permute,
    plot_octiles,
    to_octiles,
)
from sklearn_mgk.reorder.adjacency import adjacency, count_tiles
from sklearn_mgk.reorder.order import METHODS, _warn_once

TALLEST = 30
"""Nodes of the largest graph of the hypothesis tests: four parts, one of them smaller."""


def with_positions(batch, n_axes=3):
    """Give each node random coordinates."""
    rng = np.random.default_rng(0)
    return batch.with_columns(nodes={"position": rng.normal(size=(batch.n_nodes, n_axes))})


def shuffled(batch, seed=0):
    """Put the nodes of each graph in random order."""
    key = np.random.default_rng(seed).random(batch.n_nodes)
    return permute(batch, np.lexsort((key, batch.node_graph)) - batch.node_ptr[batch.node_graph])


def graph_of(edges, n_nodes):
    """Return one graph as a batch."""
    return from_arrays([{"n_nodes": n_nodes, "edge_index": np.array(edges).reshape(-1, 2).T}])


def n_tiles(batch, method="natural", **options):
    """Count non-empty tiles under an order, graph by graph."""
    octiles = to_octiles(permute(batch, node_order(batch, method, **options)))
    graph = np.repeat(np.arange(len(batch)), octiles.tiles_per_graph)
    places = np.unique(np.stack([graph, octiles.row, octiles.column]), axis=1)
    return np.bincount(places[0], minlength=len(batch))


@st.composite
def batches(draw):
    """Draw up to 3 graphs with loops, parallel edges, edges of weight 0 and coordinates."""
    graphs = []
    for _ in range(draw(st.integers(1, 3))):
        n = draw(st.integers(1, TALLEST))
        node = st.integers(0, n - 1)
        edges = draw(st.lists(st.tuples(node, node, st.sampled_from([0.0, 1.0, 2.0])), max_size=60))
        graphs.append(
            {
                "n_nodes": n,
                "edge_index": np.array([e[:2] for e in edges], dtype=int).reshape(-1, 2).T,
                "edge_weight": [e[2] for e in edges],
                "nodes": {"number": np.arange(n)},
            }
        )
    return with_positions(from_arrays(graphs), draw(st.integers(2, 3)))


@given(batches(), st.sampled_from(METHODS))
def test_orders_are_permutations_and_graphs_stay_the_same(batch, method):
    order = node_order(batch, method, n_sweeps=20)
    reordered = permute(batch, order)
    assert_array_equal(reordered.nodes["number"], order)
    old, new = to_octiles(batch), to_octiles(reordered)
    for g, graph in enumerate(batch):
        own = order[batch.node_ptr[g] : batch.node_ptr[g + 1]]
        assert_array_equal(np.sort(own), np.arange(graph.n_nodes))
        assert_array_equal(new.to_dense(g), old.to_dense(g)[np.ix_(own, own)])


@given(batches())
def test_partition_has_no_more_tiles_than_its_starts(batch):
    best = np.minimum(n_tiles(batch), n_tiles(batch, "rcm"))
    assert (n_tiles(batch, "partition", n_sweeps=50) <= best).all()


@given(batches())
def test_tiles_are_counted_as_octiles_are(batch):
    rows = np.arange(batch.n_nodes)
    assert_array_equal(count_tiles(batch, adjacency(batch), rows), n_tiles(batch))


@pytest.mark.parametrize("name", GRAPH_SETS)
@pytest.mark.parametrize("method", METHODS)
def test_kernel_values_do_not_change(name, method):
    batch = with_positions(as_batch([*GRAPH_SETS[name], random_graph(21, 0.2, 5)]))
    kernel = make_kernel()
    reordered = Reorder(method).transform(batch)
    assert_allclose(kernel(reordered), kernel(batch), rtol=1e-9)
    assert_allclose(kernel(reordered, batch), kernel(batch), rtol=1e-9)


def best_of_all(batch):
    """Return the fewest tiles of any way to choose the 8 nodes of the first of two parts."""
    n = batch.n_nodes
    orders = (
        [*first, *(k for k in range(n) if k not in first)] for first in combinations(range(n), 8)
    )
    rows = adjacency(batch)
    return min(int(count_tiles(batch, rows, np.array(order))[0]) for order in orders)


@pytest.mark.parametrize("seed", range(6))
def test_partition_finds_the_optimum_of_two_parts(seed):
    batch = as_batch([random_graph(11, 0.1 + 0.03 * seed, seed)])
    assert n_tiles(batch, "partition", n_sweeps=1000).tolist() == [best_of_all(batch)]


def test_partition_finds_cliques_of_eight():
    clique = np.array(list(combinations(range(8), 2)))
    edges = np.concatenate([clique + 8 * k for k in range(20)])
    batch = shuffled(graph_of(edges, 160))
    assert n_tiles(batch).item() > 300
    assert n_tiles(batch, "partition").item() == 20


def lattice(n, reach=2):
    """Return a ring of n nodes, each joined with the next few."""
    return graph_of([[k, (k + j) % n] for k in range(n) for j in range(1, reach + 1)], n)


def cloud(n, degree):
    """Return points in a cube, joined with those within a distance that gives a mean degree."""
    position = np.random.default_rng(0).random((n, 3))
    radius = np.cbrt(degree / (n * 4 / 3 * np.pi))
    edges = cKDTree(position).query_pairs(radius, output_type="ndarray")
    return graph_of(edges, n).with_columns(nodes={"position": position})


def test_how_the_orders_compare_of_points():
    counts = {method: n_tiles(cloud(400, 9), method).item() for method in METHODS[1:]}
    partition, natural = counts.pop("partition"), counts.pop("natural")
    assert partition < 0.7 * min(counts.values())
    assert max(counts.values()) < 0.4 * natural


def test_narrow_bands_by_rcm():
    batch = shuffled(lattice(48))
    reordered = permute(batch, node_order(batch, "rcm"))
    # 4 is the narrowest possible.
    assert np.abs(np.diff(batch.edge_index, axis=0)).max() > 30
    assert np.abs(np.diff(reordered.edge_index, axis=0)).max() <= 6


def test_orders_do_not_change_from_call_to_call(monkeypatch):
    batch = shuffled(as_batch([random_graph(n, 0.06, n) for n in (90, 40, 130)]))
    first = node_order(batch, "partition", random_state=3, n_sweeps=20)
    assert_array_equal(node_order(batch[:], "partition", random_state=3, n_sweeps=20), first)
    monkeypatch.setattr(numba.config, "NUMBA_NUM_THREADS", 1)
    assert_array_equal(node_order(batch, "partition", random_state=3, n_sweeps=20), first)
    assert (node_order(batch, "partition", random_state=4, n_sweeps=20) != first).any()


def test_no_seed_gives_other_orders():
    batch = shuffled(as_batch([random_graph(90, 0.06, 1)]))
    orders = [node_order(batch, "partition", None, 20).tolist() for _ in range(3)]
    assert orders[0] != orders[1] or orders[0] != orders[2]
    transformer = Reorder("partition", random_state=None, n_sweeps=0)
    assert transformer.transform(batch) is not transformer.transform(batch)


def test_small_graphs_and_trees_take_no_detour_through_metis(monkeypatch):
    sizes = []
    part_graph = pymetis.part_graph

    def recording(n_parts, pattern, **options):
        sizes.append(len(pattern.adj_starts) - 1)
        return part_graph(n_parts, pattern, **options)

    monkeypatch.setattr(pymetis, "part_graph", recording)
    tree = graph_of([[k, (k - 1) // 3] for k in range(1, 150)], 150)
    path = graph_of([[k, k - 1] for k in range(1, 150)] + [[5, 5]], 150)
    batch = GraphBatch.concatenate([lattice(8), tree, path, lattice(64), lattice(70), lattice(7)])
    node_order(batch, "partition", n_sweeps=1)
    assert sizes == [70]


def test_metis_helps_where_the_given_order_does_not():
    batch = cloud(600, 9)
    start = n_tiles(batch, "partition", n_sweeps=0)
    assert start < 0.95 * min(n_tiles(batch), n_tiles(batch, "rcm"))


def test_nodes_of_a_part_keep_their_order():
    order = node_order(shuffled(lattice(61)), "partition")
    for part in np.split(order, range(8, 61, 8)):
        assert_array_equal(part, np.sort(part))


def grid_batch(n_axes, side=8):
    """Return the points of a grid in random order, without edges."""
    points = np.stack(np.meshgrid(*[np.arange(side)] * n_axes), axis=-1).reshape(-1, n_axes)
    points = np.random.default_rng(0).permutation(points)
    # A second, shifted and stretched copy: each graph has a cube of its own.
    return from_arrays(
        [
            {"n_nodes": len(points), "edge_index": [[], []], "nodes": {"position": at}}
            for at in (points * 1.0, 0.1 * points - 50)
        ]
    )


@pytest.mark.parametrize("n_axes", [2, 3])
def test_steps_along_a_hilbert_curve_lead_to_neighbours(n_axes):
    batch = grid_batch(n_axes)
    order = node_order(batch, "hilbert")
    n = batch.n_nodes // 2
    assert_array_equal(order[:n], order[n:])
    path = batch[0].nodes["position"][order[:n]]
    assert_array_equal(np.abs(np.diff(path, axis=0)).sum(axis=1), 1)


def test_a_morton_curve_interleaves_the_bits_of_the_coordinates():
    batch = grid_batch(3)
    order = node_order(batch, "morton")
    points = batch[0].nodes["position"].astype(int)[order[: batch.n_nodes // 2]]
    keys = ["".join(f"{x:03b}"[k] for k in range(3) for x in point) for point in points.tolist()]
    assert [int(key, 2) for key in keys] == list(range(512))


def test_points_at_one_place_keep_their_order():
    batch = from_smiles(["CCO"]).with_columns(nodes={"position": np.ones((3, 2))})
    for method in ("morton", "hilbert"):
        assert node_order(batch, method).tolist() == [0, 1, 2]


def test_permute_by_hand():
    batch = GraphBatch(
        node_ptr=[0, 1, 4],
        edge_ptr=[0, 0, 3],
        edge_index=[[0, 1, 2], [1, 2, 2]],
        edge_weight=[1.0, 2.0, 3.0],
        nodes={"a": ["w", "x", "y", "z"], "rings": [[9], [], [5], [5, 6]], "v": np.eye(4)},
        edges={"order": [1.0, 1.5, 2.0]},
        unusable_nodes={"m": "the value of graph 1, node 2 is missing (None)"},
    )
    reordered = permute(batch, [0, 2, 0, 1])
    assert reordered.nodes["a"].tolist() == ["w", "z", "x", "y"]
    assert [row.tolist() for row in reordered.nodes["rings"]] == [[9], [5, 6], [], [5]]
    assert_array_equal(reordered.nodes["v"], np.eye(4)[[0, 3, 1, 2]])
    assert reordered.edge_index.tolist() == [[1, 2, 0], [2, 0, 0]]
    assert_array_equal(reordered.edge_weight, batch.edge_weight)
    assert_array_equal(reordered.edges["order"], batch.edges["order"])
    with pytest.raises(ValueError, match=r"graph 1, node 2 is missing \(None\) \(before reorder"):
        reordered.read("node", "m")


@pytest.mark.parametrize(
    ("order", "error", "message"),
    [
        ([0, 1, 2, 0], ValueError, r"order has shape \(4,\), the graphs have 5 nodes: pass one"),
        ([0, 1, 2, 0.0, 1], TypeError, "order must hold integers, got float64"),
        ([0, 1, 2, 1, 1], ValueError, "order of graph 1 is no permutation: node 0 occurs 0 times"),
        ([0, 0, 2, 0, 1], ValueError, "order of graph 0 is no permutation: node 0 occurs 2 times"),
        ([0, 1, 2, 3, 4], ValueError, "order of graph 1 holds 3, but the graph has the nodes 0 to"),
        ([0, -1, 2, 0, 1], ValueError, "order of graph 0 holds -1"),
    ],
)
def test_what_is_no_permutation(order, error, message):
    with pytest.raises(error, match=message):
        permute(from_smiles(["CCO", "CC"]), order)


@pytest.mark.parametrize("method", ["morton", "hilbert"])
@pytest.mark.parametrize(
    ("position", "message"),
    [
        (None, "coordinates, the node attribute 'position': the graphs have no node attribute"),
        ([1.0, 2.0, 3.0], r"with 2 or 3 coordinates a node, got shape \(3,\)"),
        (np.zeros((3, 4)), r"with 2 or 3 coordinates a node, got shape \(3, 4\)"),
        ([[1.0], [2.0, 3.0], [4.0]], "with 2 or 3 coordinates a node, got lists"),
        ([[0, 0], [0, np.nan], [0, 0]], "graph 0, node 1: attribute 'position' is nan"),
    ],
)
def test_curves_need_coordinates(method, position, message):
    batch = from_smiles(["CCO"])
    if position is not None:
        batch = batch.with_columns(nodes={"position": position})
    with pytest.raises(ValueError, match=f"method='{method}' needs .*{message}"):
        Reorder(method).transform(batch)


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"method": "metis"}, r"method='metis' of Reorder must be one of \['auto', 'partition'"),
        ({"random_state": -1}, "random_state=-1 of Reorder must be an integer from 0"),
        ({"random_state": 0.5}, "random_state=0.5 of Reorder must be an integer from 0"),
        ({"n_sweeps": -1}, "n_sweeps=-1 of Reorder must be an integer >= 0"),
        ({"n_sweeps": None}, "n_sweeps=None of Reorder must be an integer >= 0"),
    ],
)
def test_bad_parameters(parameters, message):
    batch = from_smiles(["CC"])
    for use in (Reorder.fit, Reorder.transform):
        with pytest.raises(ValueError, match=message):
            use(Reorder(**parameters), batch)
    with pytest.raises(ValueError, match=message):
        node_order(batch, **parameters)


def test_without_pymetis(monkeypatch):
    monkeypatch.setitem(sys.modules, "pymetis", None)
    batch = shuffled(lattice(40))
    line = r"pip install 'sklearn-mgk\[reordering\]', or choose method='rcm'"
    with pytest.raises(ImportError, match=f"the order 'partition' needs pymetis: {line}"):
        node_order(batch, "partition")
    _warn_once.cache_clear()
    with pytest.warns(UserWarning, match=f"'rcm' rather than 'partition': {line}"):
        order = node_order(batch)
    # Said once: a second warning would be an error here.
    assert_array_equal(Reorder().transform(batch).edge_index, permute(batch, order).edge_index)
    assert_array_equal(order, node_order(batch, "rcm"))
    _warn_once.cache_clear()


def test_with_pymetis_auto_is_partition():
    batch = shuffled(lattice(40))
    assert_array_equal(node_order(batch), node_order(batch, "partition"))


def test_transformer_in_a_pipeline():
    smiles = ["CCCCCCCCCO", "CCCCCCO", "CCCCO", "CCCCCCCCCN", "CCCCCCN", "CCCCN"] * 2
    kernel = make_kernel("none", "none")
    model = make_pipeline(SmilesToGraphs(), Reorder(), kernel, SVC(kernel="precomputed"))
    plain = make_pipeline(SmilesToGraphs(), kernel, SVC(kernel="precomputed"))
    target = [name[-1] for name in smiles]
    assert_array_equal(
        cross_val_score(model, smiles, target, cv=2), cross_val_score(plain, smiles, target, cv=2)
    )


def test_a_batch_is_reordered_once():
    batch = shuffled(lattice(40))
    assert Reorder("rcm").transform(batch) is Reorder("rcm").transform(list(batch))
    assert Reorder("rcm").transform(batch) is not Reorder("partition").transform(batch)


def test_picture_of_the_tiles():
    batch = shuffled(lattice(24))
    figure = plot_octiles(batch[0], ["natural", "rcm"])
    for axes, method in zip(figure.axes, ["natural", "rcm"], strict=True):
        assert axes.get_title() == f"{method}: {n_tiles(batch, method).item()} tiles"
        (image,) = axes.get_images()
        cells = np.asarray(image.get_array())
        assert cells.shape == (24, 24)
        assert (cells == 2).sum() == 2 * batch.n_edges
        assert (cells > 0).sum() == 64 * n_tiles(batch, method).item()


def test_pictures_that_cannot_be_drawn(monkeypatch):
    batch = lattice(10)
    with pytest.raises(TypeError, match=r"draws one graph, batch\[0\], got GraphBatch"):
        plot_octiles(batch)
    for orders in ("rcm", []):
        with pytest.raises(ValueError, match="must be a list of at least one method"):
            plot_octiles(batch[0], orders)
    monkeypatch.setitem(sys.modules, "matplotlib.colors", None)
    with pytest.raises(ImportError, match=r"matplotlib: pip install 'sklearn-mgk\[examples\]'"):
        plot_octiles(batch[0])
