# SPDX-License-Identifier: BSD-3-Clause
"""Atomic increments of arrays that CPU threads share, which numba itself has on GPUs only."""

from __future__ import annotations

from numba import types
from numba.core import cgutils
from numba.extending import intrinsic


@intrinsic
def atomic_add(typing_context, array, index, value):
    """``old = array[index]; array[index] += value; return old`` as one step that nothing splits."""

    def generate(context, builder, signature, args):
        kind = signature.args[0]
        view = context.make_array(kind)(context, builder, args[0])
        place = cgutils.get_item_pointer(context, builder, kind, view, [args[1]], wraparound=False)
        return builder.atomic_rmw("add", place, args[2], "monotonic")

    return array.dtype(array, types.intp, array.dtype), generate
