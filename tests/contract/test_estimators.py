# SPDX-License-Identifier: BSD-3-Clause
"""The kernel with the rest of scikit-learn: estimators, pipelines and model selection."""

import numpy as np
import pandas as pd
import pytest
from contract.molecules import FAMILY, IS_ALCOHOL, N_PAIRS, SMILES, TARGET, make_kernel, make_svc
from numpy.testing import assert_allclose, assert_array_equal
from sklearn import config_context
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.calibration import CalibratedClassifierCV
from sklearn.cluster import SpectralClustering
from sklearn.compose import ColumnTransformer, TransformedTargetRegressor
from sklearn.decomposition import KernelPCA
from sklearn.ensemble import StackingRegressor, VotingRegressor
from sklearn.experimental import enable_halving_search_cv  # noqa: F401
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import WhiteKernel
from sklearn.kernel_ridge import KernelRidge
from sklearn.linear_model import Ridge
from sklearn.metrics import adjusted_rand_score
from sklearn.model_selection import (
    GridSearchCV,
    HalvingGridSearchCV,
    KFold,
    StratifiedKFold,
    cross_val_predict,
    cross_val_score,
    cross_validate,
    learning_curve,
)
from sklearn.multiclass import OneVsOneClassifier, OneVsRestClassifier
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import FeatureUnion, make_pipeline
from sklearn.preprocessing import FunctionTransformer
from sklearn.svm import SVC, SVR, NuSVC, NuSVR, OneClassSVM

from sklearn_mgk import SmilesToGraphs, clear_cache, from_smiles
from sklearn_mgk.graphs import Graph


class MostSimilar(RegressorMixin, BaseEstimator):
    """Target of the most similar training graph, from rows of the Gram matrix."""

    def fit(self, X, y):
        self.targets_ = y
        return self

    def predict(self, X):
        return self.targets_[X.argmax(1)]


FOLDS = StratifiedKFold(4, shuffle=True, random_state=0)
SHUFFLED = KFold(4, shuffle=True, random_state=0)
TEST = from_smiles(["CCCCCCO", "CCCCCN", "CCCCCCCC", "Cc1ccccc1O"])
MACHINES = {
    "SVC": (SVC(C=10), IS_ALCOHOL),
    "NuSVC": (NuSVC(nu=0.3), IS_ALCOHOL),
    "SVR": (SVR(C=10), TARGET),
    "NuSVR": (NuSVR(C=10), TARGET),
    "OneClassSVM": (OneClassSVM(nu=0.3), None),
}


@pytest.mark.parametrize(("machine", "target"), MACHINES.values(), ids=MACHINES)
def test_callable_and_precomputed_support_vectors_agree(machine, target, graphs):
    # Of the default tolerance two solvers stop at different points.
    machine.set_params(tol=1e-9)
    as_callable = machine.set_params(kernel=make_kernel()).fit(graphs, target)
    of_callable = as_callable.predict(TEST), as_callable.predict(list(TEST))
    pipeline = make_pipeline(make_kernel(), machine.set_params(kernel="precomputed"))
    expected = pipeline.fit(graphs, target).predict(TEST)
    for predicted in of_callable:
        assert_allclose(predicted, expected, rtol=1e-6, atol=1e-6)
    assert len(np.unique(expected)) > 1


def test_support_vectors_learn(graphs):
    assert cross_val_score(make_svc(), SMILES, IS_ALCOHOL, cv=FOLDS).mean() > 0.9
    model = SVC(kernel=make_kernel(), C=10)
    assert cross_val_score(model, graphs, IS_ALCOHOL, cv=FOLDS).mean() > 0.9
    assert cross_val_score(model, list(graphs), FAMILY, cv=FOLDS).mean() > 0.7


@pytest.mark.parametrize("model", [KernelRidge(kernel="precomputed"), SVR(kernel="precomputed")])
def test_precomputed_regression(model, graphs):
    pipeline = make_pipeline(make_kernel(), model)
    K = make_kernel()(graphs)
    expected = model.fit(K, TARGET).predict(make_kernel()(TEST, graphs))
    assert_allclose(pipeline.fit(graphs, TARGET).predict(TEST), expected, rtol=1e-6, atol=1e-6)
    assert pipeline.score(graphs, TARGET) > 0.5


def test_kernel_pca_is_that_of_the_gram_matrix(graphs):
    pipeline = make_pipeline(make_kernel(), KernelPCA(3, kernel="precomputed"))
    points = pipeline.fit_transform(graphs)
    centering = np.eye(24) - 1 / 24
    eigenvalues = np.linalg.eigvalsh(centering @ make_kernel()(graphs) @ centering)[::-1]
    assert_allclose((points**2).sum(0), eigenvalues[:3], rtol=1e-6)
    assert_allclose(pipeline.transform(graphs), points, atol=1e-6)
    assert pipeline.transform(TEST).shape == (4, 3)


def test_spectral_clustering_finds_the_aromatic_molecules(graphs):
    model = SpectralClustering(2, affinity="precomputed", random_state=0)
    clusters = make_pipeline(make_kernel(), model).fit_predict(graphs)
    aromatic = ["c1" in smiles for smiles in SMILES]
    assert adjusted_rand_score(aromatic, clusters) == 1.0


def test_nearest_neighbors_on_distances(graphs):
    distances = FunctionTransformer(lambda K: np.sqrt(np.clip(2 - 2 * K, 0, None)))
    nearest = KNeighborsClassifier(1, metric="precomputed")
    model = make_pipeline(make_kernel(), distances, nearest).fit(graphs, FAMILY)
    assert model.score(graphs, FAMILY) == 1.0


@pytest.mark.parametrize("meta", [OneVsRestClassifier, OneVsOneClassifier])
def test_meta_classifiers_slice_the_matrix(meta, graphs):
    model = make_pipeline(make_kernel(), meta(SVC(kernel="precomputed", C=10)))
    assert cross_val_score(model, graphs, FAMILY, cv=FOLDS).mean() > 0.7
    assert model.fit(graphs, FAMILY).predict(TEST).shape == (4,)


@pytest.mark.parametrize(
    ("meta", "target"),
    [
        (lambda model: VotingRegressor([("a", model)]), TARGET),
        (lambda model: StackingRegressor([("a", model)], Ridge(1e-3), cv=SHUFFLED), TARGET),
        (lambda model: TransformedTargetRegressor(model, func=np.exp, inverse_func=np.log), TARGET),
    ],
    ids=["voting", "stacking", "transformed target"],
)
def test_meta_regressors_of_whole_pipelines(meta, target):
    model = meta(
        make_pipeline(SmilesToGraphs(), make_kernel(), KernelRidge(0.1, kernel="precomputed"))
    )
    assert model.fit(SMILES, target).score(SMILES, target) > 0.8


def test_calibrated_probabilities():
    model = CalibratedClassifierCV(make_svc(), ensemble=False, cv=3).fit(SMILES, IS_ALCOHOL)
    probability = model.predict_proba(SMILES)[:, 1]
    assert probability[IS_ALCOHOL].min() > probability[~IS_ALCOHOL].max()


GRID = {
    "marginalizedgraphkernel__node_kernel__k1__h": [0.1, 0.9],
    "marginalizedgraphkernel__edge_kernel__length_scale": [0.3, 3.0],
    "marginalizedgraphkernel__stopping_probability": [0.05, 0.3],
    "svc__C": [1, 100],
}


def test_grid_search_two_levels_deep():
    model = make_svc()
    search = GridSearchCV(model, GRID, cv=FOLDS, error_score="raise").fit(SMILES, IS_ALCOHOL)
    assert search.best_score_ > 0.9
    scores = search.cv_results_["mean_test_score"]
    assert np.ptp(scores) > 0.1, "the grid makes no difference"
    # Each point is what a model made by hand with its parameters gets.
    for place in (0, len(scores) - 1):
        by_hand = make_svc().set_params(**search.cv_results_["params"][place])
        assert cross_val_score(by_hand, SMILES, IS_ALCOHOL, cv=FOLDS).mean() == scores[place]
    assert search.best_estimator_[1].node_kernel.k1.h == search.best_params_[next(iter(GRID))]
    assert model[1] == make_kernel(), "the search changed the model it was given"


def test_grid_search_over_a_callable_kernel(graphs):
    grid = {"kernel__node_kernel__k1__h": [0.1, 0.9], "kernel__edge_kernel": [None]}
    search = GridSearchCV(SVC(kernel=make_kernel(), C=10), grid, cv=FOLDS).fit(graphs, IS_ALCOHOL)
    assert search.best_estimator_.kernel.edge_kernel is None
    assert search.best_score_ > 0.9


def test_grid_search_of_a_gaussian_process():
    model = make_pipeline(
        SmilesToGraphs(),
        GaussianProcessRegressor(make_kernel() + WhiteKernel(0.01), optimizer=None),
    )
    name = "gaussianprocessregressor__kernel__k1__edge_kernel__length_scale"
    search = GridSearchCV(model, {name: [0.2, 2.0]}, cv=3, error_score="raise")
    search.fit(SMILES, TARGET)
    assert search.best_estimator_[1].kernel.k1.edge_kernel.length_scale in (0.2, 2.0)
    assert len(set(search.cv_results_["mean_test_score"])) == 2


def test_two_processes_give_the_scores_of_one():
    scores = [
        cross_val_score(make_svc(), SMILES, IS_ALCOHOL, cv=FOLDS, n_jobs=n_jobs).tolist()
        for n_jobs in (1, 2)
    ]
    assert scores[0] == scores[1]


def test_halving_search():
    search = HalvingGridSearchCV(
        make_svc(), {"svc__C": [0.01, 1, 100]}, cv=2, min_resources=8, random_state=0
    ).fit(SMILES, IS_ALCOHOL)
    assert search.n_resources_[-1] > search.n_resources_[0]
    assert search.best_params_["svc__C"] > 0.01


def test_learning_curve():
    sizes, _, scores = learning_curve(
        make_svc(), SMILES, IS_ALCOHOL, train_sizes=[8, 18], cv=FOLDS, shuffle=True, random_state=0
    )
    assert sizes.tolist() == [8, 18]
    assert scores.mean(1)[1] >= scores.mean(1)[0]


def test_cross_validation_keeps_each_molecule_with_its_target(graphs):
    model = make_pipeline(SmilesToGraphs(), make_kernel(), MostSimilar())
    number = np.arange(24)
    predicted = cross_val_predict(model, SMILES, number, cv=SHUFFLED)
    K = make_kernel()(graphs)
    for train, test in SHUFFLED.split(number):
        assert_array_equal(predicted[test], train[K[np.ix_(test, train)].argmax(1)])


def test_cross_validation_reports_each_fold(graphs):
    result = cross_validate(
        SVC(kernel=make_kernel()), graphs, IS_ALCOHOL, cv=FOLDS, return_estimator=True
    )
    assert [model.kernel for model in result["estimator"]] == [make_kernel()] * 4


def test_metadata_routing():
    with config_context(enable_metadata_routing=True):
        search = GridSearchCV(make_svc(), {"svc__C": [0.01, 10]}, cv=FOLDS)
        search.fit(SMILES, IS_ALCOHOL)
    assert search.best_params_ == {"svc__C": 10}


def test_pipeline_with_memory_solves_a_fit_once(tmp_path, solves):
    model = make_svc().set_params(memory=str(tmp_path))
    first = model.fit(SMILES, IS_ALCOHOL).predict(SMILES)
    assert solves.n_pairs == N_PAIRS
    clear_cache()
    solves.calls.clear()
    model.set_params(svc__C=2.0).fit(SMILES, IS_ALCOHOL)
    assert solves.n_pairs == 0, "joblib did not recognise the graphs, or the kernel"
    clear_cache()
    model.set_params(svc__C=10).fit(SMILES, IS_ALCOHOL)
    assert_array_equal(model.predict(SMILES), first)
    model.set_params(marginalizedgraphkernel__stopping_probability=0.3).fit(SMILES, IS_ALCOHOL)
    assert solves.n_pairs > 0


def test_memory_gives_fitted_kernels_back_whole(tmp_path):
    model = make_svc().set_params(memory=str(tmp_path))
    expected = make_svc().fit(SMILES, IS_ALCOHOL).decision_function(["CCCCCCO", "CCCCCN"])
    for _ in range(2):
        model.set_params(svc__C=10).fit(SMILES, IS_ALCOHOL)
        assert_allclose(model.decision_function(["CCCCCCO", "CCCCCN"]), expected, rtol=1e-6)


def test_names_of_the_columns(graphs):
    kernel = make_kernel().fit(graphs[:3])
    names = kernel.get_feature_names_out()
    assert names.dtype == object
    assert names.tolist() == ["graph0", "graph1", "graph2"]


def test_pandas_output(graphs):
    smiles = pd.Series(SMILES, index=[f"row {k}" for k in range(24)], name="smiles")
    pipeline = make_pipeline(SmilesToGraphs(), make_kernel()).set_output(transform="pandas")
    frame = pipeline.fit_transform(smiles)
    assert isinstance(frame, pd.DataFrame)
    assert frame.columns.tolist() == [f"graph{k}" for k in range(24)]
    assert_array_equal(frame.to_numpy(), make_kernel()(graphs))
    table = make_kernel().set_output(transform="pandas").fit(graphs).transform(TEST)
    assert table.shape == (4, 24)


def test_pandas_output_keeps_the_index_of_a_series_of_graphs(graphs):
    series = pd.Series(list(graphs), index=[f"row {k}" for k in range(24)])
    frame = make_kernel().set_output(transform="pandas").fit_transform(series)
    assert frame.index.tolist() == series.index.tolist()


def table():
    """Return molecules with a number for each."""
    return pd.DataFrame({"smiles": SMILES, "pressure": np.linspace(0, 1, 24)})


def test_column_of_a_table():
    by_structure = make_pipeline(SmilesToGraphs(), make_kernel())
    columns = ColumnTransformer([("k", by_structure, "smiles"), ("p", "passthrough", ["pressure"])])
    features = columns.fit_transform(table())
    assert_array_equal(features[:, :24], make_kernel()(from_smiles(SMILES)))
    assert_array_equal(features[:, 24], table()["pressure"])
    assert columns.transform(table()[:5]).shape == (5, 25)


@pytest.mark.parametrize("selected", ["smiles", ["smiles"]], ids=["series", "frame"])
def test_model_on_a_column_of_a_table(selected):
    columns = ColumnTransformer([("k", make_pipeline(SmilesToGraphs(), make_kernel()), selected)])
    model = make_pipeline(columns, KernelRidge(0.1, kernel="precomputed"))
    expected = make_pipeline(
        SmilesToGraphs(), make_kernel(), KernelRidge(0.1, kernel="precomputed")
    ).fit(SMILES, TARGET)
    assert_allclose(
        model.fit(table(), TARGET).predict(table()), expected.predict(SMILES), rtol=1e-6
    )


def test_column_of_a_table_with_pandas_output_and_names():
    by_structure = make_pipeline(SmilesToGraphs(), make_kernel())
    columns = ColumnTransformer([("k", by_structure, "smiles"), ("p", "passthrough", ["pressure"])])
    frame = columns.set_output(transform="pandas").fit_transform(table())
    names = [*(f"k__graph{k}" for k in range(24)), "p__pressure"]
    assert frame.columns.tolist() == names
    assert columns.get_feature_names_out().tolist() == names


def test_union_of_two_kernels(graphs):
    elements = make_kernel(edge_kernel=None)
    union = FeatureUnion([("all", make_kernel()), ("elements", elements)])
    features = union.fit_transform(graphs)
    assert_array_equal(features, np.hstack([make_kernel()(graphs), elements(graphs)]))
    assert union.get_feature_names_out().tolist() == [
        f"{name}__graph{k}" for name in ("all", "elements") for k in range(24)
    ]


def test_feature_union_after_smiles():
    counts = FunctionTransformer(lambda batch: batch.sizes[:, None])
    model = make_pipeline(
        SmilesToGraphs(), FeatureUnion([("kernel", make_kernel()), ("size", counts)]), Ridge(0.1)
    )
    assert model.fit(SMILES, TARGET).score(SMILES, TARGET) > 0.9


def test_graphs_stay_whole_in_scikit_learn(graphs):
    seen = []

    def spy(batch):
        seen.append(batch)
        return batch

    model = make_pipeline(FunctionTransformer(spy), make_kernel(), SVC(kernel="precomputed"))
    cross_val_score(model, graphs, IS_ALCOHOL, cv=FOLDS)
    assert seen and all(isinstance(graph, Graph) for part in seen for graph in part)
