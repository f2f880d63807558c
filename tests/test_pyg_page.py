"""docs/pyg.md: its code runs, and its accuracies are those of the recorded runs."""

import re
from pathlib import Path
from typing import Any

import pyg_example
import pytest

PAGE = (Path(__file__).parents[1] / "docs" / "pyg.md").read_text()


@pytest.mark.slow
def test_the_code_of_the_page_runs(capsys: pytest.CaptureFixture[str]) -> None:
    names: dict[str, Any] = {}
    for code in re.findall(r"```python\n(.*?)```", PAGE, flags=re.DOTALL):
        exec(code, names)
    assert capsys.readouterr().out.startswith("BeltramiConv(16, flow=LinearFlow(Cosine), stencil=Loops(weight=1.0), ")
    assert names["scores"].shape == (4, 2)
    assert names["graphs"].shape == (2, 10)


def test_the_accuracies_of_the_page_are_those_recorded() -> None:
    assert pyg_example.sentence() in " ".join(PAGE.split())
