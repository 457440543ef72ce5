# SPDX-License-Identifier: BSD-3-Clause
"""Times around the solve: imports, the first call of a process, SMILES to graphs.

Each import and each first call is timed in processes of their own, on a warm compile cache unless
``--cold`` asks for the time of compiling as well.
"""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import timing  # first: sets the number of threads

FIRST_CALL = """
import sys, time
sys.path.insert(0, {folder!r})
import timing, workloads
from sklearn_mgk import from_smiles
def graphs(): return from_smiles(["CC(=O)Nc1ccc(O)cc1", "c1ccccc1O", "CCO", "CC#N", "C1CC1=O"] * 4)
kernel = workloads.{kernel}()
def call():
    batch = graphs()
    begin = time.perf_counter()
    kernel(batch, eval_gradient={gradient})
    return time.perf_counter() - begin
first = call()
print(first - sorted(call() for _ in range(5))[2])
"""
IMPORT = """
import time
begin = time.perf_counter()
{statement}
print(time.perf_counter() - begin)
"""
WHOLE = """
from sklearn_mgk import MarginalizedGraphKernel, from_smiles
from sklearn_mgk.base_kernels import KroneckerDelta
MarginalizedGraphKernel(KroneckerDelta("element"))(from_smiles(["CCO", "CCN", "c1ccccc1"]))
"""


def main():
    command = timing.parser(__doc__)
    command.add_argument("--processes", type=int, default=7, help="per figure, default 7")
    command.add_argument("--cold", action="store_true", help="also with an empty compile cache")
    options = command.parse_args()
    rows = [*imports(options.processes), *first_calls(options.processes)]
    if options.cold:
        with tempfile.TemporaryDirectory() as folder:
            rows.append(
                ["script of a first Gram matrix, empty compile cache", f"{whole(folder):.1f} s", ""]
            )
    rows += smiles_to_graphs(options.data)
    timing.show(["what", "measured", "target"], rows)


def python(code: str, **environment: str) -> str:
    """Output of a program in a new process."""
    run = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", code],
        env=os.environ | environment,
        capture_output=True,
        text=True,
        check=True,
    )
    return run.stdout


def imports(n: int) -> list[list[str]]:
    """Time of imports next to those of scikit-learn, taken in turn."""
    loaded = python(
        "import sys, sklearn_mgk; names = 'numba sympy rdkit networkx sklearn.gaussian_process';"
        "print(*[name for name in names.split() if name in sys.modules])"
    ).split()
    return [
        compare_imports(n, "import sklearn_mgk", "import sklearn", "≤ 1.3"),
        ["heavy libraries that it loads", ", ".join(loaded) or "none", "none"],
        compare_imports(
            n,
            "from sklearn_mgk import MarginalizedGraphKernel",
            "from sklearn.gaussian_process import GaussianProcessRegressor",
            "",
        ),
    ]


def compare_imports(n: int, ours: str, theirs: str, target: str) -> list[str]:
    """Median times of two imports in new processes."""
    times: dict[str, list[float]] = {ours: [], theirs: []}
    for k in range(n + 1):  # the first reads the files from the disk
        for statement, found in times.items():
            took = float(python(IMPORT.format(statement=statement)))
            found += [took] if k else []
    first, second = (statistics.median(found) for found in times.values())
    return [
        f"`{ours}`, relative to `{theirs}`",
        f"{first / second:.2f} ({first * 1e3:.0f} ms, {second * 1e3:.0f} ms)",
        target,
    ]


def first_calls(n: int) -> list[list[str]]:
    """Time of the first Gram matrix of a process beyond that of later ones."""
    rows = []
    folder = str(Path(__file__).resolve().parent)
    for name, kernel, gradient in (
        ("values", "molecule_kernel", False),
        ("values and gradient", "molecule_kernel", True),
    ):
        code = FIRST_CALL.format(folder=folder, kernel=kernel, gradient=gradient)
        python(code)
        took = statistics.median(float(python(code)) for _ in range(n))
        rows.append([f"first call of a process, {name}, over later ones", f"{took:.2f} s", "≤ 1 s"])
    python(WHOLE)
    took = statistics.median(whole() for _ in range(n))
    rows.append(["script of a first Gram matrix, start of Python included", f"{took:.2f} s", ""])
    return rows


def whole(cache: str | None = None) -> float:
    """Time of a process that imports, reads three molecules and prints nothing."""
    begin = time.perf_counter()
    python(WHOLE, **({"NUMBA_CACHE_DIR": cache} if cache else {}))
    return time.perf_counter() - begin


def smiles_to_graphs(data: Path) -> list[list[str]]:
    """Time of `from_smiles` for each molecule."""
    import workloads

    from sklearn_mgk import from_smiles

    rows = []
    for name in ("esol", "lipophilicity"):
        smiles = [row["smiles"] for row in workloads.read_rows(data, name)][:1000]
        took = timing.seconds(lambda s=smiles: from_smiles(s))
        atoms = from_smiles(smiles).sizes.mean()
        rows.append(
            [
                f"SMILES to packed batch, for each molecule ({name}, {atoms:.0f} atoms)",
                f"{took / len(smiles) * 1e3:.2f} ms",
                "≤ 1 ms",
            ]
        )
    return rows


if __name__ == "__main__":
    main()
