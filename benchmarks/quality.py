# SPDX-License-Identifier: BSD-3-Clause
"""Quality of predictions on public data sets, by cross-validation.

Regression (esol, freesolv, lipophilicity) by a Gaussian process: in each fold all hyperparameters
are learned on some of the training molecules, then the amplitudes and the noise on all of them.
Classification (bace, mutag, ptc_mr) by a support vector machine: in each fold an inner
cross-validation of the training graphs picks the stopping probability, the power of the kernel
and C. Test folds are used for the scores only.

    python benchmarks/quality.py --data FOLDER --set esol --seeds 0 1 2
"""

from __future__ import annotations

import csv
import gzip
import io
import time
import warnings
import zipfile
from collections.abc import Sequence
from functools import reduce
from operator import mul
from pathlib import Path

import numpy as np
import timing  # first: sets the number of threads
import workloads
from numpy.typing import NDArray
from scipy.optimize import minimize
from sklearn.exceptions import ConvergenceWarning
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import ConstantKernel, Kernel, WhiteKernel
from sklearn.metrics import (
    accuracy_score,
    mean_absolute_error,
    r2_score,
    roc_auc_score,
    root_mean_squared_error,
)
from sklearn.model_selection import GridSearchCV, KFold, StratifiedKFold
from sklearn.svm import SVC

from sklearn_mgk import MarginalizedGraphKernel, StartingProbability, from_smiles
from sklearn_mgk.base_kernels import BaseKernel, KroneckerDelta, SquaredExponential
from sklearn_mgk.graphs import GraphBatch

REGRESSION = {
    "esol": ("molecules/esol/delaney-processed.csv.gz", workloads.TARGETS["esol"]),
    "freesolv": ("molecules/freesolv/FreeSolv.csv.gz", "expt"),
    "lipophilicity": ("molecules/lipophilicity/Lipophilicity.csv.gz", "exp"),
}
CLASSIFICATION = {"bace": roc_auc_score, "mutag": accuracy_score, "ptc_mr": accuracy_score}
ELEMENTS = ("C", "N", "O", "F", "S", "Cl", "Br", "I", "P")
N_FOLDS = 5
N_LEARN = 300
"""Training molecules on which all hyperparameters are learned."""
N_STEPS = 20
"""Steps of that optimisation."""


def main():
    command = timing.parser(__doc__)
    command.add_argument("--set", required=True, choices=[*REGRESSION, *CLASSIFICATION])
    command.add_argument("--seeds", type=int, nargs="+", default=[0, 1, 2])
    command.add_argument("--learn", type=int, default=N_LEARN, help=f"default {N_LEARN}")
    command.add_argument("--steps", type=int, default=N_STEPS, help=f"default {N_STEPS}")
    options = command.parse_args()
    # A hyperparameter at its bound is a result here: an attribute that does not matter, say.
    warnings.simplefilter("ignore", ConvergenceWarning)
    if options.set in REGRESSION:
        measure_regression(options)
    else:
        measure_classification(options)


def recommended_kernel(
    elements: Sequence[str] = ELEMENTS, charges: bool = True, long_walks: float = 0.5
) -> Kernel:
    """Kernel of molecules for Gaussian processes: what they consist of, plus how much of it.

    The sum of a kernel with cosine normalization, which compares the proportions of molecules,
    and of one without, in which every atom adds its share to the prediction. Both compare
    all common attributes of atoms and bonds and learn where walks start.

    Parameters
    ----------
    elements : sequence of str, default=ELEMENTS
        Elements whose starting probability is learned; that of others is 1.
    charges : bool, default=True
        Whether atoms carry the attribute ``"partial_charge"``; see `with_partial_charges`.
    long_walks : float, default=0.5
        Stopping probability of the normalized kernel to start from.

    Returns
    -------
    sklearn.gaussian_process.kernels.Kernel
        To be used with targets of mean 0 and variance 1. All its hyperparameters are free.
    """

    def part(normalization, stopping_probability):
        return MarginalizedGraphKernel(
            atom_kernel(charges),
            bond_kernel(),
            starting_probability=StartingProbability(
                "element", elements, np.ones(len(elements)), values_bounds=(0.05, 20)
            ),
            stopping_probability=stopping_probability,
            stopping_probability_bounds=(0.02, 0.95),
            normalization=normalization,
            tol=1e-6,
        )

    proportions = ConstantKernel(1.0) * part("cosine", long_walks)
    amounts = ConstantKernel(0.01, (1e-9, 1e3)) * part(None, 0.5)
    return proportions + amounts


def atom_kernel(charges: bool = True) -> BaseKernel:
    """Similarity of two atoms: a factor for each attribute that differs."""
    names = (
        "element",
        "hybridization",
        "n_hydrogens",
        "aromatic",
        "charge",
        "degree",
        "ring_sizes",
    )
    kernel = reduce(mul, [KroneckerDelta(name, h=0.7) for name in names])
    return kernel * SquaredExponential("partial_charge", 0.2) if charges else kernel


def bond_kernel() -> BaseKernel:
    """Similarity of two bonds."""
    return (
        SquaredExponential("order", length_scale=0.5)
        * KroneckerDelta("in_ring", h=0.5)
        * KroneckerDelta("conjugated", h=0.7)
    )
