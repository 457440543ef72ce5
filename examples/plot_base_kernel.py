# SPDX-License-Identifier: BSD-3-Clause
r"""
Writing a base kernel
=====================

Base kernels say how similar two atoms or two bonds are. Three ways to write one: a formula as a
string, a formula as a class, and any Python function. Each then works as the built-in ones do:
its hyperparameters are learned, it multiplies and adds with others, and it is compiled.
"""

import datamol as dm
import matplotlib.pyplot as plt
import numpy as np
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import ConstantKernel, WhiteKernel
from sklearn.metrics import root_mean_squared_error

from sklearn_mgk import MarginalizedGraphKernel, from_smiles
from sklearn_mgk.base_kernels import Formula, FormulaKernel, FunctionKernel, KroneckerDelta

# %%
# A formula
# ---------
#
# Numbers of hydrogens are similar if they are close: a formula of the two labels x and y, with a
# hyperparameter s, its value and its bounds.

hydrogens = FormulaKernel("n_hydrogens", "exp(-abs(x - y) / s)", {"s": (1.0, (0.1, 100.0))})
print(hydrogens.table([0, 1, 2, 3]).round(2))

# %%
# Derivatives by the logarithm of s come with it, code that the solver runs, and the LaTeX that a
# notebook shows.

values, gradient = hydrogens.table_gradient([0, 1, 2, 3])
print(gradient[:, :, 0].round(2))
print(hydrogens._repr_latex_())
print(hydrogens.source("numba").split("\n\n\n")[1])

# %%
# A class
# -------
#
# For bond orders their ratio counts: the kernel is :math:`\left(2xy / (x^2 + y^2)\right)^p`. In a
# class the formula is a method, and the hyperparameters are arguments of ``__init__``.


class Ratio(Formula):
    """Similarity of two positive numbers by their ratio."""

    def __init__(self, attribute, p=1.0, p_bounds=(0.1, 10.0)):
        self.attribute = attribute
        self.p = p
        self.p_bounds = p_bounds

    def formula(self, x, y, p):
        """Return the kernel between two labels."""
        return (2 * x * y / (x**2 + y**2)) ** p


orders = Ratio("order", p=2.0)
print(orders.table([1.0, 1.5, 2.0, 3.0]).round(2))

# %%
# A function
# ----------
#
# Elements of one group of the periodic table are more alike than others. That is no formula but a
# look-up, so it is a function of two arrays of labels that broadcast against each other. With its
# derivative, the hyperparameter can be learned.

GROUPS = {"C": 14, "N": 15, "P": 15, "O": 16, "S": 16, "F": 17, "Cl": 17, "Br": 17, "I": 17}
group = np.vectorize(GROUPS.__getitem__)


def similarity(x, y, h):
    """Return 1 for one element, h for one group, h**2 otherwise."""
    return np.where(x == y, 1.0, np.where(group(x) == group(y), h, h**2))


def derivative(x, y, h):
    """Return the derivative by h."""
    return {"h": np.where(x == y, 0.0, np.where(group(x) == group(y), 1.0, 2 * h))}


elements = FunctionKernel("element", similarity, derivative, {"h": (0.5, (0.01, 1.0))})
print(elements.table(["C", "O", "S", "F", "Cl"]).round(2))

# %%
# In a Gaussian process
# ---------------------
#
# Free energies of hydration (FreeSolv, kcal/mol) of 120 molecules are learned, once with "equal or
# not" for all three attributes, once with the new kernels, and tested on the 500 others.

data = dm.data.freesolv().sample(frac=1, random_state=0)
graphs, energies = from_smiles(data["smiles"]), data["expt"].to_numpy()


def learn(node_kernel, edge_kernel):
    """Fit a Gaussian process, print how good it is, and return the graph kernel learned."""
    kernel = MarginalizedGraphKernel(node_kernel, edge_kernel, stopping_probability=0.2)
    gp = GaussianProcessRegressor(ConstantKernel(100.0, (1.0, 1e4)) * kernel + WhiteKernel(0.5))
    gp.fit(graphs[:120], energies[:120])
    error = root_mean_squared_error(energies[120:], gp.predict(graphs[120:]))
    print(f"log likelihood {gp.log_marginal_likelihood_value_:.1f}, RMSE {error:.2f} kcal/mol")
    return gp.kernel_.k1.k2


learn(KroneckerDelta("element") * KroneckerDelta("n_hydrogens"), KroneckerDelta("order"))
learned = learn(elements * hydrogens, orders)

# %%
# Figure
# ------
#
# The three kernels, as learned.

figure, axes = plt.subplots(1, 3, figsize=(10, 3.8), layout="constrained")
panels = [
    ("elements", learned.node_kernel.k1, ["C", "N", "P", "O", "S", "F", "Cl", "Br"]),
    ("hydrogens at an atom", learned.node_kernel.k2, [0, 1, 2, 3]),
    ("bond orders", learned.edge_kernel, [1.0, 1.5, 2.0, 3.0]),
]
for axis, (title, kernel, labels) in zip(axes, panels, strict=True):
    image = axis.imshow(kernel.table(labels), cmap="Blues", vmin=0, vmax=1)
    axis.set_xticks(range(len(labels)), labels)
    axis.set_yticks(range(len(labels)), labels)
    axis.set_title(title)
figure.colorbar(image, ax=axes, shrink=0.8, label="similarity")
plt.show()
