"""Make the tables of docs/fairness.md: the accuracy of recipe `paper` beside the published one, and how recipe `blend`
departs from it; ``--write`` puts them there.

python benchmarks/departures.py [--write]
"""

import sys
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from statistics import stdev
from typing import Any

from marks import filled, markdown

from beltrami.config import RunConfig, load_recipe, setting_names
from beltrami.config.recipe.paper import PAPER
from beltrami.lab.study.paper_tables import PLANETOID, RANDOM
from beltrami.lab.study.record import latest, read_records
from beltrami.lab.study.summary import Sample, independent_values

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs" / "fairness.md"
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


def accuracies(folder: Path = ROOT / "results" / "study") -> str:
    """A row a dataset, kind of split and recipe of the paper: the published accuracy and ours, with the difference
    and half of its 95% interval."""
    rows = []
    for name, splits, published in (("random", "random", RANDOM), ("planetoid", "published", PLANETOID)):
        records = latest(read_records(folder / f"{name}.jsonl"))
        for recipe in ("paper", "paper-knn"):
            for dataset in PAPER:
                runs = [each for each in records if (each.dataset, each.method) == (dataset, recipe)]
                figure, values = published.figure(recipe, dataset), independent_values(runs, "test_accuracy").values()
                if figure is not None and values:
                    of_ours = Sample.of(list(values))
                    spread = f" ± {stdev(values):.1f}" if len(values) > 1 else ""
                    ours, off = f"{of_ours.mean:.1f}{spread}", f"{of_ours.mean - figure.value:+.1f}"
                    off += "" if of_ours.half is None else f" ± {of_ours.half:.1f}"
                    rows.append((dataset, splits, f"`{recipe}`", str(figure), ours, off, str(of_ours.count)))
    return markdown(("dataset", "splits", "recipe", "published", "measured", "difference", "runs"), rows)


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
    tables = {"paper": accuracies(), "departures": table()}
    if "--write" in sys.argv[1:]:
        PAGE.write_text(filled(PAGE.read_text(), tables, page=PAGE.name))
    else:
        print(*tables.values(), sep="\n\n")
