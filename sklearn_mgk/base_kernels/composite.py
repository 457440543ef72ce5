# SPDX-License-Identifier: BSD-3-Clause
"""Base kernels made of base kernels."""

import math

import numpy as np

from sklearn_mgk.base_kernels.kernel import BaseKernel


class CompositeKernel(BaseKernel):
    """Abstract base class of kernels that combine the values of other kernels."""

    @property
    def attributes(self) -> tuple[str, ...]:
        """Names of the attributes that the parts read, each once."""
        return tuple(dict.fromkeys(a for p in self._parts().values() for a in p.attributes))

    @property
    def is_formula(self) -> bool:
        """Whether all parts are formulas."""
        return all(part.is_formula for part in self._parts().values())


class Sum(CompositeKernel):
    """Sum of two base kernels; ``k1 + k2`` makes one.

    .. math:: k(x, y) = k_1(x, y) + k_2(x, y)

    Parameters
    ----------
    k1, k2 : BaseKernel
        The summands.

    Examples
    --------
    >>> from sklearn_mgk.base_kernels import KroneckerDelta
    >>> 0.7 * KroneckerDelta("element", h=0.5) + 0.3
    Constant(0.7) * KroneckerDelta('element', h=0.5) + Constant(0.3)
    """

    def __init__(self, k1, k2):
        self.k1 = k1
        self.k2 = k2

    def _evaluate(self, X, Y, outer, gradient):
        value1, partials1 = self.k1._evaluate(X, Y, outer, gradient)
        value2, partials2 = self.k2._evaluate(X, Y, outer, gradient)
        return value1 + value2, partials1 + partials2

    @property
    def upper_bound(self) -> float:
        """Sum of the bounds."""
        return self.k1.upper_bound + self.k2.upper_bound

    def reach(self, epsilon: float) -> dict[str, float]:
        """Go where each summand is at most half of epsilon, on the attributes that both know."""
        first, second = self.k1.reach(epsilon / 2), self.k2.reach(epsilon / 2)
        return {name: max(first[name], second[name]) for name in first if name in second}

    def _symbolic(self, x, y, theta):
        first, second = _shares(self, theta)
        return self.k1._symbolic(x, y, first) + self.k2._symbolic(x, y, second)

    def __repr__(self) -> str:
        """Return the sum as an expression."""
        return f"{self.k1!r} + {_enclosed(self.k2, Sum)}"


class Product(CompositeKernel):
    r"""Product of two base kernels; ``k1 * k2`` makes one.

    .. math:: k(x, y) = k_1(x, y) \, k_2(x, y)

    Parameters
    ----------
    k1, k2 : BaseKernel
        The factors.

    Examples
    --------
    >>> from sklearn_mgk.base_kernels import KroneckerDelta
    >>> kernel = KroneckerDelta("element", h=0.3) * KroneckerDelta("charge", h=0.5)
    >>> kernel.table({"element": ["C", "O"], "charge": [0, 1]})
    array([[1.  , 0.15],
           [0.15, 1.  ]])
    """

    def __init__(self, k1, k2):
        self.k1 = k1
        self.k2 = k2

    def _evaluate(self, X, Y, outer, gradient):
        value1, partials1 = self.k1._evaluate(X, Y, outer, gradient)
        value2, partials2 = self.k2._evaluate(X, Y, outer, gradient)
        partials = [d * value2 for d in partials1] + [value1 * d for d in partials2]
        return value1 * value2, partials

    @property
    def upper_bound(self) -> float:
        """Product of the bounds."""
        return self.k1.upper_bound * self.k2.upper_bound

    def reach(self, epsilon: float) -> dict[str, float]:
        """Go where one factor is small enough, however large the other."""
        first = _reach_of_factor(self.k1, epsilon, self.k2)
        second = _reach_of_factor(self.k2, epsilon, self.k1)
        return {
            name: min(s.get(name, math.inf) for s in (first, second)) for name in first | second
        }

    def _symbolic(self, x, y, theta):
        first, second = _shares(self, theta)
        return self.k1._symbolic(x, y, first) * self.k2._symbolic(x, y, second)

    def __repr__(self) -> str:
        """Return the product as an expression."""
        return f"{_enclosed(self.k1, Sum)} * {_enclosed(self.k2, Sum, Product)}"


class Exponentiation(CompositeKernel):
    """Power of a base kernel; ``kernel**exponent`` makes one.

    .. math:: k(x, y) = k_1(x, y)^p

    Parameters
    ----------
    kernel : BaseKernel
        The base.
    exponent : float
        The exponent p > 0, not optimised. Powers that are no whole numbers may lose positive
        definiteness.

    Examples
    --------
    >>> from sklearn_mgk.base_kernels import KroneckerDelta
    >>> (KroneckerDelta("element", h=0.5) ** 2).table(["C", "O"])
    array([[1.  , 0.25],
           [0.25, 1.  ]])
    """

    def __init__(self, kernel, exponent):
        self.kernel = kernel
        self.exponent = exponent

    def _evaluate(self, X, Y, outer, gradient):
        self._check_exponent()
        value, partials = self.kernel._evaluate(X, Y, outer, gradient)
        # A base of 0 has derivatives of 0, which an infinite slope must not turn into NaN.
        base = np.where(value == 0, np.inf, value) if self.exponent < 1 else value
        slope = self.exponent * base ** (self.exponent - 1)
        return value**self.exponent, [slope * d for d in partials]

    @property
    def upper_bound(self) -> float:
        """Power of the bound."""
        return self.kernel.upper_bound**self.exponent

    def reach(self, epsilon: float) -> dict[str, float]:
        """Go where the base is at most the root of epsilon."""
        return self.kernel.reach(epsilon ** (1 / self.exponent))

    def _check_exponent(self):
        if not self.exponent > 0:
            raise ValueError(f"the exponent of {self!r} has to be positive.")

    def _symbolic(self, x, y, theta):
        import sympy

        self._check_exponent()
        return self.kernel._symbolic(x, y, theta) ** sympy.nsimplify(self.exponent, rational=True)

    def __repr__(self) -> str:
        """Return the power as an expression."""
        return f"{_enclosed(self.kernel, Sum, Product, Exponentiation)}**{self.exponent}"


class Normalized(CompositeKernel):
    r"""Base kernel scaled to 1 between equal labels.

    .. math:: k(x, y) = \frac{k_1(x, y)}{\sqrt{k_1(x, x) \, k_1(y, y)}}

    It is 0 for labels that have no similarity to themselves.

    Parameters
    ----------
    kernel : BaseKernel
        The kernel to normalise.

    Examples
    --------
    >>> from sklearn_mgk.base_kernels import DotProduct
    >>> DotProduct("direction").normalized().table([[1.0, 0.0], [1.0, 1.0]]).round(3)
    array([[1.   , 0.707],
           [0.707, 1.   ]])
    """

    def __init__(self, kernel):
        self.kernel = kernel

    def _evaluate(self, X, Y, outer, gradient):
        value, partials = self.kernel._evaluate(X, Y, outer, gradient)
        scale_x, slopes_x = self._scale(X, gradient)
        scale_y, slopes_y = (scale_x, slopes_x) if Y is X else self._scale(Y, gradient)
        if outer:
            scale_x, slopes_x = scale_x[:, None], [d[:, None] for d in slopes_x]
        value = value * scale_x * scale_y
        triples = zip(partials, slopes_x, slopes_y, strict=True)
        return value, [d * scale_x * scale_y + value * (dx + dy) for d, dx, dy in triples]

    @property
    def upper_bound(self) -> float:
        """One, by the inequality of Cauchy and Schwarz."""
        return 1.0

    def _scale(self, X, gradient):
        """1 / sqrt(k(x, x)), 0 where that is undefined, and the derivatives of its logarithm."""
        diagonal, partials = self.kernel._evaluate(X, X, outer=False, gradient=gradient)
        positive = diagonal > 0
        inverse = positive / np.where(positive, diagonal, 1.0)
        return np.sqrt(inverse), [-0.5 * d * inverse for d in partials]

    def _symbolic(self, x, y, theta):
        import sympy

        value, kxx, kyy = (self.kernel._symbolic(*p, theta) for p in ((x, y), (x, x), (y, y)))
        is_positive = sympy.And(kxx > 0, kyy > 0)
        return sympy.Piecewise(
            (value / (sympy.sqrt(kxx) * sympy.sqrt(kyy)), is_positive), (0, True)
        )


def _reach_of_factor(factor, epsilon: float, other) -> dict[str, float]:
    """Distances at which one factor makes a product at most epsilon."""
    bound = other.upper_bound
    return factor.reach(epsilon / bound) if 0 < bound < math.inf else {}


def _shares(kernel, theta: list) -> tuple[list, list]:
    """Split symbols of hyperparameters between the two parts of a kernel."""
    n = len(kernel.k1.hyperparameters)
    return theta[:n], theta[n:]


def _enclosed(kernel, *weaker: type) -> str:
    """Text of an operand, in parentheses if it is one of the weaker composites."""
    return f"({kernel!r})" if isinstance(kernel, weaker) else repr(kernel)
