"""Make the tables of docs/search.md from results/search and results/edge_scores; ``--write`` updates the page.

python benchmarks/searched.py [--write]
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


def tables() -> dict[str, str]:
    """Return the tables by the names of their places in the page."""
    return {"searched": table(), "edge scores": edge_scores()}


if __name__ == "__main__":
    if "--write" in sys.argv[1:]:
        PAGE.write_text(filled(PAGE.read_text(), tables(), page=PAGE.name))
    else:
        print(*tables().values(), sep="\n\n")
