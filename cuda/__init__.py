# SPDX-License-Identifier: BSD-3-Clause
"""CUDA sources of the solver, read through ``importlib.resources``."""

# From the repository root this folder is also found as ``cuda``, the name of NVIDIA's namespace
# package. Extending the path keeps ``cuda.pathfinder`` and its siblings importable there.
__path__ = __import__("pkgutil").extend_path(__path__, __name__)
