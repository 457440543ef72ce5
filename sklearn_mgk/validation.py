# SPDX-License-Identifier: BSD-3-Clause
"""Checks of the parameters of `MarginalizedGraphKernel`, before any work."""

from __future__ import annotations

from collections.abc import Callable
from numbers import Integral, Real

import numpy as np

from sklearn_mgk.base_kernels import BaseKernel
from sklearn_mgk.normalization import NORMALIZATIONS
from sklearn_mgk.solver import BACKENDS
from sklearn_mgk.starting import StartingProbability
from sklearn_mgk.walk import STOPPING_RULES


def _positive(value) -> bool:
    return isinstance(value, Real) and bool(np.isfinite(value)) and value > 0


def _is_base_kernel(value) -> bool:
    return value is None or isinstance(value, BaseKernel)


_RULES: dict[str, tuple[Callable, str]] = {
    "node_kernel": (_is_base_kernel, "a base kernel of sklearn_mgk.base_kernels, or None"),
    "edge_kernel": (_is_base_kernel, "a base kernel of sklearn_mgk.base_kernels, or None"),
    "starting_probability": (
        lambda p: isinstance(p, str | StartingProbability) or _positive(p),
        "a positive number, the name of a node attribute, or a StartingProbability",
    ),
    "stopping_probability": (
        lambda q: isinstance(q, str) or _positive(q),
        "a positive number (below 1 under stopping_rule 'probability'), or the name of a node "
        "attribute",
    ),
    "stopping_rule": (
        lambda rule: rule in STOPPING_RULES,
        f"one of {list(STOPPING_RULES)}",
    ),
    "min_steps": (lambda n: isinstance(n, Integral) and n in (0, 1), "0 or 1"),
    "normalization": (lambda name: name in NORMALIZATIONS, f"one of {list(NORMALIZATIONS)}"),
    "size_scale": (_positive, "a positive number"),
    "dtype": (
        lambda dtype: dtype in ("float32", "float64", np.float32, np.float64),
        "'float64' or 'float32'",
    ),
    "tol": (_positive, "a positive number"),
    "max_iter": (lambda n: isinstance(n, Integral) and n >= 1, "an integer of at least 1"),
    "backend": (
        lambda name: name in ("auto", *BACKENDS),
        f"'auto' or one of {list(BACKENDS)}",
    ),
    "cache_size": (
        lambda size: isinstance(size, Real) and 0 <= size < np.inf,
        "a number of megabytes, 0 for no cache",
    ),
}


def check_parameters(kernel) -> None:
    """Raise a ValueError that names the first parameter out of range."""
    for name, (accepts, wanted) in _RULES.items():
        value = getattr(kernel, name)
        if not accepts(value):
            raise ValueError(f"{name}={value!r} of MarginalizedGraphKernel must be {wanted}")
    if kernel.stopping_rule != "probability":
        return
    for name in ("stopping_probability", "stopping_probability_bounds"):
        value = getattr(kernel, name)
        if not isinstance(value, str) and np.max(value) >= 1:
            raise ValueError(
                f"{name}={value!r} of MarginalizedGraphKernel must lie between 0 and 1 (both "
                "excluded) under stopping_rule 'probability'"
            )
