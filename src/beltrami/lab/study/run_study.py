"""Conduct: the runs of a plan that are not done yet, and a line for each of them."""

from collections.abc import Sequence
from typing import Protocol

from beltrami.lab.study.batch import Batch, BatchQueue
from beltrami.lab.study.executor import Executor
from beltrami.lab.study.plan import PlannedRun, check_setups, groups
from beltrami.lab.study.record import Record
from beltrami.lab.study.record_log import RecordLog
from beltrami.lab.study.worker import Failed

TOGETHER = {"cuda": 25, "cpu": 1}
"""Runs that are one program, by device: a GPU has room for many, a CPU gains nothing by them."""


class Watch(Protocol):
    """Who looks on."""

    def begin(self, tasks: Sequence[PlannedRun]) -> None:
        """Told of the runs that begin."""

    def epoch(self, number: int, going: int) -> None:
        """Told, of runs in this process, the epoch's number and how many go on."""

    def end(self, line: Record) -> None:
        """Told of a run that is over and on the disk."""

    def fall_back(self, tasks: Sequence[PlannedRun], why: str) -> None:
        """Told why runs are not done together as they were asked for."""


def pending(tasks: Sequence[PlannedRun], ledger: RecordLog) -> list[PlannedRun]:
    """The tasks without a result: runs that failed are tried again."""
    check_setups(tasks, ledger.runs())
    done = ledger.done()
    return [task for task in tasks if task.identity not in done]


def run_study(
    place: Executor, tasks: Sequence[PlannedRun], ledger: RecordLog, *, together: int | None, watch: Watch
) -> None:
    """Do the tasks and append a line for each. A run that fails leaves its error, and the others go on.

    ``together`` runs are one program, or fewer once memory has been short; what is no program is done one by one.

    Args:
        place: where they are done, inside its block.
        tasks: what is to be done; see ``pending``.
        ledger: where the lines go.
        together: how many runs are one program; None for what suits the device.
        watch: who looks on.
    """
    size = TOGETHER[place.device.split(":")[0]] if together is None else together
    if size < 1:
        raise ValueError(f"`--together` needs at least 1; got {size}.")
    piles = [BatchQueue(group, size if place.work.batches else 1) for group in groups(tasks)]
    while True:
        while place.room and (pile := next((pile for pile in piles if pile.tasks), None)):
            batch = pile.cut()
            watch.begin(batch.tasks)
            place.give(batch)
        if not place.busy:
            return
        batch, found = place.take(watch.epoch)
        if isinstance(found, Failed):
            _fall_back(batch, found, watch)
        else:
            for task, outcome in zip(batch.tasks, found, strict=True):
                line = task.line(outcome)
                ledger.append(line)
                watch.end(line)


def _fall_back(batch: Batch, failed: Failed, watch: Watch) -> None:
    """Have the runs of a batch done again: half as many together, or every one alone."""
    count = len(batch.tasks)
    batch.pile.put_back(batch)
    if failed.crowded and batch.pile.shrink((count + 1) // 2):
        watch.fall_back(batch.tasks, f"{count} runs together {failed.why}: half as many")
    if not failed.crowded and batch.pile.shrink(1):
        watch.fall_back(batch.tasks, f"one by one, since runs together fail ({failed.why})")
