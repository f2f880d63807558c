"""Searches: random configurations around a recipe, as data."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace

from beltrami.config.build import check_settings
from beltrami.config.parser import departures, override
from beltrami.config.recipe.recipes import load_recipe, search_count
from beltrami.config.spec import RunConfig
from beltrami.errors import DataError
from beltrami.lab.study.definition import FIXED, Sampling
from beltrami.lab.study.record import Record, latest
from beltrami.lab.study.run_key import key_of, setup_of
from beltrami.lab.tune.search_space import TUNED, SearchSpace, space_of
from beltrami.lab.tune.trial import Trial, TrialProgress
from beltrami.precompute import resolve_files

NAME = "tune"  # the study in the records of a search


@dataclass(frozen=True)
class Halving:
    r"""Asynchronous successive halving, with a grace period g and a half-life h in epochs.

    At the epochs :math:`g, g + h, g + 2h, \dots` a trial goes on if

    .. math:: v \ge \mathrm{median}(v_1, \dots, v_k),

    where v is its best validation accuracy so far and v_1, ..., v_k are those of the trials that reached this epoch
    before it; the first one goes on. No trial waits for another, and on average half of them are left after every
    half-life.
    """

    grace: int = 10
    half_life: int = 10

    def __post_init__(self) -> None:
        if self.grace < 1 or self.half_life < 1:
            raise ValueError(
                f"Halving needs `grace` and `half_life` of at least 1; got {self.grace}, {self.half_life}."
            )

    def milestones(self, epochs: int) -> range:
        """Return the epochs at which a trial may be stopped; the last epoch is none of them."""
        return range(self.grace, epochs, self.half_life)


@dataclass(frozen=True)
class Search:
    """Random points of a space around a configuration, each trained on the same splits.

    Point 0 is the configuration itself, so that the best point is at least as good on validation. More trials add
    points and change none.

    Args:
        base: where the search begins.
        space: the settings that may change.
        sampling: splits and seeds of every trial.
        seed: of the random points.
        halving: which trials go on.
    """

    base: RunConfig
    space: SearchSpace
    sampling: Sampling
    seed: int = 0
    halving: Halving = field(default_factory=Halving)

    @property
    def milestones(self) -> range:
        """The epochs at which trials may be stopped."""
        return self.halving.milestones(self.base.train.epochs)

    def trial(self, number: int) -> Trial:
        settings = self.space.settings(number, seed=self.seed) if number else {}
        config = override(self.base, [f"{name}={value}" for name, value in settings.items()], skip_inapplicable=True)
        return Trial(number, config, self.sampling)

    def record(
        self, number: int, progress: TrialProgress, *, stopped: bool = False, error: str | None = None
    ) -> Record:
        """Return the record of a trial."""
        config = self.trial(number).config
        return Record(
            study=NAME,
            method=str(number),
            dataset=config.dataset,
            split_seed=0,
            seed=self.seed,
            key=key_of(config),
            setup=setup_of(config),
            settings=departures(config),
            extra={
                "validation": progress.validation,
                "by_epoch": list(progress.by_epoch),
                "stopped": stopped,
                "seconds": round(progress.seconds, 3),
                "runs": [list(each) for each in self.sampling.seeds()],
            },
            error=error,
        )

    def pending(self, count: int, records: Iterable[Record]) -> list[int]:
        """Return the numbers below ``count`` of trials without a result; refuse records of another search."""
        runs = [list(each) for each in self.sampling.seeds()]
        done = set()
        for record in latest(records):
            number = int(record.method) if record.study == NAME and record.method.isdecimal() else None
            if number is None or key_of(self.trial(number).config) != record.key or record.extra.get("runs") != runs:
                raise DataError(
                    f"the results file holds the trial {record.method!r} of another search: go on with the dataset, "
                    "recipe, protocol, splits, seed and settings that it was begun with, or name another folder with "
                    "`--out`."
                )
            if record.error is None:
                done.add(number)
        return [number for number in range(count) if number not in done]

    def best(self, records: Sequence[Record]) -> RunConfig | None:
        """Return the configuration of the highest validation accuracy, as a recipe that says how many were tried;
        None if no trial has a result."""
        ranked = ranking(records)
        if not ranked:
            return None
        config = self.trial(int(ranked[0].method)).config
        name = config.recipe.removesuffix(TUNED) + TUNED
        return replace(config, recipe=name, tried=(search_count(self.base) or 0) + len(latest(records)))


def ranking(records: Iterable[Record]) -> list[Record]:
    """Return the trials without an error, the best first; of equal ones the lower number first."""
    scored = [record for record in latest(records) if record.error is None and record.number("validation") is not None]
    return sorted(scored, key=lambda record: (-(record.number("validation") or 0.0), int(record.method)))


def search_for(
    dataset: str,
    recipe: str,
    *,
    protocol: str | None = None,
    splits: int = 1,
    settings: Sequence[str] = (),
    seed: int = 0,
) -> Search:
    """Return the search around a recipe on a dataset.

    Args:
        dataset: its name.
        recipe: its name, or a configuration file.
        protocol: of the splits; the recipe's own by default.
        splits: how many each trial is trained on; if the protocol has one split, how many initial weights.
        settings: changes of the recipe for all trials, as ``--set`` takes them; these settings are not searched.
        seed: of the random points.
    """
    base = resolve_files(override(load_recipe(recipe, dataset, protocol=protocol), settings))
    check_settings(base)
    held = {setting.partition("=")[0].strip() for setting in settings}
    fixed = base.data.protocol in FIXED
    sampling = Sampling(base.data.protocol, 1 if fixed else splits, splits if fixed else 1)
    return Search(base, space_of(base).without(held), sampling, seed)
