# SPDX-License-Identifier: BSD-3-Clause
"""Checks of base kernel values on the labels that occur."""

import numpy as np

from sklearn_mgk.base_kernels.labels import Labels
from sklearn_mgk.graphs.columns import as_lists, take

# Rounding of a value that is 1 or symmetric in exact arithmetic, over a few dozen operations.
ROUNDING = 1e-12


def check_table(table, what: str, labels, other=None) -> None:
    """Raise unless a table of base kernel values is finite, symmetric and within [0, 1].

    Parameters
    ----------
    table : ndarray of shape (n_labels, n_other), float64
        Values between labels.
    what : str
        Name of the kernel in messages, ``"node_kernel"`` or ``"edge_kernel"``.
    labels : Labels or dict of str to column
        The labels along the rows.
    other : Labels or dict of str to column, optional
        The labels along the columns. Default: those of the rows; only then symmetry is checked.

    Raises
    ------
    ValueError
        Naming the kernel, the value, the two labels and the remedy.
    """

    def fail(bad, problem, remedy):
        i, j = np.unravel_index(np.argmax(bad), bad.shape)
        where = f"{describe_label(labels, i)} and {describe_label(other or labels, j)}"
        value = f"{table[i, j]:.10g}"
        raise ValueError(f"{what} is {value} between the labels {where}: {problem}. {remedy}")

    finite = np.isfinite(table)
    if not finite.all():
        fail(~finite, "it has to be finite", "Check its hyperparameters and the attribute.")
    if other is None:
        asymmetric = np.abs(table - table.T) > ROUNDING
        if asymmetric.any():
            i, j = np.unravel_index(np.argmax(asymmetric), asymmetric.shape)
            problem = f"it has to be symmetric, but is {table[j, i]:.10g} the other way round"
            fail(asymmetric, problem, "Symmetrise it, for example as (f(x, y) + f(y, x)) / 2.")
    if (table < 0).any():
        fail(
            table < 0, "it has to lie in [0, 1]", "Use non-negative features, or square it (** 2)."
        )
    if (table > 1 + ROUNDING).any():
        remedy = "Use Normalized(...), scale it by a constant, or choose narrower bounds."
        fail(table > 1 + ROUNDING, "it has to lie in [0, 1]", remedy)


def describe_label(labels, index: int) -> str:
    """Spell out one label, as in ``(element='C', charge=0)``."""
    columns = labels.columns if isinstance(labels, Labels) else labels
    parts = [f"{name}={_row(column, index)!r}" for name, column in columns.items()]
    return f"({', '.join(parts)})"


def _row(column, index: int):
    """One row of a column as plain Python."""
    row = take(column, np.array([index]))
    return row.tolist()[0] if isinstance(row, np.ndarray) else as_lists(row).values.tolist()
