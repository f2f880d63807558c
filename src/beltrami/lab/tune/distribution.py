"""Span: where the value of one setting may lie while searching."""

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any

DIGITS = 4  # significant, of a drawn number: what one can read, and more than validation can tell apart


class Distribution(ABC):
    """The values that a setting may take, as the image of the unit interval: a uniform u gives a random value."""

    @abstractmethod
    def at(self, u: float) -> Any:
        """The value at 0 <= u < 1."""

    @abstractmethod
    def holds(self, value: Any) -> bool:
        """Whether the value lies in it."""


@dataclass(frozen=True)
class Uniform(Distribution):
    """Numbers from ``low`` to ``high``, all alike."""

    low: float
    high: float

    def __post_init__(self) -> None:
        if not self.low < self.high:
            raise ValueError(f"Uniform needs `low` below `high`; got {self.low}, {self.high}.")

    def at(self, u: float) -> float:
        return _readable(self.low + u * (self.high - self.low), self.low, self.high)

    def holds(self, value: Any) -> bool:
        return _is_number(value) and bool(self.low <= value <= self.high)


@dataclass(frozen=True)
class LogUniform(Distribution):
    """Positive numbers from ``low`` to ``high``, their logarithms all alike: for settings whose order of magnitude is
    the question."""

    low: float
    high: float

    def __post_init__(self) -> None:
        if not 0 < self.low < self.high:
            raise ValueError(f"LogUniform needs `low` above 0 and below `high`; got {self.low}, {self.high}.")

    def at(self, u: float) -> float:
        return _readable(self.low * math.exp(u * math.log(self.high / self.low)), self.low, self.high)

    def holds(self, value: Any) -> bool:
        return _is_number(value) and bool(self.low <= value <= self.high)


@dataclass(frozen=True)
class Whole(Distribution):
    """Whole numbers from ``low`` to ``high``, both of them included."""

    low: int
    high: int

    def __post_init__(self) -> None:
        if not self.low < self.high:
            raise ValueError(f"Whole needs `low` below `high`; got {self.low}, {self.high}.")

    def at(self, u: float) -> int:
        return self.low + int(u * (self.high - self.low + 1))

    def holds(self, value: Any) -> bool:
        return _is_number(value) and value == int(value) and self.low <= value <= self.high


@dataclass(frozen=True, init=False)
class Choice(Distribution):
    """One of several values."""

    options: tuple[Any, ...]

    def __init__(self, *options: Any) -> None:
        if len(options) < 2:
            raise ValueError(f"Choice needs at least two options; got {options}.")
        object.__setattr__(self, "options", options)

    def at(self, u: float) -> Any:
        return self.options[int(u * len(self.options))]

    def holds(self, value: Any) -> bool:
        return value in self.options


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def _readable(value: float, low: float, high: float) -> float:
    return min(max(float(f"{value:.{DIGITS}g}"), low), high)
