# SPDX-License-Identifier: BSD-3-Clause
"""Matrices that products are tested on."""

import numpy as np
from scipy import sparse


def power_law(n=300, seed=0):
    """Return a matrix whose rows and columns have numbers of entries as in social networks."""
    rng = np.random.default_rng(seed)
    weight = rng.pareto(1.2, n) + 0.2
    ends = (rng.choice(n, 6 * n, p=weight / weight.sum()) for _ in range(2))
    return sparse.csr_array((rng.normal(size=6 * n), tuple(ends)), shape=(n, n))


def star(n=120):
    """Return the adjacency matrix of a node that is joined to all others."""
    matrix = sparse.lil_array((n, n))
    matrix[7, :] = matrix[:, 7] = 1.5
    return sparse.csr_array(matrix)


def with_empty_rows():
    """Return a matrix with rows and columns that hold nothing, at both ends too."""
    return sparse.csr_array(
        (np.arange(1.0, 7), ([1, 1, 4, 4, 4, 9], [2, 5, 2, 3, 11, 0])), shape=(12, 14)
    )


def unsorted_with_duplicates():
    """Return compressed rows that are not in canonical form."""
    indices = np.array([3, 0, 3, 2, 1, 1])
    data = np.array([1.0, -2.0, 4.0, 0.0, 5.0, 0.25])
    return sparse.csr_array((data, indices, [0, 3, 3, 6]), shape=(3, 4))


MATRICES = {
    "random": sparse.random_array((90, 70), density=0.1, rng=np.random.default_rng(1)).tocsr(),
    "power law": power_law(),
    "star": star(),
    "empty rows": with_empty_rows(),
    "one row": sparse.csr_array(np.arange(40.0)[None]),
    "one column": sparse.csr_array(np.arange(40.0)[:, None]),
    "one number": sparse.csr_array([[3.0]]),
    "no entries": sparse.csr_array((5, 6)),
    "no rows": sparse.csr_array((0, 6)),
    "no columns": sparse.csr_array((6, 0)),
    "not canonical": unsorted_with_duplicates(),
}
for _matrix in MATRICES.values():
    for _array in (_matrix.data, _matrix.indices, _matrix.indptr):
        _array.flags.writeable = False
