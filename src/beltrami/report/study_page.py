"""The page of results in Markdown and its figures, from the records of all studies."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from pathlib import Path
from statistics import mean
from typing import TYPE_CHECKING, Any

from beltrami.config.recipe.recipes import TRIED
from beltrami.data import CATALOGUE
from beltrami.lab.study.planning import Study
from beltrami.lab.study.record import Record, latest
from beltrami.lab.study.studies import STUDIES
from beltrami.lab.study.summary import Table, tabulate
from beltrami.report.study_terminal import Texts, failures, table_texts

if TYPE_CHECKING:
    from matplotlib.axes import Axes

HEAD = """# Results

The paper's tables, measured again. Every figure here is made of the lines in `results/study/*.jsonl`, one a run, by
`python benchmarks/results.py --write`; `beltrami study NAME` makes such lines. A cell holds the mean and the standard
deviation over runs, in brackets the 95% interval of the mean by Student's t (over the splits where there are several,
each by its mean, else over the seeds), the number n of runs, and the paper's figure. Rows are compared with each other
on the splits and seeds that both were trained on. Times are, for each dataset, those of one device, that of most of its
runs."""
FIGURES = "study"  # folder of the figures, next to the page
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


def results_page(results: Mapping[str, Sequence[Record]]) -> str:
    """Return the page, with the studies in the order of the catalogue."""
    parts = [_section(study, results[name]) for name, study in STUDIES.items() if results.get(name)]
    return "\n\n".join([HEAD, *(parts or ["No study has left results yet."])]) + "\n"


def figures(results: Mapping[str, Sequence[Record]]) -> list[Plot]:
    """Return the figures of the page."""
    found = []
    for study, records in ((study, results[name]) for name, study in STUDIES.items() if results.get(name)):
        found += [plot for table in tabulate(study, records) for plot in plots(table, records)]
    return found


def write_page(results: Mapping[str, Sequence[Record]], path: Path) -> None:
    """Write the page, and its figures into a folder next to it."""
    path.write_text(results_page(results))
    for plot in figures(results):
        plot.save(path.parent / FIGURES)


def _section(study: Study, records: Sequence[Record]) -> str:
    tables = tabulate(study, records)
    parts = [f"## {study.name}", study.title, study.note, _conditions(latest(records))]
    for table in tables:
        title, (cells, comparisons) = table.quantity.title, table_texts(table)
        paper = table.quantity.paper if any(cell.paper for cell in table.cells.values()) else None
        parts.append(f"**{title}**" + ("" if paper is None else f"; the paper's: {paper.label}"))
        parts.append(_markdown(table.datasets, cells))
        if comparisons:
            parts += [f"{title}, compared run by run", _markdown(table.datasets, comparisons)]
        parts += [f"![{plot.caption}]({FIGURES}/{plot.name}.svg)" for plot in plots(table, records)]
    parts.append(failures(tables[0]))
    return "\n\n".join(part for part in parts if part)


def _conditions(records: Sequence[Record]) -> str:
    """Return the splits, devices, versions, and how many configurations were tried."""
    parts = []
    for name, path in (("Splits", "split.protocol"), ("Measured on", "device"), ("torch", "versions.torch")):
        found: dict[str, set[str]] = {}
        for record in records:
            if record.result is not None:
                value = reduce(lambda values, key: values[key], path.split("."), record.result)
                found.setdefault(str(value), set()).add(record.dataset)
        if found:
            where = [value if len(found) == 1 else f"{value} ({', '.join(sorted(found[value]))})" for value in found]
            parts.append(f"{name}: {', '.join(sorted(where))}.")
    counts = {(each.method, each.dataset): each.tried or TRIED.get((each.method, each.dataset)) for each in records}
    tried = {of: count for of, count in counts.items() if count is not None}
    if tried:
        words = ", ".join(f"{method} on {dataset} {count}" for (method, dataset), count in sorted(tried.items()))
        parts.append(f"Configurations tried on validation: {words}; not recorded for other rows.")
    return " ".join(parts)


def _markdown(datasets: Sequence[str], rows: Texts) -> str:
    texts = [[name, *("<br>".join(row.get(dataset, ())) for dataset in datasets)] for name, row in rows.items()]
    lines = [["", *datasets], ["---"] * (len(datasets) + 1), *texts]
    return "\n".join("| " + " | ".join(cells) + " |" for cells in lines)


@dataclass(frozen=True)
class Plot:
    """A figure with one panel for each dataset."""

    name: str  # of the file, without suffix
    caption: str  # the caption
    datasets: tuple[str, ...]  # one panel each
    panel: Callable[[Axes, str], None]  # draws the panel of a dataset
    height: float = 2.8  # of a panel, in inches

    def save(self, folder: Path) -> Path:
        """Write the figure as SVG."""
        from matplotlib import rc_context
        from matplotlib.figure import Figure

        folder.mkdir(parents=True, exist_ok=True)
        path = folder / f"{self.name}.svg"
        columns = min(COLUMNS, len(self.datasets))
        rows = math.ceil(len(self.datasets) / columns)
        with rc_context(STYLE):
            figure = Figure(figsize=(2.7 * columns + 0.8, self.height * rows + 0.4), layout="constrained")
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
    made = [against_paper(table), along_curve(table), along_flow(table, records)]
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


def _error_bars(axis: Axes, points: Sequence[tuple[float, float, float]], direction: str, **style: str) -> None:
    """Draw points (x, y, half the width of an interval) with bars in a direction, ``xerr`` or ``yerr``."""
    if points:
        x, y, half = zip(*points, strict=True)
        bars: dict[str, Any] = {direction: half, **style}
        axis.errorbar(x, y, **bars, markersize=4, capsize=2)
