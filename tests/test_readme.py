"""The README tells the truth: its code runs, and its numbers are those of the result files."""

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


def test_table_of_the_readme_comes_from_the_results() -> None:
    made = subprocess.run(
        [sys.executable, ROOT / "benchmarks" / "table.py"], capture_output=True, text=True, check=True
    )
    assert made.stdout.strip() in README
