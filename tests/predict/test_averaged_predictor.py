"""A predictor that averages the portfolio: its probabilities, its files, what it says of itself, what it refuses."""

import json
import pickle
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import pytest
import torch
from own_graph import Files, fit, two_groups

from beltrami import BeltramiClassifier
from beltrami.auto.selection import AVERAGE, LINEAR
from beltrami.data.graph_reader import read_graph
from beltrami.errors import DataError
from beltrami.predict.predictions import ClassPredictions
from beltrami.predict.predictor import Predictor
from beltrami.predict.trained_models import AveragedEnsemble
from beltrami.report.collect_predictor import read_predictor
from beltrami.report.fit_facts import chosen_model

pytestmark = pytest.mark.slow


def noisy(*, labelled: int) -> Files:
    """Return two groups in which a fifth of the nodes have the other class."""
    files = two_groups(labelled + 60, labelled=labelled)
    random = np.random.RandomState(1)
    for row in files.nodes:
        if row.get("class") and random.rand() < 0.2:
            row["class"] = {"cat": "dog", "dog": "cat"}[row["class"]]
    return files


@cache
def averaged() -> Predictor:
    """Return the average of what a short budget allows on 600 labels."""
    with TemporaryDirectory() as folder:
        return fit(noisy(labelled=600).write(Path(folder)), fast=False, average=True, budget=1.0)


def test_probabilities_are_the_mean_of_those_of_the_parts() -> None:
    predictor = averaged()
    ensemble, weights = predictor.ensemble, predictor.record["weights"]
    assert isinstance(ensemble, AveragedEnsemble)
    assert predictor.record["chosen"] == AVERAGE
    assert list(weights.values()) == sorted(weights.values(), reverse=True) == list(ensemble.average.weights)
    assert sum(weights.values()) == pytest.approx(1)
    assert len(weights) > 1
    expected = torch.zeros(predictor.graph.num_nodes, 2)
    for part, weight, t in zip(ensemble.parts, *(ensemble.average.weights, ensemble.average.temperatures), strict=True):
        expected += weight * (part.outputs(predictor.graph)[0] / t).softmax(1)
    calibrated = (expected.log() / predictor.calibration.temperature).softmax(1)
    found = predictor.predict()
    assert isinstance(found, ClassPredictions)
    torch.testing.assert_close(found.probabilities, calibrated, rtol=1e-4, atol=1e-5)


def test_its_validation_is_measured_on_its_own_probabilities() -> None:
    predictor = averaged()
    (outputs,), split, y = predictor.ensemble.outputs(predictor.graph), predictor.splits[0], predictor.targets.y
    right = float((outputs.argmax(1) == y)[split.val].double().mean())
    assert predictor.record["validation"] == pytest.approx(right)
    attempt = predictor.record["attempts"][-1]
    assert (attempt["name"], attempt["metric"]) == (AVERAGE, predictor.record["validation"])


def test_it_is_the_same_from_its_files_and_pickled(tmp_path: Path) -> None:
    predictor = averaged()
    predictor.save(tmp_path)
    names = {path.name for path in tmp_path.iterdir()}
    assert {"config.json", "config-1.json", "model-0.safetensors", "model-1-0.safetensors"} <= names
    for other in (Predictor.load(tmp_path), pickle.loads(pickle.dumps(predictor))):
        for one, two in zip(other.ensemble.parts, predictor.ensemble.parts, strict=True):
            assert one.config == two.config
        assert torch.equal(other.ensemble.outputs(other.graph), predictor.ensemble.outputs(predictor.graph))


def test_another_graph_is_predicted_and_nodes_are_explained_by_the_first_part(tmp_path: Path) -> None:
    predictor = averaged()
    new = predictor.predict(read_graph(two_groups().write(tmp_path), label="class"))
    assert isinstance(new, ClassPredictions)
    assert new.probabilities.shape == (40, 2)
    for node in (3, 640):
        explained, (outputs,) = predictor.explain(f"n{node}"), predictor.ensemble.outputs(predictor.graph)
        assert explained.predicted == int(outputs[node].argmax())
        first = predictor.ensemble.parts[0].outputs(predictor.graph)[0, node]
        margin = float(first[explained.predicted] - first[1 - explained.predicted])
        assert explained.margin == pytest.approx(margin, rel=1e-3, abs=1e-3)


def test_its_report_says_what_is_averaged(tmp_path: Path) -> None:
    predictor = averaged()
    predictor.save(tmp_path)
    name, says = chosen_model(predictor)
    assert name == AVERAGE
    assert says.startswith("of ")
    assert says.count("%") == len(predictor.record["weights"])
    data, *_ = read_predictor(tmp_path, shown_as="run", device="cpu")
    assert data.facts["chosen model"] == f"average: {says}"
    count = len(predictor.ensemble.parts)
    assert data.facts["models"] == f"{count} are averaged; the one of the largest share is drawn and explained"


@pytest.mark.parametrize(
    ("change", "match"),
    [
        ({"weights": [2.0]}, "another number of weights"),
        ({"times": []}, "another number of weights"),
        ({"weights": lambda old: [2 * each for each in old]}, "not shares of 1"),
        ({"weights": lambda old: [1.5, -0.5, *[0.0] * (len(old) - 2)]}, "not shares of 1"),
        ({"temperatures": lambda old: [0.0] * len(old)}, "temperature that is not positive"),
        ({"times": lambda old: [[1e30]] * len(old)}, r"between 0 and \d+"),
    ],
)
def test_values_that_an_average_cannot_have_are_refused(tmp_path: Path, change: dict[str, Any], match: str) -> None:
    averaged().save(tmp_path)
    whole = json.loads((tmp_path / "predictor.json").read_text())
    ((name, new),) = change.items()
    whole["average"][name] = new(whole["average"][name]) if callable(new) else new
    (tmp_path / "predictor.json").write_text(json.dumps(whole))
    with pytest.raises(DataError, match=rf"predictor\.json cannot be read .*{match}"):
        Predictor.load(tmp_path)


def test_a_predictor_without_an_average_has_none_in_its_file(tmp_path: Path) -> None:
    fit(two_groups().write(tmp_path / "graph")).save(tmp_path / "run")
    path = tmp_path / "run" / "predictor.json"
    facts = json.loads(path.read_text())
    assert facts.pop("average") is None
    path.write_text(json.dumps(facts))  # as a version before averages wrote it
    assert Predictor.load(tmp_path / "run").record["chosen"] == LINEAR


def test_few_validation_labels_choose_one_model_and_the_table_says_so(tmp_path: Path) -> None:
    predictor = fit(noisy(labelled=80).write(tmp_path), fast=False, average=True, budget=0.5)
    attempt = predictor.record["attempts"][-1]
    assert predictor.record["chosen"] != AVERAGE
    assert not predictor.record["weights"]
    assert attempt["name"] == AVERAGE
    assert attempt["note"].endswith("validation labels are too few to choose weights by")


@pytest.mark.parametrize(
    ("options", "match"),
    [
        ({"fast": True}, "`fast` trains one model, and `average` averages several"),
        ({"fast": False, "balanced": True}, "leave it or `balanced` out"),
        ({"fast": False, "task": "labels"}, "`average` needs one class for each node, and the task is labels"),
    ],
)
def test_what_is_not_averaged_is_refused(tmp_path: Path, options: dict[str, Any], match: str) -> None:
    with pytest.raises(ValueError, match=match):
        fit(two_groups().write(tmp_path), average=True, **options)


def test_an_estimator_averages() -> None:
    random = np.random.RandomState(0)
    y = random.randint(3, size=800)
    X = random.randn(800, 4) + 1.5 * np.eye(3, 4)[y]
    seen = np.where(np.arange(800) < 700, y, -1)
    model = BeltramiClassifier(average=True, budget=1.0).fit(X, seen)
    assert model.predictor_.record["chosen"] == AVERAGE
    assert (model.predict_nodes(range(700, 800)) == y[700:]).mean() > 0.6
    assert model.predict_proba(X[700:]).sum(1) == pytest.approx(np.ones(100), abs=1e-5)
    with pytest.raises(ValueError, match="`recipe='linear'` trains one model"):
        BeltramiClassifier("linear", average=True).fit(X, seen)
