"""Reports of training on a user's graph: readable at 80 columns and without colours."""

from pathlib import Path

import numpy as np
import pytest
import torch
from graph_files import write

from beltrami.auto.baselines import BaselineResult
from beltrami.auto.estimate import CostEstimate, estimate_cost
from beltrami.auto.portfolio import MEMBERS
from beltrami.auto.selection import Attempt
from beltrami.data.graph_reader import read_graph
from beltrami.data.graph_summary import summarise
from beltrami.predict.predictions import ClassPredictions, NumberPredictions
from beltrami.report.fit_facts import gain, in_words
from beltrami.report.graph_check import print_check
from beltrami.report.graph_report import TrialTable, print_predictions


@pytest.fixture(autouse=True)
def narrow(monkeypatch: pytest.MonkeyPatch) -> None:
    """Print on a terminal of 80 columns without colours."""
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.setenv("TERM", "dumb")


def printed(capsys: pytest.CaptureFixture[str]) -> str:
    """Return what was printed, after a check of its width."""
    out = capsys.readouterr().out
    assert max(map(len, out.splitlines())) <= 80
    assert "\x1b" not in out
    return out


def test_rows_of_models_are_printed_as_they_finish(capsys: pytest.CaptureFixture[str]) -> None:
    with TrialTable("classes") as trials:
        assert printed_nothing(capsys)
        trials.add(BaselineResult("linear diffusion", 0.915, None, 1.25, {"time": 4.0, "strength": 1.0}))
        first = printed(capsys)
        trials.add(Attempt("far", MEMBERS["far"].says, None, 0.0, "failed: step size underflow"))
    assert first.splitlines()[0] == "accuracy on the validation nodes:"
    assert first.splitlines()[2].startswith("linear diffusion        91.5%      1.2  a linear model of")
    assert "(time 4)" in first
    second = printed(capsys)
    assert second.startswith("far                         -      0.0  weights by the cosine")
    assert "(failed: step size underflow)" in " ".join(second.split())


def printed_nothing(capsys: pytest.CaptureFixture[str]) -> bool:
    return capsys.readouterr().out == ""


@pytest.mark.parametrize(
    ("metric", "kind", "text"),
    [(0.9154, "classes", "91.5%"), (0.5, "labels", "50.0%"), (-0.25, "numbers", "0.25"), (None, "classes", "-")],
)
def test_metrics_are_per_cent_or_errors(metric: float | None, kind: str, text: str) -> None:
    assert in_words(metric, kind) == text


def test_a_flow_that_gains_nothing_is_said_to() -> None:
    baselines = {"logistic regression": 0.8, "label propagation": 0.7, "linear diffusion": 0.8}
    equal = "The flow gains nothing over logistic regression here: 80.0% against 80.0% on the validation nodes."
    assert gain(0.8, baselines, "classes") == equal
    better = (
        "The flow is better than the best baseline, logistic regression: 90.0% against 80.0% on the validation nodes."
    )
    assert gain(0.9, baselines, "classes") == better
    assert gain(-2.0, {"ridge regression": -1.5}, "numbers").startswith("The flow gains nothing over ridge regression")


def test_predictions_are_counted_by_class(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    p = torch.tensor([[0.9, 0.1], [0.8, 0.2], [0.3, 0.7]])
    reached = torch.tensor([True, True, False])
    sets = p > 0.15
    found = ClassPredictions(ids=list("abc"), names=["[bold]", "v"], probabilities=p, sets=sets, reached=reached)
    print_predictions(found, path=Path("p.csv"))
    lines = printed(capsys).splitlines()
    assert [line.split() for line in lines[1:3]] == [["[bold]", "2"], ["v", "0"]]
    assert lines[3] == "mean size of a set: 1.67"
    assert lines[4] == "nodes without a prediction, as no label reaches them: 1"
    assert lines[5] == "written to p.csv, and what is known of it to p.json"


def test_labels_are_counted_where_they_are_likely(capsys: pytest.CaptureFixture[str]) -> None:
    p = torch.tensor([[0.9, 0.8], [0.8, 0.2]])
    print_predictions(
        ClassPredictions(ids=["a", "b"], names=["u", "v"], probabilities=p, exclusive=False), path=Path("p.csv")
    )
    assert [line.split() for line in printed(capsys).splitlines()[1:3]] == [["u", "2"], ["v", "1"]]


def test_numbers_are_reported_by_their_range(capsys: pytest.CaptureFixture[str]) -> None:
    print_predictions(NumberPredictions(ids=["a", "b", "c"], values=torch.tensor([1.0, 5.0, 2.0])), path=Path("p.csv"))
    assert printed(capsys).startswith("3 numbers from 1 to 5, median 2\n")


def test_check_is_readable_with_many_columns_classes_and_dropped_rows(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    random = np.random.RandomState(0)
    names = ",".join(f"a rather long name of column {k}" for k in range(40))
    nodes = [f"id,{names},class"]
    nodes += [f"n{k},{','.join(map(str, random.rand(40).round(3)))},c{k % 25:02}" for k in range(100)]
    edges = ["source,target,weight", *(f"n{k},x{k},1" for k in range(9)), "n1,n2,0.5"]
    write(tmp_path, nodes="\n".join(nodes), edges="\n".join(edges))
    summary = summarise(read_graph(tmp_path))
    print_check(summary, estimate_cost(summary.graph, summary.splits))
    out = printed(capsys)
    for text in (
        "weights           from 0.5 to 0.5",
        "isolated nodes    98",
        "edges.csv, line 2: 'x0' is no node",
        "and 4 further rows",
        "and 10 further columns: 10 of numbers",
        "40 features in all",
        "and 5 others",
        "80 nodes, cross-validated in 5 folds",
    ):
        assert text in out, out


def test_long_times_are_in_minutes_and_hours(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    write(tmp_path, edges="source,target\na,b\n")
    summary = summarise(read_graph(tmp_path))
    for seconds, text in ((90.0, "90 s"), (600.0, "10 min"), (9000.0, "2.5 h")):
        print_check(summary, CostEstimate(seconds, seconds, 3 * 2**30))
        assert f"time up to about {text} memory about 3.0 GiB" in " ".join(printed(capsys).split())
