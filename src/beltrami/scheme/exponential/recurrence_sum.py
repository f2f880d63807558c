"""Sums of the vectors of a recurrence, with their derivatives, for one linear field or many of one pattern."""

from typing import Any

import torch
from torch import Tensor
from torch.autograd import Function

from beltrami.scheme.base import Stats, refuse_second_derivative
from beltrami.scheme.exponential.linear_combination import combine, dots
from beltrami.scheme.sparsity import SparsityPattern


class Sums(Function):
    """y0, and y0 + sum_k d_jk w_k at each time j, of every run; with derivatives by y0, the entries of B, w_0 and d.

    Args of its ``apply``: the vectors w_k in blocks, as :func:`extend` makes them, without a graph; the pattern; the
    factor c of the recurrence; where to count products on the way back, or None; and then what has derivatives.

    Shapes:
        blocks (k, runs, n, d), ``y0``, ``w`` (runs, n, d), ``a`` (runs, ...), ``d`` (runs, j, k) ->
        (runs, 1 + j, n, d).
    """

    @staticmethod
    def forward(
        ctx: Any,
        blocks: tuple[Tensor, ...],
        pattern: SparsityPattern,
        c: float,
        stats: Stats | None,
        y0: Tensor,
        a: Tensor,
        w: Tensor,
        d: Tensor,
    ) -> Tensor:
        ctx.pattern, ctx.c, ctx.stats = pattern, c, stats
        ctx.save_for_backward(a, d, *blocks)
        return combine(y0, d, blocks)

    @staticmethod
    def backward(ctx: Any, *grad: Tensor) -> tuple[Tensor | None, ...]:
        refuse_second_derivative("Exponential()")
        a, d, *blocks = ctx.saved_tensors
        g = grad[0].contiguous()[:, 1:]
        *_, needs_y0, needs_a, needs_w, needs_d = ctx.needs_input_grad
        da, dw = a.new_zeros(a.shape) if needs_a else None, None
        if needs_a or needs_w:
            terms = [term for block in blocks for term in block]
            dw = _pulled(g, a, d, terms, da, ctx.pattern, ctx.c)
            if ctx.stats is not None:
                ctx.stats.backward_evaluations += len(terms) - 1
        dy0, dd = grad[0].sum(1) if needs_y0 else None, dots(g, blocks) if needs_d else None
        return None, None, None, None, dy0, da, dw if needs_w else None, dd


def extend(blocks: list[Tensor], w: Tensor, a: Tensor, pattern: SparsityPattern, c: float, *, degree: int) -> None:
    """Add the block of the vectors w_k = P_k(B) w from where they end, or from w_0 = w, to w_degree.

    Shapes:
        ``w`` (runs, n, d), blocks (k, runs, n, d).
    """
    terms = [term for block in blocks for term in block]
    block = w.new_empty(degree + 1 - len(terms), *w.shape)
    for out in block:
        if not terms:
            out.copy_(w)
        elif len(terms) == 1 or c == 1.0:
            pattern.advance(out, a, terms[-1], factor=1.0, before=None)
        else:
            pattern.advance(out, a, terms[-1], factor=c, before=(1.0 - c, terms[-2]))
        terms.append(out)
    blocks.append(block)


def _pulled(
    g: Tensor, a: Tensor, d: Tensor, terms: list[Tensor], da: Tensor | None, pattern: SparsityPattern, c: float
) -> Tensor:
    r"""The derivative by w, that by the entries added to ``da``; the cotangents of the terms are

    .. math:: \lambda_k = \sum_j d_{jk} g_j + c B^\top \lambda_{k+1} - (c - 1) \lambda_{k+2}.
    """
    after: list[Tensor] = []  # lambda_{k+1} and lambda_{k+2}
    for k in reversed(range(len(terms))):
        number, given = _given(d[:, :, k], g)
        if after:
            cotangent = torch.empty_like(after[0])
            pattern.pull(
                cotangent,
                a,
                after[0],
                factor=c if k else 1.0,
                before=(1.0 - c, after[1]) if len(after) > 1 and c != 1.0 else None,
                given=(number, given),
                across=None if da is None else (terms[k], da),
            )
        else:
            cotangent = number[:, None, None] * given
        after = [cotangent, *after[:1]]
    return after[0]


def _given(d: Tensor, g: Tensor) -> tuple[Tensor, Tensor]:
    """A number for each run and states whose product is sum_j d_j g_j; for one time these are at hand."""
    if g.shape[1] == 1:
        return d[:, 0], g[:, 0]
    return d.new_ones(len(d)), torch.bmm(d[:, None], g.flatten(2)).view_as(g[:, 0])
