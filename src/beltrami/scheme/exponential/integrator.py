"""Linear fields solved as what they are."""

import math
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.func import debug_unwrap

from beltrami.errors import SolverError
from beltrami.scheme.base import Solution, Stats, TimeStepping, VectorField, is_batched_or_captured, recording
from beltrami.scheme.exponential.batched import SideBySide
from beltrami.scheme.exponential.device_constant import kept
from beltrami.scheme.exponential.matrix_function import Series, expand, expected, mean_norm, summands
from beltrami.scheme.exponential.polynomial import Expansion
from beltrami.scheme.exponential.recurrence_sum import Sums
from beltrami.scheme.linear_field import LinearVectorField


@dataclass(frozen=True)
class Exponential(TimeStepping):
    r"""The exponential of a linear field, to stand where a ``Scheme`` stands.

    .. math:: y(t) = e^{t M} y_0 + t \varphi_1(t M) b = y_0 + t \varphi_1(t M) (M y_0 + b), \qquad M = \alpha (B - I)

    A sum of :math:`d_k(\alpha t) T_k(B) f(y_0)` with Chebyshev polynomials T_k: one product a term, whatever the
    number of times asked for, and no steps. About :math:`\sqrt{2 \alpha T \log(1/\epsilon)}` terms: for T = 18 some
    twenty products where RK4 needs fifty to seventy. Products count as evaluations.

    The number of terms is chosen so that what the sum leaves out, at the latest time and thus at all, is at most
    ``atol + rtol |y0|`` in the norm in which the field does not expand, taken as a mean over the values: the largest
    value for weights over rows, the mean for columns, the root mean square for both. That is checked by a bound on
    the vectors found (see ``Chebyshev``), which holds for every such field, and not by an estimate; where it fails
    more terms are taken, and where they would be too many, as for a spectrum far from real, powers of B (``Taylor``)
    whose bound holds beforehand. Round-off comes on top.

    The gradient is the exact one of the sum, its number of terms held constant, by the transposed recurrence: one
    transposed product a term, and one product of the edges for the weights. The vectors T_k(B) f(y0) are kept for it.

    Three waits for the device a solve, none of them once a term: for alpha and the sizes of y0 and f(y0) before the
    first, for the sizes of vectors after eight terms and at the end. A batch of ``torch.func.vmap`` takes the terms
    that its fastest rate and its steepest slope need, by one wait; in a CUDA graph that is being recorded nobody may
    look, and they are those of the fastest rate there is and of a slope of three times the state. In neither the
    vectors are checked (``expected``).

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

    @property
    def synchronises(self) -> bool:
        return False

    def resume(self, stats: Stats) -> "Exponential":
        return self

    def run(self, f: VectorField, y0: Tensor, ts: tuple[float, ...], params: tuple[Tensor, ...]) -> Solution:
        if not isinstance(f, LinearVectorField):
            raise ValueError(
                f"Exponential solves linear fields alone, and {type(f).__name__} is not one: freeze the attention with "
                "LinearFlow and leave out running costs, or use a Scheme such as Scheme(Dopri5(), PID(1e-4, 1e-6))."
            )
        slope, span = f(ts[0], y0), ts[-1] - ts[0]
        alpha = slope.new_ones(()) if f.alpha is None else f.alpha
        if debug_unwrap(slope) is not slope:
            return self._batched(f, alpha, y0, slope, ts)
        with torch.no_grad():
            series = (
                self._blind(f, slope, span) if is_batched_or_captured(y0) else self._series(f, alpha, y0, slope, span)
            )
        stats = Stats(evaluations=1 + series.products, accepted=1, last_dt=span)
        d = _coefficients(series.expansion, alpha, ts, series.size)[:, : series.count].to(y0.dtype)
        one = (x[None] for x in (y0, f.a, slope, d))
        ys: Tensor = Sums.apply(series.blocks, f.pattern, series.expansion.factor, stats, *one)  # type: ignore[no-untyped-call]
        return Solution(ys[0], stats)

    def _blind(self, f: LinearVectorField, slope: Tensor, span: float) -> Series:
        expansion, degree, size = expected(f, span, rtol=self.rtol or self.atol)
        return Series(expansion, summands(f, slope, expansion, degree), size, math.nan, degree)

    def _batched(
        self, f: LinearVectorField, alpha: Tensor, y0: Tensor, slope: Tensor, ts: tuple[float, ...]
    ) -> Solution:
        """The same sum for a batch, all of whose fields take as many terms."""
        looked = {} if recording(slope) else _look(alpha, y0, slope, f.norm)
        expansion, degree, size = expected(f, ts[-1] - ts[0], rtol=self.rtol or self.atol, **looked)
        d = _coefficients(expansion, alpha, ts, size)[:, : degree + 1].to(y0.dtype)
        ys: Tensor = SideBySide.apply(y0, f.a, slope, d, f.pattern, expansion)  # type: ignore[no-untyped-call]
        return Solution(ys, Stats(evaluations=1 + degree, accepted=1, last_dt=ts[-1] - ts[0]))

    def _series(self, f: LinearVectorField, alpha: Tensor, y0: Tensor, slope: Tensor, span: float) -> Series:
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


@torch.no_grad()
def _look(alpha: Tensor, y0: Tensor, slope: Tensor, norm: float) -> dict[str, float]:
    """The fastest rate of a batch and its steepest slope, in sizes of the state; those without any numbers aside."""
    steep = debug_unwrap(mean_norm(slope, norm) / mean_norm(y0, norm).clamp(min=1e-30)).double().reshape(-1)
    rate = debug_unwrap(alpha.detach()).double().reshape(-1)
    both = torch.stack([torch.nan_to_num(x, 0.0, 0.0, 0.0).max() for x in (rate, steep)])
    fastest, steepest = both.tolist()
    return {"rate": min(max(fastest, 0.0), 1.0), "steep": steepest}


def _coefficients(expansion: Expansion, alpha: Tensor, ts: tuple[float, ...], size: int) -> Tensor:
    """What the terms are multiplied by at each time but the first, (len(ts) - 1, size), in double precision."""
    spans = _spans(alpha.device, tuple(t - ts[0] for t in ts[1:]))
    return spans[:, None] * expansion.coefficients(alpha.double() * spans, size=size)


@kept
def _spans(device: torch.device, spans: tuple[float, ...]) -> Tensor:
    # Filled in on the device: to copy them there would be to wait, which nobody may while a CUDA graph is recorded.
    return torch.stack([torch.full((), span, dtype=torch.float64, device=device) for span in spans])
