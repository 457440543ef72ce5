# SPDX-License-Identifier: BSD-3-Clause
"""Octiles: adjacency matrices as the tiles of 8 x 8 entries that hold an edge."""

from sklearn_mgk.octiles.build import OctileFeaturizer, to_octiles
from sklearn_mgk.octiles.tiles import Octiles, OctileSummary

__all__ = ["OctileFeaturizer", "OctileSummary", "Octiles", "to_octiles"]
