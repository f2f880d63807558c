"""Measure changes of the flow and of its training that the library does not have, on validation nodes.

    python benchmarks/ideas.py cora --splits 10
    python benchmarks/ideas.py --write    # the table in docs/search.md

All start from the recipe `uniform`, a linear flow with the weights A, which sum to one over rows, columns or both:

- `learned times`: z(t) of each channel c has a rate of its own, exp(a_c t (A - I)), with learned a_c in (0, 1);
- `mixture`: the mean of three flows with learned rates, exp(a_k t (A - I)), with learned weights;
- `random times`: in training T is multiplied by a random number between 1/2 and 2;
- `mean over times`: the recipe's model, with its class probabilities averaged from half the chosen time to twice it;
- `label inputs`: in each pass of training a random half of the training labels are inputs, and the loss is that of the
  other half; all training labels are inputs in evaluation;
- `curvature`, `against curvature`: edges are weighted by e to the power of plus or minus half their standardised
  augmented Forman curvature, 4 - d_i - d_j + 3 times the number of triangles.

`series` is the recipe with its flow computed as the others are, by the power series of the exponential: a check.
Half of the validation nodes choose epoch and time, and the accuracy is that of the other half. Seeds begin at 1000; no
test label is read. A row per split and idea goes to results/ideas.jsonl.
"""

import argparse
import json
import math
import sys
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch
from marks import filled, markdown
from rows import read_rows
from search import FIRST_SEED, halves
from torch import Tensor, nn
from torch.nn import functional as F

from beltrami.config import load_recipe
from beltrami.config.build import build_training
from beltrami.data import Split, make_split
from beltrami.graph import Edges, SparseMatrix
from beltrami.lab.study.summary import Sample
from beltrami.model import BLEND, Evolution
from beltrami.model.coder import Decoder, Encoder
from beltrami.model.evolution import Trajectory
from beltrami.result import versions
from beltrami.run import Problem, load_problem
from beltrami.stencil.weighting import LARGEST_SCORE
from beltrami.train import accuracy, fit, predict, seeded

ROOT = Path(__file__).parents[1]
RESULTS, PAGE = ROOT / "results" / "ideas.jsonl", ROOT / "docs" / "search.md"
SHARPNESS = 0.5  # as in edge_scores.py
SPREAD = 1.5  # of the first rates of a mixture: sigmoid(-1.5), sigmoid(0), sigmoid(1.5)


class PowerSeries(nn.Module):
    r"""The linear flow with source of each channel, at its own rate, by the power series of the exponential,

    .. math:: z(t) = \sum_k \Big(\frac{(at)^k}{k!} e^{-at} + \frac{\beta}{a} P(k + 1, at)\Big) A^k z(0),

    where P is the regularised incomplete gamma function, and the mean over several rates a if there are any. It stands
    in for an :class:`Evolution`. ``rates`` (flows, channels or 1) are the logits of a; ``random`` times in training.
    """

    def __init__(self, evolution: Evolution, rates: Tensor, *, random: bool = False) -> None:
        super().__init__()
        self.flow, self.time, self.stencil, self.costs = evolution.flow, evolution.time, evolution.stencil, ()
        self.synchronises = True
        self.rates, self.share = nn.Parameter(rates), nn.Parameter(torch.zeros(len(rates)))
        self.random, self.mesh = random, evolution.mesh
        self._matrix: SparseMatrix | None = None

    def evolve(self, z: Tensor, edges: Edges) -> Trajectory:
        factor = 2 ** (2 * torch.rand(()) - 1) if self.random and self.training else torch.ones(())
        return self.trajectory(z, edges, [0.0, float(self.time * factor)])

    def trajectory(self, z: Tensor, edges: Edges, ts: Sequence[float]) -> Trajectory:
        flow: Any = self.flow
        a, beta = torch.sigmoid(self.rates), flow.source.beta
        x = a * torch.tensor(ts).clamp(min=1e-6)[:, None, None]  # (times, flows, channels)
        largest = float(x.detach().max())
        terms = math.ceil(largest + 6 * largest**0.5 + 8)
        k = torch.arange(terms, dtype=z.dtype).view(-1, 1, 1, 1)
        poisson = torch.exp(torch.xlogy(k, x) - x - torch.lgamma(k + 1))
        # P(k + 1, x) is one minus the sum of the Poisson weights up to k.
        coefficients = poisson + beta / a * (1 - poisson.cumsum(0)).clamp(min=0)
        coefficients = (torch.softmax(self.share, 0)[:, None] * coefficients).sum(2)  # (terms, times, channels)
        matrix, power = self.matrix(z, edges), z
        states = coefficients[0][:, None] * z
        for coefficient in coefficients[1:]:
            power = matrix @ power
            states = states + coefficient[:, None] * power
        return Trajectory(states, z.new_zeros(()), (), ())

    def matrix(self, z: Tensor, edges: Edges) -> SparseMatrix:
        """Return A, with a row for each receiving node."""
        if self._matrix is None:
            mesh, n = self.mesh(z, edges), len(z)
            with torch.no_grad():
                a = self.flow.diffusivity(z, mesh)
            self._matrix = SparseMatrix.of(torch.sparse_coo_tensor(torch.stack((mesh.i, mesh.j)), a, (n, n)))
        return self._matrix


class LabelInputs(nn.Module):
    """An encoder that adds an embedding of the training labels, of a random half of them in training."""

    def __init__(self, psi: Encoder, y: Tensor, nodes: Tensor, *, channels: int) -> None:
        super().__init__()
        self.psi, self.linear, self.nodes = psi, psi.linear, nodes
        self.known = F.one_hot(y.clamp(min=0)).float() * nodes[:, None]
        self.embedding = nn.Linear(self.known.shape[1], channels, bias=False)
        nn.init.zeros_(self.embedding.weight)
        self.given = nodes

    def forward(self, x: Any) -> Tensor:
        self.given = self.nodes & (torch.rand(len(self.nodes)) < 0.5) if self.training else self.nodes
        embedded: Tensor = self.embedding(self.known * self.given[:, None])
        features: Tensor = self.psi(x)
        return features + embedded * (2 if self.training else 1)


class LossOfOthers(nn.Module):
    """A decoder whose scores have no gradient at the nodes whose labels were inputs, and twice the gradient at the
    other training nodes, so that consistency has its weight relative to the labels."""

    def __init__(self, xi: Decoder, psi: LabelInputs) -> None:
        super().__init__()
        self.xi, self.linear, self.psi = xi, xi.linear, [psi]

    def forward(self, z: Tensor) -> Tensor:
        logits: Tensor = self.xi(z)
        if not self.training:
            return logits
        nodes, given = self.psi[0].nodes[:, None], self.psi[0].given[:, None]
        value = logits.detach()
        return torch.where(given, value, torch.where(nodes, 2 * logits - value, logits))


def by_curvature(edges: Edges, sharpness: float) -> Edges:
    """Return the edges weighted by e to the power of ``sharpness`` times the standardised curvature."""
    n = edges.num_nodes
    a = torch.sparse_coo_tensor(torch.stack((edges.i, edges.j)), torch.ones(edges.num_edges), (n, n)).coalesce()
    near = a.to_dense().clamp(max=1)
    degree, triangles = near.sum(1), (near[edges.i] * near[edges.j]).sum(1)
    curvature = 4 - degree[edges.i] - degree[edges.j] + 3 * triangles
    score = ((curvature - curvature.mean()) / curvature.std()).clamp(-LARGEST_SCORE, LARGEST_SCORE)
    factor = torch.exp(sharpness * score)
    return Edges.build(edges.edge_index, num_nodes=n, weight=factor / factor.mean())


Change = Callable[[BLEND, Tensor, Split], None]


def series(rates: Callable[[int], Tensor], *, random: bool = False) -> Change:
    """Return the change to flows of these logits of rates, a function of the number of channels."""

    def change(model: BLEND, y: Tensor, split: Split) -> None:
        rate = rates(model.xi.linear.in_features)
        model.add_module("evolution", PowerSeries(model.evolution, rate, random=random))

    return change


def label_inputs(model: BLEND, y: Tensor, split: Split) -> None:
    """Change a model to one with training labels as inputs."""
    channels = model.xi.linear.in_features - (0 if model.phi is None else model.phi.linear.out_features)
    psi = LabelInputs(model.psi, y, split.train, channels=channels)
    model.add_module("psi", psi)
    model.add_module("xi", LossOfOthers(model.xi, psi))


IDEAS: dict[str, Change | None] = {
    "recipe": None,
    "series": series(lambda d: torch.zeros(1, 1)),
    "learned times": series(lambda d: torch.zeros(1, d)),
    "mixture": series(lambda d: torch.tensor([[-SPREAD], [0.0], [SPREAD]])),
    "random times": series(lambda d: torch.zeros(1, 1), random=True),
    "mean over times": None,
    "label inputs": label_inputs,
    "curvature": None,
    "against curvature": None,
}


def measured(problem: Problem, name: str, dataset: str, seed: int) -> float:
    """Return the accuracy of an idea on the validation nodes of a split that chose nothing."""
    config, y = load_recipe("uniform", dataset, protocol="digl", seed=seed), problem.dataset.y
    split, held_out = halves(make_split(problem.dataset, protocol="digl", seed=seed))
    edges = problem.edges
    if name.endswith("curvature"):
        edges = by_curvature(edges, SHARPNESS if name == "curvature" else -SHARPNESS)
    with seeded(config.seed):
        model = replace(problem, edges=edges).model(config)
        assert isinstance(model, BLEND)
        change = IDEAS[name]
        if change is not None:
            change(model, y, split)
        inputs = model.prepare(problem.x, edges, pos=problem.pos)
        found = fit(model, inputs, y, split, build_training(config.train))
    scores = predict(model, inputs, time=found.best.time)
    if name == "mean over times":
        ts = [0.0, *(found.best.time * 2 ** (k / 4) for k in range(-4, 5))]
        with torch.no_grad():
            scores = torch.softmax(model.eval().logits_along(inputs, ts)[1:], 2).mean(0)
    return 100 * accuracy(scores[held_out], y[held_out])


def table(rows: Sequence[dict[str, Any]]) -> str:
    """Return a row an idea and dataset: its accuracy and the paired difference from the recipe, with 95% intervals."""
    found: dict[tuple[str, str], dict[int, float]] = {}
    for row in rows:
        found.setdefault((row["dataset"], row["idea"]), {})[row["seed"]] = row["accuracy"]
    lines = []
    for (dataset, name), values in sorted(found.items(), key=lambda each: (each[0][0], list(IDEAS).index(each[0][1]))):
        base = found[dataset, "recipe"]
        less = Sample.of([values[seed] - base[seed] for seed in values if seed in base])
        cell = "" if name == "recipe" else f"{less.mean:+.2f} ± {less.half or math.nan:.2f}"
        lines.append((dataset, name, f"{Sample.of(list(values.values())).mean:.2f}", cell, str(len(values))))
    return markdown(("dataset", "idea", "accuracy", "less the recipe", "splits"), lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("dataset", nargs="?")
    parser.add_argument("--splits", type=int, default=10)
    parser.add_argument("--ideas", default=",".join(IDEAS), help="separated by commas")
    parser.add_argument("--out", type=Path, default=RESULTS)
    parser.add_argument("--write", action="store_true", help="write the table to docs/search.md")
    args = parser.parse_args()
    rows = read_rows(args.out)
    if args.dataset is None:
        text = table(rows)
        if args.write:
            PAGE.write_text(filled(PAGE.read_text(), {"ideas": text}, page=PAGE.name))
        else:
            sys.stdout.write(f"{text}\n")
        return
    done = {(row["dataset"], row["idea"], row["seed"]) for row in rows}
    problem = load_problem(load_recipe("uniform", args.dataset, protocol="digl"))
    for seed in range(FIRST_SEED, FIRST_SEED + args.splits):
        for name in args.ideas.split(","):
            if (args.dataset, name, seed) not in done:
                right = measured(problem, name, args.dataset, seed)
                row = {"dataset": args.dataset, "idea": name, "seed": seed, "accuracy": right, "versions": versions()}
                with args.out.open("a") as file:
                    file.write(json.dumps(row) + "\n")
                print(args.dataset, seed, name, f"{right:.2f}", flush=True)


if __name__ == "__main__":
    main()
