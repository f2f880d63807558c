"""Make the tables of docs/search.md from results/search and results/edge_scores, and the settings of baselines that
were searched with the budget of our recipes, src/beltrami/config/recipe/equal_budget.py.

python benchmarks/searched.py [--write]
python benchmarks/searched.py --finalists >> results/search/equal-budget.txt    # the best lines again, on more splits
"""

import json
import statistics
import sys
from collections import defaultdict
from pathlib import Path

from marks import filled, markdown

from beltrami.config.recipe.recipes import OURS

ROOT = Path(__file__).parents[1]
RESULTS, SCORES = ROOT / "results" / "search", ROOT / "results" / "edge_scores"
PAGE = ROOT / "docs" / "search.md"
EQUAL, SETTINGS = RESULTS / "equal-budget.jsonl", ROOT / "src" / "beltrami" / "config" / "recipe" / "equal_budget.py"
FINALISTS, FINAL_RUNS = 5, 10
MODULE = '''"""Settings of baselines that validation chose among as many as were compared for our recipes on a dataset.

Made by ``python benchmarks/searched.py --write`` of results/search/equal-budget.jsonl.
"""

from collections.abc import Mapping
from typing import NamedTuple


class Searched(NamedTuple):
    """How many configurations were compared, None if unknown, and the settings of the best, as ``--set`` takes them."""

    tried: int | None
    settings: tuple[str, ...]


EQUAL_BUDGET: Mapping[tuple[str, str, bool], Searched] = {{
{rows}}}
"""By baseline, dataset and whether it has all training aids of ``blend``."""
'''
HEAD = ("dataset", "splits", "configurations", "best", "median", "main settings of the best")
SHOWN = (  # settings in the table, by the names of the first release, which the lists use
    "diffusivity.score",
    "diffusivity.over",
    "position.encoding",
    "scheme.time",
    "stencil.alike",
    "stencil.near",
    "train.adopt",
)


def table(folder: Path = RESULTS) -> str:
    """Return a row per dataset and protocol: configurations of our recipes, best and median validation accuracy."""
    found: dict[tuple[str, str], dict[tuple[str, ...], tuple[int, float]]] = defaultdict(dict)
    for path in sorted(folder.glob("*.jsonl")):
        for row in map(json.loads, path.read_text().splitlines()):
            dataset, name, protocol, runs, *settings = row["line"].split()
            protocol += ", held" if row.get("held") else ""  # evaluated on other nodes, so not comparable
            if name in OURS and row.get("mean") is not None:
                key = (name, *settings)
                found[dataset, protocol][key] = max(
                    found[dataset, protocol].get(key, (0, 0.0)), (int(runs), row["mean"])
                )
    lines = []
    for (dataset, protocol), tried in sorted(found.items()):
        means = [mean for _, mean in tried.values()]
        (name, *settings), (runs, best) = max(tried.items(), key=lambda each: each[1][1])
        words = ", ".join([name, *(each for each in settings if each.startswith(SHOWN))])
        cells = (
            dataset,
            protocol,
            str(len(tried)),
            f"{best:.2f} over {runs}",
            f"{statistics.median(means):.2f}",
            words,
        )
        lines.append(cells)
    return markdown(HEAD, lines)


def edge_scores(folder: Path = SCORES) -> str:
    """Return a row per dataset and score of edges: its area under the ROC curve, and the gain of weights by it."""
    lines = []
    for path in sorted(folder.glob("*.json")):
        found = json.loads(path.read_text())
        for name, areas in found["area"].items():
            differences = [a - b for a, b in zip(found["accuracy"][name], found["accuracy"]["uniform"], strict=True)]
            error = statistics.stdev(differences) / len(differences) ** 0.5
            gain = f"{statistics.mean(differences):+.2f} ± {error:.2f}"
            lines.append((found["dataset"], name, f"{statistics.mean(areas):.2f}", gain, str(len(differences))))
    return markdown(("dataset", "edges weighted by", "area", "minus uniform weights", "splits"), lines)


Row = tuple[str, str, bool]
"""A row of the tables: baseline, dataset, and whether it has the training aids of `blend`."""


def compared(path: Path = EQUAL) -> dict[Row, dict[tuple[str, ...], tuple[int, float]]]:
    """Return the settings that were compared for each row, with the most runs of them and their mean validation
    accuracy."""
    found: dict[Row, dict[tuple[str, ...], tuple[int, float]]] = defaultdict(dict)
    for row in map(json.loads, path.read_text().splitlines()):
        dataset, name, _, runs, *settings = row["line"].split()
        aided = settings[:1] == ["--aids"]
        key = tuple(settings[2:] if aided else settings)
        measured = (int(runs), row["mean"] or 0.0)
        found[name, dataset, aided][key] = max(found[name, dataset, aided].get(key, (0, 0.0)), measured)
    return found


def finalists() -> list[str]:
    """Return lines of the best settings of each row on more splits."""
    lines = []
    for (name, dataset, aided), tried in compared().items():
        best = sorted(tried, key=lambda settings: -tried[settings][1])[:FINALISTS]
        aids = ("--aids", "same") if aided else ()
        lines += [" ".join((dataset, name, "digl", str(FINAL_RUNS), *aids, *settings)) for settings in best]
    return lines


def chosen() -> dict[Row, tuple[int, tuple[str, ...]]]:
    """Return for each row how many settings were compared, and those of the best mean over the most runs."""
    return {row: (len(tried), max(tried, key=lambda each: tried[each])) for row, tried in sorted(compared().items())}


def module() -> str:
    """Return the module with the chosen settings."""
    lines = []
    for (name, dataset, aided), (count, settings) in chosen().items():
        texts = "".join(f'            "{each}",\n' for each in settings)
        body = f"\n        {count},\n        (\n{texts}        ),\n    " if settings else f"{count}, ()"
        lines.append(f'    ("{name}", "{dataset}", {aided}): Searched({body}),\n')
    return MODULE.format(rows="".join(lines))


def equal_budget() -> str:
    """Return a row per baseline, dataset and aids: settings compared, and the best by validation."""
    lines = []
    for (name, dataset, aided), tried in sorted(compared().items()):
        settings = max(tried, key=lambda each: tried[each])
        runs, best = tried[settings]
        words = ", ".join(settings) or "those of the recipe before"
        lines.append((dataset, f"{name}+aids" if aided else name, str(len(tried)), f"{best:.2f} over {runs}", words))
    return markdown(("dataset", "row", "configurations", "best", "its settings"), lines)


def tables() -> dict[str, str]:
    """Return the tables by the names of their places in the page."""
    return {"searched": table(), "equal budget": equal_budget(), "edge scores": edge_scores()}


if __name__ == "__main__":
    if "--finalists" in sys.argv[1:]:
        print(*finalists(), sep="\n")
    elif "--write" in sys.argv[1:]:
        PAGE.write_text(filled(PAGE.read_text(), tables(), page=PAGE.name))
        SETTINGS.write_text(module())
    else:
        print(*tables().values(), sep="\n\n")
