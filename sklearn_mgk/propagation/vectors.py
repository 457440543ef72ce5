# SPDX-License-Identifier: BSD-3-Clause
"""The inner loop of a sparse product: one row of A times some neighbouring columns of X.

Numba would keep the sums of a row in memory and read and write them for each non-zero. Here they
stay in vector registers until the row ends, whatever the processor calls its vectors: the compiler
splits one long vector into those it has.
"""

from __future__ import annotations

import llvmlite.binding as llvm
import llvmlite.ir as ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

WIDTHS = (128, 64, 32, 16, 8, 4, 2, 1)
"""Numbers of columns that the inner loop is compiled for."""

_REGISTERS = 512 if llvm.get_host_cpu_features().get("avx512f") else 256  # bytes for the sums
_AHEAD = 32  # non-zeros; X is read at random, and a load from memory takes longer than a few rows
_LINE = 64  # bytes that a prefetch brings
_FAR = 1  # to a cache that has room for them: 3 would be the first level

_I8, _I32, _I64 = (ir.IntType(bits) for bits in (8, 32, 64))


def widest(itemsize: int) -> int:
    """Return how many columns are worth doing at once, for numbers of some bytes."""
    return _REGISTERS // itemsize


@intrinsic(prefer_literal=True)
def multiply_row(
    typing_context, width, y, place, data, indices, begin, end, last, x, stride, column
):
    """Write the sum of ``data[p] * x[indices[p] * stride + column :][:width]`` to ``y[place:]``.

    p runs from begin to end - 1; last is the last place of indices. Arrays are one-dimensional and
    contiguous, all numbers but the data are int64, and places are not checked.
    """
    kind, width = width, width.literal_value  # the signature must tell the widths apart

    def generate(context, builder, signature, arguments):
        _, _, place, _, _, begin, end, last, _, stride, column = arguments

        def address(position):
            array = context.make_array(signature.args[position])
            return array(context, builder, arguments[position]).data

        x, indices, data = address(8), address(4), address(3)
        vector = ir.VectorType(x.type.pointee, width)
        size = 8 if isinstance(x.type.pointee, ir.DoubleType) else 4
        x = builder.gep(x, [column])

        def row_of_x(p):
            index = builder.load(builder.gep(indices, [p]))
            index = index if index.type.width == 64 else builder.sext(index, _I64)
            return builder.gep(x, [builder.mul(index, stride)])

        total = cgutils.alloca_once(builder, vector)
        builder.store(ir.Constant(vector, [0.0] * width), total)
        with cgutils.for_range_slice(builder, begin, end, ir.Constant(_I64, 1)) as (p, _):
            ahead = builder.add(p, ir.Constant(_I64, _AHEAD))
            ahead = builder.select(builder.icmp_signed("<", ahead, last), ahead, last)
            _prefetch(builder, row_of_x(ahead), width * size)
            row = builder.load(builder.bitcast(row_of_x(p), vector.as_pointer()), align=size)
            factor = _repeat(builder, builder.load(builder.gep(data, [p])), vector)
            product = builder.fmul(row, factor, flags=("contract",))
            builder.store(builder.fadd(builder.load(total), product, flags=("contract",)), total)
        target = builder.gep(address(1), [place])
        builder.store(builder.load(total), builder.bitcast(target, vector.as_pointer()), align=size)
        return context.get_dummy_value()

    int64 = types.int64
    numbers = (int64, int64, int64, x, int64, int64)
    return types.void(kind, y, int64, data, indices, *numbers), generate


def _prefetch(builder, pointer, n_bytes):
    """Ask for all cache lines of a row of X."""
    byte = _I8.as_pointer()
    kind = ir.FunctionType(ir.VoidType(), [byte, _I32, _I32, _I32])
    function = cgutils.get_or_insert_function(builder.module, kind, "llvm.prefetch.p0i8")
    options = [ir.Constant(_I32, number) for number in (0, _FAR, 1)]
    for offset in range(0, n_bytes, _LINE):
        line = builder.gep(builder.bitcast(pointer, byte), [ir.Constant(_I64, offset)])
        builder.call(function, [line, *options])


def _repeat(builder, number, vector):
    """Return a vector of one number again and again."""
    none = ir.Constant(vector, ir.Undefined)
    first = builder.insert_element(none, number, ir.Constant(_I32, 0))
    mask = ir.Constant(ir.VectorType(_I32, vector.count), [0] * vector.count)
    return builder.shuffle_vector(first, none, mask)
