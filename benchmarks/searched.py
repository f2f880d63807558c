"""The table in docs/search.md, from the rows under results/search; ``--write`` puts it there.

python benchmarks/searched.py [--write]
"""

import json
import statistics
import sys
from collections import defaultdict
from pathlib import Path

from beltrami.experiment.effort import OURS

ROOT = Path(__file__).parents[1]
RESULTS, PAGE = ROOT / "results" / "search", ROOT / "docs" / "search.md"
BEGIN, END = "<!-- searched -->\n", "\n<!-- /searched -->"
HEAD = ("dataset", "splits", "configurations", "best", "median", "the best, in short")
SHORT = ("diffusivity.score", "diffusivity.over", "position.encoding", "scheme.time", "stencil.alike", "stencil.near")


def table(folder: Path = RESULTS) -> str:
    """A row a dataset and protocol: how many configurations of ours were tried, and what validation said of them."""
    found: dict[tuple[str, str], dict[tuple[str, ...], tuple[int, float]]] = defaultdict(dict)
    for path in sorted(folder.glob("*.jsonl")):
        for row in map(json.loads, path.read_text().splitlines()):
            dataset, name, protocol, runs, *settings = row["line"].split()
            if name in OURS and row.get("mean") is not None:
                key = (name, *settings)
                found[dataset, protocol][key] = max(
                    found[dataset, protocol].get(key, (0, 0.0)), (int(runs), row["mean"])
                )
    lines = [HEAD, ("---",) * len(HEAD)]
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
    return "\n".join("| " + " | ".join(cells) + " |" for cells in lines)


def filled(text: str) -> str:
    """The page with its table made anew."""
    before, begin, rest = text.partition(BEGIN)
    _, end, after = rest.partition(END)
    if not (begin and end):
        raise ValueError(f"{PAGE.name} has no place for the table: put {BEGIN.strip()} and its end there.")
    return before + begin + table() + end + after


if __name__ == "__main__":
    if "--write" in sys.argv[1:]:
        PAGE.write_text(filled(PAGE.read_text()))
    else:
        print(table())
