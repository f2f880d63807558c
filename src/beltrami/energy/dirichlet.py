"""The Dirichlet energy: how far a state is from smooth."""

import torch
from torch import Tensor

from beltrami.graph import Edges, aggregate, collect


def dirichlet(z: Tensor, edges: Edges, *, weight: Tensor | None = None) -> Tensor:
    r"""Dirichlet energy of each channel, :math:`\tfrac12 \sum_{(i, j) \in E} w_{ij} (z_j^\ell - z_i^\ell)^2`.

    Its sum over channels is the Polyakov action of the constant family. On an undirected graph every pair of
    neighbours counts twice, as in the paper; directed graphs will do as well. Computed as
    :math:`\sum_i \deg_i z_i^2 - \langle z, W z \rangle`, so that nothing of size (m, d) is made, with z moved to mean
    zero first, lest a large common value drown the differences.

    Args:
        z: the state.
        edges: the graph.
        weight: w (m,), in the order of ``edges``, such as a diffusivity; the edges' own by default, or one.

    Shapes:
        ``z`` (n, d) -> (d,).
    """
    w = edges.weight if weight is None else weight
    w = z.new_ones(edges.num_edges) if w is None else w.to(z.dtype)
    z = z - z.mean(0)
    degree = 0.5 * (collect(w[:, None], edges) + collect(w[:, None], edges, senders=True))
    energy: Tensor = torch.sum(z * (degree * z - aggregate(w, z, edges)), dim=0)
    return energy
