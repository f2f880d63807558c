"""Sparse products on a graph, with their derivatives.

``aggregate`` and ``edge_dot`` are each other's derivative, and so are ``collect`` and ``spread``: the four are closed
under differentiation, to any order, and store nothing of size (edges x channels). Under ``torch.func.vmap`` the runs
of a batch become heads, or more channels where they share their weights: one product for all. On a CPU, where copying
runs into that order costs more than it saves, they are computed in turn.
"""

from collections.abc import Callable
from itertools import repeat
from typing import Any

import torch
from torch import Tensor
from torch.autograd import Function
from torch.compiler import is_compiling

from beltrami.graph.edges import Edges, Pattern
from beltrami.graph.ops import dispatch, operators


def aggregate(a: Tensor, z: Tensor, edges: Pattern, *, transposed: bool = False) -> Tensor:
    r"""Weighted sum over neighbours.

    .. math:: (A z)_i = \sum_{j : (i, j) \in E'} a_{ij} z_j, \qquad (A^\top z)_j = \sum_{i} a_{ij} z_i

    Shapes:
        ``a`` (m,), ``z`` (n, d) -> (n, d); or with heads ``a`` (m, h), ``z`` (n, h, k) -> (n, h, k).
    """
    if a.dim() == 1:
        return aggregate(a[:, None], z[:, None], edges, transposed=transposed)[:, 0]
    if is_compiling():
        traced: Tensor = operators.aggregate(a, z, *operators.csr_of(edges), transposed)
        return traced
    out: Tensor = _Aggregate.apply(a, z, edges, transposed)  # type: ignore[no-untyped-call]
    return out


def edge_dot(p: Tensor, q: Tensor, edges: Pattern) -> Tensor:
    r"""Dot product across each edge, :math:`\langle p_i, q_j \rangle`; p at the receiver, q at the sender.

    Shapes:
        ``p``, ``q`` (n, d) -> (m,); or with heads (n, h, k) -> (m, h).
    """
    if p.dim() == 2:
        return edge_dot(p[:, None], q[:, None], edges)[:, 0]
    if is_compiling():
        traced: Tensor = operators.edge_dot(p, q, *operators.csr_of(edges))
        return traced
    out: Tensor = _EdgeDot.apply(p, q, edges)  # type: ignore[no-untyped-call]
    return out


def spread(v: Tensor, edges: Edges, *, senders: bool = False) -> Tensor:
    """Node values on the edges: ``v_i`` of the receivers, or ``v_j`` of the senders; (n, h) -> (m, h)."""
    return _transfer(v, edges, senders, "spread")


def collect(e: Tensor, edges: Edges, *, senders: bool = False) -> Tensor:
    """Sum of edge values at their receivers, or at their senders; (m, h) -> (n, h)."""
    return _transfer(e, edges, senders, "collect")


def largest(e: Tensor, edges: Edges, *, senders: bool = False) -> Tensor:
    """Largest edge value at each receiver, or at each sender, minus infinity without such an edge; (m, h) -> (n, h). No
    gradient passes through it."""
    return _transfer(e.detach(), edges, senders, "largest")


class _Aggregate(Function):
    @staticmethod
    def forward(a: Tensor, z: Tensor, edges: Pattern, transposed: bool) -> Tensor:
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
        info: Any, in_dims: tuple[int | None, ...], a: Tensor, z: Tensor, edges: Pattern, transposed: bool
    ) -> tuple[Tensor, int]:
        runs = info.batch_size
        if in_dims[0] is None and not dispatch.loops_over_runs(z):
            wide = aggregate(a, _merge_runs(z, in_dims[1], runs, axis=2), edges, transposed=transposed)
            return wide.unflatten(2, (runs, -1)), 2
        return _over_runs(lambda a, z: aggregate(a, z, edges, transposed=transposed), runs, in_dims, a, z)


class _EdgeDot(Function):
    @staticmethod
    def forward(p: Tensor, q: Tensor, edges: Pattern) -> Tensor:
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
    def vmap(info: Any, in_dims: tuple[int | None, ...], p: Tensor, q: Tensor, edges: Pattern) -> tuple[Tensor, int]:
        return _over_runs(lambda p, q: edge_dot(p, q, edges), info.batch_size, in_dims, p, q)


class _Transfer(Function):
    """``spread`` from nodes to edges, its adjoint ``collect`` from edges to nodes, and ``largest``."""

    @staticmethod
    def forward(x: Tensor, edges: Edges, senders: bool, kind: str) -> Tensor:
        if kind == "spread":
            return dispatch.gather(x, edges.j if senders else edges.i)
        pattern = edges.columns if senders else edges.rows
        return dispatch.row_sums(pattern, x) if kind == "collect" else dispatch.row_max(pattern, x)

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:
        _, ctx.edges, ctx.senders, ctx.kind = inputs

    @staticmethod
    def backward(ctx: Any, *grad: Tensor) -> tuple[Tensor, None, None, None]:
        adjoint = {"spread": "collect", "collect": "spread"}[ctx.kind]
        return _transfer(grad[0], ctx.edges, ctx.senders, adjoint), None, None, None

    @staticmethod
    def vmap(
        info: Any, in_dims: tuple[int | None, ...], x: Tensor, edges: Edges, senders: bool, kind: str
    ) -> tuple[Tensor, int]:
        return _over_runs(lambda x: _transfer(x, edges, senders, kind), info.batch_size, in_dims, x)


def _transfer(x: Tensor, edges: Edges, senders: bool, kind: str) -> Tensor:
    if is_compiling():
        traced: Tensor = operators.transfer(x, *operators.csr_of(edges), senders, kind)
        return traced
    out: Tensor = _Transfer.apply(x, edges, senders, kind)  # type: ignore[no-untyped-call]
    return out


def _over_runs(
    product: Callable[..., Tensor], runs: int, in_dims: tuple[int | None, ...], *args: Tensor
) -> tuple[Tensor, int]:
    """Compute a product for every run of a batch; an argument whose dimension is None is the same for all runs."""
    batched = list(zip(args, in_dims, strict=False))
    if dispatch.loops_over_runs(args[0]):
        each = (repeat(x, runs) if dim is None else x.unbind(dim) for x, dim in batched)
        return torch.stack([product(*run) for run in zip(*each, strict=True)]), 0
    return product(*(_merge_runs(x, dim, runs, axis=1) for x, dim in batched)).unflatten(1, (runs, -1)), 1


def _merge_runs(x: Tensor, dim: int | None, runs: int, *, axis: int) -> Tensor:
    """A batch as one tensor with the runs merged into an axis: (m, runs * h, ...), or (n, h, runs * k) for axis 2."""
    x = x.unsqueeze(axis).expand(*x.shape[:axis], runs, *x.shape[axis:]) if dim is None else x.movedim(dim, axis)
    return x.flatten(axis, axis + 1)
