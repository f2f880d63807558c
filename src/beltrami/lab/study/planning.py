"""Studies as data: methods on datasets, over splits and seeds; and the plan of their runs."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from operator import sub
from pathlib import Path

from beltrami.config.build import check_settings
from beltrami.config.parser import override
from beltrami.config.recipe.aids import ALL, aids_of
from beltrami.config.recipe.recipes import is_file, load_recipe
from beltrami.config.spec import RunConfig
from beltrami.data import CATALOGUE
from beltrami.errors import DataError, UnknownName
from beltrami.lab.study.paper_tables import PaperTable
from beltrami.lab.study.record import Record, key_of, record_of, setup_of
from beltrami.lab.study.work import TRAIN, Outcome, Work
from beltrami.precompute import resolve_files

FIXED = ("planetoid", "ogb", "published")  # protocols that have one split for all seeds, or may have
SEEDS = ("seed", "data.split_seed")


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
    """A row of a study: a recipe, with training aids and changed settings."""

    name: str  # the name for `--methods`
    recipe: str  # one of `RECIPES`, or a configuration file
    settings: tuple[str, ...] = ()  # changes, as `--set` takes them
    series: str | None = None  # the curve that the method is a point of, if any
    at: float | None = None  # the point's abscissa
    aids: tuple[str, ...] | None = None  # the training aids; the recipe's own by default
    aids_of: str = "blend"  # the recipe whose values the aids have
    splits: int | None = None  # how many splits the row has, if fewer than the study

    def load(self, dataset: str, *, protocol: str | None = None, aids: Sequence[str] | None = None) -> RunConfig:
        """Return the configuration of the row, before its settings; ``aids`` replace its own."""
        given = self.aids if aids is None else aids
        return load_recipe(self.recipe, dataset, protocol=protocol, seed=0, aids=given, aids_of=self.aids_of)

    def covers(self, dataset: str, protocol: str | None = None) -> bool:
        """Return whether the recipe has settings for the dataset and the row's aids are aids of ``blend`` there. A row
        with some of the aids differs from those with none and with all."""
        try:
            config = self.load(dataset, protocol=protocol)
        except UnknownName:
            return False
        if self.aids is None:
            return True
        count, most = len(aids_of(config)), len(aids_of(load_recipe("blend", dataset, protocol=protocol)))
        return count > 0 and (self.aids == ALL or count < most)


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

    def sampling_of(
        self, dataset: str, *, splits: int | None = None, inits: int | None = None, method: Method | None = None
    ) -> Sampling:
        """Return splits and seeds on a dataset; an exception with one fixed split ignores ``splits``."""
        sampling = self.exceptions.get(dataset, self.sampling)
        splits = method.splits if splits is None and method is not None else splits
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
    aids: Sequence[str] | None = None,
) -> list[PlannedRun]:
    """Return every run of a study, dataset by dataset and method by method; by default all that have a recipe.
    ``splits`` and ``inits`` replace the study's own; ``settings`` are for all methods, as ``--set`` takes them, and so
    are training ``aids``."""
    for name in datasets:
        if name not in CATALOGUE:
            raise UnknownName("dataset", name, CATALOGUE)
    for setting in settings:
        if setting.partition("=")[0].strip() in SEEDS:
            raise ValueError(
                f"`--set {setting}`: the seeds of a study are those of its splits; set `--splits`, `--inits`."
            )
    chosen = [study.method(name) for name in methods] or study.methods
    runs: list[PlannedRun] = []
    for dataset in datasets or study.datasets:
        for method in chosen:
            sampling = study.sampling_of(dataset, splits=splits, inits=inits, method=method)
            if not method.covers(dataset, sampling.protocol):
                if not (methods and datasets):
                    continue  # a combination that was asked for is not left out but refused
                _refuse(method, dataset, sampling.protocol)
            config = override(method.load(dataset, protocol=sampling.protocol, aids=aids), method.settings)
            config = resolve_files(override(config, settings))
            check_settings(config)
            runs += [PlannedRun(study.name, method.name, each) for each in sampling.configs(config)]
    if not runs:
        raise ValueError(f"study {study.name!r} has no recipe for any of {', '.join(datasets or study.datasets)}.")
    return runs


def _refuse(method: Method, dataset: str, protocol: str) -> None:
    """Refuse a row on a dataset that it does not cover."""
    method.load(dataset, protocol=protocol)  # says what the recipe lacks
    own = ", ".join(aids_of(load_recipe("blend", dataset, protocol=protocol))) or "none"
    raise ValueError(
        f"the method {method.name!r} equals another one on {dataset!r}, where the training aids of `blend` are: {own}. "
        "Leave it out."
    )


def missing_cells(study: Study, records: Iterable[Record]) -> list[tuple[str, str]]:
    """Return the cells of a study, method and dataset, that have a recipe and no run."""
    found = {(record.method, record.dataset) for record in records if record.error is None}
    cells = [(method, dataset) for dataset in study.datasets for method in study.methods]
    return [
        (method.name, dataset)
        for method, dataset in cells
        if (method.name, dataset) not in found and method.covers(dataset, study.sampling_of(dataset).protocol)
    ]


def changed_cells(runs: Iterable[PlannedRun], records: Iterable[Record]) -> list[tuple[str, str]]:
    """Return the cells, dataset and method, whose runs have other settings than the records of the same cell."""
    setups = {(record.dataset, record.method): record.setup for record in records}
    firsts = {run.group: run for run in runs}.values()
    found = [(first.group, setup_of(first.config)) for first in firsts]
    return [group for group, setup in found if setups.get(group, setup) != setup]


def check_setups(runs: Iterable[PlannedRun], records: Iterable[Record]) -> None:
    """Refuse runs whose settings differ from those of the records in the same cell of a table."""
    for dataset, method in changed_cells(runs, records):
        raise DataError(
            f"the results file holds runs of {method!r} on {dataset!r} with other settings, and runs of two kinds have "
            "no mean: use the settings it was begun with, or name another folder with `--out`."
        )
