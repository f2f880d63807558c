r"""Normalisers: positive edge weights from edge scores, divided by their sums over rows, columns or both.

Weights are computed through their logarithms. For the softmax, :math:`\log w = s`; for squareplus,
:math:`w = \tfrac12 (s + \sqrt{s^2 + 4}) = e^{\operatorname{asinh}(s / 2)}`, so that :math:`\log w =
\operatorname{asinh}(s / 2)` exactly. The division by the sums is a subtraction of logarithms, which neither overflows
nor loses positivity for scores of any size.
"""

import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import ClassVar
from weakref import WeakKeyDictionary

import torch
from torch import Tensor
from torch.compiler import is_compiling

from beltrami.arguments import checked
from beltrami.graph.edges import Compressed, Edges
from beltrami.graph.ops.products import collect, largest, spread

Link = Callable[[Tensor], Tensor]
"""A function from scores to positive weights, (m, heads): :func:`softmax_link` or :func:`squareplus_link`."""
_ISOLATED: WeakKeyDictionary[Compressed, dict[type, Tensor | None]] = WeakKeyDictionary()


def softmax_link(score: Tensor) -> Tensor:
    r"""Logarithm of the softmax's weight :math:`e^s`: the score itself."""
    return score


def squareplus_link(score: Tensor) -> Tensor:
    r"""Logarithm of squareplus, :math:`\tfrac12 (s + \sqrt{s^2 + 4})`; no maximum is subtracted from the score. Its
    gradient tends to one for large scores, so that no edge comes to dominate."""
    return torch.asinh(score / 2)


@checked
class Normaliser(ABC):
    r"""Positive weights :math:`w_{ij} = \mu_{ij} e^{\mathrm{link}(s_{ij})}` divided by sums of them, (m, h) -> (m, h).

    :math:`\mu` is ``edges.weight``; ``link`` is :func:`softmax_link` or :func:`squareplus_link`.
    """

    norm: ClassVar[float]  # p of the p-norm in which the matrix A of the weights does not expand, |A z|_p <= |z|_p

    def __init__(self, link: Link = softmax_link) -> None:
        self.link = link

    def __call__(self, score: Tensor, edges: Edges) -> Tensor:
        log_weight = self.log_weight(score, edges)
        return torch.exp(log_weight - self.log_total(log_weight, edges))

    def log_weight(self, score: Tensor, edges: Edges) -> Tensor:
        """Logarithm of w, (m, h)."""
        log_weight = self.link(score)
        return log_weight if edges.weight is None else log_weight + edges.weight.to(score.dtype).log()[:, None]

    @abstractmethod
    def log_total(self, log_weight: Tensor, edges: Edges) -> Tensor:
        """Logarithm of each edge's divisor, (m, h)."""

    @abstractmethod
    def connected(self, edges: Edges) -> Tensor:
        """Whether each node has an edge in the sums, (n,). The flow A z - z has no term -z at the other nodes."""

    def isolated(self, edges: Edges) -> Tensor | None:
        """Mask (n,) of the nodes that are not connected, or None if all are; computed once for each graph."""
        if is_compiling():
            return ~self.connected(edges)  # whether all are connected is not known
        known = _ISOLATED.setdefault(edges.rows, {})  # the same pattern may have other weights
        if type(self) not in known:
            connected = self.connected(edges)
            known[type(self)] = None if bool(connected.all()) else ~connected
        return known[type(self)]

    def __repr__(self) -> str:
        return f"{type(self).__name__}({getattr(self.link, '__name__', repr(self.link))})"


class Rows(Normaliser):
    r"""Sums over the edges entering each receiver, :math:`\sum_j a_{ij} = 1`, as in the paper: constants are fixed."""

    norm = math.inf

    def log_total(self, log_weight: Tensor, edges: Edges) -> Tensor:
        return spread(log_sum(log_weight, edges), edges)

    def connected(self, edges: Edges) -> Tensor:
        return edges.in_degree() > 0


class Columns(Normaliser):
    r"""Sums over the edges leaving each sender, :math:`\sum_i a_{ij} = 1`: the transposed flow, conserving mass."""

    norm = 1.0

    def log_total(self, log_weight: Tensor, edges: Edges) -> Tensor:
        return spread(log_sum(log_weight, edges, senders=True), edges, senders=True)

    def connected(self, edges: Edges) -> Tensor:
        return edges.out_degree() > 0


class Both(Normaliser):
    r"""Divided by the root of both sums, :math:`a_{ij} = w_{ij} / \sqrt{r_i c_j}`.

    For constant scores this is the symmetrically normalised adjacency matrix. By Cauchy and Schwarz no singular value
    exceeds one, for any weights and directions.
    """

    norm = 2.0

    def log_total(self, log_weight: Tensor, edges: Edges) -> Tensor:
        rows = spread(log_sum(log_weight, edges), edges)
        columns = spread(log_sum(log_weight, edges, senders=True), edges, senders=True)
        return 0.5 * (rows + columns)

    def connected(self, edges: Edges) -> Tensor:
        return edges.in_degree() + edges.out_degree() > 0


def log_sum(log_weight: Tensor, edges: Edges, *, senders: bool = False) -> Tensor:
    r"""Logarithm of the sum of weights at their receivers, or senders, from their logarithms; (m, h) -> (n, h). The
    largest logarithm at each node is subtracted first. Minus infinity at a node without such an edge."""
    top = largest(log_weight, edges, senders=senders)
    relative = torch.exp(log_weight - spread(top, edges, senders=senders))
    # The largest adds one to the sum; a sum below one is empty, and the logarithm of zero has no derivative.
    return top + collect(relative, edges, senders=senders).clamp(min=1).log()
