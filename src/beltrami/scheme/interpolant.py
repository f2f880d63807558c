"""Interpolants within one step. Times may be tensors on the device; see ``DeviceLoop``."""

from collections.abc import Callable

import torch
from torch import Tensor

from beltrami.scheme.base import Time

Interpolant = Callable[[float], Tensor]


def linear_interpolant(t0: Time, t1: Time, y0: Tensor, y1: Tensor) -> Interpolant:
    """Return t -> y0 + theta (y1 - y0), theta = (t - t0) / (t1 - t0): second order, and it never overshoots."""
    return lambda t: torch.lerp(y0, y1, _theta(t, t0, t1, y0))


def hermite_interpolant(
    t0: Time, t1: Time, y0: Tensor, y1: Tensor, *, slope0: Tensor, slope1: Callable[[], Tensor],
    quartic: Callable[[], Tensor] | None = None,
) -> Interpolant:  # fmt: skip
    r"""Return the cubic through both ends with their slopes, with a quartic term if the solver provides one.

    .. math:: y(\theta) = y_0 + \theta \big( y_1 - y_0
              + (1-\theta) ( (1-\theta) p - \theta q + \theta (1-\theta) b ) \big),
              \quad p = h f_0 - (y_1 - y_0), \quad q = h f_1 - (y_1 - y_0)

    Fourth-order local error without the term b. ``slope0`` is f(t0, y0); ``slope1``, which returns f(t1, y1), and
    ``quartic``, which returns b, are called at most once, at the first interpolation.
    """

    terms: list[tuple[Tensor, Tensor, Tensor, Tensor | None]] = []  # of the first call; torch.compile traces no cache

    def interpolate(t: float) -> Tensor:
        if not terms:
            h, chord = as_time(t1 - t0, y0), y1 - y0
            terms.append((chord, h * slope0 - chord, h * slope1() - chord, None if quartic is None else quartic()))
        chord, p, q, b = terms[0]
        theta = _theta(t, t0, t1, y0)
        inner = (1.0 - theta) * p - theta * q
        if b is not None:
            inner = add_scaled(inner, b, theta * (1.0 - theta))
        return add_scaled(y0, add_scaled(chord, inner, 1.0 - theta), theta)

    return interpolate


def as_time(t: Time, y: Tensor) -> Time:
    """Return a time or a length for a call f(t, y): a tensor gets y's type, so that it does not promote the slope."""
    return t.to(y.dtype) if isinstance(t, Tensor) else t


def add_scaled(y: Tensor, x: Tensor, c: Time, *, weight: float = 1.0) -> Tensor:
    """Return y + weight c x, in one operation."""
    if isinstance(c, Tensor):
        return torch.addcmul(y, x, c.to(y.dtype), value=weight)
    return torch.add(y, x, alpha=c * weight)


def _theta(t: float, t0: Time, t1: Time, y: Tensor) -> Time:
    """Return (t - t0) / (t1 - t0). A tensor is clamped to [0, 1], as the host does not know whether t is in the step;
    in a step of length zero it is 0."""
    theta = (t - t0) / (t1 - t0)
    return theta.nan_to_num(nan=0.0).clamp(0.0, 1.0).to(y.dtype) if isinstance(theta, Tensor) else theta
