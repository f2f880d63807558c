"""Text as HTML: escaped names, tables that can be sorted and downloaded, and links to CSV."""

import base64
import html
import json
import math
import re
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import Any

from beltrami.report.figure_axes import number_text
from beltrami.report.figure_table import csv_text

CONTROL = re.compile(
    "[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\ud800-\udfff\ufffe\uffff]"
)  # not allowed in XML, or of no shape

MISSING = "\u2013"


def text(value: object) -> str:
    """Return a value as text of HTML or SVG, also for attributes; control characters are replaced."""
    return html.escape(CONTROL.sub("\ufffd", str(value)))


def shortened(value: str, length: int) -> str:
    """Return a text on one line of at most ``length`` characters."""
    line = " ".join(value.split())
    return line if len(line) <= length else f"{line[: length - 1].rstrip()}\u2026"


def json_block(value: Any, *, key: str) -> str:
    """Return a script element of JSON, which no text in it can end."""
    content = json.dumps(value, ensure_ascii=True, allow_nan=False)
    for character in "<>&":
        content = content.replace(character, f"\\u{ord(character):04x}")
    return f'<script type="application/json" id="{text(key)}">{content}</script>'


def csv_link(name: str, csv: str, *, what: str) -> str:
    """Return a link that saves CSV text as a file; it needs no script."""
    content = base64.b64encode(csv.encode()).decode()
    return (
        f'<a class="csv" download="{text(name)}.csv" href="data:text/csv;charset=utf-8;base64,{content}">'
        f'CSV<span class="hidden">: {text(what)}</span></a>'
    )


def table(
    caption: str, head: Sequence[str], rows: Iterable[Sequence[Any]], *, key: str = "", sortable: bool = True
) -> str:
    """Return a table with its caption; the first cell of a row is its heading.

    Cells are texts, numbers or None. Numbers stand at the right.

    Args:
        key: the name of the CSV file; empty for a table without a link to one.
        sortable: whether a click on a heading sorts the rows.
    """
    rows = [list(row) for row in rows]
    columns = [[row[place] for row in rows] for place in range(len(head))]
    numeric = [not any(isinstance(cell, str) for cell in column) for column in columns]
    formats = [
        _format(column) if each and sortable else number_text for column, each in zip(columns, numeric, strict=True)
    ]
    ends = [' class="number"' if each else "" for each in numeric]
    heading = "".join(f'<th scope="col"{end}>{text(name)}</th>' for name, end in zip(head, ends, strict=True))
    body = "".join(f"<tr>{_cells(row, ends, formats)}</tr>\n" for row in rows)
    link = csv_link(key, csv_text(head, rows), what=caption) if key else ""
    return (
        f'<div class="table"><div class="card-head"><p class="title" aria-hidden="true">{text(caption)}</p>{link}</div>'
        f'<div class="scroll" role="group" tabindex="0" aria-label="{text(caption)}">'
        f'<table{" data-sortable" if sortable else ""}><caption class="hidden">{text(caption)}</caption>\n'
        f"<thead><tr>{heading}</tr></thead>\n<tbody>{body}</tbody></table></div></div>"
    )


def nested_table(value: Any) -> str:
    """Return JSON values as tables within tables."""
    if isinstance(value, dict) and value:
        rows = "".join(
            f'<tr><th scope="row">{text(name)}</th><td>{nested_table(each)}</td></tr>' for name, each in value.items()
        )
        return f'<table class="nested"><tbody>{rows}</tbody></table>'
    if isinstance(value, list) and any(isinstance(each, (dict, list)) for each in value):
        return "".join(f'<div class="item">{nested_table(each)}</div>' for each in value)
    return text(value_text(value))


def value_text(value: Any) -> str:
    """Return a JSON value in words."""
    if isinstance(value, list):
        return ", ".join(map(value_text, value)) or "none"
    if isinstance(value, bool):
        return "yes" if value else "no"
    return "none" if value in (None, "", {}) else str(value)


def _cells(row: Sequence[Any], ends: Sequence[str], formats: Sequence[Callable[[float], str]]) -> str:
    first, *others = (f"{end}{_value(cell, form)}" for cell, end, form in zip(row, ends, formats, strict=True))
    return f'<th scope="row"{first}</th>' + "".join(f"<td{each}</td>" for each in others)


def _value(cell: Any, form: Callable[[float], str]) -> str:
    """Return the end of a cell's opening tag, with the exact number for sorting, and its content."""
    if isinstance(cell, str):
        return f">{text(cell)}"
    known = cell is not None and cell == cell
    return f' data-value="{float(cell)!r}">{form(float(cell))}' if known else f">{MISSING}"


def _format(column: Sequence[Any]) -> Callable[[float], str]:
    """Return how to write the numbers of a column, with the same number of decimals where that shows them all."""
    sizes = [abs(float(cell)) for cell in column if cell is not None and cell == cell]
    if not sizes or all(size == round(size) for size in sizes) or not max(sizes) < 1e6:
        return number_text
    decimals = next(count for count in range(5) if count == 4 or all(round(size, count) == size for size in sizes))
    decimals = min(decimals, max(0, 3 - math.floor(math.log10(max(sizes)))))
    return (
        partial("{:,.{decimals}f}".format, decimals=decimals)
        if min(filter(None, sizes)) >= 10.0**-decimals
        else number_text
    )
