# SPDX-License-Identifier: BSD-3-Clause
"""Parameters shared by all objects with hyperparameters."""

import numpy as np
import pytest
from cases import make_kernel

from sklearn_mgk import MarginalizedGraphKernel, StartingProbability, from_smiles
from sklearn_mgk.base_kernels import FormulaKernel


def test_fixed_copies_have_no_theta():
    kernel = make_kernel("sum", "product", options="starting by kind", normalization="size")
    fixed = kernel.fixed()
    assert kernel.n_dims > 5
    assert fixed.n_dims == 0
    assert fixed.node_kernel == kernel.node_kernel.fixed()
    unbound = {k: v for k, v in kernel.get_params(deep=False).items() if "bounds" not in k}
    assert unbound["size_scale"] == fixed.size_scale


def test_fixed_reaches_hyperparameters_in_a_dict():
    kernel = FormulaKernel("x", "exp(-s * (x - y)**2)", {"s": (0.5, (0.1, 1.0))})
    assert kernel.n_dims == 1
    assert kernel.fixed().n_dims == 0
    np.testing.assert_array_equal(kernel.fixed().table([0.0, 1.0]), kernel.table([0.0, 1.0]))


def test_repr_shows_hyperparameters_in_use_only():
    assert "size_scale" not in repr(MarginalizedGraphKernel())
    assert "size_scale=3.0" in repr(MarginalizedGraphKernel(normalization="size", size_scale=3.0))


def test_starting_probability_compares_by_content():
    p = StartingProbability("element", ("C", "N"), (1.0, 2.0))
    assert p == StartingProbability("element", ["C", "N"], np.array([1.0, 2.0]))
    assert p != StartingProbability("element", ("C", "N"), (1.0, 2.5))
    kernel = MarginalizedGraphKernel(starting_probability=p)
    K = kernel(from_smiles(["CCN", "CCO"]))
    assert K[0, 0] / K[1, 1] == pytest.approx(16 / 9)
