"""Progress displays: live bars on a terminal; elsewhere a plain line after two seconds, and then every ten."""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from threading import Event, Thread

from rich.console import Console
from rich.progress import BarColumn, Progress, SpinnerColumn, TaskID, TextColumn, TimeElapsedColumn

from beltrami.lab.study.record import Record
from beltrami.train import Epoch

FIRST_LINE, BETWEEN_LINES = 2.0, 10.0  # seconds, where there is no terminal


class Display:
    """Bars on a terminal, by name. Elsewhere ``line`` is the text that is printed from time to time."""

    def __init__(self, bars: Progress, title: str | None) -> None:
        self.bars, self.live, self.line = bars, not bars.disable, title or ""
        self._tasks: dict[str, TaskID] = {}
        self._title = None if title is None else bars.add_task(title, total=None, state="")

    def status(self, text: str) -> None:
        """Show what is being done; it has no count."""
        if self._title is None:
            self._title = self.bars.add_task(text, total=None, state="")
        self.bars.update(self._title, description=text)
        self.line = text

    def update(self, name: str, done: int, total: int | None = None, state: str | None = None) -> None:
        """Show how much is done and, behind the bar, a text: the count by default."""
        if name not in self._tasks:
            self._tasks[name] = self.bars.add_task(name, total=total, state="")
        count = f"{done:,}" if total is None else f"{done:,}/{total:,}"
        text = count if state is None else f"{count} {state}"
        self.bars.update(self._tasks[name], completed=done, total=total, state=text)
        self.line = f"{name}: {text}"

    def message(self, text: str, *, style: str | None = None) -> None:
        """Print a line above the bars."""
        self.bars.console.print(text, markup=False, soft_wrap=True, style=style if self.live else None)


@contextmanager
def display(title: str | None = None, *, quiet: bool = False) -> Iterator[Display]:
    """Open a display on the standard error; the bars disappear at the end. A title has a bar without a count. A quiet
    display shows nothing. Without a terminal, a thread prints the current line and the seconds since the start."""
    name, state = TextColumn("[bold]{task.description}"), TextColumn("{task.fields[state]}", markup=False)
    columns = (SpinnerColumn(), name, BarColumn(bar_width=24), state, TimeElapsedColumn())
    console = Console(stderr=True, highlight=False, quiet=quiet)
    with Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as bars:
        shown, over = Display(bars, title), Event()
        lines = Thread(target=_print_lines, args=(shown, over), daemon=True)
        if not (quiet or shown.live):
            lines.start()
        try:
            yield shown
        finally:
            over.set()
            if lines.ident is not None:  # it was started
                lines.join()


def _print_lines(shown: Display, over: Event) -> None:
    start, wait = time.monotonic(), FIRST_LINE
    while not over.wait(wait):
        if shown.line:
            shown.message(f"{shown.line} ({_duration(time.monotonic() - start)})")
        wait = BETWEEN_LINES


def epoch_callback(shown: Display, epochs: int, *, title: str) -> Callable[[Epoch], None]:
    """Return a callback that shows the loss, the validation accuracy and the evaluations of f after each epoch."""

    def show(epoch: Epoch) -> None:
        (loss,), (score,), (best,) = epoch.losses, epoch.scores, epoch.best
        accuracies = f"val {100 * score.accuracy:.1f}  best {100 * best.accuracy:.1f} at t = {best.time:.2f}"
        state = f" loss {loss:.3f}  {accuracies}  f {epoch.evaluations}"
        shown.update(f"{title}, epoch", epoch.number, epochs, state)

    return show


class RunCounter:
    """The progress of a study or a search: runs that have ended, as ``describe`` says, and the time left."""

    def __init__(self, display: Display, total: int, title: str, describe: Callable[[Record], str]) -> None:
        self.display, self.total, self.title, self.describe = display, total, title, describe
        self.done, self.state, self.left, self.start = 0, "", "", time.monotonic()

    def status(self, text: str) -> None:
        """Show what is running."""
        self.state = text
        self.display.update(self.title, self.done, self.total, f"{text}  {self.left}")

    def note(self, text: str) -> None:
        """Print a message."""
        self.display.message(text)

    def end(self, record: Record) -> None:
        """Count a run that has ended; on a terminal only errors are printed."""
        self.done += 1
        taken = time.monotonic() - self.start
        left = taken / self.done * (self.total - self.done)  # if the others take as long as those that have ended
        self.left = f"about {_duration(left)} left" if self.done < self.total else f"in {_duration(taken)}"
        if not self.display.live:
            self.display.message(f"{self.done}/{self.total} {self.describe(record)} ({self.left})")
        elif record.error is not None:
            self.display.message(self.describe(record), style="yellow")
        self.status(self.state)


def _duration(seconds: float) -> str:
    if seconds < 90:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"
