# SPDX-License-Identifier: BSD-3-Clause
"""Graphs as columns, and the sources they come from."""

from sklearn_mgk.graphs.arrays import from_adjacency, from_arrays
from sklearn_mgk.graphs.batch import Graph, GraphBatch, as_batch
from sklearn_mgk.graphs.columns import ListColumn
from sklearn_mgk.graphs.networkx import NetworkXToGraphs, from_networkx
from sklearn_mgk.graphs.smiles import SmilesToGraphs, from_smiles, valid_smiles
from sklearn_mgk.graphs.structures import (
    AdjacencyFunction,
    AdjacencyRule,
    CompactBell,
    Gaussian,
    HardCutoff,
    Structure,
    StructuresToGraphs,
    Tent,
    from_structures,
    read_structures,
)

__all__ = [
    "AdjacencyFunction",
    "AdjacencyRule",
    "CompactBell",
    "Gaussian",
    "Graph",
    "GraphBatch",
    "HardCutoff",
    "ListColumn",
    "NetworkXToGraphs",
    "SmilesToGraphs",
    "Structure",
    "StructuresToGraphs",
    "Tent",
    "as_batch",
    "from_adjacency",
    "from_arrays",
    "from_networkx",
    "from_smiles",
    "from_structures",
    "read_structures",
    "valid_smiles",
]
