"""Sums for many linear fields of one pattern, as one program."""

from typing import Any

import torch
from torch import Tensor
from torch.autograd import Function

from beltrami.scheme.base import refuse_second_derivative
from beltrami.scheme.expansion import Expansion
from beltrami.scheme.one_by_one import OneByOne
from beltrami.scheme.pattern import Pattern

FEW = 4  # times up to which terms are added one by one; more of them are a matrix product


class SideBySide(Function):
    """y0, and y0 + sum_k d_jk w_k at each time j, for one field; under ``torch.func.vmap`` for all of a batch at once.

    Shapes:
        ``y0``, ``w`` (n, d), ``a`` (m,), ``d`` (j, k) -> (1 + j, n, d).
    """

    @staticmethod
    def forward(y0: Tensor, a: Tensor, w: Tensor, d: Tensor, pattern: Pattern, expansion: Expansion) -> Tensor:
        out: Tensor = _Sums.apply(y0[:, None], a[:, None], w[:, None], d[None], pattern, expansion)  # type: ignore[no-untyped-call]
        return out[:, :, 0]

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:
        raise RuntimeError("SideBySide is for batches of torch.func.vmap: solve a single field by Exponential itself.")

    @staticmethod
    def vmap(
        info: Any,
        in_dims: tuple[int | None, ...],
        y0: Tensor,
        a: Tensor,
        w: Tensor,
        d: Tensor,
        pattern: Pattern,
        expansion: Expansion,
    ) -> tuple[Tensor, int]:
        def merged(x: Tensor, dim: int | None, to: int) -> Tensor:
            if dim is None:
                return x.unsqueeze(to).expand(*x.shape[:to], info.batch_size, *x.shape[to:])
            return x.movedim(dim, to)

        if apart(y0):
            y0, a, w, d = (merged(x, dim, 0) for x, dim in zip((y0, a, w, d), in_dims, strict=False))
            return OneByOne.apply(y0, a, w, d, pattern, expansion), 0  # type: ignore[no-untyped-call]
        entries = a[:, None] if in_dims[1] is None else a.movedim(in_dims[1], 1)
        runs = (merged(y0, in_dims[0], 1), entries, merged(w, in_dims[2], 1), merged(d, in_dims[3], 0))
        out: Tensor = _Sums.apply(*runs, pattern, expansion)  # type: ignore[no-untyped-call]
        return out, 2


def apart(y: Tensor) -> bool:
    """Whether the runs are taken one by one: on a CPU, whose launches are cheap and whose cache is not large."""
    return y.device.type == "cpu"


class _Sums(Function):
    """The same with the runs along a dimension: (n, runs, d), (m, runs), (runs, j, k) -> (1 + j, n, runs, d)."""

    @staticmethod
    def forward(
        ctx: Any, y0: Tensor, a: Tensor, w: Tensor, d: Tensor, pattern: Pattern, expansion: Expansion
    ) -> Tensor:
        a = a.contiguous()
        terms = w.new_empty(d.shape[2], *w.shape)
        terms[0] = w
        for k in range(1, len(terms)):
            before = terms[k - 2] if k > 1 else None
            expansion.advance(pattern.product(a, terms[k - 1]), before, out=terms[k])
        ctx.save_for_backward(a, d, terms)
        ctx.pattern, ctx.factor = pattern, expansion.factor
        return torch.cat((y0[None], y0 + _combined(d, terms)))

    @staticmethod
    def backward(ctx: Any, *grad: Tensor) -> tuple[Tensor | None, ...]:
        r"""The cotangents :math:`\lambda_k = \sum_j d_{jk} g_j + c B^\top \lambda_{k+1} - (c - 1) \lambda_{k+2}`."""
        refuse_second_derivative("Exponential()")
        a, d, terms = ctx.saved_tensors
        g, c = grad[0][1:], ctx.factor
        needs_y0, needs_a, needs_w, needs_d, *_ = ctx.needs_input_grad
        da = torch.zeros_like(a) if needs_a else None
        after: list[Tensor] = []  # lambda_{k+1} and lambda_{k+2}
        for k in reversed(range(len(terms) if needs_a or needs_w else 0)):
            cotangent, factor = _combined(d[:, :, k : k + 1].transpose(1, 2), g)[0], c if k else 1.0
            if after:
                cotangent.add_(ctx.pattern.transposed(a, after[0]), alpha=factor)
                if da is not None:
                    da.add_(ctx.pattern.outer(after[0], terms[k], shared=a.shape[1] == 1), alpha=factor)
            if len(after) > 1 and c > 1.0:
                cotangent.sub_(after[1], alpha=c - 1.0)
            after = [cotangent, *after[:1]]
        dd = torch.einsum("jnrd,knrd->rjk", g, terms) if needs_d else None
        return grad[0].sum(0) if needs_y0 else None, da, after[0] if needs_w else None, dd, None, None


def _combined(d: Tensor, terms: Tensor) -> Tensor:
    """sum_k d_rjk w_k for every run r and j: (runs, j, k), (k, n, runs, d) -> (j, n, runs, d)."""
    if d.shape[1] > FEW:
        return torch.einsum("rjk,knrd->jnrd", d, terms)
    out = []
    for j in range(d.shape[1]):
        total = d[:, j, 0, None] * terms[0]
        for k in range(1, len(terms)):
            total.addcmul_(d[:, j, k, None], terms[k])
        out.append(total)
    return torch.stack(out) if len(out) > 1 else out[0][None]
