# SPDX-License-Identifier: BSD-3-Clause
"""Values published with, or computed by the formulas of, the reference implementation.

They are K / q^2 there, with nodes that carry a radius and a category.
"""

import networkx as nx
import numpy as np
import pytest
from cases import BACKENDS
from oracles import PlainGraph, as_batch

from sklearn_mgk import MarginalizedGraphKernel, from_networkx
from sklearn_mgk.base_kernels import KroneckerDelta, SquaredExponential

Q = 0.05
NODES = [{"radius": r, "category": c} for r, c in ((1.0, 1), (2.0, 1), (1.0, 2))]
ENDS = ([(0, 1)], [(0, 1), (1, 2)], [(0, 1), (0, 2), (1, 2)])
WEIGHTS = ([1.0], [1.0, 2.0], [1.0, 0.5, 2.0])
LENGTHS = ([1.5], [1.5, 2.0], [1.5, 2.0, 1.0])


def graphs(weighted):
    return [
        PlainGraph(
            NODES[: max(max(e) for e in ends) + 1],
            [
                (i, j, w if weighted else 1.0, {"length": s})
                for (i, j), w, s in zip(ends, weights, lengths, strict=True)
            ],
        )
        for ends, weights, lengths in zip(ENDS, WEIGHTS, LENGTHS, strict=True)
    ]


def node_kernel(length_scale):
    return SquaredExponential("radius", length_scale) * KroneckerDelta("category", 0.5)


GOLDEN = {
    "unlabeled": (
        (None, None, False),
        [41.02564103, 61.53846154, 61.53846154, 92.30769231, 92.30769231, 92.30769231],
    ),
    "node labels": (
        (node_kernel(0.5), None, False),
        [
            20.821150537181, 12.023029422495, 6.288556220795,
            19.424048396562, 9.722805207916, 9.034123014958,
        ],
    ),
    "node labels and weights": (
        (node_kernel(0.5), None, True),
        [
            20.821150537181, 10.127270914179, 7.312069099942,
            20.659029497391, 13.69646497668, 11.383178134574,
        ],
    ),
    "all labels and weights": (
        (node_kernel(1.0), SquaredExponential("length", 1.0), True),
        [
            23.192990696288, 11.152132240979, 9.569643953909,
            20.640290998706, 12.373976990857, 14.362086940639,
        ],
    ),
}  # fmt: skip

NODAL = [
    [3.733965161585, 0.990920988202, 1.706357893437],
    [1.148954784242, 3.029324278765, 0.542609134748],
]


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("name", GOLDEN)
def test_values(name, backend):
    (node, edge, weighted), expected = GOLDEN[name]
    kernel = MarginalizedGraphKernel(
        node, edge, stopping_probability=Q, backend=backend, tol=1e-13, cache_size=0
    )
    K = kernel(as_batch(graphs(weighted)))
    np.testing.assert_allclose(K[np.triu_indices(3)] / Q**2, expected, rtol=1e-9)


@pytest.mark.parametrize("backend", BACKENDS)
def test_nodal(backend):
    kernel = MarginalizedGraphKernel(
        node_kernel(1.0),
        SquaredExponential("length", 1.0),
        stopping_probability=Q,
        backend=backend,
        tol=1e-13,
    )
    nodal = kernel.nodal(as_batch(graphs(True)[:1]), as_batch(graphs(True)[1:2]))
    np.testing.assert_allclose(nodal / Q**2, NODAL, rtol=1e-9)


@pytest.mark.parametrize("backend", BACKENDS)
def test_self_loop_and_isolated_node(backend):
    nodes = [{"label": k} for k in (1, 2, 3)]
    edges = [(0, 0, 2.0, {"value": 1.0}), (0, 1, 1.0, {"value": 2.0})]
    kernel = MarginalizedGraphKernel(
        KroneckerDelta("label", 0.5),
        SquaredExponential("value", 1.0),
        stopping_probability=0.1,
        backend=backend,
        tol=1e-13,
    )
    nodal = kernel.nodal(as_batch([PlainGraph(nodes, edges)])) / 0.1**2
    expected = [[2.313244093177, 1.015982006701, 0.5], [0, 2.873727715474, 0.5], [0, 0, 1]]
    np.testing.assert_allclose(np.triu(nodal), expected, rtol=1e-9, atol=1e-15)


# Values of graphkit-learn 0.2.1, marginalizedkernel(node_label="atom", edge_label="bond_type",
# p_quit=q, n_iteration=600, remove_totters=False): hard matching of labels, p = 1/n.
GRAPHKIT = {
    0.05: [
        0.00216415159415, 0.00193856683616, 0.00160965836023, 0.00178545374833, 0.00207067922414,
        0.00169866881429, 0.00171027660119, 0.00164524564435, 0.00145533115993, 0.00164283118835,
    ],
    0.4: [
        0.0876812868252, 0.0879099566136, 0.0792164503389, 0.0802520468474, 0.0935438854746,
        0.0832878937493, 0.081760723397, 0.0794752979076, 0.0743840234767, 0.0761666031923,
    ],
}  # fmt: skip


def ring_with_tail(n):
    """Return a ring of n nodes with one more at node 0, atoms and bonds in a fixed pattern."""
    ring = nx.cycle_graph(n)
    ring.add_edge(0, n)
    nx.set_node_attributes(ring, dict(zip(ring, "CCNOCCNOC", strict=False)), "atom")
    nx.set_edge_attributes(ring, dict(zip(ring.edges, "121121121", strict=False)), "bond_type")
    nx.set_node_attributes(ring, 1 / (n + 1), "p")
    return ring


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("q", GRAPHKIT)
def test_hard_matching(q, backend):
    kernel = MarginalizedGraphKernel(
        KroneckerDelta("atom", h=0.0, h_bounds="fixed"),
        KroneckerDelta("bond_type", h=0.0, h_bounds="fixed"),
        starting_probability="p",
        stopping_probability=q,
        backend=backend,
        tol=1e-13,
    )
    K = kernel(from_networkx([ring_with_tail(n) for n in (4, 5, 6, 8)]))
    np.testing.assert_allclose(K[np.triu_indices(4)], GRAPHKIT[q], rtol=1e-10)
