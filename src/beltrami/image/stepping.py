"""Time stepping of images: the metric is frozen for short intervals, and each linear flow is solved."""

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass

from torch import Tensor

from beltrami.image.image_flow import ImageFlow, PixelDiffusion
from beltrami.scheme import ConstantSteps, Euler, Scheme, SymmetricEuler, solve


@dataclass(frozen=True)
class Stepping(ABC):
    """How the linear flow of a frozen metric is solved, and for how long the metric is frozen.

    The metric is frozen for a time ``hold``. To evolve an image without freezing its metric, solve the flow itself:
    ``solve(flow, x, [0, time], Scheme(RK4(), ConstantSteps(0.2)))``.
    """

    hold: float = 1.0

    def __post_init__(self) -> None:
        if not (math.isfinite(self.hold) and self.hold > 0.0):
            raise ValueError(f"{type(self).__name__} needs a positive `hold`; got {self.hold}.")

    @abstractmethod
    def scheme(self, field: PixelDiffusion) -> Scheme:
        """Return the scheme that solves this flow."""


class Explicit(Stepping):
    """Euler steps of the largest length that keeps the image within its extremes: a quarter on the plane."""

    def scheme(self, field: PixelDiffusion) -> Scheme:
        return Scheme(Euler(), ConstantSteps(1 / max(field.rate, 1 / self.hold)))


@dataclass(frozen=True)
class Implicit(Stepping):
    """One implicit Euler step for each metric: stable and within the extremes for any length, first order in ``hold``.

    ``rtol`` is the relative tolerance of the linear solver.
    """

    rtol: float = 1e-4

    def scheme(self, field: PixelDiffusion) -> Scheme:
        return Scheme(SymmetricEuler(field.mass, self.rtol), ConstantSteps(self.hold))


def evolve(x: Tensor, flow: ImageFlow, *, time: float, stepping: Stepping) -> Tensor:
    """Return the image (c, h, w) at ``time``, after equal intervals of at most ``stepping.hold``, each with the metric
    of its start."""
    if not (math.isfinite(time) and time > 0.0):
        raise ValueError(f"`time` must be positive; got {time}.")
    intervals = math.ceil(time / stepping.hold * (1.0 - 1e-9))
    length = time / intervals
    for k in range(intervals):
        field = flow.freeze(x)
        x = solve(field, x, [k * length, (k + 1) * length], stepping.scheme(field)).ys[-1]
    return x
