"""docs/search.md tells the truth: its tables are those of the rows of the search and of the scores of edges."""

from pathlib import Path

import searched
from marks import filled

PAGE = (Path(__file__).parents[1] / "docs" / "search.md").read_text()


def test_tables_come_from_the_files() -> None:
    assert "| cora | digl |" in PAGE
    assert "| citeseer | predictions |" in PAGE
    assert filled(PAGE, searched.tables(), page="search.md") == PAGE
