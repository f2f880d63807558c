"""Running a search: its trials on an executor, weak ones stopped early, and a record of each."""

import time
from collections import defaultdict
from collections.abc import Generator, Sequence
from statistics import mean, median

import torch
from torch import Tensor

from beltrami.config.build import build_training
from beltrami.config.spec import RunConfig
from beltrami.data import Split
from beltrami.errors import in_words
from beltrami.lab.executor import Executor, Finished, JobReport, OnEpoch
from beltrami.lab.study.record import RecordLog, latest
from beltrami.lab.study.runner import Watch
from beltrami.lab.tune.search import Search, TrialProgress, ranking
from beltrami.run import Problem, load_problem, on_split
from beltrami.train import Fitting, ValidationScore, seeded, start_fit

HIDDEN = -1  # the class of nodes whose label no trial may see


class TrialWorker:
    """Runs trials by their numbers: reports their progress at milestones, and ends with it or with an error."""

    def __init__(self, search: Search, device: str) -> None:
        self.search, self.device = search, device

    def run(self, job: int, on_epoch: OnEpoch) -> Generator[JobReport | Finished, None, None]:
        progress = TrialProgress()
        configs = self.search.sampling.configs(self.search.config(job))
        try:
            for progress in train_trial(configs, device=self.device):
                if progress.final is None and progress.epochs in self.search.milestones:
                    yield JobReport(progress)
        except Exception as error:
            yield Finished(in_words(error), clean=False)
        else:
            yield Finished(progress)


def train_trial(configs: Sequence[RunConfig], *, device: str = "cpu") -> Generator[TrialProgress, None, None]:
    """Train the runs of a trial in turns of one epoch, and yield its progress after each turn and at the end. Labels of
    test nodes are hidden before training begins."""
    start = time.perf_counter()
    problem = load_problem(configs[0], device=device)
    fits = [_start(config, on_split(problem, config)) for config in configs]
    by_epoch: list[float] = []
    try:
        while any(epochs := [next(fit, None) for fit in fits]):
            scores = [epoch.best[0] if epoch else fit.result.best for epoch, fit in zip(epochs, fits, strict=True)]
            by_epoch.append(_per_cent(scores))
            yield TrialProgress(tuple(by_epoch), time.perf_counter() - start)
        final = _per_cent([fit.result.best for fit in fits])
        yield TrialProgress(tuple(by_epoch), time.perf_counter() - start, final)
    finally:
        for fit in fits:
            fit.stop()


def without_test_labels(y: Tensor, split: Split) -> Tensor:
    """Return the labels (n,) of training and validation nodes, and ``HIDDEN`` at all others."""
    return torch.where(split.train | split.val, y, HIDDEN)


def _start(config: RunConfig, problem: Problem) -> Fitting:
    with seeded(config.seed):
        model = problem.model(config)
    inputs = model.prepare(problem.x, problem.edges, pos=problem.pos)
    y = without_test_labels(problem.dataset.y, problem.split)
    return start_fit(model, inputs, y, problem.split, build_training(config.train), problem.task)


def _per_cent(scores: Sequence[ValidationScore]) -> float:
    return round(100 * mean(score.accuracy for score in scores), 4)


class Rungs:
    r"""Asynchronous successive halving, with a grace period g and a half-life h in epochs.

    At the milestones :math:`g, g + h, g + 2h, \dots` a trial goes on if

    .. math:: v \ge \mathrm{median}(v_1, \dots, v_k),

    where v is its best validation accuracy so far and v_1, ..., v_k are those of the trials that reached this epoch
    before it; the first one goes on. No trial waits for another, and on average half of them are left after every
    half-life.
    """

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


def run_search(executor: Executor, search: Search, numbers: Sequence[int], log: RecordLog, *, watch: Watch) -> None:
    """Run trials by their numbers and append a record of each. The executor is inside its block and has a
    :class:`TrialWorker`. Trials in the log count at the milestones as if the search had never been interrupted."""
    rungs, running, stopped = Rungs(), dict[int, TrialProgress](), set[int]()
    for record in latest(log.records):
        if record.error is None:
            rungs.remember(record.extra["by_epoch"], search.milestones)

    def show() -> None:
        best = next(iter(ranking(log.records)), None)
        leader = "" if best is None else f", best {best.number('validation') or 0.0:.2f}% (trial {best.method})"
        watch.status(f"{len(running)} running{leader}")

    def goes_on(number: int, progress: TrialProgress) -> bool:
        running[number] = progress
        show()
        if rungs.climb(progress.epochs, progress.validation or 0.0):
            return True
        stopped.add(number)
        return False

    waiting = list(numbers)
    while waiting or executor.busy:
        while waiting and executor.has_room:
            running[waiting[0]] = TrialProgress()
            show()
            executor.submit(waiting.pop(0))
        number, outcome = executor.wait(goes_on)
        progress, error = running.pop(number), None
        if outcome is None:
            error = "the trial's process died: the machine may be short of memory"
        elif isinstance(outcome.value, str):
            error = outcome.value
        else:
            progress = outcome.value
        record = search.record(number, progress, stopped=number in stopped, error=error)
        log.append(record)
        watch.end(record)
