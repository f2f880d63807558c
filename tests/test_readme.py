"""README.md is short, and its numbers and those of docs/benchmarks.md are those of the result files."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text()
SPEED = " ".join((ROOT / "docs" / "benchmarks.md").read_text().split())


def test_the_readme_is_short() -> None:
    assert len(README.splitlines()) <= 100
    assert len((ROOT / "docs" / "architecture.md").read_text().splitlines()) <= 150


@pytest.mark.slow
def test_tables_come_from_the_results() -> None:
    made = subprocess.run(
        [sys.executable, ROOT / "benchmarks" / "table.py"], capture_output=True, text=True, check=True
    )
    accuracy, aims, *speed = made.stdout.strip().split("\n\n")
    assert accuracy in README
    assert aims in (ROOT / "docs" / "search.md").read_text()
    assert len(speed) == 3
    assert all(table in (ROOT / "docs" / "benchmarks.md").read_text() for table in speed)


def test_figures_beside_the_tables_are_those_measured() -> None:
    baselines = {row["size"]: row for row in rows("bench/rivals-h200.json")}
    ours = {row["size"]: 1e3 * row["frozen_s"] for row in rows("bench/train-h200.json")}
    compiled = {size: 1e3 * row["train_compiled_s"] for size, row in baselines.items()}
    assert (
        f"takes {compiled['cora']:.1f} ms a step on Cora and {compiled['ogbn-arxiv']:.1f} ms at the size of "
        f"ogbn-arxiv; our frozen flow takes {ours['cora']:.1f} and {ours['ogbn-arxiv']:.1f}"
    ) in SPEED
    (row,) = rows("bench/ensemble-h200.json")
    assert f"{1e3 * row['together_s_per_run']:.0f} ms a run of {row['epochs']} epochs" in SPEED
    assert f"{row['alone_ratio']:.0f} times less than one after the other with CUDA graphs" in SPEED
    assert f"{row['alone_eager_ratio']:.0f} times less than one after the other without" in SPEED
    ratios = [row["frozen_ratio"] for row in rows("bench/train-h200.json")]
    assert f"takes {min(ratios):.1f} to {max(ratios):.1f} times as long" in " ".join(README.split())


def test_figures_of_rewiring_are_those_measured() -> None:
    largest = {row["stencil"]: row for row in rows("bench/rewiring.json") if row["nodes"] == 169343}
    for kind, words in (("digl", "of 169,343 nodes takes"), ("knn", "in 16 dimensions")):
        row = largest[kind]
        assert f"{words} {row['seconds']:.0f} s and {row['peak_mib'] / 1024:.1f} GiB" in SPEED


def rows(path: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads((ROOT / "results" / path).read_text())["rows"]
    return found
