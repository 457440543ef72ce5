# SPDX-License-Identifier: BSD-3-Clause
"""Dependencies point one way, optional imports come late, and what is public is documented."""

import ast
import inspect
import subprocess
import sys
from pathlib import Path

import pytest
from numpydoc.validate import validate

import sklearn_mgk
import sklearn_mgk.base_kernels
import sklearn_mgk.propagation
import sklearn_mgk.truss

ROOT = Path(__file__).resolve().parents[1]
PACKAGE = ROOT / "sklearn_mgk"
FILES = sorted(PACKAGE.rglob("*.py"))

# Parts of the package from the bottom up: each may import those of the layers below it only.
LAYERS = [
    {"atomic", "device", "graphs", "normalization", "parameters", "random", "threads"},
    {"base_kernels", "graph_kernel", "identity", "reorder", "starting"},
    {"blocks", "octiles"},
    {"cache", "solver", "walk"},
    {"gram", "validation"},
    {"plan"},
    {"kernel"},
    {"propagation", "truss"},
]
# Libraries imported in the one function that needs them, and the only modules that may import
# them at their head (these are imported inside functions themselves).
OPTIONAL = {
    "ase": set(),
    "cupy": {
        "device.py",
        "solver/cuda.py",
        "solver/cuda_graphs.py",
        "solver/cuda_kernels.py",
        "solver/cuda_launch.py",
        "solver/cuda_memory.py",
        "solver/cuda_run.py",
        "solver/cuda_techniques.py",
    },
    "datamol": set(),
    "gemmi": set(),
    "matplotlib": set(),
    "networkx": set(),
    "pandas": set(),
    "pymetis": set(),
    "rdkit": set(),
    "sympy": {"base_kernels/symbolic.py"},
}


def imports(path):
    """Yield (absolute dotted names, whether Python runs it as the module loads) of each import."""
    tree = ast.parse(path.read_text(), filename=str(path))
    later = {
        id(node)
        for block in ast.walk(tree)
        if isinstance(block, ast.FunctionDef)
        or (isinstance(block, ast.If) and ast.unparse(block.test) == "TYPE_CHECKING")
        for node in ast.walk(block)
    }
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield [alias.name for alias in node.names], id(node) not in later
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}:{node.lineno}: imports are absolute"
            yield [f"{node.module}.{alias.name}" for alias in node.names], id(node) not in later


def part(path):
    """Return the part of the package that a file belongs to, "" for the package itself."""
    name = path.relative_to(PACKAGE).parts[0].removesuffix(".py")
    return "" if name == "__init__" else name


def name_of(path):
    return path.relative_to(PACKAGE).as_posix()


@pytest.mark.parametrize("path", [p for p in FILES if part(p)], ids=name_of)
def test_dependencies_point_one_way(path):
    layers = [number for number, names in enumerate(LAYERS) if part(path) in names]
    assert layers, f"say in LAYERS where sklearn_mgk.{part(path)} belongs"
    below = set().union(*LAYERS[: layers[0]])
    used = {
        name.split(".")[1]
        for names, _ in imports(path)
        for name in names
        if name.startswith("sklearn_mgk.")
    }
    assert used <= below | {part(path), "cuda"}


@pytest.mark.parametrize("path", FILES, ids=name_of)
def test_optional_libraries_are_imported_where_they_are_needed(path):
    at_load = {name.split(".")[0] for names, now in imports(path) if now for name in names}
    for library in at_load & set(OPTIONAL):
        assert name_of(path) in OPTIONAL[library], f"import {library} in the function that needs it"


def test_only_the_cuda_modules_import_cupy():
    users = {
        name_of(path)
        for path in FILES
        if any(name.split(".")[0] == "cupy" for names, _ in imports(path) for name in names)
    }
    assert users <= OPTIONAL["cupy"]


@pytest.mark.parametrize("path", [p for p in FILES if p.stat().st_size], ids=name_of)
def test_files_state_their_licence(path):
    assert path.read_text().startswith("# SPDX-License-Identifier: BSD-3-Clause\n")


@pytest.mark.parametrize(
    ("module", "needs"),
    [
        ("sklearn_mgk", "numpy"),
        ("sklearn_mgk.graphs", "sklearn.base"),
        ("sklearn_mgk.base_kernels", "sklearn.gaussian_process.kernels"),
    ],
)
def test_importing_is_light(module, needs):
    code = (
        f"import sys, {needs}; before = set(sys.modules)\n"
        f"import {module}; print(*set(sys.modules) - before)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    heavy = {"numba", "sklearn.gaussian_process", *OPTIONAL}
    assert not heavy & set(done.stdout.split())


PUBLIC = {
    f"{module.__name__}.{name}": getattr(module, name)
    for module in (
        sklearn_mgk,
        sklearn_mgk.base_kernels,
        sklearn_mgk.propagation,
        sklearn_mgk.truss,
    )
    for name in module.__all__
    if not inspect.ismodule(getattr(module, name))
}


@pytest.mark.parametrize("name", PUBLIC)
def test_public_names_document_their_parameters(name):
    # GL08: no docstring. PR01, PR02, PR03: parameters missing, unknown, in another order.
    errors = [
        error for error in validate(name)["errors"] if error[0] in ("GL08", "PR01", "PR02", "PR03")
    ]
    assert not errors


@pytest.mark.parametrize("name", [name for name, value in PUBLIC.items() if inspect.isclass(value)])
def test_public_methods_have_a_docstring(name):
    members = {key: value for key, value in vars(PUBLIC[name]).items() if not key.startswith("_")}
    without = [
        key
        for key, value in members.items()
        if (callable(value) or isinstance(value, property))
        and not inspect.getdoc(getattr(PUBLIC[name], key))
    ]
    assert not without
