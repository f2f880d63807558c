"""Stencils that look at the state in another chart."""

from collections.abc import Callable

from torch import Tensor

from beltrami.graph import Edges
from beltrami.stencil.base import Stencil


class Charted(Stencil):
    """A stencil that is shown ``chart(z)`` in place of z.

    A flow in the Poincaré ball holds positions as logarithms at the origin; distances are those of the points,
    ``Charted(KNN(8, metric=ball), lambda z: ball.exp_origin(z[:, joint.u]))``.

    Args:
        stencil: what looks.
        chart: (n, d) -> (n, d'').
    """

    def __init__(self, stencil: Stencil, chart: Callable[[Tensor], Tensor]) -> None:
        self.stencil, self.chart = stencil, chart

    def __call__(self, z: Tensor, edges: Edges) -> Edges:
        return self.stencil(self.chart(z), edges)
