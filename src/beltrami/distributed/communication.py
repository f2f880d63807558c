"""Differentiable communication: each operation is a linear map of tensors of all processes, with its adjoint.

Units are the parts of the nodes, or the blocks of columns. A process owns consecutive units and holds their rows one
after the other. Values that come together from several units are added in the order of the units.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import torch
from torch import Tensor
from torch.autograd import Function

from beltrami.distributed.workers import Workers
from beltrami.scheme.norm import Norm

Map = Callable[[Tensor], Tensor]


class _LinearMap(Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, forward: Map, adjoint: Map) -> Tensor:
        ctx.adjoint = adjoint
        return forward(x)

    @staticmethod
    def backward(ctx: Any, *grad: Tensor) -> tuple[Tensor | None, ...]:
        return ctx.adjoint(grad[0].contiguous()), None, None


def linear_map(x: Tensor, forward: Map, adjoint: Map) -> Tensor:
    """Return ``forward(x)``; the gradient with respect to ``x`` is ``adjoint`` of that of the result."""
    out: Tensor = _LinearMap.apply(x, forward, adjoint)  # type: ignore[no-untyped-call]
    return out


@dataclass(frozen=True, eq=False)
class PartedIndex:
    """Items by units: ``order`` lists the items unit by unit, ascending in each; ``sizes`` are their lengths."""

    workers: Workers
    order: Tensor  # (k,)
    sizes: list[int]

    @staticmethod
    def of(workers: Workers, unit: Tensor, units: int) -> "PartedIndex":
        """Return the index of items with these units, (k,)."""
        return PartedIndex(workers, unit.argsort(stable=True), torch.bincount(unit, minlength=units).tolist())

    @cached_property
    def place(self) -> Tensor:
        """The place of each item in ``order``, (k,)."""
        return self.order.argsort()

    @property
    def units(self) -> range:
        """The units of this process."""
        return self.workers.owned(len(self.sizes))

    @property
    def own_sizes(self) -> list[int]:
        """The number of items of each unit of this process."""
        return [self.sizes[unit] for unit in self.units]

    @property
    def own(self) -> slice:
        """Where the items of this process lie in ``order``."""
        start = sum(self.sizes[: self.units.start])
        return slice(start, start + sum(self.own_sizes))

    def collect(self, x: Tensor) -> Tensor:
        """Return the rows of all items in their own order, in every process, from those of this process's items. All
        processes must then compute the same: the adjoint takes the gradients of this process's items."""
        return linear_map(x, lambda x: self.workers.gather(x, self.sizes), lambda g: g[self.own])[self.place]

    def to_columns(self, x: Tensor) -> Tensor:
        """Return blocks of columns of all rows from all columns of some rows: (times, own rows, units x width) ->
        (times, rows in ``order``, own units x width)."""
        return linear_map(x, self._to_columns, self._to_rows)

    def to_rows(self, x: Tensor) -> Tensor:
        """The inverse and adjoint of :meth:`to_columns`."""
        return linear_map(x, self._to_rows, self._to_columns)

    def _to_columns(self, x: Tensor) -> Tensor:
        columns, rows = self._columns(x.shape[2] // len(self.sizes)), self.workers.totals(self.sizes)
        shapes = [(x.shape[0], count, columns[self.workers.rank]) for count in rows]
        return torch.cat(_exchange(self.workers, x.split(columns, dim=2), shapes), dim=1)

    def _to_rows(self, x: Tensor) -> Tensor:
        columns, rows = self._columns(x.shape[2] // len(self.units)), self.workers.totals(self.sizes)
        shapes = [(x.shape[0], rows[self.workers.rank], width) for width in columns]
        return torch.cat(_exchange(self.workers, x.split(rows, dim=1), shapes), dim=2)

    def _columns(self, width: int) -> list[int]:
        return self.workers.totals([width] * len(self.sizes))


def _exchange(workers: Workers, sent: Sequence[Tensor], shapes: Sequence[tuple[int, ...]]) -> list[Tensor]:
    """Send a tensor to each process, and return the received tensors, of these shapes."""
    counts = [torch.Size(shape).numel() for shape in shapes]
    flat = torch.cat([x.reshape(-1) for x in sent])
    found = workers.exchange(flat, [x.numel() for x in sent], counts).split(counts)
    return [x.view(shape) for x, shape in zip(found, shapes, strict=True)]


def replicate(workers: Workers, x: Tensor, units: int) -> Tensor:
    """Return a copy of a tensor, which is equal in all processes, for every unit of this process: (...) -> (own units,
    ...). The adjoint adds the gradients of all units in their order, in every process alike."""
    count = len(workers.owned(units))
    return linear_map(
        x, lambda x: x.expand(count, *x.shape).clone(), lambda g: workers.gather(g, [1] * units).sum(0)
    )  # fmt: skip


class GhostExchange:
    """The exchange of ghosts: rows of other parts that a part reads.

    ``ghosts`` are the nodes that each part reads, sorted by their parts. The forward map sends every part its ghosts;
    the adjoint returns their gradients to the parts that own the rows, where they are added in the order of the parts
    that read them. (own rows, ...) -> (ghosts of own parts, ...), part by part.
    """

    def __init__(self, nodes: PartedIndex, part: Tensor, ghosts: Sequence[Tensor]) -> None:
        self.workers, self.rows = nodes.workers, sum(nodes.own_sizes)
        units, own = len(nodes.sizes), nodes.units
        first = torch.tensor([self.workers.owned(units, rank).start for rank in range(self.workers.size)])
        owner = [torch.bucketize(part[each].cpu(), first, right=True) - 1 for each in ghosts]  # process of each ghost
        counts = [torch.bincount(each, minlength=self.workers.size).tolist() for each in owner]  # [part][process]
        mine = [each[(who == self.workers.rank).to(each.device)] for each, who in zip(ghosts, owner, strict=True)]
        self.index = [nodes.place[each] - nodes.own.start for each in mine]  # rows to send for each part
        self.sent = self.workers.totals([len(each) for each in self.index])
        self.counts = [counts[unit] for unit in own]  # [own part][sender]
        self.received = [sum(each) for each in zip(*self.counts, strict=True)]

    def __call__(self, x: Tensor) -> Tensor:
        return linear_map(x, self._send, self._return)

    def _send(self, x: Tensor) -> Tensor:
        found = self.workers.exchange(x[torch.cat(self.index)], self.sent, self.received)
        chunks = found.split([each[r] for r in range(self.workers.size) for each in self.counts])
        return torch.cat([chunk for part in range(len(self.counts)) for chunk in chunks[part :: len(self.counts)]])

    def _return(self, g: Tensor) -> Tensor:
        chunks = g.split([count for each in self.counts for count in each])
        senders = range(self.workers.size)
        sorted_by_sender = torch.cat([chunk for r in senders for chunk in chunks[r :: self.workers.size]])
        found = self.workers.exchange(sorted_by_sender, self.received, self.sent)
        out = g.new_zeros(self.rows, *g.shape[1:])
        for index, chunk in zip(self.index, found.split([len(each) for each in self.index]), strict=True):
            out.index_add_(0, index, chunk)  # no row twice: one term for each part, in their order
        return out


@dataclass(frozen=True, eq=False)
class PartedNorm(Norm):
    """The p-norm of a state whose flat values lie unit by unit, as many times ``sizes`` for each unit of this process;
    ``total`` is the sum of the sizes in all processes. The norm of the norms of the units, in their order."""

    workers: Workers
    sizes: Sequence[int]
    units: int
    total: int

    def __call__(self, x: Tensor, p: float) -> Tensor:
        chunks = x.detach().reshape(sum(self.sizes), -1).split(list(self.sizes))
        norms = torch.stack([torch.linalg.vector_norm(chunk, p) for chunk in chunks])
        norm: Tensor = torch.linalg.vector_norm(self.workers.gather(norms, [1] * self.units), p)
        return norm

    def count(self, x: Tensor) -> int:
        return x.numel() // sum(self.sizes) * self.total
