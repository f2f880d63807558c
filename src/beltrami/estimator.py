"""Estimators for scikit-learn: a table or a graph with labels at some rows, and predictions for the others."""

from typing import Any, Literal, cast

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin
from sklearn.utils import Tags, check_random_state, column_or_1d
from sklearn.utils.validation import assert_all_finite, check_consistent_length, check_is_fitted

from beltrami.auto.fit_graph import fit_graph
from beltrami.data.labelled_split import CALIBRATION, FOLDS
from beltrami.data.table import Column, Numbers
from beltrami.estimator_input import as_table, check_recipe, class_column, features, label_columns, labelled_rows
from beltrami.predict.predictions import ClassPredictions, NumberPredictions, Predictions
from beltrami.predict.predictor import Predictor

BUDGET = 5.0  # seconds
FEWEST_LABELS = 100  # that can choose among the members of the portfolio
Array = NDArray[Any]
Recipe = Literal["auto", "linear"]


class _GraphEstimator(BaseEstimator):  # type: ignore[misc]
    """The common part of both estimators: parameters, the way from arrays to a graph, predictions at new rows."""

    predictor_: Predictor
    transduction_: Array

    def __init__(
        self,
        recipe: Recipe = "auto",
        *,
        budget: float = BUDGET,
        calibration: float = CALIBRATION,
        folds: int = FOLDS,
        random_state: Any = 0,
        device: str = "cpu",
    ) -> None:
        self.recipe = recipe
        self.budget = budget
        self.calibration = calibration
        self.folds = folds
        self.random_state = random_state
        self.device = device

    def __sklearn_tags__(self) -> Tags:
        tags: Tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.input_tags.allow_nan = True  # missing values are imputed
        tags.input_tags.string = tags.input_tags.categorical = False  # in data frames alone
        return tags

    def predict_nodes(self, nodes: Any = None) -> Array:
        """Return the prediction at rows, or nodes, of the training, by their numbers; at all of them for None."""
        check_is_fitted(self)
        return np.asarray(self.transduction_ if nodes is None else self.transduction_[nodes])

    def _fit(self, x: Any, labels: dict[str, Column], edges: Any, **options: Any) -> Predictions:
        """Train on validated features and labels; return the predictions at the training rows."""
        average = check_recipe(self.recipe, options.pop("average", False))
        fast = self.recipe == "linear" or labelled_rows(labels) < FEWEST_LABELS
        seed = self.random_state
        if not isinstance(seed, (int, np.integer)):
            seed = int(check_random_state(seed).randint(2**31))
        self.with_edges_ = edges is not None
        self.predictor_ = fit_graph(
            as_table(x, edges, labels=labels),
            budget=self.budget,
            fast=fast,
            average=average and not fast,
            calibration=self.calibration,
            folds=self.folds,
            seed=int(seed),
            device=self.device,
            baselines=False,
            **options,
        )
        return self._at_nodes()

    def _at_nodes(self, *, coverage: float | None = None) -> Predictions:
        """Return the predictions at the rows of the training."""
        check_is_fitted(self)
        found = self.predictor_.predict(coverage=coverage, from_features=True, device=self.device)
        if coverage is not None and found.guarantee is None:
            raise ValueError(
                "no labels were set aside for sets, as they are too few or `calibration` is 0: label more rows."
            )
        return found

    def _at_rows(self, x: Any) -> Predictions:
        """Return the predictions at new rows."""
        check_is_fitted(self)
        x = features(self, x, reset=False)
        if self.with_edges_:
            raise ValueError(
                "this estimator was fitted with edges, and new rows have none: read `transduction_`, or call "
                "`predict_nodes`."
            )
        return self.predictor_.predict(as_table(x), coverage=None, device=self.device)


class BeltramiClassifier(ClassifierMixin, _GraphEstimator):  # type: ignore[misc]
    """Classify the rows of a table, or the nodes of a graph, from labels at some of them, by diffusion on the graph.

    Without ``edges`` each row is joined to its nearest rows, and ``predict`` takes new rows. With ``edges`` the results
    are those at the nodes: ``transduction_``, ``label_distributions_`` and :meth:`predict_nodes`.

    Parameters
    ----------
    recipe : {"auto", "linear"}
        "auto" trains linear diffusion and a portfolio of flows, and keeps the best by validation. "linear" trains
        linear diffusion alone, in about a second; so does "auto" with fewer than 100 labels, too few to choose by.
    budget : float
        Seconds for the portfolio.
    balanced : bool
        Let every class count the same, however few of its rows are labelled.
    average : bool
        Average the models, weighted by validation, in place of keeping the best; not ``balanced``, one class a row.
    calibration : float
        Share of the labels that are set aside for :meth:`predict_set`; none if it would be fewer than 19.
    folds : int
        Folds of the cross-validation; with 50 labels a class or more a quarter of the labels validates instead.
    random_state : int, RandomState or None
        Seed of the splits and of the weights.
    device : str
        Where the portfolio is trained: cpu or cuda.

    Attributes
    ----------
    classes_ : array
        The classes; for several labels a row their numbers.
    transduction_ : array
        The class predicted at each row of the training, or its labels of 0 and 1.
    label_distributions_ : array
        Probabilities of the classes or labels at each row of the training.
    predictor_ : beltrami.Predictor
        The trained predictor.
    """

    def __init__(
        self,
        recipe: Recipe = "auto",
        *,
        budget: float = BUDGET,
        balanced: bool = False,
        average: bool = False,
        calibration: float = CALIBRATION,
        folds: int = FOLDS,
        random_state: Any = 0,
        device: str = "cpu",
    ) -> None:
        super().__init__(
            recipe, budget=budget, calibration=calibration, folds=folds, random_state=random_state, device=device
        )
        self.balanced = balanced
        self.average = average

    def __sklearn_tags__(self) -> Tags:
        tags: Tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_label = True
        return tags

    def fit(self, X: Any, y: Any, edges: Any = None) -> "BeltramiClassifier":
        """Train on rows ``X`` (n, features) with classes ``y`` (n,), or labels of 0 and 1 (n, labels).

        Unlabelled rows have -1, None or NaN, in all columns of several labels. ``edges``: node numbers (2, m), a sparse
        matrix (n, n) or a networkx graph; edges are used in both directions.
        """
        x = features(self, X, y)
        y = np.asarray(y)
        check_consistent_length(X, y)
        self.multilabel_ = y.ndim == 2 and y.shape[1] > 1
        if self.multilabel_:
            self.classes_, labels, task = *label_columns(y), "labels"
        else:
            self.classes_, labels, task = *class_column(column_or_1d(y, warn=True)), "classes"
        options = {"balanced": self.balanced, "average": self.average}
        found = cast(ClassPredictions, self._fit(x, labels, edges, task=task, **options))
        self.label_distributions_ = found.probabilities.numpy()
        self.transduction_ = self._decide(self.label_distributions_)
        return self

    def predict_proba(self, X: Any) -> Array:
        """Return the calibrated probabilities of the classes, or labels, at new rows, (n, classes)."""
        return np.asarray(cast(ClassPredictions, self._at_rows(X)).probabilities.numpy())

    def predict(self, X: Any) -> Array:
        """Return the most likely class of each new row, or its labels of 0 and 1."""
        return self._decide(self.predict_proba(X))

    def predict_set(self, X: Any = None, *, coverage: float = 0.9) -> Array:
        """Return sets that hold the true class with probability ``coverage``, as a mask (n, classes).

        At the rows of the training (``X=None``) this is guaranteed if the labelled rows were drawn at random; at new
        rows of the same distribution it holds approximately. Several labels: the set holds all labels of a row.
        """
        found = cast(ClassPredictions, self._at_nodes(coverage=coverage))
        if X is None:
            assert found.sets is not None
            return np.asarray(found.sets.numpy())
        conformal = self.predictor_.calibration.conformal
        assert conformal is not None
        probabilities = cast(ClassPredictions, self._at_rows(X)).probabilities
        return np.asarray(conformal.sets(probabilities, coverage=coverage).numpy())

    def _decide(self, probabilities: Array) -> Array:
        if self.multilabel_:
            return (probabilities > 0.5).astype(np.int64)
        return np.asarray(self.classes_[probabilities.argmax(1)])


class BeltramiRegressor(RegressorMixin, _GraphEstimator):  # type: ignore[misc]
    """Predict a number at the rows of a table, or the nodes of a graph, from numbers at some of them.

    Parameters and ``edges`` are those of :class:`BeltramiClassifier`; unknown targets are NaN. ``transduction_`` holds
    the prediction at each row of the training.
    """

    def fit(self, X: Any, y: Any, edges: Any = None) -> "BeltramiRegressor":
        """Train on rows ``X`` (n, features) with numbers ``y`` (n,), NaN where unknown."""
        x = features(self, X, y)
        y = np.asarray(y, dtype=np.float64)
        if y.ndim == 2 and y.shape[1] > 1:
            raise ValueError(
                f"BeltramiRegressor predicts one number a row, and `y` has {y.shape[1]} columns: wrap it in "
                "`sklearn.multioutput.MultiOutputRegressor`."
            )
        y = column_or_1d(y, warn=True)
        check_consistent_length(X, y)
        assert_all_finite(y, allow_nan=True, input_name="y")
        found = cast(NumberPredictions, self._fit(x, {"y": Numbers(y)}, edges, task="numbers"))
        self.transduction_ = found.values.numpy()
        return self

    def predict(self, X: Any) -> Array:
        """Return the predicted number of each new row."""
        return np.asarray(cast(NumberPredictions, self._at_rows(X)).values.numpy())

    def predict_interval(self, X: Any = None, *, coverage: float = 0.9) -> Array:
        """Return the ends of intervals, (n, 2), that hold the true number with probability ``coverage``; see
        :meth:`BeltramiClassifier.predict_set` for rows of the training and new rows."""
        found = cast(NumberPredictions, self._at_nodes(coverage=coverage))
        assert found.interval is not None
        if X is None:
            return np.stack([end.numpy() for end in found.interval], 1)
        conformal = self.predictor_.calibration.conformal
        assert conformal is not None
        values = cast(NumberPredictions, self._at_rows(X)).values
        return np.stack([end.numpy() for end in conformal.interval(values, coverage=coverage)], 1)
