r"""Normalisers: from edge scores to weights, and what the weights sum to one over.

Every positive weight is handled through its logarithm. For the softmax, :math:`\log w = s`; for squareplus,
:math:`w = \tfrac12 (s + \sqrt{s^2 + 4}) = e^{\operatorname{asinh}(s / 2)}`, so that :math:`\log w =
\operatorname{asinh}(s / 2)` exactly. Either is then divided by its sums in the log domain, which neither overflows nor
loses positivity for scores of any size.
"""

import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import ClassVar
from weakref import WeakKeyDictionary

import torch
from torch import Tensor

from beltrami.graph.edges import Edges
from beltrami.graph.ops import collect, largest, spread

Link = Callable[[Tensor], Tensor]
_IDLE: WeakKeyDictionary[Edges, dict[type, Tensor | None]] = WeakKeyDictionary()


def softmax_link(score: Tensor) -> Tensor:
    r"""Logarithm of the softmax's weight :math:`e^s`: the score itself."""
    return score


def squareplus_link(score: Tensor) -> Tensor:
    r"""Logarithm of squareplus, :math:`\tfrac12 (s + \sqrt{s^2 + 4})`, on the raw score: no maximum is subtracted.

    Its gradient tends to one for large scores, so that no edge comes to dominate.
    """
    return torch.asinh(score / 2)


class Normaliser(ABC):
    r"""Positive weights :math:`w_{ij} = \mu_{ij} e^{\mathrm{link}(s_{ij})}` divided by sums of themselves.

    :math:`\mu` is the edges' own measure (``edges.weight``).

    Args:
        link: :func:`softmax` or :func:`squareplus`.

    Attributes:
        norm: p of the p-norm in which the matrix of the weights does not expand, :math:`\|A z\|_p \le \|z\|_p`.

    Shapes:
        ``score`` (m, h) -> (m, h).
    """

    norm: ClassVar[float]

    def __init__(self, link: Link = softmax_link) -> None:
        self.link = link

    def __call__(self, score: Tensor, edges: Edges) -> Tensor:
        log_weight = self.link(score)
        if edges.weight is not None:
            log_weight = log_weight + edges.weight.to(score.dtype).log()[:, None]
        return torch.exp(log_weight - self.log_total(log_weight, edges))

    @abstractmethod
    def log_total(self, log_weight: Tensor, edges: Edges) -> Tensor:
        """Logarithm of what each edge's weight is divided by, (m, h)."""

    @abstractmethod
    def anchored(self, edges: Edges) -> Tensor:
        """Whether the flow A z - z holds the term -z at each node, (n,): not where a node has no edge to balance it."""

    def idle(self, edges: Edges) -> Tensor | None:
        """The nodes that are not anchored, a mask (n,); None where there are none, found out once for a graph."""
        known = _IDLE.setdefault(edges, {})
        if type(self) not in known:
            anchored = self.anchored(edges)
            known[type(self)] = None if bool(anchored.all()) else ~anchored
        return known[type(self)]

    def __repr__(self) -> str:
        return f"{type(self).__name__}({getattr(self.link, '__name__', repr(self.link))})"


class Rows(Normaliser):
    r"""Over the edges entering each receiver, :math:`\sum_j a_{ij} = 1`, as in the paper: constants are stationary."""

    norm = math.inf

    def log_total(self, log_weight: Tensor, edges: Edges) -> Tensor:
        return spread(log_sum(log_weight, edges), edges)

    def anchored(self, edges: Edges) -> Tensor:
        return edges.in_degree() > 0


class Columns(Normaliser):
    r"""Over the edges leaving each sender, :math:`\sum_i a_{ij} = 1`: the transposed flow, which conserves mass."""

    norm = 1.0

    def log_total(self, log_weight: Tensor, edges: Edges) -> Tensor:
        return spread(log_sum(log_weight, edges, senders=True), edges, senders=True)

    def anchored(self, edges: Edges) -> Tensor:
        return edges.out_degree() > 0


class Both(Normaliser):
    r"""Balanced by the root of both sums, :math:`a_{ij} = w_{ij} / \sqrt{r_i c_j}`.

    For constant scores this is the symmetrically normalised adjacency matrix. By Cauchy and Schwarz no singular value
    exceeds one, for any weights and directions.
    """

    norm = 2.0

    def log_total(self, log_weight: Tensor, edges: Edges) -> Tensor:
        rows = spread(log_sum(log_weight, edges), edges)
        columns = spread(log_sum(log_weight, edges, senders=True), edges, senders=True)
        return 0.5 * (rows + columns)

    def anchored(self, edges: Edges) -> Tensor:
        return edges.in_degree() + edges.out_degree() > 0


def log_sum(log_weight: Tensor, edges: Edges, *, senders: bool = False) -> Tensor:
    r"""Logarithm of the weights summed at their receivers, or senders, from their logarithms; (m, h) -> (n, h).

    Stable: the largest weight of each group is taken out first. Minus infinity where a node has no such edge.
    """
    top = largest(log_weight, edges, senders=senders)
    relative = torch.exp(log_weight - spread(top, edges, senders=senders))
    # The largest is in the sum as one; a sum below that is empty, and the logarithm of zero has no derivative.
    return top + collect(relative, edges, senders=senders).clamp(min=1).log()
