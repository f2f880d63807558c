"""Work: what a study does with a configuration."""

import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from statistics import median
from typing import Any

import torch

from beltrami.config.build import build_training
from beltrami.config.spec import RunConfig
from beltrami.config.spec_graph import InputEdgesSpec, NoneSpec
from beltrami.errors import SolverError
from beltrami.run import Problem, load_problem, run_config, run_configs
from beltrami.train import accuracy, count_parameters, predict

OnEpoch = Callable[[int, int], None]
"""Told the epoch's number and how many runs go on."""


@dataclass(frozen=True)
class Done:
    """What a run found: the fields of its result, and what else was measured."""

    result: Mapping[str, Any] | None
    also: Mapping[str, Any] = field(default_factory=dict)


class Work(ABC):
    """What is done with a configuration on its problem.

    ``batches``: whether many can be done as one program; ``solitary``: whether others beside it would change what it
    finds.
    """

    batches = False
    solitary = False

    def load_problem(self, config: RunConfig, *, device: str) -> Problem:
        """The problem of a configuration, on a device."""
        return load_problem(config, device=device)

    @abstractmethod
    def one(self, config: RunConfig, problem: Problem, *, on_epoch: OnEpoch) -> Done:
        """Do one run."""

    def many(self, configs: Sequence[RunConfig], *, device: str, on_epoch: OnEpoch) -> list[Done | SolverError]:
        """Do runs that differ by their seeds alone as one program; a run that fails gives its error."""
        raise NotImplementedError(f"{type(self).__name__} is done one run at a time.")


class Train(Work):
    """Train and judge, every choice by validation."""

    batches = True

    def one(self, config: RunConfig, problem: Problem, *, on_epoch: OnEpoch) -> Done:
        result, _ = run_config(config, problem=problem, on_epoch=lambda epoch: on_epoch(epoch.number, 1))
        return Done(asdict(result))

    def many(self, configs: Sequence[RunConfig], *, device: str, on_epoch: OnEpoch) -> list[Done | SolverError]:
        found = run_configs(configs, device=device, on_epoch=on_epoch)
        return [each if isinstance(each, SolverError) else Done(asdict(each[0])) for each in found]


class Follow(Work):
    """Train, then read the validation accuracy along the flow, at the times of the horizon."""

    def one(self, config: RunConfig, problem: Problem, *, on_epoch: OnEpoch) -> Done:
        result, model = run_config(config, problem=problem, on_epoch=lambda epoch: on_epoch(epoch.number, 1))
        inputs = model.prepare(problem.x, problem.edges, problem.pos)
        y, val = problem.dataset.y, problem.split.val
        times = build_training(config.train).time_grid.times(model.time)
        along = [[t, 100 * accuracy(predict(model, inputs, time=t)[val], y[val])] for t in times]
        return Done(asdict(result), {"along": along})


class Time(Work):
    """Train, with the first epochs done once before the clock starts; then the seconds of one inference, a median."""

    solitary = True
    warm_up = 2
    repeats = 11

    def one(self, config: RunConfig, problem: Problem, *, on_epoch: OnEpoch) -> Done:
        run_config(replace(config, train=replace(config.train, epochs=self.warm_up)), problem=problem)
        result, model = run_config(config, problem=problem, on_epoch=lambda epoch: on_epoch(epoch.number, 1))
        inputs = model.prepare(problem.x, problem.edges, problem.pos)
        taken = [
            _seconds(lambda: predict(model, inputs, time=model.time), problem.dataset.y.device)
            for _ in range(self.warm_up + self.repeats)
        ]
        return Done(asdict(result), {"inference_seconds": median(taken[self.warm_up :])})


class Count(Work):
    """Build the model and count its parameters; nothing is trained, and of positions only their width is known."""

    def load_problem(self, config: RunConfig, *, device: str) -> Problem:
        """The problem with positions that are a shape and hold nothing, and the graph as it is: to find positions, or
        what features say of the graph, can take longer than to train."""
        if isinstance(config.stencil, InputEdgesSpec):
            config = replace(config, stencil=replace(config.stencil, reweight=NoneSpec(), add=NoneSpec()))
        if config.position.kind in ("none", "file"):
            return load_problem(config, device=device)
        problem = load_problem(replace(config, position=NoneSpec()), device=device)
        n = problem.dataset.num_nodes
        width = getattr(config.position, "channels", n)  # ppr and heat have a coordinate for every node
        return replace(problem, pos=torch.empty(n, width, device="meta"))

    def one(self, config: RunConfig, problem: Problem, *, on_epoch: OnEpoch) -> Done:
        return Done(None, {"parameters": count_parameters(problem.model(config).parameters())})


def _seconds(work: Callable[[], object], device: torch.device) -> float:
    if device.type == "cuda":
        torch.cuda.synchronize(device)
    start = time.perf_counter()
    work()
    if device.type == "cuda":
        torch.cuda.synchronize(device)
    return time.perf_counter() - start
