"""Sample: numbers of one kind, with their mean and what is known of it."""

import math
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from statistics import mean, stdev

from beltrami.lab.study.record import Record

LEVEL = 0.95


@dataclass(frozen=True)
class Sample:
    r"""The mean of n independent values and its 95% interval by Student's t,

    .. math:: \bar y \pm t_{n-1, 0.975}\, s / \sqrt n, \qquad s^2 = \frac{1}{n-1} \sum_k (y_k - \bar y)^2.

    Args:
        count: n.
        mean: of the values.
        half: half the width of the interval; None for a single value, which says nothing of its spread.
    """

    count: int
    mean: float
    half: float | None

    @staticmethod
    def of(values: Sequence[float]) -> "Sample":
        n = len(values)
        if n == 0:
            raise ValueError("Sample needs at least one value; got none.")
        if n == 1:
            return Sample(1, values[0], None)
        return Sample(n, mean(values), quantile(n - 1) * stdev(values) / math.sqrt(n))

    @property
    def interval(self) -> tuple[float, float] | None:
        return None if self.half is None else (self.mean - self.half, self.mean + self.half)


def quantile(freedom: int) -> float:
    """The quantile of Student's distribution that leaves 2.5% above it."""
    from scipy.stats import t

    return float(t.ppf((1 + LEVEL) / 2, freedom))


def by_unit(lines: Iterable[Record], quantity: str) -> dict[str, float]:
    """The values that are independent of each other.

    Several splits: the mean on each of them, since runs on one split are alike. One split alone: every run by its seed.
    Runs without the number are left out.
    """
    values: dict[str, dict[int, float]] = defaultdict(dict)
    for line in lines:
        value = line.number(quantity)
        if value is not None:
            values[line.split][line.seed] = value
    if len(values) == 1:
        (runs,) = values.values()
        return {str(seed): value for seed, value in runs.items()}
    return {split: mean(runs.values()) for split, runs in values.items()}
