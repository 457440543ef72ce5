# SPDX-License-Identifier: BSD-3-Clause
"""Base kernels that a user gives as a SymPy expression or as a Python function."""

import re
from abc import abstractmethod
from functools import lru_cache
from numbers import Real

import numpy as np
from sklearn.gaussian_process.kernels import Hyperparameter

from sklearn_mgk.base_kernels.formulas import Formula
from sklearn_mgk.base_kernels.functions import components, is_symbolic
from sklearn_mgk.base_kernels.kernel import BaseKernel, LeafKernel
from sklearn_mgk.graphs.columns import ListColumn
from sklearn_mgk.parameters import signature


class NamedHyperparameters(BaseKernel):
    """Abstract base class of kernels whose hyperparameters stand in the dict ``self.parameters``.

    Each is a parameter of the kernel too, so that ``get_params`` and ``set_params`` know `name` and
    ``name_bounds``.
    """

    def _entries(self) -> dict[str, tuple]:
        """Value and bounds by name; a bare number is fixed."""
        entries = {
            name: (entry, "fixed") if isinstance(entry, Real) else tuple(entry)
            for name, entry in (self.parameters or {}).items()
        }
        taken = signature(type(self)).keys() | {"x", "y"}
        for name in entries:
            if name in taken or "__" in name or not name.isidentifier():
                raise ValueError(f"{name!r} cannot be the name of a hyperparameter; rename it.")
        return entries

    @property
    @abstractmethod
    def _has_gradient(self) -> bool:
        """Whether derivatives are known, so that hyperparameters can be free."""

    @property
    def hyperparameters(self) -> list[Hyperparameter]:
        """Hyperparameters, free and fixed, in the order of the dict."""
        found = []
        for name, (value, bounds) in self._entries().items():
            found += self._hyperparameter(name, value, bounds if self._has_gradient else "fixed")
        return found

    def get_params(self, deep=True) -> dict:
        """Return the parameters, with each hyperparameter by its name if `deep`."""
        params = super().get_params(deep)
        for name, (value, bounds) in self._entries().items() if deep else ():
            params |= {name: value, f"{name}_bounds": bounds}
        return params

    def set_params(self, **params) -> BaseKernel:
        """Set parameters, and hyperparameters by their names, and return the kernel."""
        names = signature(type(self))
        super().set_params(**{k: v for k, v in params.items() if k in names})
        own = {k: v for k, v in params.items() if k not in names}
        changed = {}
        for name, (value, bounds) in self._entries().items():
            entry = own.pop(name, value), own.pop(f"{name}_bounds", bounds)
            if entry != (value, bounds):
                changed[name] = (float(entry[0]), entry[1])
        super().set_params(**own)  # what is left is unknown, and refused with a message
        if changed:
            self.parameters = self.parameters | changed
        return self


class FormulaKernel(NamedHyperparameters, Formula):
    """Base kernel given by a SymPy expression.

    Parameters
    ----------
    attribute : str
        Name of the attribute, numbers or fixed vectors.
    expression : str or sympy.Expr
        The kernel as an expression of ``x`` and ``y`` (for vectors ``x0, x1, ..., y0, y1, ...``)
        and the hyperparameters, symmetric in x and y, with values in [0, 1]. A string is evaluated
        by `sympy.sympify`, which runs it as Python: take none from strangers.
    parameters : dict of str to (float, bounds) or float, optional
        Value and bounds of each hyperparameter; a bare number is fixed.

    Raises
    ------
    ValueError
        On evaluation, if the expression has a symbol that is neither a label nor a hyperparameter,
        or a function that not all of NumPy, numba and CUDA have.

    Examples
    --------
    >>> from sklearn_mgk.base_kernels import FormulaKernel
    >>> kernel = FormulaKernel("angle", "(1 + s * cos(x - y)) / (1 + s)", {"s": (0.5, (0.01, 1))})
    >>> kernel.table([0.0, 3.14159]).round(3)
    array([[1.   , 0.333],
           [0.333, 1.   ]])
    >>> kernel.set_params(s=1.0).table([0.0, 3.14159]).round(3)
    array([[1., 0.],
           [0., 1.]])
    """

    def __init__(self, attribute, expression, parameters=None):
        self.attribute = attribute
        self.expression = expression
        self.parameters = parameters

    @property
    def _has_gradient(self) -> bool:
        return True

    def formula(self, x, y, **hyperparameters):
        """Return the kernel between two labels."""
        from sklearn_mgk.base_kernels.symbolic import compiled_value

        length = len(x) if isinstance(x, tuple) else 0
        expression, arguments = _parsed(self.expression, length, tuple(hyperparameters))
        values = (*components(x), *components(y), *hyperparameters.values())
        if is_symbolic(x):
            return expression.xreplace(dict(zip(arguments, values, strict=True)))
        return compiled_value(expression, arguments)(*values)

    def _vector_lengths(self):
        import sympy

        names = {name: sympy.Symbol(name) for name in self._entries()}
        symbols = sympy.sympify(self.expression, locals=names).free_symbols
        found = [re.fullmatch(r"[xy](\d+)", s.name) for s in symbols if s.name not in names]
        length = max((int(match[1]) + 1 for match in found if match), default=0)
        return {self.attribute: length}


class FunctionKernel(NamedHyperparameters, LeafKernel):
    """Base kernel given by any Python function of two arrays of labels.

    It runs on every backend through its table.

    Parameters
    ----------
    attribute : str
        Name of the attribute: numbers, strings, vectors or lists.
    function : callable
        ``function(x, y, **parameters)`` returns the kernel for arrays of labels that broadcast
        against each other, such as (n, 1) and (m,). Vectors have one more axis, at the end. Lists
        come as tuples in arrays of objects. The result has to be symmetric, with values in [0, 1].
        A function defined in a module can be pickled, a lambda cannot.
    gradient : callable, optional
        ``gradient(x, y, **parameters)`` returns a dict with the derivative by each hyperparameter.
        Without it hyperparameters are fixed, whatever their bounds.
    parameters : dict of str to (float, bounds) or float, optional
        Value and bounds of each hyperparameter; a bare number is fixed.

    Raises
    ------
    ValueError
        On evaluation, if the function returns an array of another shape.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn_mgk.base_kernels import FunctionKernel
    >>> def same_initial(x, y):
    ...     return np.where(np.strings.slice(x, 1) == np.strings.slice(y, 1), 1.0, 0.2)
    >>> FunctionKernel("name", same_initial).table(["CA", "CB", "N"])
    array([[1. , 1. , 0.2],
           [1. , 1. , 0.2],
           [0.2, 0.2, 1. ]])
    """

    def __init__(self, attribute, function, gradient=None, parameters=None):
        self.attribute = attribute
        self.function = function
        self.gradient = gradient
        self.parameters = parameters

    @property
    def is_formula(self) -> bool:
        """False."""
        return False

    @property
    def _has_gradient(self) -> bool:
        return self.gradient is not None

    def _on_column(self, x, y, outer, gradient):
        x, y = _as_labels(x), _as_labels(y)
        shape = (len(x), len(y)) if outer else (len(x),)
        x = x[:, None] if outer else x
        values = {name: entry[0] for name, entry in self._entries().items()}
        free = [h.name for h in self.hyperparameters if gradient and not h.fixed]
        if 0 in shape:  # nothing to evaluate, which np.vectorize for one refuses
            return np.empty(shape), [np.empty(shape) for _ in free]
        value = self._checked(self._call(x, y, values), shape, "function")
        if not free:
            return value, []
        partials = self.gradient(x, y, **values)
        missing = set(free) - set(partials)
        if missing:
            raise ValueError(f"gradient of {self!r} lacks the hyperparameters {sorted(missing)}.")
        return value, [
            values[name] * self._checked(partials[name], shape, f"gradient by {name}")
            for name in free
        ]

    def _call(self, x, y, values):
        try:
            return self.function(x, y, **values)
        except ValueError as error:
            if "ambiguous" not in str(error):
                raise
            raise ValueError(
                f"function of {self!r} asks one question of a whole array of labels. Write it with "
                "NumPy operations such as np.where, or wrap it in np.vectorize."
            ) from error

    def _checked(self, result, shape, what):
        try:
            return np.array(np.broadcast_to(result, shape), dtype=np.float64)
        except ValueError:
            raise ValueError(
                f"{what} of {self!r} returned shape {np.shape(result)} for labels that broadcast "
                f"to {shape}. Write it with NumPy operations, or wrap it in np.vectorize."
            ) from None

    def _symbolic(self, x, y, theta):
        import sympy

        name = getattr(self.function, "__name__", type(self.function).__name__)
        return sympy.Function(name)(x[self.attribute], y[self.attribute])


def _as_labels(column):
    """Array of labels that functions get: lists as an array of tuples."""
    if not isinstance(column, ListColumn):
        return column
    labels = np.empty(len(column), dtype=object)
    labels[:] = [tuple(column[i].tolist()) for i in range(len(column))]
    return labels


@lru_cache(maxsize=256)
def _parsed(expression, length: int, names: tuple[str, ...]) -> tuple:
    """Expression with real symbols, and these symbols: labels first, then hyperparameters."""
    import sympy

    from sklearn_mgk.base_kernels.symbolic import operand, symbol, unknown_functions

    labels = (*components(operand("x", length)), *components(operand("y", length)))
    arguments = (*labels, *map(symbol, names))
    known = {s.name: s for s in arguments}
    parsed = sympy.sympify(expression, locals=known)
    unknown = sorted(s.name for s in parsed.free_symbols if s.name not in known)
    if unknown:
        raise ValueError(
            f"the expression {expression} has the symbols {unknown}, which are neither labels nor "
            f"hyperparameters; known are {sorted(known)}."
        )
    functions = unknown_functions(parsed)
    if functions:
        raise ValueError(
            f"the expression {expression} has the functions {functions}, which not all of NumPy, "
            "numba and CUDA have: use others, such as exp, log, sqrt, sin, cos, tanh, Abs, Min, "
            "Max, or a FunctionKernel."
        )
    return parsed.xreplace({s: known[s.name] for s in parsed.free_symbols}), arguments
