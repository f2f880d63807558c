"""A matrix of numbers as coloured cells, in SVG."""

import math

from beltrami.report.figure import Cells, Figure
from beltrami.report.figure_axes import number_text
from beltrami.report.markup import shortened, text
from beltrami.report.svg_text import ROW, label, svg_element, text_width

WIDTH = 400.0
LONGEST = 22  # characters of a name
MOST_NUMBERS = 15  # rows up to which the cells have numbers
ROOM = 14.0  # between names; of more names only some are written
LIGHT = 0.55  # share of the row above which a cell is dark and its number light
SLANT = 0.64  # height of a slanted name for its length


def draw_cells(figure: Figure, cells: Cells) -> str:
    """Return the matrix: a cell's colour is its share of the row, rows and columns have their names."""
    rows, columns = ([shortened(name, LONGEST) for name in names] for names in (cells.rows, cells.columns))
    left, top = max(map(text_width, rows)) + 8, ROW + 8
    size = min((WIDTH - left - 4) / len(columns), 44.0)
    every, bottom = math.ceil(ROOM / size), top + size * len(rows)
    parts = [label(figure.y, 0, 14, "axis-name")]
    totals = cells.values.sum(axis=1)
    for i, row in enumerate(cells.values):
        y = top + i * size
        if i % every == 0:
            parts.append(label(rows[i], left - 7, y + size / 2 + 4, "tick", anchor="end", full=cells.rows[i]))
        for j, value in enumerate(row):
            x, share = left + j * size, float(value / totals[i]) if totals[i] else 0.0
            parts.append(_cell(x, y, size, share, f"{cells.rows[i]}, {cells.columns[j]}", float(value)))
            if max(cells.values.shape) <= MOST_NUMBERS and value:
                style = "cell-number dark" if share > LIGHT else "cell-number"
                parts.append(label(number_text(float(value)), x + size / 2, y + size / 2 + 4, style, anchor="middle"))
    for j in range(0, len(columns), every):
        shown = label(columns[j], 0, 0, "tick", anchor="end", full=cells.columns[j])
        x = left + (j + 0.5) * size + 4
        parts.append(f'<g transform="translate({x:.1f} {bottom + 14:.1f}) rotate(-40)">{shown}</g>')
    below = max(map(text_width, columns)) * SLANT + 18
    parts.append(label(figure.x, left + size * len(columns) / 2, bottom + below + 12, "axis-name", anchor="middle"))
    return svg_element(figure, WIDTH, bottom + below + 20, parts)


def _cell(x: float, y: float, size: float, share: float, where: str, value: float) -> str:
    title = f"<title>{text(where)}: {number_text(value)} ({100 * share:.0f}% of the row)</title>"
    return (
        f'<rect class="cell" x="{x:.2f}" y="{y:.2f}" width="{max(size - 1, size * 0.9):.2f}" '
        f'height="{max(size - 1, size * 0.9):.2f}" fill-opacity="{0.04 + 0.96 * share:.3f}">{title}</rect>'
    )
