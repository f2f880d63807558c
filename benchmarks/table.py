"""The table of accuracies in the README, from the JSON lines under results/accuracy.

python benchmarks/table.py
"""

import json
import statistics
from pathlib import Path

FOLDER = Path(__file__).parents[1] / "results" / "accuracy"
HEAD = "| dataset | split | recipe | test accuracy | seeds | attention spread | on |\n|---|---|---|---|---|---|---|"


def table(folder: Path = FOLDER) -> str:
    """Markdown, a row a file: mean and standard deviation of the test accuracy over seeds."""
    return "\n".join([HEAD, *(_row(path) for path in sorted(folder.glob("*.jsonl")))])


def _row(path: Path) -> str:
    runs = [json.loads(line) for line in path.read_text().splitlines()]
    first = runs[0]
    test = [run["test_accuracy"] for run in runs]
    spread = statistics.mean(run["attention_spread"] for run in runs)
    accuracy = f"{statistics.mean(test):.2f} ± {statistics.stdev(test):.2f}"
    cells = (first["dataset"], first["split"]["protocol"], first["recipe"], accuracy, len(test), f"{spread:.2f}")
    return "| " + " | ".join(str(cell) for cell in (*cells, first["device"])) + " |"


if __name__ == "__main__":
    print(table())
