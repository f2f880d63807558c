"""No module reads files by a function that may run code in them."""

import ast
from pathlib import Path

import pytest

SOURCE = Path(__file__).parents[1] / "src" / "beltrami"
FORBIDDEN = {
    *(
        f"{module}.{name}"
        for module in ("pickle", "cPickle", "dill", "cloudpickle", "marshal")
        for name in ("load", "loads")
    ),
    *("pickle.Unpickler", "torch.load", "joblib.load", "shelve.open", "pandas.read_pickle", "pd.read_pickle"),
    *("yaml.load", "yaml.unsafe_load", "yaml.full_load", "eval", "exec", "runpy.run_path"),
}
MODULES = {"pickle", "cPickle", "dill", "cloudpickle", "marshal", "shelve", "yaml"}
"""Modules that no module of the library imports."""


def violations(path: Path) -> list[str]:
    """Return the lines of a file that load pickles or run text as code."""
    found = []
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            found += [f"{path}:{node.lineno} imports {each.name}" for each in node.names if each.name in MODULES]
        if isinstance(node, ast.ImportFrom) and node.module in MODULES:
            found.append(f"{path}:{node.lineno} imports from {node.module}")
        if isinstance(node, ast.Call):
            name = ast.unparse(node.func)
            without_pickles = any(
                each.arg == "allow_pickle" and isinstance(each.value, ast.Constant) and each.value.value is False
                for each in node.keywords
            )
            if name in FORBIDDEN or (name in ("np.load", "numpy.load") and not without_pickles):
                found.append(f"{path}:{node.lineno} calls {name}")
    return found


def test_no_module_loads_pickles_or_runs_text() -> None:
    assert [line for path in sorted(SOURCE.rglob("*.py")) for line in violations(path)] == []


@pytest.mark.parametrize(
    "text",
    [
        *("import pickle", "from pickle import loads", "torch.load(f)", "np.load(f)", "np.load(f, allow_pickle=True)"),
        *("eval('1')", "exec('1')", "yaml.load(f)", "joblib.load(f)"),
    ],
)
def test_violations_are_found(tmp_path: Path, text: str) -> None:
    (tmp_path / "bad.py").write_text(f"{text}\n")
    assert len(violations(tmp_path / "bad.py")) == 1


def test_other_calls_are_not_violations(tmp_path: Path) -> None:
    (tmp_path / "good.py").write_text("np.load(f, allow_pickle=False)\nmodel.eval()\njson.loads(t)\n")
    assert violations(tmp_path / "good.py") == []
