"""Measurements in a terminal."""

from collections.abc import Mapping, Sequence
from typing import Any

from rich.console import Console
from rich.table import Table

TITLES = ("size", "operation", "edges")  # what tells one measurement from another, where it has them


def measurements(rows: Sequence[Mapping[str, Any]], columns: Sequence[str], *, title: str) -> None:
    """A column a measurement and a line a quantity, since quantities are many; seconds as milliseconds."""
    titles = [name for name in TITLES if any(name in row for row in rows)]
    titles = titles[:2] if titles[:1] == ["size"] and "operation" in titles else titles[:1]
    table = Table(box=None, padding=(0, 2, 0, 0), title=title, title_justify="left")
    table.add_column("")
    for row in rows:
        table.add_column("\n".join(_cell(name, row.get(name)) for name in titles), justify="right", no_wrap=True)
    for name in columns:
        if name not in titles:
            label = f"{name.removesuffix('_s')} (ms)" if name.endswith("_s") else name.replace("_", " ")
            table.add_row(f"[dim]{label}[/]", *(_cell(name, row.get(name)) for row in rows))
    Console(highlight=False).print(table)


def _cell(name: str, value: Any) -> str:
    if value is None:
        return ""
    if name.endswith("_s"):
        return f"{1e3 * value:.3g}"
    if isinstance(value, int):
        return f"{value:,}"
    return f"{value:.3g}" if isinstance(value, float) else str(value)
