"""README.md and the pages under docs/: all Python code runs, and all commands exist with their options.

Commands in ``console`` blocks run as well. Those in other blocks need data or hours: they are parsed, not run.
"""

import re
import shlex
import shutil
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from shell import Beltrami
from toy import small_blend, two_cliques
from typer.main import get_command

from beltrami.cli import app
from beltrami.model import Evolution

pytest.importorskip("matplotlib", reason="matplotlib is not installed")
pytest.importorskip("sybil", reason="sybil is not installed")

from make_figures import STYLE
from sybil import Example
from sybil.document import Document
from sybil.parsers.markdown import CodeBlockParser, PythonCodeBlockParser

ROOT = Path(__file__).parents[1]
DATA = ROOT / "docs" / "tutorials" / "data"
PAGES = {str(path.relative_to(ROOT)): path for path in (ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md")))}
TUTORIALS = [
    name for name in PAGES if name.startswith("docs/tutorials/")
]  # tests/test_tutorials.py runs and checks these
WITH_CODE = [name for name, path in PAGES.items() if "```python" in path.read_text() and name not in TUTORIALS]
COMMANDS: dict[str, Any] = vars(get_command(app))["commands"]
Names = dict[str, Any]


def graph_of_readme() -> Names:
    toy = two_cliques()
    names = {"x": toy.x.float(), "edge_index": toy.edge_index, "y": toy.y, "train_mask": toy.split.train}
    torch.manual_seed(0)
    return {"data": SimpleNamespace(**names, num_features=toy.x.shape[1])}


def training() -> Names:
    from beltrami.train import Training

    toy, model = two_cliques(), small_blend()
    inputs = model.prepare(toy.x.float(), toy.edge_index)
    return {"model": model, "inputs": inputs, "y": toy.y, "split": toy.split, "training": Training(2, torch.optim.Adam)}


BEFORE: dict[str, Callable[[], Names]] = {
    "README.md": graph_of_readme,
    "docs/images.md": lambda: {"x": torch.rand(3, 8, 9)},
    "docs/runs.md": training,
}
"""Names that the text of a page introduces in words."""

AFTER: dict[str, Callable[[Names], bool]] = {
    "README.md": lambda names: names["loss"].item() < 0.2 and "stencil=Loops(" in repr(names["model"]),
    "docs/images.md": lambda names: names["y"].shape == (3, 8, 9),
    "docs/pyg.md": lambda names: (
        repr(names["cosine"]).startswith("BeltramiConv(16, flow=LinearFlow(Cosine), stencil=Loops(weight=1.0), ")
        and (names["scores"].shape, names["graphs"].shape) == ((4, 2), (2, 10))
    ),
    "docs/python.md": lambda names: names["logits"].shape == (4, 3),
    "docs/scikit-learn.md": lambda names: np.mean(names["model"].transduction_ == names["club"]) > 0.8,
    "docs/tutorial.md": lambda names: names["right"] >= 72,
    "docs/zoo.md": lambda names: all(isinstance(names[name], Evolution) for name in ("layers", "implicit")),
    "docs/own-graphs.md": lambda names: Path("new.csv").is_file(),
}
"""What must hold when the code of a page has run."""


@pytest.mark.slow
@pytest.mark.parametrize("name", WITH_CODE)
def test_the_code_of_a_page_runs(name: str, beltrami: Beltrami, tmp_path: Path) -> None:
    import matplotlib as mpl

    def run_commands(example: Example) -> None:
        for line in example.parsed.splitlines():
            outcome = beltrami(*shlex.split(line.removeprefix("$ beltrami ")))
            assert outcome.code == 0, f"{line}: {outcome.err}"

    shutil.copytree(DATA, tmp_path, dirs_exist_ok=True)
    console = CodeBlockParser("console", run_commands)
    document = Document.parse(
        str(PAGES[name]), PythonCodeBlockParser(), *([console] if name == "docs/tutorial.md" else [])
    )
    document.namespace.update(BEFORE.get(name, dict)())
    with mpl.rc_context(fname=STYLE):
        for example in document.examples():
            example.evaluate()
    assert name not in AFTER or AFTER[name](document.namespace)
    for figure in re.findall(r'savefig\("(.+?)"\)', document.text):
        assert f"gallery/{figure})" in document.text
        assert (ROOT / "docs" / "gallery" / figure).is_file()


@pytest.mark.parametrize("name", PAGES)
def test_the_commands_of_a_page_exist_with_their_options(name: str) -> None:
    for line in re.findall(r"^(?:    |\$ |)beltrami (.+)$", PAGES[name].read_text(), flags=re.MULTILINE):
        words = shlex.split(line, comments=True)
        assert words[0] in COMMANDS, f"there is no command {words[0]!r}: {line}"
        known = {
            option for parameter in COMMANDS[words[0]].params for option in (*parameter.opts, *parameter.secondary_opts)
        }
        assert {word for word in words if word.startswith("--")} <= known | {"--help"}, line
