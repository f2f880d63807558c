r"""Psi: the families :math:`\tilde\psi` of Theorem 1, which say how an edge counts by the distances around it."""

from abc import ABC, abstractmethod

import torch
from torch import Tensor, nn

from beltrami.graph import Edges, collect, spread


class Psi(nn.Module, ABC):
    r"""Maps :math:`\tilde\psi_{ij}(p_{i1}, \dots, p_{in})` of the squared distances :math:`p_{ik} = \|z_i - z_k\|^2`.

    Theorem 1 asks that they depend on the distances from i to its neighbours alone. What a family is on the edges, and
    what its action has as derivative by each squared distance, is all that a flow needs of it.

    Shapes:
        ``p`` (m,), ``edges`` over m edges -> (m,).
    """

    @abstractmethod
    def forward(self, p: Tensor, edges: Edges) -> Tensor:
        r""":math:`\tilde\psi_{ij}` on each edge, at least zero."""

    @abstractmethod
    def slope(self, p: Tensor, edges: Edges) -> Tensor:
        r"""What Theorem 1 makes of an edge from the side of its receiver.

        .. math:: s_{ij} = \tilde\psi_{ij}
                  + \frac{1}{w_{ij}} \sum_k w_{ik} \, \partial_j \tilde\psi_{ik} \, \|z_k - z_i\|^2

        With the edges' weights w, one where they have none; so that :math:`w_{ij} s_{ij}` is the derivative of
        :math:`\sum_k w_{ik} \tilde\psi_{ik} p_{ik}` by :math:`p_{ij}`.
        """


class Constant(Psi):
    r"""One on every edge: the action is the Dirichlet energy, and its flow the heat equation."""

    def forward(self, p: Tensor, edges: Edges) -> Tensor:
        return torch.ones_like(p)

    def slope(self, p: Tensor, edges: Edges) -> Tensor:
        return torch.ones_like(p)


class Scaled(Psi):
    """A family with a length to learn: what is much further apart hardly counts.

    Args:
        length: the length to begin with.
    """

    def __init__(self, length: float = 1.0) -> None:
        super().__init__()
        if not 0 < length < float("inf"):
            raise ValueError(f"{type(self).__name__} needs a positive, finite `length`; got {length}.")
        self.log_length = nn.Parameter(torch.tensor(float(length)).log())

    def in_lengths(self, p: Tensor) -> Tensor:
        r"""Squared distances in squares of the length, :math:`p / \ell^2`."""
        return p * torch.exp(-2 * self.log_length)


class Gauss(Scaled):
    r"""The Gaussian of the distance, :math:`\tilde\psi_{ij} = \exp(-p_{ij} / 2 \ell^2)`.

    Its slope :math:`(1 - p_{ij} / 2 \ell^2) \exp(-p_{ij} / 2 \ell^2)` turns negative at :math:`\sqrt2 \ell`: nodes
    further apart than that drive each other away, and contrasts between clusters grow. The one family here that
    sharpens; the price is that no step length is safe beforehand.
    """

    def forward(self, p: Tensor, edges: Edges) -> Tensor:
        return torch.exp(-0.5 * self.in_lengths(p))

    def slope(self, p: Tensor, edges: Edges) -> Tensor:
        half = 0.5 * self.in_lengths(p)
        return (1 - half) * torch.exp(-half)


class PeronaMalik(Scaled):
    r"""The edge-stopping function of Perona and Malik, :math:`\tilde\psi_{ij} = 1 / (1 + p_{ij} / \ell^2)`.

    Its slope is the square of it: edges across which the state jumps diffuse little, and none diffuses backwards.
    """

    def forward(self, p: Tensor, edges: Edges) -> Tensor:
        return 1 / (1 + self.in_lengths(p))

    def slope(self, p: Tensor, edges: Edges) -> Tensor:
        return (1 + self.in_lengths(p)).square().reciprocal()


class Roughness(Scaled):
    r"""The same of how rough the state is around a node, the mean squared distance to all its neighbours.

    .. math:: \tilde\psi_{ij} = \frac{1}{1 + q_i / \ell^2}, \qquad q_i = \frac{\sum_k w_{ik} p_{ik}}{\sum_k w_{ik}}

    One value for all edges of a node: a node in a rough neighbourhood is moved little by any of them. The slope is
    the square again, by all the derivatives that the theorem sums up. A self-loop takes part in the mean.
    """

    def forward(self, p: Tensor, edges: Edges) -> Tensor:
        return spread(1 / (1 + self._roughness(p, edges)), edges)[:, 0]

    def slope(self, p: Tensor, edges: Edges) -> Tensor:
        return spread((1 + self._roughness(p, edges)).square().reciprocal(), edges)[:, 0]

    def _roughness(self, p: Tensor, edges: Edges) -> Tensor:
        """q in squares of the length, (n, 1)."""
        weight = torch.ones_like(p) if edges.weight is None else edges.weight.to(p.dtype)
        totals = collect(weight[:, None], edges)
        around = collect((weight * self.in_lengths(p))[:, None], edges)
        return around / totals.masked_fill(totals == 0, 1)  # a node without edges has no distance to any
