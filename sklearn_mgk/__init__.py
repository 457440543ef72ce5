# SPDX-License-Identifier: BSD-3-Clause
"""Marginalized graph kernels for molecules, proteins and labeled graphs, with scikit-learn.

Public names are imported when they are first used, so that ``import sklearn_mgk`` costs little.
"""

from __future__ import annotations

from importlib import import_module

__version__ = "0.1.0"

_PUBLIC = {
    "MarginalizedGraphKernel": "sklearn_mgk.kernel",
    "StartingProbability": "sklearn_mgk.starting",
    "GraphBatch": "sklearn_mgk.graphs",
    "Graph": "sklearn_mgk.graphs",
    "ListColumn": "sklearn_mgk.graphs",
    "SmilesToGraphs": "sklearn_mgk.graphs",
    "NetworkXToGraphs": "sklearn_mgk.graphs",
    "StructuresToGraphs": "sklearn_mgk.graphs",
    "Structure": "sklearn_mgk.graphs",
    "AdjacencyRule": "sklearn_mgk.graphs",
    "Tent": "sklearn_mgk.graphs",
    "CompactBell": "sklearn_mgk.graphs",
    "Gaussian": "sklearn_mgk.graphs",
    "HardCutoff": "sklearn_mgk.graphs",
    "AdjacencyFunction": "sklearn_mgk.graphs",
    "from_adjacency": "sklearn_mgk.graphs",
    "from_arrays": "sklearn_mgk.graphs",
    "from_networkx": "sklearn_mgk.graphs",
    "from_smiles": "sklearn_mgk.graphs",
    "from_structures": "sklearn_mgk.graphs",
    "read_structures": "sklearn_mgk.graphs",
    "valid_smiles": "sklearn_mgk.graphs",
    "Reorder": "sklearn_mgk.reorder",
    "node_order": "sklearn_mgk.reorder",
    "permute": "sklearn_mgk.reorder",
    "OctileFeaturizer": "sklearn_mgk.octiles",
    "Octiles": "sklearn_mgk.octiles",
    "to_octiles": "sklearn_mgk.octiles",
    "plot_octiles": "sklearn_mgk.octiles.plot",
    "available_backends": "sklearn_mgk.solver",
    "clear_cache": "sklearn_mgk.cache",
}

_MODULES = ("base_kernels", "propagation", "truss")

__all__ = [*_PUBLIC, *_MODULES]


def __getattr__(name: str):
    """Import a public name on first use."""
    if name in _PUBLIC:
        value = getattr(import_module(_PUBLIC[name]), name)
    elif name in _MODULES:
        value = import_module(f"sklearn_mgk.{name}")
    else:
        raise AttributeError(f"module 'sklearn_mgk' has no attribute {name!r}")
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
