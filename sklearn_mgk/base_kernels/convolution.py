# SPDX-License-Identifier: BSD-3-Clause
"""Base kernel over lists."""

import numpy as np
from numpy.typing import NDArray

from sklearn_mgk.base_kernels.kernel import LeafKernel
from sklearn_mgk.graphs.columns import ListColumn, as_lists, factorize

_REDUCTIONS = ("mean", "sum")


class Convolution(LeafKernel):
    r"""Similarity of two lists: an elementwise kernel over all pairs of their elements.

    .. math:: k(x, y) = \frac{1}{|x| |y|} \sum_{u \in x} \sum_{v \in y} k_1(u, v)

    or without the fraction for ``reduction="sum"``. An empty list is a label of its own: k is 1
    between two empty lists, and 0 between an empty list and any other. `BaseKernel.normalized`
    scales k to 1 between equal lists.

    Parameters
    ----------
    kernel : BaseKernel
        The kernel between elements. It names the attribute that holds the lists, and reads no
        other.
    reduction : {"mean", "sum"}, default="mean"
        What is done with the values of all pairs.

    Raises
    ------
    TypeError
        On evaluation, if the attribute holds no lists.
    ValueError
        On evaluation, if the kernel reads several attributes or the reduction is unknown.

    References
    ----------
    .. [1] D. Haussler, "Convolution kernels on discrete structures", UCSC-CRL-99-10, 1999.

    Examples
    --------
    >>> from sklearn_mgk.base_kernels import Convolution, KroneckerDelta
    >>> Convolution(KroneckerDelta("ring_sizes", h=0.2)).table([[5, 6], [6], []])
    array([[0.6, 0.6, 0. ],
           [0.6, 1. , 0. ],
           [0. , 0. , 1. ]])
    """

    def __init__(self, kernel, reduction="mean"):
        self.kernel = kernel
        self.reduction = reduction

    @property
    def attribute(self) -> str:
        """The attribute that holds the lists."""
        if len(self.kernel.attributes) != 1:
            raise ValueError(
                f"the kernel in {self!r} has to read one attribute, not "
                f"{list(self.kernel.attributes)}."
            )
        return self.kernel.attributes[0]

    @property
    def is_formula(self) -> bool:
        """False: the number of terms varies."""
        return False

    def _on_column(self, x, y, outer, gradient):
        x, y = self._as_lists(x), self._as_lists(y)
        share_x, elements_x = self._shares(x)
        share_y, elements_y = self._shares(y)
        tables = self.kernel._evaluate(
            {self.attribute: elements_x}, {self.attribute: elements_y}, True, gradient
        )
        value, *partials = (_reduced(t, share_x, share_y, outer) for t in (tables[0], *tables[1]))
        empty_x, empty_y = x.lengths == 0, y.lengths == 0
        return value + (np.outer(empty_x, empty_y) if outer else empty_x & empty_y), partials

    def _as_lists(self, column) -> ListColumn:
        if not isinstance(column, ListColumn) and column.ndim != 2:
            raise TypeError(
                f"Convolution needs lists, but the attribute {self.attribute!r} holds single "
                f"values of dtype {column.dtype}; use {self.kernel!r} itself."
            )
        return as_lists(column)

    def _shares(self, lists: ListColumn) -> tuple[NDArray, object]:
        """Weight of each distinct element in each list, and the distinct elements."""
        if self.reduction not in _REDUCTIONS:
            raise ValueError(f"reduction={self.reduction!r} has to be one of {_REDUCTIONS}.")
        codes, distinct = factorize(lists.values)
        counts = np.zeros((len(lists), len(distinct)))
        np.add.at(counts, (np.repeat(np.arange(len(lists)), lists.lengths), codes), 1.0)
        if self.reduction == "mean":
            counts /= np.maximum(lists.lengths, 1)[:, None]
        return counts, distinct

    def _symbolic(self, x, y, theta):
        import sympy

        inner = self.kernel._symbolic(
            {self.attribute: sympy.Symbol("u", real=True)},
            {self.attribute: sympy.Symbol("v", real=True)},
            theta,
        )
        lists = rf"u \in {x[self.attribute]},\, v \in {y[self.attribute]}"
        return sympy.Function(rf"\operatorname{{{self.reduction}}}_{{{lists}}}")(inner)


def _reduced(table: NDArray, share_x: NDArray, share_y: NDArray, outer: bool) -> NDArray:
    """Sum of a table of elements over all pairs of elements of two lists, weighted."""
    if outer:
        return share_x @ table @ share_y.T
    return np.einsum("ia,ia->i", share_x @ table, share_y)
