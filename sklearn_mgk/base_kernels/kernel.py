# SPDX-License-Identifier: BSD-3-Clause
"""What all base kernels share: tables, parameters, operators and code."""

import math
from abc import abstractmethod
from collections.abc import Mapping
from numbers import Real

import numpy as np
from numpy.typing import NDArray
from sklearn.gaussian_process.kernels import Kernel

from sklearn_mgk.base_kernels.labels import Labels
from sklearn_mgk.graphs.columns import as_column, factorize
from sklearn_mgk.parameters import Parametrized


class BaseKernel(Parametrized, Kernel):
    """Abstract base class of the kernels between two node labels or two edge labels.

    A base kernel reads one or more attributes and composes with ``+``, ``*`` and ``**``, with
    other base kernels and with numbers. Parameters, bounds and ``theta`` (natural logarithms of the
    free hyperparameters, in the order of the constructor's arguments) follow scikit-learn.

    Subclass `Formula` for a kernel that is a formula, and `LeafKernel` for any other.
    """

    # A NumPy number on the left of an operator leaves the operation to the kernel.
    __array_ufunc__ = None

    @property
    @abstractmethod
    def attributes(self) -> tuple[str, ...]:
        """Names of the attributes that the kernel reads, each once, in the order of reading."""

    @property
    @abstractmethod
    def is_formula(self) -> bool:
        """Whether the whole kernel is one formula, so that code can be generated for it."""

    @abstractmethod
    def _evaluate(self, X: dict, Y: dict, outer: bool, gradient: bool):
        """Values, and a list with one array of log derivatives for each free hyperparameter.

        `X` and `Y` hold columns. `outer` compares each row of X to each row of Y, otherwise row i
        is compared to row i only. Without `gradient` the list is empty.
        """

    @abstractmethod
    def _symbolic(self, x: dict, y: dict, theta: list):
        """SymPy expression, for symbols by attribute name and one symbol per hyperparameter."""

    def table(self, X, Y=None) -> NDArray:
        """Evaluate the kernel between all labels of X and all labels of Y.

        Parameters
        ----------
        X, Y : dict of str to column, Labels, or array-like
            The labels: a column for each attribute that the kernel reads. A bare array-like will
            do where it reads only one. Y defaults to X.

        Returns
        -------
        ndarray of shape (n_x, n_y), float64
            Kernel values.
        """
        return self._on_labels(X, Y, outer=True, gradient=False)[0]

    def table_gradient(self, X, Y=None) -> tuple[NDArray, NDArray]:
        """Evaluate the kernel and its derivatives between all labels of X and of Y.

        Parameters
        ----------
        X, Y : dict of str to column, Labels, or array-like
            As for `table`.

        Returns
        -------
        table : ndarray of shape (n_x, n_y), float64
            Kernel values.
        gradient : ndarray of shape (n_x, n_y, n_dims), float64
            Derivatives with respect to the logarithm of each free hyperparameter, in the order
            of `theta`.
        """
        table, partials = self._on_labels(X, Y, outer=True, gradient=True)
        stacked = np.stack(partials) if partials else np.empty((0, *table.shape))
        return table, np.moveaxis(stacked, 0, -1)

    def __call__(self, X, Y=None, eval_gradient=False):
        """Return `table`, or `table_gradient` on request, as scikit-learn calls a kernel."""
        return self.table_gradient(X, Y) if eval_gradient else self.table(X, Y)

    def diag(self, X) -> NDArray:
        """Evaluate the kernel between each label and itself.

        Parameters
        ----------
        X : dict of str to column, Labels, or array-like
            As for `table`.

        Returns
        -------
        ndarray of shape (n_x,), float64
            The diagonal of ``table(X)``.
        """
        return self._on_labels(X, None, outer=False, gradient=False)[0]

    @property
    def upper_bound(self) -> float:
        """Number that no value of the kernel exceeds; infinite where none is known."""
        return math.inf

    def reach(self, epsilon: float) -> dict[str, float]:
        """Tell how far apart labels may be before they hardly count.

        Parameters
        ----------
        epsilon : float
            A small value of the kernel, >= 0.

        Returns
        -------
        dict of str to float
            For some attributes, a finite distance in the unit of the attribute: the kernel is at
            most `epsilon` between labels whose numbers in this attribute differ by more. Empty
            where nothing is known. The CPU solver skips what lies beyond.

        Examples
        --------
        >>> from sklearn_mgk.base_kernels import KroneckerDelta, SquaredExponential
        >>> kernel = KroneckerDelta("element") * SquaredExponential("length", length_scale=0.1)
        >>> {name: round(distance, 3) for name, distance in kernel.reach(1e-8).items()}
        {'length': 0.607}
        """
        return {}

    def is_stationary(self) -> bool:
        """Return False: nothing is promised about labels."""
        return False

    @property
    def requires_vector_input(self) -> bool:
        """False: labels need not be vectors."""
        return False

    def _on_labels(self, X, Y, outer, gradient):
        """Do what `_evaluate` does, for labels in any accepted form."""
        X = self._as_columns(X)
        Y = X if Y is None else self._as_columns(Y)
        # What is not finite is refused by `check_table`, which names the labels.
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            return self._evaluate(X, Y, outer, gradient)

    def _as_columns(self, X) -> dict:
        """Turn labels in any accepted form into a dict of columns."""
        if isinstance(X, Labels):
            return X.columns
        if isinstance(X, Mapping):
            missing = [name for name in self.attributes if name not in X]
            if missing:
                raise ValueError(
                    f"{self!r} reads the attribute {missing[0]!r}, which the labels lack; "
                    f"they have {sorted(X)}."
                )
            return {name: as_column(values) for name, values in X.items()}
        if len(self.attributes) > 1:
            raise TypeError(
                f"{self!r} reads the attributes {list(self.attributes)}: give its labels as a "
                f"dict with a column for each, not as {type(X).__name__}."
            )
        return {(*self.attributes, "")[0]: as_column(X)}

    def _parts(self) -> dict[str, "BaseKernel"]:
        """Kernels that this one is made of, by argument name."""
        params = self.get_params(deep=False)
        return {name: value for name, value in params.items() if isinstance(value, BaseKernel)}

    @property
    def hyperparameter_values(self) -> NDArray:
        """Plain values of `hyperparameters`, fixed ones included, as generated code takes them."""
        params = self.get_params()
        values = [params[h.name] for h in self.hyperparameters]
        return np.array(values, dtype=np.float64)

    def __add__(self, other):
        return _compose("Sum", self, other)

    def __radd__(self, other):
        return _compose("Sum", other, self)

    def __mul__(self, other):
        return _compose("Product", self, other)

    def __rmul__(self, other):
        return _compose("Product", other, self)

    def __pow__(self, exponent):
        return _compose("Exponentiation", self, exponent)

    def normalized(self) -> "BaseKernel":
        """Return `Normalized` of this kernel, which is 1 between equal labels."""
        from sklearn_mgk.base_kernels.composite import Normalized

        return Normalized(self)

    def _vector_lengths(self) -> dict[str, int]:
        """Length of attributes of which the formula itself says that they are vectors."""
        lengths: dict[str, int] = {}
        for part in self._parts().values():
            lengths |= part._vector_lengths()
        return lengths

    def _repr_latex_(self) -> str:
        """Return the formula, as notebooks show it."""
        from sklearn_mgk.base_kernels.symbolic import latex

        return f"${latex(self)}$"

    def source(self, backend: str = "numba", dims: Mapping | None = None) -> str:
        """Show the code generated for the kernel.

        Parameters
        ----------
        backend : {"numba", "cuda"}, default="numba"
            The language.
        dims : dict of str to int, optional
            Length of each attribute that is a vector, 0 for a number. Default: numbers, unless the
            formula itself has components.

        Returns
        -------
        str
            A Python module or CUDA C++ functions.

        Raises
        ------
        TypeError
            If the kernel is not a formula.
        """
        from sklearn_mgk.base_kernels import codegen

        return codegen.source(self, backend, dims or self._vector_lengths())


class LeafKernel(BaseKernel):
    """Abstract base class of kernels that read one attribute, named by ``self.attribute``.

    The kernel is evaluated on the distinct values of the attribute only.
    """

    @property
    def attributes(self) -> tuple[str, ...]:
        """Names of the attributes that the kernel reads."""
        return (self.attribute,)

    @abstractmethod
    def _on_column(self, x, y, outer: bool, gradient: bool):
        """Do what `_evaluate` does, for a column x and a column y."""

    def _evaluate(self, X, Y, outer, gradient):
        x, y = X[self.attribute], Y[self.attribute]
        if not outer:
            return self._on_column(x, y, outer, gradient)
        rows, distinct_x = factorize(x)
        columns, distinct_y = (rows, distinct_x) if y is x else factorize(y)
        value, partials = self._on_column(distinct_x, distinct_y, outer, gradient)
        index = np.ix_(rows, columns)
        return value[index], [partial[index] for partial in partials]


def _compose(name: str, first, second):
    """Make a composite kernel; numbers become fixed constants, except as an exponent."""
    from sklearn_mgk.base_kernels import composite, formulas

    def operand(value):
        if isinstance(value, BaseKernel):
            return value
        return formulas.Constant(value) if isinstance(value, Real) else None

    if name == "Exponentiation":
        operands = (first, second if isinstance(second, Real) else None)
    else:
        operands = (operand(first), operand(second))
    for value, accepted in zip((first, second), operands, strict=True):
        if accepted is None:
            raise TypeError(
                f"{value!r} of type {type(value).__name__} cannot stand in a {name} of base "
                f"kernels; use base kernels of sklearn_mgk and numbers (as exponent a number)."
            )
    return getattr(composite, name)(*operands)
