# SPDX-License-Identifier: BSD-3-Clause
"""A kernel as a list of assignments, common to all languages."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache


@dataclass(frozen=True)
class KernelCode:
    """Assignments that compute a kernel and its derivatives, as SymPy expressions.

    Parameters
    ----------
    legend : str
        What each feature and hyperparameter is, and the formula; one line each.
    expressions : tuple
        The value, and one derivative for each free hyperparameter.
    value, gradient : tuple
        ``(assignments, results)``: pairs of a temporary variable and its expression, then the
        results. The results of `gradient` are all expressions.
    """

    legend: str
    expressions: tuple
    value: tuple
    gradient: tuple


def kernel_code(kernel, dims: Mapping[str, int]) -> KernelCode:
    """Trace a kernel symbolically and share its common subexpressions.

    Parameters
    ----------
    kernel : BaseKernel
        A kernel that is a formula.
    dims : dict of str to int
        Length of each attribute that is a vector; 0 or left out for one that is a number.

    Raises
    ------
    TypeError
        If the kernel is no formula.
    """
    if not kernel.is_formula:
        raise TypeError(
            f"no code can be generated for {kernel!r}, since a part of it is not a formula; "
            f"it works through its table."
        )
    from sklearn_mgk.base_kernels.symbolic import expression, symbol

    x, y, legend, position = {}, {}, [], 0
    for name in kernel.attributes:
        places = range(position, position + max(dims.get(name, 0), 1))
        for label, side in ((x, "x"), (y, "y")):
            symbols = tuple(symbol(f"{side}[{k}]") for k in places)
            label[name] = symbols if dims.get(name, 0) else symbols[0]
        legend += [f"x[{k}], y[{k}]: {name}" for k in places]
        position = places.stop
    hyperparameters = kernel.hyperparameters
    theta = [symbol(f"theta[{k}]") for k in range(len(hyperparameters))]
    legend += [f"{t}: {h.name}" for t, h in zip(theta, hyperparameters, strict=True)]
    free = [t for t, h in zip(theta, hyperparameters, strict=True) if not h.fixed]
    return _shared(expression(kernel, x, y, theta), tuple(free), tuple(legend))


@lru_cache(maxsize=256)
def _shared(formula, free, legend) -> KernelCode:
    from sklearn_mgk.base_kernels.symbolic import log_derivatives

    lines = (*legend, f"value: {formula}")
    both = formula, *log_derivatives(formula, free)
    return KernelCode("\n".join(lines), both, eliminate(both[:1]), eliminate(both))


def eliminate(results) -> tuple:
    """Share common subexpressions: assignments and results, as `KernelCode` has them."""
    import sympy

    assignments, results = sympy.cse(results, sympy.numbered_symbols("t", real=True))
    return tuple(assignments), tuple(results)


def commented(legend: str, mark: str) -> str:
    """Set the legend as comment lines."""
    return "\n".join(f"{mark} {line}" for line in legend.splitlines())
