"""Clerk: keeps the books of a search while its trials run, wherever they run."""

from collections.abc import Sequence
from typing import Protocol

from beltrami.lab.study.record import Record
from beltrami.lab.study.record_log import RecordLog
from beltrami.lab.tune.halving import Rungs
from beltrami.lab.tune.search import Search, ranking
from beltrami.lab.tune.trial import Progress


class Watch(Protocol):
    """Who looks on."""

    def epoch(self, going: int, best: Record | None) -> None:
        """Told, when a trial reports, how many go on and which is the best of those that are over."""

    def end(self, line: Record) -> None:
        """Told of a trial that is over and on the disk."""


class Scheduler:
    """Hears of trials, says who goes on, and leaves a line for each that is over.

    What earlier trials of the ledger had at the milestones counts, as if the search had never been interrupted.
    """

    def __init__(self, search: Search, ledger: RecordLog, watch: Watch) -> None:
        self.search, self.ledger, self.watch = search, ledger, watch
        self.milestones: Sequence[int] = search.halving.milestones(search.base.train.epochs)
        self._rungs = Rungs()
        for line in ledger.runs():
            if line.error is None:
                self._rungs.remember(line.also["by_epoch"], self.milestones)
        self._heard: dict[int, Progress] = {}
        self._stopped: set[int] = set()
        self._errors: dict[int, str] = {}

    def begin(self, number: int) -> None:
        """A trial starts."""
        self._heard[number] = Progress()

    def hear(self, number: int, progress: Progress) -> bool:
        """Take down how far a trial is; whether it goes on."""
        self._heard[number] = progress
        self.watch.epoch(len(self._heard), next(iter(ranking(self.ledger.lines)), None))
        validation = progress.validation
        if progress.final is not None or progress.epochs not in self.milestones or validation is None:
            return True
        if self._rungs.climb(progress.epochs, validation):
            return True
        self._stopped.add(number)
        return False

    def fail(self, number: int, error: str) -> None:
        """Take down why a trial will have no result."""
        self._errors[number] = error

    def end(self, number: int) -> None:
        """A trial is over: by itself, by our word, or by an error."""
        progress, stopped = self._heard.pop(number, Progress()), number in self._stopped
        error = self._errors.pop(number, None)
        if error is None and progress.final is None and not stopped:
            error = f"the trial was ended from outside after {progress.epochs} epochs"
        line = self.search.line(number, progress, stopped=stopped, error=error)
        self.ledger.append(line)
        self.watch.end(line)
