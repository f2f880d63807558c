"""Diffusivities from dot products of projected coordinates: scaled, cosine, Pearson."""

from torch import Tensor
from torch.nn import functional as F

from beltrami.diffusivity.base import Paired, Projection, Start, xavier
from beltrami.graph import Edges, Normaliser, PairScore, edge_dot


class ScaledDot(Paired):
    r"""Scaled dot product, eq. (13).

    .. math:: a(z_i, z_j) = \mathrm{softmax}_j \frac{\langle W_K z_i, W_Q z_j \rangle}{d_k}

    The freest score, and the one whose size is not bounded: the first to overfit when labels are few.

    Args:
        channels: width of ``z``.
        width: width of the projections, all heads together.
        heads: number of heads; their weights are averaged.
        d_k: what scores are divided by; the width of one head by default.
        normalise: what the weights sum to one over.
        start: how the projections begin.
    """

    def __init__(
        self,
        channels: int,
        width: int,
        *,
        heads: int = 1,
        d_k: float | None = None,
        normalise: Normaliser | None = None,
        start: Start = xavier,
    ) -> None:
        super().__init__(normalise)
        if d_k is not None and not d_k > 0:
            raise ValueError(f"ScaledDot needs a positive `d_k`; got {d_k}.")
        self.project = Projection(channels, width, heads=heads, start=start)
        self.d_k = width / heads if d_k is None else d_k

    def score(self, z: Tensor, edges: Edges) -> Tensor:
        key, query = self.project(z)
        return edge_dot(key, query, edges) / self.d_k

    def pair(self, z: Tensor) -> PairScore:
        key, query = self.project(z)
        return PairScore(key / self.d_k, query)


class Cosine(Paired):
    r"""Cosine similarity of projected coordinates, eq. (15).

    .. math:: a(z_i, z_j) = \mathrm{softmax}_j \frac{\langle W_K z_i, W_Q z_j\rangle}{\|W_K z_i\| \|W_Q z_j\|}

    Bounded scores: no edge can dominate, whatever the scale of ``z``.

    Args:
        channels: width of ``z``.
        width: width of the projections, all heads together.
        heads: number of heads; their weights are averaged.
        normalise: what the weights sum to one over.
        start: how the projections begin.
    """

    def __init__(
        self,
        channels: int,
        width: int,
        *,
        heads: int = 1,
        normalise: Normaliser | None = None,
        start: Start = xavier,
    ) -> None:
        super().__init__(normalise)
        self.project = Projection(channels, width, heads=heads, start=start)

    def score(self, z: Tensor, edges: Edges) -> Tensor:
        return self.pair(z).score(edges)

    def pair(self, z: Tensor) -> PairScore:
        key, query = self.project(z)
        return PairScore(F.normalize(key, dim=-1), F.normalize(query, dim=-1))


class Pearson(Paired):
    r"""Correlation of projected coordinates, eq. (16): the cosine of the projections less their mean over channels.

    .. math:: a(z_i, z_j) = \mathrm{softmax}_j \frac{\langle W_K z_i - \overline{W_K z_i},
        W_Q z_j - \overline{W_Q z_j}\rangle}{\|W_K z_i - \overline{W_K z_i}\| \|W_Q z_j - \overline{W_Q z_j}\|}

    As bounded as :class:`Cosine`, and blind to a shift of all channels.

    Args:
        channels: width of ``z``.
        width: width of the projections, all heads together; at least two a head.
        heads: number of heads; their weights are averaged.
        normalise: what the weights sum to one over.
        start: how the projections begin.
    """

    def __init__(
        self,
        channels: int,
        width: int,
        *,
        heads: int = 1,
        normalise: Normaliser | None = None,
        start: Start = xavier,
    ) -> None:
        super().__init__(normalise)
        if width < 2 * heads:
            raise ValueError(f"Pearson needs at least two channels a head; got width={width}, heads={heads}.")
        self.project = Projection(channels, width, heads=heads, start=start)

    def score(self, z: Tensor, edges: Edges) -> Tensor:
        return self.pair(z).score(edges)

    def pair(self, z: Tensor) -> PairScore:
        key, query = (p - p.mean(-1, keepdim=True) for p in self.project(z))
        return PairScore(F.normalize(key, dim=-1), F.normalize(query, dim=-1))
