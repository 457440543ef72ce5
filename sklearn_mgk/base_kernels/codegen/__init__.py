# SPDX-License-Identifier: BSD-3-Clause
"""Code for kernels that are formulas: one expression, printed in several languages."""

from sklearn_mgk.base_kernels.codegen.cuda import cuda_source
from sklearn_mgk.base_kernels.codegen.features import feature_dims, features
from sklearn_mgk.base_kernels.codegen.numba import (
    FILL_BLOCK,
    FILL_ROW_GRADIENT,
    numba_module,
    numba_source,
    row_functions,
)

__all__ = [
    "FILL_BLOCK",
    "FILL_ROW_GRADIENT",
    "cuda_source",
    "feature_dims",
    "features",
    "numba_module",
    "numba_source",
    "row_functions",
    "source",
]

_SOURCES = {"numba": numba_source, "cuda": cuda_source}


def source(kernel, backend: str, dims) -> str:
    """Return the code of a kernel for one backend; see `BaseKernel.source`."""
    if backend not in _SOURCES:
        raise ValueError(f"backend={backend!r} has no code; choose one of {sorted(_SOURCES)}.")
    return _SOURCES[backend](kernel, dims)
