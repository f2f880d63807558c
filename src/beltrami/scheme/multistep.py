"""Linear multistep methods of Adams, for steps of equal length."""

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import ClassVar

from torch import Tensor

from beltrami.scheme.base import Solver, State, Step, VectorField
from beltrami.scheme.interpolant import hermite_interpolant
from beltrami.scheme.runge_kutta import RK4, combine

# Weights of f_n, f_{n-1}, ... by order.
BASHFORTH = {
    1: (1.0,),
    2: (3 / 2, -1 / 2),
    3: (23 / 12, -16 / 12, 5 / 12),
    4: (55 / 24, -59 / 24, 37 / 24, -9 / 24),
    5: (1901 / 720, -2774 / 720, 2616 / 720, -1274 / 720, 251 / 720),
}
# Weights of f_{n+1}, f_n, f_{n-1}, ... by order.
MOULTON = {
    2: (1 / 2, 1 / 2),
    3: (5 / 12, 8 / 12, -1 / 12),
    4: (9 / 24, 19 / 24, -5 / 24, 1 / 24),
    5: (251 / 720, 646 / 720, -264 / 720, 106 / 720, -19 / 720),
}


class Multistep(Solver):
    """Keeps earlier slopes, the newest first; the first steps, which lack some, are those of RK4."""

    equal_steps: ClassVar[bool] = True
    orders: ClassVar[Sequence[int]]

    def __post_init__(self) -> None:
        if self.order not in self.orders:
            low, high = min(self.orders), max(self.orders)
            raise ValueError(f"{type(self).__name__} has `order` {low} to {high}; got {self.order}.")

    @property
    @abstractmethod
    def depth(self) -> int:
        """The number of slopes f_n, f_{n-1}, ... that a step needs."""

    @abstractmethod
    def advance(self, f: VectorField, t0: float, t1: float, y0: Tensor, slopes: Sequence[Tensor]) -> Tensor:
        """Return ``y1`` from ``depth`` slopes."""

    def init(self, f: VectorField, t0: float, y0: Tensor) -> State:
        return ()

    def step(self, f: VectorField, t0: float, t1: float, y0: Tensor, state: State) -> Step:
        slopes = (f(t0, y0), *state)
        complete = len(slopes) == self.depth
        y1 = self.advance(f, t0, t1, y0, slopes) if complete else RK4().step(f, t0, t1, y0, ()).y1
        path = hermite_interpolant(t0, t1, y0, y1, slope0=slopes[0], slope1=partial(f, t1, y1))
        return Step(y1, None, slopes[: self.depth - 1], path)


@dataclass(frozen=True)
class AdamsBashforth(Multistep):
    """y1 = y0 + dt sum_j b_j f_{n-j}: one evaluation a step for every order, but stable for short steps only.

    Args:
        order: 1 to 5; between steps at most 4.
    """

    order: int = 4
    orders = tuple(BASHFORTH)

    @property
    def depth(self) -> int:
        return self.order

    def advance(self, f: VectorField, t0: float, t1: float, y0: Tensor, slopes: Sequence[Tensor]) -> Tensor:
        return combine(y0, slopes, weights=BASHFORTH[self.order], dt=t1 - t0)


@dataclass(frozen=True)
class AdamsMoulton(Multistep):
    """Predict with Adams-Bashforth of one order less, then correct:
    y1 = y0 + dt (m_0 f(t1, predicted) + sum_j m_{j+1} f_{n-j}).

    Two evaluations a step; more accurate than Adams-Bashforth and stable for longer steps.

    Args:
        order: 2 to 5, of the corrector; between steps at most 4.
    """

    order: int = 4
    orders = tuple(MOULTON)

    @property
    def depth(self) -> int:
        return self.order - 1

    def advance(self, f: VectorField, t0: float, t1: float, y0: Tensor, slopes: Sequence[Tensor]) -> Tensor:
        predicted = combine(y0, slopes, weights=BASHFORTH[self.order - 1], dt=t1 - t0)
        return combine(y0, (f(t1, predicted), *slopes), weights=MOULTON[self.order], dt=t1 - t0)
