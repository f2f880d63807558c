"""Running a search: its trials on an executor, weak ones stopped early, and a record of each."""

from collections import defaultdict
from collections.abc import Generator, Sequence
from statistics import median

from beltrami.errors import in_words
from beltrami.lab.executor import Executor
from beltrami.lab.study.record import RecordLog, latest
from beltrami.lab.study.runner import Watch
from beltrami.lab.tune.search import Search, ranking
from beltrami.lab.tune.trial import TrialProgress, train_trial
from beltrami.lab.worker import Died, Finished, JobReport, OnEpoch


class TrialWorker:
    """Runs trials by their numbers: reports their progress at milestones, and ends with it or with an error."""

    def __init__(self, search: Search, device: str) -> None:
        self.search, self.device = search, device

    def run(self, job: int, on_epoch: OnEpoch) -> Generator[JobReport | Finished, None, None]:
        progress = TrialProgress()
        try:
            for progress in train_trial(self.search.trial(job), device=self.device):
                if progress.final is None and progress.epochs in self.search.milestones:
                    yield JobReport(progress)
        except Exception as error:
            yield Finished(in_words(error), clean=False)
        else:
            yield Finished(progress)


class Rungs:
    """The validation accuracies of the trials at each milestone."""

    def __init__(self) -> None:
        self._reached: dict[int, list[float]] = defaultdict(list)

    def climb(self, epoch: int, validation: float) -> bool:
        """Add the accuracy of a trial at a milestone; return whether the trial goes on."""
        before = self._reached[epoch]
        goes_on = not before or validation >= median(before)
        before.append(validation)
        return goes_on

    def remember(self, by_epoch: Sequence[float], milestones: Sequence[int]) -> None:
        """Add a trial of the past, by its accuracy after each epoch."""
        for epoch in milestones:
            if epoch <= len(by_epoch):
                self._reached[epoch].append(by_epoch[epoch - 1])


class Scheduler:
    """Decides which trials go on, and appends a record of each that ends.

    Trials in the log count at the milestones as if the search had never been interrupted.
    """

    def __init__(self, search: Search, log: RecordLog, watch: Watch) -> None:
        self.search, self.log, self.watch = search, log, watch
        self._rungs = Rungs()
        for record in latest(log.records):
            if record.error is None:
                self._rungs.remember(record.extra["by_epoch"], search.milestones)
        self._running: dict[int, TrialProgress] = {}
        self._stopped: set[int] = set()

    def run(self, executor: Executor, numbers: Sequence[int]) -> None:
        """Run trials on an executor with a :class:`TrialWorker`, inside its block."""
        waiting = list(numbers)
        while True:
            while executor.has_room and waiting:
                self.begin(waiting[0])
                executor.submit(waiting.pop(0))
            if not executor.busy:
                return
            number, outcome = executor.wait(self.report)
            if isinstance(outcome, Died):
                self.end(number, "the trial's process died: the machine may be short of memory")
            else:
                self.end(number, outcome.value)

    def begin(self, number: int) -> None:
        """Note that a trial starts."""
        self._running[number] = TrialProgress()
        self._show()

    def report(self, number: int, progress: TrialProgress) -> bool:
        """Note the progress of a trial at a milestone; return whether it goes on."""
        self._running[number] = progress
        self._show()
        goes_on = self._rungs.climb(progress.epochs, progress.validation or 0.0)
        if not goes_on:
            self._stopped.add(number)
        return goes_on

    def end(self, number: int, outcome: TrialProgress | str) -> None:
        """Append the record of a trial, from its last progress or its error."""
        progress = self._running.pop(number)
        error = outcome if isinstance(outcome, str) else None
        if isinstance(outcome, TrialProgress):
            progress = outcome
        record = self.search.record(number, progress, stopped=number in self._stopped, error=error)
        self.log.append(record)
        self.watch.end(record)

    def _show(self) -> None:
        best = next(iter(ranking(self.log.records)), None)
        leader = "" if best is None else f", best {best.number('validation') or 0.0:.2f}% (trial {best.method})"
        self.watch.status(f"{len(self._running)} running{leader}")
