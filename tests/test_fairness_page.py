"""docs/fairness.md: its tables are made from the recipes and the results, and it names every training aid."""

import re
from dataclasses import asdict
from pathlib import Path

import departures
from marks import filled

from beltrami.config import load_recipe, override
from beltrami.config.recipe.aids import AIDS
from beltrami.config.recipe.paper import PAPER

PAGE = (Path(__file__).parents[1] / "docs" / "fairness.md").read_text()


def test_the_tables_equal_those_made_from_recipes_and_results() -> None:
    assert "| `scheme.time` | 18.29 → 13 |" in PAGE
    assert "| cora | random | `paper` | 84.8 ± 0.9 |" in PAGE
    text = filled(PAGE, {"paper": departures.accuracies(), "departures": departures.table()}, page="fairness.md")
    assert text == PAGE, "run `python benchmarks/departures.py --write`"


def test_the_departures_turn_the_recipe_of_the_paper_into_ours() -> None:
    for dataset in PAPER:
        paper, blend = load_recipe("paper", dataset), load_recipe("blend", dataset)
        found = departures.departures(paper, blend)
        changes = [f"{name}={ours}" for name, (_, ours) in found.items() if name in departures.flat(asdict(blend))]
        changed = override(paper, changes)
        assert departures.departures(changed, blend) == {}


def test_the_page_names_every_aid() -> None:
    listed = re.findall(r"^\| `([a-z-]+)` \| `(\w+)\.(\w+)` \|", PAGE, flags=re.MULTILINE)
    assert listed == [(name, group, setting) for name, (group, setting, _) in AIDS.items()]
