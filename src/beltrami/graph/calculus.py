"""Calculus on a graph: gradient, divergence, Laplacian."""

from torch import Tensor

from beltrami.graph.edges import Edges
from beltrami.graph.ops.products import aggregate, collect, spread


def gradient(z: Tensor, edges: Edges) -> Tensor:
    r"""Differences along the edges, :math:`(\nabla z)_{ij} = z_j - z_i`; (n, d) -> (m, d)."""
    return spread(z, edges, senders=True) - spread(z, edges)


def divergence(g: Tensor, edges: Edges) -> Tensor:
    r"""Sum of the values arriving at each node, :math:`(\mathrm{div}\, g)_i = \sum_j g_{ij}`; (m, d) -> (n, d). For
    undirected edges and antisymmetric ``g``, minus half the adjoint of :func:`gradient`."""
    return collect(g, edges)


def laplacian(z: Tensor, a: Tensor, edges: Edges) -> Tensor:
    r"""Right-hand side of eq. (7), :math:`\mathrm{div}(a \nabla z)_i = \sum_j a_{ij} (z_j - z_i)`; (n, d) -> (n, d).
    Computed as :math:`A z - \mathrm{diag}(A 1) z`, without an intermediate of size (m, d)."""
    return aggregate(a, z, edges) - collect(a[:, None], edges) * z
