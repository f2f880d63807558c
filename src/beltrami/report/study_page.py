"""The page of results in Markdown, from the records of all studies."""

from collections.abc import Mapping, Sequence
from functools import reduce
from pathlib import Path

from beltrami.config.recipe.recipes import TRIED
from beltrami.lab.study.planning import Study
from beltrami.lab.study.record import Record, latest
from beltrami.lab.study.studies import STUDIES
from beltrami.lab.study.summary import Table, tabulate
from beltrami.report.study_plot import Plot, plots
from beltrami.report.study_terminal import cell_texts, comparison_text, comparison_title, failures

HEAD = """# Results

The paper's tables, measured again. Every figure here is made of the lines in `results/study/*.jsonl`, one a run, by
`python benchmarks/results.py --write`; `beltrami study NAME` makes such lines. A cell holds the mean and the standard
deviation over runs, in brackets the 95% interval of the mean by Student's t (over the splits where there are several,
each by its mean, else over the seeds), the number n of runs, and the paper's figure. Rows are compared with each other
on the splits and seeds that both were trained on. Times are, for each dataset, those of one device, that of most of its
runs."""
EMPTY = "No study has left results yet."
FIGURES = "study"  # folder of the figures, next to the page


def results_page(results: Mapping[str, Sequence[Record]]) -> str:
    """Return the page, with the studies in the order of the catalogue."""
    parts = [_section(study, results[name]) for name, study in STUDIES.items() if results.get(name)]
    return "\n\n".join([HEAD, *(parts or [EMPTY])]) + "\n"


def figures(results: Mapping[str, Sequence[Record]]) -> list[Plot]:
    """Return the figures of the page."""
    found = []
    for name, study in STUDIES.items():
        if results.get(name):
            found += [plot for table in tabulate(study, results[name]) for plot in plots(table, results[name])]
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
        parts += [_cells(table), _comparisons(table)]
        parts += [f"![{plot.caption}]({FIGURES}/{plot.name}.svg)" for plot in plots(table, records)]
    parts.append(failures(tables[0]))
    return "\n\n".join(part for part in parts if part)


def _cells(table: Table) -> str:
    rows = []
    for method in table.methods:
        cells = (table.cells.get((method, dataset)) for dataset in table.datasets)
        rows.append([method, *("<br>".join(cell_texts(cell, table.quantity.digits)) for cell in cells)])
    paper = table.quantity.paper if any(cell.paper for cell in table.cells.values()) else None
    heading = f"**{table.quantity.title}**" + ("" if paper is None else f"; the paper's: {paper.label}")
    return f"{heading}\n\n{_markdown(['', *table.datasets], rows)}"


def _comparisons(table: Table) -> str:
    if not table.comparisons:
        return ""
    rows = []
    for comparison, samples in table.comparisons.items():
        found = (samples.get(dataset) for dataset in table.datasets)
        texts = ("" if each is None else comparison_text(each, comparison, table.quantity.digits) for each in found)
        rows.append([comparison_title(comparison), *texts])
    return f"{table.quantity.title}, compared run by run\n\n{_markdown(['', *table.datasets], rows)}"


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


def _markdown(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join("| " + " | ".join(cells) + " |" for cells in lines)
