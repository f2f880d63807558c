"""Attention by the angle alone."""

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from beltrami.diffusivity.base import Paired
from beltrami.graph import Edges, Normaliser, PairScore, edge_dot


class ScalarCosine(Paired):
    r"""The angle between coordinates, sharpened by one number a head (Thekumparampil et al. 2018).

    .. math:: a(z_i, z_j) = \mathrm{softmax}_j\, \beta \frac{\langle z_i, z_j \rangle}{\|z_i\| \|z_j\|}

    :class:`Cosine` without its projections: symmetric scores and h numbers to learn in all, for graphs with too few
    labels to learn more from. :math:`\beta = 0` are uniform weights.

    Args:
        heads: how many :math:`\beta`; their weights are averaged.
        sharpness: the :math:`\beta` to begin with, those of further heads doubling from one to the next.
        normalise: what the weights sum to one over.
    """

    def __init__(self, *, heads: int = 1, sharpness: float = 1.0, normalise: Normaliser | None = None) -> None:
        super().__init__(normalise)
        if heads < 1:
            raise ValueError(f"Angle needs `heads` at least 1; got {heads}.")
        self.sharpness = nn.Parameter(sharpness * 2.0 ** torch.arange(heads))

    def score(self, z: Tensor, edges: Edges) -> Tensor:
        unit = F.normalize(z, dim=-1)[:, None]
        return self.sharpness * edge_dot(unit, unit, edges)  # (m, h)

    def pair(self, z: Tensor) -> PairScore:
        unit = F.normalize(z, dim=-1)[:, None]
        return PairScore(self.sharpness[:, None] * unit, unit.expand(-1, len(self.sharpness), -1))
