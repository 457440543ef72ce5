# SPDX-License-Identifier: BSD-3-Clause
"""Operations on four numbers at a time, which numba does not make of loops as short as these.

Arrays are one-dimensional and contiguous, of float32 or float64; places in them are uint64 and are
not checked.
"""

from __future__ import annotations

import llvmlite.ir as ir
from numba import types
from numba.extending import intrinsic

LANES = 4
"""Numbers in a vector: 32 bytes of float64, which every 64-bit desktop processor adds at once."""


def _place(context, builder, array_type, array, index):
    """Pointer to the vector at a place of an array, and what its address is a multiple of."""
    data = context.make_array(array_type)(context, builder, array).data
    element = data.type.pointee
    pointer = builder.gep(data, [index])
    vector = ir.VectorType(element, LANES).as_pointer()
    return builder.bitcast(pointer, vector), 8 if isinstance(element, ir.DoubleType) else 4


def _load(context, builder, array_type, array, index):
    pointer, alignment = _place(context, builder, array_type, array, index)
    return builder.load(pointer, align=alignment)


def _store(context, builder, array_type, array, index, vector):
    pointer, alignment = _place(context, builder, array_type, array, index)
    builder.store(vector, pointer, align=alignment)


def _shuffle(builder, first, second, order):
    mask = ir.Constant(ir.VectorType(ir.IntType(32), LANES), order)
    return builder.shuffle_vector(first, second, mask)


def _transpose(builder, rows):
    """Turn four vectors of four into those of their columns."""
    a, b, c, d = rows
    even, odd = (_shuffle(builder, a, b, order) for order in ([0, 4, 2, 6], [1, 5, 3, 7]))
    even2, odd2 = (_shuffle(builder, c, d, order) for order in ([0, 4, 2, 6], [1, 5, 3, 7]))
    low, high = [0, 1, 4, 5], [2, 3, 6, 7]
    pairs = ((even, even2, low), (odd, odd2, low), (even, even2, high), (odd, odd2, high))
    return [_shuffle(builder, *pair) for pair in pairs]


@intrinsic
def add_product(typing_context, y, i, w, k, p, j):
    """Add w[k:k+4] * p[j:j+4] to y[i:i+4]."""

    def generate(context, builder, signature, arguments):
        y, i, w, k, p, j = arguments
        y_type, _, w_type, _, p_type, _ = signature.args
        old = _load(context, builder, y_type, y, i)
        factors = (
            _load(context, builder, w_type, w, k),
            _load(context, builder, p_type, p, j),
        )
        product = builder.fmul(*factors, flags=("contract",))
        new = builder.fadd(old, product, flags=("contract",))
        _store(context, builder, y_type, y, i, new)
        return context.get_dummy_value()

    return types.void(y, i, w, k, p, j), generate


@intrinsic
def scale(typing_context, out, i, values, k, w, j, factor):
    """Write values[k:k+4] * w[j:j+4] * factor to out[i:i+4]; values are float64."""

    def generate(context, builder, signature, arguments):
        out, i, values, k, w, j, factor = arguments
        out_type, _, values_type, _, w_type, *_ = signature.args
        own = _load(context, builder, w_type, w, j)
        first = builder.insert_element(own.type(ir.Undefined), factor, ir.IntType(32)(0))
        everywhere = _shuffle(builder, first, first, [0] * LANES)
        number = _load(context, builder, values_type, values, k)
        if number.type != own.type:
            number = builder.fptrunc(number, own.type)
        product = builder.fmul(builder.fmul(number, own), everywhere)
        _store(context, builder, out_type, out, i, product)
        return context.get_dummy_value()

    return types.void(out, i, values, k, w, j, factor), generate


@intrinsic
def collect(typing_context, out, i, step, p, r0, r1, r2, r3):
    """Write (p[r0+t], p[r1+t], p[r2+t], p[r3+t]) to out[i+t*step:], for t from 0 to 3."""

    def generate(context, builder, signature, arguments):
        out, i, step, p, *rows = arguments
        out_type, p_type = signature.args[0], signature.args[3]
        vectors = [_load(context, builder, p_type, p, row) for row in rows]
        for vector in _transpose(builder, vectors):
            _store(context, builder, out_type, out, i, vector)
            i = builder.add(i, step)
        return context.get_dummy_value()

    return types.void(out, i, step, p, r0, r1, r2, r3), generate


@intrinsic
def spread(typing_context, source, i, step, y, r0, r1, r2, r3):
    """Add what `collect` would have put at source[i+t*step:] back to y[r0+t] to y[r3+t]."""

    def generate(context, builder, signature, arguments):
        source, i, step, y, *rows = arguments
        source_type, y_type = signature.args[0], signature.args[3]
        vectors = []
        for _ in range(LANES):
            vectors.append(_load(context, builder, source_type, source, i))
            i = builder.add(i, step)
        for row, vector in zip(rows, _transpose(builder, vectors), strict=True):
            old = _load(context, builder, y_type, y, row)
            _store(context, builder, y_type, y, row, builder.fadd(old, vector))
        return context.get_dummy_value()

    return types.void(source, i, step, y, r0, r1, r2, r3), generate
