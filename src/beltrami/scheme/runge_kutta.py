"""Explicit Runge-Kutta methods, driven by their tableaux."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import ClassVar

import torch
from torch import Tensor

from beltrami.scheme import tableau
from beltrami.scheme.base import Solver, State, Step, Time, VectorField
from beltrami.scheme.interpolant import Hermite, LinearVectorField, added, as_time, span
from beltrami.scheme.tableau import Tableau


class RungeKutta(Solver):
    """The explicit method of ``tableau``; remembers its last stage where that is the next step's first.

    Also takes steps whose ends are known to the device alone, and those of no length, from where they start to there.
    """

    tableau: ClassVar[Tableau]

    def __init_subclass__(cls) -> None:
        cls.order = cls.tableau.order
        cls.error_order = cls.tableau.error_order

    def init(self, f: VectorField, t0: float, y0: Tensor) -> State:
        return (f(t0, y0),) if self.tableau.fsal else ()

    def step(self, f: VectorField, t0: Time, t1: Time, y0: Tensor, state: State) -> Step:
        dt, method = span(t0, t1, y0), self.tableau
        start, end = as_time(t0, y0), as_time(t1, y0)
        stages = [state[0] if state else f(start, y0)]
        y1 = y0
        for c, row in zip(method.c, method.a, strict=True):
            y1 = combine(y0, stages, weights=row, dt=dt)
            stages.append(f(end if c == 1.0 else _later(start, dt, c), y1))
        if not state:
            y1 = combine(y0, stages, weights=method.b, dt=dt)
        error = partial(self._error, stages, dt) if method.error else None
        return Step(y1, error, (stages[-1],) if state else (), self._path(f, t0, t1, y0, y1, stages))

    def _error(self, stages: Sequence[Tensor], dt: Time) -> Tensor:
        with torch.no_grad():
            return weighted(stages, weights=self.tableau.error, dt=dt)

    def _path(
        self, f: VectorField, t0: Time, t1: Time, y0: Tensor, y1: Tensor, stages: Sequence[Tensor]
    ) -> Hermite | LinearVectorField:
        method = self.tableau
        if method.order == 1:
            return LinearVectorField(t0, t1, y0, y1)
        slope1 = partial(stages.__getitem__, -1) if method.fsal else partial(f, as_time(t1, y1), y1)
        bend = partial(weighted, stages, weights=method.dense, dt=span(t0, t1, y0)) if method.dense else None
        return Hermite(t0, t1, y0, y1, slope0=stages[0], slope1=slope1, bend=bend)


@dataclass(frozen=True)
class Euler(RungeKutta):
    """y1 = y0 + dt f(t0, y0): first order, one evaluation. With dt = 1 a residual layer."""

    tableau = tableau.EULER


@dataclass(frozen=True)
class Midpoint(RungeKutta):
    """Second order, two evaluations, no error estimate."""

    tableau = tableau.MIDPOINT


@dataclass(frozen=True)
class Heun(RungeKutta):
    """Second order, two evaluations; Euler inside estimates the error. For loose tolerances."""

    tableau = tableau.HEUN


@dataclass(frozen=True)
class RK4(RungeKutta):
    """The classical method: fourth order, four evaluations, no error estimate."""

    tableau = tableau.RK4


@dataclass(frozen=True)
class Bosh3(RungeKutta):
    """Bogacki and Shampine's pair: third order, three evaluations. For tolerances around 1e-3."""

    tableau = tableau.BOSH3


@dataclass(frozen=True)
class Dopri5(RungeKutta):
    """Dormand and Prince's pair with Shampine's quartic between steps: fifth order, six evaluations.

    The one to begin with wherever the problem is not stiff.
    """

    tableau = tableau.DOPRI5


def combine(y: Tensor, stages: Sequence[Tensor], *, weights: Sequence[float], dt: Time) -> Tensor:
    """y + dt sum_i w_i k_i, one fused addition to each weight that is not zero."""
    fresh = False
    for weight, stage in zip(weights, stages, strict=False):
        if weight:
            # Only the first sum needs memory of its own; the rest may be added in place, also under autograd, but
            # for a dt on the device: that vmap would do run by run.
            if fresh and not isinstance(dt, Tensor):
                y = y.add_(stage, alpha=dt * weight)
            else:
                y, fresh = added(y, stage, dt, weight=weight), True
    return y


def weighted(stages: Sequence[Tensor], *, weights: Sequence[float], dt: Time) -> Tensor:
    """dt sum_i w_i k_i, where the first weight is not zero."""
    return combine(stages[0] * (dt * weights[0]), stages[1:], weights=weights[1:], dt=dt)


def _later(t: Time, dt: Time, c: float) -> Time:
    """t + c dt, on the device in one operation."""
    return torch.add(t, dt, alpha=c) if isinstance(t, Tensor) else t + c * dt
