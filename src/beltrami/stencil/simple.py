"""Stencils that do not look at the state."""

from torch import Tensor

from beltrami.graph import Edges
from beltrami.stencil.base import Stencil


class Keep(Stencil):
    """The input graph as it is, E' = E."""

    def __call__(self, z: Tensor, edges: Edges) -> Edges:
        return edges


class Loops(Stencil):
    """The input graph with a self-loop on every node.

    A loop adds nothing to z_j - z_i, but it enters the sums that weights are divided by: each node keeps a share of
    itself, and the flow is that much slower.

    Args:
        weight: what the loop counts for beside an edge of weight one.
    """

    def __init__(self, weight: float = 1.0) -> None:
        if not weight > 0:
            raise ValueError(f"Loops needs a positive `weight`; got {weight}. For none, use `Keep()`.")
        self.weight = weight
        self._last: tuple[Edges, Edges] | None = None

    def __call__(self, z: Tensor, edges: Edges) -> Edges:
        # The same graph comes again every epoch: its looped edges are kept.
        if self._last is None or self._last[0] is not edges:
            self._last = (edges, edges.with_loops(self.weight))
        return self._last[1]
