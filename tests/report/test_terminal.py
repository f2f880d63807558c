"""The terminal shows the accuracy first, and nothing at all where nobody watches."""

from dataclasses import replace
from pathlib import Path

import pytest

from beltrami.data import CATALOGUE, Availability
from beltrami.report.terminal import catalogue, downloading, evaluation, summary, training
from beltrami.result import RunResult
from beltrami.train import Epoch, ValidationScore

RESULT = RunResult(
    dataset="cora",
    recipe="blend",
    seed=3,
    split={"protocol": "digl", "seed": 3, "hash": "0123456789abcdef"},
    val_accuracy=81.3,
    test_accuracy=84.126,
    best_time=18.29,
    best_epoch=61,
    epochs=100,
    train_seconds=12.5,
    evaluations={"forward": 7600, "backward": 12},
    parameters=102_345,
    attention_spread=0.25,
    device="cpu",
    versions={},
)


@pytest.fixture(autouse=True)
def wide_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "200")
    monkeypatch.setenv("TERM", "dumb")


def test_summary_begins_with_the_test_accuracy(capsys: pytest.CaptureFixture[str]) -> None:
    summary(RESULT, folder=Path("runs") / "mine")
    out = capsys.readouterr().out
    assert out.startswith("test accuracy 84.13%  (validation 81.30%)\n")
    for fact in (
        "cora, split digl 3 (0123456789abcdef)",
        "18.3, by validation, at epoch 61 of 100",
        "7,600 forward, 12 backward",
        "102,345",
        "0.250",
        "12.5 s on cpu",
        f"saved in {Path('runs') / 'mine'}",
    ):
        assert fact in out
    assert "LabelSpreading" not in out


def test_summary_of_a_model_without_time_says_so(capsys: pytest.CaptureFixture[str]) -> None:
    summary(replace(RESULT, best_time=0.0), folder=Path("runs"))
    assert "none, at epoch 61 of 100" in capsys.readouterr().out


def test_summary_sets_label_spreading_beside_it(capsys: pytest.CaptureFixture[str]) -> None:
    summary(RESULT, folder=Path("runs"), label_spreading={"rbf": 61.5, "knn": 90.123})
    lines = capsys.readouterr().out.splitlines()
    assert lines[1:3] == [
        "LabelSpreading 61.50%  (scikit-learn, rbf kernel, same split)",
        "LabelSpreading 90.12%  (scikit-learn, knn kernel, same split)",
    ]


def test_evaluation_says_whether_it_is_as_recorded(capsys: pytest.CaptureFixture[str]) -> None:
    evaluation(RESULT, val_accuracy=81.3, test_accuracy=84.126)
    assert capsys.readouterr().out == "test accuracy 84.13%  (validation 81.30%)\nas recorded\n"
    evaluation(RESULT, val_accuracy=81.3, test_accuracy=80.0)
    out = capsys.readouterr().out
    assert out.startswith("test accuracy 80.00%  (validation 81.30%)\n")
    assert "recorded: test 84.13%, validation 81.30%, on cpu" in out


def test_catalogue_has_a_row_for_every_dataset(capsys: pytest.CaptureFixture[str]) -> None:
    catalogue(CATALOGUE, dict.fromkeys(CATALOGUE, Availability.CACHE))
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].split() == ["dataset", "nodes", "edges", "features", "classes", "at", "hand"]
    assert [line.split()[0] for line in lines[1:-1]] == list(CATALOGUE)
    assert lines[2].split() == ["cora", "2,485", "5,069", "1,433", "7", "cached"]


def test_progress_is_silent_where_nobody_watches(capsys: pytest.CaptureFixture[str]) -> None:
    with downloading() as progress:
        progress("ind.cora.x", 10, 100)
        progress("ind.cora.x", 100, 100)
    with training(2, title="toy") as on_epoch:
        on_epoch(Epoch(1, (0,), (0.5,), (ValidationScore(0.9, -0.4, 2.0),), (ValidationScore(0.9, -0.3, 4.0),), 16, 2))
    assert capsys.readouterr() == ("", "")


def test_watched_training_shows_the_epoch(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("FORCE_COLOR", "1")
    with training(2, title="toy") as on_epoch:
        on_epoch(Epoch(1, (0,), (0.5,), (ValidationScore(0.9, -0.4, 2.0),), (ValidationScore(0.95, -0.3, 4.0),), 16, 2))
    out, err = capsys.readouterr()
    assert out == ""
    assert "loss 0.500  val 90.0  best 95.0 at t = 4.00  f 16" in err


def test_watched_download_shows_the_file(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("FORCE_COLOR", "1")
    with downloading() as progress:
        progress("ind.cora.x", 10, None)
        progress("ind.cora.x", 100, 100)
    out, err = capsys.readouterr()
    assert out == ""
    assert "ind.cora.x" in err
