# SPDX-License-Identifier: BSD-3-Clause
"""How the CUDA solver gets at a base kernel: by a table or by code; needs no device."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from sklearn_mgk.base_kernels.codegen import feature_dims, features
from sklearn_mgk.solver.device_source import KernelForm
from sklearn_mgk.solver.problem import LabelKernel
from sklearn_mgk.solver.tables import MAX_TABLE_LABELS, check_sample, shared_table

LARGEST_TABLE = 8192
"""Distinct labels up to which a kernel that is no formula is read from a table."""


@dataclass(frozen=True)
class LabelColumns:
    """A base kernel and its labels, on the host.

    Attributes
    ----------
    form : KernelForm
        How the kernel is compiled.
    labels : ndarray of shape (n_rows,) or (n_rows, n_features)
        Number of the label of each node or edge of the batch, or its features.
    values, slopes, theta : ndarray
        Table, its derivatives, and arguments of the code; empty where they are not read.
    n_labels : int
        Distinct labels.
    key : ndarray of shape (n_rows,) or None
        Attribute that windows go by.
    """

    form: KernelForm
    labels: NDArray
    values: NDArray
    slopes: NDArray
    theta: NDArray
    n_labels: int
    key: NDArray | None = None

    @property
    def is_table(self) -> bool:
        """Whether the kernel is read from a table."""
        return not self.form.source


def represent(
    source: LabelKernel, eval_gradient: bool, dtype: np.dtype, attribute: str | None = None
) -> LabelColumns:
    """Choose how the device gets at a base kernel: by its table, or by code.

    With code, windows go by the given attribute.
    """
    kernel, labels = source.kernel, source.labels
    none, n_free = np.zeros(1, dtype), kernel.n_dims if eval_gradient else 0
    if source.n_labels > MAX_TABLE_LABELS and kernel.is_formula:
        check_sample(source)
        dims = feature_dims(labels.columns, kernel.attributes)
        rows = features(labels.columns, kernel.attributes)[labels.codes].astype(dtype)
        place, key = -1, None
        if attribute is not None:
            before = kernel.attributes[: kernel.attributes.index(attribute)]
            place = sum(max(dims[name], 1) for name in before)
            key = rows[:, place]
        form = KernelForm.of_code(kernel, dims, n_free, place)
        theta = kernel.hyperparameter_values.astype(dtype)
        return LabelColumns(form, rows, none, none, theta, 0, key)
    if source.n_labels > LARGEST_TABLE:
        raise ValueError(
            f"{source.role} {kernel!r} is no formula and meets {source.n_labels} distinct labels, "
            f"more than the {LARGEST_TABLE} of a table on the device: write it as a formula, round "
            "the labels, or use backend='cpu'"
        )
    table = shared_table(source, eval_gradient, dtype)
    slopes = np.ascontiguousarray(table.slopes.T)
    codes = labels.codes.astype(np.int64)
    return LabelColumns(KernelForm(n_free), codes, table.values, slopes, none, table.n_labels)
