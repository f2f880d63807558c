"""Linear diffusion: a linear model of features diffused by the random walk, without any other layer."""

from collections.abc import Sequence

import torch
from torch import Tensor

from beltrami.arguments import Count, Share, checked
from beltrami.diffusivity import RandomWalk
from beltrami.flow import LinearFlow
from beltrami.graph import Normaliser
from beltrami.model.classifier import Classifier, Output
from beltrami.model.coder import Encoder
from beltrami.model.evolution import Evolution
from beltrami.model.inputs import Inputs
from beltrami.scheme import Exponential, TimeStepping
from beltrami.stencil import Loops

ACCURATE = Exponential(rtol=1e-5, atol=1e-7)
"""The default scheme: the error of an output is at most 1e-7 plus 1e-5 times the largest output at t = 0."""


MOST_COLUMNS = 64  # of a block: wider products are no faster
BLOCK_BYTES = 2**30  # for the vectors of the solve of a block
VECTORS = 40  # of a solve to t = 32, about; each has the size of its block


@checked
class LinearDiffusion(Classifier):
    r"""A linear model of diffused features.

    .. math:: y(t) = e^{t (P - I)} X W + b

    P is the matrix of the random walk on the weighted graph with a self-loop of weight 1 on every node, so that an
    isolated node keeps its features. At t = 0 this is logistic regression on the features, or linear regression.

    Constants are fixed by the flow, so :math:`y(t) = e^{t (P - I)} (X W + b)`: the outputs are diffused instead of the
    features, which may be sparse and are usually wider.

    Args:
        features: columns of X.
        num_classes: outputs, columns of W.
        time: terminal time T; 0 for no diffusion.
        input_dropout: share of the entries of X dropped in training.
        scheme: the time stepping.

    Shapes: as for :class:`Classifier`.
    """

    positions = 0

    def __init__(
        self,
        features: Count,
        num_classes: Count,
        *,
        time: float,
        input_dropout: Share = 0.0,
        scheme: TimeStepping = ACCURATE,
    ) -> None:
        super().__init__()
        if not 0 <= time < float("inf"):
            raise ValueError(f"LinearDiffusion needs a finite terminal `time` of at least 0; got {time}.")
        self.features, self.num_classes, self.time = features, num_classes, time
        self.encoder = Encoder(features, num_classes, dropout=input_dropout)
        # An evolution has a positive time; at T = 0 it is used only where later times are asked for.
        self.evolution = random_walk_evolution(time=time or 1.0, scheme=scheme)

    @property
    def synchronises(self) -> bool:
        return self.evolution.scheme.synchronises

    def run(self, inputs: Inputs) -> Output:
        z = self.encoder(inputs.x)
        if self.time == 0:
            return Output(z, z.new_zeros(()))
        evolved = self.evolution.evolve(z, inputs.edges)
        return Output(evolved.z, evolved.cost, evolved.solves)

    def logits_along(self, inputs: Inputs, ts: Sequence[float], *, nodes: Tensor | None = None) -> Tensor:
        z: Tensor = self.encoder(inputs.x)
        if ts[-1] == ts[0]:  # nothing to solve
            z = z if nodes is None else z[nodes]
            return z.expand(len(ts), *z.shape)
        blocks = [
            self.evolution.trajectory(block, inputs.edges, ts).ys
            for block in z.split(columns_per_block(z.shape[0], times=len(ts), dtype=z.dtype), dim=1)
        ]
        ys = blocks[0] if len(blocks) == 1 else torch.cat(blocks, dim=-1)
        return ys if nodes is None else ys[:, nodes]


def random_walk_evolution(
    *, time: float, scheme: TimeStepping = ACCURATE, normalise: Normaliser | None = None
) -> Evolution:
    r"""Return the evolution :math:`z(T) = e^{T (P - I)} z(0)`.

    P is that of :class:`LinearDiffusion`. With ``Columns()`` as ``normalise``, on the graph with all edges reversed, it
    is the transpose of P.
    """
    return Evolution(LinearFlow(RandomWalk(normalise)), scheme=scheme, time=time, stencil=Loops())


def columns_per_block(num_nodes: int, *, times: int, dtype: torch.dtype) -> int:
    """Return how many columns to solve for together, so that memory stays bounded on graphs of millions of nodes."""
    return max(1, min(MOST_COLUMNS, BLOCK_BYTES // (dtype.itemsize * num_nodes * (VECTORS + times))))
