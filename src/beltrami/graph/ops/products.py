"""The hot operations on a graph with their derivatives.

``aggregate`` and ``edge_dot`` are each other's derivative, and so are ``collect`` and ``spread``: the four are closed
under differentiation, to any order, and nothing of size (edges x channels) is stored.
"""

from typing import Any

from torch import Tensor
from torch.autograd import Function

from beltrami.graph.edges import Edges
from beltrami.graph.ops import backend


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


class _Aggregate(Function):
    @staticmethod
    def forward(ctx: Any, a: Tensor, z: Tensor, edges: Edges, transposed: bool) -> Tensor:
        ctx.save_for_backward(a, z)
        ctx.edges, ctx.transposed = edges, transposed
        return backend.spmm(edges.columns if transposed else edges.rows, a, z)

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


class _EdgeDot(Function):
    @staticmethod
    def forward(ctx: Any, p: Tensor, q: Tensor, edges: Edges) -> Tensor:
        ctx.save_for_backward(p, q)
        ctx.edges = edges
        return backend.sddmm(edges.rows, p, q)

    @staticmethod
    def backward(ctx: Any, *grad: Tensor) -> tuple[Tensor | None, Tensor | None, None]:
        (g,), (p, q) = grad, ctx.saved_tensors
        needs_p, needs_q, _ = ctx.needs_input_grad
        dp = aggregate(g, q, ctx.edges) if needs_p else None
        dq = aggregate(g, p, ctx.edges, transposed=True) if needs_q else None
        return dp, dq, None


class _Spread(Function):
    @staticmethod
    def forward(ctx: Any, v: Tensor, edges: Edges, senders: bool) -> Tensor:
        ctx.edges, ctx.senders = edges, senders
        return v.index_select(0, edges.j if senders else edges.i)

    @staticmethod
    def backward(ctx: Any, *grad: Tensor) -> tuple[Tensor, None, None]:
        return collect(grad[0], ctx.edges, senders=ctx.senders), None, None


class _Collect(Function):
    @staticmethod
    def forward(ctx: Any, e: Tensor, edges: Edges, senders: bool) -> Tensor:
        ctx.edges, ctx.senders = edges, senders
        return backend.row_sums(edges.columns if senders else edges.rows, e)

    @staticmethod
    def backward(ctx: Any, *grad: Tensor) -> tuple[Tensor, None, None]:
        return spread(grad[0], ctx.edges, senders=ctx.senders), None, None
