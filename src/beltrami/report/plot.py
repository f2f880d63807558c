"""Figures as PNG, SVG or PDF files, drawn with matplotlib."""

import io
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy

from beltrami.data.file import write_atomically
from beltrami.report.figure import Bars, Cells, Figure, Line

if TYPE_CHECKING:
    from matplotlib.axes import Axes

FORMATS = ("png", "svg", "pdf")
COLOURS = (
    "#2f6fb4", "#d9622b", "#2a8f5b", "#b23a5e", "#7a5bb5", "#b98a00",
    "#1d8f9c", "#8a5a3c", "#c65fa8", "#5c7a1f", "#5a6b7d", "#d24b4b",
)  # fmt: skip  # of classes and series; a page has the same ones
STYLES = ("-", "--", ":", "-.")
STYLE: dict[Any, Any] = {
    "text.parse_math": False,  # a name such as $x$ is text
    "svg.fonttype": "none",
    "svg.hashsalt": "beltrami",
    "font.size": 9.0,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.titlelocation": "left",
    "legend.frameon": False,
}
MOST_INSIDE = 5  # series whose names fit between the axes
MOST_WRITTEN = 15  # rows of a matrix whose numbers are written into its cells


def save_figures(figures: Sequence[Figure], folder: Path, form: str) -> list[Path]:
    """Write each figure to ``folder/KEY.FORM``, form "png", "svg" or "pdf", and return the paths."""
    paths = []
    for figure in figures:
        paths.append(folder / f"{figure.key}.{form}")
        write_atomically(paths[-1], draw(figure, form))
    return paths


def draw(figure: Figure, form: str) -> bytes:
    """Return the content of a file with one figure."""
    from matplotlib import rc_context
    from matplotlib.figure import Figure as Canvas

    with rc_context(STYLE):
        canvas = Canvas(figsize=(5.2, 3.6), layout="constrained")
        axes = canvas.add_subplot(title=figure.title, xlabel=figure.x, ylabel=figure.y)
        for k, series in enumerate(figure.series):
            _draw_series(axes, series, COLOURS[k % len(COLOURS)], STYLES[k % len(STYLES)])
        if figure.diagonal:
            low, high = axes.get_xlim()
            axes.plot((low, high), (low, high), color="#999999", linewidth=0.8, zorder=0)
        for name, x in figure.marks.items():
            axes.axvline(x, color="#666666", linewidth=0.8, linestyle=":")
            axes.annotate(name, (x, 1), xycoords=("data", "axes fraction"), xytext=(3, -9), textcoords="offset points")
        for axis in figure.log:
            getattr(axes, f"set_{axis}scale")("log")
        if figure.bounds is not None:
            axes.set_ylim(*figure.bounds)
        if len(figure.series) > MOST_INSIDE:
            canvas.legend(loc="outside lower center", ncols=2)
        elif len(figure.series) > 1:
            axes.legend()
        stream, no_date = io.BytesIO(), {"png": {}, "svg": {"Date": None}, "pdf": {"CreationDate": None}}
        canvas.savefig(stream, format=form, dpi=200, metadata=no_date[form])
    return stream.getvalue()


def _draw_series(axes: "Axes", series: Line | Bars | Cells, colour: str, style: str) -> None:
    if isinstance(series, Line):
        kind: dict[str, Any] = {"marker": "o", "markersize": 3, "linestyle": "none"} if series.dots else {}
        drawn = {"color": colour, "linestyle": style, "label": series.name, **kind}
        axes.plot(series.x, series.y, drawstyle="steps-post" if series.steps else "default", **drawn)
    elif isinstance(series, Bars) and series.edges is not None:
        axes.stairs(series.y, series.edges, fill=True, color=colour, alpha=0.8, label=series.name)
    elif isinstance(series, Bars):
        places = numpy.arange(len(series.y))
        axes.bar(places, series.y, color=colour, width=0.7, label=series.name)
        axes.set_xticks(places, list(series.categories), rotation=30, ha="right")
    else:
        _draw_cells(axes, series)


def _draw_cells(axes: "Axes", cells: Cells) -> None:
    values = numpy.asarray(cells.values, dtype=float)
    top = float(numpy.nanmax(values)) if values.size else 1.0
    axes.imshow(values, cmap="Blues", vmin=0, vmax=top or 1.0, aspect="auto")
    axes.set_xticks(range(len(cells.columns)), list(cells.columns), rotation=30, ha="right")
    axes.set_yticks(range(len(cells.rows)), list(cells.rows))
    if max(values.shape) <= MOST_WRITTEN:
        for (row, column), value in numpy.ndenumerate(values):
            ink = "white" if value > 0.6 * top else "black"
            axes.text(column, row, f"{value:.3g}", ha="center", va="center", color=ink, fontsize=7)
