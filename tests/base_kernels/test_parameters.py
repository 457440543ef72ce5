# SPDX-License-Identifier: BSD-3-Clause
"""The scikit-learn side of base kernels: parameters, theta, clone, pickle, operators, repr."""

import pickle

import numpy as np
import pytest
import sympy
from base_kernels import registry
from base_kernels.registry import CASES
from numpy.testing import assert_allclose
from sklearn.base import clone
from sklearn.gaussian_process.kernels import RBF

import sklearn_mgk.base_kernels
from sklearn_mgk.base_kernels import (
    Constant,
    Exponentiation,
    FormulaKernel,
    KroneckerDelta,
    Normalized,
    Product,
    RationalQuadratic,
    SquaredExponential,
    Sum,
)

every_kernel = pytest.mark.parametrize("case", CASES.values(), ids=CASES)
NAMES = {**vars(sklearn_mgk.base_kernels), **vars(registry)}


@every_kernel
def test_clone_and_pickle_give_equal_kernels(case):
    for copy in (clone(case.kernel), pickle.loads(pickle.dumps(case.kernel))):
        assert copy is not case.kernel
        assert copy == case.kernel
        assert_allclose(copy.theta, case.kernel.theta, rtol=0)


@every_kernel
def test_repr_makes_the_kernel_anew(case):
    # A function is written as Python writes it, which is no Python text.
    text = repr(case.kernel)
    for function in (
        registry.same_initial,
        registry.decay,
        registry.decay_gradient,
        registry.shared_elements,
    ):
        text = text.replace(repr(function), function.__name__)
    assert eval(text, NAMES) == case.kernel
    assert "np." not in repr(case.kernel.clone_with_theta(case.kernel.theta - 0.1))


@every_kernel
def test_theta_follows_hyperparameters(case):
    kernel = case.kernel
    params = kernel.get_params()
    free = [h for h in kernel.hyperparameters if not h.fixed]
    assert_allclose(np.exp(kernel.theta), [params[h.name] for h in free])
    assert_allclose(kernel.hyperparameter_values, [params[h.name] for h in kernel.hyperparameters])
    assert kernel.bounds.shape == ((kernel.n_dims, 2) if free else (0,))
    for h, bounds in zip(free, kernel.bounds, strict=True):
        assert_allclose(np.exp(bounds), np.ravel(params[f"{h.name}_bounds"]))
    moved = kernel.clone_with_theta(kernel.theta - 0.1)
    assert_allclose(moved.theta, kernel.theta - 0.1)
    assert_allclose(kernel.theta, clone(kernel).theta, err_msg="the original has to stay")


@every_kernel
def test_every_parameter_can_be_set(case):
    kernel = clone(case.kernel)
    assert kernel.set_params(**kernel.get_params()) is kernel
    assert kernel == case.kernel
    with pytest.raises(ValueError, match="no parameter 'typo'; it has"):
        kernel.set_params(typo=1)


@every_kernel
def test_latex_names_what_the_kernel_reads(case):
    text = case.kernel._repr_latex_()
    assert text.startswith("$")
    assert text.endswith("$")
    assert text.count("{") == text.count("}")
    for name in case.kernel.attributes:
        assert name in text


def test_nested_parameters_are_set_by_their_path():
    kernel = KroneckerDelta("element") * SquaredExponential("order")
    kernel.set_params(k1__h=0.1, k2__length_scale_bounds="fixed")
    assert (kernel.k1.h, kernel.k2.length_scale_bounds) == (0.1, "fixed")
    assert [h.name for h in kernel.hyperparameters] == ["k1__h", "k2__length_scale"]
    kernel.set_params(k1__h=0.9, k1=KroneckerDelta("charge"))
    assert repr(kernel.k1) == "KroneckerDelta('charge', h=0.9)"
    with pytest.raises(ValueError, match="no parameter 'attribute__h'"):
        kernel.k1.set_params(attribute__h=1)


def test_hyperparameters_stand_in_signature_order():
    kernel = RationalQuadratic("length", length_scale=2.0, alpha=3.0)
    assert_allclose(np.exp(kernel.theta), [2.0, 3.0])


def test_user_hyperparameters_are_parameters():
    kernel = FormulaKernel("a", "exp(-rate*(x-y)**2)", {"rate": (1.0, (0.1, 2.0))})
    original = kernel.parameters
    kernel.set_params(rate=0.5, rate_bounds="fixed")
    assert kernel.get_params()["rate"] == 0.5
    assert kernel.n_dims == 0
    assert original == {"rate": (1.0, (0.1, 2.0))}


def test_sympy_expression_and_text_are_the_same_kernel():
    x, y, rate = sympy.symbols("x y rate", positive=True)
    parameters = {"rate": (0.7, (0.1, 2.0))}
    text = FormulaKernel("a", "exp(-rate * (x - y)**2)", parameters)
    expression = FormulaKernel("a", sympy.exp(-rate * (x - y) ** 2), parameters)
    assert clone(expression) == expression
    assert text.source("cuda") == expression.source("cuda")
    labels = [-1.0, 2.0]
    for got, expected in zip(
        text.table_gradient(labels), expression.table_gradient(labels), strict=True
    ):
        assert_allclose(got, expected)


def test_operators():
    a, b = KroneckerDelta("a"), KroneckerDelta("b")
    assert a + b == Sum(a, b)
    assert a * b == Product(a, b)
    assert 0.5 * a == Product(Constant(0.5), a)
    assert a + 1 == Sum(a, Constant(1))
    assert np.float64(0.5) * a == Product(Constant(np.float64(0.5)), a)
    assert a**2 == Exponentiation(a, 2)
    assert a.normalized() == Normalized(a)
    assert a != b
    assert (a * b * a).attributes == ("a", "b")
    for other in (RBF(), "b", None):
        with pytest.raises(TypeError, match="cannot stand in a Sum of base kernels"):
            a + other
    with pytest.raises(TypeError, match="as exponent a number"):
        a**b


def test_repr_keeps_the_structure():
    a, b, c = (KroneckerDelta(name, h_bounds="fixed") for name in "abc")
    text = {k: f"KroneckerDelta('{k}', h=0.5, h_bounds='fixed')" for k in "abc"}
    assert repr((a + b) * c) == f"({text['a']} + {text['b']}) * {text['c']}"
    assert repr(a * (b * c)) == f"{text['a']} * ({text['b']} * {text['c']})"
    assert repr(a + (b + c)) == f"{text['a']} + ({text['b']} + {text['c']})"
    assert repr((a * b) ** 2) == f"({text['a']} * {text['b']})**2"
    assert repr((a**2) ** 0.5) == f"({text['a']}**2)**0.5"


def test_scikit_learn_sees_a_generic_kernel():
    kernel = KroneckerDelta("a")
    assert not kernel.requires_vector_input
    assert not kernel.is_stationary()


def test_exported_names_are_tested():
    """Each exported kernel that is not abstract stands in the registry."""
    exported = {getattr(sklearn_mgk.base_kernels, n) for n in sklearn_mgk.base_kernels.__all__}
    concrete = {cls for cls in exported if not cls.__abstractmethods__}

    def classes(kernel):
        return {type(kernel)}.union(*map(classes, kernel._parts().values()))

    assert concrete == set().union(*(classes(case.kernel) for case in CASES.values()))
