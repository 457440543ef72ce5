# SPDX-License-Identifier: BSD-3-Clause
"""What importing costs, and that every public name is there."""

import inspect
import subprocess
import sys

import pytest

import sklearn_mgk

HEAVY = {
    "cupy",
    "networkx",
    "numba",
    "pandas",
    "rdkit",
    "scipy.optimize",
    "sklearn.gaussian_process",
    "sympy",
    "tqdm",
}


def modules_after(code):
    """Return the modules that a new process holds after some code."""
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", f"{code}; import sys; print(*sys.modules)"],
        capture_output=True,
        text=True,
        check=True,
    )
    return set(done.stdout.split())


def test_importing_the_package_imports_nothing_heavy():
    loaded = modules_after("import sklearn_mgk; dir(sklearn_mgk)")
    assert "sklearn_mgk" in loaded
    assert not loaded & HEAVY


def test_a_kernel_of_plain_formulas_needs_neither_sympy_nor_a_source_of_graphs():
    loaded = modules_after(
        "from sklearn_mgk import MarginalizedGraphKernel, SmilesToGraphs, base_kernels as b; "
        "kernel = MarginalizedGraphKernel(b.SquaredExponential('a')); repr(kernel); "
        "kernel.node_kernel.table([1.0, 2.0])"
    )
    assert not loaded & {"cupy", "networkx", "rdkit", "sympy"}


@pytest.mark.parametrize("name", sklearn_mgk.__all__)
def test_every_public_name_resolves_and_is_documented(name):
    value = getattr(sklearn_mgk, name)
    assert inspect.getdoc(value)
    assert getattr(value, "__name__", name).split(".")[-1] == name
    assert name in dir(sklearn_mgk)


def test_star_import_gives_all_names():
    names: dict = {}
    exec("from sklearn_mgk import *", names)
    assert set(sklearn_mgk.__all__) <= set(names)
    assert len(set(sklearn_mgk.__all__)) == len(sklearn_mgk.__all__)


def test_names_stay_the_same_object():
    assert sklearn_mgk.GraphBatch is sklearn_mgk.GraphBatch
    assert sklearn_mgk.GraphBatch is sklearn_mgk.graphs.GraphBatch


def test_unknown_name():
    with pytest.raises(AttributeError, match="module 'sklearn_mgk' has no attribute 'GraphBatsh'"):
        sklearn_mgk.GraphBatsh  # noqa: B018
    with pytest.raises(ImportError, match="GraphBatsh"):
        from sklearn_mgk import GraphBatsh  # noqa: F401


def test_version():
    assert sklearn_mgk.__version__.count(".") >= 2
