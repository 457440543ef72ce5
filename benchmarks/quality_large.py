# SPDX-License-Identifier: BSD-3-Clause
"""Quality of a Gaussian process on a set too large to learn in each fold: Lipophilicity.

All hyperparameters are learned once, on 300 molecules that are never scored. Both Gram matrices are
computed once. In each fold of the cross-validation a thousand of its training molecules set the
amplitudes and the noise by maximum likelihood, and choose the power of the normalized kernel.

    python benchmarks/quality_large.py --data FOLDER
"""

from __future__ import annotations

import time
import warnings

import numpy as np
import timing  # first: sets the number of threads
from numpy.typing import NDArray
from quality import N_FOLDS, posterior_optimizer, read_molecules, recommended_kernel
from scipy.linalg import cho_factor, cho_solve, solve_triangular
from scipy.optimize import minimize
from sklearn.exceptions import ConvergenceWarning
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import WhiteKernel
from sklearn.model_selection import KFold

POWERS = (1, 2, 4, 8)
"""Powers of the normalized kernel to choose from."""

N_LEARN, N_AMPLITUDES = 300, 1000
"""Molecules that set the hyperparameters, and the amplitudes."""


def main():
    command = timing.parser(__doc__)
    command.add_argument("--limit", type=int, help="only that many molecules, to try it out")
    options = command.parse_args()
    warnings.simplefilter("ignore", ConvergenceWarning)
    graphs, y = read_molecules(options.data, "lipophilicity")
    graphs, y = graphs[: options.limit], y[: options.limit]
    begin = time.perf_counter()
    few = np.random.default_rng(0).permutation(len(y))[:N_LEARN]
    make_up, amount = learn(graphs[few], y[few])
    print(f"learned on {len(few)} molecules: {time.perf_counter() - begin:.0f} s", flush=True)
    first, second = make_up(graphs), amount(graphs)
    second /= second.diagonal().mean()
    print(f"two Gram matrices more: {time.perf_counter() - begin:.0f} s", flush=True)
    rows = cross_validate(first, second, y, few)
    rows.append(["mean", "", f"{np.mean([float(row[2]) for row in rows]):.3f}"])
    timing.show([f"Lipophilicity, {len(y)} molecules: fold", "power chosen", "RMSE"], rows)


def learn(graphs, y):
    """Learn all hyperparameters; return the normalized graph kernel and the other one."""
    kernel = recommended_kernel(long_walks=0.05) + WhiteKernel(0.05, (1e-4, 1))
    optimizer = posterior_optimizer(kernel, len(y), 20)
    model = GaussianProcessRegressor(kernel, optimizer=optimizer, normalize_y=True).fit(graphs, y)
    parts = model.kernel_.k1
    return parts.k1.k2.set_params(cache_size=0), parts.k2.k2.set_params(cache_size=0)


def cross_validate(first: NDArray, second: NDArray, y: NDArray, few: NDArray) -> list[list]:
    """Fold, power chosen and RMSE; the molecules in ``few`` are always trained on."""
    rows = []
    for fold, (train, test) in enumerate(KFold(N_FOLDS, shuffle=True, random_state=0).split(y)):
        train, test = np.union1d(train, few), np.setdiff1d(test, few)
        scaled = (y - y[train].mean()) / y[train].std()
        some = np.random.default_rng(1).permutation(train)[:N_AMPLITUDES]
        fits = [
            (*amplitudes(part(first, some) ** power, part(second, some), scaled[some]), power)
            for power in POWERS
        ]
        _, (a, b, noise), power = min(fits, key=lambda fit: fit[0])
        gram = a * part(first, train) ** power + b * part(second, train)
        gram[np.diag_indices(len(train))] += noise
        across = np.ix_(test, train)
        weights = cho_solve(cho_factor(gram), scaled[train])
        predicted = (a * first[across] ** power + b * second[across]) @ weights
        error = np.sqrt(np.mean((predicted - scaled[test]) ** 2)) * y[train].std()
        rows.append([fold, power, f"{error:.3f}"])
    return rows


def part(gram: NDArray, rows: NDArray) -> NDArray:
    """Gram matrix of some of the molecules."""
    return gram[np.ix_(rows, rows)]


def amplitudes(first: NDArray, second: NDArray, y: NDArray) -> tuple[float, NDArray]:
    """Negative log likelihood, and the two amplitudes and the noise that minimise it."""

    def loss(log):
        a, b, noise = np.exp(log)
        gram = a * first + b * second
        gram[np.diag_indices(len(y))] += noise
        root = np.linalg.cholesky(gram)
        z = solve_triangular(root, y, lower=True)
        return z @ z / 2 + np.log(root.diagonal()).sum()

    options = {"maxfev": 60, "xatol": 0.05, "fatol": 0.5}
    found = minimize(loss, np.log([1.0, 0.3, 0.2]), method="Nelder-Mead", options=options)
    return found.fun, np.exp(found.x)


if __name__ == "__main__":
    main()
