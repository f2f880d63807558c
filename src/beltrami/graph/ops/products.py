"""The hot operations on a graph with their derivatives.

``aggregate`` and ``edge_dot`` are each other's derivative, and so are ``collect`` and ``spread``: the four are closed
under differentiation, to any order, and nothing of size (edges x channels) is stored. Under ``torch.func.vmap`` the
runs of a batch are heads side by side, or more channels where they share their weights: one product for all. On a CPU,
where a launch costs little and a copy into that order much, they are taken one by one.
"""

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor
from torch.autograd import Function

from beltrami.graph.edges import Edges
from beltrami.graph.ops import dispatch


def aggregate(a: Tensor, z: Tensor, edges: Edges, *, transposed: bool = False) -> Tensor:
    r"""Weighted sum over neighbours.

    .. math:: (A z)_i = \sum_{j : (i, j) \in E'} a_{ij} z_j, \qquad (A^\top z)_j = \sum_{i} a_{ij} z_i

    Shapes:
        ``a`` (m,), ``z`` (n, d) -> (n, d); or with heads ``a`` (m, h), ``z`` (n, h, k) -> (n, h, k).
    """
    if a.dim() == 1:
        return aggregate(a[:, None], z[:, None], edges, transposed=transposed)[:, 0]
    out: Tensor = _Aggregate.apply(a, z, edges, transposed)  # type: ignore[no-untyped-call]
    return out


def edge_dot(p: Tensor, q: Tensor, edges: Edges) -> Tensor:
    r"""Dot product across each edge, :math:`\langle p_i, q_j \rangle`; p at the receiver, q at the sender.

    Shapes:
        ``p``, ``q`` (n, d) -> (m,); or with heads (n, h, k) -> (m, h).
    """
    if p.dim() == 2:
        return edge_dot(p[:, None], q[:, None], edges)[:, 0]
    out: Tensor = _EdgeDot.apply(p, q, edges)  # type: ignore[no-untyped-call]
    return out


def spread(v: Tensor, edges: Edges, *, senders: bool = False) -> Tensor:
    """Node values on the edges: ``v_i``, or ``v_j`` from the senders; (n, h) -> (m, h)."""
    out: Tensor = _Spread.apply(v, edges, senders)  # type: ignore[no-untyped-call]
    return out


def collect(e: Tensor, edges: Edges, *, senders: bool = False) -> Tensor:
    """Edge values summed at their receivers, or at their senders; (m, h) -> (n, h)."""
    out: Tensor = _Collect.apply(e, edges, senders)  # type: ignore[no-untyped-call]
    return out


def largest(e: Tensor, edges: Edges, *, senders: bool = False) -> Tensor:
    """The largest of the edge values at their receivers, or at their senders; (m, h) -> (n, h).

    Minus infinity at a node without such an edge. No gradient passes through it.
    """
    out: Tensor = _Largest.apply(e.detach(), edges, senders)  # type: ignore[no-untyped-call]
    return out


class _Aggregate(Function):
    @staticmethod
    def forward(a: Tensor, z: Tensor, edges: Edges, transposed: bool) -> Tensor:
        return dispatch.spmm(edges.columns if transposed else edges.rows, a, z)

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:
        a, z, ctx.edges, ctx.transposed = inputs
        ctx.save_for_backward(a, z)

    @staticmethod
    def backward(ctx: Any, *grad: Tensor) -> tuple[Tensor | None, Tensor | None, None, None]:
        (g,), (a, z) = grad, ctx.saved_tensors
        needs_a, needs_z, *_ = ctx.needs_input_grad
        da = dz = None
        if needs_a:
            da = edge_dot(z, g, ctx.edges) if ctx.transposed else edge_dot(g, z, ctx.edges)
        if needs_z:
            dz = aggregate(a, g, ctx.edges, transposed=not ctx.transposed)
        return da, dz, None, None

    @staticmethod
    def vmap(
        info: Any, in_dims: tuple[int | None, ...], a: Tensor, z: Tensor, edges: Edges, transposed: bool
    ) -> tuple[Tensor, int]:
        runs = info.batch_size
        if dispatch.apart(z):
            return one_by_one(lambda a, z: aggregate(a, z, edges, transposed=transposed), in_dims, a, z)
        if in_dims[0] is None:
            wide = aggregate(a, as_channels(z, in_dims[1], runs), edges, transposed=transposed)
            return wide.unflatten(2, (runs, -1)), 2
        stacked = as_heads(a, in_dims[0], runs), as_heads(z, in_dims[1], runs)
        return aggregate(*stacked, edges, transposed=transposed).unflatten(1, (runs, -1)), 1


class _EdgeDot(Function):
    @staticmethod
    def forward(p: Tensor, q: Tensor, edges: Edges) -> Tensor:
        return dispatch.sddmm(edges.rows, p, q)

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:
        p, q, ctx.edges = inputs
        ctx.save_for_backward(p, q)

    @staticmethod
    def backward(ctx: Any, *grad: Tensor) -> tuple[Tensor | None, Tensor | None, None]:
        (g,), (p, q) = grad, ctx.saved_tensors
        needs_p, needs_q, _ = ctx.needs_input_grad
        dp = aggregate(g, q, ctx.edges) if needs_p else None
        dq = aggregate(g, p, ctx.edges, transposed=True) if needs_q else None
        return dp, dq, None

    @staticmethod
    def vmap(info: Any, in_dims: tuple[int | None, ...], p: Tensor, q: Tensor, edges: Edges) -> tuple[Tensor, int]:
        runs = info.batch_size
        if dispatch.apart(p):
            return one_by_one(lambda p, q: edge_dot(p, q, edges), in_dims, p, q)
        stacked = as_heads(p, in_dims[0], runs), as_heads(q, in_dims[1], runs)
        return edge_dot(*stacked, edges).unflatten(1, (runs, -1)), 1


class _Spread(Function):
    @staticmethod
    def forward(v: Tensor, edges: Edges, senders: bool) -> Tensor:
        return dispatch.spread(v, edges.j if senders else edges.i)

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:
        _, ctx.edges, ctx.senders = inputs

    @staticmethod
    def backward(ctx: Any, *grad: Tensor) -> tuple[Tensor, None, None]:
        return collect(grad[0], ctx.edges, senders=ctx.senders), None, None

    @staticmethod
    def vmap(info: Any, in_dims: tuple[int | None, ...], v: Tensor, edges: Edges, senders: bool) -> tuple[Tensor, int]:
        if dispatch.apart(v):
            return one_by_one(lambda v: spread(v, edges, senders=senders), in_dims, v)
        stacked = as_heads(v, in_dims[0], info.batch_size)
        return spread(stacked, edges, senders=senders).unflatten(1, (info.batch_size, -1)), 1


class _Collect(Function):
    @staticmethod
    def forward(e: Tensor, edges: Edges, senders: bool) -> Tensor:
        return dispatch.row_sums(edges.columns if senders else edges.rows, e)

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:
        _, ctx.edges, ctx.senders = inputs

    @staticmethod
    def backward(ctx: Any, *grad: Tensor) -> tuple[Tensor, None, None]:
        return spread(grad[0], ctx.edges, senders=ctx.senders), None, None

    @staticmethod
    def vmap(info: Any, in_dims: tuple[int | None, ...], e: Tensor, edges: Edges, senders: bool) -> tuple[Tensor, int]:
        if dispatch.apart(e):
            return one_by_one(lambda e: collect(e, edges, senders=senders), in_dims, e)
        stacked = as_heads(e, in_dims[0], info.batch_size)
        return collect(stacked, edges, senders=senders).unflatten(1, (info.batch_size, -1)), 1


class _Largest(Function):
    @staticmethod
    def forward(e: Tensor, edges: Edges, senders: bool) -> Tensor:
        return dispatch.row_max(edges.columns if senders else edges.rows, e)

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:
        ctx.mark_non_differentiable(output)

    @staticmethod
    def backward(ctx: Any, *grad: Tensor) -> tuple[None, None, None]:
        return None, None, None

    @staticmethod
    def vmap(info: Any, in_dims: tuple[int | None, ...], e: Tensor, edges: Edges, senders: bool) -> tuple[Tensor, int]:
        stacked = as_heads(e, in_dims[0], info.batch_size)
        return largest(stacked, edges, senders=senders).unflatten(1, (info.batch_size, -1)), 1


def one_by_one(work: Callable[..., Tensor], in_dims: tuple[int | None, ...], *args: Tensor) -> tuple[Tensor, int]:
    """The work on every run of a batch in turn; an argument whose dimension is None is the same for all of them."""
    batched = [x.unbind(dim) for x, dim in zip(args, in_dims, strict=False) if dim is not None]
    rows = []
    for row in zip(*batched, strict=True):
        own = iter(row)
        rows.append(work(*(x if dim is None else next(own) for x, dim in zip(args, in_dims, strict=False))))
    return torch.stack(rows), 0


def as_heads(x: Tensor, dim: int | None, runs: int) -> Tensor:
    """A batch of (m, h, ...) as (m, runs * h, ...); the same for every run where ``dim`` is None."""
    x = x.unsqueeze(1).expand(-1, runs, *x.shape[1:]) if dim is None else x.movedim(dim, 1)
    return x.flatten(1, 2)


def as_channels(x: Tensor, dim: int | None, runs: int) -> Tensor:
    """A batch of (n, h, k) as (n, h, runs * k)."""
    x = x.unsqueeze(2).expand(-1, -1, runs, -1) if dim is None else x.movedim(dim, 2)
    return x.flatten(2, 3)
