# SPDX-License-Identifier: BSD-3-Clause
"""Slow, plain answers by other routes than the package's. Do not benchmark.

A graph is a `PlainGraph`; base kernels are Python functions of two dicts of attributes.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import product

import numpy as np

from sklearn_mgk import from_arrays


@dataclass
class PlainGraph:
    """Lists of attribute dicts, and edges as (i, j, weight, attributes)."""

    nodes: list[dict]
    edges: list[tuple[int, int, float, dict]] = field(default_factory=list)

    @property
    def n(self) -> int:
        return len(self.nodes)

    def entries(self):
        """Directed entries (i, j, weight, attributes); a self-loop gives one."""
        for i, j, w, attributes in self.edges:
            if w > 0:
                yield i, j, w, attributes
                if i != j:
                    yield j, i, w, attributes

    def weight_sum(self) -> np.ndarray:
        total = np.zeros(self.n)
        for i, _, w, _ in self.entries():
            total[i] += w
        return total

    def permuted(self, order) -> PlainGraph:
        """The same graph with node ``order[k]`` at place k."""
        place = {old: new for new, old in enumerate(order)}
        edges = [(place[j], place[i], w, a) for i, j, w, a in reversed(self.edges)]
        return PlainGraph([self.nodes[old] for old in order], edges)

    def scaled(self, factor: float) -> PlainGraph:
        """The same graph with all weights times a factor."""
        return PlainGraph(self.nodes, [(i, j, w * factor, a) for i, j, w, a in self.edges])

    def union(self, other: PlainGraph) -> PlainGraph:
        """Both graphs side by side."""
        shifted = [(i + self.n, j + self.n, w, a) for i, j, w, a in other.edges]
        return PlainGraph(self.nodes + other.nodes, self.edges + shifted)


def as_batch(graphs):
    """The graphs as the package takes them."""
    return from_arrays(
        [
            {
                "n_nodes": g.n,
                "edge_index": np.array([(i, j) for i, j, _, _ in g.edges], int).reshape(-1, 2).T,
                "edge_weight": np.array([w for _, _, w, _ in g.edges], float),
                "nodes": columns(g.nodes, graphs[0].nodes[0]),
                "edges": columns([a for *_, a in g.edges], edge_attributes(graphs)),
            }
            for g in graphs
        ]
    )


def edge_attributes(graphs):
    return next((a for g in graphs for *_, a in g.edges), {})


def columns(rows, names):
    return {name: [row[name] for row in rows] for name in names}


def stop_and_degree(graph, q, rule):
    """Stopping probability and degree of each node."""
    total = graph.weight_sum()
    if rule == "additive":
        return q / (total + q), total + q
    return np.full(graph.n, q), np.where(total > 0, total / (1 - q), 1.0)


def dense_nodal(g, h, kv, ke, q, p=1.0, rule="probability", min_steps=0):
    """p p' x by node, from x = V (q q' + D^-1 W x) as a dense system of all product nodes."""
    size = g.n * h.n
    stop, degree = stop_and_degree(g, q, rule)
    stop2, degree2 = stop_and_degree(h, q, rule)
    V = np.array([kv(a, b) for a, b in product(g.nodes, h.nodes)])
    T = np.zeros((size, size))
    for (i, j, w, e), (i2, j2, w2, e2) in product(g.entries(), h.entries()):
        T[i * h.n + i2, j * h.n + j2] += w * w2 * ke(e, e2) / degree[i] / degree2[i2]
    first = V * np.outer(stop, stop2).ravel()
    x = np.linalg.solve(np.eye(size) - V[:, None] * T, first)
    shown = x - first if min_steps else x
    start = np.outer(p * np.ones(g.n), p * np.ones(h.n)).ravel()
    return (start * shown).reshape(g.n, h.n)


def dense_kernel(g, h, kv, ke, q, **options):
    """Kernel value; see `dense_nodal`."""
    return dense_nodal(g, h, kv, ke, q, **options).sum()


def walk_sum(g, h, kv, ke, q, n_steps, rule="probability"):
    """Add up simultaneous walks of at most n_steps steps, one by one."""
    stop, degree = stop_and_degree(g, q, rule)
    stop2, degree2 = stop_and_degree(h, q, rule)
    moves = [[] for _ in range(g.n)]
    for i, j, w, e in g.entries():
        moves[i].append((j, w / degree[i], e))
    moves2 = [[] for _ in range(h.n)]
    for i, j, w, e in h.entries():
        moves2[i].append((j, w / degree2[i], e))

    def walks(i, i2, left):
        here = kv(g.nodes[i], h.nodes[i2])
        total = here * stop[i] * stop2[i2]
        if left == 0:
            return total
        for (j, t, e), (j2, t2, e2) in product(moves[i], moves2[i2]):
            total += here * t * t2 * ke(e, e2) * walks(j, j2, left - 1)
        return total

    return sum(walks(i, i2, n_steps) for i in range(g.n) for i2 in range(h.n))
