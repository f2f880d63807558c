"""The table in docs/search.md, from the rows under results/search; ``--write`` puts it there.

python benchmarks/searched.py [--write]
"""

import json
import statistics
import sys
from collections import defaultdict
from pathlib import Path

from marks import filled, markdown

from beltrami.experiment.effort import OURS

ROOT = Path(__file__).parents[1]
RESULTS, PAGE = ROOT / "results" / "search", ROOT / "docs" / "search.md"
HEAD = ("dataset", "splits", "configurations", "best", "median", "the best, in short")
SHORT = ("diffusivity.score", "diffusivity.over", "position.encoding", "scheme.time", "stencil.alike", "stencil.near")


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


if __name__ == "__main__":
    if "--write" in sys.argv[1:]:
        PAGE.write_text(filled(PAGE.read_text(), {"searched": table()}, page=PAGE.name))
    else:
        print(table())
