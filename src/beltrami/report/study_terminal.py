"""Studies and searches in a terminal, and the texts that the page shares."""

from collections.abc import Iterable, Mapping, Sequence
from operator import truediv
from pathlib import Path

from rich.console import Console
from rich.markup import escape
from rich.table import Table as Grid

from beltrami.config import RunConfig
from beltrami.lab.study.planning import Comparison, PlannedRun, Study, plan
from beltrami.lab.study.record import Record, latest
from beltrami.lab.study.summary import Cell, Sample, Table
from beltrami.lab.study.time_limit import TimeLimit
from beltrami.lab.tune.search import Search, ranking
from beltrami.lab.tune.search_space import value_of

CELL, GAP = 27, 3  # characters of a column, and between two
NOTE = (
    "mean ± standard deviation over runs; [95% interval of the mean, by Student's t]; p: paired t-test over splits, "
    "adjusted by Holm for all differences of the table"
)
MISSING = "missing"
SHOWN = 5  # of the best trials
Texts = Mapping[str, Mapping[str, Sequence[str]]]
"""The lines of each cell of a table, by row and dataset."""


def cell_texts(cell: Cell, digits: int) -> list[str]:
    """Return the lines of a cell: mean and standard deviation; interval and counts; the paper's figure."""
    sample = cell.sample
    mean = "-" if sample is None else f"{sample.mean:,.{digits}f}"
    deviation = "" if sample is None or cell.deviation is None else f" ± {cell.deviation:,.{digits}f}"
    counts = [
        _interval(sample, digits) if sample is not None and sample.half is not None else "",
        f"n = {cell.runs}" if cell.runs > 1 else "",
        f"{cell.failed} failed" if cell.failed else "",
    ]
    paper = "" if cell.paper is None else f"paper {cell.paper}"
    return [text for text in (mean + deviation, ", ".join(filter(None, counts)), paper) if text]


def comparison_text(sample: Sample, comparison: Comparison, digits: int) -> str:
    """Return a difference with its sign, or a ratio, with its interval and the number of splits or seeds."""
    digits = 2 if comparison.compare is truediv else digits
    mean = f"{sample.mean:,.2f}x" if comparison.compare is truediv else f"{sample.mean:+,.{digits}f}"
    interval = "" if sample.half is None else f" {_interval(sample, digits)}"
    return f"{mean}{interval}, n = {sample.count}"


def p_text(p_value: float | None) -> str:
    """Return a p-value; empty for None."""
    return "" if p_value is None else "p < 0.001" if p_value < 0.001 else f"p = {p_value:.3f}"


def table_texts(table: Table, missing: Sequence[tuple[str, str]] = ()) -> tuple[Texts, Texts]:
    """Return the lines of the cells by method and dataset, and of the comparisons by title and dataset. Cells that are
    ``missing``, method and dataset, say so."""
    lacking = {method for method, _ in missing} - set(table.methods)
    order = {method.name: place for place, method in enumerate(table.study.methods)}
    rows = sorted((*table.methods, *lacking), key=lambda name: order.get(name, len(order)))
    cells: dict[str, dict[str, list[str]]] = {method: {} for method in rows}
    for method, dataset in missing:
        cells[method][dataset] = [MISSING]
    for (method, dataset), cell in table.cells.items():
        cells[method][dataset] = cell_texts(cell, table.quantity.digits)
    comparisons: dict[str, dict[str, list[str]]] = {}
    for each, samples in table.comparisons.items():
        texts = {}
        for name, sample in samples.items():
            p = p_text(table.p_values.get((each, name)))
            texts[name] = [comparison_text(sample, each, table.quantity.digits), *([p] if p else [])]
        comparisons[f"{each.one} {'/' if each.compare is truediv else '-'} {each.other}"] = texts
    return cells, comparisons


def missing_texts(
    study: Study, missing: Sequence[tuple[str, str]], records: Iterable[Record] | None = None
) -> list[str]:
    """Return what is missing in a study, and the commands that fill it, one for rows that lack the same datasets; with
    ``records`` of the study also how many runs they are, and how long they take on a GPU by the times on record."""
    limit = None if records is None else TimeLimit(1.0, records, device="cuda")
    return [
        f"{_cells(*group)}{'' if limit is None else _cost(study, *group, limit)}: {_command(study, *group)}"
        for group in _same_datasets(missing)
    ]


def changed_texts(study: Study, changed: Sequence[tuple[str, str]]) -> list[str]:
    """Return which cells, method and dataset, were measured before their recipe had its settings, and how to measure
    them again."""
    path = f"results/study/{study.name}.jsonl"
    return [
        f"{_cells(*group)}: remove their lines from {path}, and run {_command(study, *group)}"
        for group in _same_datasets(changed)
    ]


def _same_datasets(cells: Sequence[tuple[str, str]]) -> list[tuple[list[str], list[str]]]:
    """Return the methods of cells in groups that have the same datasets."""
    datasets_of: dict[str, list[str]] = {}
    for method, dataset in cells:
        datasets_of.setdefault(method, []).append(dataset)
    methods_of: dict[tuple[str, ...], list[str]] = {}
    for method, datasets in datasets_of.items():
        methods_of.setdefault(tuple(datasets), []).append(method)
    return [(methods, list(datasets)) for datasets, methods in methods_of.items()]


def _cells(methods: Sequence[str], datasets: Sequence[str]) -> str:
    return f"{', '.join(methods)} on {', '.join(datasets)}"


def _command(study: Study, methods: Sequence[str], datasets: Sequence[str]) -> str:
    names = f"--methods {','.join(methods)} --datasets {','.join(datasets)}"
    return f"`beltrami study {study.name} {names} --device cuda --resume`"


def _cost(study: Study, methods: Sequence[str], datasets: Sequence[str], limit: TimeLimit) -> str:
    """Return the number of runs and how many hours they take, less those on datasets without any run on record."""
    cells: dict[tuple[str, str], list[PlannedRun]] = {}
    for run in plan(study, datasets=datasets, methods=methods):
        cells.setdefault(run.group, []).append(run)
    seconds = [limit.expected(runs) for runs in cells.values()]
    known = [each for each in seconds if each is not None]
    left = len(seconds) - len(known)
    unknown = f", {left} {'cell' if left == 1 else 'cells'} of unknown duration" if left else ""
    hours = f", about {max(sum(known) / 3600, 0.1):.1f} hours" if known else ""
    return f" ({sum(map(len, cells.values())):,} runs{hours}{unknown})"


def failures(table: Table) -> str:
    """Return a sentence on the runs that failed; empty if none did."""
    failed = sum(cell.failed for cell in table.cells.values())
    if not failed:
        return ""
    runs = "1 run" if failed == 1 else f"{failed} runs"
    return f"{runs} failed and count for nothing here; the lines of the results file say why."


def describe_run(record: Record) -> str:
    """Return what a run of a study was and how it ended."""
    accuracy = record.number("test_accuracy")
    found = "done" if accuracy is None else f"test {accuracy:.2f}%"
    run = f"{record.method} on {record.dataset}, split {record.split_seed}, seed {record.seed}"
    return f"{run}: {found if record.error is None else f'failed: {record.error}'}"


def describe_trial(record: Record) -> str:
    """Return what a trial of a search was and how it ended."""
    if record.error is not None:
        return f"trial {record.method}: failed: {record.error}"
    epochs, end = len(record.extra["by_epoch"]), "stopped after" if record.extra["stopped"] else "in"
    seconds = f"{record.extra['seconds']:.1f} s"
    return f"trial {record.method}: validation {_validation(record)}%, {end} {epochs} epochs, {seconds}"


def print_studies(studies: Mapping[str, Study]) -> None:
    """Print the studies, one per line."""
    grid = Grid(box=None, show_header=False, padding=(0, 2, 0, 0))
    for name, study in studies.items():
        grid.add_row(f"[bold]{name}[/]", study.title)
    Console(highlight=False).print(grid)


def print_progress(done: Mapping[str, tuple[int, int]], command: str) -> None:
    """Print how many runs of each study have a result, of how many, and the command that goes on."""
    console, left = Console(highlight=False), sum(total - made for made, total in done.values())
    for name, (made, total) in done.items():
        console.print(f"[bold]{name}[/]: {made:,} of {total:,} runs; `beltrami study {name} --show`")
    console.print(f"{left:,} runs are left: `{command}`" if left else "every study is complete", soft_wrap=True)


def print_tables(tables: Iterable[Table], *, path: Path, missing: Sequence[tuple[str, str]] = ()) -> None:
    """Print a table for each quantity, and its comparisons; then the commands that fill the ``missing`` cells of the
    rows that the tables have."""
    console, lacking = Console(highlight=False), []
    for table in tables:
        shown = [(method, name) for method, name in missing if method in table.methods and name in table.datasets]
        (cells, comparisons), title = table_texts(table, shown), table.quantity.title
        lacking = missing_texts(table.study, shown)
        widest = max(map(len, [*cells, *comparisons]))
        at_once = max(1, (console.width - widest - GAP) // (CELL + GAP))
        for heading, rows in ((f"{table.study.name}: {title}", cells), (f"{title}, compared run by run", comparisons)):
            if rows:
                console.print(f"[bold]{heading}[/]")
                for first in range(0, len(table.datasets), at_once):
                    console.print(_grid(table.datasets[first : first + at_once], rows))
        if sentence := failures(table):
            console.print(f"[yellow]{sentence}[/]")
    for text in lacking:
        console.print(f"missing: {escape(text)}", soft_wrap=True)
    console.print(f"[dim]{escape(NOTE)}[/]")
    console.print(f"[dim]from[/] {path}")


def print_search(search: Search, records: Sequence[Record], best: RunConfig, *, path: Path) -> None:
    """Print the best trials and the recipe itself, how the others ended, and how to train the best one."""
    console = Console(highlight=False)
    ranked, trials = ranking(records), latest(records)
    console.print(f"[bold]validation {_validation(ranked[0])}%[/]  (trial {ranked[0].method})")
    for record in ranked:
        if record.method == "0":
            console.print(f"the recipe as it stands: {_validation(record)}%  (trial 0)")
    stopped = sum(bool(record.extra["stopped"]) for record in trials if record.error is None)
    failed = sum(record.error is not None for record in trials)
    console.print(f"{len(trials)} configurations tried, {stopped} stopped early, {failed} failed")
    names = search.space
    table = Grid(box=None, padding=(0, 2, 0, 0))
    table.add_column("trial", min_width=max(map(len, names), default=0))
    for record in ranked[:SHOWN]:
        table.add_column(record.method, justify="right")
    table.add_row("validation", *map(_validation, ranked[:SHOWN]))
    configs = [search.config(int(record.method)) for record in ranked[:SHOWN]]
    for name in names:
        table.add_row(f"[dim]{name}[/]", *(str(value_of(config, name)) for config in configs))
    console.print(table)
    console.print(f"[dim]saved in[/] {path}", soft_wrap=True)
    console.print(f"[dim]train it:[/] beltrami train {best.dataset} --recipe {path}", soft_wrap=True)


def _grid(datasets: Sequence[str], rows: Texts) -> Grid:
    grid = Grid(box=None, padding=(0, GAP, 0, 0))
    for name in ("", *datasets):
        grid.add_column(name)
    for name, cells in rows.items():
        texts = ([escape(text) for text in cells.get(dataset, ())] for dataset in datasets)
        grid.add_row(name, *("\n".join([*each[:1], *(f"[dim]{text}[/]" for text in each[1:])]) for each in texts))
    return grid


def _interval(sample: Sample, digits: int) -> str:
    low, high = sample.interval or (sample.mean, sample.mean)
    return f"[{low:,.{digits}f}, {high:,.{digits}f}]"


def _validation(record: Record) -> str:
    return f"{record.number('validation') or 0.0:.2f}"
