"""Diffusivity: how strongly each edge diffuses."""

from abc import ABC, abstractmethod
from collections.abc import Callable

import torch
from torch import Tensor, nn

from beltrami.graph import Edges, Normaliser, PairScore, Rows, edge_dot, spread

Start = Callable[[Tensor], Tensor]


def xavier(weight: Tensor) -> Tensor:
    """Glorot and Bengio's uniform start: scores differ between edges from the first step on."""
    return nn.init.xavier_uniform_(weight)


def constant(value: float = 1e-5) -> Start:
    """The paper's start: every weight the same. Dot products are then nearly equal and attention starts uniform; with
    weight decay on top, it stays there. Not for :class:`Cosine` and :class:`Pearson`, whose scores know no size: there
    all channels of a projection are equal, and the score is a sign, or none.
    """

    def fill(weight: Tensor) -> Tensor:
        return nn.init.constant_(weight, value)

    return fill


class EdgeWeights(nn.Module, ABC):
    r"""Weights :math:`a(z_i, z_j)` on the edges, a function of the state; what any flow is driven by.

    Shapes:
        ``z`` (n, d), ``edges`` over m edges -> (m,).
    """

    @abstractmethod
    def forward(self, z: Tensor, edges: Edges) -> Tensor:
        """The weights at the state ``z``, (m,)."""

    @abstractmethod
    def uniform(self, z: Tensor, edges: Edges) -> Tensor:
        """The weights if no state differed from another, (m,); ``z`` says their type."""

    @torch.no_grad()
    def spread(self, z: Tensor, edges: Edges) -> float:
        r"""How far the weights are from uniform: the standard deviation over edges of :math:`a_{ij} / \bar a_{ij}`.

        :math:`\bar a` are the weights of :meth:`uniform`; for ``Rows`` on an unweighted graph, :math:`1 / \bar a_{ij}`
        is the receiver's degree.
        """
        return float((self(z, edges) / self.uniform(z, edges)).std(correction=0)) if edges.num_edges else 0.0


class Diffusivity(EdgeWeights):
    r"""The weights :math:`a(z_i, z_j)` of eq. (7): scores on the edges, normalised, averaged over heads.

    Args:
        normalise: what the weights sum to one over, and by which link; eq. (13) is ``Rows(softmax)``.

    Shapes:
        ``z`` (n, d), ``edges`` over m edges -> (m,).
    """

    def __init__(self, normalise: Normaliser | None = None) -> None:
        super().__init__()
        self.normalise = Rows() if normalise is None else normalise

    @abstractmethod
    def score(self, z: Tensor, edges: Edges) -> Tensor:
        """Raw scores, (m, h)."""

    def forward(self, z: Tensor, edges: Edges) -> Tensor:
        heads: Tensor = self.normalise(self.score(z, edges), edges)
        return heads.mean(-1)

    def uniform(self, z: Tensor, edges: Edges) -> Tensor:
        """Those of constant scores under the same normaliser."""
        return self.normalise(z.new_zeros(edges.num_edges, 1), edges)[:, 0]


class Paired(Diffusivity):
    r"""A diffusivity whose score is a function of a dot product, :math:`s_{ij} = f(\langle p_i, q_j \rangle)`.

    Saying so lets a flow score, normalise and aggregate in one go (:func:`~beltrami.graph.attend`).
    """

    @abstractmethod
    def pair(self, z: Tensor) -> PairScore | None:
        """p, q and f at the state ``z`` (n, d), such that theirs is :meth:`score`; None without such a form."""


class Projection(nn.Module):
    r"""Keys :math:`W_K z_i` of receivers and queries :math:`W_Q z_j` of senders, h heads of width k each.

    Projections happen on n nodes; only dot products are taken on the m edges.

    Shapes:
        ``z`` (n, channels) -> key, query (n, heads, width // heads).
    """

    def __init__(self, channels: int, width: int, *, heads: int, start: Start) -> None:
        super().__init__()
        if heads < 1 or width < heads or width % heads:
            raise ValueError(f"the attention width must be a multiple of `heads`; got width={width}, heads={heads}.")
        self.heads = heads
        self.key = nn.Linear(channels, width, bias=False)
        self.query = nn.Linear(channels, width, bias=False)
        start(self.key.weight)
        start(self.query.weight)

    def forward(self, z: Tensor) -> tuple[Tensor, Tensor]:
        return self._heads(self.key(z)), self._heads(self.query(z))

    def _heads(self, projected: Tensor) -> Tensor:
        heads: Tensor = projected.unflatten(-1, (self.heads, -1))
        return heads


def edge_distance2(p: Tensor, q: Tensor, edges: Edges) -> Tensor:
    r"""Squared distance across each edge, :math:`\|p_i - q_j\|^2`; (n, h, k) -> (m, h)."""
    here, there = p.square().sum(-1), q.square().sum(-1)
    squared = spread(here, edges) + spread(there, edges, senders=True) - 2 * edge_dot(p, q, edges)
    return squared.clamp(min=0)
