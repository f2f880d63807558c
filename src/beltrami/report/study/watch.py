"""Watch: how far a study is, live in a terminal or by plain lines elsewhere."""

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field

from rich.console import Console
from rich.progress import Progress, TaskID

from beltrami.lab.study import PlannedRun, Record, Watch
from beltrami.report.bar import counting


@contextmanager
def watching(total: int, *, name: str) -> Iterator[Watch]:
    """A bar with the runs that are done, those under way, and the time left; a line a run where nobody watches."""
    console = Console(stderr=True, highlight=False)
    if not console.is_terminal:
        yield Plain(total, console)
        return
    with counting(total, title=name, console=console) as (bar, task):
        yield Live(bar, task, Pace(total))


@dataclass
class Pace:
    """The time left, from the runs that are done: as if the others took as long."""

    total: int
    done: int = 0
    clock: Callable[[], float] = time.monotonic
    start: float = field(init=False)

    def __post_init__(self) -> None:
        self.start = self.clock()

    def step(self) -> str:
        """Count a run; the time left in words."""
        self.done += 1
        left = (self.clock() - self.start) / self.done * (self.total - self.done)
        return f"about {_span(left)} left" if self.done < self.total else f"in {_span(self.clock() - self.start)}"


@dataclass
class Live:
    """A bar that says which runs are under way."""

    bar: Progress
    task: TaskID
    pace: Pace
    runs: str = ""
    latest: int = 0
    left: str = ""
    going: set[tuple[str, str]] = field(default_factory=set)

    def begin(self, tasks: Sequence[PlannedRun]) -> None:
        self.going |= {task.identity for task in tasks}
        self.runs, self.latest = _runs(tasks), len(tasks)
        self._show(self.runs)

    def epoch(self, number: int, going: int) -> None:
        self._show(f"{self.runs}, epoch {number}")

    def end(self, line: Record) -> None:
        self.left = self.pace.step()
        self.going.discard(line.identity)
        if line.error is not None:
            where = f"{line.row} on {line.dataset}, split {line.split_seed}"
            self.bar.console.print(f"{where}: {line.error}", markup=False, style="yellow")
        self.bar.advance(self.task)
        self._show(self.runs)

    def fall_back(self, tasks: Sequence[PlannedRun], why: str) -> None:
        self.going -= {task.identity for task in tasks}
        self.bar.console.print(f"{_runs(tasks)}: {why}", markup=False)

    def _show(self, state: str) -> None:
        count = len(self.going)
        others = f", {count} under way" if count > self.latest else ""
        self.bar.update(self.task, state=f"{state}{others}  [dim]{self.left}[/]")


@dataclass
class Plain:
    """One line a run."""

    total: int
    console: Console
    pace: Pace = field(init=False)

    def __post_init__(self) -> None:
        self.pace = Pace(self.total)

    def begin(self, tasks: Sequence[PlannedRun]) -> None:
        pass

    def epoch(self, number: int, going: int) -> None:
        pass

    def end(self, line: Record) -> None:
        left = self.pace.step()
        accuracy = line.number("test_accuracy")
        found = "done" if accuracy is None else f"test {accuracy:.2f}%"
        what = found if line.error is None else f"failed: {line.error}"
        where = f"{line.row} on {line.dataset}, split {line.split_seed}, seed {line.seed}"
        text = f"{self.pace.done}/{self.total} {where}: {what} ({left})"
        self.console.print(text, markup=False, soft_wrap=True)

    def fall_back(self, tasks: Sequence[PlannedRun], why: str) -> None:
        self.console.print(why, markup=False, soft_wrap=True)


def _runs(tasks: Sequence[PlannedRun]) -> str:
    first, many = tasks[0], f", {len(tasks)} together" if len(tasks) > 1 else ""
    return f"{first.row} on {first.config.dataset}, split {first.config.data.split_seed}{many}"


def _span(seconds: float) -> str:
    if seconds < 90:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"
