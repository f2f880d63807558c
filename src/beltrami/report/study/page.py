"""Page: the results of all studies as Markdown, from their lines and nothing else."""

from collections.abc import Mapping, Sequence
from functools import reduce
from pathlib import Path

from beltrami.config.recipe.catalogue import TRIED
from beltrami.lab.study import STUDIES, Record, Study, Table, latest, tabulate
from beltrami.report.study.format import compared, failures, known, measured, printed, title
from beltrami.report.study.plot import Plot, plots

HEAD = """# Results

The paper's tables, measured again. Every figure here is made of the lines in `results/study/*.jsonl`, one a run, by
`python benchmarks/results.py --write`; `beltrami study NAME` makes such lines. A cell holds the mean and the standard
deviation over runs, in brackets the 95% interval of the mean by Student's t (over the splits where there are several,
each by its mean, else over the seeds), the number n of runs, and the paper's figure. Rows are compared with each other
on the splits and seeds that both were trained on. Times are, for each dataset, those of one device, that of most of its
runs."""
NONE = "No study has left results yet."
FIGURES = "study"  # folder of the figures, beside the page


def page(results: Mapping[str, Sequence[Record]]) -> str:
    """The whole page, by studies in the order of the catalogue; it ends with a line's end."""
    parts = [_section(study, results[name]) for name, study in STUDIES.items() if results.get(name)]
    return "\n\n".join([HEAD, *(parts or [NONE])]) + "\n"


def figures(results: Mapping[str, Sequence[Record]]) -> list[Plot]:
    """The figures that the page shows."""
    found = []
    for name, study in STUDIES.items():
        if results.get(name):
            found += [plot for table in tabulate(study, results[name]) for plot in plots(table, results[name])]
    return found


def write(results: Mapping[str, Sequence[Record]], path: Path) -> None:
    """Write the page, and its figures into a folder beside it."""
    path.write_text(page(results))
    for plot in figures(results):
        plot.save(path.parent / FIGURES)


def _section(study: Study, lines: Sequence[Record]) -> str:
    tables = tabulate(study, lines)
    parts = [f"## {study.name}", study.title, study.note, _conditions(latest(lines))]
    for table in tables:
        parts.append(_cells(table))
        if table.pairs:
            parts.append(_pairs(table))
        parts += [f"![{plot.caption}]({FIGURES}/{plot.name}.svg)" for plot in plots(table, lines)]
    parts.append(failures(tables[0]))
    return "\n\n".join(part for part in parts if part)


def _cells(table: Table) -> str:
    digits = table.quantity.digits
    rows = []
    for row in table.rows:
        cells = [table.cells.get((row, dataset)) for dataset in table.datasets]
        texts = [
            [] if cell is None else [measured(cell, digits=digits), known(cell, digits=digits), printed(cell)]
            for cell in cells
        ]
        rows.append([row, *("<br>".join(text for text in each if text) for each in texts)])
    paper = table.quantity.paper if any(cell.paper for cell in table.cells.values()) else None
    heading = f"**{table.quantity.title}**" + ("" if paper is None else f"; the paper's: {paper.label}")
    return f"{heading}\n\n{_markdown(['', *table.datasets], rows)}"


def _pairs(table: Table) -> str:
    rows = []
    for pair, samples in table.pairs.items():
        found = (samples.get(dataset) for dataset in table.datasets)
        texts = ("" if each is None else compared(each, pair, digits=table.quantity.digits) for each in found)
        rows.append([title(pair), *texts])
    return f"{table.quantity.title}, compared run by run\n\n{_markdown(['', *table.datasets], rows)}"


def _conditions(lines: Sequence[Record]) -> str:
    """Splits, device, versions, and how many configurations were tried."""
    parts = []
    for name, path in (("Splits", "split.protocol"), ("Measured on", "device"), ("torch", "versions.torch")):
        found: dict[str, set[str]] = {}
        for line in lines:
            if line.result is not None:
                value = reduce(lambda values, key: values[key], path.split("."), line.result)
                found.setdefault(str(value), set()).add(line.dataset)
        if found:
            where = [value if len(found) == 1 else f"{value} ({', '.join(sorted(found[value]))})" for value in found]
            parts.append(f"{name}: {', '.join(sorted(where))}.")
    counts = {(line.row, line.dataset): line.tried or TRIED.get((line.row, line.dataset)) for line in lines}
    tried = {of: count for of, count in counts.items() if count is not None}
    if tried:
        words = ", ".join(f"{row} on {dataset} {count}" for (row, dataset), count in sorted(tried.items()))
        parts.append(f"Configurations tried on validation: {words}; of other rows nobody counted them.")
    return " ".join(parts)


def _markdown(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join("| " + " | ".join(cells) + " |" for cells in lines)
