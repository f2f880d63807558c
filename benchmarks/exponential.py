"""Seconds an epoch by the recipe's own scheme and by the exponential, turn and turn about in one process.

    OMP_NUM_THREADS=1 python benchmarks/exponential.py cora --epochs 20 --rounds 5

An epoch is a step of the optimiser and a look at validation, along the whole horizon wherever the recipe says so.
"""

import argparse
import statistics
import time

import torch

from beltrami.experiment import override, recipe, run
from beltrami.experiment.run import pose

EXPONENTIAL = ("scheme.solver=exponential", "scheme.dt=null", "scheme.adjoint=direct")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("dataset")
    parser.add_argument("--recipe", default="blend")
    parser.add_argument("--epochs", type=int, default=20)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--tolerances", type=float, nargs="+", default=[1e-3, 1e-4, 1e-6])
    parser.add_argument("--device", default="cpu")
    args = parser.parse_args()
    own = override(recipe(args.recipe, args.dataset), [f"train.epochs={args.epochs}"])
    rivals = {f"{own.scheme.solver} dt={own.scheme.dt}": own}
    for tolerance in args.tolerances:
        settings = (*EXPONENTIAL, f"scheme.rtol={tolerance}", f"scheme.atol={tolerance}")
        rivals[f"exponential {tolerance:g}"] = override(own, settings)
    problem = pose(own, device=args.device)
    wall: dict[str, list[float]] = {name: [] for name in rivals}
    busy: dict[str, list[float]] = {name: [] for name in rivals}
    last = {}
    for _ in range(args.rounds):
        for name, config in rivals.items():
            began = time.process_time()
            last[name], _ = run(config, problem=problem, device=args.device)
            busy[name].append((time.process_time() - began) / args.epochs)
            wall[name].append(last[name].train_seconds / args.epochs)
    print(f"{args.dataset}, {torch.get_num_threads()} threads, medians of {args.rounds} rounds of {args.epochs} epochs")
    for name in rivals:
        products = {way: count / args.epochs for way, count in last[name].evaluations.items()}
        seconds = f"{statistics.median(wall[name]):.4f} s an epoch, {statistics.median(busy[name]):.4f} s busy"
        print(f"{name:>20}: {seconds}; a step takes {products}; validation {last[name].val_accuracy:.2f}")


if __name__ == "__main__":
    main()
