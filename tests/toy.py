"""A toy problem, two cliques with features that differ, and small models and configurations for it."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from typing import Literal

import torch
from torch import Tensor

from beltrami.config import RunConfig
from beltrami.config.spec import AdjointSpec, ConstantSpec, GridSpec, TrainSpec
from beltrami.config.spec_model import BlendSpec, ScaledDotSpec
from beltrami.data import Dataset, Split, undirected
from beltrami.diffusivity import Diffusivity, ScaledDot, Start, xavier
from beltrami.flow import BeltramiFlow, Cost, LinearFlow, Rate, Source
from beltrami.graph import Edges
from beltrami.model import BLEND, Decoder, Encoder, Evolution
from beltrami.run import Problem
from beltrami.scheme import RK4, Adjoint, ConstantSteps, Scheme, TimeStepping
from beltrami.stencil import Keep, Loops
from beltrami.train import seeded

FEATURES, POSITIONS, CLASSES = 6, 3, 2
RK4_STEPS = Scheme(RK4(), ConstantSteps(0.5))


@dataclass(frozen=True)
class Toy:
    """``x`` (n, 6), ``edge_index`` (2, m), ``pos`` (n, 3), ``y`` (n,) and a split with two labels a class."""

    x: Tensor
    edge_index: Tensor
    pos: Tensor
    y: Tensor
    split: Split


def two_cliques(size: int = 10, *, seed: int = 0) -> Toy:
    """Two cliques of ``size`` nodes joined by one edge; the first feature depends on the clique."""
    n = 2 * size
    generator = torch.Generator().manual_seed(seed)
    y = torch.arange(n) // size
    x = torch.randn(n, FEATURES, generator=generator)
    x[:, 0] += 3.0 * (2 * y - 1)
    within = [(a, b) for a, b in combinations(range(n), 2) if (a < size) == (b < size)]
    edge_index = undirected(torch.tensor([*within, (0, size)]).t(), num_nodes=n)
    rank = torch.arange(n) % size
    split = Split(rank < 2, (rank >= 2) & (rank < 5), rank >= 5, "toy", 0)
    return Toy(x, edge_index, torch.randn(n, POSITIONS, generator=generator), y, split)


def scaled_dot(*, positions: bool = False, start: Start = xavier) -> Diffusivity:
    """The diffusivity of the models below, from seed 0."""
    with seeded(0):
        return ScaledDot(8 + 4 * positions, 8, heads=2, start=start)


def small_blend(
    *,
    diffusivity: Diffusivity | None = None,
    frozen: bool = True,
    scheme: TimeStepping = RK4_STEPS,
    time: float = 2.0,
    positions: bool = False,
    batch_norm: bool = False,
    dropout: float = 0.0,
    loops: bool = False,
    costs: Sequence[Cost] = (),
) -> BLEND:
    """A BLEND for the toy with eight feature channels and, with ``positions``, four positional ones; from seed 0."""
    with seeded(0):
        a = scaled_dot(positions=positions) if diffusivity is None else diffusivity
        flow = (LinearFlow if frozen else BeltramiFlow)(a, rate=Rate(), source=Source(0.1))
        return BLEND.from_parts(
            Encoder(FEATURES, 8, dropout=dropout),
            Evolution(flow, scheme=scheme, time=time, stencil=Loops() if loops else Keep(), costs=costs),
            Decoder(8 + 4 * positions, CLASSES, dropout=dropout),
            phi=Encoder(POSITIONS, 4, dropout=dropout) if positions else None,
            batch_norm=batch_norm,
        )


def with_adjoint(adjoint: Adjoint) -> Scheme:
    return replace(RK4_STEPS, adjoint=adjoint)


def small_config(adjoint: Literal["direct", "checkpointed", "continuous"] = "direct") -> RunConfig:
    """A configuration for the toy: two epochs of a small model."""
    return RunConfig(
        dataset="toy",
        recipe="blend",
        model=BlendSpec(feat=8),
        diffusivity=ScaledDotSpec(width=8, heads=2),
        scheme=ConstantSpec(solver="rk4", time=2.0, dt=1.0, adjoint=AdjointSpec(kind=adjoint)),
        train=TrainSpec(epochs=2, time_grid=GridSpec(resolution=2)),
    )


def toy_problem(*, positions: bool = False) -> Problem:
    """The toy as ``load_problem`` would return it."""
    toy = two_cliques()
    dataset = Dataset("toy", toy.x, toy.edge_index, toy.y)
    edges = Edges.build(toy.edge_index, num_nodes=dataset.num_nodes)
    return Problem(small_config(), dataset, toy.split, toy.x, edges, toy.pos if positions else None)
