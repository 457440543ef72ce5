# SPDX-License-Identifier: BSD-3-Clause
"""Functions that formulas are written with; they take NumPy arrays and SymPy symbols alike.

A label is a number (an array of numbers, a symbol) or, for fixed vectors, a tuple of them. So one
formula gives values on arrays, without SymPy, and the expression that derivatives and code are
made from.
"""

import numpy as np

_NUMBERS = (np.ndarray, np.generic, float, int)


def is_symbolic(label) -> bool:
    """Whether a label is made of SymPy symbols, not of numbers."""
    return not isinstance(components(label)[0], _NUMBERS)


def components(label) -> tuple:
    """Return the components of a label: those of a vector, or the number itself."""
    return label if isinstance(label, tuple) else (label,)


def exp(a):
    """Exponential."""
    return _apply("exp", a)


def log(a):
    """Natural logarithm."""
    return _apply("log", a)


def sqrt(a):
    """Square root."""
    return _apply("sqrt", a)


def cos(a):
    """Cosine of an angle [rad]."""
    return _apply("cos", a)


def sin(a):
    """Sine of an angle [rad]."""
    return _apply("sin", a)


def dot(x, y):
    r"""Inner product :math:`\sum_k x_k y_k`."""
    return sum(a * b for a, b in zip(components(x), components(y), strict=True))


def squared_distance(x, y):
    r"""Squared Euclidean distance :math:`\sum_k (x_k - y_k)^2`."""
    return sum((a - b) ** 2 for a, b in zip(components(x), components(y), strict=True))


def if_equal(x, y, then, otherwise):
    """`then` where the labels are equal (in every component), `otherwise` where they are not."""
    pairs = list(zip(components(x), components(y), strict=True))
    if is_symbolic(x):
        import sympy

        equal = sympy.And(*(sympy.Eq(a, b) for a, b in pairs))
        return sympy.Piecewise((then, equal), (otherwise, True))
    return np.where(np.logical_and.reduce([a == b for a, b in pairs]), then, otherwise)


def _apply(name, a):
    """Apply NumPy's function of that name to numbers, SymPy's to symbols."""
    if isinstance(a, _NUMBERS):
        return getattr(np, name)(a)
    import sympy

    return getattr(sympy, name)(a)
