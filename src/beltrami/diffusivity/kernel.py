"""The exponential kernel on positions and features."""

from dataclasses import replace

import torch
from torch import Tensor, nn

from beltrami.diffusivity.base import Paired, Projection, Start, edge_distance2, xavier
from beltrami.graph import Edges, Normaliser, PairScore, exponential, squared_distance
from beltrami.joint import Joint


class ExpKernel(Paired):
    r"""Exponential kernel with separate scales and lengths for positions and features, eq. (17).

    .. math:: a(z_i, z_j) = \mathrm{softmax}_j\, (\sigma_u \sigma_x)^2
        e^{-\|W_K u_i - W_Q u_j\|^2 / 2 \ell_u^2} e^{-\|W_K x_i - W_Q x_j\|^2 / 2 \ell_x^2}

    Scores lie between 0 and :math:`(\sigma_u \sigma_x)^2`: near neighbours diffuse more, and how much more is learned.
    The two projections have their own matrices for u and for x, whose widths differ. Scales and lengths are learned
    through their logarithms, which keeps them positive.

    Args:
        joint: which channels of ``z`` are positions; without positions only the second factor remains.
        width: width of the projections of each part, all heads together.
        heads: number of heads; their weights are averaged.
        normalise: what the weights sum to one over.
        start: how the projections begin.
    """

    def __init__(
        self,
        joint: Joint,
        width: int,
        *,
        heads: int = 1,
        normalise: Normaliser | None = None,
        start: Start = xavier,
    ) -> None:
        super().__init__(normalise)
        self.joint = joint
        parts = {"u": joint.pos, "x": joint.feat}
        self.project = nn.ModuleDict(
            {
                name: Projection(channels, width, heads=heads, start=start)
                for name, channels in parts.items()
                if channels
            }
        )
        self.log_sigma = nn.ParameterDict({name: nn.Parameter(torch.zeros(())) for name in self.project})
        self.log_length = nn.ParameterDict({name: nn.Parameter(torch.zeros(())) for name in self.project})

    def score(self, z: Tensor, edges: Edges) -> Tensor:
        coordinates = dict(zip("ux", self.joint.split(z), strict=True))
        exponent = z.new_zeros(())
        for name, project in self.project.items():
            key, query = project(coordinates[name])
            distance2 = edge_distance2(key, query, edges)
            exponent = exponent + 2 * self.log_sigma[name] - distance2 / (2 * torch.exp(2 * self.log_length[name]))
        return torch.exp(exponent)

    def pair(self, z: Tensor) -> PairScore:
        coordinates = dict(zip("ux", self.joint.split(z), strict=True))
        keys, queries = [], []
        for name, project in self.project.items():
            key, query = project(coordinates[name])
            shorter = torch.exp(-self.log_length[name])
            keys.append(shorter * key)
            queries.append(shorter * query)
        scale = 2 * sum(self.log_sigma.values())
        exponent = squared_distance(_side_by_side(keys), _side_by_side(queries), start=scale)
        return replace(exponent, activation=exponential)


def _side_by_side(parts: list[Tensor]) -> Tensor:
    return torch.cat(parts, dim=-1) if len(parts) > 1 else parts[0]  # of one part a cat is a copy
