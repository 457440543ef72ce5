# SPDX-License-Identifier: BSD-3-Clause
"""The kernel as an object: parameters, copies, text, shapes, and what its values depend on."""

import copy
import pickle

import numpy as np
import pytest
from contract.molecules import SMILES, make_kernel
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.gaussian_process.kernels import ConstantKernel
from sklearn.utils import get_tags
from sklearn.utils.validation import check_is_fitted

import sklearn_mgk
from sklearn_mgk import (
    MarginalizedGraphKernel,
    NetworkXToGraphs,
    SmilesToGraphs,
    StartingProbability,
    StructuresToGraphs,
    base_kernels,
    clear_cache,
    from_smiles,
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
from sklearn_mgk.graphs import GraphBatch

# Two solves of one pair to the tolerance of 1e-8 may differ by this, relative.
SOLVED = 5e-8
# One solve, normalised along two routes.
ROUNDED = 1e-14


def same_charge(x, y):
    return np.where(x == y, 1.0, 0.5)


RINGS = Convolution(KroneckerDelta("ring_sizes", h=0.2)).normalized()
KERNELS = {
    "default": MarginalizedGraphKernel(),
    "products": make_kernel(),
    "sums and powers": make_kernel(
        node_kernel=0.5 * KroneckerDelta("element", h=0.2)
        + Constant(0.4, (0.1, 0.5)) * SquaredExponential("charge") ** 2,
        edge_kernel=RationalQuadratic("order", length_scale=0.5, alpha=2.0, alpha_bounds="fixed"),
    ),
    "lists": make_kernel(node_kernel=KroneckerDelta("element") * RINGS),
    "formula": make_kernel(
        edge_kernel=FormulaKernel("order", "exp(-s * (x - y)**2)", {"s": (0.7, (0.1, 10))})
    ),
    "function": make_kernel(node_kernel=FunctionKernel("charge", same_charge)),
    "starting": make_kernel(
        starting_probability=StartingProbability(
            "element", ("C", "O"), (1.0, 2.0), default=0.5, values_bounds=(0.1, 10.0)
        )
    ),
    "additive": make_kernel(stopping_rule="additive", stopping_probability=2.0, min_steps=1),
    "size": make_kernel(
        normalization="size", size_scale=5.0, stopping_probability_bounds=(0.01, 0.5)
    ),
    "fixed": make_kernel(
        node_kernel=KroneckerDelta("element", h=0.0, h_bounds="fixed"),
        edge_kernel=None,
        stopping_probability_bounds="fixed",
    ),
    "single precision": make_kernel(dtype="float32", tol=1e-5, max_iter=50),
}
every_kernel = pytest.mark.parametrize("kernel", KERNELS.values(), ids=KERNELS)
# Solved at double precision, in this file's tolerances.
DOUBLE = {name: kernel for name, kernel in KERNELS.items() if kernel.dtype == "float64"}
every_double_kernel = pytest.mark.parametrize("kernel", DOUBLE.values(), ids=DOUBLE)


@pytest.fixture(scope="module")
def few():
    """Molecules of every kind, one of them twice and one that is charged."""
    return from_smiles(["CCO", "C", "c1ccccc1C", "OCC", "CC(C)N", "C1CC1C[NH3+]", "CCO"])


# Parameters ------------------------------------------------------------------------------------


@every_kernel
def test_clone_is_equal_and_another_object(kernel):
    other = clone(kernel)
    assert other == kernel and other is not kernel
    assert other.set_params(stopping_probability=0.123) != kernel
    assert kernel.stopping_probability != 0.123


def test_clone_shares_no_base_kernel():
    kernel = make_kernel()
    clone(kernel).set_params(node_kernel__k1__h=0.9, edge_kernel__length_scale=9.0)
    assert kernel == make_kernel()


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("node_kernel", Constant(0.5)),
        ("node_kernel__k1__h", 0.31),
        ("node_kernel__k1__h_bounds", "fixed"),
        ("edge_kernel", None),
        ("starting_probability", 2.0),
        ("stopping_probability_bounds", "fixed"),
        ("normalization", None),
        ("verbose", True),
    ],
)
def test_kernels_are_equal_only_if_all_parameters_are(name, value):
    changed = make_kernel().set_params(**{name: value})
    assert changed != make_kernel()
    assert changed.get_params()[name] is value
    assert changed == make_kernel().set_params(**{name: value})


def test_kernels_of_other_classes_are_different():
    assert make_kernel() != ConstantKernel()
    assert make_kernel() != 3


@every_kernel
def test_parameters_make_an_equal_kernel(kernel):
    assert MarginalizedGraphKernel(**kernel.get_params(deep=False)) == kernel
    other = MarginalizedGraphKernel().set_params(**kernel.get_params(deep=False))
    assert other == kernel
    assert clone(kernel).set_params(**kernel.get_params()) == kernel


def test_nested_parameters():
    params = make_kernel().get_params()
    assert params["node_kernel__k1__h"] == 0.3
    assert params["node_kernel__k2__attribute"] == "n_hydrogens"
    assert params["edge_kernel__length_scale_bounds"] == (1e-3, 1e3)
    kernel = make_kernel()
    assert kernel.set_params(node_kernel__k1__h=0.7, min_steps=1) is kernel
    assert (kernel.node_kernel.k1.h, kernel.min_steps) == (0.7, 1)
    starting = StartingProbability("element", ("C", "O"), (1.0, 2.0))
    kernel.set_params(starting_probability=starting, starting_probability__values=(3.0, 4.0))
    assert kernel.starting_probability.values == (3.0, 4.0)
    assert "node_kernel" in make_kernel().get_params(deep=False)
    assert not any("__" in name for name in make_kernel().get_params(deep=False))


@pytest.mark.parametrize(
    "name", ["stoping_probability", "node_kernel__k3__h", "node_kernel__k1__g", "min_steps__h"]
)
def test_unknown_parameters_are_refused(name):
    with pytest.raises(
        ValueError,
        match=f"no parameter '{name.removeprefix('node_kernel__')}'|"
        f"no parameter '{name.split('__')[-1]}'",
    ):
        make_kernel().set_params(**{name: 1.0})


def test_constructor_converts_nothing():
    values, bounds = np.array([1.0, 2.0]), [0.1, 0.9]
    starting = StartingProbability("element", ["C", "O"], values)
    kernel = MarginalizedGraphKernel(
        starting_probability=starting, stopping_probability_bounds=bounds
    )
    assert kernel.starting_probability is starting and starting.values is values
    assert kernel.stopping_probability_bounds is bounds
    assert not [name for name in vars(kernel) if name.endswith("_")]


# Text and copies -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "kernel",
    [k for n, k in KERNELS.items() if n != "function"],
    ids=[n for n in KERNELS if n != "function"],
)
def test_repr_makes_an_equal_kernel(kernel):
    names = {**vars(base_kernels), **{n: getattr(sklearn_mgk, n) for n in sklearn_mgk.__all__}}
    made = eval(repr(kernel), names)
    assert made == kernel


def test_repr_shows_hyperparameters_and_what_differs_from_the_defaults():
    text = repr(make_kernel(min_steps=1))
    assert text.startswith("MarginalizedGraphKernel(KroneckerDelta('element', h=0.3) * Kron")
    assert "stopping_probability=0.1" in text and "min_steps=1" in text
    assert "max_iter" not in text


@every_kernel
def test_html(kernel, few):
    html = kernel._repr_html_()
    assert "MarginalizedGraphKernel" in html and "stopping_probability" in html
    assert "not fitted" in html.lower()
    assert "not fitted" not in clone(kernel).fit(few)._repr_html_().lower()


@every_kernel
def test_html_within_a_pipeline(kernel):
    from sklearn.pipeline import make_pipeline

    html = make_pipeline(SmilesToGraphs(), kernel)._repr_html_()
    assert "MarginalizedGraphKernel" in html and "SmilesToGraphs" in html


@pytest.mark.parametrize("copied", [lambda k: pickle.loads(pickle.dumps(k)), copy.deepcopy])
@every_kernel
def test_copies_before_and_after_fit(copied, kernel, few):
    unfitted = copied(kernel)
    assert unfitted == kernel and not hasattr(unfitted, "graphs_")
    fitted = clone(kernel).fit(few)
    other = copied(fitted)
    assert other == kernel
    expected = fitted.transform(few[:3])
    clear_cache()
    assert_array_equal(other.transform(few[:3]), expected)


def test_pickles_hold_no_values_and_no_caches(graphs):
    kernel = make_kernel().fit(graphs)
    before = len(pickle.dumps(kernel))
    kernel.transform(graphs)
    kernel(graphs, eval_gradient=True)
    assert len(pickle.dumps(kernel)) == before


# Hyperparameters -------------------------------------------------------------------------------


def test_hyperparameters_come_in_the_order_of_the_signature():
    starting = StartingProbability("element", ("C", "O"), (1.0, 2.0))
    kernel = make_kernel(normalization="size", size_scale=7.0, starting_probability=starting)
    assert [h.name for h in kernel.hyperparameters] == [
        "node_kernel__k1__h",
        "node_kernel__k2__h",
        "edge_kernel__length_scale",
        "starting_probability__values",
        "stopping_probability",
        "size_scale",
    ]
    assert_allclose(kernel.theta, np.log([0.3, 0.5, 1.0, 2.0, 0.1, 7.0]))
    assert_allclose(
        np.exp(kernel.bounds),
        [(1e-3, 1), (1e-3, 1e3), (1e-2, 1e2), (1e-2, 1e2), (1e-4, 0.9999), (1e-2, 1e5)],
    )


@every_kernel
def test_theta_round_trip(kernel):
    moved = kernel.clone_with_theta(kernel.theta - 0.125)
    assert_allclose(moved.theta, kernel.theta - 0.125)
    assert moved.n_dims == kernel.n_dims == len(kernel.bounds)
    assert_allclose(moved.clone_with_theta(kernel.theta).theta, kernel.theta)


@pytest.mark.parametrize(
    "changes",
    [
        {"stopping_probability": "charge"},
        {"stopping_probability_bounds": "fixed"},
        {"normalization": None},
        {"node_kernel": None},
    ],
    ids=lambda changes: next(iter(changes)),
)
def test_only_what_has_an_effect_is_a_hyperparameter(changes):
    names = {
        "stopping_probability": "stopping_probability",
        "stopping_probability_bounds": "stopping_probability",
        "normalization": "size_scale",
        "node_kernel": "node_kernel__k1__h",
    }
    base = make_kernel(normalization="size")
    changed = make_kernel(**{"normalization": "size", **changes})
    free = [{h.name for h in k.hyperparameters if not h.fixed} for k in (base, changed)]
    assert free[0] - free[1] == {names[next(iter(changes))]}


@every_kernel
def test_gradient_has_a_layer_for_each_free_hyperparameter(kernel, few):
    K, slopes = kernel(few, eval_gradient=True)
    assert slopes.shape == (7, 7, kernel.n_dims)
    assert slopes.dtype == K.dtype == np.float64
    assert_array_equal(slopes, slopes.transpose(1, 0, 2))
    assert_allclose(K, kernel(few), rtol=1e-3 if kernel.dtype == "float32" else SOLVED)
    if kernel.normalization == "cosine":
        assert_allclose(slopes[np.arange(7), np.arange(7)], 0, atol=1e-12)


@every_double_kernel
def test_each_layer_is_the_derivative_by_its_own_hyperparameter(kernel, few):
    kernel = clone(kernel).set_params(tol=1e-13)
    _, slopes = kernel(few, eval_gradient=True)
    step = 1e-4
    for layer, shift in zip(np.moveaxis(slopes, -1, 0), step * np.eye(kernel.n_dims), strict=True):
        high, low = (kernel.clone_with_theta(kernel.theta + s)(few) for s in (shift, -shift))
        # Of order step^2, and rounding / step.
        assert_allclose(layer, (high - low) / (2 * step), rtol=1e-6, atol=2e-8 * np.abs(low).max())


@pytest.mark.parametrize("same", [False, True], ids=["other", "itself"])
def test_gradient_is_refused_with_two_sides(same, few):
    with pytest.raises(ValueError, match="only where Y is None"):
        make_kernel()(few, few if same else few[:2], eval_gradient=True)


# Values ----------------------------------------------------------------------------------------


@every_kernel
def test_matrix_is_symmetric_finite_and_positive(kernel, few):
    for K in (kernel(few), kernel(few, few)):
        assert K.shape == (7, 7) and K.dtype == np.float64
        assert_array_equal(K, K.T)
        assert np.isfinite(K).all() and (K >= 0).all()
        eigenvalues = np.linalg.eigvalsh(K)
        precision = 1e-5 if kernel.dtype == "float32" else 1e-8
        assert eigenvalues[0] > -precision * eigenvalues[-1]


@every_kernel
def test_diagonal(kernel, few):
    diagonal = kernel.diag(few)
    assert_array_equal(diagonal, kernel(few).diagonal())
    clear_cache()
    assert_array_equal(kernel.diag(few), diagonal)
    if kernel.normalization:
        # Methane has no walk that moves.
        moves = np.ones(7) if kernel.min_steps == 0 else few.sizes > 1
        assert_array_equal(diagonal, moves)


@every_kernel
def test_equal_graphs_written_otherwise_are_equal(kernel, few):
    K = kernel(few)
    assert_allclose(K[0], K[6], rtol=ROUNDED)
    precision = 1e-4 if kernel.dtype == "float32" else SOLVED
    assert_allclose(K[0], K[3], rtol=precision)
    off = K[np.triu_indices(7, 1)]
    assert np.ptp(off) > 0.01, "different molecules look the same"


@every_double_kernel
def test_blocks_are_those_of_the_union(kernel, few):
    X, Y = few[:4], few[4:]
    union = kernel(few)
    clear_cache()
    assert_allclose(kernel(X, Y), union[:4, 4:], rtol=SOLVED)
    clear_cache()
    assert_allclose(kernel(Y, X), union[4:, :4], rtol=SOLVED)
    clear_cache()
    assert_allclose(kernel(X), union[:4, :4], rtol=SOLVED)


@every_double_kernel
def test_values_do_not_depend_on_order_batch_or_earlier_calls(kernel, few):
    K = kernel(few)
    order = np.random.default_rng(0).permutation(7)
    for cleared in (False, True):
        if cleared:
            clear_cache()
        assert_allclose(kernel(few[order]), K[np.ix_(order, order)], rtol=SOLVED)
    alone = [[kernel([a], [b])[0, 0] for b in few] for a in few]
    assert_allclose(alone, K, rtol=SOLVED)
    # Together with graphs that bring other labels, from another batch object.
    others = from_smiles(["BrCC#N", "[Na+].[Cl-]", "S=C=S"])
    mixed = [others[0], *few, *others[1:]]
    clear_cache()
    assert_allclose(kernel(mixed)[1:8, 1:8], K, rtol=SOLVED)


@every_kernel
def test_transform_is_the_kernel_with_the_graphs_of_fit(kernel, few):
    kernel = clone(kernel)
    K = kernel.fit_transform(few)
    assert_array_equal(K, kernel(few))
    assert kernel.graphs_ is few
    assert kernel.fit(few) is kernel
    subset = kernel.transform(few[[2, 0]])
    assert_allclose(subset, K[[2, 0]], rtol=ROUNDED)
    assert kernel.transform(few[:1]).shape == (1, 7)


@every_kernel
def test_transforming_twice_gives_the_same_bits(kernel, few):
    kernel = clone(kernel).set_params(cache_size=0).fit(few)
    first = kernel.transform(few[:3])
    assert_array_equal(kernel.transform(few[:3]), first)
    kernel.transform(few[3:])
    assert_array_equal(kernel.transform(few[:3]), first)


@every_double_kernel
def test_subsets_are_rows_of_the_whole_when_solved_anew(kernel, few):
    kernel = clone(kernel).set_params(cache_size=0)
    K = kernel.fit_transform(few)
    assert_allclose(kernel.transform(few[[5, 1]]), K[[5, 1]], rtol=SOLVED)


def test_fitting_again_forgets_the_first_graphs(few):
    kernel = make_kernel().fit(few)
    kernel.fit(few[:2])
    assert kernel.transform(few).shape == (7, 2)
    assert len(kernel.get_feature_names_out()) == 2


def test_calls_do_not_change_the_kernel_or_the_graphs(few):
    kernel = make_kernel()
    state = dict(vars(kernel))
    arrays = {name: column.copy() for name, column in few.nodes.items() if name == "charge"}
    kernel(few, eval_gradient=True)
    kernel.diag(few)
    kernel.nodal(few[:2])
    assert vars(kernel) == state
    assert_array_equal(few.nodes["charge"], arrays["charge"])


def test_results_are_the_callers_to_change(few):
    kernel = make_kernel()
    expected = kernel(few).copy()
    kernel(few)[:] = -1
    kernel.fit_transform(few)[:] = -1
    kernel.diag(few)[:] = -1
    assert_array_equal(kernel(few), expected)


def test_nodal_values_add_up(few):
    kernel = make_kernel(normalization=None)
    blocks = kernel.nodal(few, few[:3])
    ends, ends2 = np.cumsum(few.sizes)[:-1], np.cumsum(few[:3].sizes)[:-1]
    summed = [
        [block.sum() for block in np.split(rows, ends2, axis=1)] for rows in np.split(blocks, ends)
    ]
    assert_allclose(summed, kernel(few, few[:3]), rtol=SOLVED)
    square = kernel.nodal(few)
    assert_allclose(square, square.T, rtol=SOLVED)


@pytest.mark.parametrize("method", ["transform", "get_feature_names_out"])
def test_unfitted_kernel_says_so(method, few):
    kernel = make_kernel()
    arguments = (few,) if method == "transform" else ()
    with pytest.raises(NotFittedError, match=r"MarginalizedGraphKernel.*not fitted"):
        getattr(kernel, method)(*arguments)
    with pytest.raises(NotFittedError):
        check_is_fitted(kernel)
    check_is_fitted(kernel.fit(few))


def test_first_use_leaves_the_kernel_unfitted(few):
    kernel = make_kernel()
    kernel(few)
    assert not hasattr(kernel, "graphs_")


# scikit-learn's view ---------------------------------------------------------------------------


def test_tags_of_the_kernel():
    tags = get_tags(make_kernel())
    assert tags.estimator_type is None
    assert tags.transformer_tags is not None
    assert not tags.target_tags.required
    assert tags.requires_fit
    assert not tags.non_deterministic
    assert not (tags.input_tags.two_d_array or tags.input_tags.pairwise or tags.input_tags.sparse)


@pytest.mark.parametrize(
    ("source", "string"),
    [(SmilesToGraphs(), True), (StructuresToGraphs(), True), (NetworkXToGraphs(), False)],
)
def test_tags_of_the_sources(source, string):
    tags = get_tags(source)
    assert tags.transformer_tags is not None
    assert not tags.requires_fit
    assert tags.input_tags.string is string
    assert not tags.input_tags.two_d_array and not tags.input_tags.pairwise


def test_graphs_of_every_source_meet_in_one_call():
    import networkx as nx

    path = nx.path_graph(3)
    nx.set_node_attributes(path, dict(enumerate(["C", "C", "O"])), "element")
    nx.set_edge_attributes(path, 1.0, "order")
    kernel = make_kernel(node_kernel=KroneckerDelta("element", h=0.3))
    drawn, written = NetworkXToGraphs().transform([path]), from_smiles(["CCO"])
    assert isinstance(drawn, GraphBatch)
    assert_allclose(kernel(drawn, written), 1, rtol=SOLVED)
    assert_allclose(kernel([drawn[0], written[0]]), 1, rtol=SOLVED)


def test_base_kernels_of_vectors_run(graphs):
    positions = from_smiles(SMILES[:3])
    vectors = GraphBatch(
        node_ptr=positions.node_ptr,
        edge_ptr=positions.edge_ptr,
        edge_index=positions.edge_index,
        nodes={"direction": np.random.default_rng(0).random((positions.n_nodes, 3))},
    )
    K = MarginalizedGraphKernel(Normalized(DotProduct("direction")))(vectors)
    assert np.linalg.eigvalsh(K)[0] > 0
