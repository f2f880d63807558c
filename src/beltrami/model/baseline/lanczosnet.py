"""LanczosNet and AdaLanczosNet, filters of short and long range (Liao et al. 2019)."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from itertools import pairwise

import numpy as np
import torch
from torch import Tensor, nn

from beltrami.diffusivity import xavier
from beltrami.graph import Both, Edges, SparseMatrix, aggregate, squared_distance
from beltrami.graph.edges import check_undirected
from beltrami.model.baseline.base import Timeless
from beltrami.model.baseline.filter import LONG, Filters, OfMatrix, OfValues
from beltrami.model.baseline.frame import Frame
from beltrami.model.baseline.krylov import Krylov, lanczos
from beltrami.model.baseline.weight import once, symmetric
from beltrami.model.classifier import Inputs
from beltrami.model.coder import Encoder

SHORT = (1, 2, 5, 7)  # powers of A that are taken as products
SIMILARITY = 16  # channels in which AdaLanczosNet compares features


class Kernel(nn.Module, ABC):
    """A symmetric matrix A on the edges."""

    @abstractmethod
    def forward(self, x: Tensor | SparseMatrix, edges: Edges, *, steps: int) -> Krylov:
        """A, and its Krylov space of dimension ``steps``."""


class Normalised(Kernel):
    """The matrix of GCN, whose space is found once for a graph."""

    def forward(self, x: Tensor | SparseMatrix, edges: Edges, *, steps: int) -> Krylov:
        return _fixed_space(edges, x.dtype, steps)


class Similarity(Kernel):
    r"""A matrix learned from the features, :math:`w_{ij} = e^{-\|M x_i - M x_j\|^2 / 2}`, normalised by both sums."""

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.project = Encoder(channels, SIMILARITY, bias=False)
        xavier(self.project.linear.weight)

    def forward(self, x: Tensor | SparseMatrix, edges: Edges, *, steps: int) -> Krylov:
        p = self.project(x)[:, None]
        a = Both()(squared_distance(p, p).score(edges), edges)[:, 0]
        return lanczos(a, edges, _start(edges, x.dtype), steps=steps)


class Range(nn.Module):
    r"""Powers of A, the short by products and the long from the Krylov space.

    .. math:: F(X) = \sum_{s \in \{1, 2, 5, 7\}} A^s X W_s + \sum_e Q f_e(T) Q^\top X V_e + b

    Args:
        channels: width of ``x``.
        out_channels: width of the result.
        filters: the functions f.
        dropout: share of ``x`` dropped while training.
    """

    def __init__(self, channels: int, out_channels: int, filters: Filters, *, dropout: float = 0.0) -> None:
        super().__init__()
        parts = len(SHORT) + len(LONG)
        self.project = Encoder(channels, parts * out_channels, dropout=dropout, bias=False)
        self.filters = filters
        self.bias = nn.Parameter(torch.zeros(out_channels))
        for weight in self.project.linear.weight.detach().chunk(parts):
            xavier(weight)

    def forward(self, x: Tensor | SparseMatrix, krylov: Krylov, edges: Edges) -> Tensor:
        parts = self.project(x).unflatten(-1, (len(SHORT) + len(LONG), -1)).unbind(1)
        near = self._powers(parts[: len(SHORT)], krylov.a, edges)
        seen = torch.stack([krylov.q.t() @ part for part in parts[len(SHORT) :]])  # (filters, k, out)
        far: Tensor = krylov.q @ (self.filters(krylov) @ seen).sum(0)
        return near + far + self.bias

    def _powers(self, parts: Sequence[Tensor], a: Tensor, edges: Edges) -> Tensor:
        """Horner's rule, from the highest power down."""
        out = torch.zeros_like(parts[0])
        for part, (high, low) in zip(reversed(parts), pairwise((*reversed(SHORT), 0)), strict=True):
            out = out + part
            for _ in range(high - low):
                out = aggregate(a, out, edges)
        return out


class LanczosNet(Timeless):
    """Layers of :class:`Range` with ReLU in between, on one Krylov space for all.

    Args:
        frame: widths and the graph, which is undirected; its authors' has ``Loops()``.
        kernel: the matrix.
        filters: makes those of a layer.
        steps: the dimension of the space.
    """

    def __init__(self, frame: Frame, kernel: Kernel, filters: Callable[[], Filters], *, steps: int) -> None:
        super().__init__(frame)
        if steps < 1:
            raise ValueError(f"LanczosNet needs `steps` at least 1; got {steps}.")
        self.kernel, self.steps = kernel, steps
        self.layers = nn.ModuleList(Range(a, b, filters(), dropout=share) for a, b, share in frame.layers)

    @torch.no_grad()
    def attention_spread(self, inputs: Inputs) -> float:
        """Of the matrix, beside that of GCN."""
        a = self.kernel(inputs.x, inputs.edges, steps=1).a
        return float((a / symmetric(inputs.edges, a.dtype)).std(correction=0)) if len(a) else 0.0

    def scores(self, inputs: Inputs) -> Tensor:
        krylov = self.kernel(inputs.x, inputs.edges, steps=self.steps)
        first, *others = self.layers
        x: Tensor = first(inputs.x, krylov, inputs.edges)
        for layer in others:
            x = layer(torch.relu(x), krylov, inputs.edges)
        return x


def lanczosnet(frame: Frame, *, steps: int = 20) -> LanczosNet:
    """Functions of the eigenvalues of GCN's matrix."""
    return LanczosNet(frame, Normalised(), OfValues, steps=steps)


def adalanczosnet(frame: Frame, *, steps: int = 10) -> LanczosNet:
    """The matrix is learned too, and the Krylov space with it."""
    return LanczosNet(frame, Similarity(frame.channels), lambda: OfMatrix(steps), steps=steps)


@once
def _fixed_space(edges: Edges, dtype: torch.dtype, steps: int) -> Krylov:
    exact = lanczos(symmetric(edges, torch.float64), edges, _start(edges, torch.float64), steps=steps)
    return Krylov(symmetric(edges, dtype), exact.q.to(dtype), exact.t.to(dtype))


@once
def _start(edges: Edges, dtype: torch.dtype) -> Tensor:
    """Where the Krylov space begins: a random vector, the same for all models; a directed graph is refused."""
    check_undirected(edges, needed_by="LanczosNet")
    values = np.random.default_rng(0).standard_normal(edges.num_nodes)  # torch's own are refused in torch.func.vmap
    return torch.from_numpy(values).to(edges.device, dtype)
