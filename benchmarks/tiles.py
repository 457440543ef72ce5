# SPDX-License-Identifier: BSD-3-Clause
"""How many 8 x 8 tiles each node order leaves, and how long orders and octiles take.

Proteins (atoms within 3 x 0.75 van der Waals radii), drugs, Newman-Watts-Strogatz and
Barabasi-Albert graphs, each in its own order and with shuffled nodes. ``--data`` names a folder
with ``proteins/index.csv``, ``drugs/union/drugs_union.csv.gz`` and
``molecules/qm7_3d/qm7_7101.xyz.gz``; ``--plot`` and ``--example`` name image files to write.
"""

from __future__ import annotations

import csv
import warnings
from pathlib import Path

import networkx as nx
import numpy as np
import timing  # first: sets the number of threads
import workloads

from sklearn_mgk import (
    GraphBatch,
    Tent,
    from_networkx,
    from_smiles,
    from_structures,
    node_order,
    permute,
    plot_octiles,
    read_structures,
    to_octiles,
)

ORDERS = ("natural", "rcm", "morton", "hilbert", "partition")
COLOURS = ("#bbbbbb", "#7fb3d5", "#a9cf9a", "#5a9e6f", "#0b3c6f")


def main():
    command = timing.parser(__doc__)
    command.add_argument("--plot", type=Path, help="where to draw the table")
    command.add_argument("--example", type=Path, help="where to draw one protein under the orders")
    options = command.parse_args()
    warnings.simplefilter("ignore", UserWarning)  # ions far from everything else
    plain = graphs(options.data)
    tables = {}
    for name, batch in plain.items():
        tables[name] = {order: tiles(batch, order) for order in orders_of(batch)}
        mixed = shuffled(batch)
        tables[f"{name}, shuffled"] = {order: tiles(mixed, order) for order in orders_of(mixed)}
    show_tiles(tables)
    show_times(options.data, plain)
    if options.plot:
        draw(tables, options.plot)
    if options.example:
        typical = int(np.argmin(np.abs(plain["proteins"].sizes - 250)))
        shown = ["natural", "rcm", "hilbert", "partition"]
        plot_octiles(plain["proteins"][typical], shown).savefig(options.example, dpi=80)


def graphs(data: Path) -> dict[str, GraphBatch]:
    """Return the four sets of graphs."""
    return {
        "proteins": proteins(data),
        "drugs": from_smiles(workloads.smiles_with_bonds(data, "drugs")),
        "nws": from_networkx(
            [nx.newman_watts_strogatz_graph(96, 3, 0.1, seed=seed) for seed in range(160)]
        ),
        "ba": from_networkx([nx.barabasi_albert_graph(96, 6, seed=seed) for seed in range(160)]),
    }


def proteins(data: Path) -> GraphBatch:
    """Structures of 20 to 600 heavy atoms."""
    with (data / "proteins/index.csv").open() as file:
        paths = [
            data / row["file"]
            for row in csv.DictReader(file)
            if 20 <= int(row["heavy_atoms"]) <= 600
        ]
    rule = Tent(zoom=0.75)
    return from_structures(paths, hydrogens=False, altloc="A", adjacency=rule)


def shuffled(batch: GraphBatch) -> GraphBatch:
    """Put the nodes of each graph in random order."""
    key = np.random.default_rng(0).random(batch.n_nodes)
    return permute(batch, np.lexsort((key, batch.node_graph)) - batch.node_ptr[batch.node_graph])


def orders_of(batch: GraphBatch) -> list[str]:
    """Return the orders that exist: curves need coordinates."""
    curves = ("morton", "hilbert")
    return [order for order in ORDERS if order not in curves or "position" in batch.nodes]


def tiles(batch: GraphBatch, order: str) -> float:
    """Mean number of non-empty tiles."""
    return float(to_octiles(permute(batch, node_order(batch, order))).tiles_per_graph.mean())


def show_tiles(tables: dict[str, dict[str, float]]) -> None:
    """Print the tiles, and how far below reverse Cuthill-McKee the partition is."""
    rows, ratios = [], []
    for name, means in tables.items():
        ratios.append(means["partition"] / means["rcm"])
        cells = [f"{means[order]:.2f}" if order in means else "" for order in ORDERS]
        rows.append([name, *cells, f"{1 - ratios[-1]:.1%}"])
    mean = 1 - np.exp(np.mean(np.log(ratios)))
    rows.append(["geometric mean", *[""] * len(ORDERS), f"{mean:.1%}"])
    timing.show(["graphs", *ORDERS, "partition below rcm"], rows)


def show_times(data: Path, plain: dict[str, GraphBatch]) -> None:
    """Print times of the orders and of octiles."""
    rows = []
    for name, batch in plain.items():
        for order in ("rcm", "partition"):
            spent = timing.seconds(lambda batch=batch, order=order: node_order(batch, order))
            rows.append([f"{order} of {len(batch)} {name}", f"{spent:.2f} s"])
    molecules = from_structures(read_structures(data / "molecules/qm7_3d/qm7_7101.xyz.gz"))
    attributes = {"drugs": ("order", "conjugated", "in_ring"), "QM7 structures": ("length",)}
    for (name, names), batch in zip(attributes.items(), (plain["drugs"], molecules), strict=True):
        spent = timing.seconds(lambda batch=batch, names=names: to_octiles(batch[:], names))
        summary = to_octiles(batch, names).summary()
        rows.append([f"octiles of {len(batch)} {name}", f"{spent:.2f} s"])
        rows.append(
            [
                "their bytes: octiles, CSR, dense",
                f"{summary.octile_bytes:,}, {summary.csr_bytes:,}, {summary.dense_bytes:,}",
            ]
        )
    timing.show(["what", "measured"], rows)


def draw(tables: dict[str, dict[str, float]], path: Path) -> None:
    """Draw the tiles relative to the natural order of the plain graphs."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(8, 3.2), layout="constrained")
    axes = figure.subplots()
    for place, (name, means) in enumerate(tables.items()):
        whole = tables[name.removesuffix(", shuffled")]["natural"]
        for offset, (order, mean) in enumerate(means.items()):
            x = place + (offset - (len(means) - 1) / 2) * 0.16
            axes.bar(x, mean / whole, 0.16, color=COLOURS[ORDERS.index(order)])
    for order, colour in zip(ORDERS, COLOURS, strict=True):
        axes.bar(0, 0, color=colour, label=order)
    axes.set_xticks(range(len(tables)), [name.replace(", ", "\n") for name in tables])
    axes.set(ylabel="non-empty tiles / natural order", ylim=(0, 2.7))
    axes.legend(ncols=len(ORDERS), frameon=False, fontsize="small")
    figure.savefig(path, dpi=80)


if __name__ == "__main__":
    main()
