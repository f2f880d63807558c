"""Figures of studies: ours against the paper, curves, accuracy along the flow, and ranks over datasets."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import mean
from typing import TYPE_CHECKING, Any

from beltrami.data import CATALOGUE
from beltrami.lab.study.record import Record, latest
from beltrami.lab.study.summary import Table
from beltrami.report.study_terminal import p_text

if TYPE_CHECKING:
    from matplotlib.axes import Axes

OURS, PAPER, GREY = "#1f5fa8", "#c4572b", "#777777"
COLOURS = (OURS, PAPER, "#3a7d44", "#8a5aa5", "#b08900")
COLUMNS = 4
LEVELS = ("--", ":", "-.", (0, (6, 3)), (0, (1, 4)))
STYLE: dict[Any, Any] = {
    "svg.hashsalt": "beltrami",  # equal data give equal files
    "svg.fonttype": "none",
    "font.size": 9,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "legend.frameon": False,
}


@dataclass(frozen=True)
class Plot:
    """A figure with one panel for each dataset."""

    name: str  # of the file, without suffix
    caption: str  # the caption
    datasets: tuple[str, ...]  # one panel each
    panel: Callable[[Axes, str], None]  # draws the panel of a dataset
    height: float = 2.8  # of a panel, in inches
    width: float = 2.7

    def save(self, folder: Path) -> Path:
        """Write the figure as SVG."""
        from matplotlib import rc_context
        from matplotlib.figure import Figure

        folder.mkdir(parents=True, exist_ok=True)
        path = folder / f"{self.name}.svg"
        columns = min(COLUMNS, len(self.datasets))
        rows = math.ceil(len(self.datasets) / columns)
        with rc_context(STYLE):
            figure = Figure(figsize=(self.width * columns + 0.8, self.height * rows + 0.4), layout="constrained")
            legend: dict[str, Any] = {}
            for place, dataset in enumerate(self.datasets, start=1):
                axis = figure.add_subplot(rows, columns, place)
                self.panel(axis, dataset)
                axis.set_title(CATALOGUE[dataset].title if dataset in CATALOGUE else dataset)
                handles, labels = axis.get_legend_handles_labels()
                legend |= dict(zip(labels, handles, strict=True))
            figure.legend(legend.values(), legend.keys(), loc="outside lower center", ncols=2 * columns, fontsize=8)
            figure.savefig(path, format="svg", metadata={"Date": None})
        return path


def plots(table: Table, records: Sequence[Record]) -> list[Plot]:
    """Return the figures that the data of a table allow."""
    made = [against_paper(table), along_curve(table), along_flow(table, records), over_datasets(table)]
    return [plot for plot in made if plot is not None]


def against_paper(table: Table) -> Plot | None:
    """Plot our means with intervals, and the paper's with standard deviations, method by method."""
    both = [place for place, cell in table.cells.items() if cell.sample is not None and cell.paper is not None]
    datasets = tuple(name for name in table.datasets if any(name == dataset for _, dataset in both))
    methods = [method for method in table.methods if any(method == name for name, _ in both)]
    if not datasets or table.quantity.name != "test_accuracy":
        return None

    def panel(axis: Axes, dataset: str) -> None:
        heights = {method: height for height, method in enumerate(reversed(methods))}
        cells = [(heights[name], table.cells[name, dataset]) for name in heights if (name, dataset) in table.cells]
        ours = [(cell.sample.mean, y, cell.sample.half or 0.0) for y, cell in cells if cell.sample]
        papers = [(cell.paper.value, y - 0.25, cell.paper.deviation or 0.0) for y, cell in cells if cell.paper]
        _error_bars(axis, ours, "xerr", label="ours, 95% interval", fmt="o", color=OURS)
        _error_bars(axis, papers, "xerr", label="paper, standard deviation", fmt="D", color=PAPER)
        axis.set_yticks(range(len(methods)), list(reversed(methods)))
        axis.set_ylim(-0.75, len(methods) - 0.5)  # rows without a value too
        axis.set_xlabel(table.quantity.title)

    label = table.quantity.paper.label if table.quantity.paper else ""
    caption = f"{table.quantity.title}, ours and the paper's ({label})"
    return Plot(f"{table.study.name}-paper", caption, datasets, panel, 1.2 + 0.4 * len(methods))


def along_curve(table: Table) -> Plot | None:
    """Plot the methods that are points of curves with intervals, and the other methods as level lines."""
    points = {each.name: each for each in table.study.methods if each.at is not None and each.name in table.methods}
    if len(points) < 2 or table.study.curve is None:
        return None
    series = tuple(dict.fromkeys(each.series or "" for each in points.values()))

    def panel(axis: Axes, dataset: str) -> None:
        for name, colour in zip(series, COLOURS, strict=False):
            found = [
                (each.at or 0.0, cell.sample.mean, cell.sample.half or 0.0)
                for each in points.values()
                if each.series == name and (cell := table.cells.get((each.name, dataset))) and cell.sample
            ]
            _error_bars(axis, sorted(found), "yerr", label=name, fmt="o-", color=colour)
        for style, level in zip(LEVELS, (name for name in table.methods if name not in points), strict=False):
            cell = table.cells.get((level, dataset))
            if cell is not None and cell.sample is not None:
                axis.axhline(cell.sample.mean, color=GREY, linestyle=style, linewidth=1, label=level)
        axis.set_xscale("log", base=2)
        axis.set_xlabel(table.study.curve or "")
        axis.set_ylabel(table.quantity.title)

    caption = f"{table.quantity.title} over the {table.study.curve}"
    return Plot(f"{table.study.name}-{table.quantity.name.replace('_', '-')}", caption, table.datasets, panel)


def along_flow(table: Table, records: Sequence[Record]) -> Plot | None:
    """Plot the validation accuracy over t, the mean over the runs of each method."""
    scores: dict[tuple[str, str], dict[float, list[float]]] = defaultdict(lambda: defaultdict(list))
    for record in latest(records):
        for t, value in record.extra.get("along", ()):
            scores[record.method, record.dataset][t].append(value)
    if not scores or table.quantity.name != "test_accuracy":
        return None

    def panel(axis: Axes, dataset: str) -> None:
        for method, colour in zip(table.methods, COLOURS, strict=False):
            found = sorted((t, mean(values)) for t, values in scores.get((method, dataset), {}).items())
            axis.plot([t for t, _ in found], [value for _, value in found], color=colour, label=method)
        axis.set_xlabel("time t of the flow")
        axis.set_ylabel("validation accuracy (%)")

    return Plot(f"{table.study.name}-flow", "validation accuracy along the flow", table.datasets, panel)


def over_datasets(table: Table) -> Plot | None:
    """Plot the average ranks of the methods over the datasets; a bar joins methods that Nemenyi's test does not tell
    apart, and the first bar is as long as the critical difference."""
    ranking = table.ranking if table.quantity.name == "test_accuracy" else None
    if ranking is None:
        return None
    names, cliques = list(ranking.average), ranking.cliques

    def panel(axis: Axes, _: str) -> None:
        depth = len(names) + len(cliques) + 1
        for row, name in enumerate(names):
            rank, y = ranking.average[name], depth - row - len(cliques) - 1
            axis.plot([rank, rank, len(names) + 0.5], [depth, y, y], color=GREY, linewidth=0.8)
            axis.annotate(f"{name} {rank:.2f}", (len(names) + 0.6, y), va="center", annotation_clip=False)
        for row, clique in enumerate(cliques):
            ends = [ranking.average[clique[0]], ranking.average[clique[-1]]]
            axis.plot(ends, [depth - 0.5 - row] * 2, color=OURS, linewidth=3, solid_capstyle="butt")
        length = [1.0, 1.0 + ranking.critical_difference]
        axis.plot(length, [depth + 0.8] * 2, color=PAPER, linewidth=2, label="critical difference (Nemenyi, 5%)")
        axis.plot([], [], color=OURS, linewidth=3, label="not told apart")
        axis.set(xlim=(1, len(names) + 0.5), ylim=(-0.5, depth + 1.2), yticks=[], xlabel="average rank")
        axis.spines["left"].set_visible(False)

    test = f"Friedman's test: {p_text(ranking.p_value)}"
    caption = f"average ranks by {table.quantity.title} over {ranking.datasets} datasets; {test}"
    title = f"{ranking.datasets} datasets"
    return Plot(f"{table.study.name}-ranks", caption, (title,), panel, 1.0 + 0.22 * (len(names) + len(cliques)), 6.0)


def _error_bars(axis: Axes, points: Sequence[tuple[float, float, float]], direction: str, **style: str) -> None:
    """Draw points (x, y, half the width of an interval) with bars in a direction, ``xerr`` or ``yerr``."""
    if points:
        x, y, half = zip(*points, strict=True)
        bars: dict[str, Any] = {direction: half, **style}
        axis.errorbar(x, y, **bars, markersize=4, capsize=2)
