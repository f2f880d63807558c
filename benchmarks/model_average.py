"""Measure the average of several flows, weighted by validation (`beltrami.predict.ModelAverage`), on random splits.

    python benchmarks/model_average.py coauthor-cs --splits 100 --device cuda
    python benchmarks/model_average.py cora --protocol planetoid --splits 20    # one split, 20 seeds
    python benchmarks/model_average.py computers --held --splits 10 --device cuda    # no test label
    python benchmarks/model_average.py --show

The flows are the recipe `blend-distilled` and others with distillation: on the graph of PageRank, with equal weights of
edges, or with other settings. Each is trained on the training labels of a split, and the validation nodes choose its
epoch and time, as everywhere, and then the weights. A row per split goes to results/model_average.jsonl: accuracies of
the flows, of the one with the best validation accuracy, and of the average. Splits that are there are not measured
again.

With ``--held`` splits have seeds from 1000 on, half of the validation nodes choose, and accuracies are those on the
other half. A row with ``--subsets`` has the accuracies of the averages of all subsets of the flows, those with other
settings (``OTHERS``) included, so that flows can be chosen by such rows. No row of this kind is in the file so far.
"""

import argparse
import json
import statistics
import time
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path
from typing import Any

from rows import device_name, read_rows
from search import FIRST_SEED, fitted, halves
from torch import Tensor

from beltrami.config import RunConfig, load_recipe, override
from beltrami.config.recipe.recipes import DISTILLED, TWO_ROUNDS
from beltrami.data import Split, make_split
from beltrami.errors import SolverError
from beltrami.predict import ModelAverage
from beltrami.result import versions
from beltrami.run import load_problem
from beltrami.train import accuracy, predict, seeded

RESULTS = Path(__file__).parents[1] / "results" / "model_average.jsonl"
SIMILARITY = ("stencil.reweight.kind=similarity", "stencil.reweight.sharpness=0.3", "train.self_training=100")
COSINE = ("diffusivity.kind=scalar-cosine", "diffusivity.heads=2", "diffusivity.over=columns")


@dataclass(frozen=True)
class Flow:
    """A flow of the average: a recipe with settings."""

    name: str
    recipe: str = "blend-distilled"
    settings: tuple[str, ...] = ()

    def config(self, dataset: str, protocol: str, seed: int) -> RunConfig:
        """Return the configuration of its model from a seed, which is that of the split too."""
        return override(load_recipe(self.recipe, dataset, protocol=protocol, seed=seed), self.settings)


BLEND = Flow("blend-distilled")
UNIFORM = Flow("uniform-distilled", "uniform", DISTILLED)
REWIRED = Flow("blend-knn-distilled", "blend-knn", DISTILLED)
TWICE = (*DISTILLED, TWO_ROUNDS)
FLOWS: dict[tuple[str, str], tuple[Flow, ...]] = {
    ("cora", "digl"): (BLEND, UNIFORM, REWIRED),
    ("cora", "planetoid"): (BLEND, UNIFORM, REWIRED),
    ("citeseer", "digl"): (
        *(BLEND, Flow("cosine", settings=COSINE)),
        Flow("more-labels", settings=("train.self_training=200",)),
    ),
    ("citeseer", "planetoid"): (BLEND, UNIFORM, Flow("similarity", settings=SIMILARITY)),
    ("coauthor-cs", "digl"): (BLEND, Flow("blend-knn-distilled", "blend-knn", TWICE)),
    ("computers", "digl"): (
        *(BLEND, Flow("blend-knn-distilled", "blend-knn", TWICE)),
        Flow("uniform-distilled", "uniform", TWICE),
    ),
}
"""By dataset and protocol. No file records how they were chosen."""
OTHERS: dict[tuple[str, str], tuple[Flow, ...]] = {
    ("coauthor-cs", "digl"): (
        Flow("uniform-distilled", "uniform", TWICE),
        Flow("similarity", "uniform", (*TWICE, *SIMILARITY[:2])),
    ),
    ("computers", "digl"): (
        Flow("source", settings=("flow.source=true",)),
        Flow("batch-norm", settings=("model.batch_norm=true", "model.dropout=0.4")),
    ),
    ("photo", "digl"): (
        *(BLEND, Flow("blend-knn-distilled", "blend-knn", TWICE), Flow("uniform-distilled", "uniform", TWICE)),
        *(Flow("cosine", settings=COSINE[:1]), Flow("node-dropout", settings=("model.node_dropout=0.3",))),
    ),
}
"""Further flows that ``--subsets`` compares, by dataset and protocol."""


def trained(configs: Sequence[RunConfig], splits: Sequence[Split], device: str) -> list[Tensor | None]:
    """Return the logits of each run at all nodes, None for one that failed."""
    problem = load_problem(configs[0], device=device)
    models = []
    for config in configs:
        with seeded(config.seed):
            models.append(problem.model(config))
    inputs = models[0].prepare(problem.x, problem.edges, pos=problem.pos)
    fits = fitted(configs, models, inputs, problem.dataset.y, splits, at_once=device != "cpu")
    return [
        None if isinstance(fit, SolverError) else predict(model, inputs, time=fit.best.time)
        for model, fit in zip(models, fits, strict=True)
    ]


def averages(logits: dict[str, Tensor], y: Tensor, val: Tensor, nodes: Tensor) -> dict[str, list[float]]:
    """Return the accuracies of the averages of all subsets of the flows, at ``val``, which chose, and at ``nodes``."""
    found = {}
    for names in (each for size in range(2, len(logits) + 1) for each in combinations(logits, size)):
        average = ModelAverage.fit([logits[name][val] for name in names], y[val])
        p = average.probabilities([logits[name] for name in names])
        found["+".join(names)] = [round(100 * accuracy(p[mask], y[mask]), 4) for mask in (val, nodes)]
    return found


def measured(
    flows: Sequence[Flow], dataset: str, protocol: str, seeds: Sequence[int], device: str, *, held: bool, subsets: bool
) -> list[dict[str, Any]]:
    """Return a row per split."""
    start = time.perf_counter()
    data = load_problem(flows[0].config(dataset, protocol, 0)).dataset
    splits, scored = [], []
    for seed in seeds:
        split = make_split(data, protocol=protocol, seed=seed)
        choosing, other = halves(split) if held else (split, split.test)
        splits.append(choosing.to(device))
        scored.append(other.to(device))
    names, logits = [flow.name for flow in flows], []
    for flow in flows:
        logits.append(trained([flow.config(dataset, protocol, seed) for seed in seeds], splits, device))
        print(f"{dataset}, splits from {seeds[0]}: {flow.name}, {time.perf_counter() - start:.0f} s", flush=True)
    y, rows, seconds = data.y.to(device), [], time.perf_counter() - start
    for k, seed in enumerate(seeds):
        split, nodes = splits[k], scored[k]
        found = {name: each[k] for name, each in zip(names, logits, strict=True)}
        known = {name: each for name, each in found.items() if each is not None}
        average = ModelAverage.fit([each[split.val] for each in known.values()], y[split.val])
        p = average.probabilities(list(known.values()))
        scores = {
            name: [round(100 * accuracy(each[mask], y[mask]), 4) for mask in (split.val, nodes)]
            for name, each in [*known.items(), ("average", p)]
        }
        best = max(known, key=lambda name: scores[name][0])
        rows.append(
            {
                "dataset": dataset,
                "protocol": protocol,
                "split": seed,
                "held": held,
                "hash": split.hash,
                "accuracies": scores,  # on the nodes that chose, and on the test nodes or those held out
                "weights": dict(zip(known, average.weights, strict=True)),
                **({"subsets": averages(known, y, split.val, nodes)} if subsets else {}),
                "best": best,
                "seconds": seconds / len(seeds),
                "device": device_name(device),
                "versions": versions(),
            }
        )
    return rows


def show(rows: Sequence[dict[str, Any]]) -> None:
    """Print the mean accuracy of the recipe, of the best flow by validation and of the average."""
    groups = defaultdict(list)
    for row in rows:
        groups[row["dataset"], row["protocol"], "held" if row["held"] else "test"].append(row)
    for key, group in groups.items():
        blend = [row["accuracies"][BLEND.name][1] for row in group if BLEND.name in row["accuracies"]]
        one = [row["accuracies"][row["best"]][1] for row in group]
        average = [row["accuracies"]["average"][1] for row in group]
        error = 1.96 * statistics.stdev(average) / len(average) ** 0.5 if len(average) > 1 else float("nan")
        means = f"{BLEND.name} {statistics.mean(blend):.2f}, best {statistics.mean(one):.2f}"
        print(*key, f"n = {len(group)}: {means}, average {statistics.mean(average):.2f} ± {error:.2f}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("dataset", nargs="?", choices=sorted({dataset for dataset, _ in FLOWS | OTHERS}))
    parser.add_argument("--protocol", default="digl")
    parser.add_argument("--splits", type=int, default=100)
    parser.add_argument("--together", type=int, default=10, help="splits trained as one program")
    parser.add_argument("--part", default="1/1", help="such as 2/3: every third batch of splits, from the second on")
    parser.add_argument("--seconds", type=float, default=float("inf"), help="start no batch that cannot end by then")
    parser.add_argument("--held", action="store_true", help="score by validation nodes that chose nothing")
    parser.add_argument("--subsets", action="store_true", help="with --held, average every subset of more flows")
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--out", type=Path, default=RESULTS)
    parser.add_argument("--show", action="store_true", help="print the means of the measured rows")
    args = parser.parse_args()
    rows = read_rows(args.out)
    if args.show or args.dataset is None:
        show(rows)
        return
    if args.subsets and not args.held:
        parser.error("--subsets chooses flows, so it needs --held")
    key = (args.dataset, args.protocol, args.held)
    flows = FLOWS.get(key[:2], ()) + (OTHERS.get(key[:2], ()) if args.subsets else ())
    if not flows:
        parser.error(f"no average is defined on {args.dataset} with the protocol {args.protocol}")
    of_key = [row for row in rows if (row["dataset"], row["protocol"], row["held"]) == key]
    done = {row["split"] for row in of_key if "subsets" in row or not args.subsets}
    first = FIRST_SEED if args.held else 0
    left = [seed for seed in range(first, first + args.splits) if seed not in done]
    batches = [left[k : k + args.together] for k in range(0, len(left), args.together)]
    part, parts = map(int, args.part.split("/"))
    begin, longest = time.perf_counter(), 0.0
    for seeds in batches[part - 1 :: parts]:
        start = time.perf_counter()
        if start - begin + longest > args.seconds:
            break
        found = measured(flows, args.dataset, args.protocol, seeds, args.device, held=args.held, subsets=args.subsets)
        longest = max(longest, time.perf_counter() - start)
        with args.out.open("a") as file:
            file.write("".join(json.dumps(row) + "\n" for row in found))
        show(found)


if __name__ == "__main__":
    main()
