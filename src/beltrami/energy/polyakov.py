"""The discrete Polyakov action, and the diffusivity that its gradient is."""

from torch import Tensor

from beltrami.diffusivity import Variational
from beltrami.energy.psi import Psi
from beltrami.graph import Edges, edge_dot, laplacian, spread


class PolyakovAction(Variational):
    r"""The discrete Polyakov action, and its gradient by Theorem 1.

    .. math:: S[Z, \psi] = \frac12 \sum_{(i, j) \in E} w_{ij} \tilde\psi_{ij}(Z) \|z_j - z_i\|^2, \qquad
              - \frac{\partial S}{\partial z_i} = \sum_j a_{ij} (z_j - z_i)

    .. math:: a_{ij} = (\tilde\psi_{ij} + \tilde\psi_{ji})
              + \sum_{k} \partial_j \tilde\psi_{ik} \|z_k - z_i\|^2
              + \sum_{k} \partial_i \tilde\psi_{jk} \|z_k - z_j\|^2

    on an unweighted graph. The half in front takes the two that a square leaves when it is differentiated; but every
    edge stands in the sum twice, once from each end, and so a constant :math:`\tilde\psi = 1` gives a = 2, and the flow
    is that of twice the graph Laplacian. With weights, each of the two ends brings its own.

    What the statement needs: edges in both directions, or a would not be symmetric and the flow no gradient; and
    weights that are not normalised afterwards, where the paper's eq. (7) has them sum to one. A flow in which nodes
    weigh differently (``PolyakovFlow(mass=degree)``) comes near that and keeps the energy. Where the paper writes
    a(z_i, z_j), a depends on the neighbours of i and j as well; and that psi is at least zero makes S so, but not a.

    Args:
        psi: the family.

    Shapes:
        ``z`` (n, d), ``edges`` over m edges -> a (m,); ``energy`` ().
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
        """dS/dz in closed form, (n, d) -> (n, d)."""
        return -laplacian(z, self(z, edges), edges)

    def _diffusivity(self, p: Tensor, edges: Edges) -> Tensor:
        if not edges.mutual:
            raise ValueError(
                "PolyakovAction needs an undirected graph, both directions of every edge, and this one is directed; "
                "make it undirected with `Symmetric()` or `beltrami.data.undirected`."
            )
        here = _weighted(self.psi.slope(p, edges), edges)
        return here + here.index_select(0, edges.columns.edge)  # sorted by sender, the edges are their own reverses


def _distance2(z: Tensor, edges: Edges) -> Tensor:
    """The squared distance along each edge, (m,)."""
    size = z.square().sum(-1, keepdim=True)
    sizes = spread(size, edges) + spread(size, edges, senders=True)
    return (sizes[:, 0] - 2 * edge_dot(z, z, edges)).clamp(min=0)


def _weighted(e: Tensor, edges: Edges) -> Tensor:
    return e if edges.weight is None else edges.weight.to(e.dtype) * e
