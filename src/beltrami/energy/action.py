"""The Dirichlet energy, and the discrete Polyakov action with the diffusivity of Theorem 1."""

import torch
from torch import Tensor

from beltrami.diffusivity import Variational
from beltrami.energy.psi import Psi
from beltrami.graph import Edges, aggregate, collect, edge_dot, laplacian, spread


def dirichlet(z: Tensor, edges: Edges, *, weight: Tensor | None = None) -> Tensor:
    r"""Return the energy of each channel, :math:`\tfrac12 \sum_{(i, j) \in E} w_{ij} (z_j^\ell - z_i^\ell)^2`.

    Its sum over channels is the Polyakov action of the constant family. On an undirected graph every pair of
    neighbours counts twice, as in the paper. Computed as :math:`\sum_i \deg_i z_i^2 - \langle z, W z \rangle` without a
    tensor of size (m, d); z is centred first, because a large common value would cancel.

    Args:
        z: the state (n, d) -> (d,).
        edges: the graph, directed or not.
        weight: w (m,), in the order of ``edges``, such as a diffusivity; the edges' weights by default, or one.
    """
    w = edges.weight if weight is None else weight
    w = z.new_ones(edges.num_edges) if w is None else w.to(z.dtype)
    z = z - z.mean(0)
    degree = 0.5 * (collect(w[:, None], edges) + collect(w[:, None], edges, senders=True))
    energy: Tensor = torch.sum(z * (degree * z - aggregate(w, z, edges)), dim=0)
    return energy


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
    that are not normalised afterwards, whereas the paper's eq. (7) normalises them. ``PolyakovFlow(mass=degree)`` is
    close to that normalisation and keeps the energy. The paper writes a(z_i, z_j), but a also depends on the neighbours
    of i and j; and although psi >= 0 implies S >= 0, a can be negative.
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
            raise ValueError(
                "PolyakovAction needs an undirected graph, both directions of every edge, and this one is directed; "
                "make it undirected with `Symmetric()` or `beltrami.data.undirected`."
            )
        slope = _weighted(self.psi.slope(p, edges), edges)
        return slope + slope.index_select(0, edges.columns.edge)  # sorted by sender, the edges are their own reverses


def _distance2(z: Tensor, edges: Edges) -> Tensor:
    """Return the squared distance of the ends of each edge, (m,)."""
    norm2 = z.square().sum(-1, keepdim=True)
    both = spread(norm2, edges) + spread(norm2, edges, senders=True)
    return (both[:, 0] - 2 * edge_dot(z, z, edges)).clamp(min=0)


def _weighted(values: Tensor, edges: Edges) -> Tensor:
    return values if edges.weight is None else edges.weight.to(values.dtype) * values
