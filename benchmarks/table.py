"""Make the tables of README.md, docs/benchmarks.md and docs/search.md from the files under results; ``--write`` puts
them there.

python benchmarks/table.py [--write]
"""

import json
import statistics
import sys
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path

from marks import filled, markdown

from beltrami.lab.study.paper_tables import PLANETOID, RANDOM, SIX
from beltrami.lab.study.planning import Comparison
from beltrami.lab.study.record import Record, latest, read_records
from beltrami.lab.study.summary import Sample, compare, independent_values

ROOT = Path(__file__).parents[1]
RESULTS = ROOT / "results"
OURS = ("blend", "blend-knn")
AIMS = {
    "planetoid": {"cora": 85.5, "citeseer": 75.4, "pubmed": 82.0},
    "random": {"cora": 85.5, "citeseer": 76.5, "pubmed": 81.5, "coauthor-cs": 94.2, "computers": 88.2, "photo": 94.2},
}
"""Test accuracies to reach with training labels alone, by study and dataset."""
ENOUGH = 20  # runs that a verdict needs: the interval of three is so wide that it reaches most aims
PLAIN = {name: Comparison("blend-plain", "gcn") for name in ("random", "aids")}
AIDED = {"random": Comparison("blend", "gcn+aids"), "aids": Comparison("blend", "gcn-all-aids")}


def accuracy(folder: Path = RESULTS) -> str:
    """A row a dataset: the test accuracy of recipe ``blend`` over random splits and on the published one, and what the
    flow is worth over a GCN on random splits: without training aids on either side, and with the same aids.

    From the records of the studies ``random``, ``planetoid`` and ``aids``, beside the paper's better variant.
    """
    head = ("dataset", "random splits", "paper", "published split", "paper", "over GCN, no aids", "over GCN, same aids")
    found = {name: _test_accuracies(folder / "study" / f"{name}.jsonl") for name in ("random", "planetoid")}
    rows = []
    for dataset in SIX:
        cells = [dataset]
        for name, paper in (("random", RANDOM), ("planetoid", PLANETOID)):
            figures = [paper.figure(row, dataset) for row in OURS]
            best = max((each.value for each in figures if each is not None), default=None)
            cells += [_mean(found[name].get((dataset, "blend"), [])), "" if best is None else f"{best:.1f}"]
        rows.append([*cells, *(_difference(folder / "study", dataset, pairs) for pairs in (PLAIN, AIDED))])
    return markdown(head, rows)


def aims(folder: Path = RESULTS) -> str:
    """A row a dataset and kind of split: the accuracy to reach, the means of ``blend``, ``blend-distilled`` and the
    average of several flows with their 95% intervals, and whether the last of these with enough runs reaches it."""
    averages: dict[tuple[str, str], list[float]] = {}
    for row in map(json.loads, (folder / "model_average.jsonl").read_text().splitlines()):
        if not row["held"]:
            name = "planetoid" if row["protocol"] == "planetoid" else "random"
            averages.setdefault((name, row["dataset"]), []).append(row["accuracies"]["average"][1])
    lines = []
    for name, wanted in AIMS.items():
        records = _records(folder / "study" / f"{name}.jsonl")
        for dataset, aim in wanted.items():
            samples = []
            for method in ("blend", "blend-distilled"):
                of_cell = [each for each in records if (each.dataset, each.method) == (dataset, method)]
                samples.append(list(independent_values(of_cell, "test_accuracy").values()))
            samples.append(averages.get((name, dataset), []))
            cells = [Sample.of(values) if values else None for values in samples]
            last = [cell for cell in cells if cell is not None and cell.count >= ENOUGH][-1]
            reached = last.interval is not None and last.interval[1] >= aim
            verdict = f"{'yes' if reached else 'no'}, {last.mean - aim:+.2f}"
            splits = "published" if name == "planetoid" else "random"
            lines.append((dataset, splits, f"{aim:.1f}", *map(_interval, cells), verdict))
    head = ("dataset", "splits", "aim", "blend", "blend-distilled", "average of flows")
    return markdown((*head, "interval reaches it, mean less aim"), lines)


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
        "GAT captured",
        "paper",
        "inference",
        "live",
        "GAT captured",
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


def own_loop(folder: Path = RESULTS / "bench") -> str:
    """A row a size: a training step in a user's own loop and in ours, as multiples of PyG's GAT in a plain loop."""
    columns = {"GAT compiled": "gat_compiled", "GAT captured": "gat_recorded", "frozen, own loop": "frozen_loop"}
    columns |= {"live, own loop": "live_loop", "frozen, our loop": "frozen"}
    columns |= {"in bfloat16": "frozen_bfloat16", "live, our loop": "live"}
    rows = []
    for row in json.loads((folder / "loop-h200.json").read_text())["rows"]:
        ratios = (row.get(f"{name}_ratio") for name in columns.values())
        cells = ("" if ratio is None else f"{ratio:.2g}x" for ratio in ratios)
        rows.append((row["size"], f"{1e3 * row['gat_s']:.1f} ms", *cells))
    return markdown(["size", "GAT's step", *columns], rows)


@cache
def _records(path: Path) -> list[Record]:
    return latest(read_records(path))


def _test_accuracies(path: Path) -> dict[tuple[str, str], list[float]]:
    """The test accuracies of a study, by dataset and method."""
    found: dict[tuple[str, str], list[float]] = {}
    for record in _records(path):
        if record.result is not None:
            found.setdefault((record.dataset, record.method), []).append(record.result["test_accuracy"])
    return found


def _interval(sample: Sample | None) -> str:
    if sample is None or sample.interval is None:
        return ""
    return "{:.2f} [{:.2f}, {:.2f}] ({})".format(sample.mean, *sample.interval, sample.count)


def _difference(folder: Path, dataset: str, pairs: Mapping[str, Comparison]) -> str:
    """The paired difference of two methods on random splits with half the width of its 95% interval, from the study
    that has more splits of both."""
    samples = []
    for study, pair in pairs.items():
        records = [each for each in _records(folder / f"{study}.jsonl") if each.dataset == dataset]
        samples.append(compare(pair, records, "test_accuracy"))
    best = max((each for each in samples if each is not None), key=lambda each: each.count, default=None)
    return "" if best is None or best.half is None else f"{best.mean:+.1f} ± {best.half:.1f} ({best.count})"


def _mean(values: Sequence[float]) -> str:
    return f"{statistics.mean(values):.2f} ± {statistics.stdev(values):.2f} ({len(values)})" if values else ""


if __name__ == "__main__":
    pages = {
        ROOT / "README.md": {"accuracy": accuracy()},
        ROOT / "docs" / "search.md": {"aims": aims()},
        ROOT / "docs" / "benchmarks.md": {"speed-gpu": speed_on_gpu(), "own-loop": own_loop(), "speed": speed()},
    }
    for page, tables in pages.items():
        if "--write" in sys.argv[1:]:
            page.write_text(filled(page.read_text(), tables, page=page.name))
        else:
            print(*tables.values(), sep="\n\n", end="\n\n")
