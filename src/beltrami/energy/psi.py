r"""The families :math:`\tilde\psi` of Theorem 1: how the weight of an edge depends on the distances around it."""

from abc import ABC, abstractmethod

import torch
from torch import Tensor, nn

from beltrami.diffusivity.base import PrintedModule
from beltrami.graph import Edges, collect, spread


class Psi(PrintedModule, ABC):
    r"""Maps :math:`\tilde\psi_{ij}(p_{i1}, \dots, p_{in})` of the squared distances :math:`p_{ik} = \|z_i - z_k\|^2`.

    Theorem 1 requires that they depend only on the distances from i to its neighbours. ``p`` (m,), m edges -> (m,).
    """

    @abstractmethod
    def forward(self, p: Tensor, edges: Edges) -> Tensor:
        r"""Return :math:`\tilde\psi_{ij} \ge 0` on each edge."""

    @abstractmethod
    def slope(self, p: Tensor, edges: Edges) -> Tensor:
        r"""Return the receiver's half of the diffusivity of Theorem 1 on each edge.

        .. math:: s_{ij} = \tilde\psi_{ij}
                  + \frac{1}{w_{ij}} \sum_k w_{ik} \, \partial_j \tilde\psi_{ik} \, \|z_k - z_i\|^2

        where w are the edge weights (one if the graph has none); :math:`w_{ij} s_{ij}` is the derivative of
        :math:`\sum_k w_{ik} \tilde\psi_{ik} p_{ik}` by :math:`p_{ij}`.
        """


class Constant(Psi):
    r""":math:`\tilde\psi_{ij} = 1`: the action is the Dirichlet energy, and its flow the heat equation."""

    def forward(self, p: Tensor, edges: Edges) -> Tensor:
        return torch.ones_like(p)

    def slope(self, p: Tensor, edges: Edges) -> Tensor:
        return torch.ones_like(p)


class WithLength(Psi):
    r"""A family with a learned length :math:`\ell`, initially ``length``: edges much longer than it count little."""

    def __init__(self, length: float = 1.0) -> None:
        super().__init__()
        if not 0 < length < float("inf"):
            raise ValueError(f"{type(self).__name__} needs a positive, finite `length`; got {length}.")
        self.length = length
        self.log_length = nn.Parameter(torch.tensor(float(length)).log())

    def scaled(self, p: Tensor) -> Tensor:
        r"""Return :math:`p / \ell^2`."""
        return p * torch.exp(-2 * self.log_length)


class Gauss(WithLength):
    r"""The Gaussian of the distance, :math:`\tilde\psi_{ij} = \exp(-p_{ij} / 2 \ell^2)`.

    Its slope :math:`(1 - p_{ij} / 2 \ell^2) \exp(-p_{ij} / 2 \ell^2)` is negative beyond :math:`\sqrt2 \ell`: nodes
    further apart repel each other, and contrasts between clusters grow. The only family here that sharpens; in return,
    no step size is known in advance to decrease the energy.
    """

    def forward(self, p: Tensor, edges: Edges) -> Tensor:
        return torch.exp(-0.5 * self.scaled(p))

    def slope(self, p: Tensor, edges: Edges) -> Tensor:
        half = 0.5 * self.scaled(p)
        return (1 - half) * torch.exp(-half)


class PeronaMalik(WithLength):
    r"""The edge-stopping function of Perona and Malik, :math:`\tilde\psi_{ij} = 1 / (1 + p_{ij} / \ell^2)`.

    Its slope is :math:`\tilde\psi_{ij}^2 > 0`: edges with a large jump of the state diffuse little, and none backwards.
    """

    def forward(self, p: Tensor, edges: Edges) -> Tensor:
        return 1 / (1 + self.scaled(p))

    def slope(self, p: Tensor, edges: Edges) -> Tensor:
        return (1 + self.scaled(p)).square().reciprocal()


class Roughness(WithLength):
    r"""The Perona-Malik function of the mean squared distance from a node to its neighbours.

    .. math:: \tilde\psi_{ij} = \frac{1}{1 + q_i / \ell^2}, \qquad q_i = \frac{\sum_k w_{ik} p_{ik}}{\sum_k w_{ik}}

    All edges of a node have the same value: a node in a rough neighbourhood moves little. The slope is again
    :math:`\tilde\psi_{ij}^2`, by the sum over k in the theorem. A self-loop counts in the mean.
    """

    def forward(self, p: Tensor, edges: Edges) -> Tensor:
        return spread(1 / (1 + self._roughness(p, edges)), edges)[:, 0]

    def slope(self, p: Tensor, edges: Edges) -> Tensor:
        return spread((1 + self._roughness(p, edges)).square().reciprocal(), edges)[:, 0]

    def _roughness(self, p: Tensor, edges: Edges) -> Tensor:
        r"""Return :math:`q_i / \ell^2`, (n, 1); 0 for a node without edges."""
        weight = torch.ones_like(p) if edges.weight is None else edges.weight.to(p.dtype)
        totals = collect(weight[:, None], edges)
        sums = collect((weight * self.scaled(p))[:, None], edges)
        return sums / totals.masked_fill(totals == 0, 1)
