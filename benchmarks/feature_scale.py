"""Show that the units of the features do not matter: accuracies on one random split after seven rescalings.

The models are linear diffusion and the members of the portfolio that are named; a row per graph and rescaling goes to
`results/feature_scale.jsonl`, with the largest difference of a preprocessed feature from that of the raw features.
"""

import argparse
import json
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from beltrami import train
from beltrami.auto.baselines import run_linear
from beltrami.auto.portfolio import MEMBERS
from beltrami.auto.selection import train_member
from beltrami.data import load, make_split
from beltrami.data.labelled_graph import LabelledGraph
from beltrami.errors import SolverError
from beltrami.graph.sparse_matrix import sparse_where_it_pays

Change = Callable[[Tensor], Tensor]


def constant_column(x: Tensor) -> Tensor:
    return torch.cat((x, torch.full((len(x), 1), 1e4)), 1)


def equal_sums(x: Tensor) -> Tensor:
    """Return rows divided by their sums, as PyG's NormalizeFeatures gives them."""
    sums = x.sum(1, keepdim=True)
    return torch.where(sums > 0, x / sums, x)


RESCALINGS: Mapping[str, Change] = {
    "as given": lambda x: x,
    "times 1e-3": lambda x: 1e-3 * x,
    "times 1e-2": lambda x: 1e-2 * x,
    "times 1e2": lambda x: 1e2 * x,
    "times 1e6": lambda x: 1e6 * x,
    "rows of sum one": equal_sums,
    "a column of 10,000": constant_column,
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("graphs", nargs="+")
    parser.add_argument("--member", action="append", default=[], choices=list(MEMBERS))
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--out", type=Path, default=Path("results/feature_scale.jsonl"))
    options = parser.parse_args()
    for name in options.graphs:
        raw: Tensor | None = None
        for rescaling, change in RESCALINGS.items():
            row, x = measure(name, change, options.member, options.device)
            raw = x if raw is None else raw
            row = {"graph": name, "rescaling": rescaling, "difference": float((x - raw).abs().max()), **row}
            with options.out.open("a") as file:
                file.write(json.dumps(row) + "\n")
            print(row, flush=True)


def measure(
    name: str, change: Callable[[Tensor], Tensor], members: list[str], device: str
) -> tuple[dict[str, Any], Tensor]:
    """Return the test accuracies on rescaled features, and the preprocessed features."""
    dataset = load(name).largest_component()
    split = make_split(dataset, protocol="digl", seed=0)
    graph, _ = LabelledGraph.of_dataset(replace(dataset, x=change(dataset.x)))
    task, y = train.Classification(dataset.num_classes), dataset.y
    result, _ = run_linear(sparse_where_it_pays(graph.x), graph.edges, y, [split], task=task)
    row = {"linear": 100 * (result.test or 0.0)}
    for member in members:
        config = MEMBERS[member].config(name, exclusive=True, seed=0)
        found = train_member(config, graph, y, [split], task=task, device=device)
        if not isinstance(found, SolverError):
            outputs = found.ensemble.outputs(graph, device=device).mean(0)
            row[member] = 100 * train.read_test(outputs, y, split)
    return row, graph.x.to_dense()


if __name__ == "__main__":
    main()
