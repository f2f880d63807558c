"""Likeness: edges that count by how alike their ends are, with nothing to learn."""

import torch
from torch import Tensor
from torch.nn import functional as F

from beltrami.errors import check_matrix
from beltrami.graph import Edges
from beltrami.stencil.base import Stencil

FARTHEST = 2.5  # standard deviations beyond which likeness counts no further
CELLS = 2**24  # numbers gathered at a time: 64 MiB in single precision


class FeatureSimilarity(Stencil):
    r"""The same edges, each weighed by how alike what its ends carry is, compared with the graph's other edges.

    .. math:: w_{ij} \propto \mu_{ij} e^{\kappa s_{ij}}, \qquad
        s_{ij} = \frac{c_{ij} - \bar c}{\mathrm{std}\, c}, \qquad c_{ij} = \cos \angle(x_i, x_j)

    The angle's attention without labels: symmetric where :math:`\mu`, the edges' own measure, is, and nothing in it can
    overfit. The mean of the factors is one, so that an edge still counts about as much as a loop of weight one; s is
    cut at 2.5 standard deviations. A learned diffusivity weighs the edges further.

    Args:
        sharpness: :math:`\kappa`; 0 leaves the edges as they are, below 0 unlike ends count more.

    Shapes:
        ``z`` (n, d), the features -> as many edges, weighted.
    """

    def __init__(self, sharpness: float = 0.5) -> None:
        if not abs(sharpness) < float("inf"):
            raise ValueError(f"Likeness needs a finite `sharpness`; got {sharpness}.")
        self.sharpness = sharpness

    @torch.no_grad()
    def __call__(self, z: Tensor, edges: Edges) -> Edges:
        check_matrix(z, name="z", rows=edges.num_nodes)
        score = standard(across(F.normalize(z, dim=1), edges)).clamp(-FARTHEST, FARTHEST)
        factor = torch.exp(self.sharpness * score)
        weight = factor / factor.mean() if len(factor) else factor
        if edges.weight is not None:
            weight = weight * edges.weight.to(weight.dtype)
        return Edges.build(edges.edge_index, num_nodes=edges.num_nodes, weight=weight)


class AddEdges(Stencil):
    """The input graph and, beside it, those edges of another stencil that it lacks, at a weight of their own.

    ``AddEdges(Chain(KNN(5), Symmetric()), weight=0.5)``: nodes hear from the most alike nodes too, linked or not.

    Args:
        other: finds the further edges.
        weight: what each of them counts for beside an edge of weight one.
    """

    def __init__(self, other: Stencil, *, weight: float = 1.0) -> None:
        if not 0 < weight < float("inf"):
            raise ValueError(f"Beside needs a positive, finite `weight`; got {weight}.")
        self.other, self.weight = other, weight

    @property
    def synchronises(self) -> bool:
        return self.other.synchronises

    @torch.no_grad()
    def __call__(self, z: Tensor, edges: Edges) -> Edges:
        n, found = edges.num_nodes, self.other(z, edges)
        fresh = ~torch.isin(found.i * n + found.j, edges.i * n + edges.j)
        here = torch.ones(edges.num_edges, device=edges.device) if edges.weight is None else edges.weight
        further = here.new_full((int(fresh.sum()),), self.weight)
        return Edges.build(
            torch.cat((edges.edge_index, found.edge_index[:, fresh]), dim=1),
            num_nodes=n,
            weight=torch.cat((here, further)),
        )


def by_rarity(x: Tensor) -> Tensor:
    r"""Features as directions (n, d): columns count by how few nodes have them, rows have length one.

    .. math:: x_{ik} \Big( 1 + \log \frac{1 + n}{1 + n_k} \Big), \qquad n_k = \#\{i : x_{ik} \ne 0\}

    Words that stand in every text say little about which two are alike.
    """
    nodes = (x != 0).sum(0).to(x.dtype)
    return F.normalize(x * (1 + torch.log((1 + len(x)) / (1 + nodes))), dim=1)


def across(p: Tensor, edges: Edges) -> Tensor:
    """The dot product of the ends of each edge, (m,), in pieces: p may have thousands of columns."""
    most = max(1, CELLS // max(1, p.shape[1]))
    parts = [(p[i] * p[j]).sum(1) for i, j in zip(edges.i.split(most), edges.j.split(most), strict=True)]
    return torch.cat(parts) if parts else p.new_zeros(0)


def standard(values: Tensor) -> Tensor:
    """Values less their mean, in standard deviations; 0 where all are equal."""
    if not len(values):
        return values
    apart = values - values.mean()
    scale = apart.square().mean().sqrt()
    return apart / scale if bool(scale > 0) else torch.zeros_like(values)
