# SPDX-License-Identifier: BSD-3-Clause
"""Adjacency rules: formulas, radii, cutoffs, parameters."""

import math
import pickle

import numpy as np
import pytest
from sklearn.base import clone

from sklearn_mgk import (
    AdjacencyFunction,
    CompactBell,
    Gaussian,
    HardCutoff,
    Structure,
    StructuresToGraphs,
    Tent,
    from_structures,
)
from sklearn_mgk.graphs.structures.elements import RADII, SYMBOLS, atomic_numbers, radii_of


def inverse_distance(r, r2, d):
    return np.sqrt(r * r2) / d


def tent(u, n):
    return (1 - u / 3) ** n if u < 3 else 0.0


def bell(u, a, b):
    t = 1 - u / 3
    return (a * t**b - b * t**a) / (a - b) if u < 3 else 0.0


# Rule, its weight as a function of both radii and the distance, and where it ends for radii of 1.
RULES = {
    "tent": (Tent(), lambda r, r2, d: tent(d / math.sqrt(r * r2), 1), 3.0),
    "tent, zoom": (
        Tent(2, zoom=0.75),
        lambda r, r2, d: tent(d / math.sqrt(r * r2) / 0.75, 2),
        2.25,
    ),
    "bell": (CompactBell(), lambda r, r2, d: bell(d / math.sqrt(r * r2), 3, 2), 3.0),
    "bell, zoom": (
        CompactBell(5, 2.5, zoom=1.2),
        lambda r, r2, d: bell(d / math.sqrt(r * r2) / 1.2, 5, 2.5),
        3.6,
    ),
    "gaussian": (
        Gaussian(),
        lambda r, r2, d: math.exp(-(d**2) / (2 * r * r2)) if d < 4 * math.sqrt(r * r2) else 0.0,
        4.0,
    ),
    "gaussian, truncated": (
        Gaussian(zoom=0.5, truncation=2.0),
        lambda r, r2, d: math.exp(-(d**2) / (0.5 * r * r2)) if d < math.sqrt(r * r2) else 0.0,
        1.0,
    ),
    "hard": (HardCutoff(2.5), lambda r, r2, d: float(d < 2.5 * math.sqrt(r * r2)), 2.5),
    "function": (
        AdjacencyFunction(inverse_distance, cutoff=2.0),
        lambda r, r2, d: math.sqrt(r * r2) / d if d < 2.0 else 0.0,
        2.0,
    ),
}


@pytest.mark.parametrize("name", RULES)
def test_weights_follow_the_formula(name):
    rule, formula, _ = RULES[name]
    rng = np.random.default_rng(0)
    r, r2, d = (rng.uniform(0.5, high, 200) for high in (2, 2, 6))
    expected = [formula(*row) for row in zip(r, r2, d, strict=True)]
    assert 0 < np.count_nonzero(expected) < 200
    np.testing.assert_allclose(rule.weights(r, r2, d), expected, rtol=1e-12, atol=1e-15)
    np.testing.assert_array_equal(rule.weights(r, r2, d), rule.weights(r2, r, d))


@pytest.mark.parametrize("name", RULES)
def test_reach_is_where_the_weight_ends(name):
    rule, _, end = RULES[name]
    assert rule.reach(np.array([0.2, 1.0])) == pytest.approx(end)
    ends = np.array([0.999 * end, 1.001 * end])
    inside, outside = rule.weights(np.ones(2), np.ones(2), ends)
    assert inside > 0 == outside


@pytest.mark.parametrize("name", RULES)
def test_rules_are_cloned_pickled_and_shown(name):
    rule = RULES[name][0]
    for copy in (clone(rule), pickle.loads(pickle.dumps(rule))):
        assert copy.get_params() == rule.get_params()
    assert type(rule).__name__ in repr(rule)


def test_parameters_are_reached_from_the_transformer():
    transformer = StructuresToGraphs(adjacency=Tent())
    transformer.set_params(adjacency__zoom=0.5, adjacency__length_scale="covalent")
    assert transformer.get_params()["adjacency__zoom"] == 0.5
    assert transformer.adjacency.length_scale == "covalent"


# By hand from the tables of Bondi, Mantina, Alvarez and Cordero.
@pytest.mark.parametrize(
    ("element", "van_der_waals", "covalent"),
    [
        ("H", 1.20, 0.31),
        ("C", 1.70, 0.76),
        ("N", 1.55, 0.71),
        ("O", 1.52, 0.66),
        ("Na", 2.27, 1.66),
        ("P", 1.80, 1.07),
        ("Cl", 1.75, 1.02),
        ("Fe", 2.44, 1.32),
        ("Zn", 1.39, 1.22),
        ("Br", 1.85, 1.20),
        ("I", 1.98, 1.39),
        ("U", 1.86, 1.96),
    ],
)
def test_radii_of_the_tables(element, van_der_waals, covalent):
    numbers = atomic_numbers([element])
    assert radii_of(numbers, "van_der_waals") == [van_der_waals]
    assert radii_of(numbers, "covalent") == [covalent]


def test_atomic_numbers_agree_with_rdkit():
    from rdkit.Chem import GetPeriodicTable

    table = GetPeriodicTable()
    assert [table.GetElementSymbol(i) for i in range(1, 119)] == SYMBOLS[1:].tolist()
    assert all(len(radii) == 119 for radii in RADII.values())
    assert atomic_numbers([*SYMBOLS, "6", 17, "cl", "BR", "D", "t"]).tolist() == [
        *range(119),
        *(6, 17, 17, 35, 1, 1),
    ]


@pytest.mark.parametrize(
    ("length_scale", "expected"),
    [
        ("van_der_waals", math.sqrt(1.70 * 1.52)),
        ("covalent", math.sqrt(0.76 * 0.66)),
        (1.5, 1.5),
        ({"C": 2.0, "O": 0.5}, 1.0),
    ],
)
def test_length_scales(length_scale, expected):
    molecule = Structure(["C", "O"], [[0, 0, 0], [0, 0, 1.13]])
    batch = from_structures([molecule], adjacency=Tent(length_scale=length_scale, zoom=2.0))
    assert batch.edge_weight[0] == pytest.approx(1 - 1.13 / (6 * expected), rel=1e-14)


@pytest.mark.parametrize(
    ("rule", "message"),
    [
        (Tent(order=0), "order of Tent must be a finite number > 0, got 0"),
        (Tent(zoom=-1), "zoom of Tent must be a finite number > 0, got -1"),
        (Tent(zoom=math.nan), "zoom of Tent .* got nan"),
        (Tent(length_scale="vdw"), r"length_scale of Tent must be one of .*'covalent'.* got 'vdw'"),
        (Tent(length_scale=-2.0), "length_scale of Tent .* got -2.0"),
        (Tent(length_scale={}), "length_scale of Tent .* got {}"),
        (Tent(length_scale={"C": 0}), "length_scale of Tent .* got {'C': 0}"),
        (Tent(length_scale={"Qq": 1.0}), "the element 'Qq'"),
        (CompactBell(2, 3), "CompactBell needs a > b >= 2, got a=2, b=3"),
        (CompactBell(3, 1), "CompactBell needs a > b >= 2, got a=3, b=1"),
        (Gaussian(truncation=0), "truncation of Gaussian must be a finite number > 0, got 0"),
        (Gaussian(truncation=math.inf), "truncation of Gaussian .* got inf"),
        (HardCutoff(0.0), "cutoff of HardCutoff must be a finite number > 0, got 0.0"),
        (HardCutoff(-5), "cutoff of HardCutoff must be a finite number > 0, got -5"),
        (HardCutoff("5"), "cutoff of HardCutoff must be a finite number > 0, got '5'"),
        (AdjacencyFunction(inverse_distance, cutoff=-1), "cutoff of AdjacencyFunction .* got -1"),
    ],
)
def test_parameters_are_checked_before_anything_is_read(rule, message):
    with pytest.raises(ValueError, match=message):
        StructuresToGraphs(adjacency=rule).fit(["no such file.pdb"])
    with pytest.raises(ValueError, match=message):
        from_structures(["no such file.pdb"], adjacency=rule)


@pytest.mark.parametrize(
    ("rule", "message"),
    [
        (lambda r, r2, d: d, r"wrap a function .* AdjacencyFunction\(function, cutoff\)"),
        ("tent", "adjacency must be a rule such as Tent"),
        (Tent, "adjacency must be a rule such as Tent"),
        (AdjacencyFunction(3, cutoff=1.0), "function has to be a Python function"),
    ],
)
def test_what_is_no_rule_is_a_type_error(rule, message):
    with pytest.raises(TypeError, match=message):
        StructuresToGraphs(adjacency=rule).fit([])


@pytest.mark.parametrize(
    ("function", "message"),
    [
        (lambda r, r2, d: -d, r"gives the weight -1.13 to atom 0 \(C\) and atom 1 \(O\) at 1.130"),
        (lambda r, r2, d: d * np.nan, r"row 0: adjacency=.* gives the weight nan to atom 0"),
        (lambda r, r2, d: d / 0.0, "gives the weight inf"),
        (lambda r, r2, d: 1.0, "has to return 1 weights, one a pair"),
        (lambda r, r2, d: d[:, None], "has to return 1 weights, one a pair"),
        (lambda r, r2, d: d.astype(str), "has to return 1 weights, one a pair"),
        (lambda r, r2, d: r, "another weight when the two radii are exchanged"),
    ],
)
def test_weights_without_meaning_are_errors(function, message):
    molecule = Structure(["C", "O"], [[0, 0, 0], [0, 0, 1.13]])
    with np.errstate(divide="ignore"), pytest.raises(ValueError, match=message):
        from_structures([molecule], adjacency=AdjacencyFunction(function, cutoff=3.0))


def test_an_element_without_a_radius_is_named():
    molecule = Structure(["Lr", "O"], [[0, 0, 0], [0, 0, 2.0]], name="lawrencium oxide")
    message = r"row 0 \(lawrencium oxide\): the table 'van_der_waals' has no radius for Lr"
    with pytest.raises(ValueError, match=message):
        from_structures([molecule])
    with pytest.raises(ValueError, match="length_scale has no radius for O"):
        from_structures([molecule], adjacency=Tent(length_scale={"Lr": 2.0}))
    assert from_structures([molecule], adjacency=Tent(length_scale=1.5)).n_edges == 1
