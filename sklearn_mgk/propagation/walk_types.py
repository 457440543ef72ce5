# SPDX-License-Identifier: BSD-3-Clause
"""Types of anonymous walks.

An anonymous walk names each node by when the walk first came to it: 0-1-0-2 goes to a neighbour,
back, and to another neighbour. Walks of some steps over graphs without self-loops have as many
types as the Bell number of the steps; they are kept as a tree, one level a step.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

import numpy as np
from numpy.typing import NDArray


def n_walk_types(length: int) -> int:
    """Return the number of types of anonymous walks with some steps: the Bell number.

    Examples
    --------
    >>> [n_walk_types(length) for length in range(1, 8)]
    [1, 2, 5, 15, 52, 203, 877]
    """
    row = [1]
    for _ in range(length - 1):
        following = [row[-1]]
        for number in row:
            following.append(following[-1] + number)
        row = following
    return row[-1]


@dataclass(frozen=True)
class WalkTree:
    """All anonymous walks of up to some steps.

    Attributes
    ----------
    child : ndarray of shape (n_inner, length + 1), int64
        Number of the walk that goes on to a node of this name, -1 where that cannot be. Walks are
        numbered level by level, 0 is the walk of one node.
    first : int
        Number of the first walk of full length.
    names : ndarray of shape (n_types, length + 1), int64
        The walks of full length in lexicographic order.
    """

    child: NDArray
    first: int
    names: NDArray


@cache
def walk_tree(length: int) -> WalkTree:
    """Make the tree for walks of some steps."""
    names, children, first = np.zeros((1, 1), np.int64), [], 0
    for _ in range(length):
        label = np.arange(length + 1)
        possible = (label <= names.max(axis=1)[:, None] + 1) & (label != names[:, -1:])
        child = np.full(possible.shape, -1, np.int64)
        first += len(names)
        child[possible] = first + np.arange(possible.sum())
        children.append(child)
        parent, taken = np.nonzero(possible)
        names = np.column_stack([names[parent], taken])
    return WalkTree(np.concatenate(children), first, names)
