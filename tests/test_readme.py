"""The README tells the truth: its code runs, and its numbers are those of the result files."""

import json
import re
import subprocess
import sys
from pathlib import Path

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
    accuracy, speed = made.stdout.strip().split("\n\n")
    assert accuracy in README
    assert speed in README


def test_rewiring_figures_of_the_readme_are_those_measured() -> None:
    rows = json.loads((ROOT / "results" / "bench" / "rewiring.json").read_text())["rows"]
    largest = {row["stencil"]: row for row in rows if row["nodes"] == 169343}
    told = " ".join(README.split())
    for kind, words in (("digl", "of 169,343 nodes takes"), ("knn", "in 16 dimensions")):
        row = largest[kind]
        assert f"{words} {row['seconds']:.0f} s and {row['peak_mib'] / 1024:.1f} GiB" in told
