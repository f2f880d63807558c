"""Work: what a study does with each configuration."""

import time
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field, replace
from statistics import median
from typing import Any

import torch

from beltrami.config.build import build_training
from beltrami.config.spec import RunConfig
from beltrami.config.spec_graph import InputEdgesSpec, NoneSpec
from beltrami.errors import SolverError
from beltrami.lab.worker import OnEpoch
from beltrami.model import Classifier
from beltrami.result import RunResult
from beltrami.run import Problem, load_problem, run_config, run_configs
from beltrami.train import accuracy, count_parameters, predict


@dataclass(frozen=True)
class Outcome:
    """What a run found: the fields of its result, and what else was measured."""

    result: dict[str, Any] | None
    extra: dict[str, Any] = field(default_factory=dict)


class Work(ABC):
    """What is done with a configuration.

    ``batches``: whether many runs can be one program; ``exclusive``: whether other work on the machine changes what is
    measured.
    """

    batches = False
    exclusive = False

    def load_problem(self, config: RunConfig, *, device: str) -> Problem:
        """Load the problem of a configuration onto a device."""
        return load_problem(config, device=device)

    @abstractmethod
    def one(self, config: RunConfig, problem: Problem, *, on_epoch: OnEpoch) -> Outcome:
        """Make one run."""

    def many(self, configs: Sequence[RunConfig], *, device: str, on_epoch: OnEpoch) -> list[Outcome | SolverError]:
        """Make runs that differ by their seeds alone as one program; a run that fails gives its error."""
        raise NotImplementedError(f"{type(self).__name__} makes one run at a time.")


class Train(Work):
    """Train and evaluate."""

    batches = True

    def one(self, config: RunConfig, problem: Problem, *, on_epoch: OnEpoch) -> Outcome:
        return Outcome(asdict(_trained(config, problem, on_epoch)[0]))

    def many(self, configs: Sequence[RunConfig], *, device: str, on_epoch: OnEpoch) -> list[Outcome | SolverError]:
        found = run_configs(configs, device=device, callbacks=[lambda epoch: on_epoch(epoch.number)])
        return [each if isinstance(each, SolverError) else Outcome(asdict(each[0])) for each in found]


class Follow(Work):
    """Train, then measure the validation accuracy at the times of the time grid."""

    def one(self, config: RunConfig, problem: Problem, *, on_epoch: OnEpoch) -> Outcome:
        result, model = _trained(config, problem, on_epoch)
        inputs = model.prepare(problem.x, problem.edges, problem.pos)
        y, val = problem.dataset.y, problem.split.val
        times = build_training(config.train).time_grid.times(model.time)
        along = [[t, 100 * accuracy(predict(model, inputs, time=t)[val], y[val])] for t in times]
        return Outcome(asdict(result), {"along": along})


class Time(Work):
    """Train after a short warm-up, then measure the median seconds of one inference."""

    exclusive = True
    warm_up = 2
    repeats = 11

    def one(self, config: RunConfig, problem: Problem, *, on_epoch: OnEpoch) -> Outcome:
        run_config(replace(config, train=replace(config.train, epochs=self.warm_up)), problem=problem)
        result, model = _trained(config, problem, on_epoch)
        inputs, seconds = model.prepare(problem.x, problem.edges, problem.pos), []
        for _ in range(self.warm_up + self.repeats):
            start = _synchronised_clock(problem.dataset.y.device)
            predict(model, inputs, time=model.time)
            seconds.append(_synchronised_clock(problem.dataset.y.device) - start)
        return Outcome(asdict(result), {"inference_seconds": median(seconds[self.warm_up :])})


class Count(Work):
    """Build the model and count its parameters, without training."""

    def load_problem(self, config: RunConfig, *, device: str) -> Problem:
        """Load the problem with the input graph and with positions that have a shape but no values: computing either
        can take longer than training."""
        if isinstance(config.stencil, InputEdgesSpec):
            config = replace(config, stencil=replace(config.stencil, reweight=NoneSpec(), add=NoneSpec()))
        if config.position.kind in ("none", "file"):
            return load_problem(config, device=device)
        problem = load_problem(replace(config, position=NoneSpec()), device=device)
        n = problem.dataset.num_nodes
        width = getattr(config.position, "channels", n)  # ppr and heat have a coordinate for every node
        return replace(problem, pos=torch.empty(n, width, device="meta"))

    def one(self, config: RunConfig, problem: Problem, *, on_epoch: OnEpoch) -> Outcome:
        return Outcome(None, {"parameters": count_parameters(problem.model(config).parameters())})


def _trained(config: RunConfig, problem: Problem, on_epoch: OnEpoch) -> tuple[RunResult, Classifier]:
    return run_config(config, problem=problem, callbacks=[lambda epoch: on_epoch(epoch.number)])


def _synchronised_clock(device: torch.device) -> float:
    if device.type == "cuda":
        torch.cuda.synchronize(device)
    return time.perf_counter()
