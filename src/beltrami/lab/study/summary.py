"""Tables of a study, computed from its records alone: means, intervals and comparisons."""

import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from operator import sub
from statistics import mean, stdev

from beltrami.data import CATALOGUE
from beltrami.errors import DataError
from beltrami.lab.study.paper_tables import PrintedNumber
from beltrami.lab.study.planning import Comparison, Quantity, Study
from beltrami.lab.study.record import Record, latest
from beltrami.lab.study.significance import Ranking, holm

LEAST_DATASETS = 5  # of a ranking
Cells = Mapping[tuple[str, str], Sequence[Record]]
"""Records by method and dataset."""


@dataclass(frozen=True)
class Sample:
    r"""The mean of n independent values and its 95% interval by Student's t,

    .. math:: \bar y \pm t_{n-1, 0.975}\, s / \sqrt n, \qquad s^2 = \frac{1}{n-1} \sum_k (y_k - \bar y)^2.
    """

    count: int  # n
    mean: float  # of the values
    half: float | None  # half the width of the interval; None for a single value

    @staticmethod
    def of(values: Sequence[float]) -> "Sample":
        from scipy.stats import t

        n = len(values)
        if n == 0:
            raise ValueError("Sample needs at least one value; got none.")
        if n == 1:
            return Sample(1, values[0], None)
        return Sample(n, mean(values), float(t.ppf(0.975, n - 1)) * stdev(values) / math.sqrt(n))

    @property
    def interval(self) -> tuple[float, float] | None:
        return None if self.half is None else (self.mean - self.half, self.mean + self.half)

    @property
    def p_value(self) -> float | None:
        """Of the two-sided t-test that the mean is 0; of differences, the paired test. None for a single value."""
        from scipy.stats import t

        if self.half is None:
            return None
        if self.half == 0:
            return float(self.mean == 0)
        return 2 * float(t.sf(abs(self.mean) / self.half * t.ppf(0.975, self.count - 1), self.count - 1))


def independent_values(records: Iterable[Record], quantity: str) -> dict[str, float]:
    """Return the independent values of a quantity: with several splits the mean on each, since runs on one split are
    correlated; with one split the value of each seed. Records without the number are left out."""
    values: dict[str, dict[int, float]] = defaultdict(dict)
    for record in records:
        if (value := record.number(quantity)) is not None:
            values[record.split][record.seed] = value
    if len(values) == 1:
        (runs,) = values.values()
        return {str(seed): value for seed, value in runs.items()}
    return {split: mean(runs.values()) for split, runs in values.items()}


def compare(comparison: Comparison, records: Iterable[Record], quantity: str) -> Sample | None:
    """Compare two methods by a quantity on the runs that both have, from records of one dataset; None if there are no
    such runs. Runs that failed are left out."""
    runs: dict[tuple[str, int], dict[str, Record]] = defaultdict(dict)
    for record in records:
        if record.number(quantity) is not None:
            runs[record.split, record.seed][record.method] = record
    names = (comparison.one, comparison.other)
    shared = [run for run in runs.values() if run.keys() >= set(names)]
    one, other = (independent_values([run[name] for run in shared], quantity) for name in names)
    return Sample.of([comparison.compare(one[unit], other[unit]) for unit in one]) if one else None


@dataclass(frozen=True)
class Cell:
    """A method on a dataset."""

    runs: int  # how many runs have the number
    failed: int  # how many runs ended in an error
    deviation: float | None  # standard deviation over runs, as papers print it; None for fewer than two
    sample: Sample | None  # the mean and its interval; None if no run has the number
    paper: PrintedNumber | None  # the paper's figure


@dataclass(frozen=True)
class Table:
    """One quantity of a study: cells by method and dataset, and comparisons by dataset. ``p_values`` are those of the
    differences, adjusted by Holm for the number of differences in the table."""

    study: Study
    quantity: Quantity
    methods: tuple[str, ...]
    datasets: tuple[str, ...]
    cells: Mapping[tuple[str, str], Cell]
    comparisons: Mapping[Comparison, Mapping[str, Sample]]
    p_values: Mapping[tuple[Comparison, str], float] = field(default_factory=dict)

    @property
    def ranking(self) -> Ranking | None:
        """The ranking of the methods with a mean on every dataset of the study that most methods have; None for fewer
        than three methods or ``LEAST_DATASETS``, where no ranks differ."""
        means = {place: cell.sample.mean for place, cell in self.cells.items() if cell.sample is not None}
        have = {name: {dataset for method, dataset in means if method == name} for name in self.methods}
        common = [name for name in self.study.datasets if sum(name in each for each in have.values()) > len(have) / 2]
        values = {name: [means[name, one] for one in common] for name in self.methods if have[name] >= set(common)}
        return Ranking.of(values) if len(values) > 2 and len(common) >= LEAST_DATASETS else None


def tabulate(study: Study, records: Iterable[Record]) -> list[Table]:
    """Return a table for each quantity of a study; a run counts once, by its last record."""
    cells: dict[tuple[str, str], list[Record]] = defaultdict(list)
    for record in latest(records):
        if record.study != study.name:
            raise DataError(
                f"a record of study {record.study!r} is among those of {study.name!r}: which file is it from?"
            )
        cells[record.method, record.dataset].append(record)
    for (method, dataset), runs in cells.items():
        if len({record.setup for record in runs}) > 1:
            raise DataError(
                f"the runs of {method!r} on {dataset!r} in study {study.name!r} have different settings and so no "
                "mean: keep the records of one `setup` alone."
            )
    timed = _on_one_device(cells)
    return [_table(study, quantity, timed if quantity.timed else cells) for quantity in study.quantities]


def _on_one_device(cells: Cells) -> Cells:
    """Return, for each dataset, the runs on the device with the most runs, and the runs that failed."""
    counts: dict[str, Counter[str]] = defaultdict(Counter)
    for (_, dataset), runs in cells.items():
        counts[dataset].update(record.device for record in runs if record.device is not None)
    kept = {}
    for (method, dataset), runs in cells.items():
        most = [device for device, _ in counts[dataset].most_common(1)]
        kept[method, dataset] = [record for record in runs if record.device in (None, *most)]
    return {place: runs for place, runs in kept.items() if runs}


def _table(study: Study, quantity: Quantity, cells: Cells) -> Table:
    datasets = _ordered({dataset for _, dataset in cells}, [*study.datasets, *CATALOGUE])
    methods = _ordered({method for method, _ in cells}, [method.name for method in study.methods])
    comparisons: dict[Comparison, dict[str, Sample]] = {}
    for pair in quantity.comparisons:
        for dataset in datasets:
            both = [*cells.get((pair.one, dataset), ()), *cells.get((pair.other, dataset), ())]
            if (sample := compare(pair, both, quantity.name)) is not None:
                comparisons.setdefault(pair, {})[dataset] = sample
    shown = {place: _cell(quantity, *place, records) for place, records in cells.items()}
    tests = {
        (pair, name): p
        for pair, samples in comparisons.items()
        for name, sample in samples.items()
        if pair.compare is sub and (p := sample.p_value) is not None
    }
    return Table(study, quantity, methods, datasets, shown, comparisons, holm(tests))


def _cell(quantity: Quantity, method: str, dataset: str, records: Sequence[Record]) -> Cell:
    values = [value for record in records if (value := record.number(quantity.name)) is not None]
    return Cell(
        runs=len(values),
        failed=sum(record.error is not None for record in records),
        deviation=stdev(values) if len(values) > 1 else None,
        sample=Sample.of(list(independent_values(records, quantity.name).values())) if values else None,
        paper=None if quantity.paper is None else quantity.paper.figure(method, dataset),
    )


def _ordered(names: set[str], order: Sequence[str]) -> tuple[str, ...]:
    """Return the names in the given order, and the others sorted after them."""
    first = [name for name in dict.fromkeys(order) if name in names]
    return (*first, *sorted(names - set(first)))
