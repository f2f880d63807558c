"""Measure recipe `paper` on the splits of the code that was released with the paper.

    python benchmarks/released_splits.py cora --splits 12345 --inits 20
    python benchmarks/released_splits.py cora --splits 0,23,46,69,92 --inits 4
    python benchmarks/released_splits.py cora --splits 12345 --inits 20 --set position.top=2000
    python benchmarks/released_splits.py --show

That code draws a development set of 1,500 nodes (5,000 on Coauthor CS) of the largest component by a seed, of which 20
per class train. On Computers, Photo and Coauthor CS it always takes the seed 12345; on Cora, Citeseer and PubMed too,
if it is asked for the published split. A row per run goes to results/released_splits.jsonl; runs that are there are
not measured again.
"""

import argparse
import json
import time
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from rows import device_name, read_rows
from search import fitted

from beltrami.config import RunConfig, load_recipe, override
from beltrami.config.recipe.paper import PAPER
from beltrami.data import Dataset, Split
from beltrami.data.dataset import mask
from beltrami.data.protocol import DEVELOPMENT, LARGE_DEVELOPMENT, TRAIN_PER_CLASS
from beltrami.errors import SolverError
from beltrami.lab.study.summary import Sample
from beltrami.result import versions
from beltrami.run import Problem, load_problem
from beltrami.train import accuracy, predict, seeded

RESULTS = Path(__file__).parents[1] / "results" / "released_splits.jsonl"


def released_split(dataset: Dataset, seed: int) -> Split:
    """Return the split that the released code draws from a seed. Its random stream begins anew for training nodes."""
    y = dataset.y.cpu().numpy()
    size = LARGE_DEVELOPMENT.get(dataset.name, DEVELOPMENT)
    development = np.random.RandomState(seed).choice(dataset.num_nodes, size, replace=False)
    random = np.random.RandomState(seed)
    of_class = (development[y[development] == label] for label in range(int(y.max()) + 1))
    train = np.concatenate([random.choice(nodes, TRAIN_PER_CLASS, replace=False) for nodes in of_class])
    chosen, developing = (mask(torch.from_numpy(nodes), num_nodes=dataset.num_nodes) for nodes in (train, development))
    return Split(chosen, developing & ~chosen, ~developing, "released", seed)


def measured(configs: Sequence[RunConfig], problem: Problem, split: Split, device: str) -> list[dict[str, Any]]:
    """Return the accuracies of each run in per cent, or its error."""
    models = []
    for config in configs:
        with seeded(config.seed):
            models.append(problem.model(config))
    inputs, y = models[0].prepare(problem.x, problem.edges, pos=problem.pos), problem.dataset.y
    split = split.to(device)
    rows: list[dict[str, Any]] = []
    for model, each in zip(
        models, fitted(configs, models, inputs, y, [split] * len(models), at_once=device != "cpu"), strict=True
    ):
        if isinstance(each, SolverError):
            rows.append({"error": str(each)})
            continue
        logits = predict(model, inputs, time=each.best.time)
        of = {name: round(100 * accuracy(logits[nodes], y[nodes]), 4) for name, nodes in split.masks.items()}
        rows.append({"val": of["val"], "test": of["test"], "epoch": each.best_epoch, "time": each.best.time})
    return rows


def show(rows: Sequence[dict[str, Any]]) -> None:
    """Print the mean accuracy of each dataset, recipe, list of settings and split, over initial weights."""
    groups = defaultdict(list)
    for row in rows:
        if "error" not in row:
            groups[row["dataset"], row["recipe"], " ".join(row["settings"]), row["split"]].append(row["test"])
    for key, found in groups.items():
        print(*key, Sample.of(found))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("dataset", nargs="?", choices=[name for name in PAPER if name != "ogbn-arxiv"])  # has one split
    parser.add_argument("--recipe", default="paper")
    parser.add_argument("--splits", default="12345", help="seeds, separated by commas")
    parser.add_argument("--inits", type=int, default=20, help="initial weights on each split")
    parser.add_argument("--set", action="append", default=[], metavar="NAME=VALUE")
    parser.add_argument("--together", type=int, default=10, help="on a GPU, runs trained as one program")
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--seconds", type=float, default=float("inf"), help="start no run that cannot end by then")
    parser.add_argument("--out", type=Path, default=RESULTS)
    parser.add_argument("--show", action="store_true", help="print the means of the measured rows")
    args = parser.parse_args()
    rows = read_rows(args.out)
    if args.show or args.dataset is None:
        show(rows)
        return
    key = ("dataset", "recipe", "settings", "split", "seed")
    done = {json.dumps([row[name] for name in key]) for row in rows}
    config = override(load_recipe(args.recipe, args.dataset), args.set)
    problem = load_problem(config, device=args.device)
    begin, longest = time.perf_counter(), 0.0
    of_cell = (args.dataset, args.recipe, args.set)
    for number in map(int, args.splits.split(",")):
        split = released_split(problem.dataset, number)
        left = [seed for seed in range(args.inits) if json.dumps([*of_cell, number, seed]) not in done]
        size = 1 if args.device == "cpu" else args.together
        for seeds in (left[k : k + size] for k in range(0, len(left), size)):
            start = time.perf_counter()
            if start - begin + longest > args.seconds:
                return
            found = measured([override(config, [f"seed={seed}"]) for seed in seeds], problem, split, args.device)
            longest = max(longest, time.perf_counter() - start)
            for seed, each in zip(seeds, found, strict=True):
                row = dict(zip(key, (*of_cell, number, seed), strict=True)) | {"hash": split.hash} | each
                row |= {"seconds": (time.perf_counter() - start) / len(seeds), "device": device_name(args.device)}
                with args.out.open("a") as file:
                    file.write(json.dumps(row | {"versions": versions()}) + "\n")
                print(row["dataset"], number, seed, each, flush=True)


if __name__ == "__main__":
    main()
