"""Where the time of many runs at once goes on a GPU: milliseconds and kernels of a step and of looks at validation.

    python benchmarks/ensemble_profile.py --out results/bench/ensemble-profile-h200.json

The runs are those of `beltrami bench --suite ensemble`.
"""

import argparse
import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from torch.profiler import ProfilerActivity, profile

from beltrami.config.build import build_training
from beltrami.lab.bench.ensemble import RUNS, fresh_model, random_split
from beltrami.lab.bench.problem import BenchProblem
from beltrami.result import versions
from beltrami.train import Classification, write_atomically
from beltrami.train.stacked_program import StackedProgram
from beltrami.train.validation import AT_END

REPEATS, SHOWN = 5, 9


def measured(work: Callable[[], object]) -> dict[str, Any]:
    """The first call, which records, the mean of some more, and the kernels that take longest."""
    first = _seconds(work, repeats=1)
    each = _seconds(work, repeats=REPEATS)
    with profile(activities=[ProfilerActivity.CUDA]) as seen:
        work()
        torch.cuda.synchronize()
    kernels = [(event.key, event.count, event.device_time_total) for event in seen.key_averages()]
    kernels.sort(key=lambda kernel: -kernel[2])
    return {
        "first_s": first,
        "ms": 1e3 * each,
        "kernels": sum(count for _, count, _ in kernels),
        "longest": [{"name": name[:70], "count": count, "us": us} for name, count, us in kernels[:SHOWN]],
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--size", default="cora")
    parser.add_argument("--out", type=Path, required=True)
    args = parser.parse_args()
    case = BenchProblem.load(args.size, device="cuda")
    training = build_training(case.config.train)
    made = [fresh_model(case, case.config, seed) for seed in range(RUNS["cuda"])]
    splits = [random_split(case, seed) for seed in range(RUNS["cuda"])]
    models, inputs = [model for model, _ in made], made[0][1]
    task = Classification(models[0].num_classes)
    program = StackedProgram(models, inputs, [case.dataset.y] * len(made), splits, training, task)
    works: dict[str, Callable[[], object]] = {
        "step": lambda: program.step(1),
        "validate along the time grid": lambda: program.validate(training.time_grid),
        "validate at T": lambda: program.validate(AT_END),
    }
    report = {
        "size": args.size,
        "runs": RUNS["cuda"],
        "device": torch.cuda.get_device_name(),
        "versions": versions(),
        "works": {name: measured(work) for name, work in works.items()},
    }
    write_atomically(args.out, json.dumps(report, indent=1).encode())


def _seconds(work: Callable[[], object], *, repeats: int) -> float:
    torch.cuda.synchronize()
    start = time.perf_counter()
    for _ in range(repeats):
        work()
    torch.cuda.synchronize()
    return (time.perf_counter() - start) / repeats


if __name__ == "__main__":
    main()
