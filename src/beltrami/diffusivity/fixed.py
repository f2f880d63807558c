"""Weights that are not learned."""

from torch import Tensor

from beltrami.diffusivity.base import Diffusivity
from beltrami.graph import Edges


class RandomWalk(Diffusivity):
    r"""Fixed weights: every edge the same before normalisation, or the graph's own weights where it has them.

    .. math:: a_{ij} = \frac{w_{ij}}{\sum_k w_{ik}}

    over rows, the transition matrix of the random walk; balanced by both sums, the symmetrically normalised adjacency
    matrix. Nothing to learn and nothing to overfit: what every learned score must beat.
    """

    def score(self, z: Tensor, edges: Edges) -> Tensor:
        return z.new_zeros(edges.num_edges, 1)
