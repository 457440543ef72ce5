# SPDX-License-Identifier: BSD-3-Clause
"""Sparse products and what is made of them: propagation features, anonymous walks."""

from sklearn_mgk.propagation.embedding import AnonymousWalkEmbedding, sample_size
from sklearn_mgk.propagation.gcn import GCNPropagation
from sklearn_mgk.propagation.normalization import propagate, propagation_matrix
from sklearn_mgk.propagation.partition import PlanSummary
from sklearn_mgk.propagation.plan import SpMMPlan, spmm

__all__ = [
    "AnonymousWalkEmbedding",
    "GCNPropagation",
    "PlanSummary",
    "SpMMPlan",
    "propagate",
    "propagation_matrix",
    "sample_size",
    "spmm",
]
