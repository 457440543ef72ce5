# SPDX-License-Identifier: BSD-3-Clause
"""Starting probabilities that are learned, one for each category of a node attribute."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sklearn_mgk.graphs import GraphBatch
from sklearn_mgk.parameters import Parametrized


class StartingProbability(Parametrized):
    """A starting probability for each category of a node attribute, as hyperparameters.

    Parameters
    ----------
    attribute : str
        Node attribute that holds the category, such as ``"element"``.
    categories : sequence of str, int or bool
        Categories with a value of their own.
    values : array-like of shape (n_categories,)
        Starting probability of each category, positive. They need not add up to 1.
    values_bounds : pair of floats > 0, or "fixed", default=(1e-2, 1e2)
        Range in which an optimiser may move each of the values.
    default : float, default=1.0
        Starting probability of nodes of any other category, positive and not optimised.

    Examples
    --------
    >>> from sklearn_mgk import StartingProbability
    >>> p = StartingProbability("element", ("C", "N"), (1.0, 2.0))
    >>> p.hyperparameters[0].name, p.hyperparameters[0].n_elements
    ('values', 2)
    """

    def __init__(
        self,
        attribute: str,
        categories: Sequence,
        values: ArrayLike,
        values_bounds: tuple[float, float] | str = (1e-2, 1e2),
        default: float = 1.0,
    ):
        self.attribute = attribute
        self.categories = categories
        self.values = values
        self.values_bounds = values_bounds
        self.default = default

    def of_nodes(self, batch: GraphBatch) -> tuple[NDArray, NDArray]:
        """Return the starting probability and the category (-1 for the default) of each node.

        Parameters
        ----------
        batch : GraphBatch
            The graphs.

        Returns
        -------
        start : ndarray of shape (n_nodes,), float64
            Starting probabilities.
        category : ndarray of shape (n_nodes,), int32
            Which of ``categories`` a node belongs to.
        """
        values = self._checked_values()
        codes, distinct = batch.factorized("node", self.attribute)
        number = {category: k for k, category in enumerate(self.categories)}
        if not isinstance(distinct, np.ndarray) or distinct.ndim != 1:
            raise ValueError(
                f"starting_probability reads node attribute {self.attribute!r}, whose values are "
                "lists or vectors: choose an attribute with one value a node"
            )
        category = np.array([number.get(v, -1) for v in distinct.tolist()], np.int32)[codes]
        return np.append(values, self.default)[category], category

    def _checked_values(self) -> NDArray:
        values = np.atleast_1d(np.asarray(self.values, float))
        if values.shape != (len(self.categories),):
            raise ValueError(
                f"starting_probability has {len(self.categories)} categories but values of shape "
                f"{values.shape}: give one value for each category"
            )
        for name, value in zip((*self.categories, "default"), (*values, self.default), strict=True):
            if not (np.isfinite(value) and value > 0):
                raise ValueError(
                    f"starting_probability of {name!r} is {value}: it must be positive and finite"
                )
        return values
