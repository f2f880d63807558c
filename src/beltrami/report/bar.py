"""Bar: how many of so many are done, live in a terminal."""

from collections.abc import Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import BarColumn, Progress, SpinnerColumn, TaskID, TextColumn, TimeElapsedColumn


@contextmanager
def counting(total: int, *, title: str, console: Console) -> Iterator[tuple[Progress, TaskID]]:
    """A bar that goes when it is done; the field ``state`` of its task is what stands behind the count."""
    columns = (
        SpinnerColumn(),
        TextColumn("[bold]{task.description}"),
        BarColumn(bar_width=24),
        TextColumn("{task.completed:.0f}/{task.total:.0f}"),
        TextColumn("{task.fields[state]}"),
        TimeElapsedColumn(),
    )
    with Progress(*columns, console=console, transient=True) as bar:
        yield bar, bar.add_task(title, total=total, state="")
