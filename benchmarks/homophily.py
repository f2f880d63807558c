"""Accuracy over homophily, on graphs drawn from block models, beside the best that is possible.

python benchmarks/homophily.py [--seeds 5] [--nodes 1000] [--degree 5] [--distance 1.5]

A row per homophily, seed and method goes to `results/homophily.jsonl`; runs that are there are not repeated. The figure
`docs/study/homophily.svg` and the table of `docs/heterophily.md` are made of all rows. About 15 minutes on one core.
"""

import argparse
import json
import time
from collections.abc import Collection, Iterator, Mapping
from dataclasses import asdict, replace
from pathlib import Path
from statistics import fmean, stdev
from typing import Any

import numpy
import torch
from marks import filled, markdown
from rows import read_rows

from beltrami.auto.portfolio import MEMBERS
from beltrami.config import RunConfig, load_recipe, override
from beltrami.data import Dataset, Split, make_split
from beltrami.data.block_model import BlockModel
from beltrami.data.file import write_atomically
from beltrami.graph import Edges
from beltrami.lab.belief_propagation import best_log_odds
from beltrami.report.figure import Figure, Line
from beltrami.report.plot import draw
from beltrami.run import Problem, run_config

ROOT = Path(__file__).parents[1]
ROWS, FIGURE = ROOT / "results" / "homophily.jsonl", ROOT / "docs" / "study" / "homophily.svg"
PAGE, TABLE = ROOT / "docs" / "heterophily.md", "homophily"
SHARES = (0.0, 0.1, 0.3, 0.5, 0.7, 0.9, 1.0)
TRAINED = ("network", "attention", "coupled", "gcn", "gat")
BEST, CHOSEN, WITHOUT = "best possible", "chosen", "best without the graph"
NAMES = {
    BEST: "best possible (belief propagation)",
    WITHOUT: WITHOUT,
    "attention": "flow (attention)",
    "coupled": "flow with a coupling",
    "gat": "GAT",
    "gcn": "GCN",
    "network": "network without the graph",
    CHOSEN: "flow or network, by validation",
}
"""The methods in the order of the figure and the table, and their names there."""


def settings(method: str, seed: int) -> RunConfig:
    """Return the configuration of a method, the same for every graph: a member of the portfolio without consistency, or
    the recipe of a baseline."""
    if method in MEMBERS:
        config = MEMBERS[method].config("", exclusive=False, seed=seed)
    else:
        config = load_recipe(method, "digits", seed=seed)
    return replace(override(config, ["train.validate_every=5"]), dataset="block-model")


def measured(model: BlockModel, seed: int, methods: Collection[str]) -> Iterator[dict[str, Any]]:
    """Yield a row for each of the methods on one graph; the graph, its split and the weights have the same seed."""
    data = model.draw(seed)
    split = make_split(data, protocol="shchur", seed=seed)
    if BEST in methods:
        right = (best_log_odds(model, data, split) > 0) == (data.y == 1)
        yield {"method": BEST, "test": 100 * float(right[split.test].double().mean())}
    if WITHOUT in methods:
        yield {"method": WITHOUT, "test": 100 * model.best_without_graph}
    for method in (name for name in TRAINED if name in methods):
        start = time.perf_counter()
        config = settings(method, seed)
        result, _ = run_config(config, problem=_problem(config, data, split))
        row = {"method": method, "test": result.test_accuracy, "validation": result.val_accuracy}
        yield {**row, "seconds": round(time.perf_counter() - start, 2)}


def _problem(config: RunConfig, data: Dataset, split: Split) -> Problem:
    edges = Edges.build(data.edge_index, num_nodes=data.num_nodes)
    return Problem(config, data, split, data.x, edges, None)


def chosen(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the best of the two flows and the network on each graph, by validation; of equals the network."""
    graphs: dict[tuple[float, int], list[dict[str, Any]]] = {}
    for row in rows:
        if row["method"] in MEMBERS:
            graphs.setdefault((row["homophily"], row["seed"]), []).append(row)
    return [{**max(of_graph, key=lambda row: row["validation"]), "method": CHOSEN} for of_graph in graphs.values()]


def accuracies(rows: list[dict[str, Any]]) -> Mapping[str, Mapping[float, list[float]]]:
    """Return the test accuracies of each method over homophily."""
    found: dict[str, dict[float, list[float]]] = {name: {} for name in NAMES}
    for row in sorted([*rows, *chosen(rows)], key=lambda row: (row["homophily"], row["seed"])):
        found[row["method"]].setdefault(row["homophily"], []).append(row["test"])
    return found


def figure(rows: list[dict[str, Any]]) -> Figure:
    """Return the figure of mean accuracies."""
    lines = [
        Line(NAMES[name], numpy.array(list(values)), numpy.array([fmean(each) for each in values.values()]))
        for name, values in accuracies(rows).items()
        if name != CHOSEN  # which lies on the line of the coupled flow
    ]
    says = "Mean test accuracy over graphs of a block model, by the share of edges within a class."
    return Figure("homophily", "Accuracy over homophily", says, "homophily", "test accuracy, %", lines)


def table(rows: list[dict[str, Any]]) -> str:
    """Return mean and standard deviation of every method over homophily, in Markdown."""
    found = accuracies(rows)
    shares = sorted(next(iter(found.values())))

    def cell(values: list[float]) -> str:
        return f"{fmean(values):.1f} ± {stdev(values):.1f}" if len(set(values)) > 1 else f"{values[0]:.1f}"

    body = [[NAMES[name], *(cell(values[share]) for share in shares)] for name, values in found.items()]
    return markdown(["", *(f"{share:g}" for share in shares)], body)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--nodes", type=int, default=1000)
    parser.add_argument("--degree", type=float, default=5.0)
    parser.add_argument("--distance", type=float, default=1.5)
    parser.add_argument("--out", type=Path, default=ROWS)
    options = parser.parse_args()
    models = [BlockModel(options.nodes, share, options.degree, options.distance) for share in SHARES]
    rows = read_rows(options.out)
    rows = [row for row in rows if any(asdict(model).items() <= row.items() for model in models)]
    for seed in range(options.seeds):
        for model in models:
            there = {row["method"] for row in rows if (row["homophily"], row["seed"]) == (model.homophily, seed)}
            for row in measured(model, seed, {BEST, WITHOUT, *TRAINED} - there):
                rows.append({**asdict(model), "seed": seed, **row})
                write_atomically(options.out, "".join(json.dumps(each) + "\n" for each in rows).encode())
                print(model.homophily, seed, row["method"], round(row["test"], 1), flush=True)
    rows = [row for row in rows if row["seed"] < options.seeds]
    if options.out == ROWS:
        write_atomically(FIGURE, draw(figure(rows), "svg"))
        write_atomically(PAGE, filled(PAGE.read_text(), {TABLE: table(rows)}, page=PAGE.name).encode())
    else:
        print(table(rows))


if __name__ == "__main__":
    torch.set_num_threads(1)
    main()
