"""The exponential integrator as ``torch.library`` operators, for ``torch.compile``.

The number of terms depends on the values of the field, so the sum is one operator, and its gradient another. A compiled
network computes the coefficients of both expansions, in as many terms as a rate of one can need, and the operator uses
those of one of them.
"""

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor
from torch.library import custom_op, get_ctx

from beltrami.scheme.base import Solution, Stats
from beltrami.scheme.exponential.integrator import EXPECTED_SLOPE, Exponential, coefficients, fixed_degree
from beltrami.scheme.exponential.polynomial import Chebyshev, Taylor
from beltrami.scheme.exponential.recurrence_sum import combine, dots, extend, transposed_recurrence
from beltrami.scheme.vector_field import LINEAR_FIELDS, LinearVectorField

TAGS = (torch.Tag.cudagraph_unsafe,)


def solve(scheme: Exponential, f: LinearVectorField, y0: Tensor, slope: Tensor, ts: tuple[float, ...]) -> Solution:
    """Return the solution of ``Exponential.run`` from the slope at its start; products are not counted.

    On the CPU it takes the terms that ``Exponential`` takes; on a GPU those of a CUDA graph, without a synchronisation.
    """
    alpha, time = slope.new_ones(()) if f.alpha is None else f.alpha, ts[-1] - ts[0]
    d = [coefficients(each, alpha, ts, each.size(time)).to(y0.dtype) for each in (Chebyshev(), Taylor())]
    kind, settings = type(f).__name__, [f.norm, time, scheme.rtol, scheme.atol]
    ys, _, _ = expand(y0, f.a, slope, *d, alpha.detach(), f.parts, kind, settings)
    return Solution(ys, Stats(evaluations=1, accepted=1, last_dt=time))


@custom_op("beltrami::exponential", mutates_args=(), tags=TAGS)
def expand(
    y0: Tensor, a: Tensor, slope: Tensor, chebyshev: Tensor, taylor: Tensor, alpha: Tensor, parts: Sequence[Tensor],
    kind: str, settings: Sequence[float],
) -> tuple[Tensor, Tensor, Tensor]:  # fmt: skip
    """Return the states (1 + j, n, d), the vectors of the sum (k, 1, n, d), and the factor of their recurrence."""
    norm, time, rtol, atol = settings
    f = LINEAR_FIELDS[kind].of_parts(a, parts, norm)
    if slope.is_cuda:
        found = fixed_degree(f, time, 1.0, EXPECTED_SLOPE, rtol=rtol or atol)
    else:
        found = Exponential(rtol, atol).expand(f, alpha, y0, slope, time)
    factor, blocks = found.expansion.factor, list(found.blocks)
    if not blocks:
        extend(blocks, slope[None], a[None], f.pattern, factor, degree=found.degree)
    block = torch.cat(blocks) if len(blocks) > 1 else blocks[0]
    d = chebyshev if factor == Chebyshev.factor else taylor
    ys = combine(y0[None], d[None, :, : len(block)], [block])[0]
    return ys, block, torch.tensor(factor)


@expand.register_fake
def _(
    y0: Tensor, a: Tensor, slope: Tensor, chebyshev: Tensor, taylor: Tensor, alpha: Tensor, parts: Sequence[Tensor],
    kind: str, settings: Sequence[float],
) -> tuple[Tensor, Tensor, Tensor]:  # fmt: skip
    block = slope.new_empty(get_ctx().new_dynamic_size(min=2), 1, *slope.shape)
    return y0.new_empty(1 + taylor.shape[0], *y0.shape), block, torch.empty((), device="cpu")


@custom_op("beltrami::exponential_backward", mutates_args=(), tags=TAGS)
def pull(
    g: Tensor, a: Tensor, chebyshev: Tensor, taylor: Tensor, block: Tensor, factor: Tensor, parts: Sequence[Tensor],
    kind: str, norm: float,
) -> tuple[Tensor, Tensor, Tensor, Tensor]:  # fmt: skip
    """Return the gradients by the entries, the slope, and the coefficients of both expansions."""
    f, c = LINEAR_FIELDS[kind].of_parts(a, parts, norm), factor.item()
    used, dd = (chebyshev, taylor)[c != Chebyshev.factor], [torch.zeros_like(chebyshev), torch.zeros_like(taylor)]
    d = used[None, :, : len(block)]
    g, da = g.contiguous()[None, 1:], a.new_zeros(1, *a.shape)
    dw = transposed_recurrence(g, a[None], d, list(block), da, f.pattern, c)
    dd[c != Chebyshev.factor][:, : len(block)] = dots(g, [block])[0]
    return da[0], dw[0], dd[0], dd[1]


@pull.register_fake
def _(
    g: Tensor, a: Tensor, chebyshev: Tensor, taylor: Tensor, block: Tensor, factor: Tensor, parts: Sequence[Tensor],
    kind: str, norm: float,
) -> tuple[Tensor, Tensor, Tensor, Tensor]:  # fmt: skip
    like = torch.contiguous_format
    slope = g.new_empty(g.shape[1:])
    return torch.empty_like(a, memory_format=like), slope, torch.empty_like(chebyshev), torch.empty_like(taylor)


def _save(ctx: Any, inputs: tuple[Any, ...], output: tuple[Tensor, ...]) -> None:
    _, a, _, chebyshev, taylor, _, parts, ctx.kind, (ctx.norm, *_) = inputs
    ctx.save_for_backward(a, chebyshev, taylor, *output[1:], *parts)


def _differentiate(ctx: Any, g: Tensor, *_: Any) -> tuple[Any, ...]:
    a, chebyshev, taylor, block, factor, *parts = ctx.saved_tensors
    da, dw, *dd = pull(g, a, chebyshev, taylor, block, factor, parts, ctx.kind, ctx.norm)
    return g.sum(0), da, dw, *dd, None, [None for _ in parts], None, None


expand.register_autograd(_differentiate, setup_context=_save)
