# SPDX-License-Identifier: BSD-3-Clause
"""Small molecules with targets that a graph kernel can learn, and a kernel for them."""

import numpy as np
from sklearn.pipeline import make_pipeline
from sklearn.svm import SVC

from sklearn_mgk import MarginalizedGraphKernel, SmilesToGraphs
from sklearn_mgk.base_kernels import KroneckerDelta, SquaredExponential

# Normal boiling points [degrees Celsius] from common handbooks.
BOILING_POINTS = {
    "C": -161.5,
    "CC": -88.6,
    "CCC": -42.1,
    "CCCC": -0.5,
    "CC(C)C": -11.7,
    "CCCCC": 36.1,
    "CC(C)(C)C": 9.5,
    "CCCCCC": 68.7,
    "CCCCCCC": 98.4,
    "CO": 64.7,
    "CCO": 78.4,
    "CCCO": 97.2,
    "CC(C)O": 82.5,
    "CCCCO": 117.7,
    "CCC(C)O": 99.5,
    "CC(C)(C)O": 82.4,
    "CCCCCO": 138.0,
    "CN": -6.3,
    "CCN": 16.6,
    "CCCN": 48.0,
    "CCCCN": 77.8,
    "c1ccccc1": 80.1,
    "Cc1ccccc1": 110.6,
    "Oc1ccccc1": 181.7,
}

SMILES = list(BOILING_POINTS)
TEMPERATURE = np.array(list(BOILING_POINTS.values()))
# In units of the spread around the mean, as Gaussian processes with a zero mean want it.
TARGET = (TEMPERATURE - TEMPERATURE.mean()) / TEMPERATURE.std()
IS_ALCOHOL = np.array(["O" in smiles for smiles in SMILES])
FAMILY = np.array(["alcohol" if "O" in s else "amine" if "N" in s else "other" for s in SMILES])
for _array in (TEMPERATURE, TARGET, IS_ALCOHOL, FAMILY):
    _array.flags.writeable = False

N_PAIRS = len(SMILES) * (len(SMILES) + 1) // 2


def make_kernel(**changes):
    """Return a kernel that can tell these molecules apart; `changes` are other parameters.

    The likelihood of `TARGET` is greatest inside the bounds of its three free hyperparameters.
    """
    hydrogens = KroneckerDelta("n_hydrogens", h=0.6, h_bounds="fixed")
    defaults = {
        "node_kernel": KroneckerDelta("element", h=0.3) * hydrogens,
        "edge_kernel": SquaredExponential("order", length_scale=0.5),
        "stopping_probability": 0.1,
        "normalization": "cosine",
        "backend": "cpu",
    }
    return MarginalizedGraphKernel(**{**defaults, **changes})


def make_svc(**changes):
    """Return SMILES -> graphs -> rows of the Gram matrix -> support vectors."""
    return make_pipeline(SmilesToGraphs(), make_kernel(**changes), SVC(kernel="precomputed", C=10))
