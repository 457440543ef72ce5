# SPDX-License-Identifier: BSD-3-Clause
"""Solvers of the linear system behind the kernel, one file for each backend."""

from __future__ import annotations

from importlib import import_module

from sklearn_mgk.solver.problem import Backend

BACKENDS = {
    "cpu": ("sklearn_mgk.solver.cpu", "CPUBackend"),
    "reference": ("sklearn_mgk.solver.reference", "ReferenceBackend"),
}
"""Module and class of each backend, the preferred one first."""


def available_backends() -> list[str]:
    """Names of the backends that work on this machine, the preferred one first.

    Returns
    -------
    list of str
        Values for the parameter ``backend`` of ``MarginalizedGraphKernel``, besides ``"auto"``.

    Examples
    --------
    >>> from sklearn_mgk import available_backends
    >>> available_backends()
    ['cpu', 'reference']
    """
    return list(BACKENDS)


def get_backend(name: str) -> Backend:
    """Make the backend of that name; ``"auto"`` takes the preferred one."""
    chosen = available_backends()[0] if name == "auto" else name
    if chosen not in BACKENDS:
        raise ValueError(
            f"backend={name!r} does not exist: choose 'auto' or one of {available_backends()}"
        )
    module, backend = BACKENDS[chosen]
    return getattr(import_module(module), backend)()
