# SPDX-License-Identifier: BSD-3-Clause
"""Kernels that launches use on real workloads compile, and keep what they compute in registers."""

import re
from itertools import product

import numpy as np
import nvrtc
import pytest

from sklearn_mgk.base_kernels import SquaredExponential
from sklearn_mgk.solver.device_kernels import STRIP_SLOTS, Choice
from sklearn_mgk.solver.device_launch import MEMORY
from sklearn_mgk.solver.device_plan import BlockGraphs, plan_blocks
from sklearn_mgk.solver.device_source import (
    BlockKernel,
    GridKernel,
    KernelForm,
    StripKernel,
    solver_source,
)
from sklearn_mgk.solver.device_strips import (
    STRIP_WARPS,
    WARP,
    orient_for_strips,
    plan_strips,
    rank_for_strips,
)

FLOAT = np.dtype("float32")
LIMIT = 228 << 10
"""Shared memory of a multiprocessor [bytes]."""

OPTIONS = ("--use_fast_math", "--ptxas-options=-v")


def forms(is_table, gradient):
    """Base kernels: molecules have two tables, structures in space lengths of edges."""
    length = SquaredExponential("length")
    code = KernelForm.of_code(length, {"length": 0}, int(gradient), 0)
    return KernelForm(5 * gradient), KernelForm(3 * gradient) if is_table else code


def strip_launches(slots, wanted):
    """Launches of strips with graphs of all sizes and degrees on their lanes."""
    size, most = np.array(list(product(np.array(STRIP_WARPS) * WARP, slots))).T
    graphs = rank_for_strips(size, most, size, slots)
    pairs = np.stack([np.zeros(len(size), int), np.arange(len(size))])
    pairs, swapped, fits = orient_for_strips(np, graphs, pairs, FLOAT.itemsize, LIMIT)
    assert fits.all()
    return plan_strips(np, graphs, pairs, swapped, slots, FLOAT.itemsize, wanted).launches


def block_launches(threads):
    """Launches of pairs whose vectors fit, of which one vector fits, none fits, and of the grid."""
    size = np.array([64, 200, 500, 2000])
    graphs = BlockGraphs(size, size, np.zeros(len(size), bool))
    pairs = np.stack([np.arange(len(size))] * 2)
    return plan_blocks(np, graphs, pairs, 5, FLOAT.itemsize, LIMIT, threads, 1).launches


def used(is_table, gradient, dtype=FLOAT):
    """Kernels that launches use."""
    wanted = "GRADIENTS" if gradient else "VALUES"
    found = set()
    for degree in (2, 20):
        choice = Choice.of(dtype, degree, 1, is_table, gradient)
        launches = strip_launches(STRIP_SLOTS[is_table], wanted) + block_launches(choice.threads)
        found |= {choice.kernel(launch) for launch in launches}
    return sorted(found, key=repr)


CASES = [
    (is_table, gradient, kernel)
    for is_table in (True, False)
    for gradient in (False, True)
    for kernel in used(is_table, gradient)
]
EVERYWHERE = [case for case in CASES if not case[1] and isinstance(case[2], StripKernel)]
"""Those that are compiled for all architectures: others take long to compile."""

IN_DOUBLE_PRECISION = [
    (is_table, False, kernel)
    for is_table in (True, False)
    for kernel in used(is_table, False, np.dtype("float64"))
    if isinstance(kernel, BlockKernel)
]

SPILLS = {
    80: {
        "strip-value-table-4-1": 28,
        "strip-value-table-4-2": 32,
        "strip-value-table-8-1": 96,
        "strip-value-table-8-2": 72,
        "strip-value-table-8-4": 64,
    },
    90: {
        "block-gradient-table-8-GLOBAL": 4,
        "grid-value-table": 20,
        "grid-gradient-table": 32,
        "grid-value-code": 8,
        "grid-gradient-code": 12,
    },
}
"""Bytes of registers that lie in memory in spite of all; no other kernel has any. Threads are
chosen for 90 and later: 80 would need fewer."""


def name_of(case):
    is_table, gradient, kernel = case
    words = [
        type(kernel).__name__.removesuffix("Kernel").lower(),
        "gradient" if gradient else "value",
        "table" if is_table else "code",
        str(getattr(kernel, "slots", "")),
        str(getattr(kernel, "warps", getattr(kernel, "memory", ""))),
    ]
    return "-".join(filter(None, words))


def check(architecture, case, dtype=FLOAT):
    """No more registers lie in memory than is known; the assembler counts them."""
    source = solver_source(*forms(*case[:2]), dtype, case[2])
    compiled, log = nvrtc.compile_cuda(source, architecture, OPTIONS)
    assert compiled, log
    number = max(map(int, re.findall(r"(\d+) bytes spill stores", log)))
    assert number <= SPILLS.get(architecture, {}).get(name_of(case), 0)


def test_launches_use_every_kind_of_kernel():
    for is_table, gradient in product((True, False), (True, False)):
        kernels = [case[2] for case in CASES if case[:2] == (is_table, gradient)]
        strips = {(k.warps, k.slots) for k in kernels if isinstance(k, StripKernel)}
        blocks = {(k.memory, k.slots) for k in kernels if isinstance(k, BlockKernel)}
        grids = [k for k in kernels if isinstance(k, GridKernel)]
        assert strips == set(product(STRIP_WARPS, STRIP_SLOTS[is_table]))
        assert blocks == set(product(MEMORY, (4, 8)))
        assert len(grids) == 1


@pytest.mark.parametrize("case", CASES, ids=name_of)
def test_no_registers_spill(case):
    check(90, case)


@pytest.mark.parametrize("case", EVERYWHERE, ids=name_of)
@pytest.mark.parametrize("architecture", [a for a in nvrtc.architectures() if a != 90])
def test_other_architectures(architecture, case):
    check(architecture, case)


@pytest.mark.parametrize("case", IN_DOUBLE_PRECISION, ids=name_of)
def test_no_registers_spill_in_double_precision(case):
    check(90, case, np.dtype("float64"))
