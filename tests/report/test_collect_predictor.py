"""The data of a report of a predictor are its own predictions, sets, scores and labels."""

import csv
from dataclasses import replace
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import pytest
from own_graph import Files, fit, two_groups

from beltrami.errors import DataError
from beltrami.predict.predictor import Predictor
from beltrami.report.collect import LoadedRun
from beltrami.report.run_data import PARTS, RunData


def files_of(kind: str) -> Files:
    """Return a graph of two groups with labels of a kind at 56 of 64 nodes."""
    files = two_groups(64, labelled=56)
    if kind == "numbers":
        files.add("class", lambda k: f"{100 + 10 * (k % 2) + 0.1 * k:.1f}" if k < 56 else "")
    if kind == "labels":
        files.add("class", lambda k: ("cat;small", "dog", "cat", "dog;small")[k % 4] if k < 56 else "")
    return files


@cache
def collected(kind: str, balanced: bool = False) -> tuple[RunData, Predictor, dict[str, dict[str, str]]]:
    """Return the data of a predictor, the predictor, and the rows of its predictions by id."""
    with TemporaryDirectory() as name:
        folder = Path(name)
        options = {"calibration": 0.4, "balanced": balanced, "folds": 2}
        predictor = fit(files_of(kind).write(folder / "graph"), tables={"label": ("class",)}, **options)
        predictor = replace(predictor, record={**predictor.record, "balanced": balanced})  # as the command line
        predictor.save(folder / "run")
        predictor.predict().write(folder / "predictions.csv")
        with (folder / "predictions.csv").open(newline="") as file:
            rows = {row["id"]: row for row in csv.DictReader(file)}
        return LoadedRun.load(folder / "run").data(seconds=0.3), predictor, rows


def numbers_in(rows: dict[str, dict[str, str]], column: str) -> Any:
    return np.array([float(row[column]) for row in rows.values()])


@pytest.mark.slow
def test_probabilities_sets_and_labels_are_those_of_the_predictor() -> None:
    data, predictor, rows = collected("classes")
    assert (data.kind, list(data.names), data.metric) == ("classes", ["cat", "dog"], "accuracy")
    assert list(data.nodes.ids) == list(rows)
    assert data.nodes.probabilities is not None
    np.testing.assert_allclose(data.nodes.probabilities[:, 1], numbers_in(rows, "p_dog"), rtol=1e-5)
    assert [data.names[c] for c in data.nodes.predicted] == [row["prediction"] for row in rows.values()]
    assert data.nodes.sets is not None
    np.testing.assert_array_equal(data.nodes.sets.sum(1), numbers_in(rows, "set_size"))
    truth = files_of("classes").truth.values()
    assert data.nodes.label[:56].tolist() == [("cat", "dog").index(group) for group in truth][:56]
    assert data.nodes.label[56:].tolist() == [-1] * 8
    part = [PARTS[k] for k in data.nodes.part]
    assert part[56:] == ["other"] * 8
    assert part.count("calibration") == predictor.record["nodes"]["calibration"]
    assert (data.nodes.degree == [5, 5] + [4] * 62).all()
    assert any(note.startswith("A set or interval at coverage 0.9 from ") for note in data.notes)


def test_scores_are_recounted_or_those_on_record() -> None:
    data, predictor, _ = collected("classes")
    right, part = data.nodes.label == data.nodes.predicted, data.nodes.part
    for name in ("train", "calibration"):
        assert data.scores[name] == pytest.approx(right[part == PARTS.index(name)].mean())
    assert data.scores["validation"] == predictor.record["validation"]
    first, *others = data.baselines
    assert first == ("linear diffusion", predictor.record["validation"], None)
    recorded = [(each["name"], each["validation"]) for each in predictor.record["baselines"]]
    assert [each[:2] for each in others] == recorded[:2]
    assert data.facts["chosen model"] == "linear diffusion: a linear model of diffused features"


def test_frames_are_those_of_the_first_model() -> None:
    data, predictor, _ = collected("classes")
    assert data.flow is not None
    assert data.flow.times[-1] == predictor.ensemble.times[0]
    outputs = predictor.ensemble.outputs(predictor.graph)[0]
    np.testing.assert_array_equal(data.flow.predicted[-1], outputs.argmax(1))
    p = (outputs / predictor.calibration.temperature).softmax(1).amax(1)
    assert data.flow.confidence is not None
    np.testing.assert_allclose(data.flow.confidence[-1], p, atol=1e-4)
    assert data.along is not None
    mask = predictor.splits[0].val.numpy()
    right = outputs.argmax(1).numpy()[mask] == data.nodes.label[mask]
    at = data.along.times.tolist().index(data.along.chosen)
    assert data.along.accuracy["validation"][at] == pytest.approx(right.mean())


@pytest.mark.slow
def test_numbers_have_intervals_and_errors_in_their_units() -> None:
    data, predictor, rows = collected("numbers")
    assert (data.kind, data.metric, data.nodes.probabilities) == ("numbers", "error", None)
    np.testing.assert_allclose(data.nodes.predicted, numbers_in(rows, "prediction"), rtol=1e-5)
    assert data.nodes.interval is not None
    np.testing.assert_allclose(data.nodes.interval[:, 1], numbers_in(rows, "upper"), rtol=1e-5)
    error = data.nodes.predicted - data.nodes.label
    assert np.isnan(error[56:]).all()
    for name in ("train", "calibration"):
        rows_of = data.nodes.part == PARTS.index(name)
        assert data.scores[name] == pytest.approx(np.sqrt(np.square(error[rows_of]).mean()), rel=1e-4)
    assert data.scores["validation"] == -predictor.record["validation"] > 0
    assert all(validation > 0 for _, validation, _ in data.baselines)
    assert data.flow is not None
    assert data.flow.confidence is None
    outputs = predictor.ensemble.outputs(predictor.graph)[0, :, 0]
    values = outputs.numpy() * predictor.calibration.scale[0] + predictor.calibration.centre[0]
    np.testing.assert_allclose(data.flow.predicted[-1], values, rtol=1e-3)
    np.testing.assert_allclose(np.diff(data.flow.positions[..., 1], axis=0), 0)  # one number: nodes move sideways
    reasons = next(iter(data.reasons.values()))
    assert (reasons.predicted, reasons.other) == ("class", "")
    assert reasons.margin == pytest.approx(
        data.nodes.predicted[reasons.node] - predictor.calibration.centre[0], rel=1e-3
    )


@pytest.mark.slow
def test_several_labels_are_shown_as_zeros_and_ones() -> None:
    data, _, rows = collected("labels")
    assert (data.kind, list(data.names), data.metric) == ("labels", ["cat", "dog", "small"], "micro-F1")
    assert data.nodes.label[:4].tolist() == [[1, 0, 1], [0, 1, 0], [1, 0, 0], [0, 1, 1]]
    assert (data.nodes.label[56:] == -1).all()
    assert data.nodes.probabilities is not None
    np.testing.assert_allclose(data.nodes.probabilities[:, 2], numbers_in(rows, "p_small"), rtol=1e-5)
    np.testing.assert_array_equal(data.nodes.predicted, data.nodes.probabilities > 0.5)
    assert data.flow is not None
    assert data.flow.predicted.max() <= 2
    part = data.nodes.part == PARTS.index("train")
    true, found = data.nodes.label[part] == 1, data.nodes.predicted[part] == 1
    assert data.scores["train"] == pytest.approx(2 * (true & found).sum() / (true.sum() + found.sum()))


@pytest.mark.slow
def test_balanced_scores_count_every_class_the_same() -> None:
    data, predictor, _ = collected("classes", balanced=True)
    assert data.metric == "balanced accuracy"
    right, label = data.nodes.label == data.nodes.predicted, data.nodes.label
    among = [label[predictor.trained_on.numpy()] == c for c in range(2)]
    part = data.nodes.part == PARTS.index("calibration")
    weight = np.array([1 / count.sum() for count in among])[label[part]]
    assert data.scores["calibration"] == pytest.approx((right[part] * weight).sum() / weight.sum(), rel=1e-5)


@pytest.mark.slow
def test_a_damaged_predictor_is_refused_in_a_sentence(tmp_path: Path) -> None:
    fit(files_of("classes").write(tmp_path / "graph")).save(tmp_path / "run")
    (tmp_path / "run" / "graph.safetensors").write_bytes(b"")
    with pytest.raises(DataError, match=r"graph\.safetensors has changed since the run was saved: [^.]*\.$"):
        LoadedRun.load(tmp_path / "run")
    (tmp_path / "run" / "predictor.json").write_text("{")
    with pytest.raises(DataError, match=r"predictor\.json cannot be read .*: train again\.$"):
        LoadedRun.load(tmp_path / "run")


@pytest.mark.slow
def test_nodes_that_no_label_reaches_are_said(tmp_path: Path) -> None:
    files = two_groups(12, labelled=10)
    files.nodes += [{"id": "far"}, {"id": "away"}]
    files.edges += [{"source": "far", "target": "away"}]
    fit(files.write(tmp_path / "graph")).save(tmp_path / "run")
    data = LoadedRun.load(tmp_path / "run").data(seconds=0)
    assert data.nodes.reached is not None
    assert data.nodes.reached.tolist() == [True] * 12 + [False] * 2
    assert "No label reaches 2 nodes: they have no prediction." in data.notes
