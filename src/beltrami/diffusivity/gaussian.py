"""The Gaussian of distances in the joint space: the bilateral kernel on a graph."""

import torch
from torch import Tensor, nn

from beltrami.diffusivity.base import Paired, edge_distance2
from beltrami.geometry import Euclidean, Metric
from beltrami.graph import Edges, Normaliser, PairScore, spread, squared_distance
from beltrami.joint import Joint


class Gaussian(Paired):
    r"""Gaussian of the joint distance, the graph's twin of the bilateral kernel, eq. (6).

    .. math:: a(z_i, z_j) = \mathrm{softmax}_j \Big( -\frac{d_C(u_i, u_j)^2}{2 \ell_u^2}
        - \frac{\|x_i - x_j\|^2}{2 \ell_x^2} \Big)

    Two numbers a head to learn and symmetric scores: next to nothing to overfit. The one diffusivity that measures
    positions in their own geometry.

    Args:
        joint: which channels of ``z`` are positions.
        metric: :math:`d_C`; Euclidean by default. For another, u holds a point's logarithm at the origin: any
            values will do, and the flow stays inside the space whatever the scheme.
        heads: number of pairs of lengths; their weights are averaged.
        length: the lengths to begin with, those of the further heads doubling from one to the next.
        normalise: what the weights sum to one over.
    """

    def __init__(
        self,
        joint: Joint,
        *,
        metric: Metric | None = None,
        heads: int = 1,
        length: float = 1.0,
        normalise: Normaliser | None = None,
    ) -> None:
        super().__init__(normalise)
        if heads < 1 or not length > 0:
            raise ValueError(f"Gaussian needs `heads` at least 1 and a positive `length`; got {heads} and {length}.")
        self.joint = joint
        self.metric = Euclidean() if metric is None else metric
        lengths = torch.tensor(float(length)).log() + torch.arange(heads) * torch.log(torch.tensor(2.0))
        self.log_length_u = nn.Parameter(lengths.clone()) if joint.pos else None
        self.log_length_x = nn.Parameter(lengths.clone()) if joint.feat else None

    def score(self, z: Tensor, edges: Edges) -> Tensor:
        u, x = self.joint.split(z)
        score = z.new_zeros(edges.num_edges, 1)
        if self.log_length_u is not None:
            p = self.metric.exp(torch.zeros_like(u), u)
            apart = self.metric.distance(spread(p, edges), spread(p, edges, senders=True))
            score = score - 0.5 * apart[:, None].square() * torch.exp(-2 * self.log_length_u)
        if self.log_length_x is not None:
            apart2 = edge_distance2(x[:, None], x[:, None], edges)  # (m, 1)
            score = score - 0.5 * apart2 * torch.exp(-2 * self.log_length_x)
        return score

    def pair(self, z: Tensor) -> PairScore | None:
        """Of one head in flat space; with more, the distances are the same for all of them and best taken once."""
        lengths = [log for log in (self.log_length_u, self.log_length_x) if log is not None]
        if not isinstance(self.metric, Euclidean) or len(lengths[0]) > 1:
            return None
        widths = [width for width in (self.joint.pos, self.joint.feat) if width]
        scale = torch.cat([torch.exp(-log).expand(width) for log, width in zip(lengths, widths, strict=True)])
        scaled = (scale * z)[:, None]
        return squared_distance(scaled, scaled)
