# SPDX-License-Identifier: BSD-3-Clause
"""
A map of molecules
==================

Kernel principal component analysis lays molecules out in the plane so that similar ones, in the
eyes of the graph kernel, are close. It sees structures only; the colour, the solubility, is not
given to it.
"""

from io import BytesIO

import datamol as dm
import matplotlib.pyplot as plt
import numpy as np
from matplotlib.offsetbox import AnnotationBbox, OffsetImage
from rdkit.Chem.Draw import rdMolDraw2D
from sklearn.decomposition import KernelPCA
from sklearn.pipeline import make_pipeline

from sklearn_mgk import MarginalizedGraphKernel, SmilesToGraphs
from sklearn_mgk.base_kernels import KroneckerDelta, SquaredExponential

# %%
# Map
# ---
#
# The pipeline takes molecules to coordinates. The normalization "cosine" compares proportions, so
# that small and large molecules of one kind are close.

data = dm.data.solubility().sample(600, random_state=0)
kernel = MarginalizedGraphKernel(
    node_kernel=KroneckerDelta("element", h=0.3)
    * KroneckerDelta("aromatic", h=0.6)
    * KroneckerDelta("n_hydrogens", h=0.8),
    edge_kernel=SquaredExponential("order", length_scale=0.5) * KroneckerDelta("in_ring", h=0.7),
    stopping_probability=0.1,
    normalization="cosine",
)
mapping = make_pipeline(SmilesToGraphs(), kernel, KernelPCA(n_components=2, kernel="precomputed"))
xy = mapping.fit_transform(data["mol"])

# %%
# The map is fitted: it also has a place for molecules that come later.

print(mapping.transform(["CCCCCCO", "c1ccc2ccccc2c1"]).round(2))  # hexanol, naphthalene

# %%
# Figure
# ------
#
# The plane is cut into twelve sectors, and the outermost small molecule of each is drawn.


def drawing(molecule):
    """Draw a molecule, all at one scale."""
    drawer = rdMolDraw2D.MolDraw2DCairo(-1, -1)
    options = drawer.drawOptions()
    options.clearBackground = False
    options.scalingFactor = 26
    options.bondLineWidth = 3
    options.minFontSize = 20
    drawer.DrawMolecule(molecule)
    drawer.FinishDrawing()
    return OffsetImage(plt.imread(BytesIO(drawer.GetDrawingText())), zoom=0.3)


plt.rcParams.update({"axes.spines.top": False, "axes.spines.right": False})
figure, axis = plt.subplots(figsize=(8.5, 7), layout="constrained")
points = axis.scatter(*xy.T, c=data["SOL"], s=22, cmap="viridis", edgecolor="white", linewidth=0.3)
figure.colorbar(points, shrink=0.7, label="solubility, log$_{10}$(mol/L)")

is_small = data["mol"].map(lambda molecule: molecule.GetNumAtoms()).to_numpy() < 13
middle, spread = xy.mean(axis=0), xy.std(axis=0)
offset = (xy - middle) / spread
radius, angle = np.hypot(*offset.T), np.arctan2(offset[:, 1], offset[:, 0])
sector = np.floor(12 * angle / (2 * np.pi))
for k in range(-6, 6):
    row = np.argmax(np.where(is_small & (sector == k), radius, 0))
    direction = 2 * np.pi * (k + 0.5) / 12
    place = middle + 3.1 * spread * np.array([np.cos(direction), np.sin(direction)])
    axis.add_artist(
        AnnotationBbox(
            drawing(data["mol"].iloc[row]),
            xy[row],
            place,
            frameon=False,
            arrowprops={"arrowstyle": "-", "color": "#6b7280", "linewidth": 0.8},
        )
    )
axis.set(
    xlim=middle[0] + 3.7 * spread[0] * np.array([-1, 1]),
    ylim=middle[1] + 3.7 * spread[1] * np.array([-1, 1]),
    xlabel="first principal component",
    ylabel="second principal component",
)
plt.show()
