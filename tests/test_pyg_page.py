"""docs/pyg.md: its accuracies are those of the recorded runs."""

from pathlib import Path

import pytest

pytest.importorskip("torch_geometric", reason="torch_geometric is not installed")

import pyg_example

PAGE = (Path(__file__).parents[1] / "docs" / "pyg.md").read_text()


def test_the_accuracies_of_the_page_are_those_recorded() -> None:
    assert pyg_example.sentence() in " ".join(PAGE.split())
