# SPDX-License-Identifier: BSD-3-Clause
"""What every kernel between graphs is to scikit-learn: a kernel and a transformer."""

from __future__ import annotations

from abc import abstractmethod
from typing import Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import TransformerMixin
from sklearn.gaussian_process.kernels import GenericKernelMixin, Kernel
from sklearn.utils import Tags, TargetTags, TransformerTags, estimator_html_repr
from sklearn.utils.validation import check_is_fitted

from sklearn_mgk.graphs import as_batch
from sklearn_mgk.parameters import Parametrized


class GraphKernel(Parametrized, TransformerMixin, GenericKernelMixin, Kernel):
    """Abstract base class of kernels between graphs.

    A subclass writes ``__call__`` and ``diag``, and checks its parameters.
    """

    @abstractmethod
    def _check_parameters(self) -> None:
        """Raise for the first parameter out of range."""

    def fit(self, X, y=None) -> Self:
        """Keep the graphs that `transform` compares with.

        Parameters
        ----------
        X : GraphBatch or sequence of Graph
            Graphs.
        y : object, default=None
            Ignored.

        Returns
        -------
        self
            This kernel.
        """
        self._check_parameters()
        self.graphs_ = as_batch(X)
        return self

    def transform(self, X) -> NDArray:
        """Return the kernel values between graphs and those seen in `fit`.

        Parameters
        ----------
        X : GraphBatch or sequence of Graph
            Graphs.

        Returns
        -------
        ndarray of shape (n_X, n_fit), float64
            ``kernel(X, graphs_)``.
        """
        check_is_fitted(self)
        return self(X, self.graphs_)

    def fit_transform(self, X, y=None) -> NDArray:
        """Fit, and return the Gram matrix of the graphs; solves each pair once."""
        return self.fit(X)(self.graphs_)

    def get_feature_names_out(self, input_features=None) -> NDArray:
        """Return a name for each graph seen in `fit`, that is for each column of `transform`."""
        check_is_fitted(self)
        return np.array([f"graph{k}" for k in range(len(self.graphs_))], dtype=object)

    def is_stationary(self) -> bool:
        """Return False: graphs have no differences."""
        return False

    def __sklearn_tags__(self) -> Tags:
        """Say that this is a transformer of objects that are no table."""
        tags = Tags(
            estimator_type=None,
            target_tags=TargetTags(required=False),
            transformer_tags=TransformerTags(preserves_dtype=[]),
        )
        tags.input_tags.two_d_array = False
        return tags

    def _repr_html_(self) -> str:
        """Show the kernel and its parameters in a notebook."""
        return estimator_html_repr(self)
