# SPDX-License-Identifier: BSD-3-Clause
"""Energies of molecules from their atoms in space: QM7, atomisation energies at the PBE0 level.

Molecules are drawn at random, some to learn from and others to predict. Elements and distances are
all that the kernel reads. A linear fit of the energy on the number of atoms of each element comes
first, and a Gaussian process learns what it leaves: all hyperparameters on some of the training
molecules, then the amplitude and the noise on all of them. Test molecules are used for scores only.

    python benchmarks/quality_3d.py --data FOLDER
"""

from __future__ import annotations

import gzip
import re
import time
import warnings
from pathlib import Path

import numpy as np
import timing  # first: sets the number of threads
from numpy.typing import NDArray
from quality import bounds_inside, posterior_optimizer
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import ConstantKernel, Kernel, WhiteKernel
from sklearn.metrics import mean_absolute_error, r2_score, root_mean_squared_error

from sklearn_mgk import (
    MarginalizedGraphKernel,
    StartingProbability,
    Tent,
    from_structures,
    read_structures,
)
from sklearn_mgk.base_kernels import KroneckerDelta, SquaredExponential
from sklearn_mgk.graphs import GraphBatch

FILE = "molecules/qm7_3d/qm7_7101.xyz.gz"
ENERGY = re.compile(r"E_pbe0_kcal_mol=(\S+)")
ELEMENTS = ("H", "C", "N", "O", "S")

ADJACENCY = Tent(order=3, zoom=0.75)
"""Atoms are joined up to 3.8 angstrom between carbons; near atoms count for much more."""


def main():
    command = timing.parser(__doc__)
    command.add_argument("--seed", type=int, default=0, help="of the draw, default 0")
    command.add_argument("--train", type=int, default=1000, help="training molecules, default 1000")
    command.add_argument("--test", type=int, default=1000, help="test molecules, default 1000")
    command.add_argument(
        "--learn", type=int, default=300, help="molecules to learn hyperparameters on, default 300"
    )
    command.add_argument("--steps", type=int, default=15, help="steps of learning, default 15")
    measure(command.parse_args())


def measure(options) -> None:
    """Learn, predict, and show errors, times and settings."""
    # A hyperparameter at its bound is a result.
    warnings.simplefilter("ignore", ConvergenceWarning)
    graphs, energy = read(options.data)
    drawn = np.random.default_rng(options.seed).permutation(len(energy))
    train, test = np.split(drawn[: options.train + options.test], [options.train])
    counts = element_counts(graphs)
    fit = np.linalg.lstsq(counts[train], energy[train])[0]
    left = energy - counts @ fit

    begin = time.perf_counter()
    kernel = learn_kernel(graphs[train[: options.learn]], left[train[: options.learn]], options)
    learned = time.perf_counter()
    model = gaussian_process(kernel, options.train, options.steps).fit(graphs[train], left[train])
    fitted = time.perf_counter()
    mean, std = model.predict(graphs[test], return_std=True)
    times = np.diff([begin, learned, fitted, time.perf_counter()])

    errors = [score(energy[test], mean + energy[test] - left[test]) for score in SCORES.values()]
    inside = np.mean(np.abs(left[test] - mean) < 1.96 * std)
    only_fit = mean_absolute_error(energy[test], energy[test] - left[test])
    timing.show(
        ["QM7, kcal/mol", *SCORES, "inside 95 %", "learn (s)", "fit (s)", "predict (s)"],
        [
            ["fit on element counts", f"{only_fit:.2f}", *[""] * 6],
            [
                f"{options.train} training molecules, seed {options.seed}",
                *(f"{value:.3g}" for value in errors[:2]),
                f"{errors[2]:.6f}",
                f"{inside:.3f}",
                *(f"{seconds:.0f}" for seconds in times),
            ],
        ],
    )
    print(f"\n{ADJACENCY!r}\n{model.kernel_!r}")


SCORES = {"MAE": mean_absolute_error, "RMSE": root_mean_squared_error, "R2": r2_score}


def read(data: Path) -> tuple[GraphBatch, NDArray]:
    """Graphs of all molecules and their energies [kcal/mol], shape (7101,)."""
    with gzip.open(data / FILE, "rt") as file:
        energy = np.array([float(value) for value in ENERGY.findall(file.read())])
    return from_structures(read_structures(data / FILE), adjacency=ADJACENCY), energy


def element_counts(graphs: GraphBatch) -> NDArray:
    """Count the atoms of each element, shape (n_graphs, 5)."""
    counts = np.zeros((len(graphs), len(ELEMENTS)))
    graph = np.repeat(np.arange(len(graphs)), np.diff(graphs.node_ptr))
    for k, element in enumerate(ELEMENTS):
        np.add.at(counts[:, k], graph[np.asarray(graphs.nodes["element"]) == element], 1)
    return counts


def molecule_kernel() -> MarginalizedGraphKernel:
    """Kernel without normalization: each atom adds its share to the energy."""
    weights = StartingProbability("element", ELEMENTS, [0.3, 1, 1, 1, 1], values_bounds=(0.02, 50))
    return MarginalizedGraphKernel(
        KroneckerDelta("element", h=0.2, h_bounds=(0.01, 0.99)),
        SquaredExponential("length", length_scale=0.1, length_scale_bounds=(0.02, 1)),
        starting_probability=weights,
        stopping_probability=0.2,
        stopping_probability_bounds=(0.005, 0.95),
        cache_size=1000,
    )


def learn_kernel(graphs: GraphBatch, left: NDArray, options) -> Kernel:
    """Optimise all hyperparameters on some molecules; fix all but the amplitude and the noise.

    The amplitude starts near what it will be. Started far off, the optimiser spends its steps on
    walks and lengths that make up for it.
    """
    kernel = ConstantKernel(50.0, (0.1, 1e4)) * molecule_kernel() + WhiteKernel(1e-4, (1e-6, 1))
    model = gaussian_process(kernel, len(left), options.steps).fit(graphs, left)
    learned = clone(model.kernel_)
    return learned.set_params(**dict.fromkeys(bounds_inside(learned), "fixed"))


def gaussian_process(kernel: Kernel, n: int, steps: int) -> GaussianProcessRegressor:
    """Return a Gaussian process of a kernel that is optimised for some steps."""
    optimizer = posterior_optimizer(kernel, n, steps)
    return GaussianProcessRegressor(kernel, optimizer=optimizer, normalize_y=True)


if __name__ == "__main__":
    main()
