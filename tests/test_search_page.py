"""docs/search.md tells the truth: its table is that of the rows of the search."""

import importlib.util
from pathlib import Path

ROOT = Path(__file__).parents[1]


def test_table_comes_from_the_rows() -> None:
    spec = importlib.util.spec_from_file_location("searched", ROOT / "benchmarks" / "searched.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    page = (ROOT / "docs" / "search.md").read_text()
    assert "| cora | digl |" in page
    assert module.filled(page) == page
