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
_NARROW = 128  # bytes of a row up to which two sums are kept
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

        first_column = builder.gep(address(8), [column])
        loop = _Loop(builder, width, first_column, address(4), address(3), stride)
        # An odd number of non-zeros leaves one for a loop of its own.
        pairs = builder.sub(end, builder.srem(builder.sub(end, begin), _number(loop.ways)))
        with cgutils.for_range_slice(builder, begin, pairs, _number(loop.ways)) as (p, _):
            for way in range(loop.ways):
                loop.add(builder.add(p, _number(way)), last, way)
        with cgutils.for_range_slice(builder, pairs, end, _number(1)) as (p, _):
            loop.add(p, last, 0)
        loop.store(builder.gep(address(1), [place]))
        return context.get_dummy_value()

    int64 = types.int64
    numbers = (int64, int64, int64, x, int64, int64)
    return types.void(kind, y, int64, data, indices, *numbers), generate


class _Loop:
    """Writes what is done for one non-zero; narrow rows are added to two sums by turns.

    An addition waits for the one before it: with two sums every second one does not have to.
    """

    def __init__(self, builder, width, x, indices, data, stride):
        self.builder, self.stride = builder, stride
        self.x, self.indices, self.data = x, indices, data
        self.size = 8 if isinstance(x.type.pointee, ir.DoubleType) else 4
        self.vector = ir.VectorType(x.type.pointee, width)
        self.ways = 2 if width * self.size <= _NARROW else 1
        self.sums = [cgutils.alloca_once(builder, self.vector) for _ in range(self.ways)]
        for total in self.sums:
            builder.store(ir.Constant(self.vector, [0.0] * width), total)

    def row_of_x(self, p):
        """Pointer to the row that a non-zero needs."""
        builder = self.builder
        index = builder.load(builder.gep(self.indices, [p]))
        index = index if index.type.width == 64 else builder.sext(index, _I64)
        return builder.gep(self.x, [builder.mul(index, self.stride)])

    def add(self, p, last, way):
        """Add one non-zero to a sum, and fetch the row of a later one."""
        builder = self.builder
        ahead = builder.add(p, _number(_AHEAD))
        ahead = builder.select(builder.icmp_signed("<", ahead, last), ahead, last)
        _prefetch(builder, self.row_of_x(ahead), self.vector.count * self.size)
        pointer = builder.bitcast(self.row_of_x(p), self.vector.as_pointer())
        row = builder.load(pointer, align=self.size)
        factor = _repeat(builder, builder.load(builder.gep(self.data, [p])), self.vector)
        product = builder.fmul(row, factor, flags=("contract",))
        total = builder.fadd(builder.load(self.sums[way]), product, flags=("contract",))
        builder.store(total, self.sums[way])

    def store(self, place):
        """Write the sum of all."""
        builder = self.builder
        total = builder.load(self.sums[0])
        for other in self.sums[1:]:
            total = builder.fadd(total, builder.load(other))
        pointer = builder.bitcast(place, self.vector.as_pointer())
        builder.store(total, pointer, align=self.size)


def _number(value):
    return ir.Constant(_I64, value)


def _prefetch(builder, pointer, n_bytes):
    """Ask for all cache lines of a row of X."""
    byte = _I8.as_pointer()
    kind = ir.FunctionType(ir.VoidType(), [byte, _I32, _I32, _I32])
    function = cgutils.get_or_insert_function(builder.module, kind, "llvm.prefetch.p0i8")
    options = [ir.Constant(_I32, number) for number in (0, _FAR, 1)]
    for offset in range(0, n_bytes, _LINE):
        line = builder.gep(builder.bitcast(pointer, byte), [_number(offset)])
        builder.call(function, [line, *options])


def _repeat(builder, number, vector):
    """Return a vector of one number again and again."""
    none = ir.Constant(vector, ir.Undefined)
    first = builder.insert_element(none, number, ir.Constant(_I32, 0))
    mask = ir.Constant(ir.VectorType(_I32, vector.count), [0] * vector.count)
    return builder.shuffle_vector(first, none, mask)
