# SPDX-License-Identifier: BSD-3-Clause
"""Text of the CUDA solver for one pair of base kernels; needs no device."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files

import numpy as np

from sklearn_mgk.base_kernels import BaseKernel
from sklearn_mgk.base_kernels.codegen import cuda_source

HEADERS = (
    "problem",
    "labels",
    "block",
    "pair",
    "pcg",
    "adjoint",
    "lane_entries",
    "staged",
    "solve",
    "strip",
    "strip_solve",
)
"""Files of ``cuda/``, each after those that it includes."""

REAL = {np.dtype("float32"): "float", np.dtype("float64"): "double"}

_CODE = """\
namespace {name}_kernel {{
{source}
}}

struct {name}_code {{
  static constexpr int n_free = {n_free};
  static constexpr bool is_table = false;
  static constexpr bool has_windows = {has_windows};

  struct Label {{
    Real x[{n_features}];
  }};

  struct alignas(16) Entry {{
    int column;  // the other end, counted within the graph
    Real weight;
    Label features;
    static constexpr int n_words = (2 + {n_features}) * sizeof(Real) / 4;  // of four bytes
    __device__ const Label& label() const {{ return features; }}
    // The entry that another lane holds.
    __device__ Entry from(int lane) const {{
      Entry other = {{__shfl_sync(mgk::ALL, column, lane), __shfl_sync(mgk::ALL, weight, lane)}};
      for (int k = 0; k < {n_features}; ++k)
        other.features.x[k] = __shfl_sync(mgk::ALL, features.x[k], lane);
      return other;
    }}
  }};

  // Attribute by which entries are sorted.
  __device__ static Real key(const Label& label) {{ return label.x[{key}]; }}

  const Real* features;
  Real theta[{n_theta} + {name}_kernel::n_constants];

  __device__ explicit {name}_code(const mgk::Columns<Real>& columns) : features(columns.features) {{
    for (int k = 0; k < {n_theta}; ++k) theta[k] = columns.theta[k];
    {name}_kernel::prepare(theta);
  }}
  __device__ Label load(int row) const {{
    Label label;
    const Real* own = features + mgk::Index(row) * {n_features};
    for (int k = 0; k < {n_features}; ++k) label.x[k] = __ldg(own + k);
    return label;
  }}
  __device__ Real value(const Label& a, const Label& b) const {{
    return {name}_kernel::value(a.x, b.x, theta);
  }}
  __device__ Real gradient(const Label& a, const Label& b, Real* out) const {{
    return {name}_kernel::gradient(a.x, b.x, theta, out);
  }}
}};
"""

_ENTRY = """
extern "C" __global__ void __launch_bounds__({threads}, {blocks}) solve(
    const __grid_constant__ mgk::Problem<Real> problem, const __grid_constant__ mgk::Strips strips,
    const __grid_constant__ mgk::Work work, const __grid_constant__ mgk::Results results) {{
  {call};
}}
"""


@dataclass(frozen=True)
class KernelForm:
    """How the solver gets at a base kernel.

    Attributes
    ----------
    n_free : int
        Derivatives by log hyperparameter.
    source : str
        Generated code; empty for a kernel that is read from a table.
    n_features, n_theta : int
        Numbers that the code reads of each label, and hyperparameters.
    key : int
        Feature by which the windows of the kernel go, -1 for none.
    """

    n_free: int
    source: str = ""
    n_features: int = 0
    n_theta: int = 0
    key: int = -1

    @classmethod
    def of_code(
        cls, kernel: BaseKernel, dims: Mapping[str, int], n_free: int, key: int = -1
    ) -> KernelForm:
        """Generate the code of a kernel."""
        n_features = sum(max(dims[name], 1) for name in kernel.attributes)
        source = cuda_source(kernel, dims)
        # Arrays of no elements are not allowed.
        return cls(n_free, source, max(n_features, 1), max(len(kernel.hyperparameters), 1), key)


@dataclass(frozen=True)
class BlockKernel:
    """Kernel that solves a pair by one block.

    Attributes
    ----------
    threads, blocks : int
        Most threads of a block, and blocks that a multiprocessor is to hold.
    slots : int
        Entries of a node that a lane keeps in registers.
    memory : str
        Which vectors lie in shared memory, as ``mgk::Memory`` says.
    gradient : bool
        Whether derivatives are computed.
    """

    threads: int
    blocks: int
    slots: int
    memory: str
    gradient: bool

    def call(self, node: str, edge: str) -> str:
        """Print the call of the device function."""
        options = f"{self.slots}, mgk::{self.memory}, {str(self.gradient).lower()}"
        return f"mgk::solve_pairs<Real, {node}, {edge}, {options}>(problem, work, results)"


@dataclass(frozen=True)
class GridKernel:
    """Kernel that solves one pair after the other by all blocks.

    Attributes
    ----------
    threads, blocks : int
        As for `BlockKernel`.
    gradient : bool
        Whether derivatives are computed.
    """

    threads: int
    blocks: int
    gradient: bool

    def call(self, node: str, edge: str) -> str:
        """Print the call of the device function."""
        options = f"Real, {node}, {edge}, {str(self.gradient).lower()}"
        return f"mgk::solve_pairs_together<{options}>(problem, work, strips.stride, results)"


@dataclass(frozen=True)
class StripKernel:
    """Kernel that solves the pairs of a strip by one warp.

    Attributes
    ----------
    threads, blocks : int
        Threads of a block, and blocks that a multiprocessor is to hold.
    warps, slots : int
        Warps of a strip, and entries of a lane's node that are kept in registers.
    wanted : str
        What is asked for, as ``mgk::Wanted`` says.
    """

    threads: int
    blocks: int
    warps: int
    slots: int
    wanted: str

    def call(self, node: str, edge: str) -> str:
        """Print the call of the device function."""
        arguments = f"Real, {node}, {edge}, {self.warps}, {self.slots}, mgk::{self.wanted}"
        return f"mgk::solve_strips<{arguments}>(problem, strips, work, results)"


Kernel = BlockKernel | GridKernel | StripKernel


def solver_source(node: KernelForm, edge: KernelForm, dtype: np.dtype, kernel: Kernel) -> str:
    """Return the text of one kernel, named ``solve``.

    Parameters
    ----------
    node, edge : KernelForm
        The base kernels.
    dtype : numpy.dtype
        Type of the solve.
    kernel : BlockKernel, GridKernel or StripKernel
        What is compiled.
    """
    text, names = base_kernels(node, edge, dtype)
    entry = _ENTRY.format(threads=kernel.threads, blocks=kernel.blocks, call=kernel.call(**names))
    return headers(HEADERS) + text + entry


def base_kernels(node: KernelForm, edge: KernelForm, dtype: np.dtype) -> tuple[str, dict[str, str]]:
    """Return the text of the type ``Real`` and of generated base kernels, and their types."""
    text, names = f"using Real = {REAL[dtype]};\n\n", {}
    for name, form in (("node", node), ("edge", edge)):
        names[name] = f"{name}_code" if form.source else f"mgk::Table<Real, {form.n_free}>"
        if form.source:
            text += _CODE.format(
                name=name,
                source=form.source,
                n_free=form.n_free,
                n_features=form.n_features,
                n_theta=form.n_theta,
                has_windows=str(form.key >= 0).lower(),
                key=max(form.key, 0),
            )
    return text, names


@cache
def headers(names: tuple[str, ...]) -> str:
    """Return some headers as one text: compile caches then see every change."""
    folder = files("sklearn_mgk.cuda")
    lines = [
        line
        for name in names
        for line in (folder / f"{name}.cuh").read_text().splitlines(keepends=True)
        if not line.startswith(("#pragma once", '#include "'))
    ]
    return "".join(lines)
