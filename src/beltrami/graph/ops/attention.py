"""Attention in one piece: scores, weights and aggregation, with nothing kept on the edges where a kernel serves."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from torch.autograd import Function
from torch.func import debug_unwrap
from torch.nn import functional as F

from beltrami.graph.edges import Edges
from beltrami.graph.normalise import Both, Columns, Normaliser, Rows, softmax_link, squareplus_link
from beltrami.graph.ops import dispatch
from beltrami.graph.ops.products import aggregate, edge_dot

Activation = Callable[[Tensor], Tensor]
WIDEST = 1024  # channels, padded, that a tile of the kernels holds


def identity(x: Tensor) -> Tensor:
    """The dot product itself."""
    return x


def exponential(x: Tensor) -> Tensor:
    """The exponential kernel: the dot product is its exponent."""
    return torch.exp(x)


@dataclass(frozen=True)
class Leaky:
    """LeakyReLU with its slope below zero."""

    slope: float

    def __call__(self, x: Tensor) -> Tensor:
        return F.leaky_relu(x, self.slope)


@dataclass(frozen=True)
class PairScore:
    r"""A score that is a function of a dot product across each edge, :math:`s_{ij} = f(\langle p_i, q_j \rangle)`.

    A function f without a kernel of its own is any function: it then takes the path of plain operations.

    Shapes:
        ``p`` of the receivers, ``q`` of the senders (n, h, k); ``activation`` is f, (m, h) -> (m, h).
    """

    p: Tensor
    q: Tensor
    activation: Activation = identity

    def score(self, edges: Edges) -> Tensor:
        """(m, h)."""
        return self.activation(edge_dot(self.p, self.q, edges))


def squared_distance(p: Tensor, q: Tensor, *, start: Tensor | None = None) -> PairScore:
    r"""The pair whose dot product is :math:`c - \tfrac12 \|p_i - q_j\|^2`, by two more channels; ``start`` is c."""
    here, one = -0.5 * p.square().sum(-1, keepdim=True), p.new_ones(()).expand(*p.shape[:-1], 1)
    there = -0.5 * q.square().sum(-1, keepdim=True)
    here = here if start is None else here + start
    return PairScore(torch.cat((p, here, one), dim=-1), torch.cat((q, one, there), dim=-1))


def attend(
    pair: PairScore, z: Tensor, edges: Edges, *, normalise: Normaliser, storage: torch.dtype | None = None
) -> Tensor:
    r"""The state averaged by attention, :math:`(A z)_i = \sum_j \frac1h \sum_{\eta} a_{ij\eta} z_j`.

    The weights :math:`a_{ij\eta}` are the pair's scores, linked and normalised. On a GPU one kernel does it all over
    rows, two where sums over senders are needed first; the derivatives compute the scores again. There, and only
    there, ``storage`` may be a shorter type in which what is gathered along edges is held; sums stay as they were.

    Shapes:
        ``pair`` (n, h, k), ``z`` (n, d) -> (n, d).
    """
    if not _fused(pair, z, edges, normalise):
        return aggregate(normalise(pair.score(edges), edges).mean(-1), z, edges)
    rest = (pair.activation, edges, normalise, storage)
    out: Tensor = _Attend.apply(pair.p, pair.q, z, *rest)  # type: ignore[no-untyped-call]
    return out


def _fused(pair: PairScore, z: Tensor, edges: Edges, normalise: Normaliser) -> bool:
    known = pair.activation in (identity, exponential) or isinstance(pair.activation, Leaky)
    plain = type(normalise) in (Rows, Columns, Both) and normalise.link in (softmax_link, squareplus_link)
    fixed = edges.weight is None or not edges.weight.requires_grad
    narrow = max(pair.p.shape[1] * pair.p.shape[2], z.shape[1]) <= WIDEST // 2
    some = min(z.numel(), pair.p.numel()) > 0
    alone = debug_unwrap(z) is z and debug_unwrap(pair.p) is pair.p  # no batch of torch.func.vmap
    return (
        alone and known and plain and fixed and narrow and some and pair.p.dtype == z.dtype and dispatch.has_kernel(z)
    )


class _Attend(Function):
    @staticmethod
    def forward(
        ctx: Any, p: Tensor, q: Tensor, z: Tensor, f: Activation, edges: Edges, by: Normaliser, storage: Any
    ) -> Tensor:
        from beltrami.graph.ops.triton import forward

        task = _task(p, z, f, edges, by)
        held = [x.to(storage or x.dtype).contiguous() for x in (p, q, z)]
        if isinstance(by, Rows):
            out, rows = forward.attend_rows(task, edges.rows, *held)
            totals: tuple[Tensor | None, Tensor | None] = (rows, None)
        else:
            columns = forward.log_sums(task, edges.columns, held[1], held[0])
            totals = (None, columns)
            if isinstance(by, Both):
                totals = (0.5 * forward.log_sums(task, edges.rows, held[0], held[1]), 0.5 * columns)
            out = forward.weighted_sum(task, edges.rows, held[0], held[1], totals, held[2])
        ctx.save_for_backward(p, q, z, *totals)
        ctx.task, ctx.f, ctx.edges, ctx.by, ctx.storage = task, f, edges, by, storage
        return out

    @staticmethod
    def backward(ctx: Any, *grad: Tensor) -> tuple[Tensor | None, ...]:
        p, q, z, *totals = ctx.saved_tensors
        if torch.is_grad_enabled():  # somebody wants to differentiate this too: plain operations can
            gradients = _again(ctx, grad[0], p, q, z)
        else:
            held = [x.to(ctx.storage or x.dtype).contiguous() for x in (p, q, z, grad[0])]
            gradients = _pull(ctx.task, ctx.edges, held, (totals[0], totals[1]))
        return (*gradients, None, None, None, None)


def _pull(
    task: Any, edges: Edges, held: list[Tensor], totals: tuple[Tensor | None, Tensor | None]
) -> tuple[Tensor, ...]:
    from beltrami.graph.ops.triton import backward

    p, q, z, g = held
    rows, columns = totals
    turned = (columns, rows)  # as seen from the senders
    b = p.new_empty(edges.num_edges, dtype=task.sum_dtype)
    by_rows = by_columns = None
    if rows is not None:
        by_rows = backward.moments(task, edges.rows, (p, q), totals, (g, z), b, fresh=True)
    if columns is not None:
        by_columns = backward.moments(task, edges.columns, (q, p), turned, (z, g), b, fresh=rows is None)
    dp, _ = backward.pull(task, edges.rows, (p, q), totals, (by_rows, by_columns), b)
    dq, dz = backward.pull(task, edges.columns, (q, p), turned, (by_columns, by_rows), b, g)
    return dp, dq, dz


def _again(ctx: Any, g: Tensor, *inputs: Tensor) -> tuple[Tensor | None, ...]:
    """The derivatives by plain operations, recorded. By names of our own: q may have been computed from z."""
    p, q, z = (x.view_as(x) for x in inputs)
    weights = ctx.by(PairScore(p, q, ctx.f).score(ctx.edges), ctx.edges).mean(-1)
    wanted = [x for x, needed in zip((p, q, z), ctx.needs_input_grad, strict=False) if needed]
    found = iter(torch.autograd.grad(aggregate(weights, z, ctx.edges), wanted, g, create_graph=True))
    return tuple(next(found) if needed else None for needed in ctx.needs_input_grad[:3])


def _task(p: Tensor, z: Tensor, f: Activation, edges: Edges, by: Normaliser) -> Any:
    from beltrami.graph.ops.triton.task import Task

    return Task(
        shape="leaky" if isinstance(f, Leaky) else "exponential" if f is exponential else "identity",
        slope=f.slope if isinstance(f, Leaky) else 0.0,
        squareplus_link=by.link is squareplus_link,
        weight=None if edges.weight is None else edges.weight.contiguous(),
        heads=p.shape[1],
        channels=p.shape[2],
        dtype=z.dtype,
    )
