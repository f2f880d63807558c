r"""The Dirichlet energy, and the discrete Polyakov action with its families :math:`\tilde\psi` and its diffusivity."""

from abc import ABC, abstractmethod

import torch
from torch import Tensor, nn

from beltrami.arguments import checked
from beltrami.diffusivity import Variational
from beltrami.diffusivity.base import PrintedModule
from beltrami.errors import check_state
from beltrami.graph import Edges, aggregate, collect, edge_dot, laplacian, spread


@checked
def dirichlet(z: Tensor, edges: Edges, *, weight: Tensor | None = None) -> Tensor:
    r"""Return the energy of each channel, :math:`\tfrac12 \sum_{(i, j) \in E} w_{ij} (z_j^\ell - z_i^\ell)^2`.

    Its sum over channels is the Polyakov action of the constant family. On an undirected graph every pair of
    neighbours counts twice, as in the paper. Computed as :math:`\sum_i \deg_i z_i^2 - \langle z, W z \rangle` without a
    tensor of size (m, d); z is centred first, because a large common value would cancel. ``weight`` is w (m,), by
    default the edges' weights, or one. ``z`` (n, d) -> (d,).
    """
    check_state(z, num_nodes=edges.num_nodes)
    w = edges.weight if weight is None else weight
    w = z.new_ones(edges.num_edges) if w is None else w.to(z.dtype)
    z = z - z.mean(0)
    degree = 0.5 * (collect(w[:, None], edges) + collect(w[:, None], edges, senders=True))
    energy: Tensor = torch.sum(z * (degree * z - aggregate(w, z, edges)), dim=0)
    return energy


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

    slope = forward


@checked
class WithLength(Psi):
    r"""A family with a learned length :math:`\ell`, initially ``length``: edges much longer than it count little."""

    def __init__(self, length: float = 1.0) -> None:
        super().__init__()
        if not 0 < length < float("inf"):
            raise ValueError(f"{type(self).__name__} needs a positive, finite `length`; got {length}.")
        self.length = length
        self.log_length = nn.Parameter(torch.tensor(float(length)).log())

    @torch.no_grad()
    def reset_parameters(self) -> None:
        self.log_length.copy_(torch.tensor(float(self.length)).log())

    def scaled(self, p: Tensor) -> Tensor:
        r"""Return :math:`p / \ell^2`."""
        return p * torch.exp(-2 * self.log_length)


class Gauss(WithLength):
    r"""The Gaussian of the distance, :math:`\tilde\psi_{ij} = \exp(-p_{ij} / 2 \ell^2)`.

    Its slope :math:`(1 - p_{ij} / 2 \ell^2) \exp(-p_{ij} / 2 \ell^2)` is negative beyond :math:`\sqrt2 \ell`: nodes
    further apart repel each other. The only family here that sharpens contrasts; in return, no step size is known in
    advance to decrease the energy.
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


@checked
class PolyakovAction(Variational):
    r"""The discrete Polyakov action, and its gradient by Theorem 1.

    .. math:: S[Z, \psi] = \frac12 \sum_{(i, j) \in E} w_{ij} \tilde\psi_{ij}(Z) \|z_j - z_i\|^2, \qquad
              - \frac{\partial S}{\partial z_i} = \sum_j a_{ij} (z_j - z_i)

    .. math:: a_{ij} = (\tilde\psi_{ij} + \tilde\psi_{ji})
              + \sum_{k} \partial_j \tilde\psi_{ik} \|z_k - z_i\|^2
              + \sum_{k} \partial_i \tilde\psi_{jk} \|z_k - z_j\|^2

    on an unweighted graph. The factor 1/2 cancels the 2 from differentiating the square; but the sum contains every
    edge twice, once from each end, so a constant :math:`\tilde\psi = 1` gives a = 2 and the flow of twice the graph
    Laplacian. On a weighted graph each term is multiplied by the weight of its own direction.

    The theorem needs edges in both directions, else a is not symmetric and the flow is not a gradient flow; and weights
    that are not normalised afterwards, unlike those of eq. (7). ``PolyakovFlow(mass=degree)`` is close to that and
    keeps the energy. The paper writes a(z_i, z_j), but a also depends on the neighbours of i and j, and may be below 0.
    """

    def __init__(self, psi: Psi) -> None:
        super().__init__()
        self.psi = psi

    def energy(self, z: Tensor, edges: Edges) -> Tensor:
        p = _distance2(z, edges)
        return 0.5 * _weighted(self.psi(p, edges) * p, edges).sum()

    def forward(self, z: Tensor, edges: Edges) -> Tensor:
        return self._diffusivity(_distance2(z, edges), edges)

    def uniform(self, z: Tensor, edges: Edges) -> Tensor:
        return self._diffusivity(z.new_zeros(edges.num_edges), edges)

    def gradient(self, z: Tensor, edges: Edges) -> Tensor:
        """Return dS/dz in closed form, (n, d) -> (n, d)."""
        return -laplacian(z, self(z, edges), edges)

    def _diffusivity(self, p: Tensor, edges: Edges) -> Tensor:
        if not edges.structurally_symmetric:
            what = "PolyakovAction needs an undirected graph, both directions of every edge, and this one is directed"
            raise ValueError(f"{what}; make it undirected with `Symmetric()` or `beltrami.data.undirected`.")
        slope = _weighted(self.psi.slope(p, edges), edges)
        return slope + slope.index_select(0, edges.columns.edge)  # sorted by sender, the edges are their own reverses


def _distance2(z: Tensor, edges: Edges) -> Tensor:
    norm2 = z.square().sum(-1, keepdim=True)
    both = spread(norm2, edges) + spread(norm2, edges, senders=True)
    return (both[:, 0] - 2 * edge_dot(z, z, edges)).clamp(min=0)


def _weighted(values: Tensor, edges: Edges) -> Tensor:
    return values if edges.weight is None else edges.weight.to(values.dtype) * values
