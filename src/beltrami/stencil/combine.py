"""Stencils made from other stencils."""

from collections.abc import Callable
from dataclasses import KW_ONLY, dataclass, field

import torch
from torch import Tensor, nn

from beltrami.graph import Edges
from beltrami.stencil.base import Stencil


class Chain(Stencil):
    """Stencils applied one after the other: ``Chain(KNN(8, on=joint.u), Loops(1.0))``."""

    def __init__(self, *stencils: Stencil) -> None:
        self.stencils = stencils

    def __repr__(self) -> str:
        return f"Chain({', '.join(map(repr, self.stencils))})"

    @property
    def synchronises(self) -> bool:
        return any(stencil.synchronises for stencil in self.stencils)

    def __call__(self, z: Tensor, edges: Edges) -> Edges:
        for stencil in self.stencils:
            edges = stencil(z, edges)
        return edges


@dataclass(frozen=True)
class AddEdges(Stencil):
    """The input graph and, with ``weight``, the edges of another stencil that it lacks.

    ``AddEdges(Chain(KNN(5), Symmetric()), weight=0.5)`` connects each node to the most similar nodes as well. The edges
    of an unweighted input graph have weight one.
    """

    other: Stencil
    _: KW_ONLY
    weight: float = 1.0

    def __post_init__(self) -> None:
        if not 0 < self.weight < float("inf"):
            raise ValueError(f"AddEdges needs a positive, finite `weight`; got {self.weight}.")

    @property
    def synchronises(self) -> bool:
        return self.other.synchronises

    @torch.no_grad()
    def __call__(self, z: Tensor, edges: Edges) -> Edges:
        n, found = edges.num_nodes, self.other(z, edges)
        new = ~torch.isin(found.i * n + found.j, edges.i * n + edges.j)
        old_weight = torch.ones(edges.num_edges, device=edges.device) if edges.weight is None else edges.weight
        new_weight = old_weight.new_full((int(new.sum()),), self.weight)
        edge_index = torch.cat((edges.edge_index, found.edge_index[:, new]), dim=1)
        return Edges.build(edge_index, num_nodes=n, weight=torch.cat((old_weight, new_weight)))


@dataclass(frozen=True)
class Charted(Stencil):
    """A stencil that is applied to ``chart(z)``, (n, d) -> (n, d''), instead of z.

    A flow in the Poincaré ball stores positions as logarithms at the origin, but distances are between the points:
    ``Charted(KNN(8, metric=ball), lambda z: ball.exp_origin(z[:, joint.u]))``.
    """

    stencil: Stencil
    chart: Callable[[Tensor], Tensor] = field(repr=False)

    def __call__(self, z: Tensor, edges: Edges) -> Edges:
        return self.stencil(self.chart(z), edges)


@dataclass(frozen=True)
class TrainingOnly(Stencil):
    """A stencil that is applied in training mode; in evaluation mode the input graph is returned unchanged.

    The mode is that of ``module``, a part of the model; usually the diffusivity. As the last of a chain it is a dropout
    of edges: ``TrainingOnly(KeepStrongest(0.9, a), a)`` trains on the strongest edges and predicts on all of them.
    """

    stencil: Stencil
    module: nn.Module = field(repr=False)

    def __call__(self, z: Tensor, edges: Edges) -> Edges:
        return self.stencil(z, edges) if self.module.training else edges
