# SPDX-License-Identifier: BSD-3-Clause
"""Registries that drive the suite: graphs, base kernels with plain twins, options, backends."""

from __future__ import annotations

import math

import numpy as np
import pytest
from oracles import PlainGraph

from sklearn_mgk import (
    HardCutoff,
    MarginalizedGraphKernel,
    StartingProbability,
    Structure,
    Tent,
    available_backends,
    from_structures,
)
from sklearn_mgk.base_kernels import (
    Constant,
    Convolution,
    DotProduct,
    FormulaKernel,
    FunctionKernel,
    KroneckerDelta,
    RationalQuadratic,
    SquaredExponential,
)

BACKENDS = ["cpu", "reference", pytest.param("cuda", marks=pytest.mark.gpu)]
"""Backends that tests run on; those of the device are chosen with ``-m gpu``."""

HERE = available_backends()
"""Backends that work on this machine, for tests that draw or loop over them."""

DTYPES = {"float64": 1e-10, "float32": 2e-6}
"""Relative error of a value that each dtype allows, for solves to a residual of 1e-12."""

AMPLIFICATION = {"long walks": 40, "additive, min_steps": 10}
"""Options that multiply rounding errors: Z is singular for q = 0, walks cancel for large q."""


def random_graph(n, density, seed, *, loops=False, parallel=False, weights=True):
    """Random labeled graph; may fall apart and have isolated nodes."""
    rng = np.random.default_rng(seed)
    nodes = [
        {
            "kind": str(rng.choice(["C", "N", "Cl"])),
            "charge": float(rng.normal()),
            "rings": [int(r) for r in rng.integers(3, 8, rng.integers(0, 3))],
            "vector": [float(v) for v in np.abs(rng.normal(size=3))],
        }
        for _ in range(n)
    ]
    edges = []
    for i in range(n):
        for j in range(i if loops else i + 1, n):
            for _ in range(1 + (parallel and rng.random() < 0.3)):
                if rng.random() < density:
                    label = {"order": int(rng.integers(1, 4)), "length": float(rng.random())}
                    edges.append((i, j, float(rng.random() + 0.2) if weights else 1.0, label))
    return PlainGraph(nodes, edges)


def path(n):
    """Unweighted path."""
    graph = random_graph(n, 0.0, n)
    graph.edges = [(i, i + 1, 1.0, {"order": 1, "length": 0.3}) for i in range(n - 1)]
    return graph


def in_space(elements, positions, rule, cell=None):
    """Atoms in space, periodic with a cell; charges and lengths are of the order of 1."""
    row = Structure(elements, positions, cell, cell is not None)
    batch = from_structures([row], adjacency=rule)
    nodes = [
        {
            "kind": element,
            "charge": math.cos(position.sum()),
            "rings": [int(number)] * int(number > 1),
            "vector": np.abs(position) + 0.1,
        }
        for element, number, position in zip(
            row.elements.tolist(), row.numbers, row.positions, strict=True
        )
    ]
    edges = [
        (int(i), int(j), float(w), {"order": 1 + int(i) % 2, "length": length / 3})
        for (i, j), w, length in zip(
            batch.edge_index.T, batch.edge_weight, batch.edges["length"], strict=True
        )
    ]
    return PlainGraph(nodes, edges)


_TETRAHEDRON = 0.629 * np.array([[1, 1, 1], [1, -1, -1], [-1, 1, -1], [-1, -1, 1]])
_METHANE = np.vstack([np.zeros(3), _TETRAHEDRON])
_WATER = [[0, 0, 0.12], [0, 0.76, -0.48], [0, -0.76, -0.48]]
_CUBIC_FACES = np.ones((3, 3)) - np.eye(3)

GRAPH_SETS = {
    "sparse": [random_graph(n, 0.3, n) for n in (5, 2, 9, 4)],
    "trees and rings": [path(6), path(2), random_graph(7, 0.35, 3)],
    "single and isolated": [path(1), random_graph(4, 0.0, 8), path(3)],
    "loops and parallel edges": [
        random_graph(n, 0.4, 20 + n, loops=True, parallel=True) for n in (4, 6, 3)
    ],
    "molecules in space": [
        in_space(["C", *"HHHH"], _METHANE, Tent()),
        in_space(["O", *"HH"], _WATER, Tent()),
        in_space(["C", *"HHHN"], _METHANE * [1.0, 1.1, 1.2], Tent()),
    ],
    "crystals": [
        in_space(["Na", "Cl"], [[0, 0, 0], [2.2, 0, 0]], HardCutoff(3.3), 2.2 * _CUBIC_FACES),
        in_space(["C", "N"], [[0, 0, 0], [1.1, 0.2, 0]], Tent(length_scale=1.0), np.eye(3) * 2.4),
        in_space(["C"], [[0, 0, 0]], HardCutoff(3.0), np.eye(3) * 2.5),
    ],
    "dense": [random_graph(n, 0.9, 40 + n) for n in (12, 8)],
}


def delta(name, h):
    return lambda a, b: 1.0 if a[name] == b[name] else h


def squared(name, s):
    return lambda a, b: math.exp(-((a[name] - b[name]) ** 2) / (2 * s**2))


def overlap(a, b):
    """Mean of (1 if equal else 0.4) over pairs of ring sizes; empty lists are alike."""
    if not a["rings"] or not b["rings"]:
        return float(a["rings"] == b["rings"])
    return np.mean([[1.0 if r == s else 0.4 for s in b["rings"]] for r in a["rings"]])


def cosine(a, b):
    u, v = np.array(a["vector"]), np.array(b["vector"])
    return u @ v / math.sqrt((u @ u) * (v @ v))


def close_charges(x, y):
    return 1 / (1 + np.abs(x - y))


NODE_KERNELS = {
    "none": (None, lambda a, b: 1.0),
    "delta": (KroneckerDelta("kind", h=0.3), delta("kind", 0.3)),
    "hard": (KroneckerDelta("kind", h=0.0, h_bounds="fixed"), delta("kind", 0.0)),
    "product": (
        KroneckerDelta("kind", h=0.4) * SquaredExponential("charge", length_scale=0.7),
        lambda a, b: delta("kind", 0.4)(a, b) * squared("charge", 0.7)(a, b),
    ),
    "sum": (
        0.6 * KroneckerDelta("kind", h=0.2) + 0.4 * SquaredExponential("charge", 1.5),
        lambda a, b: 0.6 * delta("kind", 0.2)(a, b) + 0.4 * squared("charge", 1.5)(a, b),
    ),
    "lists": (
        0.5 * Convolution(KroneckerDelta("rings", h=0.4)) + 0.5 * KroneckerDelta("kind", h=0.5),
        lambda a, b: 0.5 * overlap(a, b) + 0.5 * delta("kind", 0.5)(a, b),
    ),
    "vectors": (DotProduct("vector").normalized(), cosine),
    "function": (
        FunctionKernel("charge", close_charges),
        lambda a, b: close_charges(a["charge"], b["charge"]),
    ),
    "formula": (
        FormulaKernel("charge", "exp(-s * (x - y)**2)", {"s": (0.8, (0.01, 10.0))}),
        lambda a, b: math.exp(-0.8 * (a["charge"] - b["charge"]) ** 2),
    ),
}

EDGE_KERNELS = {
    "none": (None, lambda a, b: 1.0),
    "constant": (Constant(0.7, (0.1, 1.0)), lambda a, b: 0.7),
    "smooth": (SquaredExponential("length", length_scale=0.4), squared("length", 0.4)),
    "narrow": (SquaredExponential("length", length_scale=0.05), squared("length", 0.05)),
    "rational": (
        RationalQuadratic("length", length_scale=0.5, alpha=1.3) ** 2,
        lambda a, b: (1 + (a["length"] - b["length"]) ** 2 / (2 * 1.3 * 0.25)) ** -2.6,
    ),
    "product": (
        KroneckerDelta("order", h=0.5) * SquaredExponential("length", length_scale=0.4),
        lambda a, b: delta("order", 0.5)(a, b) * squared("length", 0.4)(a, b),
    ),
}

OPTIONS = {
    "default": {},
    "short walks": {"stopping_probability": 0.7},
    "long walks": {"stopping_probability": 0.002},
    "min_steps": {"min_steps": 1},
    "additive": {"stopping_rule": "additive", "stopping_probability": 0.4},
    "additive, min_steps": {
        "stopping_rule": "additive",
        "stopping_probability": 2.5,
        "min_steps": 1,
        "stopping_probability_bounds": (1e-3, 10.0),
    },
    "fixed q": {"stopping_probability_bounds": "fixed"},
    "starting by kind": {
        "starting_probability": StartingProbability("kind", ("C", "N"), (0.5, 2.0), default=1.5)
    },
    "starting by kind, min_steps": {
        "starting_probability": StartingProbability("kind", ("C", "N"), (0.5, 2.0)),
        "min_steps": 1,
    },
}


def make_kernel(node="product", edge="product", backend="cpu", options="default", **more):
    """Kernel of named parts, with tight solves and nothing kept."""
    return MarginalizedGraphKernel(
        NODE_KERNELS[node][0],
        EDGE_KERNELS[edge][0],
        **{"backend": backend, "tol": 1e-12, "cache_size": 0, **OPTIONS[options], **more},
    )
