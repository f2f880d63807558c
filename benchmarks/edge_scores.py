"""Measure scores of edges that use no labels, or those of training nodes only.

    python benchmarks/edge_scores.py citeseer --splits 16

There are three scores: the similarity of the features of both ends; the same in a projection that was learned to tell
linked nodes from others; and the agreement of the predictions of a first model with uniform weights. For each score the
script measures, on validation nodes that were used for no choice, the area under the ROC curve that separates edges
within a class from edges between classes, and the accuracy of a model whose edges are weighted by e to the power of the
score (``FeatureSimilarity``). The accuracy with uniform weights is measured beside them.
Results go to results/edge_scores/DATASET.json. Seeds begin at 1000; no test label is read.
"""

import argparse
import json
import statistics
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch
from search import FIRST_SEED, halves
from sklearn.metrics import roc_auc_score
from torch import Tensor
from torch.nn import functional as F

from beltrami.config import RunConfig, load_recipe, override
from beltrami.config.build import build_training
from beltrami.data import Split, make_split
from beltrami.graph import Edges
from beltrami.result import versions
from beltrami.run import Problem, load_problem
from beltrami.stencil import FeatureSimilarity, tf_idf
from beltrami.stencil.weighting import edge_cosine
from beltrami.train import accuracy, fit, predict, seeded, write_atomically

RESULTS = Path(__file__).parents[1] / "results" / "edge_scores"
SHARPNESS = 0.5
CHANNELS, EPOCHS, DROPPED = 64, 60, 0.8


def by_links(x: Tensor, edges: Edges) -> Tensor:
    """Return a learned projection (n, 64) of features (n, d) where linked nodes are similar, random pairs are not."""
    with seeded(0), torch.enable_grad():
        project = torch.nn.Linear(x.shape[1], CHANNELS, bias=False)
        scale, shift = torch.nn.Parameter(torch.zeros(())), torch.nn.Parameter(torch.zeros(()))
        optimiser = torch.optim.Adam([project.weight, scale, shift], lr=0.005)
        for _ in range(EPOCHS):
            h = F.normalize(project(F.dropout(x, DROPPED)), dim=1)
            others = torch.randint(len(x), (2, edges.num_edges))
            linked, apart = (h[edges.i] * h[edges.j]).sum(1), (h[others[0]] * h[others[1]]).sum(1)
            loss = F.softplus(-(scale.exp() * linked + shift)).mean() + F.softplus(scale.exp() * apart + shift).mean()
            optimiser.zero_grad()
            loss.backward()
            optimiser.step()
        return F.normalize(project(x), dim=1).detach()


def trained(config: RunConfig, problem: Problem, split: Split) -> Tensor:
    """Train a model and return its class scores, (n, classes)."""
    with seeded(config.seed):
        model = problem.model(config)
        inputs = model.prepare(problem.x, problem.edges, pos=problem.pos)
        found = fit(model, inputs, problem.dataset.y, split, build_training(config.train))
    return predict(model, inputs, time=found.best.time)


def measured(dataset: str, splits: int) -> dict[str, Any]:
    """Return the accuracies and areas of every score, one number per split."""
    problem = load_problem(load_recipe("uniform", dataset, protocol="digl"))
    edges, y = problem.edges, problem.dataset.y
    points = {"features": tf_idf(problem.dataset.x), "links": by_links(tf_idf(problem.dataset.x), edges)}
    right: dict[str, list[float]] = {name: [] for name in ("uniform", *points, "predictions")}
    area: dict[str, list[float]] = {name: [] for name in (*points, "predictions")}
    for seed in range(FIRST_SEED, FIRST_SEED + splits):
        config = override(load_recipe("uniform", dataset, protocol="digl", seed=seed), ["train.self_training=0"])
        split, held_out = halves(make_split(problem.dataset, protocol="digl", seed=seed))
        logits = trained(config, problem, split)
        right["uniform"].append(100 * accuracy(logits[held_out], y[held_out]))
        among = held_out[edges.i] & held_out[edges.j] & (edges.i < edges.j)
        within = (y[edges.i] == y[edges.j])[among]
        for name, z in {**points, "predictions": torch.softmax(logits, 1)}.items():
            area[name].append(float(roc_auc_score(within, edge_cosine(z, edges)[among])))
            reweighted = replace(problem, edges=FeatureSimilarity(SHARPNESS)(z, edges))
            right[name].append(100 * accuracy(trained(config, reweighted, split)[held_out], y[held_out]))
        print(dataset, seed, *(f"{name} {statistics.mean(values):.2f}" for name, values in right.items()), flush=True)
    return {"dataset": dataset, "splits": splits, "accuracy": right, "area": area, "device": "cpu"}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("dataset")
    parser.add_argument("--splits", type=int, default=16)
    args = parser.parse_args()
    found = {**measured(args.dataset, args.splits), "sharpness": SHARPNESS, "versions": versions()}
    write_atomically(RESULTS / f"{args.dataset}.json", f"{json.dumps(found)}\n".encode())


if __name__ == "__main__":
    main()
