r"""Expansions of the flow of a linear field in polynomials of its matrix.

The solution of :math:`y' = \alpha (B - I) y + b` is, with :math:`s = \alpha t` and :math:`w = f(y_0)`,

.. math:: y(t) = y_0 + t \, \varphi_1(s (B - I)) \, w, \qquad \varphi_1(x) = \frac{e^x - 1}{x},

for every source b. Here :math:`\varphi_1(s (B - I)) = \sum_k d_k(s) P_k(B)` for two families of polynomials, with a
bound of the truncation error. The bounds assume only that B does not expand in some norm.
"""

import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from functools import wraps
from typing import Any, ClassVar

import torch
from torch import Tensor
from torch.autograd import Function
from torch.compiler import is_compiling

NEGLIGIBLE = 40.0  # e^-40 is below round-off in double precision
SERIES = 16  # terms of the power series of phi near zero, where its closed form cancels
NEAR = 0.5
MAX_CACHED = 64  # tensors for each cached function


def cached_on_device(build: Callable[..., Tensor]) -> Callable[..., Tensor]:
    """Cache the results of a function of a device and hashable arguments; callers must not write to them.

    A tensor built during the capture of a CUDA graph has values only in replays, so it is not cached. The warm-up runs
    before a capture fill the cache.
    """
    known: dict[tuple[object, ...], Tensor] = {}

    @wraps(build)
    def get(*key: Any) -> Tensor:
        if is_compiling():
            return build(*key)
        found = known.get(key)
        if found is None:
            with torch.inference_mode(False), torch.no_grad():
                found = build(*key)
            if not (key[0].type == "cuda" and torch.cuda.is_current_stream_capturing()):
                known[key] = found
                if len(known) > MAX_CACHED:
                    del known[next(iter(known))]
        return found

    return get


class Expansion(ABC):
    r"""A family of polynomials :math:`P_0 = 1`, :math:`P_1(x) = x`, :math:`P_{k+1} = c x P_k - (c - 1) P_{k-1}`."""

    factor: ClassVar[float]  # c

    @abstractmethod
    def size(self, s: float) -> int:
        """Return a number of terms after which the rest is below round-off, if no :math:`w_k` is larger than w."""

    @abstractmethod
    def coefficients(self, s: Tensor, *, size: int) -> Tensor:
        """Return d_k at each of ``s``, for k below ``size``: (j,) -> (j, size). Double precision; differentiable."""

    @abstractmethod
    def bounds(self, s: float, *, size: int) -> tuple[Tensor, Tensor]:
        r"""Return p, q of a bound :math:`p_K \|w_K\| + q_K \|w_{K-1}\|` of the error of the sum up to K. For every K
        from 0 to size - 2: each (size - 1,)."""


class Chebyshev(Expansion):
    r"""Chebyshev polynomials: about :math:`\sqrt{2 s \log(1/\epsilon)}` terms, for spectra near the real line.

    .. math:: e^{s (x - 1)} = \sum_k c_k(s) T_k(x), \quad c_k = (2 - \delta_{k0}) e^{-s} I_k(s) \ge 0, \quad
              s \, d_k(s) = \int_0^s c_k(\sigma) d\sigma

    The sum up to K solves the equation with a residual :math:`\tfrac\alpha2 t (d_{K+1} w_K - d_K w_{K+1})`; all other
    terms cancel by the recurrence of the Bessel functions. The flow does not expand the residual, so the error is at
    most its integral over time,

    .. math:: \|e(t)\| \le \tfrac12 t s \left(e_{K+1} \|w_K\| + e_K \|w_{K+1}\|\right), \quad
              s^2 e_k = \int_0^s \sigma d_k(\sigma) d\sigma, \quad \|w_{K+1}\| \le 2 \|w_K\| + \|w_{K-1}\|.

    This holds for every B that does not expand, normal or not. If its spectrum is far from real the w_k grow, and the
    bound with them.
    """

    factor = 2.0

    def size(self, s: float) -> int:
        # e^-s I_k(s) is the probability that two Poisson variables of mean s/2 differ by k: Bernstein's inequality.
        return 3 + math.ceil(NEGLIGIBLE / 3 + math.sqrt((NEGLIGIBLE / 3) ** 2 + 2 * NEGLIGIBLE * s))

    def coefficients(self, s: Tensor, *, size: int) -> Tensor:
        return _transform(_Phi1.apply, s, size=size)

    def bounds(self, s: float, *, size: int) -> tuple[Tensor, Tensor]:
        e = _transform(_phi2, torch.tensor([s], dtype=torch.float64), size=size)[0]
        e = (0.5 * s) * (e.clamp(min=0.0) + 4.0 * torch.finfo(e.dtype).eps)  # no smaller than its round-off
        p, q = e[1:] + 2.0 * e[:-1], e[:-1].clone()
        p[0] = q[0] = math.inf  # the residual has another form for K = 0
        return p, q


class Taylor(Expansion):
    r"""Powers of B (uniformisation): about :math:`s + \sqrt{2 s \log(1/\epsilon)}` terms, for every spectrum.

    .. math:: d_k(s) = \frac1s \sum_{i > k} e^{-s} \frac{s^i}{i!}, \qquad
              \|e(t)\| \le t \|w_K\| \sum_{k > K} d_k(s)

    All coefficients are positive: nothing cancels, and a stochastic B keeps the state within its range.
    """

    factor = 1.0

    def size(self, s: float) -> int:
        # The probability that a Poisson variable of mean s exceeds k: Bernstein's inequality.
        return 3 + math.ceil(s + NEGLIGIBLE / 3 + math.sqrt((NEGLIGIBLE / 3) ** 2 + 2 * NEGLIGIBLE * s))

    def coefficients(self, s: Tensor, *, size: int) -> Tensor:
        i = torch.arange(1, 2 * size + 1, dtype=s.dtype, device=s.device)
        s = s[:, None].clamp(min=torch.finfo(s.dtype).tiny)
        probabilities = torch.exp((i - 1) * s.log() - s - torch.lgamma(i + 1))
        return probabilities.flip(1).cumsum(1).flip(1)[:, :size]

    def bounds(self, s: float, *, size: int) -> tuple[Tensor, Tensor]:
        d = self.coefficients(torch.tensor([s], dtype=torch.float64), size=2 * size)[0]
        tails = d.flip(0).cumsum(0).flip(0)[1:size]
        return tails, torch.zeros_like(tails)


def _transform(function: Callable[[Tensor], Tensor], s: Tensor, *, size: int) -> Tensor:
    """Return the Chebyshev coefficients of x -> function(s (1 - x)) on [-1, 1] for each s: (j,) -> (j, size)."""
    return function(s[:, None] * chebyshev_nodes(s.device, size)) @ chebyshev_cosines(s.device, size)


@cached_on_device
def chebyshev_nodes(device: torch.device, size: int) -> Tensor:
    """Return 1 - x at the Chebyshev nodes x, (size,)."""
    odd = 2 * torch.arange(size, device=device) + 1
    return 2.0 * torch.sin(math.pi / (4 * size) * odd.to(torch.float64)).square()


@cached_on_device
def chebyshev_cosines(device: torch.device, size: int) -> Tensor:
    """Return the matrix (size, size) that maps values at the nodes to coefficients."""
    k = torch.arange(size, device=device)
    turns = ((2 * k + 1)[:, None] * k) % (4 * size)  # full turns are removed exactly
    weights = (1.0 + (k > 0).to(torch.float64)) / size
    return torch.cos(math.pi / (2 * size) * turns.to(torch.float64)) * weights


class _Phi1(Function):
    r""":math:`\varphi_1(-u) = (1 - e^{-u}) / u` for u >= 0, with a derivative that does not cancel near zero."""

    generate_vmap_rule = True

    @staticmethod
    def forward(u: Tensor) -> Tensor:
        return torch.where(u > 0.0, -torch.expm1(-u) / u, 1.0)

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Tensor], output: Tensor) -> None:
        ctx.save_for_backward(*inputs, output)

    @staticmethod
    def backward(ctx: Any, *grad: Tensor) -> Tensor:
        u, phi = ctx.saved_tensors
        small = u[..., None].clamp(max=NEAR) ** torch.arange(SERIES, dtype=u.dtype, device=u.device)
        slope = torch.where(u < NEAR, small @ _slopes(u.device), (torch.exp(-u) - phi) / u)
        return grad[0] * slope


@cached_on_device
def _slopes(device: torch.device) -> Tensor:
    """Return the coefficients of the power series of the derivative of phi_1(-u), (SERIES,)."""
    k = torch.arange(SERIES, dtype=torch.float64, device=device)
    return -((-1.0) ** k) * (k + 1) * torch.exp(-torch.lgamma(k + 3))


def _phi2(u: Tensor) -> Tensor:
    r""":math:`\varphi_2(-u) = (1 - \varphi_1(-u)) / u` for u >= 0, without derivatives."""
    near = u < NEAR
    small, large = torch.where(near, u, 0.0), torch.where(near, 1.0, u)
    series = torch.full_like(u, 1.0 / math.factorial(SERIES + 2))
    for i in reversed(range(SERIES)):
        series = 1.0 / math.factorial(i + 2) - small * series
    return torch.where(near, series, (1.0 + torch.expm1(-large) / large) / large)
