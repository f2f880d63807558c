"""Measure the validation accuracy of the settings in a list, by which recipes are chosen. No test label is read.

    python benchmarks/search.py results/search/random-draws.txt --device cuda --processes 8
    python benchmarks/search.py results/search/random-draws.txt --show

A line of the list names dataset, recipe, protocol and number of runs, then settings as ``--set`` takes them; ``--aids
same`` before the settings gives a baseline the training aids of `blend`. Seeds begin at 1000, so that random splits are
not those that results are quoted on. Rows are added to the list's ``.jsonl`` as they are measured; lines that have a
row are not measured again.

With ``--held`` epoch and time are chosen by half of the validation nodes and the accuracy is that on the other half:
the maximum over epochs and times favours settings whose accuracy fluctuates, and nothing is chosen by the other half.
"""

import argparse
import json
import multiprocessing
import statistics
import time
from collections.abc import Sequence
from dataclasses import replace
from multiprocessing.synchronize import Lock
from pathlib import Path
from typing import Any

import torch
from rows import device_name
from torch import Tensor

from beltrami.config import RunConfig, load_recipe, override
from beltrami.config.build import build_training
from beltrami.config.recipe.aids import read_aids
from beltrami.data import Split, make_split
from beltrami.errors import SolverError
from beltrami.model import Classifier
from beltrami.result import versions
from beltrami.run import load_problem
from beltrami.train import Fit, accuracy, fit, fit_many, predict, seeded

FIRST_SEED = 1000


def measure(line: str, *, device: str, held: bool) -> dict[str, Any]:
    """Return the row of a line; ``held``: with the accuracy on validation nodes that chose nothing."""
    dataset, name, protocol, runs, *settings = line.split()
    aids = None
    if settings[:1] == ["--aids"]:
        aids, settings = read_aids(settings[1]), settings[2:]
    seeds = range(FIRST_SEED, FIRST_SEED + int(runs))
    start = time.perf_counter()
    try:
        recipes = [load_recipe(name, dataset, protocol=protocol, seed=seed, aids=aids) for seed in seeds]
        configs = [override(recipe, settings) for recipe in recipes]
        found = [each for each in trained(configs, device=device, held=held) if not isinstance(each, SolverError)]
    except (ValueError, RuntimeError) as error:
        return {"line": line, "error": str(error).split("\n")[0]}
    accuracies = [accuracy for _, accuracy in found]
    return {
        "line": line,
        "mean": statistics.mean(accuracies) if found else None,
        "failed": len(configs) - len(found),
        "held": held,
        "val": [round(each, 4) for each in accuracies],
        "epoch": statistics.mean(fit.best_epoch for fit, _ in found) if found else None,
        "time": statistics.mean(fit.best.time for fit, _ in found) if found else None,
        "seconds": time.perf_counter() - start,
        "device": device_name(device),
        "versions": versions(),
    }


def trained(configs: Sequence[RunConfig], *, device: str, held: bool) -> list[tuple[Fit, float] | SolverError]:
    """Train all runs and return each fit with its validation accuracy in per cent."""
    problem = load_problem(configs[0], device=device)
    dataset = problem.dataset.to("cpu")
    models, splits, masks = [], [], []
    for config in configs:
        split = make_split(dataset, protocol=config.data.protocol, seed=config.data.split_seed)
        choosing, scored = halves(split) if held else (split, split.val)
        splits.append(choosing.to(device))
        masks.append(scored.to(device))
        with seeded(config.seed):
            models.append(problem.model(config))
    inputs, y = models[0].prepare(problem.x, problem.edges, pos=problem.pos), problem.dataset.y
    fits = fitted(configs, models, inputs, y, splits, at_once=device != "cpu")
    found: list[tuple[Fit, float] | SolverError] = []
    for model, scored, each in zip(models, masks, fits, strict=True):
        if isinstance(each, SolverError):
            found.append(each)
        else:
            logits = predict(model, inputs, time=each.best.time)
            found.append((each, 100 * accuracy(logits[scored], y[scored])))
    return found


def fitted(
    configs: Sequence[RunConfig],
    models: Sequence[Classifier],
    inputs: Any,
    y: Tensor,
    splits: Sequence[Split],
    *,
    at_once: bool,
) -> Sequence[Fit | SolverError]:
    """Train the models as one program, or one by one."""
    training = build_training(configs[0].train)
    if at_once:
        return fit_many(models, inputs, y, splits, training)
    fits = []
    for config, model, split in zip(configs, models, splits, strict=True):
        with seeded(config.seed):
            fits.append(fit(model, inputs, y, split, training))
    return fits


def halves(split: Split) -> tuple[Split, Tensor]:
    """Return the split with half of its validation nodes, drawn by its seed, and a mask of the other half."""
    nodes = split.val.nonzero()[:, 0]
    drawn = nodes[torch.randperm(len(nodes), generator=torch.Generator().manual_seed(split.seed))]
    choosing, scored = torch.zeros_like(split.val), torch.zeros_like(split.val)
    choosing[drawn[: len(drawn) // 2]] = True
    scored[drawn[len(drawn) // 2 :]] = True
    return replace(split, val=choosing), scored


def work(lines: Sequence[str], taken: Any, writing: Lock, *, device: str, held: bool, out: Path, until: float) -> None:
    """Measure the next line until none is left or the time is over; several processes share ``taken``."""
    while time.time() < until:
        with taken.get_lock():
            number, taken.value = taken.value, taken.value + 1
        if number >= len(lines):
            return
        row = measure(lines[number], device=device, held=held)
        with writing, out.open("a") as file:
            file.write(json.dumps(row) + "\n")
        print(describe(row), flush=True)


def describe(row: dict[str, Any]) -> str:
    return f"{row['line']}: {row['error']}" if "error" in row else f"{row['mean'] or 0:.2f}  {row['line']}"


def read(path: Path) -> list[dict[str, Any]]:
    return [json.loads(text) for text in path.read_text().splitlines()] if path.exists() else []


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("list", type=Path)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--processes", type=int, default=1)
    parser.add_argument("--seconds", type=float, default=float("inf"), help="start no further line after this time")
    parser.add_argument("--held", action="store_true", help="score by validation nodes that chose nothing")
    parser.add_argument("--show", action="store_true", help="print the measured rows, the best of each dataset first")
    args = parser.parse_args()
    out = args.list.with_suffix(".jsonl")
    rows = read(out)
    if args.show:
        for row in sorted(rows, key=lambda row: (row["line"].split()[0:3:2], -(row.get("mean") or 0))):
            print(describe(row))
        return
    done = {row["line"] for row in rows}
    lines = [line.strip() for line in args.list.read_text().splitlines() if line.strip() and line[0] != "#"]
    context = multiprocessing.get_context("spawn")
    taken, writing = context.Value("q", 0), context.Lock()
    given = ([line for line in lines if line not in done], taken, writing)
    options = {"device": args.device, "held": args.held, "out": out, "until": time.time() + args.seconds}
    workers = [context.Process(target=work, args=given, kwargs=options, daemon=True) for _ in range(args.processes)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()


if __name__ == "__main__":
    main()
