"""docs/zoo.md tells the truth: its code runs, its table is that of the code and the result files."""

import importlib.util
import re
from pathlib import Path
from types import ModuleType

from beltrami.model import Evolution

ROOT = Path(__file__).parents[1]
PAGE = (ROOT / "docs" / "zoo.md").read_text()


def benchmark() -> ModuleType:
    spec = importlib.util.spec_from_file_location("zoo_table", ROOT / "benchmarks" / "zoo.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_table_comes_from_the_code_and_the_results() -> None:
    assert benchmark().filled(PAGE) == PAGE


def test_code_of_the_page_runs() -> None:
    (code,) = re.findall(r"```python\n(.*?)```", PAGE, flags=re.DOTALL)
    names: dict[str, object] = {}
    exec(code, names)
    assert isinstance(names["layers"], Evolution)
    assert isinstance(names["implicit"], Evolution)
