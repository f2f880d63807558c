"""The additive score of GAT."""

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from beltrami.diffusivity.base import Paired, Start, xavier
from beltrami.graph import Edges, Leaky, Normaliser, PairScore, spread


class Additive(Paired):
    r"""The score of graph attention networks.

    .. math:: a(z_i, z_j) = \mathrm{softmax}_j\, \mathrm{LeakyReLU}(\langle b, W z_i \rangle + \langle c, W z_j \rangle)

    Two numbers a node and head, added on the edges: the cheapest learned score. Where the slope does not change,
    every receiver ranks its senders alike.

    Args:
        channels: width of ``z``.
        width: width of the projection, all heads together.
        heads: number of heads; their weights are averaged.
        slope: of the LeakyReLU below zero.
        normalise: what the weights sum to one over.
        start: how the projection begins.
    """

    def __init__(
        self,
        channels: int,
        width: int,
        *,
        heads: int = 1,
        slope: float = 0.2,
        normalise: Normaliser | None = None,
        start: Start = xavier,
    ) -> None:
        super().__init__(normalise)
        if heads < 1 or width < heads or width % heads:
            raise ValueError(f"the attention width must be a multiple of `heads`; got width={width}, heads={heads}.")
        self.slope = slope
        self.project = nn.Linear(channels, width, bias=False)
        self.receiver = nn.Parameter(torch.empty(heads, width // heads))
        self.sender = nn.Parameter(torch.empty(heads, width // heads))
        for weight in (self.project.weight, self.receiver, self.sender):
            start(weight)

    def score(self, z: Tensor, edges: Edges) -> Tensor:
        received, sent = self._ends(z)
        return F.leaky_relu(spread(received, edges) + spread(sent, edges, senders=True), self.slope)

    def pair(self, z: Tensor) -> PairScore:
        received, sent = self._ends(z)
        one = torch.ones_like(sent)
        return PairScore(torch.stack((received, one), dim=-1), torch.stack((one, sent), dim=-1), Leaky(self.slope))

    def _ends(self, z: Tensor) -> tuple[Tensor, Tensor]:
        projected = self.project(z).unflatten(-1, (self.receiver.shape[0], -1))  # (n, h, k)
        return (projected * self.receiver).sum(-1), (projected * self.sender).sum(-1)
