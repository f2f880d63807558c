"""Statistics of many comparisons: Holm's correction of p-values, and ranks of methods over datasets."""

import math
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar

K = TypeVar("K", bound=Hashable)
LEVEL = 0.05  # probability of a wrong claim


def holm(p_values: Mapping[K, float]) -> dict[K, float]:
    r"""Return p-values adjusted for the number of tests by Holm's step-down method.

    With :math:`p_{(1)} \le \dots \le p_{(m)}`, the adjusted values are

    .. math:: \tilde p_{(k)} = \max_{l \le k} \min(1, (m - l + 1)\, p_{(l)}).

    To claim those below 0.05 is wrong in any of them with probability at most 0.05, however the tests depend on each
    other.
    """
    adjusted: dict[K, float] = {}
    largest, count = 0.0, len(p_values)
    for place, (name, p) in enumerate(sorted(p_values.items(), key=lambda item: item[1])):
        largest = max(largest, min(1.0, (count - place) * p))
        adjusted[name] = largest
    return {name: adjusted[name] for name in p_values}


@dataclass(frozen=True)
class Ranking:
    r"""Ranks of k methods over N datasets (Demšar 2006): rank 1 is the highest value, equal values share their ranks.

    Friedman's test asks whether the methods differ at all; with average ranks :math:`R_j`,

    .. math:: \chi^2 = \frac{12 N}{k (k + 1)} \Big( \sum_j R_j^2 - \frac{k (k + 1)^2}{4} \Big) \Big/ c,

    where c corrects for ties. Two methods differ by Nemenyi's test if their average ranks differ by at least the
    critical difference :math:`q \sqrt{k (k + 1) / 6 N}`, where q is the 0.95 quantile of the studentised range of k
    values divided by :math:`\sqrt 2`.
    """

    average: Mapping[str, float]  # average rank by method, the best first
    datasets: int  # N
    p_value: float  # of Friedman's test
    critical_difference: float

    @staticmethod
    def of(values: Mapping[str, Sequence[float]]) -> "Ranking":
        """Return the ranking of methods from their values on the same datasets, at least two of each."""
        from scipy.stats import chi2, rankdata, studentized_range

        methods, table = list(values), list(zip(*values.values(), strict=True))
        k, n = len(methods), len(table)
        if k < 2 or n < 2:
            raise ValueError(f"Ranking needs at least 2 methods and 2 datasets; got {k} and {n}.")
        ranks = [list(map(float, rankdata([-value for value in row]))) for row in table]
        average = {name: sum(row[j] for row in ranks) / n for j, name in enumerate(methods)}
        ties = sum(row.count(rank) ** 2 - 1 for row in ranks for rank in row)  # t^3 - t for each tie of t values
        correction = 1 - ties / (n * k * (k * k - 1))
        spread = sum(rank**2 for rank in average.values()) - k * (k + 1) ** 2 / 4
        statistic = 12 * n / (k * (k + 1)) * spread / correction if correction > 0 else 0.0
        q = float(studentized_range.ppf(1 - LEVEL, k, math.inf)) / math.sqrt(2)
        return Ranking(
            dict(sorted(average.items(), key=lambda item: item[1])),
            n,
            float(chi2.sf(statistic, k - 1)),
            q * math.sqrt(k * (k + 1) / (6 * n)),
        )

    @property
    def cliques(self) -> list[tuple[str, ...]]:
        """The largest groups of methods, in order of their ranks, that Nemenyi's test does not tell apart."""
        names = list(self.average)
        found: list[tuple[int, int]] = []
        for first, name in enumerate(names):
            last = max(
                k
                for k, other in enumerate(names)
                if self.average[other] - self.average[name] < self.critical_difference
            )
            if last > first and (not found or last > found[-1][1]):
                found.append((first, last))
        return [tuple(names[first : last + 1]) for first, last in found]
