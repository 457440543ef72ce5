# SPDX-License-Identifier: BSD-3-Clause
"""What all kernels of the CUDA solver read, as the fields of ``mgk::Problem``; needs no device."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from itertools import chain, islice

import numpy as np
from numpy.typing import NDArray

from sklearn_mgk.solver.device_labels import LabelColumns
from sklearn_mgk.solver.device_layout import Entries, entry_records, node_columns
from sklearn_mgk.solver.problem import Problem


def graph_columns(
    problem: Problem, node: LabelColumns, edge: LabelColumns, entries: Entries, n_red: NDArray
) -> tuple[tuple[NDArray, ...], tuple[NDArray, ...]]:
    """Lay out what depends on the graphs and on their labels alone.

    Parameters
    ----------
    problem : Problem
        What is solved.
    node, edge : LabelColumns
        Base kernels and labels.
    entries : Entries
        Adjacency matrices, and the order of nodes.
    n_red : ndarray of shape (n_graphs,)
        Red nodes of each graph; all nodes where none are eliminated.

    Returns
    -------
    tuple of two tuples of ndarray
        Fields of ``mgk::Problem`` before the node quantities, and from there to the node labels.
    """
    labels, none = node.labels[entries.node], np.zeros(1, problem.dtype)
    node_labels = (labels.astype(np.int32), none) if node.is_table else (none, labels)
    first = (
        problem.batch.node_ptr.astype(np.int32),
        entries.row_ptr,
        entry_records(entries, edge.labels, problem.dtype),
    )
    return first, (entries.local, n_red.astype(np.int32), *node_labels)


def problem_words(
    problem: Problem,
    labels: tuple[LabelColumns, LabelColumns],
    order: NDArray,
    columns: tuple[Iterable[int], Iterable[int]],
    keep: Callable[..., list[int]],
    reach: float = np.inf,
    eval_gradient: bool = False,
) -> list[int]:
    """Return the fields of ``mgk::Problem``, each of eight bytes.

    Parameters
    ----------
    problem : Problem
        What is solved.
    labels : tuple of LabelColumns
        Node and edge kernel.
    order : ndarray of shape (n_nodes,)
        Row of the batch's node columns at each position.
    columns : tuple
        Addresses of what `graph_columns` gave.
    keep : callable
        Gives the addresses of all other columns, ``keep(*columns)``.
    reach : float, default=inf
        Edges whose keys differ by more are negligible together.
    eval_gradient : bool, default=False
        Whether derivatives are computed.
    """
    (node, edge), (first, last) = labels, columns
    limits, none = np.finfo(problem.dtype), np.zeros(1, problem.dtype)
    tiny, epsilon = float(limits.tiny) * 1e10, float(limits.eps) * 8
    parts = (
        node_columns(problem, order),
        (node.values, node.slopes, node.theta),
        (none, none, edge.values, edge.slopes, edge.theta),
    )
    kept = iter(keep(*chain(*parts)))
    quantities, node_words, edge_words = (list(islice(kept, len(part))) for part in parts)
    reals = np.array([problem.tol, tiny, epsilon, min(reach, float(limits.max) / 4)])
    return [
        *first,
        *quantities,
        *last,
        *node_words,
        node.n_labels,
        *edge_words,
        edge.n_labels,
        *reals.view(np.uint64),
        problem.max_iter,
        problem.min_steps,
        problem.n_categories if eval_gradient else 0,
        problem.trainable_stop,
        problem.n_theta if eval_gradient else 0,
    ]
