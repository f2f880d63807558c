"""Plans: the runs of a study, before they are made."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from beltrami.config.build import check_settings
from beltrami.config.parser import departures, override
from beltrami.config.recipe.recipes import search_count
from beltrami.config.spec import RunConfig
from beltrami.data import CATALOGUE
from beltrami.errors import DataError, UnknownName
from beltrami.lab.study.definition import Study
from beltrami.lab.study.record import Record
from beltrami.lab.study.run_key import key_of, setup_of
from beltrami.lab.study.work import Outcome
from beltrami.precompute import resolve_files


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
        found = outcome if isinstance(outcome, Outcome) else Outcome(None)
        config = self.config
        return Record(
            study=self.study,
            method=self.method,
            dataset=config.dataset,
            split_seed=config.data.split_seed,
            seed=config.seed,
            key=key_of(config),
            setup=setup_of(config),
            settings=departures(config),
            tried=search_count(config),
            result=found.result,
            extra=found.extra,
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
    """Return every run of a study, dataset by dataset and method by method.

    Args:
        study: the study.
        datasets: names of datasets; the study's own by default.
        methods: names of methods; by default those whose recipe exists, on the datasets that it has settings for.
        splits: number of splits in place of the study's own.
        inits: number of runs on each split.
        settings: further settings for all methods, as ``--set`` takes them.
    """
    for name in datasets:
        if name not in CATALOGUE:
            raise UnknownName("dataset", name, CATALOGUE)
    chosen = [study.method(name) for name in methods] or [method for method in study.methods if method.has_recipe]
    runs: list[PlannedRun] = []
    for dataset in datasets or study.datasets:
        sampling = study.sampling_of(dataset, splits=splits, inits=inits)
        for method in chosen:
            if not method.covers(dataset) and not (methods and datasets):
                continue  # a combination that was asked for is not left out but refused by its recipe
            configs = [
                method.config(dataset, protocol=sampling.protocol, split_seed=split_seed, seed=seed)
                for split_seed, seed in sampling.seeds()
            ]
            configs = [resolve_files(override(config, settings)) for config in configs]
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
