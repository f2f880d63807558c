"""The scripts under examples/ run, and learn."""

import runpy
import sys
from pathlib import Path
from typing import Any

import pytest

from beltrami.data import available

EXAMPLES = Path(__file__).parents[1] / "examples"


def run(name: str, *arguments: str, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Run the ``main`` of a script with these arguments, and return its result."""
    monkeypatch.setattr(sys, "argv", [name, *arguments])
    return runpy.run_path(str(EXAMPLES / f"{name}.py"))["main"]()


@pytest.mark.slow
def test_graphs_are_classified(monkeypatch: pytest.MonkeyPatch) -> None:
    assert run("graph_classification", "--graphs", "80", "--epochs", "15", monkeypatch=monkeypatch) > 0.75


@pytest.mark.slow
def test_edge_features_help(monkeypatch: pytest.MonkeyPatch) -> None:
    without, with_features = run("edge_features", "--nodes", "300", "--epochs", "40", monkeypatch=monkeypatch)
    assert with_features > without + 0.1


@pytest.mark.slow
def test_positions_and_rewiring_find_the_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    assert run("transforms", "--nodes", "60", "--epochs", "30", monkeypatch=monkeypatch) > 0.8


@pytest.mark.data
@pytest.mark.slow
def test_the_example_on_cora_runs(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    if not available("cora").is_local:
        pytest.skip("Cora is not here")
    monkeypatch.setattr(sys, "argv", ["pyg_cora", "--epochs", "2"])
    runpy.run_path(str(EXAMPLES / "pyg_cora.py"), run_name="__main__")
    words = capsys.readouterr().out.split()  # its accuracy after 200 epochs is in results/pyg_example.jsonl
    assert words[:2] + words[3:5] == ["validation", "accuracy", "test", "accuracy"]
    assert 0.05 < float(words[-1]) < 1
