"""Linear multistep methods of Adams, for steps of equal length."""

from dataclasses import dataclass
from functools import partial
from typing import ClassVar

from torch import Tensor

from beltrami.arguments import checked
from beltrami.scheme.base import Solver, State, Step, VectorField
from beltrami.scheme.interpolant import hermite_interpolant
from beltrami.scheme.runge_kutta import RK4, combine

# Weights b of f_n, f_{n-1}, ... by order.
BASHFORTH = {
    1: (1.0,),
    2: (3 / 2, -1 / 2),
    3: (23 / 12, -16 / 12, 5 / 12),
    4: (55 / 24, -59 / 24, 37 / 24, -9 / 24),
    5: (1901 / 720, -2774 / 720, 2616 / 720, -1274 / 720, 251 / 720),
}
# Weights m of f_{n+1}, f_n, f_{n-1}, ... by order.
MOULTON = {
    2: (1 / 2, 1 / 2),
    3: (5 / 12, 8 / 12, -1 / 12),
    4: (9 / 24, 19 / 24, -5 / 24, 1 / 24),
    5: (251 / 720, 646 / 720, -264 / 720, 106 / 720, -19 / 720),
}


class Multistep(Solver):
    """Keeps earlier slopes, the newest first; the first steps, which lack some, are those of RK4.

    Predicts y1 = y0 + dt sum_j b_j f_{n-j}; a method with a corrector replaces it by
    y1 = y0 + dt (m_0 f(t1, predicted) + sum_j m_{j+1} f_{n-j}).
    """

    equal_steps: ClassVar[bool] = True
    corrector: ClassVar[bool]

    def __post_init__(self) -> None:
        lowest = 2 if self.corrector else 1
        if not lowest <= self.order <= 5:
            raise ValueError(f"{type(self).__name__} has `order` {lowest} to 5; got {self.order}.")

    def step(self, f: VectorField, t0: float, t1: float, y0: Tensor, state: State) -> Step:
        slopes, dt = (f(t0, y0), *state), t1 - t0
        depth = self.order - self.corrector  # order of the predictor, and the number of slopes that it needs
        if len(slopes) < depth:
            y1 = RK4().step(f, t0, t1, y0, ()).y1
        else:
            y1 = combine(y0, slopes, weights=BASHFORTH[depth], dt=dt)
            if self.corrector:
                y1 = combine(y0, (f(t1, y1), *slopes), weights=MOULTON[self.order], dt=dt)
        path = hermite_interpolant(t0, t1, y0, y1, slope0=slopes[0], slope1=partial(f, t1, y1))
        return Step(y1, None, slopes[: depth - 1], path)


@checked
@dataclass(frozen=True)
class AdamsBashforth(Multistep):
    """The predictor alone, ``order`` 1 to 5, between steps at most 4: one evaluation a step; stable for short steps."""

    order: int = 4
    corrector = False


@checked
@dataclass(frozen=True)
class AdamsMoulton(Multistep):
    """Predictor of one order less, then corrector of ``order`` 2 to 5, between steps at most 4: two evaluations a step;
    more accurate than Adams-Bashforth, and stable for longer steps."""

    order: int = 4
    corrector = True
