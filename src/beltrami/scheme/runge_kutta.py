"""Explicit Runge-Kutta methods, given by their tableaux."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import ClassVar

import torch
from torch import Tensor

from beltrami.scheme import tableau
from beltrami.scheme.base import Solver, State, Step, Time, VectorField
from beltrami.scheme.interpolant import (
    Interpolant,
    add_scaled,
    as_time,
    hermite_interpolant,
    linear_interpolant,
    step_length,
)
from beltrami.scheme.tableau import Tableau


class RungeKutta(Solver):
    """The explicit method of ``tableau``; keeps its last stage if that is the first of the next step.

    The times of a step may be tensors on the device, and its length may be zero.
    """

    tableau: ClassVar[Tableau]

    def __init_subclass__(cls) -> None:
        cls.order = cls.tableau.order
        cls.error_order = cls.tableau.error_order

    def init(self, f: VectorField, t0: float, y0: Tensor) -> State:
        return (f(t0, y0),) if self.tableau.fsal else ()

    def step(self, f: VectorField, t0: Time, t1: Time, y0: Tensor, state: State) -> Step:
        dt, method = step_length(t0, t1, y0), self.tableau
        start, end = as_time(t0, y0), as_time(t1, y0)
        stages = [state[0] if state else f(start, y0)]
        y1 = y0
        for c, row in zip(method.c, method.a, strict=True):
            y1 = combine(y0, stages, weights=row, dt=dt)
            stages.append(f(end if c == 1.0 else _later(start, dt, c), y1))
        if not state:
            y1 = combine(y0, stages, weights=method.b, dt=dt)
        error = partial(self._error, stages, dt) if method.error else None
        return Step(y1, error, (stages[-1],) if state else (), self._interpolant(f, t0, t1, y0, y1, stages))

    def _error(self, stages: Sequence[Tensor], dt: Time) -> Tensor:
        with torch.no_grad():
            return _weighted_sum(stages, weights=self.tableau.error, dt=dt)

    def _interpolant(
        self, f: VectorField, t0: Time, t1: Time, y0: Tensor, y1: Tensor, stages: Sequence[Tensor]
    ) -> Interpolant:
        method = self.tableau
        if method.order == 1:
            return linear_interpolant(t0, t1, y0, y1)
        slope1 = partial(stages.__getitem__, -1) if method.fsal else partial(f, as_time(t1, y1), y1)
        dt = step_length(t0, t1, y0)
        quartic = partial(_weighted_sum, stages, weights=method.dense, dt=dt) if method.dense else None
        return hermite_interpolant(t0, t1, y0, y1, slope0=stages[0], slope1=slope1, quartic=quartic)


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
    """Second order, two evaluations, with Euler as the embedded method. For loose tolerances."""

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
    """Dormand and Prince's pair with Shampine's quartic interpolant: fifth order, six evaluations.

    The first choice for problems that are not stiff.
    """

    tableau = tableau.DOPRI5


def combine(y: Tensor, stages: Sequence[Tensor], *, weights: Sequence[float], dt: Time) -> Tensor:
    """Return y + dt sum_i w_i k_i, one fused addition for each weight that is not zero."""
    owned = False  # the first addition allocates the result; later ones add in place, which autograd allows here
    for weight, stage in zip(weights, stages, strict=False):
        if weight:
            if owned and not isinstance(dt, Tensor):  # in place with a tensor dt, vmap would loop over the runs
                y = y.add_(stage, alpha=dt * weight)
            else:
                y, owned = add_scaled(y, stage, dt, weight=weight), True
    return y


def _weighted_sum(stages: Sequence[Tensor], *, weights: Sequence[float], dt: Time) -> Tensor:
    """Return dt sum_i w_i k_i; the first weight must not be zero."""
    return combine(stages[0] * (dt * weights[0]), stages[1:], weights=weights[1:], dt=dt)


def _later(t: Time, dt: Time, c: float) -> Time:
    """Return t + c dt, for tensors in one operation."""
    return torch.add(t, dt, alpha=c) if isinstance(t, Tensor) else t + c * dt
