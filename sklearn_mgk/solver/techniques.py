# SPDX-License-Identifier: BSD-3-Clause
"""The techniques of the paper, each to be switched off, and what their kernels read.

Needs no device; `cuda_techniques` launches.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from sklearn_mgk.octiles import to_octiles
from sklearn_mgk.octiles.tiles import AREA, SIDE, Octiles
from sklearn_mgk.reorder import node_order, permute
from sklearn_mgk.solver.device_labels import LabelColumns, represent
from sklearn_mgk.solver.device_layout import Entries, entries_in_order, label_records
from sklearn_mgk.solver.device_problem import graph_columns, problem_words
from sklearn_mgk.solver.device_source import HEADERS, KernelForm, base_kernels, headers
from sklearn_mgk.solver.problem import Problem
from sklearn_mgk.solver.topology import topology

MOST_SPARSE = {True: 16, False: 8}
"""Edges up to which a tile counts as sparse, for labeled and for unlabeled edges, as in [1]_."""

BLOCKS = 5
"""Blocks of 128 threads that a multiprocessor is to hold."""

_ENTRY = """
extern "C" __global__ void __launch_bounds__({threads}, {blocks}) solve(
    const __grid_constant__ mgk::Problem<Real> problem,
    const __grid_constant__ mgk::Operands<Real> operands,
    const __grid_constant__ mgk::Work work, const __grid_constant__ mgk::Results results) {{
  mgk::solve_list<Real, {operator}>(problem, operands, work, results);
}}
"""


@dataclass(frozen=True, eq=False)
class Techniques:
    """What the solver of the paper does to be fast.

    Parameters
    ----------
    on_the_fly : bool, default=True
        Recompute the product matrix in every product; otherwise it is stored in device memory, and
        only `dynamic` has a meaning.
    octiles : bool, default=True
        Leave out 8 x 8 tiles without an edge.
    order : str or ndarray of shape (n_nodes,), default="partition"
        A method of `Reorder`, or an order as `node_order` returns it.
    adaptive : bool, default=True
        Store tiles without their empty cells, and choose loops over all cells or over those with an
        edge by their numbers.
    shared_tiles : bool, default=True
        Let the warps of a block share the tiles that each of them loads.
    dynamic : bool, default=True
        Let blocks take the next pair when they are done, the longest first; otherwise each has its
        share of the pairs from the beginning.
    warps : int, default=4
        Warps of a block, which solves one pair at a time.

    References
    ----------
    .. [1] Y.-H. Tang, O. Selvitopi, D. T. Popovici, A. Buluç, "A high-throughput solver for
       marginalized graph kernels on GPU", IPDPS 2020.
       https://doi.org/10.1109/IPDPS47924.2020.00080

    Examples
    --------
    >>> Techniques(dynamic=False).operator("Node", "Edge")
    'mgk::TilePair<Real, Node, Edge, 4, true, true>'
    """

    on_the_fly: bool = True
    octiles: bool = True
    order: str | NDArray = "partition"
    adaptive: bool = True
    shared_tiles: bool = True
    dynamic: bool = True
    warps: int = 4

    def operator(self, node: str, edge: str) -> str:
        """Print the type of the operator."""
        if not self.on_the_fly:
            return f"mgk::MatrixPair<Real, {node}, {edge}>"
        options = ", ".join(str(flag).lower() for flag in (self.adaptive, self.shared_tiles))
        return f"mgk::TilePair<Real, {node}, {edge}, {self.warps}, {options}>"


def technique_source(
    node: KernelForm, edge: KernelForm, dtype: np.dtype, techniques: Techniques
) -> str:
    """Return the text of the kernel ``solve`` for some techniques.

    Parameters
    ----------
    node, edge : KernelForm
        The base kernels.
    dtype : numpy.dtype
        Type of the solve.
    techniques : Techniques
        What is used.
    """
    text, names = base_kernels(node, edge, dtype)
    threads = techniques.warps * 32
    entry = _ENTRY.format(
        threads=threads,
        blocks=max(BLOCKS * 128 * 4 // (threads * dtype.itemsize), 1),
        operator=techniques.operator(**names),
    )
    included = tuple(name for name in HEADERS if not name.startswith("strip"))
    return headers((*included, "octile", "techniques")) + text + entry


@dataclass(frozen=True)
class TileColumns:
    """Tiles of all graphs: the fields of ``mgk::Octiles`` but the last, in its order.

    Attributes
    ----------
    tile_ptr : ndarray of shape (n_graphs + 1,), int64
        First tile of each graph.
    row, column : ndarray of shape (n_tiles,), int32
        Place of each tile in its graph, in units of 8 nodes.
    bitmap : ndarray of shape (n_tiles,), uint64
        Cells that hold an edge, as in `Octiles`.
    entry_ptr : ndarray of shape (n_tiles + 1,), int64
        First edge of each tile.
    entries : ndarray of records
        Edges in the order of their bits, or the 64 cells of each tile with zeros in empty ones.
    """

    tile_ptr: NDArray
    row: NDArray
    column: NDArray
    bitmap: NDArray
    entry_ptr: NDArray
    entries: NDArray


def tile_columns(octiles: Octiles, labels: NDArray, every: bool, compact: bool) -> TileColumns:
    """Lay tiles out as the kernels read them.

    Parameters
    ----------
    octiles : Octiles
        The tiles; the type of their weights is that of the solve.
    labels : ndarray of shape (n_edges,) or (n_edges, n_features)
        Number of the label of each edge of the batch, or its features.
    every : bool
        Whether tiles without an edge are there, too.
    compact : bool
        Whether cells without an edge are left out.
    """
    tile = np.repeat(np.arange(octiles.n_tiles), octiles.nnz_per_tile)
    entries = octiles.entries()
    cell = SIDE * (entries.row % SIDE) + entries.column % SIDE
    tile_ptr, row, column = octiles.tile_ptr, octiles.row, octiles.column
    bitmap, count = octiles.bitmap, octiles.nnz_per_tile
    if every:
        tile_ptr, row, column, place = _with_empty_tiles(octiles)
        tile = place[tile]
        bitmap, count = (_scattered(a, place, len(row)) for a in (bitmap, count))
    own, weight = labels[octiles.edge], octiles.weight
    if not compact:
        slot = AREA * tile + cell
        own, weight, cell = (_scattered(a, slot, AREA * len(row)) for a in (own, weight, cell))
    records = label_records(own, weight, cell, octiles.weight.dtype)
    return TileColumns(tile_ptr, row, column, bitmap, np.append(0, np.cumsum(count)), records)


def _scattered(array: NDArray, place: NDArray, length: int) -> NDArray:
    """Put rows at some places among zeros."""
    out = np.zeros((length, *array.shape[1:]), array.dtype)
    out[place] = array
    return out


def _with_empty_tiles(octiles: Octiles) -> tuple[NDArray, NDArray, NDArray, NDArray]:
    """Return tile_ptr, row and column with all tiles, and the new number of each old one."""
    n_blocks = np.diff(octiles.node_ptr) // SIDE
    first = np.append(0, np.cumsum(n_blocks**2))
    graph = np.repeat(np.arange(len(octiles)), octiles.tiles_per_graph)
    own = first[graph] + octiles.row.astype(np.int64) * n_blocks[graph] + octiles.column
    number = np.concatenate([own, np.setdiff1d(np.arange(first[-1]), own)])
    order = np.argsort(number, kind="stable")
    position = np.empty_like(order)
    position[order] = np.arange(len(order))
    number = number[order]
    graph = np.searchsorted(first, number, side="right") - 1
    row, column = np.divmod(number - first[graph], n_blocks[graph])
    tile_ptr = np.searchsorted(graph, np.arange(len(octiles) + 1))
    return tile_ptr, row.astype(np.int32), column.astype(np.int32), position[: octiles.n_tiles]


@dataclass(frozen=True)
class TechniqueProblem:
    """A problem in the order of nodes that the techniques ask for.

    Attributes
    ----------
    problem : Problem
        What is solved.
    techniques : Techniques
        What is used.
    node, edge : LabelColumns
        Base kernels and labels.
    entries : Entries
        Adjacency matrices, for preconditioners and product matrices.
    tiles : TileColumns or None
        The tiles; None where product matrices are stored.
    """

    problem: Problem
    techniques: Techniques
    node: LabelColumns
    edge: LabelColumns
    entries: Entries
    tiles: TileColumns | None

    @classmethod
    def of(cls, problem: Problem, techniques: Techniques) -> TechniqueProblem:
        """Sort nodes and pack tiles."""
        batch, order = problem.batch, techniques.order
        local = node_order(batch, order) if isinstance(order, str) else np.asarray(order)
        rows = local + np.repeat(batch.node_ptr[:-1], batch.sizes)
        node, edge = (represent(one, False, problem.dtype) for one in (problem.node, problem.edge))
        entries = entries_in_order(batch, topology(batch), rows, None)
        tiles = None
        if techniques.on_the_fly:
            octiles = to_octiles(permute(batch, local), dtype=problem.dtype)
            tiles = tile_columns(octiles, edge.labels, not techniques.octiles, techniques.adaptive)
        return cls(problem, techniques, node, edge, entries, tiles)

    @property
    def n_entries(self) -> NDArray:
        """Entries of the adjacency matrix of each graph, shape (n_graphs,), int64."""
        return np.diff(self.entries.row_ptr[self.problem.batch.node_ptr]).astype(np.int64)

    @property
    def cost(self) -> NDArray:
        """What a graph costs, shape (n_graphs,); that of a pair is the product of two of them."""
        return self.n_entries if self.tiles is None else np.diff(self.tiles.tile_ptr)

    def words(self, keep: Callable[..., list[int]]) -> list[int]:
        """Fields of ``mgk::Problem``; ``keep`` gives the addresses of columns."""
        sizes, labels = self.problem.batch.sizes, (self.node, self.edge)
        first, last = graph_columns(self.problem, *labels, self.entries, sizes)
        columns = keep(*first), keep(*last)
        return problem_words(self.problem, labels, self.entries.node, columns, keep)

    def tile_words(self, keep: Callable[..., list[int]]) -> list[int]:
        """Fields of ``mgk::Octiles``."""
        if self.tiles is None:
            return [0] * 7
        most = MOST_SPARSE[self.problem.edge.n_labels > 1]
        return [*keep(*vars(self.tiles).values()), most]

    def source(self) -> str:
        """Return the text of the kernel."""
        return technique_source(self.node.form, self.edge.form, self.problem.dtype, self.techniques)
