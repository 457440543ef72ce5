# SPDX-License-Identifier: BSD-3-Clause
"""Code for kernels that are formulas: one expression, printed in several languages.

What needs numba is in `codegen.numba`, which is not imported here: the CUDA solver does without.
"""

from importlib import import_module

from sklearn_mgk.base_kernels.codegen.cuda import cuda_source
from sklearn_mgk.base_kernels.codegen.features import feature_dims, features

__all__ = ["cuda_source", "feature_dims", "features", "source"]

_BACKENDS = ("cuda", "numba")


def source(kernel, backend: str, dims) -> str:
    """Return the code of a kernel for one backend; see `BaseKernel.source`."""
    if backend not in _BACKENDS:
        raise ValueError(f"backend={backend!r} has no code; choose one of {sorted(_BACKENDS)}.")
    module = import_module(f"sklearn_mgk.base_kernels.codegen.{backend}")
    return getattr(module, f"{backend}_source")(kernel, dims)
