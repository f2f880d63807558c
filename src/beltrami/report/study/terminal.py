"""Studies in a terminal: the list of them, and their tables."""

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from rich.console import Console
from rich.table import Table as Grid

from beltrami.lab.study import Study, Table
from beltrami.report.study.format import compared, failures, known, measured, printed, title

CELL, GAP = 27, 3  # characters of a column, and between two
NOTE = "mean ± standard deviation over runs; [95% interval of the mean, by Student's t]"


def studies(known_studies: Mapping[str, Study]) -> None:
    """The studies, one a line."""
    grid = Grid(box=None, show_header=False, padding=(0, 2, 0, 0))
    for name, study in known_studies.items():
        grid.add_row(f"[bold]{name}[/]", study.title)
    Console(highlight=False).print(grid)


def tables(found: Iterable[Table], *, path: Path) -> None:
    """A table a quantity, and after each what one row is worth over another on the splits they share."""
    console = Console(highlight=False)
    for table in found:
        console.print(f"[bold]{table.study.name}: {table.quantity.title}[/]")
        for datasets in _abreast(table, console.width):
            console.print(_cells(table, datasets))
        if table.pairs:
            console.print(f"[bold]{table.quantity.title}, compared run by run[/]")
            for datasets in _abreast(table, console.width):
                console.print(_pairs(table, datasets))
        if table.failed:
            console.print(f"[yellow]{failures(table)}[/]")
    console.print(f"[dim]{NOTE.replace('[', chr(92) + '[')}[/]")
    console.print(f"[dim]from[/] {path}")


def _abreast(table: Table, width: int) -> list[Sequence[str]]:
    """The datasets, as many at a time as the terminal has room for."""
    names = [*table.rows, *map(title, table.pairs)]
    room = max(1, (width - max(map(len, names)) - GAP) // (CELL + GAP))
    return [table.datasets[first : first + room] for first in range(0, len(table.datasets), room)]


def _cells(table: Table, datasets: Sequence[str]) -> Grid:
    digits = table.quantity.digits
    grid = _grid(datasets)
    for row in table.rows:
        texts = []
        for dataset in datasets:
            cell = table.cells.get((row, dataset))
            lines = () if cell is None else (known(cell, digits=digits), printed(cell))
            first = "" if cell is None else measured(cell, digits=digits)
            texts.append("\n".join([first, *(f"[dim]{_plain(line)}[/]" for line in lines if line)]))
        grid.add_row(row, *texts)
    return grid


def _pairs(table: Table, datasets: Sequence[str]) -> Grid:
    grid = _grid(datasets)
    for pair, samples in table.pairs.items():
        texts = [
            _plain(compared(samples[dataset], pair, digits=table.quantity.digits)) if dataset in samples else ""
            for dataset in datasets
        ]
        grid.add_row(title(pair), *texts)
    return grid


def _grid(datasets: Iterable[str]) -> Grid:
    grid = Grid(box=None, padding=(0, GAP, 0, 0))
    grid.add_column("")
    for dataset in datasets:
        grid.add_column(dataset)
    return grid


def _plain(text: str) -> str:
    """Brackets are brackets, not rich's marks."""
    return text.replace("[", r"\[")
