"""Figures as SVG text for a page, styled by the classes and variables of ``assets/page.css``."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy

from beltrami.report.figure import Bars, Figure, Line, Values
from beltrami.report.figure_axes import Scale, number_text, tick_texts, value_range
from beltrami.report.markup import shortened, text
from beltrami.report.svg_cells import draw_cells
from beltrami.report.svg_text import MARGIN, ROW, label, svg_element, text_width

WIDTH, PLOT_HEIGHT = 400.0, 190.0
BAR_HEIGHT = 24.0  # of a horizontal bar, with its gap
STYLES = 12  # classes s0 ... s11 of lines and bars
MOST_POINTS = 3000  # of a series that are drawn; more are thinned evenly
BELOW_BARS = 0.7  # where a logarithmic axis begins, relative to its lowest tick: bars of that height are seen
FEW_POINTS = 30  # up to which the points of a line are marked
SHORT_NAME, LONG_NAME = 6, 26  # characters of a category: under an upright bar, and at most beside a lying one


def svg(figure: Figure) -> str:
    """Return a figure as an SVG element that fills the width of its parent."""
    if figure.series and not isinstance(figure.series[0], (Line, Bars)):
        return draw_cells(figure, figure.series[0])
    categories = next((each.categories for each in figure.series if isinstance(each, Bars)), ())
    if any(len(name) > SHORT_NAME for name in categories):
        return _lying_bars(figure, categories)
    return _plot(figure, categories)


@dataclass(frozen=True)
class _Area:
    """The area between the axes."""

    x: Scale
    y: Scale


def _plot(figure: Figure, categories: Sequence[str]) -> str:
    """Return a figure with upright axes."""
    log_x, log_y = "x" in figure.log, "y" in figure.log
    low, high = figure.bounds or value_range(_heights(figure), log=log_y, widen=True)
    if log_y and any(isinstance(each, Bars) for each in figure.series):
        low *= BELOW_BARS
    ticks = Scale(low, high, 0, 1, log_y).ticks()
    left = max(text_width(each) for each in tick_texts(ticks) or [""]) + 10
    head, top = _legend(figure, left)
    area = _Area(
        Scale(*_width(figure, categories, log_x), left, WIDTH - MARGIN, log_x),
        Scale(low, high, top + PLOT_HEIGHT, top, log_y),
    )
    parts = [head, *_axes(figure, area, categories), *_marks(figure, area)]
    for number, each in enumerate(figure.series):
        if isinstance(each, Line):
            parts += _line(each, number, area)
        elif isinstance(each, Bars):
            parts += _bars(figure, each, number, area)
    return svg_element(figure, WIDTH, top + PLOT_HEIGHT + 2 * ROW + 6, parts)


def _heights(figure: Figure) -> Iterator[Values]:
    for each in figure.series:
        yield each.y  # type: ignore[union-attr]
        if isinstance(each, Bars) and "y" not in figure.log:
            yield numpy.zeros(1)
        if figure.diagonal and isinstance(each, Line):
            yield each.x


def _width(figure: Figure, categories: Sequence[str], log: bool) -> tuple[float, float]:
    if categories:
        return -0.5, len(categories) - 0.5
    values: list[Values] = [each.x if isinstance(each, Line) else each.edges for each in figure.series]  # type: ignore
    if figure.diagonal and figure.bounds:
        return figure.bounds
    values += [each.y for each in figure.series if isinstance(each, Line)] if figure.diagonal else []
    return value_range([*values, numpy.array(list(figure.marks.values()))], log=log, widen=figure.diagonal)


def _legend(figure: Figure, left: float) -> tuple[str, float]:
    """Return the label of the vertical axis, the names of the series behind it, and the top of the plot."""
    parts, x, y = [label(figure.y, 0, 14, "axis-name")], text_width(figure.y) + 22, 14.0
    if len(figure.series) > 1:
        for number, each in enumerate(figure.series):
            name = shortened(each.name, 50)
            if x + 24 + text_width(name) > WIDTH:
                x, y = 0.0, y + ROW
            style = f"s{number % STYLES}"
            shape = f'<path class="line {style}" d="M{x:g} {y - 4:g}h18"/>'
            if isinstance(each, Bars):
                shape = f'<rect class="bar {style}" x="{x + 4:g}" y="{y - 9:g}" width="10" height="10"/>'
            elif isinstance(each, Line) and each.dots:
                shape = f'<path class="dots {style}" d="M{x + 9:g} {y - 4:g}h0"/>'
            parts.append(shape + label(name, x + 23, y, full=each.name))
            x += 23 + text_width(name) + 14
    return "".join(parts), y + 16


def _axes(figure: Figure, area: _Area, categories: Sequence[str]) -> Iterator[str]:
    ticks, bottom, right = area.y.ticks(), area.y.start, area.x.stop
    for tick, words in zip(ticks, tick_texts(ticks), strict=True):
        y = float(area.y(tick))
        yield f'<path class="grid" d="M{area.x.start:.1f} {y:.1f}H{right:.1f}"/>'
        yield label(words, area.x.start - 7, y + 4, "tick", anchor="end")
    ticks = list(range(len(categories))) if categories else area.x.ticks()
    names = [shortened(name, SHORT_NAME) for name in categories] or tick_texts(ticks)
    room = (right - area.x.start) / max(max(map(text_width, names), default=1.0) + 8, 1.0)
    every = int(-(-len(names) // max(room, 1)))
    for tick, words in list(zip(ticks, names, strict=True))[:: max(every, 1)]:
        x = float(area.x(tick))
        yield f'<path class="axis" d="M{x:.1f} {bottom:.1f}v4"/>'
        yield label(words, x, bottom + 17, "tick", anchor="middle")
    yield f'<path class="axis" d="M{area.x.start:.1f} {bottom:.1f}H{right:.1f}"/>'
    yield label(figure.x, (area.x.start + right) / 2, bottom + 36, "axis-name", anchor="middle")


def _marks(figure: Figure, area: _Area) -> Iterator[str]:
    """Yield the diagonal, and vertical lines with their names."""
    if figure.diagonal:
        low, high = max(area.x.low, area.y.low), min(area.x.high, area.y.high)
        (x0, x1), (y0, y1) = area.x(numpy.array([low, high])), area.y(numpy.array([low, high]))
        yield f'<path class="reference" d="M{x0:.1f} {y0:.1f}L{x1:.1f} {y1:.1f}"/>'
    for name, value in figure.marks.items():
        x = float(area.x(value))
        anchor, gap = ("end", -5) if x > (area.x.start + area.x.stop) / 2 else ("start", 5)
        yield f'<path class="mark" d="M{x:.1f} {area.y.stop:.1f}V{area.y.start:.1f}"/>'
        yield label(name, x + gap, area.y.start - 6, "mark-name", anchor=anchor)


def _line(series: Line, number: int, area: _Area) -> Iterator[str]:
    every = max(1, -(-len(series.x) // MOST_POINTS))
    x, y = area.x(series.x[::every]), area.y(series.y[::every])
    known = numpy.isfinite(x) & numpy.isfinite(y)
    style = f"s{number % STYLES}"
    if not series.dots:
        command, steps = "M", []
        for px, py, seen in zip(x, y, known, strict=True):
            if seen:
                steps.append(
                    f"H{px:.2f}V{py:.2f}" if command == "L" and series.steps else f"{command}{px:.2f} {py:.2f}"
                )
            command = "L" if seen else "M"
        yield f'<path class="line {style}" d="{"".join(steps)}"><title>{text(series.name)}</title></path>'
    if series.dots or (len(x) <= FEW_POINTS and not series.steps):
        dots = "".join(f"M{px:.2f} {py:.2f}h0" for px, py in zip(x[known], y[known], strict=True))
        yield f'<path class="dots {style}{" many" if known.sum() > 300 else ""}" d="{dots}"/>'


def _bars(figure: Figure, series: Bars, number: int, area: _Area) -> Iterator[str]:
    """Yield upright bars; those of several series stand next to each other."""
    together = [each for each in figure.series if isinstance(each, Bars)]
    place, count = together.index(series), len(together)
    edges = numpy.arange(len(series.y) + 1) - 0.5 if series.edges is None else series.edges
    x, floor = area.x(edges), float(area.y(max(area.y.low, 0.0) if not area.y.log else area.y.low))
    for k, height in enumerate(series.y):
        gap = min(0.12 * (x[k + 1] - x[k]), 8.0) if series.edges is None else min(1.0, 0.1 * (x[k + 1] - x[k]))
        width = (x[k + 1] - x[k] - 2 * gap) / count
        y = float(area.y(float(height)))
        if not numpy.isfinite(y):
            continue
        where = series.categories[k] if series.categories else f"{number_text(edges[k])} to {number_text(edges[k + 1])}"
        yield (
            f'<rect class="bar s{number % STYLES}" x="{x[k] + gap + place * width:.2f}" y="{min(y, floor):.2f}" '
            f'width="{max(width, 0.5):.2f}" height="{abs(floor - y):.2f}">'
            f"<title>{text(where)}: {text(series.name)} {number_text(float(height))}</title></rect>"
        )


def _lying_bars(figure: Figure, categories: Sequence[str]) -> str:
    """Return a figure of horizontal bars: names at the left, values behind the bars."""
    series = [each for each in figure.series if isinstance(each, Bars)]
    names = [shortened(name, LONG_NAME) for name in categories]
    left = max(map(text_width, names)) + 10
    head, top = _legend(figure, left)
    low, high = figure.bounds or value_range([*(each.y for each in series), numpy.zeros(1)], widen=True)
    scale, height = Scale(low, high, left, WIDTH - 52), BAR_HEIGHT * (0.55 + 0.45 * len(series))
    parts = [head]
    for k, name in enumerate(names):
        y = top + k * height
        parts.append(label(name, left - 8, y + height / 2 + 3, "tick", anchor="end", full=categories[k]))
        for place, each in enumerate(series):
            size = (height - 7) / len(series)
            x0, x1, upper = float(scale(max(low, 0.0))), float(scale(float(each.y[k]))), y + 2 + place * size
            if numpy.isfinite(x1):
                parts.append(
                    f'<rect class="bar s{place % STYLES}" x="{min(x0, x1):.2f}" y="{upper:.2f}" '
                    f'width="{abs(x1 - x0):.2f}" height="{size - 1:.2f}"/>'
                )
                parts.append(label(number_text(float(each.y[k])), max(x0, x1) + 5, upper + size / 2 + 4, "tick"))
    bottom = top + height * len(names)
    parts.append(f'<path class="axis" d="M{left:.1f} {top - 2:.1f}V{bottom:.1f}"/>')
    return svg_element(figure, WIDTH, bottom + 6, parts)
