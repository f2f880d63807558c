"""Pair: two rows compared on the splits that both were trained on."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from beltrami.lab.study.record import Record
from beltrami.lab.study.sample import Sample, by_unit

Compare = Callable[[float, float], float]


def difference(one: float, other: float) -> float:
    return one - other


def ratio(one: float, other: float) -> float:
    return one / other


@dataclass(frozen=True)
class Comparison:
    """What the first of two rows is worth over the second.

    Args:
        one: the first row's name.
        other: the second's.
        compare: ``difference`` or ``ratio``.
    """

    one: str
    other: str
    compare: Compare = difference

    def sample(self, lines: Iterable[Record], quantity: str) -> Sample | None:
        """The comparison on every unit that both rows have (see ``by_unit``); None where they share none.

        Args:
            lines: of one dataset; runs that failed count for nothing.
            quantity: the name of the number compared.
        """
        kept = list(lines)
        ones, others = ([line for line in kept if line.row == name] for name in (self.one, self.other))
        runs = {(line.split, line.seed) for line in ones if line.number(quantity) is not None}
        runs &= {(line.split, line.seed) for line in others if line.number(quantity) is not None}
        first = by_unit([line for line in ones if (line.split, line.seed) in runs], quantity)
        second = by_unit([line for line in others if (line.split, line.seed) in runs], quantity)
        return Sample.of([self.compare(first[unit], second[unit]) for unit in first]) if first else None
