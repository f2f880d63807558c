"""The table in docs/zoo.md, from the rows in the code and the files under results/zoo; ``--write`` puts it there.

python benchmarks/accuracy.py cora --recipe NAME --protocol planetoid --seeds 3 --out results/zoo/cora-NAME.jsonl
python benchmarks/zoo.py [--write]
"""

import statistics
import sys
from pathlib import Path

from marks import filled, markdown
from rows import read_rows

from beltrami.model.zoo import TABLE, ZooEntry

ROOT = Path(__file__).parents[1]
RESULTS, PAGE = ROOT / "results" / "zoo", ROOT / "docs" / "zoo.md"
HEAD = ("network", "evolution", "diffusivity", "graph", "discretisation", "recipe", "validation", "test", "seeds")


def table(folder: Path = RESULTS) -> str:
    """A row a network: its columns of Table 1, and mean and standard deviation of its accuracy on Cora over seeds."""
    return markdown(HEAD, [_cells(row, folder) for row in TABLE])


def _cells(row: ZooEntry, folder: Path) -> tuple[str, ...]:
    runs = read_rows(folder / f"cora-{row.recipe}.jsonl")
    assert all(run["recipe"] == row.recipe and run["split"]["protocol"] == "planetoid" for run in runs)
    words = (row.evolution, f"`{row.diffusivity}`", row.graph, row.discretisation, f"`{row.recipe}`")
    accuracies = (_spread([run[f"{part}_accuracy"] for run in runs]) for part in ("val", "test"))
    return (row.method, *words, *accuracies, str(len(runs)))


def _spread(values: list[float]) -> str:
    if len(values) < 2:
        return f"{values[0]:.1f}" if values else "not measured"
    return f"{statistics.mean(values):.1f} ± {statistics.stdev(values):.1f}"


if __name__ == "__main__":
    if "--write" in sys.argv[1:]:
        PAGE.write_text(filled(PAGE.read_text(), {"zoo": table()}, page=PAGE.name))
    else:
        print(table())
