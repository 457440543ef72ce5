# SPDX-License-Identifier: BSD-3-Clause
"""Errors of functions that users give."""

import pytest

from sklearn_mgk.base_kernels import FunctionKernel


def test_function_of_single_labels_is_refused_with_the_remedy():
    kernel = FunctionKernel("x", lambda x, y: 1.0 if x == y else 0.5)
    with pytest.raises(ValueError, match=r"whole array of labels.*np\.vectorize"):
        kernel.table([1.0, 2.0])


def test_other_errors_of_a_function_pass_through():
    def refuse(x, y):
        raise ValueError("no such label")

    with pytest.raises(ValueError, match="no such label"):
        FunctionKernel("x", refuse).table([1.0, 2.0])
