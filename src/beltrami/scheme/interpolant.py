"""The path within one step, read between its ends."""

from collections.abc import Callable

import torch
from torch import Tensor

from beltrami.scheme.base import Time


class LinearVectorField:
    """The chord y0 + theta (y1 - y0), theta = (t - t0) / (t1 - t0): second order, and it never overshoots."""

    def __init__(self, t0: Time, t1: Time, y0: Tensor, y1: Tensor) -> None:
        self.t0, self.t1, self.y0, self.y1 = t0, t1, y0, y1

    def __call__(self, t: float) -> Tensor:
        return torch.lerp(self.y0, self.y1, _share(t, self.t0, self.t1, self.y0))


class Hermite:
    r"""The cubic through both ends with their slopes, and where a solver knows more, a quartic term.

    .. math:: y(\theta) = y_0 + \theta \big( y_1 - y_0
              + (1-\theta) ( (1-\theta) p - \theta q + \theta (1-\theta) b ) \big),
              \quad p = h f_0 - (y_1 - y_0), \quad q = h f_1 - (y_1 - y_0)

    Fourth-order local error without the bend ``b``.

    Args:
        slope0: f(t0, y0).
        slope1: gives f(t1, y1); asked at most once, and only if the path is.
        bend: gives b; None for the plain cubic.
    """

    def __init__(
        self,
        t0: Time,
        t1: Time,
        y0: Tensor,
        y1: Tensor,
        *,
        slope0: Tensor,
        slope1: Callable[[], Tensor],
        bend: Callable[[], Tensor] | None = None,
    ) -> None:
        self.t0, self.t1, self.y0, self.y1 = t0, t1, y0, y1
        self.slope0, self.slope1, self.bend = slope0, slope1, bend
        self.terms: tuple[Tensor, ...] | None = None

    def __call__(self, t: float) -> Tensor:
        if self.terms is None:
            self.terms = self._terms()
        chord, p, q, *bend = self.terms
        theta = _share(t, self.t0, self.t1, self.y0)
        inner = (1.0 - theta) * p - theta * q
        for b in bend:
            inner = added(inner, b, theta * (1.0 - theta))
        return added(self.y0, added(chord, inner, 1.0 - theta), theta)

    def _terms(self) -> tuple[Tensor, ...]:
        h, chord = span(self.t0, self.t1, self.y0), self.y1 - self.y0
        ends = chord, h * self.slope0 - chord, h * self.slope1() - chord
        return ends if self.bend is None else (*ends, self.bend())


def as_time(t: Time, y: Tensor) -> Time:
    """``t`` as a field of ``y`` is shown it: a number, or a tensor of y's type, lest it promote the slope."""
    return t.to(y.dtype) if isinstance(t, Tensor) else t


def span(t0: Time, t1: Time, y: Tensor) -> Time:
    """t1 - t0, in the same way."""
    return as_time(t1 - t0, y)


def added(y: Tensor, x: Tensor, c: Time, *, weight: float = 1.0) -> Tensor:
    """y + weight c x, in one sweep."""
    if isinstance(c, Tensor):
        return torch.addcmul(y, x, c.to(y.dtype), value=weight)
    return torch.add(y, x, alpha=c * weight)


def _share(t: float, t0: Time, t1: Time, y: Tensor) -> Time:
    """theta. On the device nobody knows whether t is within the step: outside it is an end's, without a length 0."""
    theta = (t - t0) / (t1 - t0)
    return theta.nan_to_num(nan=0.0).clamp(0.0, 1.0).to(y.dtype) if isinstance(theta, Tensor) else theta
