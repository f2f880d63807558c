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
from rows import read_rows

from beltrami.config import RunConfig, load_recipe, setting_names
from beltrami.config.recipe.paper import PAPER
from beltrami.lab.study.paper_tables import PLANETOID, RANDOM, PaperTable
from beltrami.lab.study.record import latest, read_records
from beltrami.lab.study.summary import Sample, independent_values

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs" / "fairness.md"
RECIPES = ("paper", "paper-knn")
STUDIES = (
    ("random", "random", RANDOM),
    ("planetoid", "published", PLANETOID),
    ("component", "published, largest component", PLANETOID),
)
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
    for name, splits, published in STUDIES:
        records = latest(read_records(folder / f"{name}.jsonl"))
        for recipe in RECIPES:
            for dataset in PAPER:
                runs = [each for each in records if (each.dataset, each.method) == (dataset, recipe)]
                values = list(independent_values(runs, "test_accuracy").values())
                rows += _row(dataset, splits, recipe, published, values)
    for recipe in RECIPES:
        for dataset in PAPER:
            published = PLANETOID if PLANETOID.figure(recipe, dataset) else RANDOM
            rows += _row(dataset, "seed 12345", recipe, published, of_released_splits(dataset, recipe))
    return markdown(("dataset", "splits", "recipe", "published", "measured", "difference", "runs"), rows)


def of_released_splits(
    dataset: str, recipe: str, path: Path = ROOT / "results" / "released_splits.jsonl"
) -> list[float]:
    """Return the accuracies of a recipe on the split that the released code draws from the seed 12345."""
    cell = {"dataset": dataset, "recipe": recipe, "settings": [], "split": 12345}
    found = read_rows(path)
    return [row["test"] for row in found if cell.items() <= row.items() and "error" not in row]


def _row(dataset: str, splits: str, recipe: str, published: PaperTable, values: list[float]) -> list[tuple[str, ...]]:
    """Return the row of a recipe on one kind of split; none without a published figure or a run."""
    figure = published.figure(recipe, dataset)
    if figure is None or not values:
        return []
    of_ours = Sample.of(values)
    spread = f" ± {stdev(values):.1f}" if len(values) > 1 else ""
    ours, off = f"{of_ours.mean:.1f}{spread}", f"{of_ours.mean - figure.value:+.1f}"
    off += "" if of_ours.half is None else f" ± {of_ours.half:.1f}"
    return [(dataset, splits, f"`{recipe}`", str(figure), ours, off, str(of_ours.count))]


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
