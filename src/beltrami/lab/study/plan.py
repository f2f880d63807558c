"""Plan: the runs of a study, one after the other."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import groupby

from beltrami.config.build import check_settings
from beltrami.config.files import resolve_files
from beltrami.config.parse import departures, override
from beltrami.config.recipe.catalogue import search_count
from beltrami.config.spec import RunConfig
from beltrami.data import CATALOGUE
from beltrami.errors import DataError, UnknownName
from beltrami.lab.study.method import Method
from beltrami.lab.study.record import Record
from beltrami.lab.study.run_key import key_of, setup_of
from beltrami.lab.study.study import Study
from beltrami.lab.study.work import Done


@dataclass(frozen=True)
class PlannedRun:
    """One run of a study."""

    study: str
    row: str
    config: RunConfig

    @property
    def group(self) -> tuple[str, str]:
        """What runs share that differ by their seeds alone."""
        return self.config.dataset, self.row

    @property
    def identity(self) -> tuple[str, str]:
        return self.row, key_of(self.config)

    def line(self, outcome: Done | str) -> Record:
        """What the run left: what it found, or its error."""
        done = outcome if isinstance(outcome, Done) else Done(None)
        config = self.config
        return Record(
            study=self.study,
            row=self.row,
            dataset=config.dataset,
            split_seed=config.data.split_seed,
            seed=config.seed,
            key=key_of(config),
            setup=setup_of(config),
            settings=departures(config),
            tried=search_count(config),
            result=done.result,
            also=done.also,
            error=outcome if isinstance(outcome, str) else None,
        )


def plan(
    study: Study,
    *,
    datasets: Sequence[str] = (),
    methods: Sequence[str] = (),
    splits: int | None = None,
    inits: int | None = None,
    settings: Sequence[str] = (),
) -> list[PlannedRun]:
    """Every run of a study, dataset by dataset and row by row.

    Args:
        study: the study.
        datasets: its columns; its own by default.
        methods: its rows; by default those whose recipe is known. A row that was not asked for is left out of datasets
            that its recipe has no settings for.
        splits: how many splits, in place of the study's own number.
        inits: how many runs a split.
        settings: further settings for all rows, as ``--set`` takes them.
    """
    for name in datasets:
        if name not in CATALOGUE:
            raise UnknownName("dataset", name, CATALOGUE)
    rows = [study.row(name) for name in methods] or [row for row in study.rows if row.known]
    tasks: list[PlannedRun] = []
    for dataset in datasets or study.datasets:
        draw = study.draw_of(dataset, splits=splits, inits=inits)
        for row in rows:
            if row.knows(dataset) or (methods and datasets):  # what was asked for is refused, not left out
                seeds = list(draw.seeds())
                configs = [_config(row, dataset, draw.protocol, *each, settings) for each in seeds]
                check_settings(configs[0])
                tasks += [PlannedRun(study.name, row.name, config) for config in configs]
    if not tasks:
        raise ValueError(f"study {study.name!r} has no recipe for any of {', '.join(datasets or study.datasets)}.")
    return tasks


def groups(tasks: Iterable[PlannedRun]) -> list[list[PlannedRun]]:
    """The tasks that differ by their seeds alone, together."""
    return [list(group) for _, group in groupby(tasks, key=lambda task: task.group)]


def check_setups(tasks: Iterable[PlannedRun], lines: Iterable[Record]) -> None:
    """Refuse to add to a table's cell runs of other settings than those it holds."""
    held = {(line.dataset, line.row): line.setup for line in lines}
    for group in groups(tasks):
        first = group[0]
        if held.get(first.group, setup_of(first.config)) != setup_of(first.config):
            raise DataError(
                f"the results file holds runs of {first.row!r} on {first.config.dataset!r} with other settings, and "
                "runs of two kinds have no mean: use the settings it was begun with, or name another folder with "
                "`--out`."
            )


def _config(row: Method, dataset: str, protocol: str, split_seed: int, seed: int, settings: Sequence[str]) -> RunConfig:
    return resolve_files(override(row.config(dataset, protocol=protocol, split_seed=split_seed, seed=seed), settings))
