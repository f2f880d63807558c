"""The terminal shows results with the accuracy first, and tables that fit."""

from dataclasses import replace
from pathlib import Path

import pytest
import torch
from checks import bare, crooked, kite

from beltrami.data import CATALOGUE, Availability
from beltrami.graph.statistics import Rewiring
from beltrami.report.terminal import (
    print_datasets,
    print_evaluation,
    print_measurements,
    print_positions,
    print_rewiring,
    print_run,
)
from beltrami.result import RunResult

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


def test_a_run_is_printed_with_the_test_accuracy_first(capsys: pytest.CaptureFixture[str]) -> None:
    print_run(RESULT, folder=Path("runs") / "mine")
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


def test_a_run_without_time_says_so(capsys: pytest.CaptureFixture[str]) -> None:
    print_run(replace(RESULT, best_time=0.0), folder=Path("runs"))
    assert "none, at epoch 61 of 100" in capsys.readouterr().out


def test_means_over_splits_are_printed_beside_those_of_label_spreading(capsys: pytest.CaptureFixture[str]) -> None:
    print_run(RESULT, folder=Path("runs"), comparison={RESULT.recipe: [80.0, 90.0], "rbf": [61.5, 61.5]})
    lines = capsys.readouterr().out.splitlines()
    assert lines[:2] == [
        f"85.00%  {RESULT.recipe}, mean over 2 splits",
        "61.50%  LabelSpreading (scikit-learn, rbf kernel), mean over 2 splits",
    ]


def test_an_evaluation_says_whether_it_is_as_recorded(capsys: pytest.CaptureFixture[str]) -> None:
    print_evaluation(RESULT, val_accuracy=81.3, test_accuracy=84.126)
    assert capsys.readouterr().out == "test accuracy 84.13%  (validation 81.30%)\nas recorded\n"
    print_evaluation(RESULT, val_accuracy=81.3, test_accuracy=80.0)
    out = capsys.readouterr().out
    assert out.startswith("test accuracy 80.00%  (validation 81.30%)\n")
    assert "recorded: test 84.13%, validation 81.30%, on cpu" in out


def test_every_dataset_has_a_row(capsys: pytest.CaptureFixture[str]) -> None:
    print_datasets(CATALOGUE, dict.fromkeys(CATALOGUE, Availability.CACHE))
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].split() == ["dataset", "nodes", "edges", "features", "classes", "at", "hand"]
    assert [line.split()[0] for line in lines[1:-1]] == list(CATALOGUE)
    assert lines[2].split() == ["cora", "2,485", "5,069", "1,433", "7", "cached"]


def words(capsys: pytest.CaptureFixture[str]) -> list[str]:
    """Each printed line with single spaces."""
    return [" ".join(line.split()) for line in capsys.readouterr().out.splitlines()]


@pytest.mark.parametrize("sparse", [False, True])
def test_positions_are_printed_with_shape_density_and_time(capsys: pytest.CaptureFixture[str], sparse: bool) -> None:
    u = torch.eye(4, 5)
    print_positions(u.to_sparse() if sparse else u, seconds=1.25, from_cache=sparse, path=Path("here"))
    assert words(capsys) == [
        f"positions 4 x 5, {'sparse' if sparse else 'dense'}",
        "density 0.2000",
        f"time 1.2 s, {'from the cache' if sparse else 'computed'}",
        "saved in here",
    ]


def test_rewiring_is_printed_in_two_columns(capsys: pytest.CaptureFixture[str]) -> None:
    print_rewiring(
        Rewiring.of(kite(), bare().with_loops(1.0), torch.tensor([0, 0, 1, 1])), seconds=0.5, path=Path("here")
    )
    assert words(capsys) == [
        "before after",
        "nodes 4 4",
        "directed edges 8 0",
        "self-loops 0 4",
        "mean degree 2.00 0.00",
        "smallest degree 1 0",
        "largest degree 3 0",
        "components 1 4",
        "label homophily 50.0% -",
        "0.0% of the old edges are kept; - of the new ones are old",
        "made in 0.5 s, saved in here",
    ]


def test_overlap_is_printed_in_its_order(capsys: pytest.CaptureFixture[str]) -> None:
    fewer = crooked().edge_index[:, :6]
    new = type(crooked()).build(fewer, num_nodes=6)
    print_rewiring(Rewiring.of(crooked(), new, torch.zeros(6)), seconds=0.5, path=Path("here"))
    assert "50.0% of the old edges are kept; 100.0% of the new ones are old" in words(capsys)


def test_seconds_are_shown_as_milliseconds_and_ratios_as_numbers(capsys: pytest.CaptureFixture[str]) -> None:
    rows = [{"size": "cora", "gat_s": 0.0847, "frozen_ratio": 0.457}, {"size": "computers", "gat_s": 0.749}]
    print_measurements(rows, title="train on cpu")
    lines = [line.split() for line in capsys.readouterr().out.splitlines() if line.strip()]
    assert lines == [
        ["train", "on", "cpu"],
        ["cora", "computers"],
        ["gat", "(ms)", "84.7", "749"],
        ["frozen", "ratio", "0.457"],
    ]


def test_operations_are_printed_below_their_size(capsys: pytest.CaptureFixture[str]) -> None:
    print_measurements([{"size": "cora", "operation": "attend", "gb": 1}], title="kernels")
    out = capsys.readouterr().out
    assert out.index("cora") < out.index("attend") < out.index("gb")
