"""Halving: which trials of a search go on."""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median


@dataclass(frozen=True)
class Halving:
    r"""Asynchronous hyperband with a grace period and a half-life, both in epochs.

    At the epochs :math:`g, g + h, g + 2h, \dots` a trial goes on where

    .. math:: v \ge \mathrm{median}(v_1, \dots, v_k),

    v its best validation accuracy so far and v_1, ..., v_k those of the trials that came to this epoch before it; the
    first goes on. Nobody waits for anybody, and in the long run half of the trials are left after every half-life.

    Args:
        grace: g, epochs before anything is stopped.
        half_life: h, epochs in which half of the trials end.
    """

    grace: int = 10
    half_life: int = 10

    def __post_init__(self) -> None:
        if self.grace < 1 or self.half_life < 1:
            raise ValueError(
                f"Halving needs `grace` and `half_life` of at least 1; got {self.grace}, {self.half_life}."
            )

    def milestones(self, epochs: int) -> range:
        """The epochs at which a trial of this many is judged; at its last it is over anyhow."""
        return range(self.grace, epochs, self.half_life)


class Rungs:
    """What the trials of a search had at each milestone."""

    def __init__(self) -> None:
        self._reached: dict[int, list[float]] = defaultdict(list)

    def climb(self, epoch: int, validation: float) -> bool:
        """Note what a trial has at a milestone; whether it goes on."""
        before = self._reached[epoch]
        goes_on = not before or validation >= median(before)
        before.append(validation)
        return goes_on

    def remember(self, by_epoch: Sequence[float], milestones: Sequence[int]) -> None:
        """Note a trial of the past by its validation after each epoch that it reached."""
        for epoch in milestones:
            if epoch <= len(by_epoch):
                self._reached[epoch].append(by_epoch[epoch - 1])
