"""docs/own-graphs.md: its rules have tests, and its numbers are those of the library."""

import re
from pathlib import Path

import auto_page

from beltrami.auto.portfolio import MEMBERS
from beltrami.auto.selection import LINEAR
from beltrami.predict.conformal import coverage_interval

ROOT = Path(__file__).parents[1]
PAGE = (ROOT / "docs" / "own-graphs.md").read_text()


def test_every_rule_names_its_test_and_every_test_has_a_rule() -> None:
    files = sorted((ROOT / "tests").glob("test_own_graph_*.py"))
    tests = {name for file in files for name in re.findall(r"^def (test_\w+)", file.read_text(), flags=re.MULTILINE)}
    named = {*re.findall(r"`(test_\w+)` \|", PAGE)}
    assert named <= tests
    assert {name for name in tests - named if not name.startswith("test_the_portfolio_")} == set()


def test_the_table_of_members_has_those_of_the_portfolio() -> None:
    table = PAGE[PAGE.index("| member |") : PAGE.index("Three baselines")]
    assert re.findall(r"^\| `([\w-]+)` \|", table, flags=re.MULTILINE) == [LINEAR, *MEMBERS]


def test_the_intervals_of_the_coverage_are_those_of_the_library() -> None:
    rows = re.findall(r"^\| (\d+) \| ([\d.]+)% and ([\d.]+)% \|", PAGE, flags=re.MULTILINE)
    assert len(rows) == 6
    for labels, *ends in rows:
        assert [f"{100 * end:.1f}" for end in coverage_interval(int(labels), 0.9)] == ends


def test_the_tables_are_those_of_the_recorded_runs() -> None:
    assert auto_page.with_tables(PAGE) == PAGE, "results have changed: run `python benchmarks/auto_page.py --write`"


def test_auto_is_near_the_tuned_recipe_and_above_every_baseline() -> None:
    rows = [line.split("|")[1:-1] for line in auto_page.tables()["auto"].splitlines()[2:]]
    assert len(rows) == 6
    for name, _, auto, tuned, _, baseline, _ in rows:
        assert float(auto) > float(tuned) - 1, name
        assert float(auto) > float(baseline.split("(")[0]), name
