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

from beltrami.experiment import override, recipe, run
from beltrami.train import write_atomically


def one(
    seed: int, *, name: str, dataset: str, protocol: str | None, settings: list[str], device: str
) -> dict[str, Any]:
    """The result of one seed, with the settings it was run with."""
    import torch

    torch.set_num_threads(1)
    config = override(recipe(name, dataset, protocol=protocol, seed=seed), settings)
    return {**asdict(run(config, device=device)[0]), "settings": settings}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("dataset")
    parser.add_argument("--recipe", default="blend")
    parser.add_argument("--protocol")
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--set", action="append", default=[], dest="settings")
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--workers", type=int, default=1, help="processes, each on one thread")
    parser.add_argument("--out", type=Path, required=True)
    args = parser.parse_args()
    job = partial(
        one,
        name=args.recipe,
        dataset=args.dataset,
        protocol=args.protocol,
        settings=args.settings,
        device=args.device,
    )
    with ProcessPoolExecutor(args.workers, mp_context=multiprocessing.get_context("spawn")) as pool:
        results = list(pool.map(job, range(args.seeds)))
    write_atomically(args.out, "".join(json.dumps(result) + "\n" for result in results).encode())
    test = [result["test_accuracy"] for result in results]
    spread = statistics.mean(result["attention_spread"] for result in results)
    deviation = statistics.stdev(test) if len(test) > 1 else 0.0
    print(f"{args.dataset} {args.recipe} {results[0]['split']['protocol']}: test {statistics.mean(test):.2f} "
          f"+- {deviation:.2f} over {len(test)} seeds, attention spread {spread:.3f}")  # fmt: skip


if __name__ == "__main__":
    main()
