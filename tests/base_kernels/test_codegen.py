# SPDX-License-Identifier: BSD-3-Clause
"""Generated code against tables, for every kernel that is a formula."""

import ctypes
import os
import shutil
import subprocess
import sys

import numpy as np
import nvrtc
import pytest
from base_kernels.registry import CASES, FORMULAS
from numpy.testing import assert_allclose, assert_array_equal

from sklearn_mgk.base_kernels import FormulaKernel, KroneckerDelta, SquaredExponential
from sklearn_mgk.base_kernels.codegen import cuda_source, feature_dims, features
from sklearn_mgk.base_kernels.codegen.exponential import exp
from sklearn_mgk.base_kernels.codegen.numba import numba_module, numba_source
from sklearn_mgk.graphs.columns import as_column

every_formula = pytest.mark.parametrize("case", FORMULAS.values(), ids=FORMULAS)
# numba and g++ round transcendental functions as they like; a few units in the last place.
ROUNDING = 1e-13

HOST = """
#include <math.h>
#define __device__
{source}
extern "C" void fill(const double* x, const double* hyperparameters, int n_theta, int n, int width,
                     int n_free, double* table, double* partials) {{
  double theta[99];
  for (int k = 0; k < n_theta; ++k) theta[k] = hyperparameters[k];
  prepare(theta);
  for (int i = 0; i < n; ++i)
    for (int j = 0; j < n; ++j) {{
      table[i * n + j] = value(x + i * width, x + j * width, theta);
      gradient(x + i * width, x + j * width, theta, partials + (i * n + j) * n_free);
    }}
}}
"""
DEVICE = """
{source}
template <typename T>
__device__ void both(const T* x, const T* y, T* out) {{
  T theta[8 + n_constants];
  for (int k = 0; k < 8; ++k) theta[k] = x[16 + k];
  prepare(theta);
  out[0] = value(x, y, theta) + gradient(x, y, theta, out + 1);
}}
extern "C" __global__ void single(const float* x, float* out) {{ both(x, x + 8, out); }}
extern "C" __global__ void twice(const double* x, double* out) {{ both(x, x + 8, out); }}
"""


def code_input(case):
    names = case.kernel.attributes
    matrix = features(case.columns, names) if names else np.empty((5, 0))
    return matrix, feature_dims(case.columns, names)


@pytest.fixture(autouse=True, scope="module")
def own_cache(tmp_path_factory):
    """Keep the user's cache folder out of the tests."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_CACHE_HOME", str(tmp_path_factory.mktemp("cache")))
        yield


@every_formula
def test_numba_pairs_equal_the_table(case):
    matrix, dims = code_input(case)
    module, theta = numba_module(case.kernel, dims), case.kernel.hyperparameter_values
    ptr, i, j = np.array([0, 2, 5]), np.array([1, 0, 1]), np.array([0, 0, 1])
    rows = [
        (np.arange(ptr[a], ptr[a + 1]), np.arange(ptr[b], ptr[b + 1]))
        for a, b in zip(i, j, strict=True)
    ]
    out_ptr = np.cumsum([0, *(len(a) * len(b) for a, b in rows)])
    table, gradient = case.kernel.table_gradient(case.columns or [0] * 5)
    values = np.empty(out_ptr[-1])
    partials = np.empty((out_ptr[-1], case.kernel.n_dims))
    labels = np.ascontiguousarray(matrix.T)
    module.fill_pairs(labels, ptr, i, j, theta, values, out_ptr)
    module.fill_pairs_gradient(labels, ptr, i, j, theta, partials, out_ptr)
    expected = np.concatenate([table[np.ix_(*r)].ravel() for r in rows])
    assert_allclose(values, expected, rtol=ROUNDING)
    block = np.empty(8)
    module.fill_block(labels, *map(np.uint64, (0, 3, 5)), theta, block)
    assert_allclose(block.reshape(2, 4), table[:4, 3:].T, rtol=ROUNDING)
    expected = np.concatenate(
        [gradient[np.ix_(*r)].reshape(len(r[0]) * len(r[1]), -1) for r in rows]
    )
    assert_allclose(partials, expected, rtol=ROUNDING, atol=1e-15)


def test_exponential_equals_that_of_numpy():
    x = np.concatenate([np.linspace(-750, 715, 100_001), [0.0, -0.0, np.inf, -np.inf, np.nan]])
    with np.errstate(over="ignore", under="ignore"):
        expected = np.where(x < -708, 0, np.where(x > 709, np.inf, np.exp(x)))
    assert_allclose([exp(v) for v in x], np.where(np.isnan(x), x, expected), rtol=5e-16)


@pytest.mark.parametrize("architecture", nvrtc.architectures())
def test_cuda_compiles_for(architecture):
    assert nvrtc.architectures()[0] == 80
    for name, case in FORMULAS.items():
        source = cuda_source(case.kernel, code_input(case)[1])
        compiled, log = nvrtc.compile_cuda(DEVICE.format(source=source), architecture)
        assert compiled, f"{name}: {log}\n{source}"
        assert not log.strip("\0\n"), f"{name}: {log}"


@pytest.mark.skipif(not shutil.which("g++"), reason="no C++ compiler; NVRTC compiles the same text")
@every_formula
def test_cuda_text_computes_the_table_on_the_host(case, tmp_path):
    matrix, dims = code_input(case)
    path = tmp_path / "kernel.cpp"
    path.write_text(HOST.format(source=cuda_source(case.kernel, dims)))
    library = tmp_path / "kernel.so"
    subprocess.run(
        [
            "g++",
            "-std=c++17",
            "-O1",
            "-Wall",
            "-Werror",
            "-Wno-unused-variable",
            "-shared",
            "-fPIC",
            str(path),
            "-o",
            str(library),
        ],
        check=True,
    )
    table, gradient = case.kernel.table_gradient(case.columns or [0] * 5)
    values, partials = np.empty_like(table), np.empty(gradient.shape)
    arrays = (matrix, case.kernel.hyperparameter_values, values, partials)
    x, theta, table_out, gradient_out = (a.ctypes.data_as(ctypes.c_void_p) for a in arrays)
    sizes = map(ctypes.c_int, (len(arrays[1]), *matrix.shape, case.kernel.n_dims))
    ctypes.CDLL(str(library)).fill(x, theta, *sizes, table_out, gradient_out)
    assert_allclose(values, table, rtol=ROUNDING)
    assert_allclose(partials, gradient, rtol=ROUNDING, atol=1e-15)


@every_formula
def test_text_does_not_depend_on_hyperparameters(case):
    moved = case.kernel.clone_with_theta(case.kernel.theta - 0.1)
    dims = code_input(case)[1]
    for text in (numba_source, cuda_source):
        assert text(moved, dims) == text(case.kernel, dims)


def test_text_is_the_same_in_every_process():
    program = (
        "import sys; sys.path.insert(0, 'tests')\n"
        "from base_kernels.registry import FORMULAS\n"
        "from sklearn_mgk.base_kernels.codegen import *\n"
        "from sklearn_mgk.base_kernels.codegen.numba import numba_source\n"
        "for case in FORMULAS.values():\n"
        "    dims = feature_dims(case.columns, case.kernel.attributes)\n"
        "    print(numba_source(case.kernel, dims), cuda_source(case.kernel, dims))\n"
    )
    texts = {
        subprocess.run(
            [sys.executable, "-c", program],
            env={**os.environ, "PYTHONHASHSEED": seed, "PYTHONPATH": os.pathsep.join(sys.path)},
            check=True,
            capture_output=True,
            text=True,
        ).stdout
        for seed in "12"
    }
    assert len(texts) == 1


def test_source_shows_the_code():
    kernel = SquaredExponential("position")
    assert "x[1], y[1]: position" in kernel.source("numba", {"position": 2})
    assert "template <typename T>" in kernel.source(backend="cuda")
    with pytest.raises(ValueError, match="backend='fortran' has no code"):
        kernel.source("fortran")


@pytest.mark.parametrize("name", sorted(set(CASES) - set(FORMULAS)))
def test_other_kernels_have_no_code(name):
    with pytest.raises(TypeError, match="a part of it is not a formula"):
        CASES[name].kernel.source()


def test_a_function_without_code_is_refused():
    with pytest.raises(ValueError, match=r"functions \['besselj'\]"):
        FormulaKernel("a", "besselj(0, x - y)").source("cuda")


def test_one_module_for_one_structure():
    a, b = (SquaredExponential("length", length_scale=s) for s in (0.1, 2.0))
    assert numba_module(a, {}) is numba_module(b, {})


def test_module_lives_in_memory_where_the_cache_cannot_be_written(monkeypatch, tmp_path):
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    kernel = KroneckerDelta("only_here", h=0.25)
    module = numba_module(kernel, {})
    assert not hasattr(module, "__file__")
    assert module.value(np.zeros(1), np.ones(1), kernel.hyperparameter_values) == 0.25


def test_features_stand_side_by_side():
    columns = {
        "position": np.array([[1, 2], [3, 4]]),
        "element": np.array(["O", "C"]),
        "aromatic": np.array([True, False]),
        "rings": as_column([[5], []]),
    }
    names = ("element", "position", "aromatic", "rings")
    assert_array_equal(features(columns, names), [[1, 1, 2, 1, 1], [0, 3, 4, 0, 0]])
    assert feature_dims(columns, names) == {"element": 0, "position": 2, "aromatic": 0, "rings": 0}
    assert features({}, ()).shape == (1, 0)
