"""docs/search.md tells the truth: its table is that of the rows of the search."""

from pathlib import Path

import searched
from marks import filled

PAGE = (Path(__file__).parents[1] / "docs" / "search.md").read_text()


def test_table_comes_from_the_rows() -> None:
    assert "| cora | digl |" in PAGE
    assert filled(PAGE, {"searched": searched.table()}, page="search.md") == PAGE
