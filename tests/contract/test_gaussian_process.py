# SPDX-License-Identifier: BSD-3-Clause
"""The kernel inside scikit-learn's Gaussian processes."""

import warnings

import numpy as np
import pandas as pd
import pytest
from contract.molecules import FAMILY, IS_ALCOHOL, SMILES, TARGET, make_kernel
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.gaussian_process import GaussianProcessClassifier, GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF, ConstantKernel, WhiteKernel
from sklearn.pipeline import make_pipeline

from sklearn_mgk import SmilesToGraphs, StartingProbability
from sklearn_mgk.base_kernels import KroneckerDelta

TRAIN, TEST = np.arange(0, 24, 2), np.arange(1, 24, 2)


def slow(kernel):
    """Return the kernel with longer walks."""
    return clone(kernel).set_params(stopping_probability=0.05)


# What a user writes, and what it is for the matrices of both kernels and the identity.
COMPOSITES = {
    "alone": (lambda k: k, lambda K, S, eye: K),
    "constant and noise": (
        lambda k: ConstantKernel(2.0) * k + WhiteKernel(0.01),
        lambda K, S, eye: 2.0 * K + 0.01 * eye,
    ),
    "number": (lambda k: 0.5 * k, lambda K, S, eye: 0.5 * K),
    "sum": (lambda k: k + slow(k), lambda K, S, eye: K + S),
    "product": (lambda k: k * slow(k), lambda K, S, eye: K * S),
    "power": (lambda k: k**2, lambda K, S, eye: K**2),
}
FREE = {
    "base kernels and stopping": {},
    "starting": {"starting_probability": StartingProbability("element", ("C", "O"), (1.0, 1.5))},
    "additive": {"stopping_rule": "additive", "stopping_probability": 0.5},
    "size": {"normalization": "size", "size_scale": 3.0},
    "min_steps": {"min_steps": 1, "normalization": None},
    "fixed": {"stopping_probability_bounds": "fixed"},
}


def noisy(kernel, noise=1e-2):
    return ConstantKernel() * kernel + WhiteKernel(noise)


@pytest.fixture(scope="module")
def fitted(graphs):
    """Regressor with optimised hyperparameters, on every second molecule."""
    return GaussianProcessRegressor(noisy(make_kernel())).fit(graphs[TRAIN], TARGET[TRAIN])


def test_optimisation_moves_theta_and_raises_the_likelihood(fitted):
    start = fitted.log_marginal_likelihood(fitted.kernel.theta)
    assert fitted.log_marginal_likelihood_value_ > start + 1
    assert np.abs(fitted.kernel_.theta - fitted.kernel.theta).max() > 0.1
    assert fitted.kernel_.get_params()["k1__k2__node_kernel__k1__h"] != 0.3


def test_regression_learns(fitted, graphs):
    assert fitted.score(graphs[TRAIN], TARGET[TRAIN]) > 0.95
    assert fitted.score(graphs[TEST], TARGET[TEST]) > 0.5


def test_std_and_cov(fitted, graphs):
    mean, std = fitted.predict(graphs[TEST], return_std=True)
    _, cov = fitted.predict(graphs[TEST], return_cov=True)
    assert mean.shape == std.shape == (12,)
    assert_allclose(np.sqrt(cov.diagonal()), std, rtol=1e-6)
    # The kernel's own part of the variance vanishes on training graphs, the noise stays.
    noise = fitted.kernel_.k2.noise_level
    _, at_training = fitted.predict(graphs[TRAIN], return_std=True)
    assert at_training.max() < np.sqrt(3 * noise) < std.max()


def test_predictive_variance_is_never_negative(graphs):
    twice = list(graphs) * 2
    model = GaussianProcessRegressor(make_kernel(), alpha=1e-10, optimizer=None)
    model.fit(twice, np.tile(TARGET, 2))
    _, std = model.predict(twice, return_std=True)
    assert (std >= 0).all() and std.max() < 1e-3
    assert_allclose(model.predict(graphs), TARGET, atol=1e-3)


def test_samples(fitted, graphs):
    draws = fitted.sample_y(graphs[TEST], n_samples=300, random_state=0)
    mean, std = fitted.predict(graphs[TEST], return_std=True)
    assert draws.shape == (12, 300)
    # 300 draws: the mean is known to 0.06 standard deviations, the deviation itself to 4 %.
    assert (np.abs(draws.mean(1) - mean) < 0.3 * std).all()
    assert_allclose(draws.std(1), std, rtol=0.25)


def test_prior(graphs):
    mean, std = GaussianProcessRegressor(4.0 * make_kernel()).predict(graphs, return_std=True)
    assert_array_equal(mean, np.zeros(24))
    assert_allclose(std, 2.0)


def test_restarts_are_drawn_within_the_bounds_and_never_end_lower(fitted, graphs):
    model = GaussianProcessRegressor(noisy(make_kernel()), n_restarts_optimizer=2, random_state=0)
    model.fit(graphs[TRAIN], TARGET[TRAIN])
    low, high = model.kernel_.bounds.T
    assert ((model.kernel_.theta >= low) & (model.kernel_.theta <= high)).all()
    assert model.log_marginal_likelihood_value_ >= fitted.log_marginal_likelihood_value_ - 1e-4


@pytest.mark.parametrize(("compose", "expect"), COMPOSITES.values(), ids=COMPOSITES)
def test_composites_are_what_their_operators_say(compose, expect, graphs):
    kernel = make_kernel()
    expected = expect(kernel(graphs), slow(kernel)(graphs), np.eye(24))
    composite = compose(kernel)
    assert_allclose(composite(graphs), expected, rtol=1e-12)
    assert_allclose(composite.diag(graphs), expected.diagonal(), rtol=1e-12)


def likelihood_slopes(model, theta, step=1e-4):
    """Central differences of the log marginal likelihood."""
    steps = step * np.eye(len(theta))
    return np.array(
        [
            (model.log_marginal_likelihood(theta + s) - model.log_marginal_likelihood(theta - s))
            / (2 * step)
            for s in steps
        ]
    )


@pytest.mark.parametrize(
    "kernel",
    [
        *(pytest.param(c[0](make_kernel(tol=1e-13)), id=name) for name, c in COMPOSITES.items()),
        *(pytest.param(make_kernel(tol=1e-13, **c), id=name) for name, c in FREE.items()),
    ],
)
def test_gradient_of_the_likelihood(kernel, graphs):
    model = GaussianProcessRegressor(kernel, alpha=0.1, optimizer=None)
    model.fit(graphs[TRAIN], TARGET[TRAIN])
    theta = kernel.theta
    value, slopes = model.log_marginal_likelihood(theta, eval_gradient=True)
    assert value == pytest.approx(model.log_marginal_likelihood(theta), rel=1e-9)
    assert slopes.shape == theta.shape and len(theta) >= 2
    # Differences of step 1e-4 err by 1e-8 of the third derivative, and by rounding / 1e-4.
    expected = likelihood_slopes(model, theta)
    assert_allclose(slopes, expected, rtol=1e-6, atol=1e-7 * np.abs(expected).max())


@pytest.mark.parametrize("n_copies", [2, 5])
def test_duplicates_are_positive_definite_with_the_default_alpha(n_copies, graphs):
    copies = list(graphs) * n_copies
    model = GaussianProcessRegressor(make_kernel(), optimizer=None)
    model.fit(copies, np.tile(TARGET, n_copies))
    assert np.isfinite(model.log_marginal_likelihood_value_)
    eigenvalues = np.linalg.eigvalsh(make_kernel()(copies))
    assert eigenvalues[0] > -1e-10 * eigenvalues[-1]


def test_float32_solves_give_a_float64_matrix_that_is_positive_definite(graphs):
    kernel = make_kernel(dtype="float32", tol=1e-6)
    K = kernel(graphs)
    assert K.dtype == np.float64
    assert_allclose(K, make_kernel()(graphs), rtol=2e-5)
    GaussianProcessRegressor(kernel, alpha=1e-4, optimizer=None).fit(graphs, TARGET)


def test_clone_with_theta_leaves_the_original_alone():
    kernel = noisy(make_kernel())
    before = kernel.theta.copy()
    moved = kernel.clone_with_theta(before + 0.1)
    assert_allclose(moved.theta, before + 0.1)
    assert_array_equal(kernel.theta, before)
    assert moved != kernel
    assert moved.clone_with_theta(before).get_params()["k1__k2__edge_kernel__length_scale"] == (
        pytest.approx(0.5)
    )


def test_fixed_hyperparameters_stay(graphs):
    kernel = make_kernel(
        node_kernel=KroneckerDelta("element", h=0.3, h_bounds="fixed"),
        edge_kernel=None,
        stopping_probability_bounds="fixed",
    )
    assert kernel.theta.size == 0 and kernel.n_dims == 0
    K, slopes = kernel(graphs, eval_gradient=True)
    assert slopes.shape == (24, 24, 0)
    assert_array_equal(K, kernel(graphs))
    model = GaussianProcessRegressor(noisy(kernel)).fit(graphs, TARGET)
    assert model.kernel_.k1.k2 == kernel
    assert model.kernel_.theta.size == 2


def test_a_hyperparameter_at_its_bound_is_reported_by_name(graphs):
    kernel = make_kernel(edge_kernel=None, stopping_probability_bounds=(0.099, 0.1001))
    model = GaussianProcessRegressor(ConstantKernel() * kernel + WhiteKernel(0.01, "fixed"))
    with pytest.warns(ConvergenceWarning, match="k1__k2__stopping_probability is close"):
        model.fit(graphs[TRAIN], TARGET[TRAIN])


def test_no_warning_for_a_best_value_inside_the_bounds(graphs):
    with warnings.catch_warnings():
        warnings.simplefilter("error", ConvergenceWarning)
        model = GaussianProcessRegressor(noisy(make_kernel())).fit(graphs[TRAIN], TARGET[TRAIN])
    low, high = model.kernel_.bounds.T
    assert ((model.kernel_.theta > low + 0.01) & (model.kernel_.theta < high - 0.01)).all()


def test_several_targets(graphs):
    targets = np.column_stack([TARGET, -2 * TARGET])
    model = GaussianProcessRegressor(noisy(make_kernel()), optimizer=None).fit(graphs, targets)
    mean = model.predict(graphs)
    assert_allclose(mean[:, 1], -2 * mean[:, 0], atol=1e-9)


def test_only_kernels_of_objects_compose_with_a_kernel_of_graphs():
    assert not noisy(make_kernel()).requires_vector_input
    assert (make_kernel() + RBF()).requires_vector_input
    assert not make_kernel().is_stationary()


@pytest.mark.parametrize(
    "form",
    [
        lambda batch: batch,
        list,
        tuple,
        lambda batch: np.array(list(batch), dtype=object),
        lambda batch: np.array(list(batch), dtype=object).reshape(-1, 1),
        lambda batch: pd.Series(list(batch), index=range(7, 19)),
        lambda batch: pd.DataFrame({"graph": list(batch)}),
    ],
    ids=["batch", "list", "tuple", "array", "column", "series", "frame"],
)
def test_every_form_of_graphs_gives_the_same_predictions(form, fitted, graphs):
    model = GaussianProcessRegressor(fitted.kernel_, optimizer=None)
    model.fit(form(graphs[TRAIN]), TARGET[TRAIN])
    expected = fitted.predict(graphs[TEST])
    assert_allclose(model.predict(form(graphs[TEST])), expected, rtol=1e-6, atol=1e-8)


def test_classification(graphs):
    is_amine = FAMILY == "amine"
    kernel = ConstantKernel(10.0) * make_kernel(stopping_probability_bounds="fixed")
    model = GaussianProcessClassifier(kernel).fit(graphs[TRAIN], is_amine[TRAIN])
    assert model.score(graphs[TEST], is_amine[TEST]) > 0.9
    assert model.log_marginal_likelihood_value_ > model.log_marginal_likelihood(
        model.base_estimator_.kernel.theta
    )
    probability = model.predict_proba(graphs[TEST])
    assert_allclose(probability.sum(1), 1)
    assert probability[is_amine[TEST], 1].min() > probability[~is_amine[TEST], 1].max()


def test_classification_of_several_classes(graphs):
    # One against the rest: OneVsOneClassifier of scikit-learn takes numeric tables only.
    model = GaussianProcessClassifier(10.0 * make_kernel(), optimizer=None).fit(graphs, FAMILY)
    assert model.score(graphs, FAMILY) > 0.9


def test_classification_of_duplicates_with_noise(graphs):
    twice = list(graphs) * 2
    model = GaussianProcessClassifier(noisy(make_kernel(), 1e-4), optimizer=None)
    model.fit(twice, np.tile(IS_ALCOHOL, 2))
    assert np.isfinite(model.predict_proba(twice)).all()


def test_gradient_of_the_likelihood_of_classes(graphs):
    model = GaussianProcessClassifier(4.0 * make_kernel(tol=1e-13), optimizer=None)
    model.fit(graphs[TRAIN], IS_ALCOHOL[TRAIN])
    theta = model.kernel_.theta
    _, slopes = model.log_marginal_likelihood(theta, eval_gradient=True)
    # The mode of the posterior is found to 1e-10 of the likelihood, which the step divides.
    expected = likelihood_slopes(model, theta, step=1e-3)
    assert_allclose(slopes, expected, rtol=1e-3, atol=1e-4 * np.abs(expected).max())


def test_the_readme_example():
    model = make_pipeline(
        SmilesToGraphs(), GaussianProcessRegressor(noisy(make_kernel()), normalize_y=True)
    )
    model.fit(SMILES, TARGET)
    mean, std = model.predict(["CCCCCCO", "CCCCCN", "[Na+].[Cl-]"], return_std=True)
    assert mean[0] > mean[1]
    assert (std > 0).all() and std[2] > std[0]
    assert_allclose(model.predict(["OCCCCCC"]), mean[:1])
