"""The estimators for scikit-learn: its own checks, unlabelled rows, forms of edges, sets, pickles, invariance."""

import copy
import pickle
import pickletools
from typing import Any

import networkx as nx
import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from scipy.sparse import csr_array, csr_matrix
from sklearn.base import clone
from sklearn.datasets import load_diabetes, load_digits, load_wine, make_blobs
from sklearn.exceptions import DataConversionWarning, NotFittedError
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

from beltrami import BeltramiClassifier, BeltramiRegressor
from beltrami.errors import DataError, DirectedGraphWarning

Array = NDArray[Any]
FAST: dict[str, Any] = {"recipe": "linear", "folds": 2}
EXPECTED = {"check_classifiers_classes": "-1 is an unlabelled row, as in sklearn.semi_supervised, and no class"}


def declared(estimator: Any) -> dict[str, str]:
    return EXPECTED if isinstance(estimator, BeltramiClassifier) else {}


@pytest.mark.slow
@parametrize_with_checks(  # type: ignore[untyped-decorator]
    [BeltramiClassifier(**FAST), BeltramiRegressor(**FAST)], expected_failed_checks=declared, xfail_strict=True
)
def test_a_check_of_scikit_learn_passes(estimator: Any, check: Any) -> None:
    check(estimator)


def blobs(*, n: int = 60, labelled: int = 10) -> tuple[Array, Array, Array]:
    """Return rows of three groups, their classes, and the classes with -1 at all but some rows of each."""
    x, y = make_blobs(n, centers=3, random_state=0, cluster_std=0.6)[:2]
    given = np.full(n, -1)
    for c in range(3):
        rows = np.flatnonzero(y == c)[:labelled]
        given[rows] = c
    return x, y, given


def right(found: Array, y: Array) -> float:
    return float(np.mean(found == y))


def test_unlabelled_rows_are_predicted_and_so_are_new_ones() -> None:
    x, y, given = blobs()
    model = BeltramiClassifier(**FAST).fit(x, given)
    assert right(model.transduction_, y) > 0.9
    assert right(model.predict(x), y) > 0.9
    assert model.label_distributions_.shape == (60, 3)
    assert model.predict_nodes([3, 5]).tolist() == model.transduction_[[3, 5]].tolist()
    assert model.score(x, y) == right(model.predict(x), y)
    assert model.n_features_in_ == 2


@pytest.mark.parametrize("unknown", [None, float("nan"), -1])
def test_objects_have_none_nan_or_minus_one_where_unlabelled(unknown: Any) -> None:
    x, y, given = blobs()
    names = np.array(["red", "green", "blue"], dtype=object)
    words = np.array([unknown if c < 0 else names[c] for c in given], dtype=object)
    model = BeltramiClassifier(**FAST).fit(x, words)
    assert model.classes_.tolist() == ["blue", "green", "red"]
    assert right(model.transduction_, names[y]) > 0.9


def ring_of_groups() -> tuple[Array, Array, Array, Array]:
    """Return weak features, classes, some of them, and undirected edges (2, m), mostly within the groups of 20."""
    random = np.random.RandomState(0)
    y = np.repeat([0, 1, 2], 20)
    pairs = [(a, 20 * (a // 20) + (a + step) % 20) for a in range(60) for step in (1, 2, 5)] + [(0, 20), (20, 40)]
    given = np.where(random.rand(60) < 0.3, y, -1)
    return random.randn(60, 3) + 0.5 * y[:, None], y, given, np.array(pairs).T


@pytest.mark.slow
def test_edges_are_given_in_any_form() -> None:
    x, y, given, pairs = ring_of_groups()
    both = np.concatenate((pairs, pairs[::-1]), 1)
    matrix = csr_array((np.ones(both.shape[1]), tuple(both)), shape=(60, 60))
    graph = nx.Graph(pairs.T[::-1].tolist())
    named = nx.relabel_nodes(nx.Graph([*nx.path_graph(60).edges]), str)
    named.remove_edges_from([*named.edges])
    named.add_edges_from((str(a), str(b)) for a, b in pairs.T)
    models = [
        BeltramiClassifier(**FAST).fit(x, given, edges=edges)
        for edges in (both, torch.as_tensor(both), matrix, csr_matrix(matrix), graph, named)
    ]
    assert right(models[0].transduction_, y) > 0.9
    for model in models[1:]:
        assert np.allclose(model.label_distributions_, models[0].label_distributions_, atol=1e-6)


@pytest.mark.slow
def test_edges_in_one_direction_are_announced_and_used_in_both() -> None:
    x, _, given, pairs = ring_of_groups()
    both = np.concatenate((pairs, pairs[::-1]), 1)
    expected = BeltramiClassifier(**FAST).fit(x, given, edges=both)
    for edges in (pairs, nx.DiGraph(pairs.T.tolist())):
        with pytest.warns(DirectedGraphWarning, match="182 of 182 edges were given in one direction"):
            model = BeltramiClassifier(**FAST).fit(x, given, edges=edges)
        assert np.allclose(model.label_distributions_, expected.label_distributions_, atol=1e-6)


@pytest.mark.slow
def test_wrong_inputs_are_refused() -> None:
    x, _, given, pairs = ring_of_groups()
    model = BeltramiClassifier(**FAST)
    with pytest.raises(NotFittedError):
        model.predict_set()
    with pytest.raises(ValueError, match="`recipe` must be 'auto' or 'linear'; got 'best'"):
        BeltramiClassifier("best").fit(x, given)
    with pytest.raises(ValueError, match=r"`edges` must have shape \(60, 60\)"):
        model.fit(x, given, edges=csr_array((3, 3)))
    with pytest.raises(ValueError, match="`edges` has 2 nodes where X has 60 rows"):
        model.fit(x, given, edges=nx.path_graph(2))
    with pytest.raises(DataError, match="the edges name node 60, but there are 60 nodes"):
        model.fit(x, given, edges=pairs + 1)
    with pytest.raises(ValueError, match="must hold 0 and 1, or -1 in all columns"):
        model.fit(x, np.stack((given, given), 1))
    with pytest.raises(ValueError, match="all labels are '0'"):
        model.fit(x, np.where(given == 1, 1, -1))
    with pytest.raises(ValueError, match=r"MultiOutputRegressor"):
        BeltramiRegressor(**FAST).fit(x, x)
    with pytest.warns(DataConversionWarning):
        model.fit(x, given[:, None], edges=np.concatenate((pairs, pairs[::-1]), 1))
    with pytest.raises(ValueError, match="this estimator was fitted with edges"):
        model.predict(x)
    with pytest.raises(ValueError, match="no labels were set aside for sets"):
        model.predict_set()


@pytest.mark.slow
def test_several_labels_a_row() -> None:
    x, y, _ = blobs()
    true = np.stack((y == 0, y != 1, y == 2), 1).astype(int)
    given = np.where(np.arange(60)[:, None] % 2, true, -1)
    model = BeltramiClassifier(**FAST).fit(x, given)
    assert right(model.transduction_, true) > 0.9
    assert right(model.predict(x), true) > 0.9
    assert model.predict_proba(x).shape == (60, 3)
    assert model.classes_.tolist() == [0, 1, 2]


@pytest.mark.slow
def test_numbers_are_predicted() -> None:
    x, y = load_diabetes(return_X_y=True)
    given = np.where(np.arange(len(y)) % 2, y, np.nan)
    model = BeltramiRegressor("linear").fit(x, given)
    hidden = np.isnan(given)
    assert 1 - np.var(model.transduction_[hidden] - y[hidden]) / np.var(y[hidden]) > 0.35
    assert model.score(x[hidden], y[hidden]) > 0.35
    for rows in (None, x[hidden]):
        ends = model.predict_interval(rows, coverage=0.8)
        truth = y if rows is None else y[hidden]
        assert 0.7 < np.mean((ends[:, 0] <= truth) & (truth <= ends[:, 1])) < 0.95


@pytest.mark.slow
def test_data_frames_with_words_are_accepted() -> None:
    pandas = pytest.importorskip("pandas")
    x, y, given = blobs()
    frame = pandas.DataFrame({"a": x[:, 0], "b": x[:, 1]})
    model = BeltramiClassifier(**FAST).fit(frame, given)
    assert model.feature_names_in_.tolist() == ["a", "b"]
    assert np.array_equal(model.predict(frame), BeltramiClassifier(**FAST).fit(x, given).predict(x))
    frame["colour"] = pandas.Categorical(np.array(["red", "green", "blue"])[y])
    frame = frame.drop(columns="b")
    model = BeltramiClassifier(**FAST).fit(frame, given)
    assert right(model.predict(frame), y) > 0.95
    with pytest.raises(ValueError, match="feature names"):
        model.predict(frame.rename(columns={"colour": "paint"}))


def test_the_prediction_of_a_row_depends_on_no_other_new_row() -> None:
    x, y = load_wine(return_X_y=True)
    model = BeltramiClassifier(**FAST).fit(x[::2], y[::2])
    new = x[1::2]
    together, order = model.predict_proba(new), np.random.RandomState(0).permutation(len(new))
    assert np.allclose(model.predict_proba(new[order]), together[order], rtol=0, atol=1e-6)
    far = np.concatenate((new[:5], 1e3 * new[5:]))
    assert np.allclose(model.predict_proba(far)[:5], together[:5], rtol=0, atol=1e-5)
    assert np.allclose(model.predict_proba(new[3:4]), together[3:4], rtol=0, atol=1e-6)


def test_a_pickle_has_weights_and_settings_and_predicts_the_same() -> None:
    x, _, given = blobs()
    model = BeltramiClassifier(**FAST).fit(x, given)
    content = pickle.dumps(model)
    for other in (pickle.loads(content), copy.deepcopy(model)):
        assert np.array_equal(other.predict_proba(x), model.predict_proba(x))
        assert np.array_equal(other.transduction_, model.transduction_)
    texts = {str(argument) for _, argument, _ in pickletools.genops(content)}
    modules = {text for text in texts if text.startswith(("beltrami", "torch", "builtins", "functools"))}
    assert modules == {"beltrami.estimator", "beltrami.predict.predictor"}


@pytest.mark.slow
def test_pipelines_grid_search_and_clones_work() -> None:
    x, y, given = blobs()
    pipeline = make_pipeline(StandardScaler(), BeltramiClassifier(**FAST)).fit(x, given)
    assert right(pipeline.predict(x), y) > 0.9
    search = GridSearchCV(BeltramiClassifier(**FAST), {"balanced": [False, True]}, cv=2).fit(x, y)
    assert search.best_score_ > 0.9
    assert clone(search.best_estimator_).get_params() == search.best_estimator_.get_params()


@pytest.mark.slow
def test_sets_hold_the_digit_as_often_as_asked() -> None:
    x, y = load_digits(return_X_y=True)
    random = np.random.RandomState(0).rand(len(y))
    given, seen = np.where(random < 0.3, y, -1), random < 0.7
    model = BeltramiClassifier("linear").fit(x[seen], given[seen])
    inside = {None: model.predict_set(coverage=0.95), "new": model.predict_set(x[~seen], coverage=0.95)}
    hidden = given[seen] < 0
    at_rows = inside[None][hidden, y[seen][hidden]].mean()
    at_new = inside["new"][np.arange((~seen).sum()), y[~seen]].mean()
    assert at_rows > 0.92
    assert at_new > 0.92
    assert inside["new"].sum(1).mean() < 1.5


@pytest.mark.slow
def test_the_portfolio_is_trained_by_default() -> None:
    x, y, given = blobs(n=180, labelled=34)
    model = BeltramiClassifier(budget=2.0).fit(x, given)
    attempts = {each["name"]: each for each in model.predictor_.record["attempts"]}
    assert "attention" in attempts
    assert "join similar rows already" in attempts["similarity-edges"]["note"]
    assert right(model.transduction_, y) > 0.9


@pytest.mark.parametrize(
    ("name", "value"),
    [("recipe", "x"), ("budget", "x"), ("calibration", 2.0), ("folds", 0), ("device", "tpu"), ("balanced", "no")],
)
def test_fit_refuses_a_wrong_parameter_by_its_name(name: str, value: object) -> None:
    x, y = np.random.RandomState(0).rand(20, 3), np.arange(20) % 2
    with pytest.raises(ValueError, match=f"`{name}`"):
        BeltramiClassifier(**({"recipe": "linear"} | {name: value})).fit(x, y)
