# SPDX-License-Identifier: BSD-3-Clause
"""Base kernels that are one formula of two labels.

A kernel is a class with an attribute, hyperparameters in the constructor's signature, and one
method `formula`, written with operators and the functions of `sklearn_mgk.base_kernels.functions`.
Values, derivatives, compiled code and LaTeX all follow from it.
"""

import math
from abc import abstractmethod

import numpy as np

from sklearn_mgk.base_kernels.functions import components, dot, exp, if_equal, squared_distance
from sklearn_mgk.base_kernels.kernel import BaseKernel, LeafKernel
from sklearn_mgk.graphs.columns import ListColumn, concatenate, factorize, n_rows


class Formula(LeafKernel):
    """Abstract base class of kernels given by a formula.

    A subclass stores its constructor's arguments as they are: `attribute`, and for each
    hyperparameter `name` also ``name_bounds``.
    """

    # Whether labels that are no numbers will do, because the formula only asks if they are equal.
    _any_label = False

    @abstractmethod
    def formula(self, x, y, **hyperparameters):
        """Return the kernel between two labels.

        Parameters
        ----------
        x, y : number, ndarray or sympy.Symbol; a tuple of them for a fixed vector
            The labels.
        **hyperparameters : float or sympy.Symbol
            Value of each hyperparameter.

        Returns
        -------
        float, ndarray or sympy.Expr
            The kernel.
        """

    @property
    def is_formula(self) -> bool:
        """True."""
        return True

    def _on_column(self, x, y, outer, gradient):
        x, y = self._operands(x, y)
        if outer:
            x, y = _along(x, 1), _along(y, 0)
        own = self.hyperparameters
        params = self.get_params()
        values = {h.name: params[h.name] for h in own}
        shape = np.broadcast_shapes(components(x)[0].shape, components(y)[0].shape)
        value = _filled(self.formula(x, y, **values), shape)
        if not gradient or all(h.fixed for h in own):
            return value, []
        from sklearn_mgk.base_kernels.symbolic import log_partials

        partials = log_partials(self, x)(x, y, *values.values())
        return value, [_filled(partial, shape) for partial in partials]

    def _operands(self, x, y):
        """Turn two columns into float arrays, vectors into tuples of them."""
        if self._any_label and not (_is_numeric(x) and _is_numeric(y)):
            codes, _ = factorize(concatenate([x, y]))
            x, y = codes[: n_rows(x)], codes[n_rows(x) :]
        for column in (x, y):
            if not _is_numeric(column):
                raise TypeError(
                    f"{type(self).__name__} needs numbers, but the attribute {self.attribute!r} "
                    f"holds {_describe(column)}"
                )
        if x.shape[1:] != y.shape[1:]:
            raise ValueError(
                f"attribute {self.attribute!r}: labels of shape {x.shape[1:]} cannot be compared "
                f"to labels of shape {y.shape[1:]}."
            )
        return _as_operand(x), _as_operand(y)

    def _symbolic(self, x, y, theta):
        names = [h.name for h in self.hyperparameters]
        return self.formula(
            x[self.attribute], y[self.attribute], **dict(zip(names, theta, strict=True))
        )


class Constant(BaseKernel):
    """The same value between all labels.

    .. math:: k(x, y) = c

    Parameters
    ----------
    c : float, default=1.0
        The value, c >= 0.
    c_bounds : pair of floats or "fixed", default="fixed"
        Lower and upper bound of `c` while it is optimised.

    Examples
    --------
    >>> from sklearn_mgk.base_kernels import Constant
    >>> Constant(0.5).table([1, 2])
    array([[0.5, 0.5],
           [0.5, 0.5]])
    """

    def __init__(self, c=1.0, c_bounds="fixed"):
        self.c = c
        self.c_bounds = c_bounds

    @property
    def attributes(self) -> tuple[str, ...]:
        """Empty: the kernel reads no attribute."""
        return ()

    @property
    def is_formula(self) -> bool:
        """True."""
        return True

    def _evaluate(self, X, Y, outer, gradient):
        n_x, n_y = (n_rows(next(iter(side.values()))) if side else 1 for side in (X, Y))
        value = np.full((n_x, n_y) if outer else n_x, float(self.c))
        is_free = gradient and not self.hyperparameters[0].fixed
        return value, [value] if is_free else []

    @property
    def upper_bound(self) -> float:
        """The value itself."""
        return float(self.c)

    def _symbolic(self, x, y, theta):
        return theta[0]


class KroneckerDelta(Formula):
    r"""One between equal labels, `h` between different ones.

    .. math:: k(x, y) = 1 \text{ if } x = y, \text{ otherwise } h

    Labels may be numbers, strings, vectors or lists.

    Parameters
    ----------
    attribute : str
        Name of the attribute.
    h : float, default=0.5
        Similarity of different labels, 0 <= h <= 1. With ``h=0, h_bounds="fixed"`` walks that
        differ in the attribute do not match at all.
    h_bounds : pair of floats or "fixed", default=(1e-3, 1)
        Lower and upper bound of `h` while it is optimised.

    Examples
    --------
    >>> from sklearn_mgk.base_kernels import KroneckerDelta
    >>> KroneckerDelta("element", h=0.3).table(["C", "O"])
    array([[1. , 0.3],
           [0.3, 1. ]])
    """

    _any_label = True

    def __init__(self, attribute, h=0.5, h_bounds=(1e-3, 1)):
        self.attribute = attribute
        self.h = h
        self.h_bounds = h_bounds

    def formula(self, x, y, h):
        """Return the kernel between two labels."""
        return if_equal(x, y, 1, h)

    @property
    def upper_bound(self) -> float:
        """The larger of 1 and `h`."""
        return max(1.0, self.h)


class SquaredExponential(Formula):
    r"""Similarity that falls with the distance like a Gaussian.

    .. math:: k(x, y) = \exp\left(-\frac{\|x - y\|^2}{2 \ell^2}\right)

    Parameters
    ----------
    attribute : str
        Name of the attribute, numbers or fixed vectors.
    length_scale : float, default=1.0
        Distance :math:`\ell` > 0 over which labels stay similar, in the unit of the attribute.
    length_scale_bounds : pair of floats or "fixed", default=(1e-3, 1e3)
        Lower and upper bound of `length_scale` while it is optimised.

    Examples
    --------
    >>> from sklearn_mgk.base_kernels import SquaredExponential
    >>> SquaredExponential("order", length_scale=0.5).table([1.0, 2.0]).round(3)
    array([[1.   , 0.135],
           [0.135, 1.   ]])
    """

    def __init__(self, attribute, length_scale=1.0, length_scale_bounds=(1e-3, 1e3)):
        self.attribute = attribute
        self.length_scale = length_scale
        self.length_scale_bounds = length_scale_bounds

    def formula(self, x, y, length_scale):
        """Return the kernel between two labels."""
        return exp(-squared_distance(x, y) / (2 * length_scale**2))

    @property
    def upper_bound(self) -> float:
        """One."""
        return 1.0

    def reach(self, epsilon: float) -> dict[str, float]:
        """Invert the formula."""
        if epsilon <= 0:
            return {}
        exponent = max(0.0, -2 * math.log(epsilon))
        return {self.attribute: self.length_scale * math.sqrt(exponent)}


class RationalQuadratic(Formula):
    r"""Similarity that falls with the distance more slowly than `SquaredExponential`.

    .. math:: k(x, y) = \left(1 + \frac{\|x - y\|^2}{2 \alpha \ell^2}\right)^{-\alpha}

    A mixture of squared exponentials of many length scales.

    Parameters
    ----------
    attribute : str
        Name of the attribute, numbers or fixed vectors.
    length_scale : float, default=1.0
        Distance :math:`\ell` > 0 over which labels stay similar, in the unit of the attribute.
    alpha : float, default=1.0
        Exponent :math:`\alpha` > 0; the larger, the fewer length scales are mixed.
    length_scale_bounds : pair of floats or "fixed", default=(1e-3, 1e3)
        Lower and upper bound of `length_scale` while it is optimised.
    alpha_bounds : pair of floats or "fixed", default=(1e-3, 1e3)
        Lower and upper bound of `alpha` while it is optimised.

    Examples
    --------
    >>> from sklearn_mgk.base_kernels import RationalQuadratic
    >>> RationalQuadratic("length", length_scale=1.0, alpha=0.5).table([1.0, 2.0]).round(3)
    array([[1.   , 0.707],
           [0.707, 1.   ]])
    """

    def __init__(
        self,
        attribute,
        length_scale=1.0,
        alpha=1.0,
        length_scale_bounds=(1e-3, 1e3),
        alpha_bounds=(1e-3, 1e3),
    ):
        self.attribute = attribute
        self.length_scale = length_scale
        self.alpha = alpha
        self.length_scale_bounds = length_scale_bounds
        self.alpha_bounds = alpha_bounds

    def formula(self, x, y, length_scale, alpha):
        """Return the kernel between two labels."""
        return (1 + squared_distance(x, y) / (2 * alpha * length_scale**2)) ** -alpha

    @property
    def upper_bound(self) -> float:
        """One."""
        return 1.0

    def reach(self, epsilon: float) -> dict[str, float]:
        """Invert the formula."""
        # log(epsilon) / alpha below -700: so slow a decay reaches further than any number.
        if epsilon <= 0 or math.log(epsilon) < -700 * self.alpha:
            return {}
        growth = max(0.0, epsilon ** (-1 / self.alpha) - 1)
        return {self.attribute: self.length_scale * math.sqrt(2 * self.alpha * growth)}


class DotProduct(Formula):
    r"""Inner product of vectors of one length.

    .. math:: k(x, y) = \sum_k x_k y_k

    Its values may lie outside [0, 1]; `BaseKernel.normalized` keeps those of non-negative vectors
    inside.

    Parameters
    ----------
    attribute : str
        Name of the attribute, fixed vectors or numbers.

    Examples
    --------
    >>> from sklearn_mgk.base_kernels import DotProduct
    >>> DotProduct("direction").table([[1.0, 0.0], [1.0, 1.0]])
    array([[1., 1.],
           [1., 2.]])
    """

    def __init__(self, attribute):
        self.attribute = attribute

    def formula(self, x, y):
        """Return the kernel between two labels."""
        return dot(x, y)


def _is_numeric(column) -> bool:
    return not isinstance(column, ListColumn) and column.dtype.kind in "biuf"


def _describe(column) -> str:
    """Say what labels a column holds that no formula can compute with, and what can."""
    if isinstance(column, ListColumn):
        return "lists of varying length; use Convolution, or KroneckerDelta to ask for equality."
    return f"labels of dtype {column.dtype}; use KroneckerDelta, or encode them as numbers."


def _as_operand(column):
    """Floats of shape (n,), or for vectors a tuple with one such array per component."""
    column = np.asarray(column, dtype=np.float64)
    return column if column.ndim == 1 else tuple(np.ascontiguousarray(column.T))


def _along(operand, axis: int):
    """Lay an operand along rows or columns, by inserting the other axis."""
    if isinstance(operand, tuple):
        return tuple(np.expand_dims(component, axis) for component in operand)
    return np.expand_dims(operand, axis)


def _filled(value, shape) -> np.ndarray:
    """Values of the full shape, for formulas that do not depend on both labels."""
    return np.array(np.broadcast_to(value, shape), dtype=np.float64)
