"""Exponential integrator for linear fields: phi_1 of a matrix times a vector, as a polynomial sum of bounded error."""

import math
from dataclasses import dataclass, field

import torch
from torch import Tensor
from torch.compiler import is_compiling
from torch.func import debug_unwrap

from beltrami.arguments import checked
from beltrami.errors import NotFinite, SolverError
from beltrami.scheme.base import Solution, Stats, TimeStepping, VectorField, check_tolerances, is_captured
from beltrami.scheme.exponential.polynomial import Chebyshev, Expansion, Taylor, cached_on_device
from beltrami.scheme.exponential.recurrence_sum import extend, recurrence_sum, uses_triton
from beltrami.scheme.norm import Norm, WholeNorm
from beltrami.scheme.vector_field import LinearVectorField

LARGEST_GROWTH = 100.0  # of Chebyshev vectors; cancellation then costs two digits
EXPECTED_GROWTH = 2.0
EXPECTED_SLOPE = 3.0  # size of f(y0) relative to y0: a bound for alpha (B - I) y + beta y with alpha, |beta| <= 1
MAX_TERMS = 2_000  # of a solve: times up to 49,000 for a rate of one
WHOLE = WholeNorm()
FIRST_CHECK = 8  # terms after which the growth of the vectors, and thus the number of terms, is estimated


@checked
@dataclass(frozen=True)
class Exponential(TimeStepping):
    r"""The exponential of a linear field, in place of a ``Scheme``.

    .. math:: y(t) = e^{t M} y_0 + t \varphi_1(t M) b = y_0 + t \varphi_1(t M) (M y_0 + b), \qquad M = \alpha (B - I)

    A sum of :math:`d_k(\alpha t) T_k(B) f(y_0)` with Chebyshev polynomials T_k: one product a term for any number of
    times, and no steps. About :math:`\sqrt{2 \alpha T \log(1/\epsilon)}` terms: for T = 18 some twenty products where
    RK4 needs fifty to seventy. Products count as evaluations.

    The truncation error at the last time, and so at all times, is at most ``atol + rtol |y0|`` in the norm in which the
    field does not expand (``Norm.mean``), by a bound on the computed vectors (see ``Chebyshev``) that holds for every
    such field. If it fails, more terms are taken; if they would be too many, as for a spectrum far from real, powers of
    B (``Taylor``). Round-off is not included.

    The gradient is the exact one of the sum with a fixed number of terms, by the transposed recurrence: one transposed
    product a term, and one product over the edges for the weights. It needs the vectors T_k(B) f(y0).

    A solve synchronises with the device three times: for alpha and the sizes of y0 and f(y0), for the sizes of the
    vectors after eight terms, and at the end. A batch of ``torch.func.vmap`` takes the terms that its largest rate and
    slope need, and synchronises once; a solve captured in a CUDA graph assumes bounds of both and never synchronises.
    Neither checks the bound on the vectors (``fixed_degree``).

    A solve may take ``MAX_TERMS`` terms; a longer time is refused before any is computed.
    """

    rtol: float
    atol: float
    norm: Norm = field(default=WHOLE, repr=False)
    synchronises = False

    def __post_init__(self) -> None:
        check_tolerances(self, self.rtol, self.atol)

    def check_times(self, ts: tuple[float, ...]) -> None:
        check_terms(Chebyshev().size(ts[-1] - ts[0]), ts[-1] - ts[0])

    def run(self, f: VectorField, y0: Tensor, ts: tuple[float, ...], params: tuple[Tensor, ...]) -> Solution:
        if not isinstance(f, LinearVectorField):
            raise ValueError(
                f"Exponential solves linear fields only, and {type(f).__name__} is not one: freeze the attention with "
                "LinearFlow and leave out running costs, or use a Scheme such as Scheme(Dopri5(), PID(1e-4, 1e-6))."
            )
        slope, time = f(ts[0], y0), ts[-1] - ts[0]
        if is_compiling():
            from beltrami.scheme.exponential import sum_operator

            return sum_operator.solve(self, f, y0, slope, ts)
        alpha = slope.new_ones(()) if f.alpha is None else f.alpha
        captured = is_captured(slope)
        if captured or debug_unwrap(slope) is not slope:
            sizes = (1.0, EXPECTED_SLOPE) if captured else _largest_rate_and_slope(alpha, y0, slope, f.norm)
            found = fixed_degree(f, time, *sizes, rtol=self.rtol or self.atol)
        else:
            found = self.expand(f, alpha, y0, slope, time)
        return found.solution(f, y0, slope, ts)

    @torch.no_grad()
    def expand(self, f: LinearVectorField, alpha: Tensor, y0: Tensor, slope: Tensor, time: float) -> "PolynomialSum":
        """Return the sum that meets the tolerances."""
        sizes = [alpha.double(), *(self.norm.mean(x, f.norm).double() for x in (y0, slope))]
        rate, size, speed = torch.stack(sizes).tolist()
        if not (rate >= 0.0 and math.isfinite(rate * speed)):
            raise SolverError(
                f"Exponential met a rate of {rate:.3g}, a state of size {size:.3g} and a slope of size {speed:.3g} at "
                "its start, t=0: they must be finite, and the rate at least zero. Try a smaller learning rate."
            )
        check_terms(Chebyshev().size(rate * time), time)
        allowed = self.atol + self.rtol * size
        target = allowed / (time * speed) if speed > 0.0 else math.inf
        return expand(f, slope, rate * time, target=max(target, torch.finfo(torch.float64).eps), norm=self.norm)


@torch.no_grad()
def _largest_rate_and_slope(alpha: Tensor, y0: Tensor, slope: Tensor, norm: float) -> tuple[float, float]:
    """Return the largest rate of a batch, and its largest slope relative to the state, of the runs that are finite."""
    relative = debug_unwrap(WHOLE.mean(slope, norm) / WHOLE.mean(y0, norm).clamp(min=1e-30)).double().reshape(-1)
    rate = debug_unwrap(alpha.detach()).double().reshape(-1)
    both = torch.stack([torch.nan_to_num(x, 0.0, 0.0, 0.0).max() for x in (rate, relative)])
    largest_rate, largest_slope = both.tolist()
    return min(max(largest_rate, 0.0), 1.0), largest_slope


def _coefficients_of(found: "PolynomialSum", alpha: Tensor, ts: tuple[float, ...], dtype: torch.dtype) -> Tensor:
    """Return the factors of the terms of a sum at each time but the first, (len(ts) - 1, degree + 1)."""
    wanted = found.degree + 1
    if isinstance(found.expansion, Chebyshev) and uses_triton(alpha) and debug_unwrap(alpha) is alpha:
        from beltrami.scheme.exponential import coefficients_triton

        times = _times(alpha.device, tuple(t - ts[0] for t in ts[1:]))
        return coefficients_triton.coefficients(alpha, times, size=found.size, wanted=wanted, dtype=dtype)
    return coefficients(found.expansion, alpha, ts, found.size)[:, :wanted].to(dtype)


def coefficients(expansion: Expansion, alpha: Tensor, ts: tuple[float, ...], size: int) -> Tensor:
    """Return the factors of the terms at each time but the first, (len(ts) - 1, size), in double precision."""
    times = _times(alpha.device, tuple(t - ts[0] for t in ts[1:]))
    return times[:, None] * expansion.coefficients(alpha.double() * times, size=size)


@cached_on_device
def _times(device: torch.device, times: tuple[float, ...]) -> Tensor:
    # Filled in on the device: a copy from the host would synchronise, which a CUDA graph capture does not allow.
    return torch.stack([torch.full((), t, dtype=torch.float64, device=device) for t in times])


@dataclass(frozen=True)
class PolynomialSum:
    """A sum over the vectors w_k = P_k(B) w for k = 0 to ``degree``."""

    expansion: Expansion  # the polynomials P_k
    degree: int
    size: int  # how many coefficients to compute, of which the first degree + 1 are used
    products: int  # products with B that are needed
    blocks: tuple[Tensor, ...] = ()  # the vectors, without a graph, stacked in blocks (k, 1, ...); empty if not known
    bound: float = math.inf  # of the error, relative to the time and the size of w

    def solution(self, f: LinearVectorField, y0: Tensor, slope: Tensor, ts: tuple[float, ...]) -> Solution:
        """Return the states of f from ``y0``, where its slope is ``slope``, at the times ``ts``."""
        stats = Stats(evaluations=1 + self.products, accepted=1, last_dt=ts[-1] - ts[0])
        d = _coefficients_of(self, slope.new_ones(()) if f.alpha is None else f.alpha, ts, y0.dtype)
        one, c = (x[None] for x in (y0, f.a, slope, d)), self.expansion.factor
        return Solution(recurrence_sum(*one, pattern=f.pattern, c=c, blocks=self.blocks, stats=stats)[0], stats)


def expand(
    f: LinearVectorField, w: Tensor, s: float, *, target: float, norm: Norm = WHOLE
) -> PolynomialSum:  # fmt: skip
    """Return a short sum for phi_1(s (B - I)) w whose error is at most ``target`` times the size of ``w``. In Chebyshev
    polynomials if these need fewer terms than powers of B, which is not so for spectra far from real."""
    taylor = Taylor()
    tails, _ = taylor.bounds(s, size=taylor.size(s))
    powers = _first(tails <= target, above=0) or len(tails) - 1
    found = _chebyshev_sum(f, w, s, target, norm, limit=powers)
    if found.bound <= target:
        return found
    check_terms(powers, s)
    blocks: list[Tensor] = []
    extend(blocks, w[None], f.a[None], f.pattern, taylor.factor, degree=powers)
    return PolynomialSum(taylor, powers, taylor.size(s), found.products + powers, tuple(blocks), float(tails[powers]))


def _chebyshev_sum(
    f: LinearVectorField, w: Tensor, s: float, target: float, norm: Norm, *, limit: int
) -> PolynomialSum:  # fmt: skip
    """Return the sum; its bound is above ``target`` if it would need more than ``limit`` terms."""
    chebyshev, degree, bound = Chebyshev(), 0, math.inf
    blocks: list[Tensor] = []
    size = chebyshev.size(s)
    p, q = chebyshev.bounds(s, size=size)
    k, growth, largest = torch.arange(len(p)), torch.full_like(p, EXPECTED_GROWTH), 1.0
    while bound > target and largest <= LARGEST_GROWTH:
        needed = _first(growth * (p + q) <= target, above=degree)
        if needed is None or needed > limit:
            break
        degree = needed if degree else min(needed, FIRST_CHECK)
        extend(blocks, w[None], f.a[None], f.pattern, chebyshev.factor, degree=degree)
        last, before = _relative_sizes(blocks, f.norm, norm)
        bound = float(p[degree]) * last + float(q[degree]) * before
        largest = max(last, before, 1.0)
        growth = largest ** (k / degree)
    return PolynomialSum(chebyshev, degree, size, degree, tuple(blocks), bound)


def fixed_degree(f: LinearVectorField, time: float, rate: float, slope: float, *, rtol: float) -> PolynomialSum:
    """Return the sum for a ``rate`` alpha and a ``slope``, the size of f(y0) relative to y0, without reading vectors.

    Chebyshev vectors are assumed to double at most; if B is not structurally symmetric, it uses powers of B, which do
    not grow.
    """
    return _fixed_sum(Chebyshev() if f.structurally_symmetric else Taylor(), time, rate, slope, rtol)


def expected_terms(time: float, *, rate: float, rtol: float) -> int:
    """Return how many terms a solve takes, about, if B is structurally symmetric."""
    return _fixed_sum(Chebyshev(), time, rate, EXPECTED_SLOPE, rtol).degree


def _fixed_sum(expansion: Expansion, time: float, rate: float, slope: float, rtol: float) -> PolynomialSum:
    s, growth = rate * time, EXPECTED_GROWTH if isinstance(expansion, Chebyshev) else 1.0
    target = max(rtol / (max(slope, 1e-30) * time), torch.finfo(torch.float64).eps)
    size = expansion.size(s)
    p, q = expansion.bounds(s, size=size)
    degree = _first(growth * (p + q) <= target, above=0) or len(p) - 1
    check_terms(degree, time)
    return PolynomialSum(expansion, degree, size, degree)


def check_terms(terms: int, time: float) -> None:
    """Refuse a sum of more than ``MAX_TERMS`` terms."""
    if terms > MAX_TERMS:
        raise ValueError(
            f"the exponential scheme needs up to {terms:.4g} terms for a time of {time:.4g}, and at most {MAX_TERMS} "
            "are allowed: choose a shorter time, or an adaptive scheme."
        )


def _first(condition: Tensor, *, above: int) -> int | None:
    """Return the first index above ``above`` where the condition holds, or None."""
    indices = condition[above + 1 :].nonzero()
    return above + 1 + int(indices[0]) if len(indices) else None


def _relative_sizes(blocks: list[Tensor], p: float, norm: Norm) -> tuple[float, float]:
    """Return the sizes of the last two vectors relative to the first; synchronises with the device."""
    *_, before, last = (term for block in blocks[-2:] for term in block)
    sizes = torch.stack([norm(x, p) for x in (blocks[0][0], before, last)]).tolist()
    if not math.isfinite(sizes[-1]):
        raise NotFinite("Exponential met a term that is NaN or infinite: check the weights of the field.")
    return (sizes[2] / sizes[0], sizes[1] / sizes[0]) if sizes[0] > 0.0 else (0.0, 0.0)
