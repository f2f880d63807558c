"""Validation accuracy of settings, a line of a list each: what recipes are chosen by. No test label is read.

    python benchmarks/search.py results/search/first.txt --device cuda --out results/search/first.json

A line names dataset, recipe, protocol and number of runs, then settings as ``--set`` takes them. Seeds begin at 1000,
so that the splits are not those that results are quoted on.
"""

import argparse
import json
import statistics
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch

from beltrami.data import make_split
from beltrami.errors import SolverError
from beltrami.experiment import RunConfig, override, recipe
from beltrami.experiment.build import build_training
from beltrami.experiment.run import pose
from beltrami.train import Fit, fit_many, seeded, versions, write_atomically

FIRST_SEED = 1000


def tried(line: str, *, device: str) -> dict[str, Any]:
    """What validation says of a line."""
    dataset, name, protocol, runs, *settings = line.split()
    row: dict[str, Any] = {"dataset": dataset, "recipe": name, "protocol": protocol, "settings": settings}
    seeds = range(FIRST_SEED, FIRST_SEED + int(runs))
    try:
        configs = [override(recipe(name, dataset, protocol=protocol, seed=seed), settings) for seed in seeds]
        start = time.perf_counter()
        found = [fit for fit in trained(configs, device=device) if not isinstance(fit, SolverError)]
    except (ValueError, RuntimeError) as error:
        return row | {"error": str(error).split("\n")[0]}
    accuracies = [100 * fit.best.accuracy for fit in found]
    return row | {
        "runs": len(found),
        "failed": len(configs) - len(found),
        "mean": statistics.mean(accuracies) if found else None,
        "val": accuracies,
        "epoch": statistics.mean(fit.best_epoch for fit in found) if found else None,
        "time": statistics.mean(fit.best.time for fit in found) if found else None,
        "seconds": time.perf_counter() - start,
    }


def trained(configs: Sequence[RunConfig], *, device: str) -> list[Fit | SolverError]:
    """All runs at once, as far as their choice by validation."""
    problem = pose(configs[0], device=device)
    dataset = problem.dataset.to("cpu")
    models, splits = [], []
    for config in configs:
        split = make_split(dataset, protocol=config.data.protocol, seed=config.data.split_seed)
        splits.append(split.to(device))
        with seeded(config.seed):
            models.append(problem.model(config))
    inputs = models[0].prepare(problem.x, problem.edges, problem.pos)
    return fit_many(models, inputs, problem.dataset.y, splits, build_training(configs[0].train))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("list", type=Path)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--out", type=Path, required=True)
    args = parser.parse_args()
    lines = [line for line in args.list.read_text().splitlines() if line.strip() and not line.startswith("#")]
    rows = []
    for line in lines:
        rows.append(tried(line, device=args.device))
        said = rows[-1].get("error") or f"{rows[-1]['mean']:.2f} over {rows[-1]['runs']} runs"
        print(f"{line}: {said}", flush=True)
        device = torch.cuda.get_device_name(args.device) if args.device.startswith("cuda") else args.device
        made = {"device": device, "versions": versions(), "rows": rows}
        write_atomically(args.out, json.dumps(made, indent=1).encode())


if __name__ == "__main__":
    main()
