"""Stepping: an image evolved with its metric held for a while and then taken anew."""

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass

from torch import Tensor

from beltrami.image.diffusion import Diffusion
from beltrami.image.flow import ImageFlow
from beltrami.scheme import ConstantSteps, Euler, Scheme, SymmetricEuler, solve


class Stepping(ABC):
    """How the linear flow of one metric is solved, and for how long the metric is held.

    To evolve an image without ever holding its metric, solve the flow itself:
    ``solve(flow, x, [0, time], Scheme(RK4(), ConstantSteps(0.2)))``.
    """

    hold: float

    @abstractmethod
    def scheme(self, field: Diffusion) -> Scheme:
        """How to solve this flow."""


@dataclass(frozen=True)
class Explicit(Stepping):
    """Euler's steps, just short enough to keep the image between its extremes: of a quarter on the plane.

    Args:
        hold: for how long the metric is held.
    """

    hold: float = 1.0

    def __post_init__(self) -> None:
        _check(self)

    def scheme(self, field: Diffusion) -> Scheme:
        return Scheme(Euler(), ConstantSteps(1 / max(field.rate, 1 / self.hold)))


@dataclass(frozen=True)
class Implicit(Stepping):
    """One step of implicit Euler for each metric, the semi-implicit scheme: stable, and between the extremes, whatever
    the length. First order in ``hold``.

    Args:
        hold: for how long the metric is held.
        rtol: how well the linear system is solved.
    """

    hold: float = 1.0
    rtol: float = 1e-4

    def __post_init__(self) -> None:
        _check(self)

    def scheme(self, field: Diffusion) -> Scheme:
        return Scheme(SymmetricEuler(field.mass, self.rtol), ConstantSteps(self.hold))


def evolve(x: Tensor, flow: ImageFlow, *, time: float, stepping: Stepping) -> Tensor:
    """The image at ``time``: equal stretches of at most ``stepping.hold``, each with the metric of its beginning.

    Shapes:
        ``x`` (c, h, w) -> (c, h, w).
    """
    if not (math.isfinite(time) and time > 0.0):
        raise ValueError(f"`time` must be positive; got {time}.")
    stretches = math.ceil(time / stepping.hold * (1.0 - 1e-9))
    length = time / stretches
    for k in range(stretches):
        field = flow.freeze(x)
        x = solve(field, x, [k * length, (k + 1) * length], stepping.scheme(field)).ys[-1]
    return x


def _check(stepping: Stepping) -> None:
    if not (math.isfinite(stepping.hold) and stepping.hold > 0.0):
        raise ValueError(f"{type(stepping).__name__} needs a positive `hold`; got {stepping.hold}.")
