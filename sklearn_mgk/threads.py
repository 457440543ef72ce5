# SPDX-License-Identifier: BSD-3-Clause
"""Plain threads that run one numba function together, each taking the next chunk of the work.

Threads of the standard library rather than numba's parallel regions: they may start from any thread
and survive a fork. The functions release the interpreter lock.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import numba
import numpy as np
from numpy.typing import NDArray

FEW = 30_000
"""Items (edges, places) below which starting threads costs more than it saves."""


def n_threads(n_items: int) -> int:
    """Return how many threads some work is worth."""
    return 1 if n_items < FEW else numba.config.NUMBA_NUM_THREADS


def run(work: Callable[[int, NDArray], None], n: int) -> None:
    """Call ``work(thread, counter)`` in n threads.

    Parameters
    ----------
    work : callable
        Takes chunks off the counter, by `atomic_add`, until none is left.
    n : int
        Number of threads; 1 calls it directly.
    """
    counter = np.zeros(1, np.int64)
    if n == 1:
        work(0, counter)
        return
    with ThreadPoolExecutor(n - 1) as pool:
        others = [pool.submit(work, thread, counter) for thread in range(1, n)]
        work(0, counter)
        for other in others:
            other.result()
