# SPDX-License-Identifier: BSD-3-Clause
"""Exponential function without branches or calls, so that loops over it become vector code.

The C library's takes one number at a time, and kernels of continuous labels spend most of their
time in it.
"""

import llvmlite.ir as ir
from numba import njit, types
from numba.extending import intrinsic

_SHIFT = 6755399441055744.0  # 1.5 * 2**52: after adding it, the last bits are the rounded number
_INVERSE_LOG2 = 1.4426950408889634
# log(2) in two parts, the first with so many zero bits at its end that n * _LOG2_HIGH is exact.
_LOG2_HIGH, _LOG2_LOW = 0.6931471803691238, 1.9082149292705877e-10
_SMALLEST, _LARGEST = -708.0, 709.0
_LARGEST_FLOAT = 1.7976931348623157e308


@njit(error_model="numpy", fastmath={"contract"})
def exp(x):
    r"""Compute :math:`e^x = 2^n e^r` with :math:`|r| \le \log(2) / 2`, to two units of rounding.

    Below -708 the result is 0, above 709 infinite.
    """
    inside = min(max(x, _SMALLEST), _LARGEST)
    shifted = inside * _INVERSE_LOG2 + _SHIFT
    n = shifted - _SHIFT
    r = (inside - n * _LOG2_HIGH) - n * _LOG2_LOW
    # Taylor series, whose remainder r**14 / 14! is below 5e-18.
    series = 1 / 6227020800.0
    series = series * r + 1 / 479001600.0
    series = series * r + 1 / 39916800.0
    series = series * r + 1 / 3628800.0
    series = series * r + 1 / 362880.0
    series = series * r + 1 / 40320.0
    series = series * r + 1 / 5040.0
    series = series * r + 1 / 720.0
    series = series * r + 1 / 120.0
    series = series * r + 1 / 24.0
    series = series * r + 1 / 6.0
    series = series * r + 0.5
    series = series * r + 1.0
    series = series * r + 1.0
    # The last bits of `shifted` are n; moved into the exponent they multiply by 2**n.
    result = _as_float(_as_bits(series) + (_as_bits(shifted) << 52))
    result = 0.0 if x < _SMALLEST else result
    # The product is infinite, or NaN where x is.
    return result if x <= _LARGEST else x * _LARGEST_FLOAT


@intrinsic
def _as_bits(typing_context, number):
    """Read the bits of a float64 as an integer."""

    def generate(context, builder, signature, arguments):
        return builder.bitcast(arguments[0], ir.IntType(64))

    return types.int64(types.float64), generate


@intrinsic
def _as_float(typing_context, bits):
    """Read an integer as the bits of a float64."""

    def generate(context, builder, signature, arguments):
        return builder.bitcast(arguments[0], ir.DoubleType())

    return types.float64(types.int64), generate
