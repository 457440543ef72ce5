# SPDX-License-Identifier: BSD-3-Clause
"""Graphs of three-dimensional structures."""

from sklearn_mgk.graphs.structures.adjacency import (
    AdjacencyFunction,
    AdjacencyRule,
    CompactBell,
    Gaussian,
    HardCutoff,
    Tent,
)
from sklearn_mgk.graphs.structures.sources import read_structures
from sklearn_mgk.graphs.structures.structure import Structure
from sklearn_mgk.graphs.structures.transformer import StructuresToGraphs, from_structures

__all__ = [
    "AdjacencyFunction",
    "AdjacencyRule",
    "CompactBell",
    "Gaussian",
    "HardCutoff",
    "Structure",
    "StructuresToGraphs",
    "Tent",
    "from_structures",
    "read_structures",
]
