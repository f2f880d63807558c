"""Exponential integrator for linear fields."""

import math
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.func import debug_unwrap

from beltrami.errors import SolverError
from beltrami.scheme.base import Solution, Stats, TimeStepping, VectorField, check_tolerances, is_captured
from beltrami.scheme.exponential.matrix_function import PolynomialSum, expand, fixed_degree, mean_norm
from beltrami.scheme.exponential.polynomial import Expansion, cached_on_device
from beltrami.scheme.exponential.recurrence_sum import BatchedRecurrenceSum, RecurrenceSum, recurrence_sum
from beltrami.scheme.vector_field import LinearVectorField


@dataclass(frozen=True)
class Exponential(TimeStepping):
    r"""The exponential of a linear field, in place of a ``Scheme``.

    .. math:: y(t) = e^{t M} y_0 + t \varphi_1(t M) b = y_0 + t \varphi_1(t M) (M y_0 + b), \qquad M = \alpha (B - I)

    A sum of :math:`d_k(\alpha t) T_k(B) f(y_0)` with Chebyshev polynomials T_k: one product a term for any number of
    times, and no steps. About :math:`\sqrt{2 \alpha T \log(1/\epsilon)}` terms: for T = 18 some twenty products where
    RK4 needs fifty to seventy. Products count as evaluations.

    The number of terms is such that the truncation error at the last time, and so at all times, is at most
    ``atol + rtol |y0|`` in the mean norm in which the field does not expand (``mean_norm``). This is ensured by a bound
    on the computed vectors (see ``Chebyshev``) that holds for every such field. If it fails, more terms are taken; if
    they would be too many, as for a spectrum far from real, powers of B (``Taylor``). Round-off is not included.

    The gradient is the exact one of the sum with a fixed number of terms, by the transposed recurrence: one transposed
    product a term, and one product over the edges for the weights. It needs the vectors T_k(B) f(y0).

    A solve synchronises with the device three times: for alpha and the sizes of y0 and f(y0), for the sizes of the
    vectors after eight terms, and at the end. A batch of ``torch.func.vmap`` takes the terms that its largest rate and
    slope need, and synchronises once; a solve captured in a CUDA graph assumes bounds of both and never synchronises.
    Neither checks the bound on the vectors (``fixed_degree``).

    Args:
        rtol: tolerance relative to the size of ``y0``.
        atol: absolute tolerance.
    """

    rtol: float
    atol: float

    def __post_init__(self) -> None:
        check_tolerances(self, self.rtol, self.atol)

    @property
    def synchronises(self) -> bool:
        return False

    def run(self, f: VectorField, y0: Tensor, ts: tuple[float, ...], params: tuple[Tensor, ...]) -> Solution:
        if not isinstance(f, LinearVectorField):
            raise ValueError(
                f"Exponential solves linear fields only, and {type(f).__name__} is not one: freeze the attention with "
                "LinearFlow and leave out running costs, or use a Scheme such as Scheme(Dopri5(), PID(1e-4, 1e-6))."
            )
        slope, time = f(ts[0], y0), ts[-1] - ts[0]
        alpha = slope.new_ones(()) if f.alpha is None else f.alpha
        batched, captured = debug_unwrap(slope) is not slope, is_captured(slope)
        if not batched and not captured:
            with torch.no_grad():
                found = self._expand(f, alpha, y0, slope, time)
            stats = Stats(evaluations=1 + found.products, accepted=1, last_dt=time)
            d = _coefficients(found.expansion, alpha, ts, found.size)[:, : found.count].to(y0.dtype)
            one = (x[None] for x in (y0, f.a, slope, d))
            ys: Tensor = RecurrenceSum.apply(found.blocks, f.pattern, found.expansion.factor, stats, *one)  # type: ignore[no-untyped-call]
            return Solution(ys[0], stats)
        sizes = {} if captured else _largest_rate_and_slope(alpha, y0, slope, f.norm)
        expansion, degree, size = fixed_degree(f, time, rtol=self.rtol or self.atol, **sizes)
        d = _coefficients(expansion, alpha, ts, size)[:, : degree + 1].to(y0.dtype)
        stats = Stats(evaluations=1 + degree, accepted=1, last_dt=time)
        if batched:
            ys = BatchedRecurrenceSum.apply(y0, f.a, slope, d, f.pattern, expansion.factor)  # type: ignore[no-untyped-call]
            return Solution(ys, stats)
        one = (x[None] for x in (y0, f.a, slope, d))
        return Solution(recurrence_sum(*one, pattern=f.pattern, c=expansion.factor, stats=stats)[0], stats)

    def _expand(self, f: LinearVectorField, alpha: Tensor, y0: Tensor, slope: Tensor, time: float) -> PolynomialSum:
        sizes = [alpha.double(), mean_norm(y0, f.norm).double(), mean_norm(slope, f.norm).double()]
        rate, size, speed = torch.stack(sizes).tolist()
        if not (rate >= 0.0 and math.isfinite(rate * speed)):
            raise SolverError(
                f"Exponential met a rate of {rate:.3g} and a slope of size {speed:.3g} at its start: the rate must be "
                "at least zero, and both finite. Try a smaller learning rate."
            )
        allowed = self.atol + self.rtol * size
        target = allowed / (time * speed) if speed > 0.0 else math.inf
        return expand(f, slope, rate * time, target=max(target, torch.finfo(torch.float64).eps))


@torch.no_grad()
def _largest_rate_and_slope(alpha: Tensor, y0: Tensor, slope: Tensor, norm: float) -> dict[str, float]:
    """Return the largest rate of a batch, and its largest slope relative to the state, of the runs that are finite."""
    relative = debug_unwrap(mean_norm(slope, norm) / mean_norm(y0, norm).clamp(min=1e-30)).double().reshape(-1)
    rate = debug_unwrap(alpha.detach()).double().reshape(-1)
    both = torch.stack([torch.nan_to_num(x, 0.0, 0.0, 0.0).max() for x in (rate, relative)])
    largest_rate, largest_slope = both.tolist()
    return {"rate": min(max(largest_rate, 0.0), 1.0), "slope": largest_slope}


def _coefficients(expansion: Expansion, alpha: Tensor, ts: tuple[float, ...], size: int) -> Tensor:
    """Return the factors of the terms at each time but the first, (len(ts) - 1, size), in double precision."""
    times = _times(alpha.device, tuple(t - ts[0] for t in ts[1:]))
    return times[:, None] * expansion.coefficients(alpha.double() * times, size=size)


@cached_on_device
def _times(device: torch.device, times: tuple[float, ...]) -> Tensor:
    # Filled in on the device: a copy from the host would synchronise, which a CUDA graph capture does not allow.
    return torch.stack([torch.full((), t, dtype=torch.float64, device=device) for t in times])
