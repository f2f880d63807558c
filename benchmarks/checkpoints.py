"""Measure what checkpoints cost: training with and without them, and the time to write one.

Trainings of one recipe alternate in one process, with checkpoints at the default interval and without; the ratio of the
medians is the cost that a user sees. Where a training is shorter than the interval, no checkpoint falls into it: the
seconds of one checkpoint relative to the interval are the cost of a longer training.
"""

import argparse
import json
import statistics
import tempfile
import time
from pathlib import Path
from typing import Any

import torch

from beltrami import train
from beltrami.config import load_recipe, override
from beltrami.config.build import build_training
from beltrami.run import load_problem, run_config
from beltrami.train.checkpoint import SECONDS


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("graphs", nargs="+")
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--epochs", type=int, default=200)
    parser.add_argument("--out", type=Path, default=Path("results/checkpoints.jsonl"))
    options = parser.parse_args()
    for name in options.graphs:
        row = measure(name, options.device, options.repeats, options.epochs)
        print(row, flush=True)
        with options.out.open("a") as file:
            file.write(json.dumps(row) + "\n")


def measure(name: str, device: str, repeats: int, epochs: int) -> dict[str, Any]:
    """Return the times of one graph, in seconds."""
    settings = [f"train.epochs={epochs}", f"train.patience={epochs}"]
    config = override(load_recipe("blend", name), settings)
    problem = load_problem(config, device=device)
    times: dict[bool, list[float]] = {True: [], False: []}
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "checkpoint.safetensors"
        for number in range(2 * repeats + 2):
            kept = number % 2 == 0
            checkpoints = train.Checkpoints(path) if kept else None
            path.unlink(missing_ok=True)
            start = time.perf_counter()
            run_config(config, problem=problem, checkpoints=checkpoints)
            if number >= 2:  # the first ones warm up
                times[kept].append(time.perf_counter() - start)
        one, size = cost_of_one(config, problem, path)
    medians = {kept: statistics.median(found) for kept, found in times.items()}
    return {
        "graph": name,
        "device": torch.cuda.get_device_name() if device == "cuda" else f"cpu, {torch.get_num_threads()} threads",
        "epochs": epochs,
        "with": times[True],
        "without": times[False],
        "ratio": medians[True] / medians[False],
        "one checkpoint": one,
        "bytes": size,
        "interval": SECONDS,
        "share of the interval": one / SECONDS,
    }


def cost_of_one(config: Any, problem: Any, path: Path) -> tuple[float, int]:
    """Return the median time to make and write a checkpoint, and its size."""
    with train.seeded(0):
        model = problem.model(config)
        inputs = model.prepare(problem.x, problem.edges, pos=problem.pos)
        fitting = train.start_fit(model, inputs, problem.dataset.y, problem.split, build_training(config.train))
        next(fitting)
        next(fitting)
        found = []
        for _ in range(7):
            start = time.perf_counter()
            fitting.checkpoint().write(path)
            found.append(time.perf_counter() - start)
    return statistics.median(found), path.stat().st_size


if __name__ == "__main__":
    main()
