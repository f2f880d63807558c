"""Work: what a study does with each configuration."""

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any

import torch

from beltrami.config.build import build_training
from beltrami.config.spec import RunConfig
from beltrami.config.spec_graph import InputEdgesSpec, NoneSpec
from beltrami.errors import SolverError
from beltrami.lab.bench.measure import Timer
from beltrami.lab.executor import OnEpoch
from beltrami.model import Classifier
from beltrami.result import RunResult
from beltrami.run import Problem, load_problem, run_config, run_configs
from beltrami.train import count_parameters, predict

WARM_UP, REPEATS = 2, 11  # epochs of training before the timed one; timed inferences


@dataclass(frozen=True)
class Outcome:
    """What a run found: the fields of its result, and what else was measured."""

    result: dict[str, Any] | None
    extra: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Work:
    """What is done with each configuration of a study."""

    one: Callable[[RunConfig, Problem, OnEpoch], Outcome]  # makes one run
    many: Callable[[Sequence[RunConfig], str, OnEpoch], list[Outcome | SolverError]] | None = None
    """Makes runs that differ by their seeds alone as one program on a device, if possible; a run that fails gives its
    error."""
    load: Callable[..., Problem] = load_problem
    exclusive: bool = False  # whether other work on the machine changes what is measured


def _trained(config: RunConfig, problem: Problem, on_epoch: OnEpoch) -> tuple[RunResult, Classifier]:
    return run_config(config, problem=problem, callbacks=[lambda epoch: on_epoch(epoch.number)])


def _train(config: RunConfig, problem: Problem, on_epoch: OnEpoch) -> Outcome:
    return Outcome(asdict(_trained(config, problem, on_epoch)[0]))


def _train_many(configs: Sequence[RunConfig], device: str, on_epoch: OnEpoch) -> list[Outcome | SolverError]:
    found = run_configs(configs, device=device, callbacks=[lambda epoch: on_epoch(epoch.number)])
    return [each if isinstance(each, SolverError) else Outcome(asdict(each[0])) for each in found]


def _follow(config: RunConfig, problem: Problem, on_epoch: OnEpoch) -> Outcome:
    result, model = _trained(config, problem, on_epoch)
    inputs = model.prepare(problem.x, problem.edges, pos=problem.pos)
    y, val, task = problem.dataset.y, problem.split.val, problem.task
    times = build_training(config.train).time_grid.times(model.time)
    along = [[t, 100 * float(task.metric(predict(model, inputs, time=t)[val], y[val]))] for t in times]
    return Outcome(asdict(result), {"along": along})


def _time(config: RunConfig, problem: Problem, on_epoch: OnEpoch) -> Outcome:
    run_config(replace(config, train=replace(config.train, epochs=WARM_UP)), problem=problem)
    result, model = _trained(config, problem, on_epoch)
    inputs = model.prepare(problem.x, problem.edges, pos=problem.pos)
    timer = Timer(str(problem.dataset.y.device), seconds=0.0, rounds=REPEATS)
    taken = timer.compare({"inference": lambda: predict(model, inputs, time=model.time)})
    return Outcome(asdict(result), {"inference_seconds": taken["inference"]})


def _load_shapes(config: RunConfig, *, device: str) -> Problem:
    """Load a problem with the input graph and with positions that have a shape but no values: computing either can take
    longer than training."""
    if isinstance(config.stencil, InputEdgesSpec):
        config = replace(config, stencil=replace(config.stencil, reweight=NoneSpec(), add=NoneSpec()))
    if config.position.kind in ("none", "file"):
        return load_problem(config, device=device)
    problem = load_problem(replace(config, position=NoneSpec()), device=device)
    n = problem.dataset.num_nodes
    width = getattr(config.position, "channels", n)  # ppr and heat have a coordinate for every node
    return replace(problem, pos=torch.empty(n, width, device="meta"))


def _count(config: RunConfig, problem: Problem, on_epoch: OnEpoch) -> Outcome:
    return Outcome(None, {"parameters": count_parameters(problem.model(config).parameters())})


TRAIN = Work(_train, _train_many)  # train and evaluate
FOLLOW = Work(_follow)  # train, then measure the validation accuracy at the times of the time grid
TIME = Work(_time, exclusive=True)  # train after a short warm-up, then measure the median seconds of one inference
COUNT = Work(_count, load=_load_shapes)  # build the model and count its parameters, without training
