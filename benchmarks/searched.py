"""Make the tables of docs/search.md from results/search and results/edge_scores, and the settings of baselines that
were searched with the budget of our recipes, src/beltrami/config/recipe/equal_budget.py.

python benchmarks/searched.py [--write]
python benchmarks/searched.py --finalists >> results/search/equal-budget.txt    # the best lines again, on more splits
python benchmarks/searched.py --finalists 20 3 >> results/search/equal-budget.txt    # the best 20 on three splits
"""

import argparse
import json
import statistics
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
    for path in sorted(set(folder.glob("*.jsonl")) - {folder / EQUAL.name, folder / "ideas.jsonl"}):
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


def finalists(count: int, runs: int) -> list[str]:
    """Return lines of the best settings of each row on more splits. Of settings that were measured on the most splits
    so far, those of the best mean come first."""
    lines = []
    for (name, dataset, aided), tried in compared().items():
        best = sorted(tried, key=tried.__getitem__, reverse=True)[:count]
        aids = ("--aids", "same") if aided else ()
        lines += [" ".join((dataset, name, "digl", str(runs), *aids, *settings)) for settings in best]
    return lines


def chosen() -> dict[Row, tuple[int, tuple[str, ...], float]]:
    """Return for each row whose finalists are measured how many settings were compared, and the best of the finalists
    with its mean validation accuracy."""
    found = {}
    for row, tried in sorted(compared().items()):
        best = max(tried, key=tried.__getitem__)
        runs, mean = tried[best]
        if runs >= FINAL_RUNS:
            found[row] = (len(tried), best, mean)
    return found


def module() -> str:
    """Return the module with the chosen settings."""
    lines = []
    for (name, dataset, aided), (count, settings, _) in chosen().items():
        texts = "".join(f'            "{each}",\n' for each in settings)
        body = f"\n        {count},\n        (\n{texts}        ),\n    " if settings else f"{count}, ()"
        lines.append(f'    ("{name}", "{dataset}", {aided}): Searched({body}),\n')
    return MODULE.format(rows="".join(lines))


def equal_budget() -> str:
    """Return a row per baseline, dataset and aids: settings compared, and the best by validation."""
    lines = []
    for (name, dataset, aided), (count, settings, best) in chosen().items():
        words = ", ".join(settings) or "those before the search"
        row = f"{name}+aids" if aided else name
        lines.append((dataset, row, str(count), f"{best:.2f} over {FINAL_RUNS}", words))
    return markdown(("dataset", "row", "configurations", "best", "its settings"), lines)


def tables() -> dict[str, str]:
    """Return the tables by the names of their places in the page."""
    return {"searched": table(), "equal budget": equal_budget(), "edge scores": edge_scores()}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--write", action="store_true", help="write the page and the settings")
    parser.add_argument("--finalists", nargs="*", type=int, metavar="N", help="how many settings, on how many splits")
    args = parser.parse_args()
    if args.finalists is not None:
        count, runs = args.finalists or (FINALISTS, FINAL_RUNS)
        print(*finalists(count, runs), sep="\n")
    elif args.write:
        PAGE.write_text(filled(PAGE.read_text(), tables(), page=PAGE.name))
        SETTINGS.write_text(module())
    else:
        print(*tables().values(), sep="\n\n")


if __name__ == "__main__":
    main()
