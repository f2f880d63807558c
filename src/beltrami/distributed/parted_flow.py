"""Flows by parts of the nodes, with an exchange at every evaluation, and linear flows by blocks of columns."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional as F

from beltrami.distributed.communication import PartedIndex, PartedNorm, replicate
from beltrami.distributed.parted_graph import PartedGraph
from beltrami.errors import NotFinite, SolverError
from beltrami.flow import BeltramiFlow, LinearField, LinearFlow
from beltrami.flow.base import BoundField
from beltrami.flow.beltrami import linear_field
from beltrami.graph import Both, Rows
from beltrami.graph.normalise import log_sum
from beltrami.graph.ops.products import spread
from beltrami.scheme import PID, Exponential, LinearVectorField, Scheme, Solution, SparsityPattern, TimeStepping, solve

DiffusionFlow = LinearFlow | BeltramiFlow


def edge_weights(flows: Sequence[DiffusionFlow], graph: PartedGraph, local: Sequence[Tensor]) -> list[Tensor]:
    """Return the weights a on the edges of each own part; they are valid on edges that enter own nodes.

    ``flows`` is the flow with the weights of each part, ``local`` the state of its own nodes and ghosts. Sums over the
    edges that leave a node are computed where the node is owned, and sent to the parts that read it.
    """
    parts = list(zip(flows, graph.parts, local, strict=True))
    normalise = flows[0].diffusivity.normalise
    if isinstance(normalise, Rows):
        return [flow.diffusivity(z, part.edges) for flow, part, z in parts]
    logs = [normalise.log_weight(flow.diffusivity.score(z, part.edges), part.edges) for flow, part, z in parts]
    own = [log_sum(log, part.edges, senders=True)[: part.rows] for log, part in zip(logs, graph.parts, strict=True)]
    weights = []
    for log, part, sent in zip(logs, graph.parts, graph.extend(torch.cat(own)), strict=True):
        total = spread(sent, part.edges, senders=True)
        if isinstance(normalise, Both):
            total = 0.5 * (spread(log_sum(log, part.edges), part.edges) + total)
        weights.append(torch.exp(log - total).mean(-1))
    return weights


class PartedField(BoundField):
    """The vector field of a flow by parts; the state is the rows of the own parts. ``start`` is z(0)."""

    def __init__(self, flows: Sequence[DiffusionFlow], graph: PartedGraph, start: Tensor, tensors: Sequence[Tensor]):
        self.flows, self.graph, self._start = flows, graph, graph.extend(start)
        frozen = isinstance(flows[0], LinearFlow)
        self._fields: list[BoundField] | None = None
        if frozen or isinstance(flows[0].diffusivity.normalise, Rows):
            self._fields = self._bind(self._start, frozen)
        bound = [tensor for field in self._fields or () for tensor in field.tensors]
        self.tensors = (*tensors, *bound, *(self._start if self._fields is None else ()))

    def __call__(self, t: float, z: Tensor) -> Tensor:
        local = self.graph.extend(z)
        fields = self._bind(local, True) if self._fields is None else self._fields
        each = zip(fields, local, self.graph.parts, strict=True)
        return torch.cat([field(t, z)[: part.rows] for field, z, part in each])

    def _bind(self, local: Sequence[Tensor], frozen: bool) -> list[BoundField]:
        """Return the fields of the parts, with the weights at this state if ``frozen``."""
        if not frozen:
            each = zip(self.flows, self.graph.parts, self._start, strict=True)
            return [flow.bind(z, part.edges) for flow, part, z in each]
        weights = edge_weights(self.flows, self.graph, local)
        each_part = zip(self.flows, self.graph.parts, self._start, weights, strict=True)
        return [linear_field(flow, part.edges, start, a) for flow, part, start, a in each_part]


def solve_by_parts(
    flows: Sequence[DiffusionFlow], graph: PartedGraph, z: Tensor, ts: tuple[float, ...], scheme: TimeStepping,
    tensors: Sequence[Tensor],
) -> Solution:  # fmt: skip
    """Return the states of the own parts, (times, own rows, d); steps are chosen by the norm over all parts.

    ``tensors`` are those of ``flows`` that receive gradients.
    """
    workers, norm = graph.nodes.workers, row_norm(graph.nodes)
    if isinstance(scheme, Scheme) and isinstance(scheme.controller, PID):
        scheme = replace(scheme, controller=replace(scheme.controller, norm=norm))
    failed: SolverError | None = None
    try:
        field = PartedField(flows, graph, z, tensors)
        solution = solve(field, z, ts, scheme, field.tensors)
    except SolverError as error:  # of all processes at the same point, except for values that are not finite at the end
        failed = error
    workers.fail_together(failed)
    return solution


def solve_by_columns(
    flows: Sequence[DiffusionFlow], graph: PartedGraph, z: Tensor, ts: tuple[float, ...], scheme: Exponential
) -> list[Solution]:
    """Return the states at all nodes of each own block of columns, (times, n, width); the last block is padded with
    zeros.

    Nothing is sent during the solves, except for the norms by which the number of terms is chosen for all blocks.
    """
    units, workers = len(graph.nodes.sizes), graph.nodes.workers
    local = edge_weights(flows, graph, graph.extend(z))
    incoming = [a[part.incoming] for a, part in zip(local, graph.parts, strict=True)]
    a = replicate(workers, graph.edges.collect(torch.cat(incoming)), units)
    width = -(-z.shape[1] // units)
    columns = graph.nodes.to_columns(F.pad(z, (0, width * units - z.shape[1]))[None])[0][graph.nodes.place]
    starts = [block.clone() for block in columns.split(width, dim=1)]
    each = zip(flows, starts, a, strict=True)
    fields = [linear_field(flow, graph.whole, start, own.clone()) for flow, start, own in each]
    slopes = [field(ts[0], y) for field, y in zip(fields, starts, strict=True)]
    norm = PartedNorm(workers, [width] * len(fields), units, z.shape[1])
    alpha = torch.ones_like(slopes[0][0, 0]) if fields[0].alpha is None else fields[0].alpha
    together = ColumnFields(fields)
    found = replace(scheme, norm=norm).expand(together, alpha, torch.stack(starts), torch.stack(slopes), ts[-1] - ts[0])
    solutions = []
    for k, (field, y, slope) in enumerate(zip(fields, starts, slopes, strict=True)):
        own = replace(found, blocks=tuple(block[:, 0, k : k + 1].contiguous() for block in found.blocks))
        solutions.append(own.solution(field, y, slope, ts))
    return solutions


class ColumnFields(LinearVectorField):
    """Linear fields of blocks of columns as one, for the choice of the number of terms; states (blocks, n, width)."""

    def __init__(self, fields: Sequence[LinearField]) -> None:
        self.fields, self.alpha, self.norm = fields, fields[0].alpha, fields[0].norm
        self.a = torch.stack([field.a for field in fields])

    @property
    def pattern(self) -> "BlockPattern":
        return BlockPattern(self.fields[0].pattern)

    def __call__(self, t: float, y: Tensor) -> Tensor:
        return torch.stack([field(t, each) for field, each in zip(self.fields, y, strict=True)])


@dataclass(frozen=True)
class BlockPattern(SparsityPattern):
    """The steps of a recurrence for one run of blocks of columns, by a ``pattern`` that takes the blocks as runs."""

    pattern: SparsityPattern

    def term_dtype(self, w: Tensor) -> torch.dtype:
        return self.pattern.term_dtype(w)

    def advance(self, out: Tensor, a: Tensor, y: Tensor, *, factor: float, previous: Any) -> None:
        before = None if previous is None else (previous[0], previous[1][0])
        self.pattern.advance(out[0], a[0], y[0], factor=factor, previous=before)

    def pull(
        self, out: Tensor, a: Tensor, p: Tensor, *, factor: float, previous: Any, cotangent: Any, edge_sums: Any
    ) -> None:  # fmt: skip
        before = None if previous is None else (previous[0], previous[1][0])
        sums = None if edge_sums is None else (edge_sums[0][0], edge_sums[1][0])
        given = (cotangent[0].expand(len(out[0])), cotangent[1][0])
        self.pattern.pull(out[0], a[0], p[0], factor=factor, previous=before, cotangent=given, edge_sums=sums)


def row_norm(nodes: PartedIndex) -> PartedNorm:
    """Return the norm of states by parts."""
    return PartedNorm(nodes.workers, nodes.own_sizes, len(nodes.sizes), sum(nodes.sizes))


def check_finite(z: Tensor, norm: PartedNorm) -> None:
    """Refuse, in all processes, a state that is not finite in one of them."""
    if not bool(torch.isfinite(norm(z, float("inf")))):
        raise NotFinite("the encoded state z(0) holds values that are NaN or infinite: try a smaller learning rate.")
