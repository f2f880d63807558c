"""The path within one step, read between its ends."""

from collections.abc import Callable

import torch
from torch import Tensor


class Linear:
    """The chord y0 + theta (y1 - y0), theta = (t - t0) / (t1 - t0): second order, and it never overshoots."""

    def __init__(self, t0: float, t1: float, y0: Tensor, y1: Tensor) -> None:
        self.t0, self.t1, self.y0, self.y1 = t0, t1, y0, y1

    def __call__(self, t: float) -> Tensor:
        return torch.lerp(self.y0, self.y1, (t - self.t0) / (self.t1 - self.t0))


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
        t0: float,
        t1: float,
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
        theta = (t - self.t0) / (self.t1 - self.t0)
        inner = (1.0 - theta) * p - theta * q
        for b in bend:
            inner = torch.add(inner, b, alpha=theta * (1.0 - theta))
        return torch.add(self.y0, torch.add(chord, inner, alpha=1.0 - theta), alpha=theta)

    def _terms(self) -> tuple[Tensor, ...]:
        h, chord = self.t1 - self.t0, self.y1 - self.y0
        ends = chord, h * self.slope0 - chord, h * self.slope1() - chord
        return ends if self.bend is None else (*ends, self.bend())
