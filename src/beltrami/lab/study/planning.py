"""Studies as data: methods on datasets, over splits and seeds; and the plan of their runs."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from operator import sub
from pathlib import Path

from beltrami.config.build import check_settings
from beltrami.config.parser import override
from beltrami.config.recipe.recipes import is_file, load_recipe
from beltrami.config.spec import RunConfig
from beltrami.data import CATALOGUE
from beltrami.errors import DataError, UnknownName
from beltrami.lab.study.paper_tables import PaperTable
from beltrami.lab.study.record import Record, key_of, record_of, setup_of
from beltrami.lab.study.work import TRAIN, Outcome, Work
from beltrami.precompute import resolve_files

FIXED = ("planetoid", "ogb", "published")  # protocols that have one split, for all seeds


@dataclass(frozen=True)
class Sampling:
    """``splits`` splits of a protocol, and ``inits`` runs on each of them: split s is trained from the seeds s, s + 1,
    ..., so that more splits or seeds add runs and change none."""

    protocol: str
    splits: int
    inits: int

    def __post_init__(self) -> None:
        if self.splits < 1 or self.inits < 1:
            raise ValueError(f"a study needs `splits` and `inits` of at least 1; got {self.splits}, {self.inits}.")
        if self.protocol in FIXED and self.splits != 1:
            raise ValueError(
                f"the protocol {self.protocol!r} has one split; got `splits` {self.splits}: ask for more `inits`."
            )

    def seeds(self) -> Iterator[tuple[int, int]]:
        """Yield the split's seed and the run's seed of every run."""
        return ((s, s + i) for s in range(self.splits) for i in range(self.inits))

    def configs(self, config: RunConfig) -> list[RunConfig]:
        """Return the configurations of all runs, which differ by their seeds alone."""
        return [replace(config, seed=seed, data=replace(config.data, split_seed=s)) for s, seed in self.seeds()]


@dataclass(frozen=True)
class Method:
    """A row of a study: a recipe with changed settings."""

    name: str  # the name for `--methods`
    recipe: str  # one of `RECIPES`, or a configuration file
    settings: tuple[str, ...] = ()  # changes, as `--set` takes them
    series: str | None = None  # the curve that the method is a point of, if any
    at: float | None = None  # the point's abscissa

    def covers(self, dataset: str) -> bool:
        """Return whether the recipe has settings for the dataset."""
        try:
            load_recipe(self.recipe, dataset)
        except UnknownName:
            return False
        return True


@dataclass(frozen=True)
class Comparison:
    """Two methods by name, compared on the runs that both have by their difference, or their ratio (``truediv``)."""

    one: str
    other: str
    compare: Callable[[float, float], float] = sub


@dataclass(frozen=True)
class Quantity:
    """A number that a table of a study shows."""

    name: str  # dotted name of the number in a record
    title: str  # the name to print
    digits: int  # after the decimal point
    paper: PaperTable | None = None  # the paper's figures
    comparisons: tuple[Comparison, ...] = ()  # methods to compare by it
    timed: bool = False  # whether it is a time: on each dataset, only runs of the device with the most runs count


@dataclass(frozen=True)
class Study:
    """Methods on datasets, all on the same splits and seeds."""

    name: str  # its name on the command line
    title: str  # its question, in one line
    methods: tuple[Method, ...]  # the rows
    datasets: tuple[str, ...]  # the columns
    sampling: Sampling  # splits and seeds
    quantities: tuple[Quantity, ...]  # one table for each
    exceptions: Mapping[str, Sampling] = field(default_factory=dict)  # splits and seeds of particular datasets
    work: Work = TRAIN  # what is done with each run
    curve: str | None = None  # the meaning of the methods' `at`, if they are points of curves
    note: str = ""  # what else to say about the tables

    def method(self, name: str) -> Method:
        """Return the method of this name, or the method that a configuration file is."""
        if is_file(name):
            return Method(Path(name).stem, name)
        methods = {method.name: method for method in self.methods}
        if name not in methods:
            raise UnknownName(f"method of study {self.name!r}", name, methods)
        return methods[name]

    def sampling_of(self, dataset: str, *, splits: int | None, inits: int | None) -> Sampling:
        """Return splits and seeds on a dataset; an exception with one fixed split ignores ``splits``."""
        sampling = self.exceptions.get(dataset, self.sampling)
        if splits is None or (sampling.protocol in FIXED and self.sampling.protocol not in FIXED):
            splits = sampling.splits
        return Sampling(sampling.protocol, splits, sampling.inits if inits is None else inits)


@dataclass(frozen=True)
class PlannedRun:
    """One run of a study."""

    study: str
    method: str
    config: RunConfig

    @property
    def group(self) -> tuple[str, str]:
        """What runs have in common that differ by their seeds alone: dataset and method."""
        return self.config.dataset, self.method

    @property
    def identity(self) -> tuple[str, str]:
        return self.method, key_of(self.config)

    def record(self, outcome: Outcome | str) -> Record:
        """Return the record of the run, from its outcome or its error."""
        record = record_of(self.study, self.method, self.config)
        if isinstance(outcome, str):
            return replace(record, error=outcome)
        return replace(record, result=outcome.result, extra=outcome.extra)


def plan(
    study: Study,
    *,
    datasets: Sequence[str] = (),
    methods: Sequence[str] = (),
    splits: int | None = None,
    inits: int | None = None,
    settings: Sequence[str] = (),
) -> list[PlannedRun]:
    """Return every run of a study, dataset by dataset and method by method; by default all that have a recipe.
    ``splits`` and ``inits`` replace the study's own; ``settings`` are for all methods, as ``--set`` takes them."""
    for name in datasets:
        if name not in CATALOGUE:
            raise UnknownName("dataset", name, CATALOGUE)
    chosen = [study.method(name) for name in methods] or study.methods
    runs: list[PlannedRun] = []
    for dataset in datasets or study.datasets:
        sampling = study.sampling_of(dataset, splits=splits, inits=inits)
        for method in chosen:
            if not method.covers(dataset) and not (methods and datasets):
                continue  # a combination that was asked for is not left out but refused by its recipe
            configs = sampling.configs(load_recipe(method.recipe, dataset, protocol=sampling.protocol, seed=0))
            configs = [resolve_files(override(override(config, method.settings), settings)) for config in configs]
            check_settings(configs[0])
            runs += [PlannedRun(study.name, method.name, config) for config in configs]
    if not runs:
        raise ValueError(f"study {study.name!r} has no recipe for any of {', '.join(datasets or study.datasets)}.")
    return runs


def check_setups(runs: Iterable[PlannedRun], records: Iterable[Record]) -> None:
    """Refuse runs whose settings differ from those of the records in the same cell of a table."""
    setups = {(record.dataset, record.method): record.setup for record in records}
    for first in {run.group: run for run in runs}.values():
        if setups.get(first.group, setup_of(first.config)) != setup_of(first.config):
            raise DataError(
                f"the results file holds runs of {first.method!r} on {first.config.dataset!r} with other settings, and "
                "runs of two kinds have no mean: use the settings it was begun with, or name another folder with "
                "`--out`."
            )
