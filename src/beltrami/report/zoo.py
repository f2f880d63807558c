"""The zoo on a terminal: Table 1."""

from collections.abc import Sequence

from rich.console import Console
from rich.table import Table

from beltrami.model.zoo import ZooEntry

COLUMNS = ("network", "evolution", "diffusivity", "graph", "discretisation", "recipe")
WHOLE = ("network", "diffusivity", "recipe")  # on one line each, however narrow the terminal


def table(rows: Sequence[ZooEntry]) -> None:
    """The networks, one a row."""
    lines = Table(box=None, padding=(0, 2, 0, 0))
    for name in COLUMNS:
        lines.add_column(name, no_wrap=name in WHOLE)
    for row in rows:
        lines.add_row(row.method, row.evolution, row.diffusivity, row.graph, row.discretisation, row.recipe)
    console = Console(highlight=False)
    console.print(lines)
    console.print("[dim]train one with[/] beltrami train cora --recipe NAME [dim]of the last column[/]")
