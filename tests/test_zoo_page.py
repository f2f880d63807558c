"""docs/zoo.md: its table is made from the code and the result files."""

from pathlib import Path

import zoo
from marks import filled

ROOT = Path(__file__).parents[1]
PAGE = (ROOT / "docs" / "zoo.md").read_text()


def test_table_equals_that_made_from_the_code_and_the_results() -> None:
    assert filled(PAGE, {"zoo": zoo.table()}, page="zoo.md") == PAGE
