# SPDX-License-Identifier: BSD-3-Clause
"""The ways in which the CPU solver gets at a base kernel give the same answers."""

import numpy as np
import pytest
from cases import GRAPH_SETS, make_kernel, random_graph
from oracles import as_batch

from sklearn_mgk import MarginalizedGraphKernel
from sklearn_mgk.base_kernels import FormulaKernel, FunctionKernel
from sklearn_mgk.plan import make_problem
from sklearn_mgk.solver import cpu, factored, tables, windows
from sklearn_mgk.solver.cpu import CPUBackend
from sklearn_mgk.solver.factored import FactorTables
from sklearn_mgk.solver.pair_tables import PairTables
from sklearn_mgk.solver.reach import WINDOW_ERROR
from sklearn_mgk.solver.tables import SharedTable
from sklearn_mgk.solver.windows import WindowCode

SMOOTH = {"edge": "smooth", "node": "product"}
NOT_FACTORED = {"tables": 1000, "pair tables": 1}
DENSE = [random_graph(n, 0.9, n, loops=loops) for n, loops in ((24, False), (17, True), (9, False))]


def representations(kernel, batch, eval_gradient=True):
    solver = CPUBackend().solver(make_problem(kernel, batch), eval_gradient)
    return type(solver.node), type(solver.edge)


@pytest.fixture(
    params=["tables", "pair tables", "numpy pair tables", "factors", "windows", "windows anew"]
)
def representation(request, monkeypatch):
    """Force one representation; gives the types expected and the node kernel to use."""
    name = request.param
    monkeypatch.setattr(tables, "MAX_TABLE_LABELS", 1000 if name == "tables" else 1)
    for gain in ("FACTOR_GAIN", "FACTOR_GAIN_OVER_WINDOWS"):
        monkeypatch.setattr(factored, gain, 2.0 if name == "factors" else 0.0)
    monkeypatch.setattr(factored, "WINDOW_LABELS", 0 if "windows" in name else 1e9)
    monkeypatch.setattr(cpu, "MAX_VALUES", 0 if name == "windows anew" else windows.MAX_VALUES)
    node = "function" if name == "numpy pair tables" else "product"
    first = SharedTable if name == "tables" else PairTables
    edge = {"factors": FactorTables, "windows": WindowCode, "windows anew": WindowCode}
    return node, (first, edge.get(name, first))


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("options", ["default", "min_steps", "additive"])
@pytest.mark.parametrize("graphs", ["dense", "loops and parallel edges", "big"])
def test_each_matches_the_reference(representation, graphs, options, dtype):
    node, types = representation
    graphs = DENSE if graphs == "big" else GRAPH_SETS[graphs]
    batch = as_batch(graphs)
    kernel = make_kernel(node, "smooth", options=options, dtype=dtype)
    found = representations(kernel, batch)
    # Few labels a node leave nothing to gain from factors.
    assert found == types or (graphs is not DENSE and types[1] is FactorTables)
    K, gradient = kernel(batch, eval_gradient=True)
    reference = make_kernel(node, "smooth", "reference", options)
    expected, slopes = reference(batch, eval_gradient=True)
    rtol = 1e-10 if dtype == "float64" else 1e-5
    np.testing.assert_allclose(K, expected, rtol=rtol)
    np.testing.assert_allclose(gradient, slopes, rtol=20 * rtol, atol=rtol * np.abs(slopes).max())
    np.testing.assert_allclose(kernel.nodal(batch), reference.nodal(batch), rtol=5 * rtol)


def test_few_labels_take_one_table():
    batch = as_batch(GRAPH_SETS["sparse"])
    assert representations(make_kernel("delta", "constant"), batch) == (SharedTable, SharedTable)


def test_many_labels_on_sparse_graphs_take_pair_tables():
    batch = as_batch([random_graph(60, 0.03, k) for k in range(20)])
    assert representations(make_kernel("delta", "smooth"), batch) == (SharedTable, PairTables)


def test_smooth_kernel_on_dense_graphs_takes_factors():
    batch = as_batch([random_graph(60, 0.9, k) for k in range(2)])
    types = representations(make_kernel("delta", "smooth"), batch)
    assert types == (SharedTable, FactorTables)


def rare_excess(x, y):
    """Return 1 everywhere but between two labels that a sample of the labels misses."""
    hit = ((x == 0.5) & (y == 1.5)) | ((x == 1.5) & (y == 0.5))
    return np.where(hit, 1.5, 1.0)


@pytest.mark.parametrize(
    "node_kernel",
    [
        FunctionKernel("charge", rare_excess),
        FormulaKernel("charge", "Piecewise((1.5, Eq(x * y, 0.75) & (Eq(x + y, 2))), (1, True))"),
    ],
)
def test_value_out_of_range_between_rare_labels_is_refused(node_kernel, monkeypatch):
    monkeypatch.setattr(tables, "MAX_TABLE_LABELS", 1)
    monkeypatch.setattr(tables, "CHECKED_LABELS", 2)
    graphs = [random_graph(6, 0.5, seed) for seed in (1, 2)]
    for graph, charge in zip(graphs, (0.5, 1.5), strict=True):
        graph.nodes = [*graph.nodes[:5], {**graph.nodes[5], "charge": charge}]
        graph.nodes[:5] = [{**node, "charge": 10.0 + i} for i, node in enumerate(graph.nodes[:5])]
    graphs[0].nodes[0] = {**graphs[0].nodes[0], "charge": -10.0}
    kernel = MarginalizedGraphKernel(node_kernel, cache_size=0)
    with pytest.raises(ValueError, match=r"node_kernel is 1\.5 between .*0\.5.*1\.5"):
        kernel(as_batch(graphs))


def test_many_labels_on_dense_graphs_take_windows():
    batch = as_batch([random_graph(60, 0.9, k) for k in range(2)])
    types = representations(make_kernel("delta", "narrow"), batch)
    assert types == (SharedTable, WindowCode)


@pytest.mark.parametrize("most_values", [0, windows.MAX_VALUES])
@pytest.mark.parametrize("graphs", ["big", "loops and parallel edges", "dense"])
def test_windows_leave_out_no_more_than_their_bound_allows(graphs, most_values, monkeypatch):
    allowed = 1e-3
    monkeypatch.setattr(tables, "MAX_TABLE_LABELS", 1)
    monkeypatch.setattr(factored, "FACTOR_GAIN_OVER_WINDOWS", 0.0)
    monkeypatch.setattr(factored, "WINDOW_LABELS", 0)
    monkeypatch.setattr(cpu, "MAX_VALUES", most_values)
    monkeypatch.setitem(WINDOW_ERROR, np.dtype("float64"), allowed)
    batch = as_batch(DENSE if graphs == "big" else GRAPH_SETS[graphs])
    kernel = make_kernel("delta", "narrow")
    assert representations(kernel, batch)[1] is WindowCode
    values = make_kernel("delta", "narrow", "reference").nodal(batch)
    lost = values - kernel.nodal(batch)
    assert lost.min() > -1e-9 * values.max()
    assert 1e-8 * values.max() < lost.max() <= allowed * values.max()
