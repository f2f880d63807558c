"""Measure what averaging predictions is worth: over models of other initial weights, and over times of the flow.

    python benchmarks/averaging.py cora --splits 8 --members 5
    python benchmarks/averaging.py photo --splits 20 --device cuda

For each split the recipe `blend` is trained from several seeds. Probabilities are averaged over these models, over
seven times from 0.4 T to 2 T of each model, T the time that validation chose, and over both. Accuracies are those on
validation nodes that were used for no choice. A row per split goes to results/averaging.jsonl; splits that are there
are not measured again. Seeds begin at 1000; no test label is read.
"""

import argparse
import json
import statistics
from pathlib import Path
from typing import Any

import torch
from rows import device_name, read_rows
from search import FIRST_SEED, fitted, halves
from torch import Tensor

from beltrami.config import load_recipe
from beltrami.data import make_split
from beltrami.errors import SolverError
from beltrami.model import Classifier, Inputs
from beltrami.result import versions
from beltrami.run import Problem, load_problem
from beltrami.train import accuracy, seeded

RESULTS = Path(__file__).parents[1] / "results" / "averaging.jsonl"
FRACTIONS = (0.4, 0.6, 0.8, 1.0, 1.25, 1.5, 2.0)  # of the chosen time
CHOSEN = FRACTIONS.index(1.0)


@torch.no_grad()
def probabilities(model: Classifier, inputs: Inputs, time: float) -> Tensor:
    """Return the probabilities of the classes at all fractions of a time, (fractions, n, classes)."""
    times = (0.0, *(fraction * time for fraction in FRACTIONS))
    return model.eval().logits_along(inputs, times)[1:].softmax(-1)


def measured(problem: Problem, dataset: str, seed: int, members: int, device: str) -> dict[str, Any]:
    """Return the accuracies of one split: the mean of the members, and those of averages."""
    seeds = range(FIRST_SEED + 100 * seed, FIRST_SEED + 100 * seed + members)
    configs = [load_recipe("blend", dataset, protocol="digl", seed=each, split_seed=seed) for each in seeds]
    split, held_out = halves(make_split(problem.dataset.to("cpu"), protocol="digl", seed=seed))
    split, held_out = split.to(device), held_out.to(device)
    models = []
    for config in configs:
        with seeded(config.seed):
            models.append(problem.model(config))
    inputs, y = models[0].prepare(problem.x, problem.edges, pos=problem.pos), problem.dataset.y
    fits = fitted(configs, models, inputs, y, [split] * members, at_once=device != "cpu")
    found = [
        probabilities(model, inputs, each.best.time)
        for model, each in zip(models, fits, strict=True)
        if not isinstance(each, SolverError)
    ]
    every = torch.stack(found)  # (members, fractions, n, classes)

    def right(p: Tensor) -> float:
        return round(100 * accuracy(p[held_out].log(), y[held_out]), 4)

    return {
        "dataset": dataset,
        "split": seed,
        "members": len(found),
        "single": statistics.mean(right(each[CHOSEN]) for each in every),
        "times": statistics.mean(right(each.mean(0)) for each in every),
        "models": right(every[:, CHOSEN].mean(0)),
        "both": right(every.mean((0, 1))),
        "device": device_name(device),
        "versions": versions(),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("dataset")
    parser.add_argument("--splits", type=int, default=16)
    parser.add_argument("--members", type=int, default=5)
    parser.add_argument("--device", default="cpu")
    args = parser.parse_args()
    rows = read_rows(RESULTS)
    done = {row["split"] for row in rows if row["dataset"] == args.dataset}
    problem = load_problem(load_recipe("blend", args.dataset, protocol="digl"), device=args.device)
    for seed in range(FIRST_SEED, FIRST_SEED + args.splits):
        if seed not in done:
            row = measured(problem, args.dataset, seed, args.members, args.device)
            with RESULTS.open("a") as file:
                file.write(json.dumps(row) + "\n")
            print({name: row[name] for name in ("dataset", "split", "single", "times", "models", "both")}, flush=True)


if __name__ == "__main__":
    main()
