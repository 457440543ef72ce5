# SPDX-License-Identifier: BSD-3-Clause
"""Graphs for the tests of k-truss."""

import networkx as nx
import numpy as np

from sklearn_mgk.truss.sources import as_source

# The supports, level by level, of graphs that are small enough to count by hand or are published:
# number of triangles, greatest k, and edges of trussness 2, 3, 4, ...
KNOWN = {
    "karate": (nx.karate_club_graph(), 45, 5, [11, 42, 11, 14]),
    "les miserables": (nx.les_miserables_graph(), 467, 10, [22, 19, 25, 24, 2, 65, 35, 0, 62]),
    "florentine": (nx.florentine_families_graph(), 3, 3, [12, 8]),
    "davis": (nx.davis_southern_women_graph(), 0, 2, [89]),
    "complete": (nx.complete_graph(6), 20, 6, [0, 0, 0, 0, 15]),
    "icosahedron": (nx.icosahedral_graph(), 20, 4, [0, 0, 30]),
    "octahedron": (nx.octahedral_graph(), 8, 4, [0, 0, 12]),
    "petersen": (nx.petersen_graph(), 0, 2, [15]),
    # A wheel: each spoke lies in two triangles, each edge of the rim in one.
    "wheel": (nx.wheel_graph(6), 5, 3, [0, 10]),
    # Two triangles that share an edge: the edge between the far corners is missing.
    "diamond": (nx.diamond_graph(), 2, 3, [0, 5]),
    # Two cliques of four joined by one edge.
    "barbell": (nx.barbell_graph(4, 0), 8, 4, [1, 0, 12]),
    "one edge": (nx.path_graph(2), 0, 2, [1]),
}


def random_graphs(seed=0):
    """Return graphs from empty to dense, some with hubs."""
    rng = np.random.default_rng(seed)
    graphs = [nx.gnp_random_graph(int(n), p, seed=int(n)) for n, p in rng.random((6, 2)) * (25, 1)]
    graphs += [nx.powerlaw_cluster_graph(60, 4, 0.6, seed=seed), nx.star_graph(80)]
    graphs += [nx.complete_graph(50)]  # lists that are long enough for warps
    hub = nx.powerlaw_cluster_graph(90, 3, 0.5, seed=seed)
    hub.add_edges_from((90, i) for i in range(90))
    return [graph for graph in graphs if len(graph)] + [hub]


SETS = {
    "known": [graph for graph, *_ in KNOWN.values()],
    "random": random_graphs(),
    "one edge": [nx.path_graph(2)],
    "nothing but nodes and an edge": [nx.empty_graph(3), nx.path_graph(2), nx.empty_graph(1)],
}


def edge_set(graphs):
    """Return the distinct edges of networkx graphs."""
    return as_source(graphs).edges
