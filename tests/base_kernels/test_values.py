# SPDX-License-Identifier: BSD-3-Clause
"""Values and derivatives of every base kernel."""

import numpy as np
import pytest
from base_kernels.registry import CASES, LABELED, LABELS
from numpy.testing import assert_allclose, assert_array_equal

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
from sklearn_mgk.base_kernels.labels import Labels
from sklearn_mgk.graphs.columns import take

every_kernel = pytest.mark.parametrize("case", CASES.values(), ids=CASES)
every_labeled_kernel = pytest.mark.parametrize("case", LABELED.values(), ids=LABELED)
# Central differences of step h err by h^2 plus rounding / h, here 1e-10 + 1e-11.
STEP = 1e-5
ROUNDING = 1e-14


def selected(columns, rows):
    return {name: take(column, np.array(rows)) for name, column in columns.items()}


@every_kernel
def test_table_is_the_formula(case):
    assert_allclose(case.kernel.table(case.columns or [0] * 5), case.expected(), rtol=1e-13)


@every_kernel
def test_table_is_symmetric_and_diag_its_diagonal(case):
    labels = case.columns or [0] * 5
    table = case.kernel(labels)
    assert table.dtype == np.float64
    assert_allclose(table, table.T, rtol=ROUNDING)
    assert_allclose(case.kernel.diag(labels), np.diagonal(table), rtol=ROUNDING)


@every_labeled_kernel
def test_blocks_are_those_of_the_whole_table(case):
    x, y = selected(case.columns, [0, 1, 3]), selected(case.columns, [4, 2])
    table, gradient = case.kernel.table_gradient(case.columns)
    block, block_gradient = case.kernel.table_gradient(x, y)
    index = np.ix_([0, 1, 3], [4, 2])
    assert_allclose(block, table[index], rtol=ROUNDING)
    assert_allclose(block_gradient, gradient[index], rtol=ROUNDING, atol=ROUNDING)


@every_kernel
def test_gradient_is_that_of_log_hyperparameters(case):
    kernel, labels = case.kernel, case.columns or [0] * 5
    table, gradient = kernel(labels, eval_gradient=True)
    assert_array_equal(table, kernel.table(labels))
    assert gradient.shape == (5, 5, kernel.n_dims)
    for k, step in enumerate(STEP * np.eye(kernel.n_dims)):
        up, down = (kernel.clone_with_theta(kernel.theta + s).table(labels) for s in (step, -step))
        assert_allclose(gradient[..., k], (up - down) / (2 * STEP), rtol=1e-6, atol=1e-9)


@every_labeled_kernel
def test_repeated_labels_get_equal_values(case):
    rows = [2, 0, 2, 1, 0]
    table = case.kernel.table(selected(case.columns, rows))
    assert_allclose(table, case.expected()[np.ix_(rows, rows)], rtol=1e-13)


@every_labeled_kernel
def test_no_labels_give_an_empty_table(case):
    none = selected(case.columns, np.array([], dtype=int))
    table, gradient = case.kernel.table_gradient(none)
    assert table.shape == (0, 0)
    assert gradient.shape == (0, 0, case.kernel.n_dims)
    assert case.kernel.table(case.columns, none).shape == (5, 0)


def test_labels_in_every_form():
    kernel = KroneckerDelta("element", h=0.3) * Constant(1.0)
    expected = [[1, 0.3], [0.3, 1]]
    columns = {"element": np.array(["C", "O"])}
    for labels in (["C", "O"], columns, Labels(np.zeros(3, dtype=np.int32), columns)):
        assert_array_equal(kernel.table(labels), expected)
    assert_array_equal(Constant(0.5).table({}), [[0.5]])


def test_strings_of_other_widths_are_compared_by_content():
    table = KroneckerDelta("element", h=0.3).table(["C", "N"], ["Cl", "N", "C"])
    assert_array_equal(table, [[0.3, 0.3, 1], [0.3, 1, 0.3]])


def test_a_zero_base_has_a_zero_derivative():
    kernel = (Constant(0.0) * KroneckerDelta("element")) ** 0.5
    assert_array_equal(kernel.table_gradient(["C", "O"])[1], np.zeros((2, 2, 1)))


def test_parameters_without_gradient_are_fixed():
    kernel = FunctionKernel(
        "length", lambda x, y, a: 1 / (1 + a * abs(x - y)), None, {"a": (2, (1, 3))}
    )
    assert kernel.n_dims == 0
    assert_allclose(kernel.table([0.0, 1.0]), [[1, 1 / 3], [1 / 3, 1]])


@pytest.mark.parametrize(
    ("kernel", "labels", "error", "message"),
    [
        (
            SquaredExponential("element"),
            ["C", "O"],
            TypeError,
            "'element' holds labels of dtype <U1",
        ),
        (
            DotProduct("rings"),
            [[5], []],
            TypeError,
            "'rings' holds lists of varying length; use Conv",
        ),
        (Convolution(KroneckerDelta("charge")), [0, 1], TypeError, "'charge' holds single values"),
        (Convolution(KroneckerDelta("rings"), "max"), [[1], []], ValueError, "reduction='max'"),
        (
            Convolution(KroneckerDelta("a") * KroneckerDelta("b")),
            [[1], []],
            ValueError,
            r"has to read one attribute, not \['a', 'b'\]",
        ),
        (KroneckerDelta("a") * DotProduct("b"), [1, 2], TypeError, "give its labels as a dict"),
        (KroneckerDelta("a"), {"b": [1]}, ValueError, r"reads the attribute 'a'.* have \['b'\]"),
        (KroneckerDelta("a", h=0.0), [1, 2], ValueError, "h=0.0 of KroneckerDelta is optimised"),
        (KroneckerDelta("a") ** -1, [1, 2], ValueError, "exponent of .* has to be positive"),
        (FormulaKernel("a", "exp(-k*(x-y)**2)"), [1, 2], ValueError, r"symbols \['k'\]"),
        (FormulaKernel("a", "erf(x*y) * f(x-y)"), [1, 2], ValueError, r"functions \['erf', 'f'\]"),
        (FormulaKernel("a", "x*y*c", {"x": 1}), [1, 2], ValueError, "'x' cannot be the name"),
        (FunctionKernel("a", lambda x, y: np.ones(3)), [1, 2], ValueError, r"shape \(3,\)"),
        (
            FunctionKernel("a", decay := lambda x, y, b: b, lambda x, y, b: {}, {"b": (1, (1, 2))}),
            [1, 2],
            ValueError,
            r"lacks the hyperparameters \['b'\]",
        ),
    ],
)
def test_bad_labels_and_parameters_are_named(kernel, labels, error, message):
    with pytest.raises(error, match=message):
        kernel.table_gradient(labels)


def test_vectors_of_unequal_length_are_refused():
    with pytest.raises(ValueError, match="'position': labels of shape"):
        SquaredExponential("position").table([[1.0, 2.0]], [[1.0, 2.0, 3.0]])


def dense_kernel(graphs, node_kernel, edge_kernel, q):
    """Marginalized kernel of two small graphs by a dense solve, as in eq. 1 of the paper."""
    (labels1, edges1), (labels2, edges2) = graphs
    vertex = node_kernel.table(labels1, labels2)
    n1, n2 = vertex.shape
    walk = np.zeros((n1, n2, n1, n2))
    steps = edge_kernel.table(*({"length": list(e.values())} for _, e in graphs))
    degree = [np.zeros(n1), np.zeros(n2)]
    for d, edges in zip(degree, (edges1, edges2), strict=True):
        for i, j in edges:
            d[i] += 1 / (1 - q)
            d[j] += 1 / (1 - q)
    for (i, j), row in zip(edges1, steps, strict=True):
        for (k, m), step in zip(edges2, row, strict=True):
            for a, b in ((i, j), (j, i)):
                for c, d in ((k, m), (m, k)):
                    walk[a, c, b, d] = step
    stop = np.outer(*degree)
    system = np.diag((stop / vertex).ravel()) - walk.reshape(n1 * n2, n1 * n2)
    return np.linalg.solve(system, stop.ravel()).sum()


def test_golden_values_of_graphdot():
    """Unnormalised values of GraphDot's labeled example, q = 0.05, made with its mathematics."""
    nodes = {"radius": [1.0, 2.0, 1.0], "category": [1, 1, 2]}
    graphs = [
        ({name: values[:2] for name, values in nodes.items()}, {(0, 1): 1.5}),
        (nodes, {(0, 1): 1.5, (1, 2): 2.0}),
        (nodes, {(0, 1): 1.5, (0, 2): 2.0, (1, 2): 1.0}),
    ]
    plain = SquaredExponential("radius", 0.5) * KroneckerDelta("category", h=0.5)
    got = [
        [
            dense_kernel((a, b), plain, Constant(1.0) + 0 * SquaredExponential("length"), 0.05)
            for b in graphs
        ]
        for a in graphs
    ]
    assert_allclose(got[0], [20.821150537181, 12.023029422495, 6.288556220795], rtol=1e-11)
    assert_allclose(got[1][1:], [19.424048396562, 9.722805207916], rtol=1e-11)
    assert_allclose(got[2][2], 9.034123014958, rtol=1e-11)


def test_registry_reads_every_attribute():
    assert {a for case in CASES.values() for a in case.kernel.attributes} == set(LABELS)


def test_rational_quadratic_tends_to_squared_exponential():
    kernel = RationalQuadratic("length", alpha=1e6, alpha_bounds="fixed")
    assert_allclose(
        kernel.table([0.0, 1.0]), SquaredExponential("length").table([0.0, 1.0]), rtol=1e-6
    )
