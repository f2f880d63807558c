"""The tables in docs/search.md, from results/search and results/edge_scores; ``--write`` puts them there.

python benchmarks/searched.py [--write]
"""

import json
import statistics
import sys
from collections import defaultdict
from pathlib import Path

from marks import filled, markdown

from beltrami.config.recipe.catalogue import OURS

ROOT = Path(__file__).parents[1]
RESULTS, SCORES = ROOT / "results" / "search", ROOT / "results" / "edge_scores"
PAGE = ROOT / "docs" / "search.md"
HEAD = ("dataset", "splits", "configurations", "best", "median", "the best, in short")
SHORT = (  # names of the first release, in which the lists were written
    "diffusivity.score",
    "diffusivity.over",
    "position.encoding",
    "scheme.time",
    "stencil.alike",
    "stencil.near",
    "train.adopt",
)


def table(folder: Path = RESULTS) -> str:
    """A row a dataset and protocol: how many configurations of ours were tried, and what validation said of them."""
    found: dict[tuple[str, str], dict[tuple[str, ...], tuple[int, float]]] = defaultdict(dict)
    for path in sorted(folder.glob("*.jsonl")):
        for row in map(json.loads, path.read_text().splitlines()):
            dataset, name, protocol, runs, *settings = row["line"].split()
            protocol += ", held" if row.get("held") else ""  # judged by other nodes: not to be compared
            if name in OURS and row.get("mean") is not None:
                key = (name, *settings)
                found[dataset, protocol][key] = max(
                    found[dataset, protocol].get(key, (0, 0.0)), (int(runs), row["mean"])
                )
    lines = []
    for (dataset, protocol), tried in sorted(found.items()):
        means = [mean for _, mean in tried.values()]
        (name, *settings), (runs, best) = max(tried.items(), key=lambda each: each[1][1])
        words = ", ".join([name, *(each for each in settings if each.startswith(SHORT))])
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
    """A row a dataset and score of edges: how well it knows their kind, and what weights by it are worth."""
    lines = []
    for path in sorted(folder.glob("*.json")):
        found = json.loads(path.read_text())
        for name, areas in found["area"].items():
            apart = [a - b for a, b in zip(found["accuracy"][name], found["accuracy"]["uniform"], strict=True)]
            error = statistics.stdev(apart) / len(apart) ** 0.5
            worth = f"{statistics.mean(apart):+.2f} ± {error:.2f}"
            lines.append((found["dataset"], name, f"{statistics.mean(areas):.2f}", worth, str(len(apart))))
    return markdown(("dataset", "edges count by", "area", "less uniform weights", "splits"), lines)


def tables() -> dict[str, str]:
    return {"searched": table(), "edge scores": edge_scores()}


if __name__ == "__main__":
    if "--write" in sys.argv[1:]:
        PAGE.write_text(filled(PAGE.read_text(), tables(), page=PAGE.name))
    else:
        print(*tables().values(), sep="\n\n")
