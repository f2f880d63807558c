"""Accuracy of a recipe over seeds, a JSON line a run: the source of every accuracy this project quotes.

    python benchmarks/accuracy.py cora --protocol digl --seeds 20 --out results/accuracy/cora-digl.jsonl

Seed s trains from seed s on split s of the protocol (the published split does not depend on it).
"""

import argparse
import json
import multiprocessing
import statistics
from concurrent.futures import ProcessPoolExecutor
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import Any

from beltrami.config import RunConfig, load_recipe, override
from beltrami.errors import SolverError
from beltrami.run import run_config, run_configs
from beltrami.train import write_atomically


def one(config: RunConfig, *, device: str) -> dict[str, Any]:
    """The result of one configuration, in a process with one thread."""
    import torch

    torch.set_num_threads(1)
    return asdict(run_config(config, device=device)[0])


def together(configs: list[RunConfig], *, device: str, at_once: int) -> list[dict[str, Any]]:
    """The results of all, so many at once as one program."""
    results = []
    for first in range(0, len(configs), at_once):
        for outcome in run_configs(configs[first : first + at_once], device=device):
            if isinstance(outcome, SolverError):
                raise outcome
            results.append(asdict(outcome[0]))
    return results


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("dataset")
    parser.add_argument("--recipe", default="blend")
    parser.add_argument("--protocol")
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--set", action="append", default=[], dest="settings")
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--workers", type=int, default=1, help="processes, each on one thread")
    parser.add_argument("--together", type=int, default=0, help="runs at once as one program, in this process")
    parser.add_argument("--out", type=Path, required=True)
    args = parser.parse_args()
    configs = [
        override(load_recipe(args.recipe, args.dataset, protocol=args.protocol, seed=seed), args.settings)
        for seed in range(args.seeds)
    ]
    if args.together:
        results = together(configs, device=args.device, at_once=args.together)
    else:
        with ProcessPoolExecutor(args.workers, mp_context=multiprocessing.get_context("spawn")) as pool:
            results = list(pool.map(partial(one, device=args.device), configs))
    lines = (json.dumps({**result, "settings": args.settings}) + "\n" for result in results)
    write_atomically(args.out, "".join(lines).encode())
    test = [result["test_accuracy"] for result in results]
    spread = statistics.mean(result["attention_spread"] for result in results)
    deviation = statistics.stdev(test) if len(test) > 1 else 0.0
    print(f"{args.dataset} {args.recipe} {results[0]['split']['protocol']}: test {statistics.mean(test):.2f} "
          f"+- {deviation:.2f} over {len(test)} seeds, attention spread {spread:.3f}")  # fmt: skip


if __name__ == "__main__":
    main()
