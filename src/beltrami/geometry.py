"""Metric spaces in which node positions lie: Euclidean space and the Poincaré ball."""

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass

import torch
from torch import Tensor

from beltrami.arguments import checked

MARGIN = 32  # smallest distance to the boundary after `project`, in units of the machine epsilon
NEGLIGIBLE = 1e-20  # curvature at which points of size one lie in a flat space
FLAT = 1e-5  # squared arguments below which the quotients f(x) / x are computed by Taylor polynomials


def scale_for_squares(x: Tensor) -> float:
    """Return a power of two s such that the squares of s x neither overflow nor underflow: one for values of ordinary
    size, and for values that are zero or not finite. Synchronises with the device."""
    largest, limits = float(torch.linalg.vector_norm(x.detach(), math.inf)) if x.numel() else 0.0, torch.finfo(x.dtype)
    if not 0.0 < largest < math.inf or limits.tiny**0.25 <= largest <= limits.max**0.25:
        return 1.0
    furthest = math.frexp(limits.max)[1] - 2
    return 2.0 ** -min(max(math.frexp(largest)[1], -furthest), furthest)


class Metric(ABC):
    """A Riemannian metric in one chart: points ``p``, ``q`` and tangent vectors ``v`` are rows (..., d) that broadcast.

    All methods expect points :meth:`inside` the chart; pass others through :meth:`project` first.
    """

    @abstractmethod
    def distance(self, p: Tensor, q: Tensor) -> Tensor:
        """Length of the geodesic from p to q, (..., d), (..., d) -> (...); the gradient where p = q is zero."""

    @abstractmethod
    def pairwise(self, p: Tensor, q: Tensor) -> Tensor:
        """Distances of all pairs, (a, d), (b, d) -> (a, b), without a temporary tensor of size (a, b, d)."""

    @abstractmethod
    def exp(self, p: Tensor, v: Tensor) -> Tensor:
        """Point at time one of the geodesic that leaves p with velocity v; -> (..., d)."""

    @abstractmethod
    def log(self, p: Tensor, q: Tensor) -> Tensor:
        """Velocity at p of the geodesic that reaches q at time one, the inverse of :meth:`exp`; -> (..., d)."""

    @abstractmethod
    def norm(self, p: Tensor, v: Tensor) -> Tensor:
        """Length of the tangent vector v at p; -> (...)."""

    @abstractmethod
    def riemannian(self, p: Tensor, gradient: Tensor) -> Tensor:
        """Riemannian gradient at p: the inverse metric times the gradient by coordinates; -> (..., d)."""

    @abstractmethod
    def project(self, p: Tensor) -> Tensor:
        """Nearest point that floating point can represent inside the chart; -> (..., d)."""

    @abstractmethod
    def inside(self, p: Tensor) -> Tensor:
        """Whether each row is a point of the space; -> booleans (...)."""

    def rescaled(self, p: Tensor) -> "tuple[Tensor, Metric, float]":
        """Return points, a metric and a factor, such that distances are this factor times those of ``p`` and no square
        overflows or underflows; ``p`` itself for points of ordinary size. Synchronises with the device."""
        return p, self, 1.0


@dataclass(frozen=True)
class Euclidean(Metric):
    r"""The flat metric, :math:`d(p, q) = \|p - q\|`.

    ``pairwise`` centres the points and multiplies matrices: five times faster than differences, and accurate to
    :math:`\sqrt\varepsilon` of the spread of the points, where :meth:`distance` is accurate to :math:`\varepsilon`.
    """

    def distance(self, p: Tensor, q: Tensor) -> Tensor:
        _check_widths(p, q)
        length: Tensor = torch.linalg.vector_norm(p - q, dim=-1)
        return length

    def pairwise(self, p: Tensor, q: Tensor) -> Tensor:
        _check_widths(p, q)
        centre = q.mean(0).detach()
        return torch.cdist(p - centre, q - centre, compute_mode="use_mm_for_euclid_dist")

    def exp(self, p: Tensor, v: Tensor) -> Tensor:
        _check_widths(p, v)
        return p + v

    def log(self, p: Tensor, q: Tensor) -> Tensor:
        _check_widths(p, q)
        return q - p

    def norm(self, p: Tensor, v: Tensor) -> Tensor:
        _check_widths(p, v)
        length: Tensor = torch.linalg.vector_norm(v, dim=-1)
        return length.expand(torch.broadcast_shapes(p.shape, v.shape)[:-1])

    def riemannian(self, p: Tensor, gradient: Tensor) -> Tensor:
        _check_widths(p, gradient)
        return gradient

    def project(self, p: Tensor) -> Tensor:
        return p

    def inside(self, p: Tensor) -> Tensor:
        return torch.isfinite(p).all(-1)

    def rescaled(self, p: Tensor) -> tuple[Tensor, Metric, float]:
        factor = scale_for_squares(p)
        return (p if factor == 1.0 else p * factor), self, factor


@checked
@dataclass(frozen=True)
class PoincareBall(Metric):
    r"""The ball :math:`c\|p\|^2 < 1` with the metric :math:`\lambda_p^2 \langle\cdot, \cdot\rangle`, of curvature -c.

    .. math:: \lambda_p = \frac2{1 - c\|p\|^2}, \qquad
        d(p, q) = \frac2{\sqrt c} \operatorname{arsinh} \frac{\sqrt c\,\|p - q\|}{\sqrt{\alpha_p \alpha_q}}

    As c tends to zero, :math:`d \to 2\|p - q\|`. Volume grows exponentially with the radius, so that a tree embeds with
    little distortion in two dimensions. For c = 1 the largest distance from the origin is 13 in single precision and 33
    in double precision; points further out are projected back. ``curvature`` is c > 0.

    All formulas use :math:`\alpha_p = 1 - c\|p\|^2` and the sum or difference :math:`s`, as sums of positive terms: the
    textbook's :math:`1 + 2c\langle p, q\rangle + c^2\|p\|^2\|q\|^2` cancels near the boundary, the equal
    :math:`c\|p + q\|^2 + \alpha_p \alpha_q` does not. No artanh is evaluated near one.
    """

    curvature: float = 1.0

    def __post_init__(self) -> None:
        if not 0 < self.curvature < math.inf:
            raise ValueError(f"PoincareBall needs a positive `curvature` c, as in -c; got {self.curvature}.")

    def distance(self, p: Tensor, q: Tensor) -> Tensor:
        _check_widths(p, q)
        return self._length(torch.linalg.vector_norm(p - q, dim=-1), self._alpha(p)[..., 0], self._alpha(q)[..., 0])

    def pairwise(self, p: Tensor, q: Tensor) -> Tensor:
        """Distances of all pairs by differences: the boundary magnifies the errors of a matrix product."""
        _check_widths(p, q)
        difference = torch.cdist(p, q, compute_mode="donot_use_mm_for_euclid_dist")
        return self._length(difference, self._alpha(p), self._alpha(q).mT)

    def exp(self, p: Tensor, v: Tensor) -> Tensor:
        r""":math:`p \oplus \frac{\tanh r}{r} \frac{v}{\alpha_p}`, projected; :math:`r = \sqrt c\,\|v\| / \alpha_p`."""
        _check_widths(p, v)
        scaled = v / self._alpha(p)
        square = self.curvature * scaled.square().sum(-1, keepdim=True)
        tanhc, sech2 = _tanhc_and_sech2(square)
        return self.project(self._add(p, tanhc * scaled, sech2))

    def log(self, p: Tensor, q: Tensor) -> Tensor:
        r"""The vector of length :math:`\frac{\alpha_p}2 d(p, q)` along :math:`(-p) \oplus q`; with :math:`s = q - p`,

        .. math:: \frac{\operatorname{arsinh} x}{x}
            \frac{\alpha_p (\alpha_p s - c\|s\|^2 p)}{\sqrt{\alpha_p \alpha_q (c\|s\|^2 + \alpha_p \alpha_q)}},
            \qquad x^2 = \frac{c\|s\|^2}{\alpha_p \alpha_q}.
        """
        _check_widths(p, q)
        s, alpha = q - p, self._alpha(p)
        both = alpha * self._alpha(q)
        square = self.curvature * s.square().sum(-1, keepdim=True)
        root = (both * (square + both)).sqrt()
        return _arsinhc(square / both) * alpha / root * (alpha * s - square * p)

    def exp_origin(self, v: Tensor) -> Tensor:
        return self.exp(torch.zeros_like(v), v)

    def log_origin(self, q: Tensor) -> Tensor:
        return self.log(torch.zeros_like(q), q)

    def norm(self, p: Tensor, v: Tensor) -> Tensor:
        _check_widths(p, v)
        length: Tensor = torch.linalg.vector_norm(v, dim=-1)
        return 2 / self._alpha(p)[..., 0] * length

    def riemannian(self, p: Tensor, gradient: Tensor) -> Tensor:
        r""":math:`\lambda_p^{-2}` times the gradient by coordinates."""
        _check_widths(p, gradient)
        return (self._alpha(p) / 2).square() * gradient

    def project(self, p: Tensor) -> Tensor:
        """Move points beyond the largest usable radius along their ray onto that radius."""
        radius = (1 - MARGIN * torch.finfo(p.dtype).eps) / math.sqrt(self.curvature)
        length = torch.linalg.vector_norm(p, dim=-1, keepdim=True)
        return torch.where(length > radius, p * (radius / length.clamp_min(radius)), p)

    def inside(self, p: Tensor) -> Tensor:
        return self.curvature * p.square().sum(-1) < 1

    def rescaled(self, p: Tensor) -> tuple[Tensor, Metric, float]:
        r"""With :math:`c / s^2` and s p distances are s times as large; where :math:`c\|p\|^2` is negligible, they are
        :math:`2\|p - q\|`."""
        factor = scale_for_squares(p)
        if factor == 1.0:
            return p, self, factor
        if self.curvature / factor / factor < NEGLIGIBLE:
            return p * factor, Euclidean(), factor / 2
        return p * factor, PoincareBall(self.curvature / factor / factor), factor

    def _alpha(self, p: Tensor) -> Tensor:
        """1 - c |p|^2, (..., 1), at least a small positive number for points rounded onto the boundary."""
        least = MARGIN * torch.finfo(p.dtype).eps
        return (1 - self.curvature * p.square().sum(-1, keepdim=True)).clamp_min(least)

    def _length(self, difference: Tensor, alpha_p: Tensor, alpha_q: Tensor) -> Tensor:
        root = math.sqrt(self.curvature)
        return 2 / root * torch.asinh(root * difference * (alpha_p * alpha_q).rsqrt())

    def _add(self, p: Tensor, q: Tensor, alpha_q: Tensor) -> Tensor:
        r"""Möbius addition; with :math:`s = p + q`,

        .. math:: p \oplus q = \frac{c\|s\|^2 p + \alpha_p s}{c\|s\|^2 + \alpha_p \alpha_q}.
        """
        s, alpha = p + q, self._alpha(p)
        square = self.curvature * s.square().sum(-1, keepdim=True)
        return (square * p + alpha * s) / (square + alpha * alpha_q)


def _tanhc_and_sech2(square: Tensor) -> tuple[Tensor, Tensor]:
    r""":math:`\tanh r / r` and :math:`1 / \cosh^2 r` from :math:`r^2`, smooth at zero and without overflow."""
    flat = square < FLAT
    r = square.masked_fill(flat, 1.0).sqrt()
    tanhc = torch.where(flat, 1 - square / 3 + 2 * square.square() / 15, torch.tanh(r) / r)
    decay = torch.exp(-2 * r)
    sech2 = torch.where(flat, 1 - square + 2 * square.square() / 3, 4 * decay / (1 + decay).square())
    return tanhc, sech2


def _arsinhc(square: Tensor) -> Tensor:
    r""":math:`\operatorname{arsinh} x / x` from :math:`x^2`, smooth at zero."""
    flat = square < FLAT
    x = square.masked_fill(flat, 1.0).sqrt()
    return torch.where(flat, 1 - square / 6 + 3 * square.square() / 40, torch.asinh(x) / x)


def _check_widths(p: Tensor, q: Tensor) -> None:
    """Refuse rows of two different widths, which would broadcast where one of them is 1."""
    if p.shape[-1] != q.shape[-1]:
        raise ValueError(f"points must have the same number of channels; got {p.shape[-1]} and {q.shape[-1]}.")
