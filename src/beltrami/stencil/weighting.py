"""Stencils that reweight, select or add edges by the state, or that are applied in a chart or in training only."""

import math
from collections.abc import Callable
from dataclasses import KW_ONLY, dataclass, field

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from beltrami.arguments import checked
from beltrami.errors import check_matrix
from beltrami.graph import Edges
from beltrami.stencil.base import Stencil

LARGEST_SCORE = 2.5  # standard deviations at which `FeatureSimilarity` clips its scores
CHUNK = 2**24  # numbers gathered at a time: 64 MiB in single precision


@checked
@dataclass(frozen=True)
class FeatureSimilarity(Stencil):
    r"""The same edges, weighted by the cosine similarity of the features of their ends, relative to all edges.

    .. math:: w_{ij} \propto \mu_{ij} e^{\kappa s_{ij}}, \qquad
        s_{ij} = \frac{c_{ij} - \bar c}{\mathrm{std}\, c}, \qquad c_{ij} = \cos \angle(x_i, x_j)

    where :math:`\mu` are the weights of the input graph, and s is clipped to [-2.5, 2.5]. The factors
    :math:`e^{\kappa s}` are scaled to mean one, so that an edge still counts about as much as a loop of weight one.
    ``sharpness`` is :math:`\kappa`: 0 leaves the weights unchanged, below 0 dissimilar ends count more.
    """

    sharpness: float = 0.5

    def __post_init__(self) -> None:
        if not abs(self.sharpness) < float("inf"):
            raise ValueError(f"FeatureSimilarity needs a finite `sharpness`; got {self.sharpness}.")

    @checked
    @torch.no_grad()
    def __call__(self, z: Tensor, edges: Edges) -> Edges:
        check_matrix(z, name="z", rows=edges.num_nodes)
        if not edges.num_edges:
            return edges
        cosine = edge_cosine(z, edges)
        centred = cosine - cosine.mean()
        deviation = centred.square().mean().sqrt()
        score = centred / deviation if bool(deviation > 0) else torch.zeros_like(centred)
        factor = torch.exp(self.sharpness * score.clamp(-LARGEST_SCORE, LARGEST_SCORE))
        weight = factor / factor.mean()
        if edges.weight is not None:
            weight = weight * edges.weight.to(weight.dtype)
        return Edges.build(edges.edge_index, num_nodes=edges.num_nodes, weight=weight)


@checked
@dataclass(frozen=True)
class KeepStrongest(Stencil):
    r"""The ``share`` of the edges with the largest diffusivity :math:`a(z_i, z_j)`, with their weights.

    The edges of the whole graph are compared: a node with weak edges may lose all of them. Self-loops are always kept;
    the share is that of the other edges, rounded up. ``diffusivity``, ``(z, edges) -> a`` (m,), is usually that of the
    flow. Of equal ones, the first edges are kept. No gradient passes through the selection.
    """

    share: float
    diffusivity: Callable[[Tensor, Edges], Tensor] = field(repr=False)

    def __post_init__(self) -> None:
        if not 0 < self.share <= 1:
            raise ValueError(f"KeepStrongest needs `share` above 0 and at most 1; got {self.share}.")

    @checked
    @torch.no_grad()
    def __call__(self, z: Tensor, edges: Edges) -> Edges:
        loop = edges.i == edges.j
        others = int((~loop).sum())
        kept = math.ceil(round(self.share * others, 6))  # in floating point, 0.07 * 100 is a little more than 7
        if kept == others:
            return edges
        a = self.diffusivity(z, edges).masked_fill(loop, torch.inf)
        selected = a.argsort(descending=True, stable=True)[: kept + edges.num_edges - others].sort().values
        weight = None if edges.weight is None else edges.weight[selected]
        return Edges.build(edges.edge_index[:, selected], num_nodes=edges.num_nodes, weight=weight)


@checked
@dataclass(frozen=True)
class AddEdges(Stencil):
    """The input graph and, with ``weight``, the edges of another stencil that it lacks.

    The edges of an unweighted input graph have weight one.
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

    @checked
    @torch.no_grad()
    def __call__(self, z: Tensor, edges: Edges) -> Edges:
        n, found = edges.num_nodes, self.other(z, edges)
        new = ~torch.isin(found.i * n + found.j, edges.i * n + edges.j)
        old_weight = torch.ones(edges.num_edges, device=edges.device) if edges.weight is None else edges.weight
        new_weight = old_weight.new_full((int(new.sum()),), self.weight)
        edge_index = torch.cat((edges.edge_index, found.edge_index[:, new]), dim=1)
        return Edges.build(edge_index, num_nodes=n, weight=torch.cat((old_weight, new_weight)))


@checked
@dataclass(frozen=True)
class Charted(Stencil):
    """A stencil that is applied to ``chart(z)``, (n, d) -> (n, d''), instead of z.

    A flow in the Poincaré ball stores positions as logarithms at the origin, but distances are between the points:
    ``Charted(KNN(8, metric=ball), lambda z: ball.exp_origin(z[:, joint.u]))``.
    """

    stencil: Stencil
    chart: Callable[[Tensor], Tensor] = field(repr=False)

    @checked
    def __call__(self, z: Tensor, edges: Edges) -> Edges:
        return self.stencil(self.chart(z), edges)


@checked
@dataclass(frozen=True)
class TrainingOnly(Stencil):
    """A stencil that is applied in training mode; in evaluation mode the input graph is returned unchanged.

    The mode is that of ``module``, a part of the model; usually the diffusivity. As the last of a chain it is a dropout
    of edges: ``TrainingOnly(KeepStrongest(0.9, a), a)`` trains on the strongest edges and predicts on all of them.
    """

    stencil: Stencil
    module: nn.Module = field(repr=False)

    @checked
    def __call__(self, z: Tensor, edges: Edges) -> Edges:
        return self.stencil(z, edges) if self.module.training else edges


@checked
def tf_idf(x: Tensor) -> Tensor:
    r"""Return features weighted by inverse document frequency, with rows of unit length, (n, d).

    .. math:: x_{ik} \Big( 1 + \log \frac{1 + n}{1 + n_k} \Big), \qquad n_k = \#\{i : x_{ik} \ne 0\}

    Words that occur in every text say little about which texts are similar.
    """
    if x.dim() != 2 or x.layout != torch.strided:
        raise ValueError(f"`x` must be a dense matrix (nodes, features); got shape {tuple(x.shape)}, {x.layout}.")
    frequency = (x != 0).sum(0).to(x.dtype)
    return unit_rows(x * (1 + torch.log((1 + len(x)) / (1 + frequency))))


def edge_cosine(x: Tensor, edges: Edges) -> Tensor:
    """Return the cosine similarity of the ends of each edge, (m,), in chunks: x may have thousands of columns."""
    unit, chunk = unit_rows(x), max(1, CHUNK // max(1, x.shape[1]))
    ends = zip(edges.i.split(chunk), edges.j.split(chunk), strict=True)
    return torch.cat([(unit[i] * unit[j]).sum(1) for i, j in ends])


def unit_rows(x: Tensor) -> Tensor:
    """Return rows scaled to length one, zero rows as they are, (n, d). A row whose squares would overflow or underflow
    is multiplied by a power of two before."""
    largest, limits = torch.linalg.vector_norm(x, math.inf, dim=1, keepdim=True), torch.finfo(x.dtype)
    extreme = (largest > 0) & ((largest < limits.tiny**0.25) | (largest > limits.max**0.25))
    if x.numel() and bool(extreme.any()):
        furthest = math.frexp(limits.max)[1] - 2
        exponent = -torch.frexp(largest).exponent.clamp(-furthest, furthest)
        x = x * torch.where(extreme, torch.ldexp(torch.ones_like(largest), exponent), 1.0)
    return F.normalize(x, dim=1)
