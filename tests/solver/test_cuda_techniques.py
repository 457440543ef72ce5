# SPDX-License-Identifier: BSD-3-Clause
"""Every combination of the paper's techniques gives the same values; needs a device."""

from itertools import product

import numpy as np
import pytest
from cases import GRAPH_SETS, make_kernel, random_graph
from numpy.testing import assert_allclose, assert_array_equal
from oracles import as_batch

from sklearn_mgk.plan import make_problem
from sklearn_mgk.solver import device_labels, get_backend
from sklearn_mgk.solver.techniques import Techniques

pytestmark = pytest.mark.gpu
GRAPHS = [
    *GRAPH_SETS["loops and parallel edges"],
    *(random_graph(n, 0.25, n) for n in (1, 8, 17, 33)),
    random_graph(40, 0.6, 1),
]
SWITCHES = [
    {"on_the_fly": False, "order": "natural"},
    *(
        {"octiles": octiles, "order": order, "adaptive": adaptive, "shared_tiles": shared}
        for octiles, order, adaptive, shared in product(
            (False, True), ("natural", "rcm"), (False, True), (False, True)
        )
    ),
]


@pytest.fixture(params=["table", "code"])
def representation(request, monkeypatch):
    limit = 10**6 if request.param == "table" else 0
    monkeypatch.setattr(device_labels, "MAX_TABLE_LABELS", limit)


def solve(techniques, dtype="float64", **options):
    """Values of all pairs by the techniques and by the reference."""
    from sklearn_mgk.solver.cuda_techniques import TechniqueSolver

    batch = as_batch(GRAPHS)
    pairs = np.stack(np.triu_indices(len(GRAPHS)), axis=1)
    reference = make_kernel("product", "product", "reference", **options)
    expected = get_backend("reference").solver(make_problem(reference, batch), False)(pairs)
    problem = make_problem(reference.set_params(dtype=dtype), batch)
    return TechniqueSolver(problem, techniques)(pairs), expected.values


@pytest.mark.parametrize("dynamic", [False, True])
@pytest.mark.parametrize("switches", SWITCHES, ids=lambda s: "-".join(map(str, s.values())))
def test_values_of_every_combination(representation, switches, dynamic):
    found, expected = solve(Techniques(**switches, dynamic=dynamic))
    assert_allclose(found.values, expected, rtol=1e-9)
    assert_array_equal(found.outcome, 0)


@pytest.mark.parametrize("warps", [1, 2, 8])
@pytest.mark.parametrize("shared", [False, True])
def test_any_number_of_warps(representation, warps, shared):
    found, expected = solve(Techniques(order="rcm", shared_tiles=shared, warps=warps))
    assert_allclose(found.values, expected, rtol=1e-9)


@pytest.mark.parametrize("switches", [SWITCHES[0], SWITCHES[-1]], ids=["naive", "all"])
def test_single_precision_and_shortest_walks(representation, switches):
    found, expected = solve(Techniques(**switches), "float32")
    assert_allclose(found.values, expected, rtol=3e-6)
    found, expected = solve(Techniques(**switches), options="min_steps")
    assert_allclose(found.values, expected, rtol=1e-9)


def test_product_matrices_in_several_launches(monkeypatch):
    from sklearn_mgk.solver import cuda_techniques

    monkeypatch.setattr(cuda_techniques, "free_memory", lambda: 36 * 10**6)
    found, expected = solve(Techniques(on_the_fly=False, order="natural"))
    assert_allclose(found.values, expected, rtol=1e-9)
    monkeypatch.setattr(cuda_techniques, "free_memory", lambda: 10**5)
    with pytest.raises(MemoryError, match="keep on_the_fly=True"):
        solve(Techniques(on_the_fly=False, order="natural"))
