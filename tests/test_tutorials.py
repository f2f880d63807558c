"""docs/tutorials: the commands of each page run, and the predictions are as good as the page says."""

import csv
import re
import runpy
import shlex
import shutil
from pathlib import Path

import pytest
from shell import Beltrami

FOLDER = Path(__file__).parents[1] / "docs" / "tutorials"
PAGES = {"wine": "wine.csv", "breast-cancer": "breast-cancer.csv", "karate": "karate/nodes.csv"}


@pytest.mark.slow
@pytest.mark.parametrize("name", PAGES)
def test_a_tutorial_runs_and_its_predictions_are_as_good_as_it_says(
    name: str, beltrami: Beltrami, tmp_path: Path
) -> None:
    shutil.copytree(FOLDER / "data", tmp_path, dirs_exist_ok=True)
    page = (FOLDER / f"{name}.md").read_text()
    for language, code in re.findall(r"```(console|python)\n(.*?)```", page, flags=re.DOTALL):
        if language == "python":
            exec(code, {})
            continue
        for line in code.splitlines():
            prompt, program, *arguments = shlex.split(line)
            assert (prompt, program) == ("$", "beltrami")
            outcome = beltrami(*arguments)
            assert outcome.code == 0, f"{line}: {outcome.err}"
    given, truth = _column(tmp_path / PAGES[name], "class"), _column(tmp_path / f"{name}-truth.csv", "class")
    predicted = _column(tmp_path / "runs" / name / "predictions.csv", "prediction")
    assert list(predicted) == list(truth)
    ((least, count),) = re.findall(r"[Aa]t least (\d+)% of the (\d+) predictions are right", page)
    right = [predicted[node] == truth[node] for node in truth if not given[node]]
    assert len(right) == int(count)
    assert 100 * sum(right) / len(right) >= int(least)


def test_the_tables_are_those_that_the_script_makes(tmp_path: Path) -> None:
    runpy.run_path(str(FOLDER / "make_data.py"))["main"](tmp_path)
    made = {path.relative_to(tmp_path): path.read_text() for path in tmp_path.rglob("*.csv")}
    assert made == {path.relative_to(FOLDER / "data"): path.read_text() for path in FOLDER.rglob("*.csv")}


def _column(path: Path, name: str) -> dict[str, str]:
    return {row["id"]: row[name] for row in csv.DictReader(path.read_text().splitlines())}
