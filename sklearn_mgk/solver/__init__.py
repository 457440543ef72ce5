# SPDX-License-Identifier: BSD-3-Clause
"""Solvers of the linear system behind the kernel, one file for each backend."""

from __future__ import annotations

from functools import cache
from importlib import import_module
from importlib.util import find_spec

from sklearn_mgk.solver.problem import Backend

BACKENDS = {
    "cuda": ("sklearn_mgk.solver.cuda", "CUDABackend"),
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
        ``"cuda"`` is among them where CuPy is installed and finds a device.

    Examples
    --------
    >>> from sklearn_mgk import available_backends
    >>> available_backends()[-2:]
    ['cpu', 'reference']
    """
    return [name for name in BACKENDS if name != "cuda" or why_no_cuda() is None]


@cache
def why_no_cuda() -> str | None:
    """Say why the CUDA backend cannot run here, and what to do; None where it can."""
    if find_spec("cupy") is None:
        return (
            "CuPy is not installed: pip install 'sklearn-mgk[cuda12]' or 'sklearn-mgk[cuda13]', "
            "as the driver allows"
        )
    return import_module(BACKENDS["cuda"][0]).why_no_device()


def get_backend(name: str) -> Backend:
    """Make the backend of that name; ``"auto"`` takes the preferred one."""
    chosen = available_backends()[0] if name == "auto" else name
    if chosen not in BACKENDS:
        raise ValueError(
            f"backend={name!r} does not exist: choose 'auto' or one of {available_backends()}"
        )
    if chosen == "cuda" and why_no_cuda() is not None:
        raise RuntimeError(f"backend='cuda' cannot run here: {why_no_cuda()}")
    module, backend = BACKENDS[chosen]
    return getattr(import_module(module), backend)()
