# SPDX-License-Identifier: BSD-3-Clause
"""A picture of the tiles of one graph under several node orders."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from sklearn_mgk.graphs import Graph, as_batch
from sklearn_mgk.octiles.build import to_octiles
from sklearn_mgk.octiles.tiles import SIDE, Octiles
from sklearn_mgk.reorder import node_order, permute

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_COLOURS = ("white", "#cfe3f5", "#0b3c6f")
"""Of cells of empty tiles, empty cells of non-empty tiles, and non-zeros."""


def plot_octiles(
    graph: Graph,
    orders: Sequence[str] = ("natural", "rcm", "partition"),
    random_state: int | None = 0,
) -> Figure:
    """Draw the tiles of one graph under each of several node orders, side by side.

    Parameters
    ----------
    graph : Graph
        One graph of a batch, ``batch[0]``.
    orders : sequence of str, default=("natural", "rcm", "partition")
        Methods of `Reorder`.
    random_state : int >= 0 or None, default=0
        Seed of ``"partition"``.

    Returns
    -------
    matplotlib.figure.Figure
        One picture for each order, with its number of non-empty tiles. Cells of non-empty tiles are
        light, non-zeros dark.

    Raises
    ------
    ImportError
        matplotlib, or what a method needs, is not installed.
    TypeError
        `graph` is no graph.
    ValueError
        A method is unknown, or none is given.

    Examples
    --------
    >>> from sklearn_mgk import from_smiles, plot_octiles
    >>> figure = plot_octiles(from_smiles(["CCCCCCCCCCO"])[0], ["natural", "rcm"])
    >>> [ax.get_title() for ax in figure.axes]
    ['natural: 4 tiles', 'rcm: 4 tiles']
    """
    if not isinstance(graph, Graph):
        raise TypeError(f"plot_octiles draws one graph, batch[0], got {type(graph).__name__}")
    if isinstance(orders, str) or len(orders) == 0:
        raise ValueError(f"orders={orders!r} must be a list of at least one method of Reorder")
    figure_class, colours = _import_matplotlib()
    batch = as_batch([graph])
    figure = figure_class(figsize=(3.2 * len(orders), 3.4), layout="constrained")
    panels = figure.subplots(1, len(orders), squeeze=False)[0]
    for axes, method in zip(panels, orders, strict=True):
        octiles = to_octiles(permute(batch, node_order(batch, method, random_state)))
        axes.imshow(
            _cells(octiles), cmap=colours(_COLOURS), vmin=0, vmax=2, interpolation="nearest"
        )
        axes.set(title=f"{method}: {octiles.n_tiles} tiles", xticks=[], yticks=[])
    return figure


def _import_matplotlib() -> tuple:
    """Return the classes of figures and of colour maps."""
    try:
        from matplotlib.colors import ListedColormap
        from matplotlib.figure import Figure
    except ImportError:
        raise ImportError(
            "plot_octiles needs matplotlib: pip install 'sklearn-mgk[examples]'"
        ) from None
    return Figure, ListedColormap


def _cells(octiles: Octiles) -> NDArray[np.int64]:
    """Return 0, 1 or 2 for each cell of the matrix of a single graph, padding included."""
    n_blocks = len(octiles.node) // SIDE
    tiles = np.zeros((n_blocks, n_blocks), dtype=np.int64)
    tiles[octiles.row, octiles.column] = 1
    cells = np.kron(tiles, np.ones((SIDE, SIDE), dtype=np.int64))
    entries = octiles.entries()
    cells[entries.row, entries.column] = 2
    return cells
