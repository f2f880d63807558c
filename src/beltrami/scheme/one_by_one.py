"""Sums for many linear fields of one pattern, a field at a time: for a CPU, whose cache holds the state of one."""

from typing import Any

import torch
from torch import Tensor
from torch.autograd import Function

from beltrami.scheme.base import refuse_second_derivative
from beltrami.scheme.expansion import Expansion
from beltrami.scheme.pattern import Pattern


class OneByOne(Function):
    """y0, and y0 + sum_k d_jk w_k at each time j, of every run.

    Shapes:
        ``y0``, ``w`` (runs, n, d), ``a`` (runs, m), ``d`` (runs, j, k) -> (runs, 1 + j, n, d).
    """

    @staticmethod
    def forward(
        ctx: Any, y0: Tensor, a: Tensor, w: Tensor, d: Tensor, pattern: Pattern, expansion: Expansion
    ) -> Tensor:
        kept, a = any(ctx.needs_input_grad), a.contiguous()
        ys = y0.new_empty(len(y0), 1 + d.shape[1], *y0.shape[1:])
        ys[:, 0] = y0
        every: list[Tensor] = []
        for r in range(len(y0)):
            fresh = kept or not every
            terms = w.new_empty(d.shape[2], *w.shape[1:]) if fresh else every.pop()
            _fill(terms, w[r], a[r], pattern, expansion)
            torch.addmm(y0[r].flatten(), d[r], terms.flatten(1), out=ys[r, 1:].flatten(1))
            every.append(terms)
        if kept:
            ctx.save_for_backward(a, d, *every)
        ctx.pattern, ctx.factor = pattern, expansion.factor
        return ys

    @staticmethod
    def backward(ctx: Any, *grad: Tensor) -> tuple[Tensor | None, ...]:
        refuse_second_derivative("Exponential()")
        a, d, *every = ctx.saved_tensors
        needs_y0, needs_a, needs_w, needs_d, *_ = ctx.needs_input_grad
        da = torch.zeros_like(a)
        dw = torch.empty_like(grad[0][:, 0])
        for r, terms in enumerate(every if needs_a or needs_w else ()):
            dw[r] = _pull(grad[0][r, 1:], a[r], d[r], terms, da[r], ctx.pattern, ctx.factor)
        dd = [g[1:].flatten(1) @ terms.flatten(1).T for g, terms in zip(grad[0], every, strict=True)]
        return (
            grad[0].sum(1) if needs_y0 else None,
            da if needs_a else None,
            dw if needs_w else None,
            torch.stack(dd) if needs_d else None,
            None,
            None,
        )


def _fill(terms: Tensor, w: Tensor, a: Tensor, pattern: Pattern, expansion: Expansion) -> None:
    """The vectors w_k = P_k(B) w, into ``terms`` (k, n, d)."""
    terms[0] = w
    for k in range(1, len(terms)):
        c = expansion.factor if k > 1 else 1.0
        torch.mul(terms[max(k - 2, 0)], 1.0 - c, out=terms[k])
        pattern.add_product(terms[k], a, terms[k - 1], factor=c)


def _pull(g: Tensor, a: Tensor, d: Tensor, terms: Tensor, da: Tensor, pattern: Pattern, c: float) -> Tensor:
    r"""The derivative by w, that by the entries added to ``da``; the cotangents of the terms are

    .. math:: \lambda_k = \sum_j d_{jk} g_j + c B^\top \lambda_{k+1} - (c - 1) \lambda_{k+2}.
    """
    after: list[Tensor] = []  # lambda_{k+1} and lambda_{k+2}
    for k in reversed(range(len(terms))):
        cotangent = torch.tensordot(d[:, k], g, 1)
        if len(after) > 1 and c > 1.0:
            cotangent.sub_(after[1], alpha=c - 1.0)
        if after:
            pattern.add_gradients(cotangent, da, a, after[0], terms[k], factor=c if k else 1.0)
        after = [cotangent, *after[:1]]
    return after[0]
