# SPDX-License-Identifier: BSD-3-Clause
"""Time of values with derivatives by ten hyperparameters, relative to values alone."""

from __future__ import annotations

import timing  # first: sets the number of threads
import workloads

from sklearn_mgk import from_smiles


def main():
    command = timing.parser(__doc__)
    command.add_argument("--graphs", type=int, default=500, help="molecules, default 500")
    options = command.parse_args()
    smiles = workloads.smiles_with_bonds(options.data, "esol")
    batch = from_smiles(smiles[:: max(1, len(smiles) // options.graphs)][: options.graphs])
    pairs = workloads.n_pairs(len(batch))
    rows = []
    for name, settings in {
        "float64": {},
        "float64, min_steps=1": {"min_steps": 1},
        "float64, cosine": {"normalization": "cosine"},
        "float32": {"dtype": "float32", "tol": 1e-5},
    }.items():
        kernel = workloads.ten_parameter_kernel(**settings)
        alone = timing.seconds(lambda k=kernel: k(batch))
        both = timing.seconds(lambda k=kernel: k(batch, eval_gradient=True))
        rows.append(
            [
                name,
                kernel.n_dims,
                f"{pairs / alone:,.0f}",
                f"{pairs / both:,.0f}",
                f"{both / alone:.2f}",
                "≤ 2.5",
            ]
        )
    header = [f"{len(batch)} ESOL molecules", "hyperparameters", "values, pairs/s"]
    timing.show([*header, "with gradient, pairs/s", "time ratio", "target"], rows)


if __name__ == "__main__":
    main()
