"""Hyperbolic positions: the nodes of a graph in the Poincaré ball."""

import torch
from torch import Tensor

from beltrami.geometry import PoincareBall
from beltrami.graph import Edges
from beltrami.position.base import Encoding, Progress
from beltrami.position.shallow import ShallowEmbedding
from beltrami.position.walk import generator_on


class Hyperbolic(Encoding):
    r"""A :class:`~beltrami.position.shallow.ShallowEmbedding` in the Poincaré ball of curvature -1.

    Hubs come to lie near the origin, what hangs on them further out: room grows exponentially with the radius, as the
    nodes of a tree do with its depth. A few dimensions do where a flat space needs many. Compare positions by
    ``PoincareBall().distance``; as plain coordinates they are a bounded, informative frame too.

    Args:
        channels: dimension of the ball, d'.
        epochs: passes over the edges. The defaults are for citation graphs; a tree to be reconstructed wants more
            epochs, negatives and a larger rate.
        negatives: strangers that each neighbour is told from.
        rate: step size at the start; it falls to zero.
        burn_in: epochs, of all, spent at a tenth of the rate.
        progress: told how many epochs are done.

    Shapes:
        -> (n, channels), within the unit ball. The same generator gives the same positions on a CPU; a GPU adds up
        in any order.
    """

    def __init__(
        self,
        channels: int,
        *,
        epochs: int = 60,
        negatives: int = 10,
        rate: float = 0.03,
        burn_in: int = 5,
        progress: Progress | None = None,
    ) -> None:
        self.channels = channels
        self.epochs = epochs
        self.negatives = negatives
        self.rate = rate
        self.burn_in = burn_in
        self.progress = progress
        self._embedding = ShallowEmbedding(
            PoincareBall(),
            channels,
            epochs=epochs,
            negatives=negatives,
            rate=rate,
            burn_in=burn_in,
            progress=progress,
        )

    def __call__(self, edges: Edges, generator: torch.Generator | None = None) -> Tensor:
        if generator is None:
            raise ValueError(
                "Hyperbolic starts at random: it needs a `generator`, say torch.Generator().manual_seed(0)."
            )
        return self._embedding(edges, generator_on(edges.device, generator))
