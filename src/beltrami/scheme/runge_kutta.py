"""Explicit Runge-Kutta methods, given by their Butcher tableaux."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import ClassVar

import torch
from torch import Tensor

from beltrami.scheme.base import Solver, State, Step, Time, VectorField
from beltrami.scheme.interpolant import add_scaled, as_time, hermite_interpolant, linear_interpolant


@dataclass(frozen=True)
class Tableau:
    r"""The coefficients of an explicit Runge-Kutta method of s stages.

    .. math:: k_i = f(t_0 + c_i h, \; y_0 + h \sum_{j<i} a_{ij} k_j), \qquad y_1 = y_0 + h \sum_i b_i k_i

    ``dense`` are the weights d of the quartic term :math:`\theta^2 (1 - \theta)^2 h \sum_i d_i k_i` that turns the
    cubic Hermite interpolant into the continuous extension of the method; empty without one.
    """

    order: int
    a: tuple[tuple[float, ...], ...]  # rows 2 to s, row i with i - 1 entries
    b: tuple[float, ...]
    c: tuple[float, ...]  # of rows 2 to s
    error: tuple[float, ...] = ()  # b minus the weights of the embedded method; empty without one
    error_order: int | None = None
    dense: tuple[float, ...] = ()

    @property
    def fsal(self) -> bool:
        """Whether the last stage is the first stage of the next step ("first same as last"): its row is ``b``."""
        return len(self.a) > 0 and (*self.a[-1], 0.0) == self.b


class RungeKutta(Solver):
    """The explicit method of ``tableau``; keeps its last stage if that is the first of the next step. The times of a
    step may be tensors on the device, and its length may be zero."""

    tableau: ClassVar[Tableau]

    def __init_subclass__(cls) -> None:
        cls.order = cls.tableau.order
        cls.error_order = cls.tableau.error_order

    def init(self, f: VectorField, t0: float, y0: Tensor) -> State:
        return (f(t0, y0),) if self.tableau.fsal else ()

    def step(self, f: VectorField, t0: Time, t1: Time, y0: Tensor, state: State) -> Step:
        dt, method = as_time(t1 - t0, y0), self.tableau
        start, end = as_time(t0, y0), as_time(t1, y0)
        stages = [state[0] if state else f(start, y0)]
        y1 = y0
        for c, row in zip(method.c, method.a, strict=True):
            y1 = combine(y0, stages, weights=row, dt=dt)
            stages.append(f(end if c == 1.0 else _later(start, dt, c), y1))
        if not state:
            y1 = combine(y0, stages, weights=method.b, dt=dt)
        if method.order == 1:
            path = linear_interpolant(t0, t1, y0, y1)
        else:
            slope1 = partial(stages.__getitem__, -1) if method.fsal else partial(f, end, y1)
            quartic = partial(_weighted_sum, stages, weights=method.dense, dt=dt) if method.dense else None
            path = hermite_interpolant(t0, t1, y0, y1, slope0=stages[0], slope1=slope1, quartic=quartic)
        error = partial(self._error, stages, dt) if method.error else None
        return Step(y1, error, (stages[-1],) if state else (), path)

    @torch.no_grad()
    def _error(self, stages: Sequence[Tensor], dt: Time) -> Tensor:
        return _weighted_sum(stages, weights=self.tableau.error, dt=dt)


@dataclass(frozen=True)
class Euler(RungeKutta):
    """y1 = y0 + dt f(t0, y0): first order, one evaluation. With dt = 1 a residual layer."""

    tableau = Tableau(order=1, a=(), b=(1.0,), c=())


@dataclass(frozen=True)
class Midpoint(RungeKutta):
    """Second order, two evaluations, no error estimate."""

    tableau = Tableau(order=2, a=((1 / 2,),), b=(0.0, 1.0), c=(1 / 2,))


@dataclass(frozen=True)
class Heun(RungeKutta):
    """Second order, two evaluations, with Euler as the embedded method. For loose tolerances."""

    tableau = Tableau(order=2, a=((1.0,),), b=(1 / 2, 1 / 2), c=(1.0,), error=(-1 / 2, 1 / 2), error_order=1)


@dataclass(frozen=True)
class RK4(RungeKutta):
    """The classical method: fourth order, four evaluations, no error estimate."""

    tableau = Tableau(
        order=4, a=((1 / 2,), (0.0, 1 / 2), (0.0, 0.0, 1.0)), b=(1 / 6, 1 / 3, 1 / 3, 1 / 6), c=(1 / 2, 1 / 2, 1.0)
    )


@dataclass(frozen=True)
class Bosh3(RungeKutta):
    """Bogacki and Shampine's pair: third order, three evaluations. For tolerances around 1e-3."""

    tableau = Tableau(
        order=3,
        a=((1 / 2,), (0.0, 3 / 4), (2 / 9, 1 / 3, 4 / 9)),
        b=(2 / 9, 1 / 3, 4 / 9, 0.0),
        c=(1 / 2, 3 / 4, 1.0),
        error=(-5 / 72, 1 / 12, 1 / 9, -1 / 8),
        error_order=2,
    )


@dataclass(frozen=True)
class Dopri5(RungeKutta):
    """Dormand and Prince's pair, with Shampine's quartic interpolant: fifth order, six evaluations. The first choice
    for problems that are not stiff."""

    tableau = Tableau(
        order=5,
        a=(
            (1 / 5,),
            (3 / 40, 9 / 40),
            (44 / 45, -56 / 15, 32 / 9),
            (19372 / 6561, -25360 / 2187, 64448 / 6561, -212 / 729),
            (9017 / 3168, -355 / 33, 46732 / 5247, 49 / 176, -5103 / 18656),
            (35 / 384, 0.0, 500 / 1113, 125 / 192, -2187 / 6784, 11 / 84),
        ),
        b=(35 / 384, 0.0, 500 / 1113, 125 / 192, -2187 / 6784, 11 / 84, 0.0),
        c=(1 / 5, 3 / 10, 4 / 5, 8 / 9, 1.0, 1.0),
        error=(71 / 57600, 0.0, -71 / 16695, 71 / 1920, -17253 / 339200, 22 / 525, -1 / 40),
        error_order=4,
        dense=(
            -12715105075 / 11282082432,
            0.0,
            87487479700 / 32700410799,
            -10690763975 / 1880347072,
            701980252875 / 199316789632,
            -1453857185 / 822651844,
            69997945 / 29380423,
        ),
    )


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
