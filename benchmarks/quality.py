# SPDX-License-Identifier: BSD-3-Clause
"""Quality of predictions on public data sets, by 5-fold cross-validation.

Regression (esol, freesolv, lipophilicity) by a Gaussian process. In each fold all hyperparameters
are learned on some of the training molecules, then the amplitudes and the noise on all of them.
Classification (bace, mutag, ptc_mr) by a support vector machine. In each fold an inner
cross-validation of the training graphs picks the settings of the kernel and C. Test folds are
used for scores only.

    python benchmarks/quality.py --data FOLDER --set esol --seeds 0 1 2
"""

from __future__ import annotations

import csv
import gzip
import io
import itertools
import time
import warnings
import zipfile
from collections.abc import Callable, Sequence
from functools import reduce
from operator import mul
from pathlib import Path

import numpy as np
import timing  # first: sets the number of threads
import workloads
from numpy.typing import NDArray
from scipy.optimize import minimize
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import ConstantKernel, Kernel, WhiteKernel
from sklearn.metrics import mean_absolute_error, r2_score, root_mean_squared_error
from sklearn.model_selection import GridSearchCV, KFold, StratifiedKFold
from sklearn.svm import SVC

from sklearn_mgk import MarginalizedGraphKernel, StartingProbability, from_smiles
from sklearn_mgk.base_kernels import BaseKernel, KroneckerDelta, SquaredExponential
from sklearn_mgk.graphs import GraphBatch

FILES = {
    "esol": ("molecules/esol/delaney-processed.csv.gz", workloads.TARGETS["esol"]),
    "freesolv": ("molecules/freesolv/FreeSolv.csv.gz", "expt"),
    "lipophilicity": ("molecules/lipophilicity/Lipophilicity.csv.gz", "exp"),
    "bace": ("molecules/bace/bace.csv.gz", "Class"),
}
"""Tables of molecules, and the column to predict."""

TU_SETS = {"mutag": "MUTAG", "ptc_mr": "PTC_MR"}
N_FOLDS = 5
ELEMENTS = ("C", "N", "O", "F", "S", "Cl", "Br", "I", "P")

CHARGE_STEP = 0.02
"""To which partial charges are rounded [e]; few distinct atoms make kernels fast."""

LONG_WALKS = {"lipophilicity": 0.05}
"""Stopping probability to start from, where it is not that of `recommended_kernel`."""

PRIOR = 0.5
"""Standard deviation of the logarithms of hyperparameters around the values to start from."""

GRID = {"h": (0.3, 0.7), "stopping_probability": (0.05, 0.3)}
"""Settings of the kernel that classification chooses from."""

POWERS = (1, 4, 16)
"""Powers of the normalized kernel to choose from; the higher, the fewer graphs count as similar."""

AMPLITUDES = ("constant_value", "noise_level")
"""Hyperparameters that are learned from all training molecules."""

PENALTIES = {"C": (0.1, 1, 10, 100, 1000)}


def main():
    command = timing.parser(__doc__)
    command.add_argument("--set", required=True, choices=[*FILES, *TU_SETS])
    command.add_argument("--seeds", type=int, nargs="+", default=[0, 1, 2])
    command.add_argument(
        "--learn", type=int, default=300, help="molecules to learn hyperparameters on, default 300"
    )
    command.add_argument("--steps", type=int, default=20, help="steps of learning, default 20")
    options = command.parse_args()
    # A hyperparameter at its bound is a result, such as that an attribute does not matter.
    warnings.simplefilter("ignore", ConvergenceWarning)
    is_regression = options.set in FILES and options.set != "bace"
    (measure_regression if is_regression else measure_classification)(options)


def recommended_kernel(long_walks: float = 0.5, elements: Sequence[str] = ELEMENTS) -> Kernel:
    """Kernel of molecules for Gaussian processes: what they consist of, and how much of it.

    It is the sum of a kernel with cosine normalization, which compares the proportions of
    molecules, and of one without, which lets each atom add its share to the prediction.

    Parameters
    ----------
    long_walks : float, default=0.5
        Stopping probability of the normalized kernel to start learning from.
    elements : sequence of str, default=ELEMENTS
        Elements whose starting probability is learned; that of all others is 1.

    Returns
    -------
    sklearn.gaussian_process.kernels.Kernel
        Reads the attributes of `from_smiles` and ``"partial_charge"``, see
        `read_molecules`. To be used with targets of mean 0 and variance 1.
    """

    def part(normalization, stopping_probability):
        return MarginalizedGraphKernel(
            atom_kernel(),
            bond_kernel(),
            starting_probability=StartingProbability(
                "element", elements, np.ones(len(elements)), values_bounds=(0.05, 20)
            ),
            stopping_probability=stopping_probability,
            stopping_probability_bounds=(0.02, 0.95),
            normalization=normalization,
            tol=1e-6,
            cache_size=1000,
        )

    proportions = ConstantKernel(1.0) * part("cosine", long_walks)
    amounts = ConstantKernel(0.01, (1e-9, 1e3)) * part(None, 0.5)
    return proportions + amounts


def atom_kernel(h: float = 0.7) -> BaseKernel:
    """Similarity of two atoms; each attribute that differs multiplies it by h."""
    names = ("element", "hybridization", "n_hydrogens", "aromatic", "charge", "degree")
    deltas = [KroneckerDelta(name, h) for name in (*names, "ring_sizes")]
    return reduce(mul, deltas) * SquaredExponential("partial_charge", length_scale=0.2)


def bond_kernel() -> BaseKernel:
    """Similarity of two bonds."""
    return (
        SquaredExponential("order", length_scale=0.5)
        * KroneckerDelta("in_ring", h=0.5)
        * KroneckerDelta("conjugated", h=0.7)
    )


def read_molecules(data: Path, name: str) -> tuple[GraphBatch, NDArray]:
    """Molecules with Gasteiger charges as node attribute "partial_charge" [e], and targets."""
    from rdkit import Chem
    from rdkit.Chem.rdPartialCharges import ComputeGasteigerCharges

    path, target = FILES[name]
    with gzip.open(data / path, "rt") as file:
        rows = list(csv.DictReader(file))
    molecules = [Chem.MolFromSmiles(row["smiles"]) for row in rows]
    charges = []
    for molecule in molecules:
        ComputeGasteigerCharges(molecule)
        charges += [atom.GetDoubleProp("_GasteigerCharge") for atom in molecule.GetAtoms()]
    # There are none (NaN) for elements without parameters.
    steps = np.round(np.nan_to_num(charges, posinf=0, neginf=0) / CHARGE_STEP)
    graphs = from_smiles(molecules).with_columns(nodes={"partial_charge": steps * CHARGE_STEP})
    return graphs, np.array([float(row[target]) for row in rows])


def read_tu(data: Path, name: str) -> tuple[GraphBatch, NDArray]:
    """Graphs of a TU set with the labels of neighbors as node attribute, and classes."""
    graphs = workloads.read_tu(data, name)
    source, target = graphs.edge_index + graphs.node_ptr[graphs.edge_graph]
    neighbors = [[] for _ in range(graphs.n_nodes)]
    for i, j in zip(source.tolist(), target.tolist(), strict=True):
        neighbors[i].append(graphs.nodes["label"][j])
        neighbors[j].append(graphs.nodes["label"][i])
    around = [" ".join(sorted(labels)) for labels in neighbors]
    with zipfile.ZipFile(data / "tu" / name / f"{name}.zip") as archive:
        entry = next(e for e in archive.namelist() if e.endswith(f"{name}_graph_labels.txt"))
        classes = np.loadtxt(io.StringIO(archive.read(entry).decode()), dtype=np.int64)
    return graphs.with_columns(nodes={"neighbors": around}), classes


def measure_regression(options):
    """Show errors of a Gaussian process, the means over the folds."""
    graphs, y = read_molecules(options.data, options.set)
    kernel = recommended_kernel(LONG_WALKS.get(options.set, 0.5))
    scores = {"RMSE": root_mean_squared_error, "R2": r2_score, "MAE": mean_absolute_error}
    rows = []
    for seed in options.seeds:
        begin = time.perf_counter()
        folds = []
        for train, test in KFold(N_FOLDS, shuffle=True, random_state=seed).split(y):
            model = learn(kernel, graphs[train], y[train], options, seed)
            predicted = model.predict(graphs[test])
            folds.append([score(y[test], predicted) for score in scores.values()])
            print(f"seed {seed}: {dict(zip(scores, folds[-1], strict=True))}", flush=True)
        rows.append([seed, *np.mean(folds, axis=0), time.perf_counter() - begin])
    show(options.set, len(y), list(scores), rows)
    print(f"\nLearned from {kernel!r}\n\nIn the last fold {model.kernel_!r}")


def learn(kernel: Kernel, graphs: GraphBatch, y: NDArray, options, seed: int):
    """Fit a Gaussian process: all hyperparameters on some graphs, the amplitudes then on all.

    Returns
    -------
    GaussianProcessRegressor
    """
    few = np.random.default_rng(seed).permutation(len(y))[: options.learn]
    kernel = kernel + WhiteKernel(0.05, (1e-4, 1))
    for chosen in (few, np.arange(len(y))):
        optimizer = posterior_optimizer(kernel, len(chosen), options.steps)
        model = GaussianProcessRegressor(kernel, optimizer=optimizer, normalize_y=True)
        model.fit(graphs[chosen], y[chosen])
        kernel = clone(model.kernel_)
        kernel.set_params(**dict.fromkeys(bounds_inside(kernel), "fixed"))
    return model


def bounds_inside(kernel: Kernel) -> list[str]:
    """Names of all bounds but those of amplitudes and noise."""
    names = [name for name in kernel.get_params() if name.endswith("_bounds")]
    return [name for name in names if not name.removesuffix("_bounds").endswith(AMPLITUDES)]


def posterior_optimizer(kernel: Kernel, n: int, steps: int) -> Callable:
    """Optimizer for scikit-learn's Gaussian processes: likelihood times a prior, L-BFGS-B.

    The prior is normal in the logarithms, around the values to start from; none on amplitudes.
    The objective is divided by the number of graphs. Otherwise the first step, which is as long as
    the gradient where all variables are bounded, would end at the bounds.
    """
    free = [h for h in kernel.hyperparameters if not h.fixed]
    spread = np.concatenate(
        [np.full(h.n_elements, np.inf if h.name.endswith(AMPLITUDES) else PRIOR) for h in free]
    )

    def optimise(objective, start, bounds):
        def loss(theta):
            value, slope = objective(theta)
            off = (theta - start) / spread
            return (value + off @ off / 2) / n, (slope + off / spread) / n

        stop = {"maxiter": steps, "ftol": 1e-4}
        found = minimize(loss, start, jac=True, method="L-BFGS-B", bounds=bounds, options=stop)
        return found.x, found.fun

    return optimise


def measure_classification(options):
    """Show scores of a support vector machine, the means over the folds."""
    if options.set == "bace":
        graphs, y = read_molecules(options.data, options.set)
    else:
        graphs, y = read_tu(options.data, TU_SETS[options.set])
    scoring = "roc_auc" if options.set == "bace" else "accuracy"
    begin = time.perf_counter()
    grams = gram_matrices(graphs, atom_kernel if options.set == "bace" else label_kernel)
    gram_seconds = time.perf_counter() - begin
    rows = []
    for seed in options.seeds:
        begin = time.perf_counter()
        scores, chosen = [], []
        for train, test in StratifiedKFold(N_FOLDS, shuffle=True, random_state=seed).split(y, y):
            search, setting = choose(grams, train, y, scoring)
            gram = grams[setting][np.ix_(test, train)]
            scores.append(search.score(gram, y[test]))
            chosen.append((*setting, search.best_params_["C"]))
        print(f"seed {seed}: (h, q, power, C) chosen in each fold: {chosen}", flush=True)
        rows.append([seed, np.mean(scores), time.perf_counter() - begin])
    show(options.set, len(y), [scoring], rows)
    print(f"Besides, {len(grams) // len(POWERS)} Gram matrices in {gram_seconds:.0f} s.")


def label_kernel(h: float) -> BaseKernel:
    """Similarity of two nodes of a TU set."""
    return KroneckerDelta("label", h) * KroneckerDelta("neighbors", h)


def gram_matrices(graphs: GraphBatch, node_kernel: Callable) -> dict[tuple, NDArray]:
    """Gram matrices of all graphs for each setting of the grid; classes play no part in them."""
    is_molecule = "element" in graphs.nodes
    grams = {}
    for h, q in itertools.product(*GRID.values()):
        gram = MarginalizedGraphKernel(
            node_kernel(h),
            bond_kernel() if is_molecule else KroneckerDelta("label", h),
            stopping_probability=q,
            normalization="cosine",
            tol=1e-6,
        )(graphs)
        grams |= {(h, q, power): gram**power for power in POWERS}
    return grams


def choose(grams: dict[tuple, NDArray], train: NDArray, y: NDArray, scoring: str) -> tuple:
    """Fit machines to the training graphs; return the one best in cross-validation, its setting."""
    inner = StratifiedKFold(3, shuffle=True, random_state=0)
    machine = SVC(kernel="precomputed")
    searches = {
        setting: GridSearchCV(machine, PENALTIES, scoring=scoring, cv=inner).fit(
            gram[np.ix_(train, train)], y[train]
        )
        for setting, gram in grams.items()
    }
    best = max(searches, key=lambda setting: searches[setting].best_score_)
    return searches[best], best


def show(name: str, n: int, scores: Sequence[str], rows: Sequence[Sequence]) -> None:
    """Print a table with a row for each seed, and their mean."""
    mean = np.mean([row[1:-1] for row in rows], axis=0)
    lines = [[row[0], *(f"{v:.3f}" for v in row[1:-1]), f"{row[-1]:.0f}"] for row in rows]
    lines.append(["mean", *(f"**{v:.3f}**" for v in mean), ""])
    timing.show([f"{name}, {n} graphs: seed", *scores, "time (s)"], lines)


if __name__ == "__main__":
    main()
