"""The edges along which the flow diffuses most."""

import math
from collections.abc import Callable

import torch
from torch import Tensor

from beltrami.graph import Edges
from beltrami.stencil.base import Stencil


class KeepStrongest(Stencil):
    r"""The ``share`` of the edges on which :math:`a(z_i, z_j)` is largest: attention as a sieve.

    It looks at the whole graph, not at each node: a node whose edges are all weak may lose all of them. Self-loops are
    never dropped and count for nothing; of equal weights, the edges that come first are kept. Weights of the edges
    stay. No gradient passes through the choice; it reaches ``diffusivity`` through the flow that uses it too.

    Args:
        share: of the edges that are no loops, in (0, 1]; rounded up.
        diffusivity: ``(z, edges) -> a`` (m,); as a rule the flow's own.
    """

    def __init__(self, share: float, diffusivity: Callable[[Tensor, Edges], Tensor]) -> None:
        if not 0 < share <= 1:
            raise ValueError(f"Strongest needs `share` above 0 and at most 1; got {share}.")
        self.share, self.diffusivity = share, diffusivity

    @torch.no_grad()
    def __call__(self, z: Tensor, edges: Edges) -> Edges:
        loop = edges.i == edges.j
        others = int((~loop).sum())
        wanted = math.ceil(round(self.share * others, 6))  # 0.07 * 100 is a little more than 7
        if wanted == others:
            return edges
        a = self.diffusivity(z, edges).masked_fill(loop, torch.inf)
        kept = a.argsort(descending=True, stable=True)[: wanted + edges.num_edges - others].sort().values
        weight = None if edges.weight is None else edges.weight[kept]
        return Edges.build(edges.edge_index[:, kept], num_nodes=edges.num_nodes, weight=weight)
