# SPDX-License-Identifier: BSD-3-Clause
"""Kernels between node labels and between edge labels."""

from sklearn_mgk.base_kernels.composite import Exponentiation, Normalized, Product, Sum
from sklearn_mgk.base_kernels.convolution import Convolution
from sklearn_mgk.base_kernels.formulas import (
    Constant,
    DotProduct,
    Formula,
    KroneckerDelta,
    RationalQuadratic,
    SquaredExponential,
)
from sklearn_mgk.base_kernels.kernel import BaseKernel, LeafKernel
from sklearn_mgk.base_kernels.user import FormulaKernel, FunctionKernel

__all__ = [
    "BaseKernel",
    "Constant",
    "Convolution",
    "DotProduct",
    "Exponentiation",
    "Formula",
    "FormulaKernel",
    "FunctionKernel",
    "KroneckerDelta",
    "LeafKernel",
    "Normalized",
    "Product",
    "RationalQuadratic",
    "SquaredExponential",
    "Sum",
]
