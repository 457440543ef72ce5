# SPDX-License-Identifier: BSD-3-Clause
"""k-truss: how tightly edges sit in triangles, as labels, features and a hierarchy of graphs."""

from sklearn_mgk.truss.degeneracy import DegeneracyKernel
from sklearn_mgk.truss.functions import edge_support, k_truss, max_truss, trussness
from sklearn_mgk.truss.transformers import TrussFeatures, TrussLabeler

__all__ = [
    "DegeneracyKernel",
    "TrussFeatures",
    "TrussLabeler",
    "edge_support",
    "k_truss",
    "max_truss",
    "trussness",
]
