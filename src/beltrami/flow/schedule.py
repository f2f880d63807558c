"""Schedules: coefficients that are functions of time."""

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from itertools import pairwise

from torch import Tensor

Time = float | Tensor
ROUND_OFF = 1e-5  # of an interval: times are sums of steps, on a GPU in single precision


class Schedule(ABC):
    """Coefficients c_k(t), not negative and with sum one at all times.

    Attributes:
        count: how many.
    """

    count: int

    @abstractmethod
    def __call__(self, t: Time) -> list[Time]:
        """The coefficients at ``t``; tensors () where the time is one."""


@dataclass(frozen=True)
class PerInterval(Schedule):
    """One after the other, each for an interval of time and the last for ever: the layers of a network.

    Euler steps of that length see each of them once. Steps of higher order look beyond their interval's end.

    Args:
        count: how many.
        length: of an interval.
    """

    count: int
    length: float = 1.0

    def __post_init__(self) -> None:
        _check(self, self.count, self.length, "length")

    def __call__(self, t: Time) -> list[Time]:
        place = t / self.length + ROUND_OFF
        begun: list[Time] = [1.0, *((place >= k) * 1.0 for k in range(1, self.count)), 0.0]
        return [here - there for here, there in pairwise(begun)]


@dataclass(frozen=True)
class Bernstein(Schedule):
    r"""Bernstein's polynomials of time, a smooth passage from the first to the last.

    .. math:: c_k(t) = \binom{K - 1}{k} s^k (1 - s)^{K - 1 - k}, \qquad s = t / T

    Beyond T the last goes on.

    Args:
        count: K.
        time: T.
    """

    count: int
    time: float

    def __post_init__(self) -> None:
        _check(self, self.count, self.time, "time")

    def __call__(self, t: Time) -> list[Time]:
        s = t / self.time
        s = s.clamp(0, 1) if isinstance(s, Tensor) else min(max(s, 0.0), 1.0)
        last = self.count - 1
        return [math.comb(last, k) * s**k * (1 - s) ** (last - k) for k in range(self.count)]


def _check(schedule: Schedule, count: int, length: float, name: str) -> None:
    if count < 1 or not 0 < length < math.inf:
        raise ValueError(
            f"{type(schedule).__name__} needs `count` at least 1 and a positive `{name}`; got {count} and {length}."
        )
