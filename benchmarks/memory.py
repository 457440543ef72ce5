# SPDX-License-Identifier: BSD-3-Clause
"""Peak memory of the Gram matrix of 5000 molecules, beyond the matrix itself (Linux).

Lipophilicity and ESOL together, in a process of its own, with the memory held before the call (the
libraries, the graphs) taken off. A loose tolerance shortens the solves and changes no array.
"""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path

import timing  # first: sets the number of threads
import workloads

from sklearn_mgk import from_smiles


def main():
    command = timing.parser(__doc__)
    command.add_argument("--graphs", type=int, default=5000, help="molecules, default 5000")
    command.add_argument("--tol", type=float, default=0.3, help="tolerance, default 0.3")
    command.add_argument("--gradient", action="store_true", help="measure derivatives as well")
    command.add_argument("--measure", action="store_true", help="measure here, print one line")
    options = command.parse_args()
    if options.measure:
        print(*measure(options))
        return
    run = subprocess.run(
        [sys.executable, __file__, *sys.argv[1:], "--measure"],
        capture_output=True,
        text=True,
        check=True,
    )
    matrix, more, took, distinct = map(float, run.stdout.split())
    what = f"Gram matrix of {options.graphs} molecules ({distinct:.0f} distinct)"
    what += " with gradient" if options.gradient else ""
    timing.show(
        ["what", "result itself", "peak beyond it", "target", "time"],
        [[what, f"{matrix:.0f} MB", f"{more:.0f} MB", "≤ 200 MB", f"{took:.0f} s"]],
    )


def measure(options) -> tuple[float, float, float, int]:
    """Memory of the result [MB], peak beyond it [MB], time [s], distinct SMILES."""
    rows = [
        row["smiles"]
        for name in ("lipophilicity", "esol")
        for row in workloads.read_rows(options.data, name)
    ]
    smiles = rows[-options.graphs :]
    batch = from_smiles(smiles)
    kernel = workloads.molecule_kernel(tol=options.tol, cache_size=128)
    kernel(from_smiles(["CCO", "c1ccccc1"]), eval_gradient=options.gradient)  # loads the libraries
    before = resident()
    reset_peak()
    begin = time.perf_counter()
    result = kernel(batch, eval_gradient=options.gradient)
    took = time.perf_counter() - begin
    arrays = result if options.gradient else (result,)
    own = sum(array.nbytes for array in arrays) / 1e6
    return own, peak() - before - own, took, len(set(smiles))


def resident() -> float:
    """Memory in use [MB]."""
    return _status("VmRSS")


def peak() -> float:
    """Largest memory in use so far [MB]."""
    return _status("VmHWM")


def reset_peak() -> None:
    """Let the peak start from the memory in use."""
    Path("/proc/self/clear_refs").write_text("5")


def _status(name: str) -> float:
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith(name + ":"):
            return int(line.split()[1]) * 1024 / 1e6
    raise OSError(f"/proc/self/status has no {name}")


if __name__ == "__main__":
    main()
