# SPDX-License-Identifier: BSD-3-Clause
"""Plans of a GPU in plain Python: what the planning on the device must come to."""

import math
from itertools import pairwise

import numpy as np

from sklearn_mgk.propagation.cuda_plan import _LONG, _PIECE
from sklearn_mgk.propagation.matrices import ROW_COST


def ptr_of(lengths):
    """Return where rows of these lengths begin."""
    return np.append(0, np.cumsum(np.asarray(lengths, np.int64)))


def expected_plan(lengths, engine, n_blocks):
    """Return engine, threshold, order and items of a plan for rows of these lengths."""
    mean, deviation, most = np.mean(lengths), np.std(lengths), max(lengths)
    if engine == "auto":
        engine = "degree" if deviation > mean else "rows" if most <= 32 else "heavy"
    if engine == "rows":
        items = [[0, a, b, 0, 0] for a, b in cuts(lengths, sum_work(lengths), n_blocks)]
        return engine, math.inf, np.arange(len(lengths)), np.array(items)
    threshold = mean + deviation / 2
    threshold = max(threshold, 33.0) if engine == "heavy" else threshold
    least = threshold if engine == "heavy" else 0
    light = _LONG + 2
    bins = [0 if n > _LONG else _LONG + 1 - n if n >= least else light for n in lengths]
    order = np.argsort(bins, kind="stable")
    n_long, n_sorted = bins.count(0), len(bins) - bins.count(light)
    items, rows = pieces([lengths[r] for r in order[:n_long]]), [lengths[r] for r in order[n_long:]]
    for first, last in cuts(rows, sum_work(lengths), n_blocks) if rows else ():
        block = rows[first:last]
        dense = block and n_long + last <= n_sorted and sum(block) >= threshold * len(block)
        team = min(8, 1 << max(0, math.ceil(block[0] / 32) - 1).bit_length()) if dense else 0
        items.append([team, n_long + first, n_long + last, 0, 0])
    return engine, threshold, order, np.array(items).reshape(-1, 5)


def sum_work(lengths):
    return sum(lengths) + ROW_COST * len(lengths)


def cuts(lengths, whole, n_blocks):
    """Return first and last of as many equal shares of the work as the rows have of the whole."""
    work = [0]
    for n in lengths:
        work.append(work[-1] + n + ROW_COST)
    n_blocks = min(-(-work[-1] * n_blocks // whole), len(lengths))
    ends, place = [], 0
    for k in range(n_blocks + 1):
        while work[place] * n_blocks < k * work[-1]:
            place += 1
        ends.append(place)
    return list(pairwise(ends))


def pieces(lengths):
    """Return items for the pieces of long rows."""
    items = []
    for row, n in enumerate(lengths):
        slot, n_pieces = len(items), math.ceil(n / _PIECE)
        items += [[-1, row, piece, slot, n_pieces] for piece in range(n_pieces)]
    return items
