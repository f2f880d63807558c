"""Search: a random search over the settings of a recipe, as data."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace

from beltrami.config.build import check_settings
from beltrami.config.files import resolve_files
from beltrami.config.parse import departures, override
from beltrami.config.recipe.catalogue import load_recipe, search_count
from beltrami.config.spec import RunConfig
from beltrami.errors import DataError
from beltrami.lab.study.record import Record, latest
from beltrami.lab.study.run_key import key_of, setup_of
from beltrami.lab.study.sampling import FIXED, Sampling
from beltrami.lab.tune.halving import Halving
from beltrami.lab.tune.search_space import TUNED, SearchSpace, space_of
from beltrami.lab.tune.trial import Progress, Trial

NAME = "tune"  # the study that the lines of a search belong to


@dataclass(frozen=True)
class Search:
    """Points of a space around a configuration, each judged on the same splits.

    Point 0 is the configuration as it stands, so that what is found is no worse than it on validation. More trials add
    points and change none.

    Args:
        base: where the search begins.
        space: the settings that may change.
        draw: splits and seeds of every trial.
        seed: of the random points.
        halving: who goes on.
    """

    base: RunConfig
    space: SearchSpace
    draw: Sampling
    seed: int = 0
    halving: Halving = field(default_factory=Halving)

    def trial(self, number: int) -> Trial:
        settings = self.space.settings(number, seed=self.seed) if number else {}
        config = override(self.base, [f"{name}={value}" for name, value in settings.items()], skip_inapplicable=True)
        return Trial(number, config, self.draw)

    def line(self, number: int, progress: Progress, *, stopped: bool = False, error: str | None = None) -> Record:
        """What a trial left behind."""
        config = self.trial(number).config
        return Record(
            study=NAME,
            row=str(number),
            dataset=config.dataset,
            split_seed=0,
            seed=self.seed,
            key=key_of(config),
            setup=setup_of(config),
            settings=departures(config),
            also={
                "validation": progress.validation,
                "by_epoch": list(progress.by_epoch),
                "stopped": stopped,
                "seconds": round(progress.seconds, 3),
                "runs": [list(each) for each in self.draw.seeds()],
            },
            error=error,
        )

    def pending(self, count: int, lines: Iterable[Record]) -> list[int]:
        """Of the first ``count`` trials those without a result; a failed one is tried again.

        Lines of another search are refused: there is no best among trials that were judged differently.
        """
        runs = [list(each) for each in self.draw.seeds()]
        done = set()
        for line in latest(lines):
            number = int(line.row) if line.study == NAME and line.row.isdecimal() else None
            if number is None or key_of(self.trial(number).config) != line.key or line.also.get("runs") != runs:
                raise DataError(
                    f"the results file holds the trial {line.row!r} of another search: go on with the dataset, recipe, "
                    "protocol, splits, seed and settings that it was begun with, or name another folder with `--out`."
                )
            if line.error is None:
                done.add(number)
        return [number for number in range(count) if number not in done]

    def best(self, lines: Sequence[Record]) -> RunConfig | None:
        """The configuration of the highest validation accuracy as a recipe that says how many were tried; None where
        no trial has any."""
        ranked = ranking(lines)
        if not ranked:
            return None
        config = self.trial(int(ranked[0].row)).config
        name = config.recipe.removesuffix(TUNED) + TUNED
        return replace(config, recipe=name, tried=(search_count(self.base) or 0) + len(latest(lines)))


def ranking(lines: Iterable[Record]) -> list[Record]:
    """The trials without an error, the best first; of equals the one of lower number."""
    judged = [line for line in latest(lines) if line.error is None and line.number("validation") is not None]
    return sorted(judged, key=lambda line: (-(line.number("validation") or 0.0), int(line.row)))


def search_for(
    dataset: str,
    name: str,
    *,
    protocol: str | None = None,
    splits: int = 1,
    settings: Sequence[str] = (),
    seed: int = 0,
) -> Search:
    """The search around a recipe on a dataset.

    Args:
        dataset: its name.
        name: the recipe's, or a configuration file.
        protocol: the split's; the recipe's own by default.
        splits: how many a trial is judged on; where the protocol has one split, how many initial weights.
        settings: departures from the recipe for all trials, as ``--set`` takes them; they are not searched.
        seed: of the random points.
    """
    base = resolve_files(override(load_recipe(name, dataset, protocol=protocol), settings))
    check_settings(base)
    held = {setting.partition("=")[0].strip() for setting in settings}
    fixed = base.data.protocol in FIXED
    draw = Sampling(base.data.protocol, 1 if fixed else splits, splits if fixed else 1)
    return Search(base, space_of(base).without(held), draw, seed)
