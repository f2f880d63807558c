"""LanczosNet and AdaLanczosNet: graph filters of short and long range (Liao et al. 2019)."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise

import numpy as np
import torch
from torch import Tensor, nn

from beltrami.arguments import checked
from beltrami.diffusivity import xavier
from beltrami.graph import Both, Edges, aggregate, squared_distance
from beltrami.graph.edges import check_undirected
from beltrami.model.baseline.base import Architecture, DiscreteBaseline, cached_per_graph, symmetric_weights
from beltrami.model.coder import Encoder, Matrix
from beltrami.model.inputs import Inputs

SHORT = (1, 2, 5, 7)  # powers of A computed as products
LONG = (10, 20, 30)  # powers of A computed in the Krylov space, inputs of as many filters
FILTER_WIDTH = 32  # hidden channels of the filters' networks
SIMILARITY_WIDTH = 16  # channels in which AdaLanczosNet compares features
TINY = 1e-6  # relative to the norm of the matrix: a shorter direction counts as zero


@dataclass(frozen=True, eq=False)
class KrylovSpace:
    r"""An orthonormal basis Q of :math:`\operatorname{span}(q, A q, A^2 q, \dots)` and A in this basis.

    .. math:: A Q = Q T + r e_k^\top, \qquad T = Q^\top A Q \text{ tridiagonal}

    A is ``a`` (m,) on the edges. If the space has fewer than k dimensions, the other vectors and rows of T are zero.
    """

    a: Tensor
    q: Tensor
    t: Tensor

    @cached_property
    def eigen(self) -> tuple[Tensor, Tensor]:
        """The Ritz values of A, ascending, (k,), and the eigenvectors B of T, (k, k); Q B are the Ritz vectors."""
        return tuple(torch.linalg.eigh(self.t))


def lanczos(a: Tensor, edges: Edges, start: Tensor, *, steps: int) -> KrylovSpace:
    """Return the Krylov space of ``start`` (n,), each direction orthogonalised twice against all before it.

    ``a`` (m,) is a symmetric matrix on the edges, of norm about one; ``steps`` is k. Differentiable with respect to
    ``a``; without host synchronisation, so that it works under ``torch.func.vmap``.
    """
    q = (start / start.norm())[:, None]
    diagonal, off_diagonal = [], []
    for _ in range(steps):
        w = aggregate(a, q[:, -1:], edges)[:, 0]
        diagonal.append(w @ q[:, -1])
        for _ in range(2):
            w = w - q @ (q.t() @ w)
        square = w.square().sum()
        found = square > TINY**2
        size = torch.where(found, square, 1).sqrt()  # 1 instead of 0, where the root has no derivative
        off_diagonal.append(torch.where(found, size, 0))
        q = torch.cat((q, torch.where(found, w / size, 0)[:, None]), dim=1)
    off = torch.stack(off_diagonal)[:-1]
    t = torch.diag_embed(torch.stack(diagonal)) + torch.diag_embed(off, 1) + torch.diag_embed(off, -1)
    return KrylovSpace(a, q[:, :-1], t)


class EigenvalueFilters(nn.Module):
    r"""Learned functions of the eigenvalues of T, :math:`B \operatorname{diag} f(r^{10}, r^{20}, r^{30}) B^\top` where
    :math:`T = B \operatorname{diag}(r) B^\top`; f is a network with a hidden layer. -> (filters, k, k)."""

    def __init__(self) -> None:
        super().__init__()
        self.f = nn.Sequential(nn.Linear(len(LONG), FILTER_WIDTH), nn.ReLU(), nn.Linear(FILTER_WIDTH, len(LONG)))

    def forward(self, krylov: KrylovSpace) -> Tensor:
        r, b = krylov.eigen
        responses = self.f(torch.stack([r**power for power in LONG], dim=-1)).t()  # (filters, k)
        out: Tensor = (b * responses[:, None]) @ b.t()
        return out


class MatrixFilters(nn.Module):
    r"""Learned functions of T itself, :math:`G + G^\top` with :math:`G = g(T^{10}, T^{20}, T^{30})`: no eigenvectors,
    whose derivatives are ill-conditioned. g is a network with a hidden layer on all entries. -> (filters, k, k)."""

    def __init__(self, steps: int) -> None:
        super().__init__()
        entries = len(LONG) * steps**2
        self.g = nn.Sequential(nn.Linear(entries, FILTER_WIDTH), nn.ReLU(), nn.Linear(FILTER_WIDTH, entries))

    def forward(self, krylov: KrylovSpace) -> Tensor:
        powers = torch.stack([torch.linalg.matrix_power(krylov.t, power) for power in LONG])
        g: Tensor = self.g(powers.flatten()).view_as(powers)
        return g + g.mT


class NormalisedAdjacency(nn.Module):
    """The matrix of GCN with its Krylov space of dimension ``steps``, computed once for a graph."""

    def forward(self, x: Matrix, edges: Edges, *, steps: int) -> KrylovSpace:
        return _fixed_space(edges, x.dtype, steps)


class LearnedSimilarity(nn.Module):
    r"""A matrix learned from the features, :math:`w_{ij} = e^{-\|M x_i - M x_j\|^2 / 2}`, normalised by both sums, with
    its Krylov space of dimension ``steps``."""

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.project = Encoder(channels, SIMILARITY_WIDTH, bias=False)
        xavier(self.project.linear.weight)

    def forward(self, x: Matrix, edges: Edges, *, steps: int) -> KrylovSpace:
        p = self.project(x)[:, None]
        a = Both()(squared_distance(p, p).score(edges), edges)[:, 0]
        return lanczos(a, edges, _start(edges, x.dtype), steps=steps)


class LanczosLayer(nn.Module):
    r"""A sum of powers of A: short ones by products, long ones from the Krylov space. ``dropout`` applies to ``x``.

    .. math:: F(X) = \sum_{s \in \{1, 2, 5, 7\}} A^s X W_s + \sum_e Q f_e(T) Q^\top X V_e + b
    """

    def __init__(self, channels: int, out_channels: int, filters: nn.Module, *, dropout: float = 0.0) -> None:
        super().__init__()
        parts = len(SHORT) + len(LONG)
        self.project = Encoder(channels, parts * out_channels, dropout=dropout, bias=False)
        self.filters = filters
        self.bias = nn.Parameter(torch.zeros(out_channels))
        for weight in self.project.linear.weight.detach().chunk(parts):
            xavier(weight)

    def forward(self, x: Matrix, krylov: KrylovSpace, edges: Edges) -> Tensor:
        parts = self.project(x).unflatten(-1, (len(SHORT) + len(LONG), -1)).unbind(1)
        short = self._powers(parts[: len(SHORT)], krylov.a, edges)
        projected = torch.stack([krylov.q.t() @ part for part in parts[len(SHORT) :]])  # (filters, k, out)
        long: Tensor = krylov.q @ (self.filters(krylov) @ projected).sum(0)
        return short + long + self.bias

    def _powers(self, parts: Sequence[Tensor], a: Tensor, edges: Edges) -> Tensor:
        """Sum the powers of A by Horner's rule, from the highest down."""
        out = torch.zeros_like(parts[0])
        for part, (high, low) in zip(reversed(parts), pairwise((*reversed(SHORT), 0)), strict=True):
            out = out + part
            for _ in range(high - low):
                out = aggregate(a, out, edges)
        return out


class LanczosNet(DiscreteBaseline):
    """Layers of :class:`LanczosLayer` with ReLU in between, on one Krylov space of dimension ``steps``.

    ``matrix`` makes that space, and ``filters`` the filters of a layer. The graph must be undirected; its authors' has
    ``Loops()``.
    """

    def __init__(
        self, architecture: Architecture, matrix: nn.Module, filters: Callable[[], nn.Module], *, steps: int
    ) -> None:
        super().__init__(architecture)
        if steps < 1:
            raise ValueError(f"LanczosNet needs `steps` at least 1; got {steps}.")
        self.matrix, self.steps = matrix, steps
        self.layers = nn.ModuleList(LanczosLayer(a, b, filters(), dropout=p) for a, b, p in architecture.layers)

    @torch.no_grad()
    def attention_spread(self, inputs: Inputs) -> float:
        """Return the spread of A relative to the matrix of GCN."""
        a = self.matrix(inputs.x, inputs.edges, steps=1).a
        return float((a / symmetric_weights(inputs.edges, a.dtype)).std(correction=0)) if len(a) else 0.0

    def scores(self, inputs: Inputs) -> Tensor:
        krylov = self.matrix(inputs.x, inputs.edges, steps=self.steps)
        first, *others = self.layers
        x: Tensor = first(inputs.x, krylov, inputs.edges)
        for layer in others:
            x = layer(torch.relu(x), krylov, inputs.edges)
        return x


@checked
def lanczosnet(architecture: Architecture, *, steps: int = 20) -> LanczosNet:
    """Return a LanczosNet: filters of the eigenvalues of GCN's matrix."""
    return LanczosNet(architecture, NormalisedAdjacency(), EigenvalueFilters, steps=steps)


@checked
def adalanczosnet(architecture: Architecture, *, steps: int = 10) -> LanczosNet:
    """Return an AdaLanczosNet, whose matrix and Krylov space are learned too."""
    return LanczosNet(architecture, LearnedSimilarity(architecture.channels), lambda: MatrixFilters(steps), steps=steps)


@cached_per_graph
def _fixed_space(edges: Edges, dtype: torch.dtype, steps: int) -> KrylovSpace:
    exact = lanczos(symmetric_weights(edges, torch.float64), edges, _start(edges, torch.float64), steps=steps)
    return KrylovSpace(symmetric_weights(edges, dtype), exact.q.to(dtype), exact.t.to(dtype))


@cached_per_graph
def _start(edges: Edges, dtype: torch.dtype) -> Tensor:
    """Return the first vector of the Krylov space, random but the same for all models; refuse a directed graph."""
    check_undirected(edges, needed_by="LanczosNet")
    values = np.random.default_rng(0).standard_normal(edges.num_nodes)  # torch's generators fail under torch.func.vmap
    return torch.from_numpy(values).to(edges.device, dtype)
