"""Searches: random configurations around a recipe, as data."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from beltrami.arguments import Seed, checked
from beltrami.config.build import check_settings
from beltrami.config.parser import override
from beltrami.config.recipe.recipes import load_recipe, search_count
from beltrami.config.spec import RunConfig
from beltrami.errors import DataError
from beltrami.lab.study.planning import FIXED, Sampling
from beltrami.lab.study.record import Record, key_of, latest, record_of
from beltrami.lab.tune.search_space import TUNED, Space, draw, space_of
from beltrami.precompute import resolve_files

NAME = "tune"  # the study in the records of a search
GRACE, HALF_LIFE = 10, 10  # epochs, as in the paper


@dataclass(frozen=True)
class TrialProgress:
    """How far a trial is."""

    by_epoch: tuple[float, ...] = ()  # the best validation accuracy in per cent after each epoch, a mean over runs
    seconds: float = 0.0  # since it began
    final: float | None = None  # the accuracy at its end, over all times of the flow; None before

    @property
    def epochs(self) -> int:
        return len(self.by_epoch)

    @property
    def validation(self) -> float | None:
        """The best accuracy so far; None before the first epoch."""
        return self.final if self.final is not None else self.by_epoch[-1] if self.by_epoch else None


@dataclass(frozen=True)
class Search:
    """Random points of a space around a configuration, each trained on the same splits. Point 0 is the configuration
    itself, so that the best point is at least as good on validation. More trials add points and change none."""

    base: RunConfig  # where the search begins
    space: Space  # the settings that may change
    sampling: Sampling  # splits and seeds of every trial
    seed: int = 0  # of the random points

    @property
    def milestones(self) -> range:
        """The epochs at which trials may be stopped; the last epoch is none of them."""
        return range(GRACE, self.base.train.epochs, HALF_LIFE)

    def config(self, number: int) -> RunConfig:
        """Return the configuration of a trial."""
        settings = draw(self.space, number, seed=self.seed) if number else {}
        return override(self.base, [f"{name}={value}" for name, value in settings.items()], skip_inapplicable=True)

    def record(
        self, number: int, progress: TrialProgress, *, stopped: bool = False, error: str | None = None
    ) -> Record:
        """Return the record of a trial."""
        extra = {
            "validation": progress.validation,
            "by_epoch": list(progress.by_epoch),
            "stopped": stopped,
            "seconds": round(progress.seconds, 3),
            "runs": [list(each) for each in self.sampling.seeds()],
        }
        record = record_of(NAME, str(number), self.config(number))
        return replace(record, split_seed=0, seed=self.seed, tried=None, extra=extra, error=error)

    def pending(self, count: int, records: Iterable[Record]) -> list[int]:
        """Return the numbers below ``count`` of trials without a result; refuse records of another search."""
        runs = [list(each) for each in self.sampling.seeds()]
        done = set()
        for record in latest(records):
            number = int(record.method) if record.study == NAME and record.method.isdecimal() else None
            if number is None or key_of(self.config(number)) != record.key or record.extra.get("runs") != runs:
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
        if not (ranked := ranking(records)):
            return None
        config = self.config(int(ranked[0].method))
        name = config.recipe.removesuffix(TUNED) + TUNED
        return replace(config, recipe=name, tried=(search_count(self.base) or 0) + len(latest(records)))


def ranking(records: Iterable[Record]) -> list[Record]:
    """Return the trials without an error, the best first; of equal ones the lower number first."""
    scored = [record for record in latest(records) if record.error is None and record.number("validation") is not None]
    return sorted(scored, key=lambda record: (-(record.number("validation") or 0.0), int(record.method)))


@checked
def search_for(
    dataset: str, recipe: str, *, protocol: str | None = None, splits: int, settings: Sequence[str] = (), seed: Seed = 0
) -> Search:
    """Return the search around a recipe, a name or a configuration file, on a dataset. Each trial is trained on
    ``splits`` splits, or from as many initial weights if the protocol has one split. ``settings`` change the recipe for
    all trials, as ``--set`` takes them, and are not searched."""
    base = resolve_files(override(load_recipe(recipe, dataset, protocol=protocol, seed=0), settings))
    check_settings(base)
    held = {setting.partition("=")[0].strip() for setting in settings}
    space = {name: drawn for name, drawn in space_of(base).items() if name not in held}
    fixed = base.data.protocol in FIXED
    sampling = Sampling(base.data.protocol, 1 if fixed else splits, splits if fixed else 1)
    return Search(base, space, sampling, seed)
