"""Tuning as a person sees it: how far a search is, and what it found."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from rich.console import Console
from rich.progress import Progress, TaskID
from rich.table import Table

from beltrami.config import RunConfig
from beltrami.lab.study import Record, latest
from beltrami.lab.tune import Search, Watch, ranking
from beltrami.lab.tune.search_space import value_of
from beltrami.report.bar import counting
from beltrami.report.study.watch import Pace

SHOWN = 5  # of the best trials


@contextmanager
def searching(total: int, *, title: str) -> Iterator[Watch]:
    """A bar with the trials that are over, how many go on, and the best so far; a line a trial where nobody watches."""
    console = Console(stderr=True, highlight=False)
    if not console.is_terminal:
        yield Plain(total, console)
        return
    with counting(total, title=title, console=console) as (bar, task):
        yield Live(bar, task, Pace(total))


@dataclass
class Live:
    """A bar that says which trial is the best."""

    bar: Progress
    task: TaskID
    pace: Pace
    left: str = ""

    def epoch(self, going: int, best: Record | None) -> None:
        leader = "" if best is None else f", best {_validation(best)}% (trial {best.row})"
        self.bar.update(self.task, state=f"{going} going{leader}  [dim]{self.left}[/]")

    def end(self, line: Record) -> None:
        self.left = self.pace.step()
        if line.error is not None:
            self.bar.console.print(f"trial {line.row}: {line.error}", markup=False, style="yellow")
        self.bar.advance(self.task)


@dataclass
class Plain:
    """One line a trial."""

    total: int
    console: Console
    pace: Pace = field(init=False)

    def __post_init__(self) -> None:
        self.pace = Pace(self.total)

    def epoch(self, going: int, best: Record | None) -> None:
        pass

    def end(self, line: Record) -> None:
        left = self.pace.step()
        text = f"{self.pace.done}/{self.total} trial {line.row}: {outcome(line)} ({left})"
        self.console.print(text, markup=False, soft_wrap=True)


def outcome(line: Record) -> str:
    """How a trial ended, in words."""
    if line.error is not None:
        return f"failed: {line.error}"
    epochs, seconds = len(line.also["by_epoch"]), line.also["seconds"]
    end = "stopped after" if line.also["stopped"] else "in"
    return f"validation {_validation(line)}%, {end} {epochs} epochs, {seconds:.1f} s"


def found(search: Search, lines: Sequence[Record], best: RunConfig, *, path: Path) -> None:
    """The best trials beside the recipe itself, how the others ended, and what to do with the outcome."""
    console = Console(highlight=False)
    ranked, trials = ranking(lines), latest(lines)
    console.print(f"[bold]validation {_validation(ranked[0])}%[/]  (trial {ranked[0].row})")
    for line in ranked:
        if line.row == "0":
            console.print(f"the recipe as it stands: {_validation(line)}%  (trial 0)")
    stopped = sum(bool(line.also["stopped"]) for line in trials if line.error is None)
    failed = sum(line.error is not None for line in trials)
    console.print(f"{len(trials)} configurations tried, {stopped} stopped early, {failed} failed")
    console.print(_settings(search, ranked[:SHOWN]))
    console.print(f"[dim]saved in[/] {path}", soft_wrap=True)
    console.print(f"[dim]train it:[/] beltrami train {best.dataset} --recipe {path}", soft_wrap=True)


def _settings(search: Search, lines: Sequence[Record]) -> Table:
    """The searched settings of trials, a column each."""
    table = Table(box=None, padding=(0, 2, 0, 0))
    table.add_column("trial", min_width=max(map(len, search.space.spans), default=0))
    for line in lines:
        table.add_column(line.row, justify="right")
    table.add_row("validation", *map(_validation, lines))
    for name in search.space.spans:
        values = (value_of(search.trial(int(line.row)).config, name) for line in lines)
        table.add_row(f"[dim]{name}[/]", *map(str, values))
    return table


def _validation(line: Record) -> str:
    return f"{line.number('validation') or 0.0:.2f}"
