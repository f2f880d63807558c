"""Stencils one after the other."""

from torch import Tensor

from beltrami.graph import Edges
from beltrami.stencil.base import Stencil


class Chain(Stencil):
    """Each stencil on what the one before it made: ``Chain(KNN(8, on=joint.u), Loops(1.0))``."""

    def __init__(self, *stencils: Stencil) -> None:
        self.stencils = stencils

    @property
    def synchronises(self) -> bool:
        return any(stencil.synchronises for stencil in self.stencils)

    def __call__(self, z: Tensor, edges: Edges) -> Edges:
        for stencil in self.stencils:
            edges = stencil(z, edges)
        return edges
