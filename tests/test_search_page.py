"""docs/search.md: its tables are made from results/search and results/edge_scores."""

from pathlib import Path

import searched
from marks import filled

ROOT = Path(__file__).parents[1]
PAGE = (ROOT / "docs" / "search.md").read_text()


def test_tables_equal_those_made_from_the_results() -> None:
    assert "| cora | digl |" in PAGE
    assert "| citeseer | predictions |" in PAGE
    assert filled(PAGE, searched.tables(), page="search.md") == PAGE


def test_the_settings_of_baselines_are_those_of_the_search() -> None:
    assert searched.SETTINGS.read_text() == searched.module()


def test_the_page_names_every_list_and_every_list_has_results() -> None:
    lists = sorted((ROOT / "results" / "search").glob("*.txt"))
    assert lists
    assert [path.stem for path in lists if f"`{path.stem}`" not in PAGE] == []
    assert [path.stem for path in lists if not path.with_suffix(".jsonl").exists()] == []
