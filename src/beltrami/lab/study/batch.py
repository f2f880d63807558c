"""Batch: the runs of a study that are done in one go; a pile is what is left of those that can be."""

from collections.abc import Sequence
from dataclasses import dataclass

from beltrami.config.spec import RunConfig
from beltrami.lab.study.plan import PlannedRun


@dataclass(frozen=True)
class Batch:
    """Runs that are one program, or a run alone.

    Args:
        pile: where they are from.
        tasks: the runs.
        together: whether they are one program; a run alone is none.
    """

    pile: "BatchQueue"
    tasks: Sequence[PlannedRun]
    together: bool

    @property
    def configs(self) -> list[RunConfig]:
        return [task.config for task in self.tasks]


class BatchQueue:
    """Runs that differ by their seeds alone and are not done yet, to be cut into batches.

    Args:
        tasks: the runs.
        size: how many are a batch; 1 for every run alone.
    """

    def __init__(self, tasks: Sequence[PlannedRun], size: int) -> None:
        self.tasks, self.size = list(tasks), size

    def cut(self) -> Batch:
        """The next batch."""
        batch = Batch(self, self.tasks[: self.size], together=self.size > 1)
        self.tasks = self.tasks[self.size :]
        return batch

    def put_back(self, batch: Batch) -> None:
        """Have the runs of a batch done before all others, in smaller ones as the case may be."""
        self.tasks = [*batch.tasks, *self.tasks]

    def shrink(self, size: int) -> bool:
        """Cut no batches above ``size`` from now on; whether that is news."""
        news = size < self.size
        self.size = min(size, self.size)
        return news
