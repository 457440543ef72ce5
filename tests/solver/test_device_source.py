# SPDX-License-Identifier: BSD-3-Clause
"""The CUDA solver compiles, for every form of base kernel and several architectures."""

import numpy as np
import nvrtc
import pytest

from sklearn_mgk.base_kernels import (
    Constant,
    FormulaKernel,
    KroneckerDelta,
    RationalQuadratic,
    SquaredExponential,
)
from sklearn_mgk.solver.device_source import (
    BlockKernel,
    GridKernel,
    KernelForm,
    StripKernel,
    solver_source,
)
from sklearn_mgk.solver.device_strips import STRIP_WARPS

TABLE = KernelForm(2)
KERNELS = [
    SquaredExponential("length"),
    KroneckerDelta("order", h=0.5) * SquaredExponential("length"),
    RationalQuadratic("length") ** 2,
    0.5 * SquaredExponential("vector") + Constant(0.2, (0.1, 1.0)),
    FormulaKernel("length", "exp(-s * abs(x - y))", {"s": (0.8, (0.01, 10.0))}),
]
CODE = KernelForm.of_code(KERNELS[0], {"length": 0}, 1, 0)
BLOCK = BlockKernel(256, 3, 8, "SHARED", False)
STRIP = StripKernel(128, 5, 1, 8, "VALUES")
OPTIONS = ("--use_fast_math",)


def errors(architecture, node, edge, dtype, kernel):
    """What the compiler says against a kernel; nothing if it compiles."""
    source = solver_source(node, edge, np.dtype(dtype), kernel)
    compiled, log = nvrtc.compile_cuda(source, architecture, OPTIONS)
    return log or "refused" if not compiled or "error" in log else ""


@pytest.mark.parametrize("architecture", nvrtc.architectures())
@pytest.mark.parametrize(
    "kernel",
    [BLOCK, BlockKernel(512, 1, 4, "GLOBAL", True), GridKernel(512, 1, True), STRIP],
    ids=["block", "gradient", "grid", "strip"],
)
def test_every_architecture_in_double_precision(kernel, architecture):
    assert not errors(architecture, TABLE, TABLE, "float64", kernel)


@pytest.mark.parametrize("kernel", [BLOCK, GridKernel(256, 2, False)], ids=["block", "grid"])
def test_code_of_nodes(kernel):
    assert not errors(90, CODE, CODE, "float32", kernel)


@pytest.mark.parametrize("warps", STRIP_WARPS[:2])  # more are the same code
@pytest.mark.parametrize(("edge", "slots"), [(TABLE, 4), (CODE, 16)])
def test_strips_that_keep_solutions(edge, slots, warps):
    assert not errors(90, TABLE, edge, "float32", StripKernel(128, 2, warps, slots, "SOLUTIONS"))


@pytest.mark.parametrize("kernel", KERNELS, ids=repr)
@pytest.mark.parametrize("role", ["node", "edge"])
def test_every_form_of_code(kernel, role):
    dims = {name: 3 * (name == "vector") for name in kernel.attributes}
    form = KernelForm.of_code(kernel, dims, kernel.n_dims)
    forms = (form, TABLE) if role == "node" else (TABLE, form)
    assert not errors(90, *forms, "float64", BlockKernel(256, 2, 4, "SHARED", True))


def test_no_derivatives_compile_too():
    assert not errors(
        90, KernelForm(0), KernelForm(0), "float32", BlockKernel(256, 2, 4, "GLOBAL", True)
    )


def test_text_is_the_same_every_time():
    texts = {solver_source(TABLE, CODE, np.dtype("float32"), BLOCK) for _ in range(2)}
    assert len(texts) == 1
    assert "#include" not in texts.pop()
