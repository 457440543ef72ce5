# SPDX-License-Identifier: BSD-3-Clause
"""What the transformers that make graphs have in common."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils import Tags

from sklearn_mgk.graphs.batch import GraphBatch


class GraphTransformer(TransformerMixin, BaseEstimator, ABC, auto_wrap_output_keys=None):
    """Stateless transformer from one kind of object to a `GraphBatch`.

    A source of graphs derives from it, keeps its options in ``__init__`` and writes `transform`.
    """

    def fit(self, X: Any, y: Any = None) -> Self:
        """Check the parameters; nothing is learned from X.

        Parameters
        ----------
        X : Any
            Ignored.
        y : Any, default=None
            Ignored.

        Returns
        -------
        self
            The transformer.
        """
        self._check_parameters()
        return self

    @abstractmethod
    def transform(self, X: Any) -> GraphBatch:
        """Return the graphs of X, in its order."""

    def get_feature_names_out(self, input_features: Any = None) -> NDArray:
        """Return ``["graph"]``: a pipeline that goes on from graphs can then name its columns."""
        return np.array(["graph"], dtype=object)

    @abstractmethod
    def _check_parameters(self) -> None:
        """Raise a ValueError for a parameter without meaning."""

    def set_output(self, *, transform: str | None = None) -> Self:
        """Accept the output container chosen for a pipeline; graphs are no table and stay a batch.

        Parameters
        ----------
        transform : str or None, default=None
            Ignored.

        Returns
        -------
        self
            The transformer.
        """
        return self

    def __sklearn_tags__(self) -> Tags:
        """Say that X is a sequence of objects, and that no fit is needed."""
        tags = super().__sklearn_tags__()
        tags.input_tags.one_d_array = True
        tags.input_tags.two_d_array = False
        tags.requires_fit = False
        return tags

    def __sklearn_is_fitted__(self) -> bool:
        """Return True: there is nothing to fit."""
        return True
