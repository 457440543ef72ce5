# SPDX-License-Identifier: BSD-3-Clause
"""Bounds of base kernels, and distances beyond which they are negligible."""

import numpy as np
import pytest
from base_kernels.registry import CASES
from hypothesis import given
from hypothesis import strategies as st

from sklearn_mgk.base_kernels import (
    Constant,
    FunctionKernel,
    KroneckerDelta,
    RationalQuadratic,
    SquaredExponential,
)

NEAR, FAR = SquaredExponential("length", 0.1), RationalQuadratic("length", 0.5, alpha=4.0)
OTHER, SLOW = SquaredExponential("angle", 2.0), RationalQuadratic("length", alpha=1e-3)
UNKNOWN = FunctionKernel("angle", lambda x, y: 1.0 * (x == y))
KERNELS = [
    NEAR,
    FAR,
    SLOW,
    NEAR * OTHER,
    NEAR * KroneckerDelta("angle", h=0.3),
    3.0 * NEAR,
    NEAR + FAR,
    NEAR + OTHER,
    0.5 * NEAR + 0.5 * FAR * OTHER,
    NEAR**2,
    FAR**0.5,
]


@pytest.mark.parametrize("name", CASES)
def test_no_value_exceeds_the_bound(name):
    case = CASES[name]
    assert case.kernel.table(case.columns or [0] * 5).max() <= case.kernel.upper_bound + 1e-15


@pytest.mark.parametrize("kernel", KERNELS, ids=repr)
@given(
    labels=st.lists(st.tuples(st.floats(-9, 9), st.floats(-9, 9)), min_size=2, max_size=2),
    epsilon=st.sampled_from([0.5, 1e-3, 1e-8, 1e-13]),
)
def test_kernel_is_small_beyond_its_reach(kernel, labels, epsilon):
    columns = dict(zip(("length", "angle"), np.array(labels).T, strict=True))
    value = kernel.table(columns)[0, 1]
    for name, distance in kernel.reach(epsilon).items():
        assert np.isfinite(distance)
        if abs(columns[name][0] - columns[name][1]) > distance:
            assert value <= epsilon * (1 + 1e-12)


def test_reach_is_known_where_a_factor_decays():
    assert set(NEAR.reach(1e-8)) == {"length"}
    assert set((NEAR * OTHER).reach(1e-8)) == {"length", "angle"}
    assert (NEAR * FAR).reach(1e-8) == NEAR.reach(1e-8)
    assert (0.5 * NEAR).reach(1e-8)["length"] < NEAR.reach(1e-8)["length"]
    assert set((NEAR + FAR).reach(1e-8)) == {"length"}


@pytest.mark.parametrize(
    "kernel",
    [Constant(0.5), NEAR + OTHER, NEAR + 0.1, NEAR * UNKNOWN, SLOW, KroneckerDelta("length")],
    ids=["constant", "other attribute", "offset", "no formula", "slow", "delta"],
)
def test_nothing_is_promised_otherwise(kernel):
    assert kernel.reach(1e-8) == {}


def test_nothing_reaches_zero():
    assert NEAR.reach(0.0) == FAR.reach(0.0) == {}
