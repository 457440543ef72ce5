# SPDX-License-Identifier: BSD-3-Clause
"""Factors of tables, with their certified error."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from numpy.testing import assert_allclose

from sklearn_mgk.base_kernels import RationalQuadratic, SquaredExponential
from sklearn_mgk.base_kernels.factors import factorize_table, pivoted_cholesky

features = arrays(
    np.float64, st.tuples(st.integers(1, 8), st.integers(1, 4)), elements=st.floats(-3, 3, width=32)
)
tolerances = st.sampled_from([1e-13, 1e-7, 1e-2])


@given(features, tolerances)
def test_error_is_within_the_tolerance(x, tolerance):
    table = x @ x.T
    factors = factorize_table(table, tolerance)
    scale = np.abs(table).max()
    bound = max(tolerance, 1e-13 * scale)
    assert np.abs(table - factors.phi @ factors.phi.T).max() <= bound
    assert factors.residual <= bound
    assert factors.rank <= len(x)


@given(features, tolerances)
def test_residual_bounds_every_entry(x, tolerance):
    table = x @ x.T
    factors = pivoted_cholesky(np.diagonal(table), table.__getitem__, tolerance)
    error = np.abs(table - factors.phi @ factors.phi.T).max()
    assert error <= factors.residual + 1e-13 * np.abs(table).max()


@pytest.mark.parametrize("kernel", [SquaredExponential("r"), RationalQuadratic("r")])
@pytest.mark.parametrize("tolerance", [1e-7, 1e-13])
def test_smooth_kernels_have_few_factors(kernel, tolerance):
    table = kernel.table(np.linspace(1.0, 2.5, 200))
    factors = factorize_table(table, tolerance)
    assert factors.rank <= (12 if tolerance == 1e-7 else 20)
    assert_allclose(factors.phi @ factors.phi.T, table, rtol=0, atol=2 * tolerance)


def test_only_pivot_rows_are_read():
    points, read = np.linspace(0.0, 1.0, 500), []

    def row(i):
        read.append(i)
        return np.exp(-((points - points[i]) ** 2))

    factors = pivoted_cholesky(np.ones(500), row, 1e-10)
    assert len(read) == factors.rank < 15


@pytest.mark.parametrize("table", [[[1, 2], [2, 1]], [[0, 1], [1, 0]], [[-1, 0], [0, 1]]])
def test_indefinite_tables_have_none(table):
    assert factorize_table(np.array(table, dtype=float), 1e-7) is None


def test_rank_is_limited():
    assert factorize_table(np.eye(4), 1e-7, max_rank=3) is None
    assert factorize_table(np.eye(4), 1e-7, max_rank=4).rank == 4
    assert factorize_table(np.zeros((3, 3)), 1e-7).rank == 0
