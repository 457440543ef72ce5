# SPDX-License-Identifier: BSD-3-Clause
"""What users get wrong, met where they meet it: in the kernel and in a pipeline.

Each mistake is an error that names the place and the remedy, before anything is solved.
"""

import re
from types import SimpleNamespace

import networkx as nx
import numpy as np
import pandas as pd
import pytest
from contract.molecules import IS_ALCOHOL, SMILES, TARGET, make_kernel, make_svc
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.exceptions import ConvergenceWarning
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.pipeline import make_pipeline

from sklearn_mgk import (
    GraphBatch,
    MarginalizedGraphKernel,
    NetworkXToGraphs,
    SmilesToGraphs,
    StartingProbability,
    from_arrays,
    from_networkx,
    from_smiles,
    valid_smiles,
)
from sklearn_mgk.base_kernels import (
    Constant,
    Convolution,
    DotProduct,
    FormulaKernel,
    FunctionKernel,
    KroneckerDelta,
    Normalized,
    RationalQuadratic,
    SquaredExponential,
)


def smiles_gp():
    return make_pipeline(SmilesToGraphs(), GaussianProcessRegressor(make_kernel(), optimizer=None))


every_model = pytest.mark.parametrize(
    ("model", "target"), [(make_svc, IS_ALCOHOL), (smiles_gp, TARGET)], ids=["svc", "gp"]
)


def with_row_12(value):
    return [*SMILES[:12], value, *SMILES[13:]]


# Molecules -------------------------------------------------------------------------------------

BAD_ROWS = {
    "invalid": ("C1CC", r"row 12: 'C1CC' is not a valid SMILES"),
    "valence": ("CC(C)(C)(C)C", r"row 12: 'CC\(C\)\(C\)\(C\)C' is not a valid SMILES .*valence"),
    "empty": ("", r"row 12: .*empty"),
    "blank": ("  ", r"row 12: .*empty"),
    "none": (None, r"row 12: None"),
    "nan": (float("nan"), r"row 12: nan"),
    "number": (3, r"row 12: 3 \(int\)"),
    "dummy": ("CC*", r"row 12: 'CC\*' has a dummy atom"),
}


@every_model
@pytest.mark.parametrize(("value", "message"), BAD_ROWS.values(), ids=BAD_ROWS)
def test_row_that_is_no_molecule(value, message, model, target, solves):
    rows = with_row_12(value)
    with pytest.raises(ValueError, match=message) as raised:
        model().fit(rows, target)
    assert "valid_smiles(X)" in str(raised.value), "the remedy is missing"
    fitted = model().fit(SMILES, target)
    solves.calls.clear()
    with pytest.raises(ValueError, match=message):
        fitted.predict(rows)
    assert not solves.calls
    good = valid_smiles(rows)
    assert np.flatnonzero(~good).tolist() == [12]
    assert fitted.predict(np.array(rows, dtype=object)[good]).shape == (23,)


def test_no_row_is_lost():
    assert make_pipeline(SmilesToGraphs(), make_kernel()).fit_transform(SMILES).shape == (24, 24)
    with pytest.raises(ValueError, match=r"row 3: .*; row 12: "):
        from_smiles([*SMILES[:3], "", *SMILES[4:12], None])


@every_model
@pytest.mark.parametrize(
    ("X", "message"),
    [
        ([], "empty"),
        ("CCO", r"wrap a single one in a list"),
        ((s for s in SMILES), r"generator.*pass list\(X\)"),
        (iter(SMILES), r"pass list\(X\)"),
        (pd.DataFrame({"smiles": SMILES, "y": TARGET}), r"one column .*select the column"),
        (np.array([SMILES[:12], SMILES[12:]], dtype=object).T, r"one column"),
        (None, "NoneType"),
    ],
    ids=["empty", "string", "generator", "iterator", "two columns", "two columns in array", "none"],
)
def test_molecules_in_a_form_without_rows(X, message, model, target, solves):
    with pytest.raises((TypeError, ValueError), match=message):
        model().fit(X, target)
    assert not solves.calls


@every_model
@pytest.mark.parametrize(
    "form",
    [
        tuple,
        np.array,
        lambda rows: np.array(rows, dtype=object).reshape(-1, 1),
        lambda rows: pd.Series(rows, index=range(7, 31)),
        lambda rows: pd.DataFrame({"smiles": rows}),
        lambda rows: pd.DataFrame({"smiles": pd.array(rows, dtype="string")}),
    ],
    ids=["tuple", "array", "column", "series", "frame", "string frame"],
)
def test_one_column_of_molecules_is_accepted(form, model, target):
    expected = model().fit(SMILES, target).predict(SMILES)
    assert_allclose(model().fit(form(SMILES), target).predict(form(SMILES)), expected)


@pytest.mark.parametrize(
    "row", ["CCO", None, 3.0, nx.path_graph(2)], ids=lambda row: type(row).__name__
)
def test_rows_that_are_no_graphs(row, graphs, solves):
    message = rf"row 2 of X is of type {type(row).__name__}, .*SmilesToGraphs.*NetworkXToGraphs"
    kernel = make_kernel().fit(graphs)
    for call in (kernel, kernel.diag, kernel.nodal, make_kernel().fit, kernel.transform):
        with pytest.raises(TypeError, match=message):
            call([graphs[0], graphs[1], row])
    with pytest.raises(TypeError, match=message.replace("of X", "of [XY]")):
        kernel(graphs, [graphs[0], graphs[1], row])
    assert not solves.calls


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda batch: [], "empty"),
        (lambda batch: batch[:0], "empty|at least one"),
        (lambda batch: batch[0], r"wrap a single one in a list, \[x\]"),
        (lambda batch: (graph for graph in batch), r"pass list\(X\)"),
        (lambda batch: {"a": batch[0]}, "sequence of graphs"),
        (lambda batch: 3, "sequence of graphs"),
    ],
    ids=["empty list", "empty batch", "graph", "generator", "dict", "number"],
)
def test_graphs_in_a_form_without_rows(make, message, graphs, solves):
    kernel = make_kernel().fit(graphs)
    for call in (kernel, kernel.diag, kernel.nodal, kernel.transform, make_kernel().fit):
        with pytest.raises((TypeError, ValueError), match=message):
            call(make(graphs))
    assert not solves.calls


# Graphs ----------------------------------------------------------------------------------------


def labeled(**attributes):
    """Return the path C - C - O with other attributes of node 1 and edge (0, 1); None removes."""
    graph = nx.path_graph(3)
    nx.set_node_attributes(graph, dict(enumerate("CCO")), "element")
    nx.set_node_attributes(graph, 0.5, "charge")
    nx.set_edge_attributes(graph, 1.0, "order")
    for name, value in attributes.items():
        owner = graph.edges[0, 1] if name in ("weight", "order") else graph.nodes[1]
        owner[name] = value
        if value is None:
            del owner[name]
    return graph


def graph_svc(**changes):
    """Return a pipeline that reads `element`, `charge` and `order`."""
    nodes = KroneckerDelta("element", h=0.3) * SquaredExponential("charge")
    return make_pipeline(NetworkXToGraphs(), make_kernel(node_kernel=nodes, **changes))


BAD_GRAPHS = {
    "no nodes": (nx.Graph(), "graph 3 has no nodes"),
    "directed": (nx.path_graph(3, nx.DiGraph), r"graph 3 is directed.*to_undirected\(\)"),
    "node lacks": (labeled(charge=None), r"attribute 'charge' .*graph 3, node 1 lacks it"),
    "edge lacks": (labeled(order=None), r"attribute 'order' .*graph 3, edge \(0, 1\) lacks it"),
    "mixed node": (labeled(charge="big"), r"'charge' .*graph 3, node 1.*string \('big'\)"),
    "mixed edge": (labeled(order="single"), r"'order' .*graph 3, edge \(0, 1\).*'single'"),
    "object": (labeled(charge=object()), r"'charge' .*graph 3, node 1.*object"),
    "nan node": (labeled(charge=float("nan")), r"graph 3, node 1: attribute 'charge' is nan"),
    "inf node": (labeled(charge=float("inf")), r"graph 3, node 1: attribute 'charge' is inf"),
    "nan edge": (labeled(order=float("nan")), r"graph 3, edge 0: attribute 'order' is nan"),
    "negative weight": (labeled(weight=-1.0), r"graph 3, edge 0 has weight -1"),
    "nan weight": (labeled(weight=float("nan")), r"graph 3, edge 0 has weight nan"),
    "inf weight": (labeled(weight=float("inf")), r"graph 3, edge 0 has weight inf"),
    "word weight": (labeled(weight="heavy"), r"graph 3, edge \(0, 1\).*'weight' is 'heavy'"),
}


@pytest.mark.parametrize(("graph", "message"), BAD_GRAPHS.values(), ids=BAD_GRAPHS)
def test_graph_that_cannot_be_used(graph, message, solves):
    good = [labeled(), labeled(charge=1.0), labeled()]
    model = graph_svc()
    with pytest.raises(ValueError, match=message):
        model.fit_transform([*good, graph])
    assert not solves.calls
    model.fit(good)
    with pytest.raises(ValueError, match=message):
        model.transform([*good, graph])
    assert not solves.calls


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"node_kernel": KroneckerDelta("symbool")}, r"no node attribute 'symbool'.*'element'"),
        ({"edge_kernel": KroneckerDelta("element")}, r"no edge attribute 'element'.*'order'"),
        ({"starting_probability": "p"}, r"no node attribute 'p'.*'element'"),
        ({"stopping_probability": "q"}, r"no node attribute 'q'.*'element'"),
        (
            {"starting_probability": StartingProbability("symbol", ("C",), (1.0,))},
            r"no node attribute 'symbol'.*'element'",
        ),
    ],
    ids=lambda value: next(iter(value)) if isinstance(value, dict) else "",
)
def test_attribute_that_no_graph_has(changes, message, graphs, solves):
    kernel = make_kernel(**changes)
    for call in (kernel, kernel.diag, kernel.nodal, lambda X: kernel(X, eval_gradient=True)):
        with pytest.raises(ValueError, match=message):
            call(graphs)
    assert not solves.calls


def test_attribute_that_the_other_side_lacks_or_holds_otherwise(solves):
    kernel = graph_svc()[1]
    good = from_networkx([labeled(), labeled()])
    for bad, message in [
        (labeled(charge=None), "'charge' cannot be used: .*graph 0"),
        (labeled(charge=float("nan")), "attribute 'charge' is nan"),
    ]:
        with pytest.raises(ValueError, match=message):
            kernel.fit(good).transform(from_networkx([bad]))
        with pytest.raises(ValueError, match=message):
            kernel.fit(from_networkx([bad])).transform(good)
    words = nx.path_graph(3)
    nx.set_node_attributes(words, "C", "element")
    nx.set_node_attributes(words, "neutral", "charge")
    nx.set_edge_attributes(words, 1.0, "order")
    with pytest.raises(ValueError, match=r"'charge' cannot be used: graph 1: .*string"):
        kernel(from_networkx([words]), good)
    assert not solves.calls


def test_the_number_of_a_graph_is_that_on_its_own_side(solves):
    good = from_networkx([labeled()] * 3)
    bad = from_networkx([labeled(), labeled(charge=float("nan"))])
    kernel = graph_svc()[1]
    for call in (kernel.fit(good).transform, kernel.fit(bad).transform):
        with pytest.raises(ValueError, match="graph 1, node 1: attribute 'charge' is nan"):
            call(good if kernel.graphs_ is bad else bad)
    assert not solves.calls


def test_unused_attributes_may_be_anything(solves):
    odd = labeled(note=object(), charge=0.25)
    assert graph_svc().fit_transform([labeled(), odd, labeled()]).shape == (3, 3)


def test_weights_of_zero_are_no_edges():
    def batch(**edges):
        elements = ["C", "O", "N"]
        return from_arrays([{"nodes": {"element": elements}, **edges}])

    kernel = MarginalizedGraphKernel(KroneckerDelta("element", h=0.3))
    probe = batch(edge_index=[[0, 1], [1, 2]])
    zero = batch(edge_index=[[0, 0, 1], [1, 2, 2]], edge_weight=[1.0, 0.0, 0.0])
    absent = batch(edge_index=[[0], [1]])
    for K in (kernel(zero, probe), kernel(zero)):
        assert np.isfinite(K).all()
    assert_allclose(kernel(zero, probe), kernel(absent, probe), rtol=1e-7)
    assert_allclose(kernel(zero, absent), kernel(absent), rtol=1e-7)
    assert (
        np.abs(kernel(batch(edge_index=[[0, 0, 1], [1, 2, 2]]), probe) / kernel(absent, probe) - 1)
        > 0.01
    )
    nothing = batch(edge_index=[[0], [1]], edge_weight=[0.0])
    assert_allclose(kernel(nothing, probe), kernel(batch(), probe), rtol=1e-7)


def test_a_list_of_one_graph():
    model = graph_svc().fit([labeled(), labeled(charge=1.0)])
    assert model.transform([labeled()]).shape == (1, 2)
    assert_allclose(graph_svc().fit_transform([labeled()]), [[1.0]])
    with pytest.raises(TypeError, match=r"wrap .*\[G\]|wrap a single one in a list"):
        model.transform(labeled())


@pytest.mark.parametrize("n_graphs", [3, 12])
def test_networkx_graphs_of_one_size_stay_graphs(n_graphs):
    drawn = [labeled(charge=k / n_graphs) for k in range(n_graphs)]
    K = graph_svc().fit_transform(drawn)
    assert K.shape == (n_graphs, n_graphs)
    assert len(np.unique(K[0].round(9))) == n_graphs


def test_labels_that_training_never_saw(graphs):
    new = ["BrC#N", "[Na+].[Cl-]", "[SiH4]", "CC(=O)[O-]"]
    model = make_svc().fit(SMILES, IS_ALCOHOL)
    assert model.predict(new).shape == (4,)
    K = make_kernel(cache_size=0)(from_smiles(new), graphs)
    union = make_kernel(cache_size=0)(from_smiles([*new, *SMILES]))
    assert_allclose(K, union[:4, 4:], rtol=5e-8)
    assert (K > 0).all() and np.ptp(K) > 0.1
    mean, std = smiles_gp().fit(SMILES, TARGET).predict(new, return_std=True)
    assert np.isfinite(mean).all() and (std > 0.1).all()


def test_hard_matching_of_unseen_labels_gives_zero(graphs):
    hard = make_kernel(node_kernel=KroneckerDelta("element", h=0.0, h_bounds="fixed"))
    K = hard(from_smiles(["[SiH4]", "C"]), graphs)
    assert_array_equal(K[0], 0)
    assert K[1].max() == pytest.approx(1)


@pytest.mark.parametrize("attribute", ["element", "hybridization", "chirality"])
def test_strings_work(attribute, graphs):
    K = make_kernel(node_kernel=KroneckerDelta(attribute, h=0.3))(graphs)
    assert np.isfinite(K).all()


# Base kernels ----------------------------------------------------------------------------------


def asymmetric(x, y):
    return np.where(x < y, 0.25, 0.5)


def undefined(x, y):
    return np.where(x == y, 1.0, np.nan)


BAD_KERNELS = {
    "above one": (
        DotProduct("charge_like"),
        r"is 1\.5 between the labels \(charge_like=0\.5\) and \(charge_like=3\.0\)",
    ),
    "constant above one": (Constant(2.0), r"is 2 between.*\[0, 1\].*Normalized"),
    "sum above one": (
        KroneckerDelta("element") + KroneckerDelta("element"),
        r"is 2 between the labels \(element='C'\).*Normalized\(...\), scale it by a constant",
    ),
    "negative": (
        DotProduct("signed"),
        r"is -0\.25 between the labels \(signed=-1\.0\) and .*\[0, 1\].*square",
    ),
    "asymmetric": (
        FunctionKernel("element", asymmetric),
        r"has to be symmetric, but is 0\.\d+ the other way round.*\(f\(x, y\) \+ f\(y, x\)\) / 2",
    ),
    "nan": (
        FunctionKernel("element", undefined),
        r"is nan between the labels \(element='C'\) and \(element='O'\).*finite",
    ),
    "infinite": (FormulaKernel("charge_like", "1 / (x - y)**2"), r"(inf|nan) between.*finite"),
    "h above one": (KroneckerDelta("element", h=1.5, h_bounds="fixed"), r"is 1\.5 between"),
}


@pytest.fixture(scope="module")
def odd():
    """Two small graphs with attributes that base kernels stumble over."""
    return from_arrays(
        [
            {
                "edge_index": [[0, 1], [1, 2]],
                "nodes": {
                    "element": ["C", "C", "O"],
                    "charge_like": [0.5, 3.0, 1.0],
                    "signed": [-1.0, 0.5, 0.25],
                    "rings": [[5, 6], [], [6]],
                    "position": [[0.0, 1.0], [0.5, 1.0], [0.0, 0.0]],
                    "p": [0.5, 0.0, 1.0],
                    "q": [0.5, 0.25, 1.0],
                },
                "edges": {"order": [1.0, 2.0], "kind": ["single", "double"]},
            },
            {
                "edge_index": [[0], [1]],
                "nodes": {
                    "element": ["C", "O"],
                    "charge_like": [0.5, 1.0],
                    "signed": [1.0, 2.0],
                    "rings": [[], [3]],
                    "position": [[0.0, 1.0], [0.5, 1.0]],
                    "p": [0.5, 1.0],
                    "q": [0.5, 0.25],
                },
                "edges": {"order": [1.0], "kind": ["single"]},
            },
        ]
    )


@pytest.mark.parametrize("backend", ["cpu", "reference"])
@pytest.mark.parametrize(("base", "message"), BAD_KERNELS.values(), ids=BAD_KERNELS)
def test_base_kernel_out_of_range(base, message, backend, odd, solves):
    kernel = MarginalizedGraphKernel(base, backend=backend)
    for call in (kernel, kernel.diag, kernel.nodal):
        with pytest.raises(ValueError, match=f"node_kernel .*{message}"):
            call(odd)
    assert not solves.calls


def test_the_edge_kernel_is_named(odd):
    kernel = MarginalizedGraphKernel(edge_kernel=FunctionKernel("kind", asymmetric))
    with pytest.raises(ValueError, match=r"edge_kernel is .*\(kind='double'\).*symmetric"):
        kernel(odd)
    with pytest.raises(ValueError, match="edge_kernel is 2 between"):
        MarginalizedGraphKernel(edge_kernel=Constant(2.0))(odd)


def test_a_kernel_out_of_range_at_labels_of_one_side_only(odd):
    bounded = from_arrays([{"nodes": {"charge_like": [0.5, 1.0]}, "edge_index": [[0], [1]]}])
    kernel = MarginalizedGraphKernel(DotProduct("charge_like")).fit(bounded)
    assert kernel.transform(bounded).shape == (1, 1)
    with pytest.raises(ValueError, match=r"node_kernel is 1\.5 between"):
        kernel.transform(odd)


def test_the_remedies_work(odd, graphs):
    MarginalizedGraphKernel(Normalized(DotProduct("charge_like")))(odd)
    MarginalizedGraphKernel(0.5 * KroneckerDelta("element") + 0.5 * KroneckerDelta("element"))(odd)

    def symmetrised(x, y):
        return (asymmetric(x, y) + asymmetric(y, x)) / 2

    K = MarginalizedGraphKernel(FunctionKernel("element", symmetrised))(odd)
    assert_array_equal(K, K.T)


@pytest.mark.parametrize(
    ("base", "message"),
    [
        (SquaredExponential("element"), r"SquaredExponential needs numbers.*'element'.*Kronecker"),
        (RationalQuadratic("rings"), r"RationalQuadratic needs numbers.*'rings'.*Convolution"),
        (DotProduct("element"), r"DotProduct needs numbers.*'element'"),
        (FormulaKernel("element", "x * y"), r"FormulaKernel needs numbers.*'element'"),
        (Convolution(KroneckerDelta("element")), r"Convolution needs lists.*'element'.*Kronecker"),
    ],
    ids=["squared exponential", "rational quadratic", "dot product", "formula", "convolution"],
)
def test_base_kernel_on_an_attribute_of_another_type(base, message, odd, solves):
    with pytest.raises(TypeError, match=message):
        MarginalizedGraphKernel(base)(odd)
    assert not solves.calls


# Parameters ------------------------------------------------------------------------------------

BAD_PARAMETERS = {
    "node_kernel": ["element", KroneckerDelta, 1.0],
    "edge_kernel": [lambda x, y: 1.0, SquaredExponential],
    "starting_probability": [0, 0.0, -1.0, np.nan, np.inf, None, [1.0]],
    "stopping_probability": [0, 0.0, 1, 1.0, 1.5, -0.1, np.nan, np.inf, None],
    "stopping_rule": ["prob", None],
    "min_steps": [2, -1, 0.5, None],
    "normalization": ["cos", True, "Cosine"],
    "size_scale": [0.0, -1.0, np.nan],
    "dtype": ["float16", "int64", "complex128", int, None, "double precision"],
    "tol": [0.0, -1e-8, np.nan, "small"],
    "max_iter": [0, -1, 1.5, None],
    "backend": ["gpu", "", None],
    "cache_size": [-1, np.nan, np.inf, None],
}


@pytest.mark.parametrize(
    ("name", "value"),
    [(name, value) for name, values in BAD_PARAMETERS.items() for value in values],
    ids=lambda value: getattr(value, "__name__", repr(value)),
)
def test_parameter_out_of_range(name, value, graphs, solves):
    kernel = make_kernel()
    kernel.fit(graphs)
    kernel.set_params(**{name: value})
    calls = {
        "call": lambda: kernel(graphs),
        "diag": lambda: kernel.diag(graphs),
        "nodal": lambda: kernel.nodal(graphs),
        "fit": lambda: kernel.fit(graphs),
        "transform": lambda: kernel.transform(graphs),
    }
    for call in calls.values():
        with pytest.raises(ValueError, match=f"{name}=") as raised:
            call()
        assert repr(value) in str(raised.value)
    assert not solves.calls


@pytest.mark.parametrize("value", [1e-4, 0.9999])
def test_extreme_stopping_probabilities_work(value, graphs):
    K = make_kernel(stopping_probability=value, max_iter=20000)(graphs)
    assert np.isfinite(K).all() and (K <= 1 + 1e-12).all() and (K > 0).all()


def test_additive_rule_takes_large_stopping_probabilities(graphs):
    assert np.isfinite(
        make_kernel(stopping_rule="additive", stopping_probability=5.0)(graphs)
    ).all()


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"starting_probability": "p"}, r"'p'.* is 0\.0 at node 1 of graph 0: .*positive"),
        ({"starting_probability": "signed"}, r"'signed'.* is -1\.0 at node 0 of graph 0"),
        ({"starting_probability": "element"}, r"'element', which must hold one number a node"),
        ({"starting_probability": "rings"}, r"'rings', which must hold one number a node"),
        ({"starting_probability": "position"}, r"'position', which must hold one number a node"),
        ({"stopping_probability": "p"}, r"'p'.* is 0\.0 at node 1 of graph 0"),
        ({"stopping_probability": "q"}, r"'q'.*1\.0 at node 2 of graph 0.*between 0 and 1"),
    ],
    ids=lambda value: "-".join(next(iter(value.items()))) if isinstance(value, dict) else "",
)
def test_probabilities_of_nodes_out_of_range(changes, message, odd, solves):
    with pytest.raises(ValueError, match=message):
        MarginalizedGraphKernel(**changes)(odd)
    assert not solves.calls


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("element", ("C", "O"), (1.0, -2.0)), r"-2\.0.*positive"),
        (("element", ("C", "O"), (1.0, 0.0), "fixed"), r"of 'O' is 0\.0"),
        (("element", ("C", "O"), (1.0, np.nan), "fixed"), r"of 'O' is nan"),
        (("element", ("C", "O"), (1.0,)), r"2 categories but values of shape \(1,\)"),
        (("element", ("C",), (1.0,), (0.1, 10), 0.0), r"of 'default' is 0\.0"),
        (("rings", (5,), (1.0,)), r"'rings', whose values are lists or vectors"),
    ],
    ids=["negative", "zero", "nan", "count", "default", "lists"],
)
@pytest.mark.parametrize("eval_gradient", [False, True])
def test_starting_probabilities_out_of_range(arguments, message, eval_gradient, odd, solves):
    kernel = MarginalizedGraphKernel(starting_probability=StartingProbability(*arguments))
    with pytest.raises(ValueError, match=message):
        kernel(odd, eval_gradient=eval_gradient)
    assert not solves.calls


def test_bounds_that_reach_beyond_probabilities(graphs, solves):
    # Otherwise the optimiser meets the error in the middle of a long run.
    kernel = make_kernel(stopping_probability_bounds=(0.01, 2.0))
    with pytest.raises(ValueError, match=r"stopping_probability_bounds.*between 0 and 1"):
        GaussianProcessRegressor(kernel).fit(graphs, TARGET)
    assert not solves.calls
    kernel.set_params(stopping_rule="additive")(graphs)


# Convergence -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "call",
    [
        lambda kernel, batch: kernel(batch),
        lambda kernel, batch: kernel(batch, eval_gradient=True),
        lambda kernel, batch: kernel(batch, batch[:5]),
        lambda kernel, batch: kernel.diag(batch),
        lambda kernel, batch: kernel.nodal(batch),
        lambda kernel, batch: kernel.fit_transform(batch),
    ],
    ids=["gram", "gradient", "two sides", "diag", "nodal", "transform"],
)
def test_pairs_that_do_not_converge_are_counted_and_named(call, graphs):
    kernel = make_kernel(stopping_probability=0.01, max_iter=3, normalization=None)
    with pytest.warns(ConvergenceWarning) as record:
        call(kernel, graphs)
    message = str(record[0].message)
    found = re.match(
        r"(\d+) of (\d+) pairs did not converge within max_iter, the first: (.*)\. What helps: "
        r"raise max_iter, raise tol, or choose a larger stopping_probability\.",
        message,
    )
    assert found, message
    assert len(record) == 1
    slow, total = int(found[1]), int(found[2])
    assert 0 < slow <= total and total in (300, 24, 110, 120)
    assert re.fullmatch(r"(\(X\[\d+\], [XY]\[\d+\]\)(, )?){1,3}", found[3])


def test_the_pairs_named_are_those_that_do_not_converge(graphs):
    kernel = make_kernel(stopping_probability=0.01, max_iter=8, cache_size=0)
    with pytest.warns(ConvergenceWarning) as record:
        kernel(graphs)
    message = str(record[0].message)
    named = re.findall(r"\(X\[(\d+)\], X\[(\d+)\]\)", message)
    assert int(message.split()[0]) < 300, "all pairs fail: the test shows nothing"
    for pair in named:
        with pytest.warns(ConvergenceWarning, match="1 of 1 pairs"):
            kernel.set_params(normalization=None)([graphs[int(pair[0])]], [graphs[int(pair[1])]])


def test_values_that_did_not_converge_are_not_kept(graphs):
    rough = make_kernel(stopping_probability=0.01, max_iter=3)
    for _ in range(2):
        with pytest.warns(ConvergenceWarning):
            rough(graphs)
    K = rough.set_params(max_iter=1000)(graphs)
    assert_allclose(K, make_kernel(stopping_probability=0.01, cache_size=0)(graphs), rtol=5e-8)


def test_values_beyond_the_range_of_floats_are_an_error(graphs):
    heavy = GraphBatch(
        node_ptr=graphs.node_ptr,
        edge_ptr=graphs.edge_ptr,
        edge_index=graphs.edge_index,
        edge_weight=np.full(graphs.n_edges, 1e200),
    )
    with pytest.raises(
        FloatingPointError, match=r"pairs .*the first: \(X\[\d+\], X\[\d+\]\).*What helps: "
    ):
        MarginalizedGraphKernel()(heavy)
    # A Gaussian process never sees them.
    with pytest.raises(FloatingPointError):
        GaussianProcessRegressor(MarginalizedGraphKernel(), optimizer=None).fit(heavy, TARGET)


def test_backend_without_cupy_says_what_to_install(monkeypatch):
    from sklearn_mgk import solver

    monkeypatch.setattr(solver, "find_spec", lambda name: None)
    solver.why_no_cuda.cache_clear()
    try:
        with pytest.raises(RuntimeError, match=r"CuPy is not installed: pip install .*cuda12"):
            solver.get_backend("cuda")
        assert "cuda" not in solver.available_backends()
    finally:
        solver.why_no_cuda.cache_clear()


def test_backend_without_device_says_so(monkeypatch):
    from sklearn_mgk import solver

    monkeypatch.setattr(solver, "find_spec", lambda name: True)
    reason = "CUDA does not start (no driver): check with nvidia-smi"
    module = SimpleNamespace(why_no_device=lambda: reason)
    monkeypatch.setattr(solver, "import_module", lambda name: module)
    solver.why_no_cuda.cache_clear()
    try:
        with pytest.raises(RuntimeError, match="no driver"):
            solver.get_backend("cuda")
    finally:
        solver.why_no_cuda.cache_clear()
