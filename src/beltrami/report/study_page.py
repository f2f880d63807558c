"""The page of results in Markdown and its figures, from the records of all studies."""

from collections.abc import Mapping, Sequence
from functools import reduce
from pathlib import Path

from beltrami.config.recipe.recipes import TRIED
from beltrami.lab.study.planning import Study, changed_cells, missing_cells, plan
from beltrami.lab.study.record import Record, latest
from beltrami.lab.study.studies import STUDIES
from beltrami.lab.study.summary import tabulate
from beltrami.report.study_figures import Plot, plots
from beltrami.report.study_terminal import Texts, changed_texts, failures, missing_texts, table_texts

HEAD = """# Results

The tables of the paper, measured again by `beltrami study NAME`, which writes one line for each run to
`results/study/NAME.jsonl`. This page is made of these lines by `python benchmarks/results.py --write`.

- **A cell** has the mean and the standard deviation over n runs, the 95% interval of the mean in brackets (Student's t,
  over splits where there are several, else over seeds), and the figure of the paper.
- **missing** is a cell without runs: they need more time on a GPU than there was, and on ogbn-arxiv files that were not
  at hand. The command is below the table, with the number of runs and the time that they take on an H200, estimated
  from the slowest method on record. Cells that were measured before their recipe had its present settings are listed
  there too.
- **Differences** of two rows are paired: over the splits and seeds that both have. p is that of the paired t-test over
  splits, adjusted by Holm for all differences of the table.
- **Ranks** are those of the rows on each dataset; the critical difference is Nemenyi's at 5% (Demšar 2006).
- **Times** on a dataset are of one kind of device, that of most of its runs."""
NOT_COUNTED = "not on record"
FIGURES = "study"  # folder of the figures, next to the page


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
    tables, missing = tabulate(study, records), missing_cells(study, records)
    parts = [f"## {study.name}", study.title, study.note, _conditions(latest(records))]
    datasets = [*study.datasets, *(name for name in tables[0].datasets if name not in study.datasets)]
    if any(table.quantity.name == "test_accuracy" for table in tables):
        parts += ["Configurations compared on validation", _counts(tables[0].methods, datasets, latest(records))]
    for table in tables:
        title, (cells, comparisons) = table.quantity.title, table_texts(table, missing)
        paper = table.quantity.paper if any(cell.paper for cell in table.cells.values()) else None
        parts.append(f"**{title}**" + ("" if paper is None else f"; the paper's: {paper.label}"))
        parts.append(_markdown(datasets if missing else table.datasets, cells))
        if comparisons:
            parts += [f"{title}, compared run by run", _markdown(table.datasets, comparisons)]
        parts += [f"![{plot.caption}]({FIGURES}/{plot.name}.svg)" for plot in plots(table, records)]
    lines = missing_texts(study, missing, records)
    parts += ["Missing, with the commands that fill it:", _list(lines)] if lines else []
    changed = [(method, name) for name, method in changed_cells(plan(study, splits=1, inits=1), latest(records))]
    lines = changed_texts(study, changed)
    parts += ["Measured before the recipe had its present settings:", _list(lines)] if lines else []
    parts.append(failures(tables[0]))
    return "\n\n".join(part for part in parts if part)


def _list(lines: Sequence[str]) -> str:
    return "\n".join(f"- {line}" for line in lines)


def _conditions(records: Sequence[Record]) -> str:
    """Return the splits, devices and versions."""
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
    return " ".join(parts)


def _counts(methods: Sequence[str], datasets: Sequence[str], records: Sequence[Record]) -> str:
    """Return a table of how many configurations were compared on validation for each cell that has runs; rows of the
    same counts are one row."""
    counts: dict[str, dict[str, str]] = {method: {} for method in methods}
    for record in records:
        recipe = record.method if record.result is None else str(record.result.get("recipe", record.method))
        count = record.tried or TRIED.get((recipe, record.dataset))
        counts[record.method][record.dataset] = NOT_COUNTED if count is None else str(count)
    rows: dict[tuple[str, ...], list[str]] = {}
    for method, found in counts.items():
        rows.setdefault(tuple(found.get(dataset, "") for dataset in datasets), []).append(method)
    same = {", ".join(names): dict(zip(datasets, cells, strict=True)) for cells, names in rows.items()}
    return _markdown(datasets, {name: {one: [text] for one, text in row.items()} for name, row in same.items()})


def _markdown(datasets: Sequence[str], rows: Texts) -> str:
    texts = [[name, *("<br>".join(row.get(dataset, ())) for dataset in datasets)] for name, row in rows.items()]
    lines = [["", *datasets], ["---"] * (len(datasets) + 1), *texts]
    return "\n".join("| " + " | ".join(cells) + " |" for cells in lines)
