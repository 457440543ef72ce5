# SPDX-License-Identifier: BSD-3-Clause
"""What SymPy makes of a base kernel: expressions, derivatives on arrays, LaTeX."""

from collections import Counter
from collections.abc import Mapping
from functools import lru_cache

import sympy

from sklearn_mgk.base_kernels.kernel import BaseKernel

_LATEX_NAMES = {"length_scale": r"\ell"}


def symbol(name: str) -> sympy.Symbol:
    """Make a symbol for a real number."""
    return sympy.Symbol(name, real=True)


def operand(name: str, length: int):
    """Symbol of a label that is a number (length 0), or a tuple of symbols for a vector."""
    if length == 0:
        return symbol(name)
    return tuple(symbol(f"{name}{k}") for k in range(length))


def log_partials(kernel, x):
    """Compile the derivatives of a formula by the logarithms of its free hyperparameters.

    Parameters
    ----------
    kernel : Formula
        The kernel.
    x : ndarray or tuple of ndarray
        A label of the kind that the function will be called with.

    Returns
    -------
    callable
        ``function(x, y, *hyperparameters)``, which returns a list of arrays.
    """
    length = len(x) if isinstance(x, tuple) else 0
    own = kernel.hyperparameters
    theta = tuple(symbol(h.name) for h in own)
    x, y = operand("x", length), operand("y", length)
    expression = kernel.formula(x, y, **dict(zip((h.name for h in own), theta, strict=True)))
    free = tuple(t for t, h in zip(theta, own, strict=True) if not h.fixed)
    return _compiled_partials(sympy.sympify(expression), (x, y, *theta), free)


@lru_cache(maxsize=256)
def _compiled_partials(expression, arguments, free):
    return sympy.lambdify(arguments, log_derivatives(expression, free), "numpy", cse=True)


@lru_cache(maxsize=256)
def compiled_value(expression, arguments):
    """Compile an expression to a function of arrays."""
    return sympy.lambdify(arguments, expression, "numpy", cse=True)


def log_derivatives(expression, free) -> list:
    """Differentiate an expression with respect to the logarithms of some symbols."""
    partials = (theta * sympy.diff(expression, theta) for theta in free)
    # Slopes of Max, Min and Abs: the printers know no step function.
    return [d.rewrite((sympy.Heaviside, sympy.sign), sympy.Piecewise) for d in partials]


def expression(kernel: BaseKernel, x: Mapping, y: Mapping, theta: list) -> sympy.Expr:
    """Return the whole kernel as one expression.

    Parameters
    ----------
    kernel : BaseKernel
        The kernel.
    x, y : dict of str to sympy.Symbol or tuple of sympy.Symbol
        The labels by attribute.
    theta : list of sympy.Symbol
        One symbol for each of ``kernel.hyperparameters``, fixed ones included.
    """
    return sympy.sympify(kernel._symbolic(x, y, theta))


def unknown_functions(expression: sympy.Expr) -> list[str]:
    """Names of the functions of an expression that NumPy, numba or CUDA C++ does not have."""
    from sympy.printing.c import C99CodePrinter
    from sympy.printing.numpy import NumPyPrinter
    from sympy.printing.pycode import PythonCodePrinter

    numpy, *others = (
        P({"strict": True}) for P in (NumPyPrinter, PythonCodePrinter, C99CodePrinter)
    )

    def is_unknown(function) -> bool:
        try:
            for printer in others:
                printer.doprint(function)
            return "math." in numpy.doprint(function)  # of single numbers, not of arrays
        except NotImplementedError:
            return True

    return sorted({f.func.__name__ for f in expression.atoms(sympy.Function) if is_unknown(f)})


def latex(kernel: BaseKernel) -> str:
    """Return the formula of a kernel in LaTeX; fixed hyperparameters appear as their values."""
    lengths = kernel._vector_lengths()
    x, y = (
        {a: _latex_operand(side, a, lengths.get(a, 0)) for a in kernel.attributes} for side in "xy"
    )
    names, theta = Counter(), []
    for h, value in zip(kernel.hyperparameters, kernel.hyperparameter_values, strict=True):
        name = f"{value:g}" if h.fixed else _latex_name(kernel, h.name)
        names[name] += not h.fixed
        theta.append(symbol(name + "'" * max(names[name] - 1, 0)))
    return sympy.latex(expression(kernel, x, y, theta))


def _latex_operand(side: str, attribute: str, length: int):
    """Symbol of a label that shows its attribute, or a tuple of symbols with their positions."""
    index = rf"\mathrm{{{_escaped(attribute)}}}"
    if length == 0:
        return symbol(f"{side}_{{{index}}}")
    return tuple(symbol(f"{side}_{{{index}, {k}}}") for k in range(length))


def _latex_name(kernel: BaseKernel, name: str) -> str:
    """Letter of a hyperparameter, with the attribute of its kernel as the index."""
    *path, name = name.split("__")
    for part in path:
        kernel = kernel._parts().get(part, kernel)
    letter = _LATEX_NAMES.get(name) or sympy.latex(sympy.Symbol(name))
    index = ", ".join(map(_escaped, kernel.attributes))
    return rf"{letter}_{{\mathrm{{{index}}}}}" if index else letter


def _escaped(name: str) -> str:
    return name.replace("_", r"\ ")
