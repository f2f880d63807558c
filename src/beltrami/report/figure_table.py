"""The numbers of figures as tables, and tables as CSV text."""

from collections.abc import Iterable, Sequence
from typing import Any

import numpy

from beltrami.predict.table_file import to_lines
from beltrami.report.figure import Bars, Cells, Figure, Line

FORMULA = ("=", "+", "-", "@", "\t", "\r", "\n")  # a spreadsheet computes a text that begins so
Rows = list[list[Any]]


def figure_table(figure: Figure) -> tuple[list[str], Rows]:
    """Return the head and the rows of the numbers that a figure shows, all of them."""
    first = figure.series[0]
    if isinstance(first, Cells):
        return [figure.y, *first.columns], [[name, *row] for name, row in zip(first.rows, first.values, strict=True)]
    bars = [each for each in figure.series if isinstance(each, Bars)]
    if bars:
        heights = [each.y for each in bars]
        if bars[0].edges is None:
            return [figure.x, *(each.name for each in bars)], _rows(bars[0].categories, *heights)
        ends = bars[0].edges
        return ["from", "to", *(each.name for each in bars)], _rows(ends[:-1], ends[1:], *heights)
    lines = [each for each in figure.series if isinstance(each, Line)]
    if all(numpy.array_equal(each.x, lines[0].x, equal_nan=True) for each in lines):
        return [figure.x, *(each.name for each in lines)], _rows(lines[0].x, *(each.y for each in lines))
    long = [[each.name, x, y] for each in lines for x, y in zip(each.x, each.y, strict=True)]
    return ["series", figure.x, figure.y], long


def figure_csv(figure: Figure) -> str:
    """Return the numbers of a figure as CSV text."""
    return csv_text(*figure_table(figure))


def csv_text(head: Sequence[str], rows: Iterable[Sequence[Any]]) -> str:
    """Return a table as CSV text. Texts that a spreadsheet would compute get an apostrophe in front; numbers have the
    fewest digits that read back as the same number, and a missing number is an empty field."""
    lines = to_lines([[csv_field(value) for value in row] for row in (head, *rows)], delimiter=",")
    return "".join(f"{line}\r\n" for line in lines)


def csv_field(value: Any) -> str:
    """Return a value as the text of a CSV field."""
    if isinstance(value, str):
        return f"'{value}" if value.startswith(FORMULA) else value
    return "" if value is None or value != value else str(value)


def _rows(*columns: Iterable[Any]) -> Rows:
    return [list(row) for row in zip(*columns, strict=True)]
