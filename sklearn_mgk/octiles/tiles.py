# SPDX-License-Identifier: BSD-3-Clause
"""Octiles: the non-empty 8 x 8 tiles of the adjacency matrices of a batch, in columns."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from sklearn_mgk.graphs.attributes import frozen
from sklearn_mgk.graphs.columns import Column

SIDE = 8
"""Rows and columns of a tile."""

AREA = SIDE * SIDE
"""Cells of a tile, one for each bit of its bitmap."""


class Entries(NamedTuple):
    """The non-zeros of all tiles, one row each, in their packed order."""

    graph: NDArray[np.int64]  # graph number
    row: NDArray[np.int64]  # node within the graph
    column: NDArray[np.int64]  # node within the graph


@dataclass(frozen=True, eq=False)
class OctileSummary:
    """Sizes of the octiles of a batch.

    Parameters
    ----------
    n_graphs, n_tiles, n_nonzeros : int
        Totals of the batch.
    tiles_per_graph : ndarray of shape (n_graphs,), int64
        Non-empty tiles of each graph.
    fill : float
        Share of the cells of the non-empty tiles that hold a non-zero, 0 without tiles.
    histogram : ndarray of shape (65,), int64
        ``histogram[k]`` tiles hold k non-zeros.
    octile_bytes : int
        Bytes of the arrays that a product with the matrices reads: places, bitmaps, weights and
        labels.
    dense_bytes : int
        Bytes of full matrices with a weight and a label in each cell.
    csr_bytes : int
        Bytes of compressed sparse rows with 32-bit column numbers.
    """

    n_graphs: int
    n_tiles: int
    n_nonzeros: int
    tiles_per_graph: NDArray[np.int64]
    fill: float
    histogram: NDArray[np.int64]
    octile_bytes: int
    dense_bytes: int
    csr_bytes: int

    def __str__(self) -> str:
        """Return a few readable lines."""
        return (
            f"{self.n_graphs} graphs, {self.n_tiles} non-empty tiles "
            f"({self.n_tiles / self.n_graphs:.1f} a graph), {self.n_nonzeros} non-zeros\n"
            f"fill {self.fill:.1%}\n"
            f"bytes: octiles {self.octile_bytes:,}, CSR {self.csr_bytes:,}, "
            f"dense {self.dense_bytes:,}"
        )


@dataclass(frozen=True, eq=False, repr=False)
class Octiles:
    r"""The non-empty 8 x 8 tiles of the adjacency matrices of many graphs.

    Row r and column c of the tile (R, C) of a graph are its nodes 8 R + r and 8 C + c. Both
    triangles are stored. The tiles of a graph are sorted by row, then by column. A bitmap has bit
    8 r + c set where the tile holds a non-zero, bit 0 being the least significant, and the
    non-zeros of a tile are packed in the order of their bits:

    .. math:: \mathrm{bitmap} = \sum_{(r, c)} 2^{8 r + c}.

    A cell holds one edge. Parallel edges open a second tile (and a third, ...) at the same place,
    right behind the first: tiles at one place add up. A self-loop is one cell of the diagonal,
    edges of weight 0 are left out. The arrays are read-only.

    Parameters
    ----------
    tile_ptr : ndarray of shape (n_graphs + 1,), int64
        Graph g owns the tiles ``tile_ptr[g]`` to ``tile_ptr[g + 1] - 1``.
    row, column : ndarray of shape (n_tiles,), int32
        Place of each tile within its graph, in units of 8 nodes.
    bitmap : ndarray of shape (n_tiles,), uint64
        Which cells hold a non-zero.
    nnz_ptr : ndarray of shape (n_tiles + 1,), int64
        Tile t owns the non-zeros ``nnz_ptr[t]`` to ``nnz_ptr[t + 1] - 1``.
    weight : ndarray of shape (n_nonzeros,), float32 or float64
        Edge weight.
    label : ndarray of shape (n_nonzeros,), int32
        Interned label of the edge.
    edge : ndarray of shape (n_nonzeros,), int64
        Row of the batch's edge columns that a non-zero stands for.
    node_ptr : ndarray of shape (n_graphs + 1,), int64
        Graph g owns the places ``node_ptr[g]`` to ``node_ptr[g + 1] - 1`` of the node arrays, its
        nodes and then padding; all are multiples of 8.
    node : ndarray of shape (n_places,), int64
        Row of the batch's node columns at each place, -1 in the padding.
    degree : ndarray of shape (n_places,), float32 or float64
        Sum of the weights of the edges of each node, self-loops once; 0 in the padding.
    labels : mapping of str to column
        The edge attributes of each label, empty if codes were given or no attribute is read.

    See Also
    --------
    sklearn_mgk.OctileFeaturizer : Makes octiles of graphs.

    References
    ----------
    .. [1] Y.-H. Tang, O. Selvitopi, D. T. Popovici, A. Buluç, "A high-throughput solver for
       marginalized graph kernels on GPU", IPDPS 2020.
       https://doi.org/10.1109/IPDPS47924.2020.00080

    Examples
    --------
    >>> from sklearn_mgk import OctileFeaturizer, from_arrays
    >>> batch = from_arrays([{"n_nodes": 10, "edge_index": [[0, 1], [1, 9]]}])
    >>> octiles = OctileFeaturizer().transform(batch)
    >>> octiles
    Octiles(n_graphs=1, n_tiles=3, n_nonzeros=4)
    >>> octiles.row.tolist(), octiles.column.tolist(), [hex(bits) for bits in octiles.bitmap]
    ([0, 0, 1], [0, 1, 0], ['0x102', '0x200', '0x200'])
    """

    tile_ptr: NDArray[np.int64]
    row: NDArray[np.int32]
    column: NDArray[np.int32]
    bitmap: NDArray[np.uint64]
    nnz_ptr: NDArray[np.int64]
    weight: NDArray[np.floating]
    label: NDArray[np.int32]
    edge: NDArray[np.int64]
    node_ptr: NDArray[np.int64]
    node: NDArray[np.int64]
    degree: NDArray[np.floating]
    labels: Mapping[str, Column]

    def __post_init__(self) -> None:
        """Make the arrays read-only."""
        for field in fields(self):
            value = getattr(self, field.name)
            if isinstance(value, np.ndarray):
                frozen(value)

    def __len__(self) -> int:
        """Return the number of graphs."""
        return len(self.tile_ptr) - 1

    def __repr__(self) -> str:
        """Return the numbers of graphs, tiles and non-zeros."""
        return (
            f"Octiles(n_graphs={len(self)}, n_tiles={self.n_tiles}, n_nonzeros={self.n_nonzeros})"
        )

    @property
    def n_tiles(self) -> int:
        """Number of tiles of all graphs together."""
        return len(self.bitmap)

    @property
    def n_nonzeros(self) -> int:
        """Number of non-zeros of all graphs together."""
        return len(self.weight)

    @property
    def tiles_per_graph(self) -> NDArray[np.int64]:
        """Number of tiles of each graph, shape (n_graphs,)."""
        return np.diff(self.tile_ptr)

    @property
    def nnz_per_tile(self) -> NDArray[np.int64]:
        """Number of non-zeros of each tile, shape (n_tiles,)."""
        return np.diff(self.nnz_ptr)

    @property
    def sizes(self) -> NDArray[np.int64]:
        """Number of nodes of each graph, without the padding, shape (n_graphs,)."""
        return np.add.reduceat(self.node >= 0, self.node_ptr[:-1], dtype=np.int64)

    def entries(self) -> Entries:
        """Find the place of each non-zero from the bitmaps.

        Returns
        -------
        Entries
            Named tuple of the arrays ``graph``, ``row`` and ``column``, each of shape
            (n_nonzeros,); rows and columns are nodes within the graph.
        """
        octets = self.bitmap.astype("<u8").view(np.uint8)
        bits = np.unpackbits(octets, bitorder="little").reshape(-1, AREA)
        tile, bit = np.nonzero(bits)
        graph = np.repeat(np.arange(len(self)), self.tiles_per_graph)
        return Entries(
            graph[tile],
            SIDE * self.row[tile].astype(np.int64) + bit // SIDE,
            SIDE * self.column[tile].astype(np.int64) + bit % SIDE,
        )

    def to_dense(self, graph: int) -> NDArray[np.floating]:
        """Return the weights of one graph as a full matrix, parallel edges added up.

        Parameters
        ----------
        graph : int
            Graph number, from 0.

        Returns
        -------
        ndarray of shape (n_nodes, n_nodes)
            Its adjacency matrix.

        Raises
        ------
        IndexError
            There is no such graph.
        """
        if not 0 <= graph < len(self):
            raise IndexError(f"graph {graph} of octiles of {len(self)} graphs")
        entries, n = self.entries(), int(self.sizes[graph])
        own = np.flatnonzero(entries.graph == graph)
        matrix = np.zeros((n, n), self.weight.dtype)
        np.add.at(matrix, (entries.row[own], entries.column[own]), self.weight[own])
        return matrix

    def summary(self) -> OctileSummary:
        """Count tiles, non-zeros and bytes.

        Returns
        -------
        OctileSummary
            Non-empty tiles of each graph, fill, histogram of the non-zeros of a tile, and bytes
            beside those of dense and of compressed sparse matrices.
        """
        cell = self.weight.itemsize + self.label.itemsize
        places = sum(a.nbytes for a in (self.row, self.column, self.bitmap, self.nnz_ptr))
        return OctileSummary(
            n_graphs=len(self),
            n_tiles=self.n_tiles,
            n_nonzeros=self.n_nonzeros,
            tiles_per_graph=self.tiles_per_graph,
            fill=self.n_nonzeros / max(AREA * self.n_tiles, 1),
            histogram=np.bincount(self.nnz_per_tile, minlength=AREA + 1),
            octile_bytes=places + cell * self.n_nonzeros,
            dense_bytes=cell * int((self.sizes**2).sum()),
            csr_bytes=(cell + 4) * self.n_nonzeros + 8 * int(self.sizes.sum() + len(self)),
        )
