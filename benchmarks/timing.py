# SPDX-License-Identifier: BSD-3-Clause
"""Shared by the benchmarks: threads, times, the machine, Markdown tables.

Import it before `sklearn_mgk`: numba reads the number of threads when it is first imported.
"""

from __future__ import annotations

import argparse
import datetime
import os
import platform
import time
from collections.abc import Callable, Iterable, Sequence
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

os.environ.setdefault("NUMBA_NUM_THREADS", "2")
THREADS = int(os.environ["NUMBA_NUM_THREADS"])


def parser(description: str | None, data: bool = True) -> argparse.ArgumentParser:
    """Return a command line; with `data`, it asks for the folder of the data sets."""
    found = argparse.ArgumentParser(
        description=description, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    if data:
        found.add_argument(
            "--data", type=Path, required=True, help="folder that holds molecules/ and tu/"
        )
    return found


def times(run: Callable, repeats: int = 3, warm_up: bool = True) -> list[float]:
    """Return times of some calls [s], the shortest first, after one that does not count."""
    if warm_up:
        run()
    found = []
    for _ in range(repeats):
        begin = time.perf_counter()
        run()
        found.append(time.perf_counter() - begin)
    return sorted(found)


def seconds(run: Callable, repeats: int = 3, warm_up: bool = True) -> float:
    """Median time of a call [s]; see `times`."""
    return times(run, repeats, warm_up)[repeats // 2]


def machine() -> str:
    """One line on the machine and the libraries."""
    names = ["numpy", "scipy", "scikit-learn", "numba", "rdkit"]
    libraries = ", ".join(f"{name} {version_of(name)}" for name in names)
    return (
        f"Machine: {_processor()}, {os.cpu_count()} cores, {THREADS} threads used; "
        f"load {os.getloadavg()[0]:.1f} at the end; Python {platform.python_version()}, "
        f"{libraries}; {datetime.date.today()}."
    )


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.processor() or platform.machine()
    fields = (line.partition(":") for line in lines)
    about = {name.strip(): value.strip() for name, _, value in fields}
    parts = (about.get(key, "?") for key in ("model name", "cpu family", "model"))
    return "{} (family {}, model {})".format(*parts)


def version_of(package: str) -> str:
    """Version of an installed distribution, or "not installed"."""
    try:
        return version(package)
    except PackageNotFoundError:
        return "not installed"


def show(header: Sequence[str], rows: Iterable[Sequence]) -> None:
    """Print a Markdown table and the machine."""
    print()
    for row in [header, ["---"] * len(header), *rows]:
        print("| " + " | ".join(str(cell) for cell in row) + " |")
    print()
    print(machine(), flush=True)


def number(value: float, digits: int = 3) -> str:
    """Write a number with some significant digits and thousands separators."""
    if value == 0 or not abs(value) < float("inf"):
        return f"{value:g}"
    if abs(value) < 1e-3:
        return f"{value:.1e}"
    rounded = float(f"{value:.{digits}g}")
    return f"{rounded:,.0f}" if abs(rounded) >= 10 ** (digits - 1) else f"{rounded:g}"
