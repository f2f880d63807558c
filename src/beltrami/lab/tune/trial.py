"""Trial: one configuration of a search, trained on a few splits and judged by validation alone."""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from statistics import mean

import torch
from torch import Tensor

from beltrami.config.build import build_training
from beltrami.config.spec import RunConfig
from beltrami.data import Split
from beltrami.lab.study.sampling import Sampling
from beltrami.lab.tune.lockstep import Run, in_step
from beltrami.run import Problem, load_problem, on_split
from beltrami.train import Epoch, Fit, ValidationScore, fit, seeded

HIDDEN = -1  # the class of nodes whose label no trial may see


@dataclass(frozen=True)
class Trial:
    """A configuration to be tried.

    Args:
        number: which point of the search it is.
        config: its settings.
        draw: the splits and seeds that it is judged on.
    """

    number: int
    config: RunConfig
    draw: Sampling

    def configs(self) -> list[RunConfig]:
        """Its runs: they differ by their seeds alone."""
        data = self.config.data
        return [
            replace(self.config, seed=seed, data=replace(data, split_seed=split)) for split, seed in self.draw.seeds()
        ]


@dataclass(frozen=True)
class Progress:
    """How far a trial is.

    Args:
        by_epoch: after each epoch the best validation accuracy so far in per cent, a mean over the runs.
        seconds: since it began.
        final: the same at its end, over all times of the flow; None while it goes on.
    """

    by_epoch: tuple[float, ...] = ()
    seconds: float = 0.0
    final: float | None = None

    @property
    def epochs(self) -> int:
        return len(self.by_epoch)

    @property
    def validation(self) -> float | None:
        """The best so far; None before the first epoch."""
        return self.final if self.final is not None else self.by_epoch[-1] if self.by_epoch else None


def attempt(trial: Trial, report: Callable[[Progress], None], *, device: str = "cpu") -> None:
    """Train the runs of a trial side by side, and report after each epoch and at the end.

    Whatever ``report`` raises ends the trial there and then. Labels of test nodes are hidden before training begins.
    """
    start = time.perf_counter()
    configs = trial.configs()
    problem = load_problem(configs[0], device=device)
    by_epoch: list[float] = []

    def tell(readings: Sequence[ValidationScore]) -> None:
        by_epoch.append(_per_cent(readings))
        report(Progress(tuple(by_epoch), time.perf_counter() - start))

    fits = in_step([_run(config, on_split(problem, config)) for config in configs], tell)
    report(Progress(tuple(by_epoch), time.perf_counter() - start, _per_cent([each.best for each in fits])))


def without_test_labels(y: Tensor, split: Split) -> Tensor:
    """The labels (n,) of training and validation nodes; ``HIDDEN`` at all others."""
    return torch.where(split.train | split.val, y, HIDDEN)


def _run(config: RunConfig, problem: Problem) -> Run:
    with seeded(config.seed):
        model = problem.model(config)
    inputs = model.prepare(problem.x, problem.edges, problem.pos)
    y, training = without_test_labels(problem.dataset.y, problem.split), build_training(config.train)

    def run(on_epoch: Callable[[Epoch], None]) -> Fit:
        return fit(model, inputs, y, problem.split, training, callbacks=[on_epoch])

    return run


def _per_cent(readings: Sequence[ValidationScore]) -> float:
    return round(100 * mean(reading.accuracy for reading in readings), 4)
