# SPDX-License-Identifier: BSD-3-Clause
"""Where k-truss is computed: one small class each for the CPU and CUDA."""

from __future__ import annotations

from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from sklearn_mgk.truss.eager import greatest_k, k_truss_edges, prune_and_repeat
from sklearn_mgk.truss.edges import EdgeSet, make_rows
from sklearn_mgk.truss.peeling import edge_trussness
from sklearn_mgk.truss.support import row_support


class Backend(Protocol):
    """What a backend answers, for the distinct edges of simple graphs.

    ``granularity`` is "fine", "coarse" or "auto", ``order`` "degree" or "natural".
    """

    def k_truss(self, edges: EdgeSet, k: int, granularity: str, order: str) -> NDArray:
        """Mask of the edges of the k-truss."""

    def support(self, edges: EdgeSet, granularity: str, order: str) -> NDArray:
        """Triangles on each edge, int64."""

    def trussness(self, edges: EdgeSet) -> NDArray:
        """Trussness of each edge, int64."""

    def max_truss(self, edges: EdgeSet) -> int:
        """Greatest trussness, 0 without edges."""


class CPUBackend:
    """Numba loops in plain threads."""

    def k_truss(self, edges: EdgeSet, k: int, granularity: str, order: str) -> NDArray:
        return k_truss_edges(edges, k, _granularity(granularity), order)

    def support(self, edges: EdgeSet, granularity: str, order: str) -> NDArray:
        rows = make_rows(edges, order)
        places = np.flatnonzero(rows.columns)
        found = np.empty(edges.n_edges, np.int64)
        found[rows.edge[places]] = row_support(rows, _granularity(granularity))[places]
        return found

    def trussness(self, edges: EdgeSet) -> NDArray:
        return edge_trussness(edges)

    def max_truss(self, edges: EdgeSet) -> int:
        def find(part: EdgeSet, k: int) -> NDArray:
            return prune_and_repeat(part, k, _granularity("auto"))

        return greatest_k(edges, find, edge_trussness)


def _granularity(name: str) -> str:
    """Coarse tasks mark a row once for all its columns, which is faster than to merge."""
    return "coarse" if name == "auto" else name


def _cuda() -> Backend:
    from sklearn_mgk.truss.cuda import CUDABackend

    return CUDABackend()


BACKENDS = {"cpu": CPUBackend, "cuda": _cuda}
"""Makers of backends, by name."""


def check_backend(name: str) -> None:
    """Raise a ValueError unless there is a backend of this name."""
    if name not in BACKENDS:
        raise ValueError(f"backend={name!r} must be one of {list(BACKENDS)}")


def get_backend(name: str) -> Backend:
    """Make a backend."""
    check_backend(name)
    return BACKENDS[name]()
