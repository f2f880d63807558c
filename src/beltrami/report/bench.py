"""Measurements in a terminal."""

from collections.abc import Mapping, Sequence
from typing import Any

from rich.console import Console
from rich.table import Table


def measurements(rows: Sequence[Mapping[str, Any]], columns: Sequence[str], *, title: str) -> None:
    """One row a measurement, in the order given; seconds as milliseconds."""
    table = Table(box=None, padding=(0, 2, 0, 0), title=title, title_justify="left")
    for name in columns:
        table.add_column(name.removesuffix("_s") + " ms" if name.endswith("_s") else name.replace("_", " "))
    for row in rows:
        table.add_row(*(_cell(name, row.get(name)) for name in columns))
    Console(highlight=False).print(table)


def _cell(name: str, value: Any) -> str:
    if value is None:
        return ""
    if name.endswith("_s"):
        return f"{1e3 * value:.3g}"
    if isinstance(value, int):
        return f"{value:,}"
    return f"{value:.3g}" if isinstance(value, float) else str(value)
