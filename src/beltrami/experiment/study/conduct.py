"""Conduct: the runs of a plan that are not done yet, and a line for each of them."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Protocol

import torch

from beltrami.data import make_split
from beltrami.errors import DataError, in_words
from beltrami.experiment.config import RunConfig
from beltrami.experiment.run import Problem
from beltrami.experiment.study.ledger import Ledger
from beltrami.experiment.study.line import Line
from beltrami.experiment.study.plan import Task, check_setups, groups
from beltrami.experiment.study.work import Done, Work

TOGETHER = {"cuda": 25, "cpu": 1}
"""Runs that are one program, by device: a GPU has room for many, a CPU gains nothing by them."""


class Watch(Protocol):
    """Who looks on."""

    def begin(self, tasks: Sequence[Task]) -> None:
        """Told of the runs that begin."""

    def epoch(self, number: int, going: int) -> None:
        """Told the epoch's number and how many runs go on."""

    def end(self, line: Line) -> None:
        """Told of a run that is over and on the disk."""

    def fall_back(self, why: str) -> None:
        """Told why runs are not done together as they were asked for."""


def pending(tasks: Sequence[Task], ledger: Ledger) -> list[Task]:
    """The tasks without a result: runs that failed are tried again."""
    check_setups(tasks, ledger.runs())
    done = ledger.done()
    return [task for task in tasks if task.identity not in done]


def conduct(
    work: Work, tasks: Sequence[Task], ledger: Ledger, *, device: str, together: int | None, watch: Watch
) -> None:
    """Do the tasks and append a line for each. A run that fails leaves its error, and the others go on.

    Args:
        work: what is done with a run.
        tasks: what is to be done; see ``pending``.
        ledger: where the lines go.
        device: where to compute.
        together: how many runs are one program; None for what suits the device.
        watch: who looks on.
    """
    size = TOGETHER[device.split(":")[0]] if together is None else together
    if size < 1:
        raise ValueError(f"`--together` needs at least 1; got {size}.")
    conductor = _Conductor(work, ledger, device, watch)
    for group in groups(tasks):
        if work.batches:
            conductor.in_batches(group, size)
        else:
            conductor.one_by_one(group)


@dataclass(frozen=True)
class _Conductor:
    work: Work
    ledger: Ledger
    device: str
    watch: Watch

    def in_batches(self, tasks: Sequence[Task], size: int) -> None:
        """``size`` runs as one program, or fewer once memory has been short; what is no program, one by one."""
        while tasks and size > 1:
            batch = tasks[:size]
            outcomes = self._together(batch)
            if isinstance(outcomes, (torch.OutOfMemoryError, MemoryError)):
                self.watch.fall_back(f"{len(batch)} runs together are too many for the memory: half as many")
                size = (len(batch) + 1) // 2
                continue
            if isinstance(outcomes, Exception):
                self.watch.fall_back(f"one by one, since runs together fail ({in_words(outcomes)})")
                break
            for task, outcome in zip(batch, outcomes, strict=True):
                self._record(task, outcome)
            tasks = tasks[size:]
        if tasks:
            self.one_by_one(tasks)

    def _together(self, tasks: Sequence[Task]) -> Sequence[Done | Exception] | Exception:
        """The outcome of each run, or why there are none; its trace is let go, with the memory that it holds."""
        self.watch.begin(tasks)
        try:
            return self.work.many([task.config for task in tasks], device=self.device, on_epoch=self.watch.epoch)
        except DataError as error:
            return [error] * len(tasks)
        except Exception as error:
            return error.with_traceback(None)

    def one_by_one(self, tasks: Sequence[Task]) -> None:
        try:
            problem = self.work.pose(tasks[0].config, device=self.device)
        except Exception as error:
            for task in tasks:
                self._record(task, error)
            return
        for task in tasks:
            self.watch.begin([task])
            try:
                outcome: Done | Exception = self.work.one(
                    task.config, on_split(problem, task.config), on_epoch=self.watch.epoch
                )
            except Exception as error:
                outcome = error
            self._record(task, outcome)

    def _record(self, task: Task, outcome: Done | Exception) -> None:
        line = task.line(outcome if isinstance(outcome, Done) else in_words(outcome))
        self.ledger.append(line)
        self.watch.end(line)


def on_split(problem: Problem, config: RunConfig) -> Problem:
    """The problem on the split of a configuration."""
    data = config.data
    split = make_split(problem.dataset.to("cpu"), protocol=data.protocol, seed=data.split_seed)
    return replace(problem, split=split.to(problem.dataset.y.device))
