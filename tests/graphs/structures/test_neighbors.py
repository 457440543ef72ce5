# SPDX-License-Identifier: BSD-3-Clause
"""Neighbor search against all pairs, in open space and in periodic cells."""

from itertools import combinations_with_replacement, product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sklearn_mgk.graphs.structures.neighbors import neighbor_pairs

SEEDS = st.integers(0, 2**32 - 1)


def brute_force(positions, reach, lattice=(), span=0):
    """Pairs (i, j, length): i < j for every image of j, i = j for every image but itself."""
    cells = np.array(list(product(range(-span, span + 1), repeat=len(lattice))))
    shifts = cells @ lattice if len(lattice) else np.zeros((1, 3))
    found = []
    for i, j in combinations_with_replacement(range(len(positions)), 2):
        lengths = np.linalg.norm(positions[j] + shifts - positions[i], axis=1)
        here = (lengths <= reach) & ((i < j) | cells.any(axis=1))
        found += [(i, j, length) for length in lengths[here]]
    return sorted(found)


def check(positions, reach, expected, lattice=None):
    pairs = neighbor_pairs(positions, reach, lattice)
    assert list(zip(pairs.i.tolist(), pairs.j.tolist(), strict=True)) == [e[:2] for e in expected]
    np.testing.assert_allclose(pairs.length, [e[2] for e in expected], rtol=1e-9, atol=1e-12)
    assert pairs.i.dtype == pairs.j.dtype == np.int64


@given(SEEDS, st.integers(1, 25), st.floats(0.1, 6.0))
def test_open_space(seed, n, reach):
    positions = np.random.default_rng(seed).uniform(-2, 2, (n, 3))
    check(positions, reach, brute_force(positions, reach))


@given(SEEDS, st.integers(1, 5), st.integers(1, 3), st.floats(0.5, 2.5))
def test_periodic_cells(seed, n, n_periodic, reach):
    """Skewed cells, atoms outside of them, and cells smaller than the reach."""
    rng = np.random.default_rng(seed)
    cell = np.diag(rng.uniform(1.5, 4, 3)) + rng.uniform(-0.3, 0.3, (3, 3))
    positions = rng.uniform(-1, 2, (n, 3)) @ cell
    lattice = cell[:n_periodic]
    check(positions, reach, brute_force(positions, reach, lattice, span=7), lattice)


def test_an_atom_and_its_images():
    pairs = neighbor_pairs(np.array([[5.0, 5, 5]]), 1.1, np.eye(3))
    assert pairs.i.tolist() == pairs.j.tolist() == [0] * 6
    np.testing.assert_allclose(pairs.length, 1.0)


def test_directions_that_are_not_periodic_have_no_images():
    pairs = neighbor_pairs(np.array([[0.0, 0, 0], [0, 0, 2]]), 2.5, np.array([[0, 2.2, 0]]))
    found = sorted(zip(pairs.i.tolist(), pairs.j.tolist(), pairs.length.round(6), strict=True))
    assert found == [(0, 0, 2.2), (0, 0, 2.2), (0, 1, 2.0), (1, 1, 2.2), (1, 1, 2.2)]


@pytest.mark.parametrize("lattice", [None, np.eye(3) * 30])
def test_points_out_of_reach_make_no_pairs(lattice):
    pairs = neighbor_pairs(np.array([[0.0, 0, 0], [0, 0, 9]]), 3.0, lattice)
    assert len(pairs.i) == len(pairs.j) == len(pairs.length) == 0
