"""Table: what the lines of a study say, row by row and dataset by dataset."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import stdev

from beltrami.data import CATALOGUE
from beltrami.errors import DataError
from beltrami.lab.study.comparison import Comparison
from beltrami.lab.study.paper import Figure
from beltrami.lab.study.quantity import Quantity
from beltrami.lab.study.record import Record, latest
from beltrami.lab.study.sample import Sample, by_unit
from beltrami.lab.study.study import Study


@dataclass(frozen=True)
class Cell:
    """A row on a dataset.

    Args:
        runs: how many gave the number.
        failed: how many ended in an error.
        deviation: the standard deviation over runs, as papers print it; None for fewer than two.
        sample: the mean and its interval; None where no run gave the number.
        paper: the paper's figure.
    """

    runs: int
    failed: int
    deviation: float | None
    sample: Sample | None
    paper: Figure | None


@dataclass(frozen=True)
class Table:
    """One quantity of a study: its cells by row and dataset, and its pairs by dataset."""

    study: Study
    quantity: Quantity
    rows: tuple[str, ...]
    datasets: tuple[str, ...]
    cells: Mapping[tuple[str, str], Cell]
    pairs: Mapping[Comparison, Mapping[str, Sample]]

    @property
    def failed(self) -> int:
        return sum(cell.failed for cell in self.cells.values())


def tabulate(study: Study, lines: Iterable[Record]) -> list[Table]:
    """The tables of a study, from its lines and nothing else; a run counts once, by the last line it left."""
    cells: dict[tuple[str, str], list[Record]] = defaultdict(list)
    for line in latest(lines):
        if line.study != study.name:
            raise DataError(f"a line of study {line.study!r} is among those of {study.name!r}: which file is it from?")
        cells[line.row, line.dataset].append(line)
    for (row, dataset), runs in cells.items():
        if len({line.setup for line in runs}) > 1:
            raise DataError(
                f"the runs of {row!r} on {dataset!r} in study {study.name!r} have different settings and so no mean: "
                "keep the lines of one `setup` alone."
            )
    clocked = _on_one_device(cells)
    return [_table(study, quantity, clocked if quantity.timed else cells) for quantity in study.quantities]


def _on_one_device(cells: Mapping[tuple[str, str], Sequence[Record]]) -> dict[tuple[str, str], list[Record]]:
    """Of every dataset the runs on the device that most of them were on, and those that failed."""
    counts: dict[str, Counter[str]] = defaultdict(Counter)
    for (_, dataset), runs in cells.items():
        counts[dataset].update(line.device for line in runs if line.device is not None)
    most = {dataset: count.most_common(1)[0][0] for dataset, count in counts.items() if count}
    kept = {
        (row, dataset): [line for line in runs if line.device in (None, most.get(dataset))]
        for (row, dataset), runs in cells.items()
    }
    return {place: runs for place, runs in kept.items() if runs}


def _table(study: Study, quantity: Quantity, cells: Mapping[tuple[str, str], Sequence[Record]]) -> Table:
    rows = _ordered({row for row, _ in cells}, [row.name for row in study.rows])
    datasets = _ordered({dataset for _, dataset in cells}, [*study.datasets, *CATALOGUE])
    pairs: dict[Comparison, dict[str, Sample]] = {}
    for pair in quantity.pairs:
        both = {
            dataset: [*cells.get((pair.one, dataset), ()), *cells.get((pair.other, dataset), ())]
            for dataset in datasets
        }
        found = {dataset: pair.sample(lines, quantity.name) for dataset, lines in both.items()}
        pairs[pair] = {dataset: sample for dataset, sample in found.items() if sample is not None}
    return Table(
        study=study,
        quantity=quantity,
        rows=rows,
        datasets=datasets,
        cells={place: _cell(quantity, *place, lines) for place, lines in cells.items()},
        pairs={pair: samples for pair, samples in pairs.items() if samples},
    )


def _cell(quantity: Quantity, row: str, dataset: str, lines: Sequence[Record]) -> Cell:
    values = [value for line in lines if (value := line.number(quantity.name)) is not None]
    return Cell(
        runs=len(values),
        failed=sum(line.error is not None for line in lines),
        deviation=stdev(values) if len(values) > 1 else None,
        sample=Sample.of(list(by_unit(lines, quantity.name).values())) if values else None,
        paper=None if quantity.paper is None else quantity.paper.figure(row, dataset),
    )


def _ordered(names: set[str], order: Sequence[str]) -> tuple[str, ...]:
    """The names in the order of the study, and what it does not name at the end."""
    first = [name for name in dict.fromkeys(order) if name in names]
    return (*first, *sorted(names - set(first)))
