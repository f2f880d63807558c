"""A time limit of studies: batches that cannot end in time, by the durations on record, are not started."""

import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from statistics import mean, median

from beltrami.lab.study.planning import PlannedRun
from beltrami.lab.study.record import Record

MARGIN = 1.2  # factor on the durations on record


class TimeLimit:
    """The time that is left for runs.

    The duration of a run is that of the last batch of its cell since the limit began, with the time to load its
    problem; else the mean of the cell's runs on record; else the largest such mean of its study on the dataset; for a
    study without records, the median of all studies. Records count if they are from the same kind of device, a CPU or a
    GPU.

    Args:
        seconds: the time from now on.
        records: runs that have been made before.
        device: where the runs will be made.
        clock: returns the time in seconds.
    """

    def __init__(
        self, seconds: float, records: Iterable[Record], *, device: str, clock: Callable[[], float] = time.monotonic
    ) -> None:
        if not 0 < seconds < float("inf"):
            raise ValueError(f"`--hours` must be above 0; got {seconds / 3600:g}.")
        self._clock, self._end = clock, clock() + seconds
        taken: dict[tuple[str, str, str], list[float]] = defaultdict(list)
        self._studies = set()
        for record in records:
            self._studies.add(record.study)
            duration = record.number("train_seconds")
            if duration is not None and (record.device == "cpu") == (device == "cpu"):
                taken[record.study, record.dataset, record.method].append(duration)
        self._recorded = {cell: mean(values) for cell, values in taken.items()}
        self._measured: dict[tuple[str, str, str], float] = {}
        self._begun: dict[tuple[str, str], float] = {}

    @property
    def left(self) -> float:
        """The seconds that are left."""
        return self._end - self._clock()

    def expected(self, runs: Sequence[PlannedRun]) -> float | None:
        """Return how many seconds a batch of runs of one cell will take; None if nothing is known."""
        cell = _cell(runs[0])
        known = self._measured.get(cell, self._recorded.get(cell))
        if known is None:
            known = max((each for of, each in self._recorded.items() if of[:2] == cell[:2]), default=None)
        if known is None and cell[0] not in self._studies:
            others = [each for of, each in self._recorded.items() if of[1] == cell[1]]
            known = median(others) if others else None
        return None if known is None else MARGIN * len(runs) * known

    def allows(self, runs: Sequence[PlannedRun]) -> bool:
        """Return whether a batch can end in time. One of unknown duration may start while there is time."""
        return self.left > (self.expected(runs) or 0.0)

    def begin(self, runs: Sequence[PlannedRun]) -> None:
        """Note that a batch begins."""
        self._begun[runs[0].identity] = self._clock()

    def end(self, runs: Sequence[PlannedRun]) -> None:
        """Note that a batch has ended with a result for each run."""
        self._measured[_cell(runs[0])] = (self._clock() - self._begun.pop(runs[0].identity)) / len(runs)


def _cell(run: PlannedRun) -> tuple[str, str, str]:
    """Return study, dataset and method."""
    return run.study, *run.group
