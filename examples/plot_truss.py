# SPDX-License-Identifier: BSD-3-Clause
r"""
Trussness of protein contact graphs
===================================

In a contact graph residues are nodes, and residues close in space are joined. Some edges sit in
many triangles, others in none. The *k-truss* is the greatest part of a graph in which each edge
lies in at least :math:`k - 2` triangles, and the *trussness* of an edge is the greatest k whose
k-truss still has it: a measure of how tightly the edge is built in, that needs no parameter.

Four uses of it: a picture, features, a label for base kernels to read, and a kernel that compares
graphs at all their levels.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

from sklearn_mgk import MarginalizedGraphKernel, from_arrays, from_smiles
from sklearn_mgk.base_kernels import KroneckerDelta, SquaredExponential
from sklearn_mgk.truss import (
    DegeneracyKernel,
    TrussFeatures,
    TrussLabeler,
    k_truss,
    trussness,
)

# %%
# Model proteins
# --------------
#
# The example needs no download: it builds the alpha carbons of ideal helices (1.5 Å rise and 100
# degrees a residue) and strands (3.4 Å rise, 4.8 Å between strands), and puts them together to
# helix bundles, sheets, and sheets covered by helices. Noise makes each one different.
#
# For your own structures, ``StructuresToGraphs`` reads contact graphs from files.


def helix(n, x, y, upwards=True):
    """Return the alpha carbons [Å] of a helix around the line through (x, y)."""
    k = np.arange(n)[:: 1 if upwards else -1]
    angle = np.deg2rad(100) * k
    return np.stack([x + 2.3 * np.cos(angle), y + 2.3 * np.sin(angle), 1.5 * k], axis=1)


def strand(n, x, y, upwards=True):
    """Return the alpha carbons [Å] of an extended strand."""
    k = np.arange(n)[:: 1 if upwards else -1]
    return np.stack([np.full(n, x), y + 0.9 * (-1.0) ** k, 3.4 * k], axis=1)


def bundle(rng):
    """Return three helices packed side by side."""
    corners = 9.5 * np.array([[0, 0], [1, 0], [0.5, 0.87]])
    return [helix(rng.integers(18, 26), *corner, k % 2 == 0) for k, corner in enumerate(corners)]


def sheet(rng):
    """Return eight strands side by side."""
    return [strand(rng.integers(7, 10), 4.8 * k, 0.0, k % 2 == 0) for k in range(8)]


def covered_sheet(rng):
    """Return four strands with two helices on top."""
    strands = [strand(rng.integers(7, 10), 4.8 * k, 0.0, k % 2 == 0) for k in range(4)]
    return strands + [helix(rng.integers(16, 20), 2.4 + 9.6 * k, 10.0) for k in range(2)]


def contacts(places, cutoff=8.0):
    """Return the graph of all pairs of residues closer than the cutoff [Å]."""
    distance = np.linalg.norm(places[:, None] - places, axis=2)
    index = np.stack(np.nonzero(np.triu(distance < cutoff, 1)))
    return {"n_nodes": len(places), "edge_index": index, "edges": {"distance": distance[*index]}}


rng = np.random.default_rng(0)
folds = {"helix bundle": bundle, "sheet": sheet, "covered sheet": covered_sheet}
names = np.repeat(list(folds), 20)
places = [np.concatenate(folds[name](rng)) for name in names]
places = [xyz + rng.normal(scale=0.5, size=xyz.shape) for xyz in places]
graphs = from_arrays([contacts(xyz) for xyz in places])
print(graphs)

# %%
# A picture
# ---------
#
# `trussness` takes the whole batch at once and gives one number for each edge. In a helix each
# residue touches its four predecessors, which close many triangles; strands touch along a line.

of_edges = trussness(graphs)
shown = [int(np.flatnonzero(names == name)[0]) for name in folds]
figure, axes = plt.subplots(1, 3, figsize=(10, 4.2), layout="constrained")
colours = plt.get_cmap("viridis", of_edges.max() - 1)
for ax, g in zip(axes, shown, strict=True):
    values = of_edges[slice(*graphs.edge_ptr[g : g + 2])]
    across, up = places[g][:, 0], places[g][:, 2]
    ends = graphs[g].edge_index[:, np.argsort(values)]
    for (i, j), value in zip(ends.T, np.sort(values), strict=True):
        ax.plot(across[[i, j]], up[[i, j]], color=colours(value - 2), linewidth=1.2)
    ax.scatter(across, up, s=8, color="black", zorder=3)
    ax.set(title=names[g], aspect="equal", xlabel="x [Å]")
axes[0].set_ylabel("z [Å]")
scale = plt.Normalize(1.5, of_edges.max() + 0.5)
bar = figure.colorbar(plt.cm.ScalarMappable(scale, colours), ax=axes, label="trussness of the edge")
bar.set_ticks(range(2, of_edges.max() + 1))
plt.show()

# %%
# The k-truss itself is a batch again, with the edges that remain:

for k in range(3, of_edges.max() + 1):
    print(k, k_truss(graphs[shown], k))

# %%
# Features
# --------
#
# `TrussFeatures` counts the edges of each trussness. With `normalize` they are shares, and say
# nothing of the size of a protein.

model = make_pipeline(TrussFeatures(normalize=True), StandardScaler(), LogisticRegression())
scores = cross_val_score(model, graphs, names, cv=5)
print(f"accuracy of the shares of edges by trussness: {scores.mean():.2f}")

# %%
# A label, and a kernel
# ---------------------
#
# The marginalized graph kernel reads the lengths of contacts here. It can read their trussness as
# well, which `TrussLabeler` adds to the edges. Or it is summed over the nested trusses of two
# graphs, in which `DegeneracyKernel` sees ever denser parts.

distance = SquaredExponential("distance", length_scale=0.5)
plain = MarginalizedGraphKernel(edge_kernel=distance, normalization="cosine")
labels = distance * KroneckerDelta("trussness", h=0.3)
models = {
    "lengths": [plain],
    "lengths and trussness": [TrussLabeler(), clone(plain).set_params(edge_kernel=labels)],
    "lengths, at all levels": [DegeneracyKernel(plain, normalization="cosine")],
}
svc = GridSearchCV(SVC(kernel="precomputed"), {"C": [1, 10, 100, 1000, 10000]})
for title, steps in models.items():
    scores = cross_val_score(make_pipeline(*steps, svc), graphs, names)
    print(f"accuracy of {title}: {scores.mean():.2f}")

# %%
# Where it is of no use
# ---------------------
#
# Molecules as chemists draw them have rings of five and six and hardly a triangle. All of their
# edges have trussness 2, and the degeneracy kernel on trusses is the plain kernel. Make graphs of
# atoms that are close in space, or use ``decomposition="core"``.

print(np.unique(trussness(from_smiles(["Cc1ccccc1O", "CC(=O)Nc1ccc(O)cc1", "C1CCCCC1"]))))
