"""The tables in the README, from the files under results; ``--write`` puts them there.

python benchmarks/table.py [--write]
"""

import json
import statistics
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from marks import filled, markdown

from beltrami.lab.study import latest, read_records

ROOT = Path(__file__).parents[1]
RESULTS = ROOT / "results"
OURS = ("blend", "blend-knn")


def accuracy(folder: Path = RESULTS) -> str:
    """A row a recipe of ours on a dataset: mean and standard deviation of the test accuracy over runs.

    From the lines of the studies ``planetoid`` and ``random``, and from the files of runs beside them.
    """
    head = ("dataset", "split", "recipe", "test accuracy", "runs", "attention spread", "on")
    rows = [
        _accuracy(runs) for name in ("planetoid", "random") for runs in _studied(folder / "study" / f"{name}.jsonl")
    ]
    files = (path.read_text().splitlines() for path in sorted((folder / "accuracy").glob("*.jsonl")))
    return markdown(head, sorted(rows + [_accuracy([json.loads(line) for line in lines]) for lines in files]))


def speed(folder: Path = RESULTS / "bench") -> str:
    """A row a size: how much longer than PyG's GAT a training step and inference take, on the CPU."""
    train, infer = (json.loads((folder / f"{suite}-cpu.json").read_text())["rows"] for suite in ("train", "infer"))
    head = ("size", "GAT's step", "ours", "with the recipe's passes", "plain", "paper", "inference", "paper")
    rows = []
    for one, other in zip(train, infer, strict=True):
        assert one["size"] == other["size"]
        ratios = [one["frozen_ratio"], one.get("recipe_ratio", one["frozen_ratio"]), one["plain_ratio"]]
        ratios += [one["paper_ratio"], other["frozen_ratio"], other["paper_ratio"]]
        rows.append((one["size"], f"{1e3 * one['gat_s']:.0f} ms", *(f"{ratio:.2g}x" for ratio in ratios)))
    return markdown(head, rows)


def speed_on_gpu(folder: Path = RESULTS / "bench") -> str:
    """A row a size: how much longer than PyG's GAT a training step and inference take, on the GPU."""
    train, infer = (json.loads((folder / f"{suite}-h200.json").read_text())["rows"] for suite in ("train", "infer"))
    head = (
        "size",
        "GAT's step",
        "frozen",
        "live",
        "GAT recorded",
        "paper",
        "inference",
        "live",
        "GAT recorded",
        "paper",
    )
    rows = []
    for one, other in zip(train, infer, strict=True):
        assert one["size"] == other["size"]
        names = ("frozen_ratio", "live_ratio", "gat_recorded_ratio", "paper_ratio")
        ratios = [row[name] for row in (one, other) for name in names]
        cells = ("" if ratio is None else f"{ratio:.2g}x" for ratio in ratios)
        rows.append((one["size"], f"{1e3 * one['gat_s']:.1f} ms", *cells))
    return markdown(head, rows)


def _studied(path: Path) -> list[list[dict[str, Any]]]:
    """The runs of our recipes in a study, each recipe and dataset by itself."""
    found: dict[tuple[str, str], list[dict[str, Any]]] = {}
    for record in latest(read_records(path)):
        if record.method in OURS and record.result is not None:
            found.setdefault((record.dataset, record.method), []).append(dict(record.result))
    return list(found.values())


def _accuracy(runs: Sequence[Mapping[str, Any]]) -> tuple[str, ...]:
    first = runs[0]
    test = [run["test_accuracy"] for run in runs]
    spread = statistics.mean(run["attention_spread"] for run in runs)
    mean = f"{statistics.mean(test):.2f} ± {statistics.stdev(test):.2f}"
    return (
        first["dataset"], first["split"]["protocol"], first["recipe"], mean, str(len(test)), f"{spread:.2f}",
        first["device"],
    )  # fmt: skip


if __name__ == "__main__":
    readme = ROOT / "README.md"
    made = {"accuracy": accuracy(), "speed": speed(), "speed-gpu": speed_on_gpu()}
    if "--write" in sys.argv[1:]:
        readme.write_text(filled(readme.read_text(), made, page=readme.name))
    else:
        print(*made.values(), sep="\n\n")
