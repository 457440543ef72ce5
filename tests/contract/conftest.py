# SPDX-License-Identifier: BSD-3-Clause
"""Fixtures of the tests of what scikit-learn and its users expect."""

import pytest
from contract.molecules import SMILES

from sklearn_mgk import clear_cache, from_smiles
from sklearn_mgk.solver.cpu import CPUBackend


@pytest.fixture(scope="session")
def graphs():
    """Batch of the molecules."""
    return from_smiles(SMILES)


@pytest.fixture(autouse=True)
def _fresh_cache():
    """Let no test read the values of another."""
    clear_cache()
    yield
    clear_cache()


class Solves:
    """What the CPU backend was asked to solve."""

    def __init__(self):
        self.calls = []

    @property
    def n_pairs(self):
        """Number of pairs in all calls."""
        return sum(map(len, self.calls))


@pytest.fixture
def solves(monkeypatch):
    """Record of the pairs that the CPU backend is asked to solve."""
    record, prepare = Solves(), CPUBackend.solver

    def recording(self, problem, eval_gradient):
        solve = prepare(self, problem, eval_gradient)

        def recorded(pairs, nodal=None):
            record.calls.append(pairs)
            return solve(pairs, nodal)

        return recorded

    monkeypatch.setattr(CPUBackend, "solver", recording)
    return record
