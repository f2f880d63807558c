"""Trials: one configuration of a search, trained on a few splits and scored by validation alone."""

import time
from collections.abc import Generator, Sequence
from dataclasses import dataclass
from statistics import mean

import torch
from torch import Tensor

from beltrami.config.build import build_training
from beltrami.config.spec import RunConfig
from beltrami.data import Split
from beltrami.run import Problem, load_problem, on_split
from beltrami.train import Fitting, ValidationScore, seeded, start_fit

HIDDEN = -1  # the class of nodes whose label no trial may see


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


def train_trial(configs: Sequence[RunConfig], *, device: str = "cpu") -> Generator[TrialProgress, None, None]:
    """Train the runs of a trial in turns of one epoch, and yield its progress after each turn and at the end.

    Labels of test nodes are hidden before training begins.
    """
    start = time.perf_counter()
    problem = load_problem(configs[0], device=device)
    fits = [_start(config, on_split(problem, config)) for config in configs]
    best: dict[int, ValidationScore] = {}
    ended: set[int] = set()
    by_epoch: list[float] = []
    try:
        while True:
            for run, fit in enumerate(fits):
                epoch = None if run in ended else next(fit, None)
                if epoch is None:
                    ended.add(run)
                best[run] = fit.result.best if epoch is None else epoch.best[0]
            if len(ended) == len(fits):
                break
            by_epoch.append(_per_cent(list(best.values())))
            yield TrialProgress(tuple(by_epoch), time.perf_counter() - start)
        yield TrialProgress(tuple(by_epoch), time.perf_counter() - start, _per_cent(list(best.values())))
    finally:
        for fit in fits:
            fit.stop()


def without_test_labels(y: Tensor, split: Split) -> Tensor:
    """Return the labels (n,) of training and validation nodes, and ``HIDDEN`` at all others."""
    return torch.where(split.train | split.val, y, HIDDEN)


def _start(config: RunConfig, problem: Problem) -> Fitting:
    with seeded(config.seed):
        model = problem.model(config)
    inputs = model.prepare(problem.x, problem.edges, problem.pos)
    y = without_test_labels(problem.dataset.y, problem.split)
    return start_fit(model, inputs, y, problem.split, build_training(config.train))


def _per_cent(scores: Sequence[ValidationScore]) -> float:
    return round(100 * mean(score.accuracy for score in scores), 4)
