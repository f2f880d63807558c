"""Axes of figures: the map of values to the page, round ticks and their texts."""

import math
import re
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import pairwise

import numpy

from beltrami.report.figure import Values

TICKS = 5  # about so many on an axis


@dataclass(frozen=True)
class Scale:
    """A map of the values from ``low`` to ``high`` to the coordinates from ``start`` to ``stop``.

    The map is linear, with ``log`` linear in the logarithm; values that have none become NaN.
    """

    low: float
    high: float
    start: float
    stop: float
    log: bool = False

    def __call__(self, values: Values | float) -> Values:
        """Return the coordinates of values."""
        low, high, v = (self._transformed(each) for each in (self.low, self.high, values))
        found: Values = self.start + (v - low) / (high - low) * (self.stop - self.start)
        return found

    def ticks(self) -> list[float]:
        """Return round values inside the axis."""
        return _decades(self.low, self.high) if self.log else _round_values(self.low, self.high)

    def _transformed(self, values: Values | float) -> Values:
        array = numpy.asarray(values, dtype=float)
        return numpy.log10(numpy.where(array > 0, array, numpy.nan)) if self.log else array


def value_range(values: Iterable[Values], *, log: bool = False, widen: bool = False) -> tuple[float, float]:
    """Return the lowest and the highest of all finite values, never equal; widened to round ticks if asked."""
    found = numpy.concatenate([numpy.ravel(numpy.asarray(each, dtype=float)) for each in values] or [numpy.zeros(1)])
    found = found[numpy.isfinite(found) & ((found > 0) | (not log))]
    low, high = (float(found.min()), float(found.max())) if len(found) else (1.0, 10.0) if log else (0.0, 1.0)
    if log:
        high *= 1.0001  # never equal
        if widen:
            return 10.0 ** math.floor(math.log10(low)), 10.0 ** math.ceil(math.log10(high))
        return low, high
    if low == high:
        low, high = low - abs(low) / 2 - 0.5 * (low == 0), high + abs(high) / 2 + 0.5 * (high == 0)
    if widen:
        step = _step(low, high)
        low, high = math.floor(low / step + 1e-9) * step, math.ceil(high / step - 1e-9) * step
    return low, high


def tick_texts(ticks: list[float]) -> list[str]:
    """Return the texts of ticks, with as many decimals as they need and a comma between thousands."""
    largest = max((abs(tick) for tick in ticks), default=0.0)
    decades = len(ticks) > 1 and ticks[1] >= 9 * ticks[0] > 0
    if decades or largest >= 1e6 or 0 < largest < 1e-3:
        return [f"{tick:,.0f}" if 1 <= abs(tick) < 1e6 else _short(tick) for tick in ticks]
    gap = min((b - a for a, b in pairwise(ticks)), default=largest or 1.0)
    decimals = max(0, -math.floor(math.log10(gap) + 1e-9))
    decimals += round(gap * 10**decimals) != round(gap * 10**decimals, 6)
    return [f"{tick:z,.{decimals}f}" for tick in ticks]


def _short(value: float) -> str:
    """Return a number with a short exponent, such as 1e9."""
    return re.sub(r"e([+-])0*", lambda found: "e" + found[1].strip("+"), f"{value:g}")


def number_text(value: float) -> str:
    """Return a number for people: whole numbers with a comma between thousands, others with four digits."""
    if not math.isfinite(value):
        return "-"
    return f"{value:,.0f}" if value == round(value) and abs(value) < 1e15 else f"{value:,.4g}"


def _step(low: float, high: float) -> float:
    rough = (high - low) / TICKS
    power = 10.0 ** math.floor(math.log10(rough))
    return float(next(factor * power for factor in (1, 2, 5, 10) if factor * power >= rough * 0.999))


def _round_values(low: float, high: float) -> list[float]:
    step = _step(low, high)
    first, last = math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9)
    return [number * step for number in range(first, last + 1)]


def _decades(low: float, high: float) -> list[float]:
    first, last = math.ceil(math.log10(low) - 1e-9), math.floor(math.log10(high) + 1e-9)
    if last - first < 2:  # less than three powers of ten: also twice and five times these
        wanted = [factor * 10.0**power for power in range(first - 1, last + 1) for factor in (1, 2, 5)]
        return [value for value in wanted if low * 0.999 <= value <= high * 1.001]
    return [10.0**power for power in range(first, last + 1, math.ceil((last - first) / (TICKS + 1)))]
