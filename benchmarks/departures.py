"""Make the table of docs/fairness.md, how recipe `blend` departs from recipe `paper`; ``--write`` puts it there.

python benchmarks/departures.py [--write]
"""

import sys
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

from marks import filled, markdown

from beltrami.config import RunConfig, load_recipe, setting_names
from beltrami.config.recipe.paper import PAPER

PAGE = Path(__file__).parents[1] / "docs" / "fairness.md"
LEFT_OUT = ("dataset", "recipe", "seed", "tried", "data.split_seed")


def flat(values: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    """Return the values of a nested mapping by dotted name."""
    found: dict[str, Any] = {}
    for name, value in values.items():
        found |= flat(value, f"{prefix}{name}.") if isinstance(value, Mapping) else {f"{prefix}{name}": value}
    return found


def departures(one: RunConfig, other: RunConfig) -> dict[str, tuple[Any, Any]]:
    """Return the settings in which two configurations differ, with both values; None where one has no such setting."""
    first, second = flat(asdict(one)), flat(asdict(other))
    names = [name for name in setting_names() if name in {*first, *second} and name not in LEFT_OUT]
    pairs = {name: (first.get(name), second.get(name)) for name in names}
    return {name: pair for name, pair in pairs.items() if pair[0] != pair[1]}


def table() -> str:
    """A row a setting, a column a dataset: the paper's value and ours, where they differ."""
    found = {dataset: departures(load_recipe("paper", dataset), load_recipe("blend", dataset)) for dataset in PAPER}
    rows = []
    for name in setting_names():
        pairs = [found[dataset].get(name) for dataset in PAPER]
        if any(pairs):
            rows.append([f"`{name}`", *("" if pair is None else " → ".join(map(_text, pair)) for pair in pairs)])
    return markdown(["setting", *PAPER], rows)


def _text(value: Any) -> str:
    words = {None: "-", True: "yes", False: "no"}
    return f"{value:g}" if type(value) in (int, float) else str(words.get(value, value))


if __name__ == "__main__":
    if "--write" in sys.argv[1:]:
        PAGE.write_text(filled(PAGE.read_text(), {"departures": table()}, page=PAGE.name))
    else:
        print(table())
