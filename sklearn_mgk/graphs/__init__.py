# SPDX-License-Identifier: BSD-3-Clause
"""Graphs as columns, and the sources they come from."""

from sklearn_mgk.graphs.arrays import from_adjacency, from_arrays
from sklearn_mgk.graphs.batch import Graph, GraphBatch, as_batch
from sklearn_mgk.graphs.columns import ListColumn
from sklearn_mgk.graphs.networkx import NetworkXToGraphs, from_networkx
from sklearn_mgk.graphs.smiles import SmilesToGraphs, from_smiles, valid_smiles

__all__ = [
    "Graph",
    "GraphBatch",
    "ListColumn",
    "NetworkXToGraphs",
    "SmilesToGraphs",
    "as_batch",
    "from_adjacency",
    "from_arrays",
    "from_networkx",
    "from_smiles",
    "valid_smiles",
]
