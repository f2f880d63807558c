"""The README tells the truth: its code runs, and its numbers are those of the result files."""

import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import torch

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text()


def test_code_of_the_readme_runs() -> None:
    (code,) = re.findall(r"```python\n(.*?)```", README, flags=re.DOTALL)
    names: dict[str, object] = {}
    exec(code, names)
    logits = names["logits"]
    assert isinstance(logits, torch.Tensor)
    assert logits.shape == (4, 3)


def test_tables_of_the_readme_come_from_the_results() -> None:
    made = subprocess.run(
        [sys.executable, ROOT / "benchmarks" / "table.py"], capture_output=True, text=True, check=True
    )
    tables = made.stdout.strip().split("\n\n")
    assert len(tables) == 3
    assert all(table in README for table in tables)


def test_figures_beside_the_tables_are_those_measured() -> None:
    told = " ".join(README.split())
    rivals = {row["size"]: row for row in _rows("bench/rivals-h200.json")}
    ours = {row["size"]: 1e3 * row["frozen_s"] for row in _rows("bench/train-h200.json")}
    compiled = {size: 1e3 * row["train_compiled_s"] for size, row in rivals.items()}
    assert (
        f"it takes {compiled['cora']:.1f} ms a step on Cora and {compiled['ogbn-arxiv']:.1f} ms at the size of "
        f"ogbn-arxiv, where ours takes {ours['cora']:.1f} and {ours['ogbn-arxiv']:.1f}"
    ) in told
    (row,) = _rows("bench/ensemble-h200.json")
    assert f"{1e3 * row['together_s_per_run']:.0f} ms a run of {row['epochs']} epochs" in told
    assert f"{row['alone_ratio']:.0f} times less than one after the other" in told
    assert f"{row['alone_eager_ratio']:.0f} times less than unrecorded" in told


def _rows(path: str) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = json.loads((ROOT / "results" / path).read_text())["rows"]
    return rows


def test_rewiring_figures_of_the_readme_are_those_measured() -> None:
    rows = json.loads((ROOT / "results" / "bench" / "rewiring.json").read_text())["rows"]
    largest = {row["stencil"]: row for row in rows if row["nodes"] == 169343}
    told = " ".join(README.split())
    for kind, words in (("digl", "of 169,343 nodes takes"), ("knn", "in 16 dimensions")):
        row = largest[kind]
        assert f"{words} {row['seconds']:.0f} s and {row['peak_mib'] / 1024:.1f} GiB" in told
