# SPDX-License-Identifier: BSD-3-Clause
"""Base kernels to test, each with labels and its value in plain Python."""

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from sklearn_mgk.base_kernels import (
    BaseKernel,
    Constant,
    Convolution,
    DotProduct,
    FormulaKernel,
    FunctionKernel,
    KroneckerDelta,
    Normalized,
    RationalQuadratic,
    SquaredExponential,
)
from sklearn_mgk.graphs.columns import as_column

LABELS = {
    "element": ["C", "N", "Cl", "C", "O"],
    "charge": [0, -1, 1, 0, 2],
    "aromatic": [True, False, False, True, True],
    "order": [1.0, 1.5, 2.0, 1.0, 3.0],
    "length": [0.9, 1.4, 1.1, 1.1, 2.3],
    "position": [[0.0, 1.0], [0.5, 2.0], [0.0, 1.0], [1.5, 0.25], [0.0, 0.0]],
    "rings": [[5, 6], [], [6], [6], [3, 3, 5]],
    "names": [["a", "b"], ["b"], [], ["b", "b"], ["a", "b"]],
}
COLUMNS = {name: as_column(values) for name, values in LABELS.items()}


@dataclass(frozen=True)
class Case:
    """A kernel and its value between two labels, which are dicts of plain Python values."""

    kernel: BaseKernel
    oracle: Callable[[dict, dict], float]

    @property
    def columns(self):
        """The labels of the attributes that the kernel reads."""
        return {name: COLUMNS[name] for name in self.kernel.attributes}

    def expected(self):
        """Table of the oracle's values."""
        rows = [dict(zip(LABELS, row, strict=True)) for row in zip(*LABELS.values(), strict=True)]
        return np.array([[self.oracle(x, y) for y in rows] for x in rows])


def delta(name, h):
    return lambda x, y: 1.0 if x[name] == y[name] else h


def distance2(x, y):
    return sum((a - b) ** 2 for a, b in zip(x, y, strict=True))


def inner(x, y):
    return sum(a * b for a, b in zip(x, y, strict=True))


def gauss(name, scale):
    return lambda x, y: math.exp(-0.5 * ((x[name] - y[name]) / scale) ** 2)


def cosine(x, y):
    norm = math.sqrt(inner(x, x)) * math.sqrt(inner(y, y))
    return inner(x, y) / norm if norm else 0.0


def over_pairs(name, element, mean):
    def oracle(x, y):
        x, y = x[name], y[name]
        if not x or not y:
            return float(x == y)
        return sum(element(u, v) for u in x for v in y) / (len(x) * len(y) if mean else 1)

    return oracle


def cosine_of(oracle):
    return lambda x, y: oracle(x, y) / math.sqrt(oracle(x, x) * oracle(y, y))


def same_initial(x, y):
    return np.where(np.strings.slice(x, 1) == np.strings.slice(y, 1), 1.0, 0.25)


def decay(x, y, rate):
    return np.exp(-rate * np.abs(x - y))


def decay_gradient(x, y, rate):
    return {"rate": -np.abs(x - y) * decay(x, y, rate)}


def shared_elements(x, y):
    return np.vectorize(lambda a, b: (1 + len({*a} & {*b})) / (1 + len({*a} | {*b})))(x, y)


RING = SquaredExponential("rings", length_scale=0.8)
SHARED_NAME = KroneckerDelta("names", h=0.3)
TENT = "Max(0, 1 - Abs(x - y) / width)"

CASES = {
    "constant": Case(Constant(0.4, (0.1, 1.0)), lambda x, y: 0.4),
    "constant_fixed": Case(Constant(0.7), lambda x, y: 0.7),
    "delta_strings": Case(KroneckerDelta("element", h=0.3), delta("element", 0.3)),
    "delta_numbers": Case(KroneckerDelta("order", h=0.2), delta("order", 0.2)),
    "delta_booleans": Case(KroneckerDelta("aromatic", h=0.2), delta("aromatic", 0.2)),
    "delta_vectors": Case(KroneckerDelta("position", h=0.2), delta("position", 0.2)),
    "delta_lists": Case(KroneckerDelta("rings", h=0.6), delta("rings", 0.6)),
    "delta_hard": Case(KroneckerDelta("charge", h=0, h_bounds="fixed"), delta("charge", 0)),
    "gauss": Case(SquaredExponential("length", length_scale=0.5), gauss("length", 0.5)),
    "gauss_integers": Case(SquaredExponential("charge", length_scale=1.2), gauss("charge", 1.2)),
    "gauss_vectors": Case(
        SquaredExponential("position", length_scale=0.7),
        lambda x, y: math.exp(-distance2(x["position"], y["position"]) / (2 * 0.49)),
    ),
    "rational": Case(
        RationalQuadratic("length", length_scale=0.6, alpha=1.7),
        lambda x, y: (1 + (x["length"] - y["length"]) ** 2 / (2 * 1.7 * 0.36)) ** -1.7,
    ),
    "rational_partly_fixed": Case(
        RationalQuadratic("position", alpha=0.5, length_scale_bounds="fixed"),
        lambda x, y: (1 + distance2(x["position"], y["position"])) ** -0.5,
    ),
    "dot_vectors": Case(DotProduct("position"), lambda x, y: inner(x["position"], y["position"])),
    "dot_numbers": Case(DotProduct("order"), lambda x, y: x["order"] * y["order"]),
    "sum": Case(
        0.25 * KroneckerDelta("element", h=0.3) + Constant(0.5, (0.1, 0.7)) * Constant(1.0),
        lambda x, y: 0.25 * delta("element", 0.3)(x, y) + 0.5,
    ),
    "product": Case(
        KroneckerDelta("element", h=0.3)
        * SquaredExponential("order", length_scale=0.5)
        * KroneckerDelta("order", h=0.9)
        * (KroneckerDelta("aromatic", h=0.8) * KroneckerDelta("charge", h_bounds="fixed")),
        lambda x, y: (
            delta("element", 0.3)(x, y)
            * gauss("order", 0.5)(x, y)
            * delta("order", 0.9)(x, y)
            * delta("aromatic", 0.8)(x, y)
            * delta("charge", 0.5)(x, y)
        ),
    ),
    "square": Case(
        (0.5 + 0.5 * DotProduct("order")) ** 2,
        lambda x, y: (0.5 + 0.5 * x["order"] * y["order"]) ** 2,
    ),
    "root": Case(
        KroneckerDelta("charge", h=0, h_bounds="fixed") * KroneckerDelta("element", h=0.3) ** 0.5,
        lambda x, y: delta("charge", 0)(x, y) * delta("element", 0.3)(x, y) ** 0.5,
    ),
    "normalized_dot": Case(
        DotProduct("position").normalized(), lambda x, y: cosine(x["position"], y["position"])
    ),
    "normalized_sum": Case(
        Normalized(
            Constant(0.5, (0.1, 2)) * DotProduct("order") + KroneckerDelta("element", h=0.3)
        ),
        cosine_of(lambda x, y: 0.5 * x["order"] * y["order"] + delta("element", 0.3)(x, y)),
    ),
    "convolution_mean": Case(
        Convolution(RING), over_pairs("rings", lambda u, v: math.exp(-((u - v) ** 2) / 1.28), True)
    ),
    "convolution_normalized": Case(
        Convolution(RING, reduction="sum").normalized(),
        cosine_of(over_pairs("rings", lambda u, v: math.exp(-((u - v) ** 2) / 1.28), False)),
    ),
    "convolution_strings": Case(
        Convolution(SHARED_NAME * Constant(0.9, (0.1, 1))),
        over_pairs("names", lambda u, v: 0.9 if u == v else 0.27, True),
    ),
    "convolution_vectors": Case(
        Convolution(SquaredExponential("position")),
        over_pairs("position", lambda u, v: math.exp(-((u - v) ** 2) / 2), True),
    ),
    "formula": Case(
        FormulaKernel("length", TENT, {"width": (1.3, (0.1, 10.0))}),
        lambda x, y: max(0.0, 1 - abs(x["length"] - y["length"]) / 1.3),
    ),
    "formula_vectors": Case(
        FormulaKernel(
            "position",
            "exp(-a * (x0 - y0)**2 - S * Abs(x1 - y1))",
            {"a": 0.3, "S": (0.4, (0.1, 1.0))},
        ),
        lambda x, y: math.exp(
            -0.3 * (x["position"][0] - y["position"][0]) ** 2
            - 0.4 * abs(x["position"][1] - y["position"][1])
        ),
    ),
    "function": Case(
        FunctionKernel("element", same_initial),
        lambda x, y: 1.0 if x["element"][0] == y["element"][0] else 0.25,
    ),
    "function_gradient": Case(
        FunctionKernel("length", decay, decay_gradient, {"rate": (0.8, (0.1, 5.0))}),
        lambda x, y: math.exp(-0.8 * abs(x["length"] - y["length"])),
    ),
    "function_lists": Case(
        0.5 * FunctionKernel("rings", shared_elements) + 0.5 * KroneckerDelta("element", h=0.1),
        lambda x, y: (
            0.5
            * (1 + len({*x["rings"]} & {*y["rings"]}))
            / (1 + len({*x["rings"]} | {*y["rings"]}))
            + 0.5 * delta("element", 0.1)(x, y)
        ),
    ),
}
LABELED = {name: case for name, case in CASES.items() if case.kernel.attributes}
FORMULAS = {name: case for name, case in CASES.items() if case.kernel.is_formula}
