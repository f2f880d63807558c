"""Diffusivities whose scores are dot products: scaled, cosine, Pearson, and the additive score of GAT."""

from abc import abstractmethod
from typing import ClassVar

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from beltrami.arguments import Count, Finite, checked
from beltrami.diffusivity.base import Paired, Projection, Start, check_heads, xavier
from beltrami.graph import Edges, Leaky, Normaliser, PairScore, edge_dot, spread
from beltrami.graph.ops.unit import unit


@checked
class ScaledDot(Paired):
    r"""Scaled dot product, eq. (13).

    .. math:: a(z_i, z_j) = \mathrm{softmax}_j \frac{\langle W_K z_i, W_Q z_j \rangle}{d_k}

    The only unbounded score: the most expressive one, and the first to overfit when labels are few. ``width`` is that
    of the projections, all ``heads`` together, whose weights are averaged; ``d_k`` is by default the width of a head;
    ``start`` initialises the projections, which have biases if ``bias``.
    """

    def __init__(
        self,
        channels: Count,
        width: Count,
        *,
        heads: int = 1,
        d_k: float | None = None,
        normalise: Normaliser | None = None,
        start: Start = xavier,
        bias: bool = False,
    ) -> None:
        super().__init__(normalise)
        if d_k is not None and not 0 < d_k < float("inf"):
            raise ValueError(f"ScaledDot needs a positive, finite `d_k`; got {d_k}.")
        self.project = Projection(channels, width, heads=heads, start=start, bias=bias)
        self.d_k = width / heads if d_k is None else d_k

    def score(self, z: Tensor, edges: Edges) -> Tensor:
        key, query = self.project(z)
        return edge_dot(key, query, edges) / self.d_k

    def pair(self, z: Tensor) -> PairScore:
        key, query = self.project(z)
        return PairScore(key / self.d_k, query)


@checked
class _Normalised(Paired):
    """Base of scores that are dot products of normalised projections."""

    least_width: ClassVar[int] = 1  # channels that a head needs

    def __init__(
        self,
        channels: Count,
        width: Count,
        *,
        heads: int = 1,
        normalise: Normaliser | None = None,
        start: Start = xavier,
        bias: bool = False,
    ) -> None:
        super().__init__(normalise)
        least = self.least_width
        self.project = Projection(channels, width, heads=heads, start=start, least_width=least, bias=bias)

    @abstractmethod
    def vectors(self, z: Tensor) -> tuple[Tensor, Tensor]:
        """Return the keys and the queries before they are divided by their norms, each (n, h, k)."""

    def score(self, z: Tensor, edges: Edges) -> Tensor:
        key, query = self.vectors(z)
        return edge_dot(F.normalize(key, dim=-1), F.normalize(query, dim=-1), edges)

    def pair(self, z: Tensor) -> PairScore:
        key, query = self.vectors(z)
        return PairScore(unit(key), unit(query))


class Cosine(_Normalised):
    r"""Cosine similarity of projected coordinates, eq. (15); arguments as for :class:`ScaledDot` without ``d_k``.

    .. math:: a(z_i, z_j) = \mathrm{softmax}_j \frac{\langle W_K z_i, W_Q z_j\rangle}{\|W_K z_i\| \|W_Q z_j\|}

    Bounded scores: no edge can dominate, whatever the scale of ``z``.
    """

    def vectors(self, z: Tensor) -> tuple[Tensor, Tensor]:
        key, query = self.project(z)
        return key, query


class Pearson(_Normalised):
    r"""Correlation of projected coordinates, eq. (16); arguments as for :class:`ScaledDot` without ``d_k``.

    .. math:: a(z_i, z_j) = \mathrm{softmax}_j \frac{\langle W_K z_i - \overline{W_K z_i},
        W_Q z_j - \overline{W_Q z_j}\rangle}{\|W_K z_i - \overline{W_K z_i}\| \|W_Q z_j - \overline{W_Q z_j}\|}

    The bars are means over the channels of a head, which needs at least two. Bounded, and unchanged when all channels
    of a projection are shifted by the same amount.
    """

    least_width: ClassVar[int] = 2

    def vectors(self, z: Tensor) -> tuple[Tensor, Tensor]:
        key, query = (p - p.mean(-1, keepdim=True) for p in self.project(z))
        return key, query


@checked
class ScalarCosine(Paired):
    r"""Cosine similarity times one learned scalar per head: the propagation of AGNN (Thekumparampil et al. 2018).

    .. math:: a(z_i, z_j) = \mathrm{softmax}_j\, \beta \frac{\langle z_i, z_j \rangle}{\|z_i\| \|z_j\|}

    :class:`Cosine` without projections: symmetric scores and only ``heads`` parameters, for graphs with few labels.
    ``sharpness`` is the initial :math:`\beta` of the first head; it doubles from each head to the next.
    """

    def __init__(self, *, heads: Count = 1, sharpness: Finite = 1.0, normalise: Normaliser | None = None) -> None:
        super().__init__(normalise)
        self.heads, self._first = heads, float(sharpness)
        self.sharpness = nn.Parameter(self._first * 2.0 ** torch.arange(heads))

    @torch.no_grad()
    def reset_parameters(self) -> None:
        self.sharpness.copy_(self._first * 2.0 ** torch.arange(self.heads))

    def score(self, z: Tensor, edges: Edges) -> Tensor:
        direction = F.normalize(z, dim=-1)[:, None]
        return self.sharpness * edge_dot(direction, direction, edges)  # (m, h)

    def pair(self, z: Tensor) -> PairScore:
        direction = unit(z)[:, None]
        return PairScore(self.sharpness[:, None] * direction, direction.expand(-1, len(self.sharpness), -1))


@checked
class Additive(Paired):
    r"""The score of graph attention networks (GAT).

    .. math:: a(z_i, z_j) = \mathrm{softmax}_j\, \mathrm{LeakyReLU}(\langle b, W z_i \rangle + \langle c, W z_j \rangle)

    The cheapest learned score: two numbers per node and head, added on the edges. Where the sum does not change sign,
    all receivers rank their senders in the same order. ``slope`` is that of the LeakyReLU below zero.
    """

    def __init__(
        self,
        channels: Count,
        width: Count,
        *,
        heads: int = 1,
        slope: Finite = 0.2,
        normalise: Normaliser | None = None,
        start: Start = xavier,
    ) -> None:
        super().__init__(normalise)
        check_heads(width, heads)
        self.heads, self.slope, self._start = heads, slope, start
        self.project = nn.Linear(channels, width, bias=False)
        self.receiver, self.sender = (nn.Parameter(torch.empty(heads, width // heads)) for _ in range(2))
        self.reset_parameters()

    def reset_parameters(self) -> None:
        for weight in (self.project.weight, self.receiver, self.sender):
            self._start(weight)

    def score(self, z: Tensor, edges: Edges) -> Tensor:
        received, sent = self._terms(z)
        return F.leaky_relu(spread(received, edges) + spread(sent, edges, senders=True), self.slope)

    def pair(self, z: Tensor) -> PairScore:
        received, sent = self._terms(z)
        one = torch.ones_like(sent)
        return PairScore(torch.stack((received, one), dim=-1), torch.stack((one, sent), dim=-1), Leaky(self.slope))

    def _terms(self, z: Tensor) -> tuple[Tensor, Tensor]:
        """Return <b, W z_i> and <c, W z_j>, each (n, h)."""
        projected = self.project(z).unflatten(-1, (self.receiver.shape[0], -1))  # (n, h, k)
        return (projected * self.receiver).sum(-1), (projected * self.sender).sum(-1)
