"""Sums over the vectors of a recurrence, with their derivatives, for one linear field or a batch with one pattern."""

from collections.abc import Sequence
from functools import cache
from importlib.util import find_spec
from typing import Any

import torch
from torch import Tensor
from torch.autograd import Function
from torch.func import debug_unwrap

from beltrami.scheme.base import Stats, refuse_second_derivative
from beltrami.scheme.vector_field import SparsityPattern

_find_spec = cache(find_spec)


def recurrence_sum(
    y0: Tensor, a: Tensor, w: Tensor, d: Tensor, *, pattern: SparsityPattern, c: float,
    blocks: tuple[Tensor, ...] = (), stats: Stats | None = None,
) -> Tensor:  # fmt: skip
    """Return y0, and y0 + sum_k d_jk w_k at each time j, of every run; differentiable by y0, the entries of B, w and d.

    The vectors w_k, of a recurrence with the factor c, are computed unless :func:`extend` has: ``blocks``, each
    (k, runs, n, d). ``stats`` counts backward products, except those of a batch of ``torch.func.vmap``.

    Shapes:
        ``y0``, ``w`` (runs, n, d), ``a`` (runs, ...), ``d`` (runs, j, k) -> (runs, 1 + j, n, d).
    """
    if not blocks and debug_unwrap(w) is w:
        found: list[Tensor] = []
        extend(found, w, a, pattern, c, degree=d.shape[2] - 1)
        blocks = tuple(found)
    ys: Tensor = _RecurrenceSum.apply(y0, a, w, d, blocks, pattern, c, stats)  # type: ignore[no-untyped-call]
    return ys


class _RecurrenceSum(Function):
    @staticmethod
    def forward(y0: Tensor, a: Tensor, w: Tensor, d: Tensor, blocks: tuple[Tensor, ...], *_: Any) -> Tensor:
        return combine(y0, d, blocks)

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:
        _, a, _, d, blocks, ctx.pattern, ctx.c, ctx.stats = inputs
        ctx.save_for_backward(a, d, *blocks)

    @staticmethod
    def backward(ctx: Any, *grad: Tensor) -> tuple[Tensor | None, ...]:
        refuse_second_derivative("Exponential()")
        a, d, *blocks = ctx.saved_tensors
        g = grad[0].contiguous()[:, 1:]
        needs_y0, needs_a, needs_w, needs_d, *_ = ctx.needs_input_grad
        da, dw = a.new_zeros(a.shape) if needs_a else None, None
        if needs_a or needs_w:
            terms = [term for block in blocks for term in block]
            dw = transposed_recurrence(g, a, d, terms, da, ctx.pattern, ctx.c)
            if ctx.stats is not None:
                ctx.stats.backward_evaluations += len(terms) - 1
        dy0, dd = grad[0].sum(1) if needs_y0 else None, dots(g, blocks) if needs_d else None
        return dy0, da, dw if needs_w else None, dd, None, None, None, None

    @staticmethod
    def vmap(info: Any, in_dims: tuple[Any, ...], *inputs: Any) -> tuple[Tensor, int]:
        """Compute all fields of a batch together, or one after another where that is faster."""
        *tensors, _, pattern, c, _ = inputs
        runs = [
            (x.expand(info.batch_size, *x.shape) if dim is None else x.movedim(dim, 0).contiguous()).flatten(0, 1)
            for x, dim in zip(tensors, in_dims, strict=False)
        ]
        if not prefers_single_runs(runs[0]):
            return recurrence_sum(*runs, pattern=pattern, c=c)[:, None], 0
        each = zip(*(x.split(1) for x in runs), strict=True)
        return torch.stack([recurrence_sum(*one, pattern=pattern, c=c) for one in each]), 0


def prefers_single_runs(y: Tensor) -> bool:
    """Whether runs are faster one after another: on a CPU, where launches are cheap and the cache is small."""
    return y.device.type == "cpu"


@torch.no_grad()
def extend(blocks: list[Tensor], w: Tensor, a: Tensor, pattern: SparsityPattern, c: float, *, degree: int) -> None:
    """Append a block (k, runs, n, d) with the vectors w_k = P_k(B) w that are still missing up to k = ``degree``."""
    terms = [term for block in blocks for term in block]
    block = w.new_empty(degree + 1 - len(terms), *w.shape, dtype=pattern.term_dtype(w))
    for out in block:
        if not terms:
            out.copy_(w)
        elif len(terms) == 1 or c == 1.0:
            pattern.advance(out, a, terms[-1], factor=1.0, previous=None)
        else:
            pattern.advance(out, a, terms[-1], factor=c, previous=(1.0 - c, terms[-2]))
        terms.append(out)
    blocks.append(block)


def transposed_recurrence(
    g: Tensor, a: Tensor, d: Tensor, terms: list[Tensor], da: Tensor | None, pattern: SparsityPattern, c: float
) -> Tensor:
    r"""Return the derivative by w, and add that by the entries to ``da``; the cotangents of the terms are

    .. math:: \lambda_k = \sum_j d_{jk} g_j + c B^\top \lambda_{k+1} - (c - 1) \lambda_{k+2}.
    """
    later: list[Tensor] = []  # lambda_{k+1} and lambda_{k+2}
    for k in reversed(range(len(terms))):
        number, states = _weighted_sum(d[:, :, k], g)
        if later:
            adjoint = torch.empty_like(later[0], dtype=terms[0].dtype if k else g.dtype)
            pattern.pull(
                adjoint, a, later[0], factor=c if k else 1.0, cotangent=(number, states),
                previous=(1.0 - c, later[1]) if len(later) > 1 and c != 1.0 else None,
                edge_sums=None if da is None else (terms[k], da),
            )  # fmt: skip
        else:
            adjoint = (number[:, None, None] * states).to(terms[0].dtype if k else g.dtype)
        later = [adjoint, *later[:1]]
    return later[0]


def _weighted_sum(d: Tensor, g: Tensor) -> tuple[Tensor, Tensor]:
    """Return a number for each run and states whose product is sum_j d_j g_j; for one time no product is needed."""
    if g.shape[1] == 1:
        return d[:, 0], g[:, 0]
    return d.new_ones(len(d)), torch.bmm(d[:, None], g.flatten(2)).view_as(g[:, 0])


def combine(y0: Tensor, d: Tensor, blocks: Sequence[Tensor]) -> Tensor:
    """Return the sums of :func:`recurrence_sum` without a graph."""
    ys = y0.new_empty(len(y0), 1 + d.shape[1], *y0.shape[1:])
    parts = d.split([len(block) for block in blocks], dim=2)
    if uses_triton(ys):
        from beltrami.scheme.exponential import linear_combination_triton

        for k, (part, block) in enumerate(zip(parts, blocks, strict=True)):
            linear_combination_triton.combine(ys, y0 if k == 0 else None, part, block)
        return ys
    ys[:] = y0[:, None]
    for part, block in zip(parts, blocks, strict=True):
        ys[:, 1:].flatten(2).baddbmm_(part, block.transpose(0, 1).flatten(2))
    return ys


def dots(g: Tensor, blocks: Sequence[Tensor]) -> Tensor:
    """Return <g_j, w_k> of every run, (runs, j, n, d), blocks (k, runs, n, d) -> (runs, j, k)."""
    if uses_triton(g):
        from beltrami.scheme.exponential import linear_combination_triton

        return torch.cat([linear_combination_triton.dots(g, block) for block in blocks], dim=2)
    return torch.cat([torch.bmm(g.flatten(2), block.transpose(0, 1).flatten(2).mT) for block in blocks], dim=2)


def uses_triton(tensor: Tensor) -> bool:
    """Whether Triton kernels serve this tensor; cuBLAS is slow for matrices of one or a few rows."""
    return tensor.is_cuda and _find_spec("triton") is not None
