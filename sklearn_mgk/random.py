# SPDX-License-Identifier: BSD-3-Clause
"""Random numbers for compiled code, one sequence for each item, whatever thread works on it.

SplitMix64 of Steele, Lea and Flood, https://doi.org/10.1145/2660193.2660195.
"""

from __future__ import annotations

import numpy as np
from numba import njit

_STEP = np.uint64(0x9E3779B97F4A7C15)
_FACTORS = np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB)
_SHIFTS = np.uint64(30), np.uint64(27), np.uint64(31), np.uint64(11)
_UNIT = 2.0**-53


@njit(cache=True, nogil=True)
def _mix(word):
    word = (word ^ (word >> _SHIFTS[0])) * _FACTORS[0]
    word = (word ^ (word >> _SHIFTS[1])) * _FACTORS[1]
    return word ^ (word >> _SHIFTS[2])


@njit(cache=True, nogil=True)
def first_state(seed, item):
    """State at which the sequence of an item begins; seed and state are uint64."""
    return _mix(_mix(seed + _STEP) + np.uint64(item) * _STEP)


@njit(cache=True, nogil=True)
def uniform(state):
    """Return a number in [0, 1), and the next state."""
    state = state + _STEP
    return np.float64(_mix(state) >> _SHIFTS[3]) * _UNIT, state
