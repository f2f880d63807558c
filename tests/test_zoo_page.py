"""docs/zoo.md: its code runs, and its table is made from the code and the result files."""

import re
from pathlib import Path

import zoo
from marks import filled

from beltrami.model import Evolution

ROOT = Path(__file__).parents[1]
PAGE = (ROOT / "docs" / "zoo.md").read_text()


def test_table_equals_that_made_from_the_code_and_the_results() -> None:
    assert filled(PAGE, {"zoo": zoo.table()}, page="zoo.md") == PAGE


def test_code_of_the_page_runs() -> None:
    (code,) = re.findall(r"```python\n(.*?)```", PAGE, flags=re.DOTALL)
    names: dict[str, object] = {}
    exec(code, names)
    assert isinstance(names["layers"], Evolution)
    assert isinstance(names["implicit"], Evolution)
