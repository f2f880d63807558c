"""Mixtures of Gaussians on the positions: the weights of MoNet."""

import torch
from torch import Tensor, nn

from beltrami.diffusivity.base import Diffusivity, edge_distance2
from beltrami.graph import Edges, Normaliser
from beltrami.joint import Joint


class Mixture(Diffusivity):
    r"""A mixture of Gaussians on where the sender lies as its receiver sees it, of the positions alone.

    .. math:: a(u_i, u_j) = \frac{w(u_j - u_i)}{\sum_l w(u_l - u_i)}, \qquad
        w(e) = \sum_k \exp\Big(-\frac12 \sum_c \frac{(e_c - \mu_{kc})^2}{\sigma_{kc}^2}\Big)

    MoNet's weights with the difference of positions as pseudo-coordinates. Unlike those of :class:`Gaussian` they need
    not fall with the distance: each kernel has a centre, and directions may count.

    Args:
        joint: which channels of ``z`` are positions.
        kernels: how many Gaussians.
        normalise: what the weights sum to one over.
    """

    def __init__(self, joint: Joint, *, kernels: int, normalise: Normaliser | None = None) -> None:
        super().__init__(normalise)
        if joint.pos == 0:
            raise ValueError("Mixture needs positions, and `joint` has none: use `RandomWalk`.")
        if kernels < 1:
            raise ValueError(f"Mixture needs one of `kernels` or more; got {kernels}.")
        self.joint = joint
        self.mu = nn.Parameter(nn.init.xavier_uniform_(torch.empty(kernels, joint.pos)))
        self.log_sigma = nn.Parameter(torch.zeros(kernels, joint.pos))

    def score(self, z: Tensor, edges: Edges) -> Tensor:
        u = z[:, None, self.joint.u]  # (n, 1, d')
        shorter = torch.exp(-self.log_sigma)
        exponent = -0.5 * edge_distance2(shorter * (u + self.mu), shorter * u, edges)  # (m, kernels)
        return torch.logsumexp(exponent, dim=-1, keepdim=True)
