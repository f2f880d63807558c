"""Linear fields solved as what they are."""

import math
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from beltrami.errors import SolverError
from beltrami.scheme.base import Solution, Stats, TimeStepping, VectorField, refuse_second_derivative
from beltrami.scheme.expansion import Chebyshev, Expansion, Taylor
from beltrami.scheme.linear import Linear

LARGEST_GROWTH = 100.0  # of Chebyshev vectors, two digits of which are then lost to cancellation
FIRST_GUESS = 2.0  # of their growth
FIRST_LOOK = 8  # terms after which it is known how they grow, so how many are needed and whether they are too many


@dataclass(frozen=True)
class Exponential(TimeStepping):
    r"""The exponential of a linear field, to stand where a ``Scheme`` stands.

    .. math:: y(t) = e^{t M} y_0 + t \varphi_1(t M) b = y_0 + t \varphi_1(t M) (M y_0 + b), \qquad M = \alpha (B - I)

    A sum of :math:`d_k(\alpha t) T_k(B) f(y_0)` with Chebyshev polynomials T_k: one product a term, whatever the
    number of times asked for, and no steps. About :math:`\sqrt{2 \alpha T \log(1/\epsilon)}` terms: for T = 18 some
    twenty products where RK4 needs fifty to seventy.

    The number of terms is chosen so that what the sum leaves out, at the latest time and thus at all, is at most
    ``atol + rtol |y0|`` in the norm in which the field does not expand, taken as a mean over the values: the largest
    value for weights over rows, the mean for columns, the root mean square for both. That is checked by a bound on
    the vectors found (see ``Chebyshev``), which holds for every such field, and not by an estimate; where it fails
    more terms are taken, and where they would be too many, as for a spectrum far from real, powers of B (``Taylor``)
    whose bound holds beforehand. Round-off comes on top.

    The gradient is the exact one of the sum, its number of terms held constant, by the transposed recurrence: one
    transposed product a term, and one product of the edges for the weights. The vectors T_k(B) f(y0) are kept for it.

    Three waits for the device a solve, none of them once a term: for alpha and the sizes of y0 and f(y0) before the
    first, for the sizes of vectors after eight terms and at the end.

    Args:
        rtol: tolerance relative to the size of ``y0``.
        atol: tolerance where that is small.
    """

    rtol: float
    atol: float

    def __post_init__(self) -> None:
        if self.rtol < 0.0 or self.atol < 0.0 or not self.rtol + self.atol > 0.0:
            raise ValueError(
                f"Exponential needs non-negative `rtol` and `atol`, not both zero; got rtol={self.rtol}, "
                f"atol={self.atol}."
            )

    def resume(self, stats: Stats) -> "Exponential":
        return self

    def run(self, f: VectorField, y0: Tensor, ts: tuple[float, ...], params: tuple[Tensor, ...]) -> Solution:
        if not isinstance(f, Linear):
            raise ValueError(
                f"Exponential solves linear fields alone, and {type(f).__name__} is not one: freeze the attention with "
                "LinearFlow and leave out running costs, or use a Scheme such as Scheme(Dopri5(), PID(1e-4, 1e-6))."
            )
        slope = f(ts[0], y0)
        alpha = slope.new_ones(()) if f.alpha is None else f.alpha
        with torch.no_grad():
            series = self._series(f, alpha, y0, slope, ts[-1] - ts[0])
        stats = Stats(evaluations=1 + series.products, accepted=1, last_dt=ts[-1] - ts[0])
        spans = torch.tensor([t - ts[0] for t in ts[1:]], dtype=torch.float64, device=y0.device)
        d = series.expansion.coefficients(alpha.double() * spans, size=series.size)
        d = (spans[:, None] * d)[:, : series.count].to(y0.dtype)
        ys: Tensor = _Sum.apply(series, f, stats, y0, f.a, slope, d)  # type: ignore[no-untyped-call]
        return Solution(ys, stats)

    def _series(self, f: Linear, alpha: Tensor, y0: Tensor, slope: Tensor, span: float) -> "Series":
        rate, size, speed = torch.stack(
            [alpha.double(), mean_norm(y0, f.norm).double(), mean_norm(slope, f.norm).double()]
        ).tolist()
        if not (rate >= 0.0 and math.isfinite(rate * speed)):
            raise SolverError(
                f"Exponential met a rate of {rate:.3g} and a slope of size {speed:.3g} at its start: the rate must be "
                "at least zero, and both finite. Try a smaller learning rate."
            )
        allowed = self.atol + self.rtol * size
        target = allowed / (span * speed) if speed > 0.0 else math.inf
        return expand(f, slope, rate * span, target=max(target, torch.finfo(torch.float64).eps))


@dataclass(frozen=True)
class Series:
    """A sum over the vectors w_k = P_k(B) w, with what it leaves out.

    Args:
        expansion: the polynomials P_k.
        blocks: the vectors w_0 = w to w_K, without a graph, stacked as they were found, each (k, ...).
        size: how many coefficients to compute, of which the first K + 1 are used.
        bound: of the error, in units of the time and the size of w.
        products: how many products it took to find.
    """

    expansion: Expansion
    blocks: tuple[Tensor, ...]
    size: int
    bound: float
    products: int

    @property
    def count(self) -> int:
        """Of the terms, K + 1."""
        return sum(map(len, self.blocks))


def expand(f: Linear, w: Tensor, s: float, *, target: float) -> Series:
    """A short sum for phi_1(s (B - I)) w whose error is at most ``target`` times the size of ``w``."""
    taylor = Taylor()
    tails, _ = taylor.bounds(s, size=taylor.size(s))
    powers = _first(tails <= target, above=0) or len(tails) - 1
    series, spent = _by_chebyshev(f, w, s, target, limit=powers)
    if series is not None:
        return series
    blocks = [w.detach()[None]]
    _extend(blocks, taylor, f, powers)
    return Series(taylor, tuple(blocks), taylor.size(s), float(tails[powers]), spent + powers)


def _by_chebyshev(f: Linear, w: Tensor, s: float, target: float, *, limit: int) -> tuple[Series | None, int]:
    """The sum, or None where it would take more than ``limit`` terms, and the products spent."""
    chebyshev, blocks, reached = Chebyshev(), [w.detach()[None]], 0
    size = chebyshev.size(s)
    p, q = chebyshev.bounds(s, size=size)
    k, growth = torch.arange(len(p)), torch.full_like(p, FIRST_GUESS)
    while True:
        degree = _first(growth * (p + q) <= target, above=reached)
        if degree is None or degree > limit:
            break
        reached = degree if reached else min(degree, FIRST_LOOK)
        _extend(blocks, chebyshev, f, reached)
        last, before = _sizes(blocks, f.norm)
        bound = float(p[reached]) * last + float(q[reached]) * before
        if bound <= target:
            return Series(chebyshev, tuple(blocks), size, bound, reached), reached
        largest = max(last, before, 1.0)
        if largest > LARGEST_GROWTH:
            break
        growth = largest ** (k / reached)
    return None, reached


def mean_norm(x: Tensor, p: float) -> Tensor:
    """The p-norm as a mean over the values: their largest, their mean size, or its like in between."""
    norm: Tensor = torch.linalg.vector_norm(x, p)
    return norm if math.isinf(p) else norm / x.numel() ** (1.0 / p)


def _first(good: Tensor, *, above: int) -> int | None:
    """The first place beyond ``above`` that is true, or None."""
    places = good[above + 1 :].nonzero()
    return above + 1 + int(places[0]) if len(places) else None


def _extend(blocks: list[Tensor], expansion: Expansion, f: Linear, degree: int) -> None:
    """Add the block of vectors from where they end to w_degree."""
    terms = [term for block in blocks for term in block]
    block = terms[0].new_empty(degree + 1 - len(terms), *terms[0].shape)
    for out in block:
        expansion.advance(f.product(terms[-1]), terms[-2] if len(terms) > 1 else None, out=out)
        terms.append(out)
    blocks.append(block)


def _sizes(blocks: list[Tensor], p: float) -> tuple[float, float]:
    """The sizes of the last two vectors, in units of the first's. Waits for the device."""
    *_, before, last = (term for block in blocks[-2:] for term in block)
    sizes = torch.stack([torch.linalg.vector_norm(x, p) for x in (blocks[0][0], before, last)]).tolist()
    if not math.isfinite(sizes[-1]):
        raise SolverError("Exponential met a vector that is not finite: check the weights of the field.")
    return (sizes[2] / sizes[0], sizes[1] / sizes[0]) if sizes[0] > 0.0 else (0.0, 0.0)


class _Sum(torch.autograd.Function):
    """y0, and y0 + sum_k d_jk w_k at each time j; with its derivatives by y0, by the entries of B, by w_0 and by d."""

    @staticmethod
    def forward(
        ctx: Any, series: Series, f: Linear, stats: Stats, y0: Tensor, a: Tensor, w: Tensor, d: Tensor
    ) -> Tensor:
        ctx.expansion, ctx.f, ctx.stats = series.expansion, f, stats
        ctx.save_for_backward(d, *series.blocks)
        ys = y0.repeat(1 + len(d), *(1 for _ in y0.shape))
        _add(ys[1:], d, series.blocks)
        return ys

    @staticmethod
    def backward(ctx: Any, grad_ys: Tensor) -> tuple[Tensor | None, ...]:
        r"""The cotangents :math:`\lambda_k = \sum_j d_{jk} g_j + c B^\top \lambda_{k+1} - (c - 1) \lambda_{k+2}`."""
        refuse_second_derivative("Exponential()")
        f, c, g = ctx.f, ctx.expansion.factor, grad_ys[1:]
        d, *blocks = ctx.saved_tensors
        terms = [term for block in blocks for term in block]
        *_, needs_y0, needs_a, needs_w, needs_d = ctx.needs_input_grad
        after: list[Tensor] = []  # lambda_{k+1} and lambda_{k+2}
        da = torch.zeros_like(f.a) if needs_a else None
        for k in reversed(range(len(terms) if needs_a or needs_w else 0)):
            cotangent, factor = torch.tensordot(d[:, k], g, 1), c if k else 1.0
            if after:
                cotangent.add_(f.transposed(after[0]), alpha=factor)
                ctx.stats.backward_evaluations += 1
                if da is not None:
                    da.add_(f.outer(after[0], terms[k]), alpha=factor)
            if len(after) > 1 and c > 1.0:
                cotangent.sub_(after[1], alpha=c - 1.0)
            after = [cotangent, *after[:1]]
        dd = torch.cat([g.flatten(1) @ block.flatten(1).T for block in blocks], dim=1) if needs_d else None
        return None, None, None, grad_ys.sum(0) if needs_y0 else None, da, after[0] if needs_w else None, dd


def _add(out: Tensor, d: Tensor, blocks: tuple[Tensor, ...]) -> None:
    """out_j += sum_k d_jk w_k, in place: (j, ...), (j, k), blocks of k in all."""
    for block, part in zip(blocks, d.split([len(block) for block in blocks], dim=1), strict=True):
        out.flatten(1).addmm_(part, block.flatten(1))
