"""What a person sees of positions and rewired graphs: progress while they are made, and what they are like."""

import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import torch
from rich.console import Console
from rich.progress import BarColumn, Progress, SpinnerColumn, TaskID, TextColumn, TimeElapsedColumn
from rich.table import Table
from torch import Tensor

from beltrami.graph.statistics import Rewiring, Statistics


@contextmanager
def working(title: str) -> Iterator[Callable[[str, int, int | None], None]]:
    """A spinner, and a bar for each piece of work that says how far it is; silent where nobody watches."""
    columns = (
        SpinnerColumn(),
        TextColumn("[bold]{task.description}"),
        BarColumn(bar_width=24),
        TextColumn("{task.fields[state]}"),
        TimeElapsedColumn(),
    )
    console = Console(stderr=True)
    with Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as bar:
        tasks: dict[str, TaskID] = {"": bar.add_task(title, total=None, state="")}

        def show(what: str, done: int, total: int | None) -> None:
            if what not in tasks:
                tasks[what] = bar.add_task(what, total=total, state="")
            of = "" if total is None else f"/{total:,}"
            bar.update(tasks[what], completed=done, total=total, state=f"{done:,}{of}")

        yield show


def encoded(positions: Tensor, *, seconds: float, from_cache: bool, path: Path) -> None:
    """The shape and density of positions, and how they came about."""
    rows, columns = positions.shape
    nonzero = int(torch.count_nonzero(positions.values() if positions.is_sparse else positions))
    facts = {
        "positions": f"{rows:,} x {columns:,}, {'sparse' if positions.is_sparse else 'dense'}",
        "density": f"{nonzero / max(1, rows * columns):.4f}",
        "time": f"{seconds:.1f} s, {'from the cache' if from_cache else 'computed'}",
    }
    table = Table(box=None, show_header=False, padding=(0, 2, 0, 0))
    for name, value in facts.items():
        table.add_row(f"[dim]{name}[/]", value)
    console = Console(highlight=False)
    console.print(table)
    console.print(f"[dim]saved in[/] {path}")


def rewired(rewiring: Rewiring, *, seconds: float, path: Path) -> None:
    """Either graph in a column of its own, then what they share."""
    table = Table(box=None, padding=(0, 2, 0, 0))
    for name in ("", "before", "after"):
        table.add_column(name, justify="right" if name else "left")
    before, after = _column(rewiring.before), _column(rewiring.after)
    before["label homophily"] = _share(rewiring.homophily_before)
    after["label homophily"] = _share(rewiring.homophily_after)
    for name, value in before.items():
        table.add_row(f"[dim]{name}[/]", value, after[name])
    console = Console(highlight=False)
    console.print(table)
    overlap = rewiring.overlap
    console.print(f"{_share(overlap.kept)} of the old edges are kept; {_share(overlap.known)} of the new ones are old")
    console.print(f"[dim]made in[/] {seconds:.1f} s[dim], saved in[/] {path}")


def _column(graph: Statistics) -> dict[str, str]:
    return {
        "nodes": f"{graph.nodes:,}",
        "directed edges": f"{graph.edges:,}",
        "self-loops": f"{graph.loops:,}",
        "mean degree": f"{graph.mean_degree:.2f}",
        "smallest degree": f"{graph.min_degree:,}",
        "largest degree": f"{graph.max_degree:,}",
        "components": f"{graph.components:,}",
    }


def _share(value: float) -> str:
    return "-" if math.isnan(value) else f"{100 * value:.1f}%"
