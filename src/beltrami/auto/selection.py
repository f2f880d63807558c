"""The selection behind `--recipe auto`: train the portfolio within a budget, and keep the best member by validation or
an average of several."""

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

import torch
from torch import Tensor

from beltrami import train
from beltrami.arguments import as_name
from beltrami.auto.kept_members import KeptMembers, TrainedMember
from beltrami.auto.linear import LinearFit
from beltrami.auto.portfolio import BASE, COUPLED, MEMBERS, Member
from beltrami.config.build import build_training
from beltrami.config.parser import override
from beltrami.config.spec import RunConfig
from beltrami.data import Split
from beltrami.data.labelled_graph import LabelledGraph
from beltrami.errors import SolverError
from beltrami.graph.statistics import homophily
from beltrami.memory import free_memory
from beltrami.model.linear_diffusion import ACCURATE
from beltrami.predict.model_average import LEAST, ModelAverage
from beltrami.predict.trained_models import CHANNELS, AveragedEnsemble, Ensemble, new_model, prepare
from beltrami.train import Fit, Task, ValidationScore

LINEAR, AVERAGE = "linear", "average"
LINEAR_SAYS = "a linear model of diffused features"
STATES = 60  # states of all nodes that a training step of a long flow keeps, about
MEMORY_SHARE = 0.5  # of the memory that a training may need
PAIRS_PER_SECOND = 2e10  # features of pairs of nodes that one CPU core compares in a second, about
SAME_CLASS = 0.5  # share of edges within a class from which on neighbours are not taken to differ
AVERAGED_LABELS = 100  # validation labels from which on weights of an average are chosen
LARGEST_SIMILARITY = 2**29  # entries of a feature matrix up to which nodes are compared by their features


@dataclass(frozen=True)
class Attempt:
    """A member of the portfolio as it was tried: the mean of its validation metric over the splits, None if it was not
    trained, and the seconds it took."""

    name: str
    says: str
    metric: float | None
    seconds: float
    note: str = ""


@dataclass(frozen=True, eq=False)
class Selection:
    """The member that validation chose, or the average, its score, and all attempts in their order. ``weights`` are
    those of an average, by member."""

    name: str
    ensemble: Ensemble | AveragedEnsemble
    score: ValidationScore
    attempts: tuple[Attempt, ...]
    weights: Mapping[str, float] = field(default_factory=dict)


def select(
    graph: LabelledGraph,
    y: Tensor,
    splits: Sequence[Split],
    linear: LinearFit,
    *,
    task: Task,
    budget: float,
    average: bool = False,
    seed: int = 0,
    device: str = "cpu",
    members: Mapping[str, Member] = MEMBERS,
    report: Callable[[Attempt], None] = lambda attempt: None,
    kept: KeptMembers | None = None,
) -> Selection:
    """Train every member on every split and return the one with the best mean validation metric, or with ``average``
    the :func:`average_members` of all.

    ``linear``, a fitted linear diffusion, is the first candidate. ``budget`` are seconds for the members together: each
    gets the time that is left, divided by the number of members that are left, and its splits get equal parts of that.
    A training that is not done when its time is up keeps its best epoch so far. Of equal metrics the smaller validation
    loss is better, and then the earlier member. Members in ``kept`` are not trained again, and new ones are added.
    ``COUPLED`` is tried where fewer than half of the edges between nodes of known class join nodes of one class.
    """
    best = linear_selection(graph, linear, seed)
    attempts, trained = list(best.attempts), {LINEAR: linear_selection(graph, linear, seed).ensemble.parts[0]}
    end = time.perf_counter() + budget
    for place, (name, member) in enumerate(members.items()):
        start = time.perf_counter()
        share = (end - start) / (len(members) - place)
        config = member.config(as_name(graph.name), exclusive=task.exclusive, seed=seed, by_features=graph.by_features)
        before = None if kept is None else kept.get(name, config, graph, task.num_outputs)
        found: TrainedMember | SolverError | None = before
        end -= 0.0 if before is None else before.seconds  # that were spent before
        note = "" if before is not None else _unfit(config, graph, device, share)
        if name == COUPLED and not (task.exclusive and _neighbours_differ(graph, y, splits[0])):
            note = "left out: neighbours do not tend to differ in class"
        if found is None and not note:
            found = train_member(config, graph, y, splits, task=task, seconds=share, device=device)
            if kept is not None and isinstance(found, TrainedMember):
                kept.add(name, found)
        metric, seconds = None, time.perf_counter() - start
        if isinstance(found, SolverError):
            note = f"failed: {found}"
        elif found is not None:
            metric, seconds, note = found.score.metric, found.seconds, "" if found.complete else "stopped by the budget"
            trained[name] = found.ensemble
            if (found.score.metric, found.score.minus_loss) > (best.score.metric, best.score.minus_loss):
                best = Selection(name, found.ensemble, found.score, ())
        attempts.append(Attempt(name, member.says, metric, seconds, note))
        report(attempts[-1])
    if average:
        best = average_members(best, trained, graph, y, splits, task=task, device=device)
        attempts += best.attempts
        report(attempts[-1])
    return replace(best, attempts=tuple(attempts))


def average_members(
    best: Selection,
    trained: Mapping[str, Ensemble],
    graph: LabelledGraph,
    y: Tensor,
    splits: Sequence[Split],
    *,
    task: Task,
    device: str = "cpu",
) -> Selection:
    """Return the average of trained members with the weights that the validation nodes of all splits choose, and an
    attempt that describes it; with fewer than ``AVERAGED_LABELS`` of these nodes, the ``best`` member.
    See :meth:`beltrami.predict.ModelAverage.fit`."""
    start = time.perf_counter()
    says = "the average of several, weighted by validation"
    if (labels := sum(int(split.val.sum()) for split in splits)) < AVERAGED_LABELS:
        note = f"left out: {labels} validation labels are too few to choose weights by"
        return replace(best, attempts=(Attempt(AVERAGE, says, None, 0.0, note),))
    outputs = {name: each.outputs(graph, device=device) for name, each in trained.items()}
    truth = torch.cat([y[split.val] for split in splits])
    at_val = [torch.cat([o[split.val] for o, split in zip(each, splits, strict=True)]) for each in outputs.values()]
    found = ModelAverage.fit(at_val, truth)
    weights = dict(zip(trained, found.weights, strict=True))
    temperatures = dict(zip(trained, found.temperatures, strict=True))
    names = sorted((name for name in trained if weights[name]), key=lambda name: -weights[name])
    chosen = ModelAverage(tuple(weights[name] for name in names), tuple(temperatures[name] for name in names))
    averaged = AveragedEnsemble(tuple(trained[name] for name in names), chosen)
    metrics, losses = [], []
    for k, split in enumerate(splits):
        p = chosen.probabilities([outputs[name][k][split.val] for name in names])
        logits = p.clamp(min=LEAST).log()
        metrics.append(float(task.metric(logits, y[split.val])))
        losses.append(float(task.loss(logits, y[split.val], reduction="mean")))
    score = ValidationScore(_mean(metrics), -_mean(losses), 0.0)
    note = ", ".join(f"{100 * weights[name]:.0f}% {name}" for name in names)
    attempt = Attempt(AVERAGE, says, score.metric, time.perf_counter() - start, note)
    return Selection(AVERAGE, averaged, score, (attempt,), {name: weights[name] for name in names})


def train_member(
    config: RunConfig,
    graph: LabelledGraph,
    y: Tensor,
    splits: Sequence[Split],
    *,
    task: Task,
    seconds: float = float("inf"),
    device: str = "cpu",
) -> TrainedMember | SolverError:
    """Train a configuration on every split; return the models and their mean score."""
    x, edges = prepare(config, graph, device=device)
    start, training, complete = time.perf_counter(), build_training(config.train), True
    models, fits = [], list[Fit]()
    for k, split in enumerate(splits):
        deadline = start + seconds * (k + 1) / len(splits)
        with train.seeded(config.seed + k):
            model = new_model(config, graph, outputs=task.num_outputs).to(device)
            inputs = model.prepare(x, edges)
            fitting = train.start_fit(model, inputs, y.to(device), split.to(device), training, task)
            for _ in fitting:
                if time.perf_counter() > deadline:
                    fitting.stop()
                    complete = False
        try:
            fits.append(fitting.result)
        except SolverError as error:
            return error
        models.append(model)
    mean = ValidationScore(_mean([f.best.metric for f in fits]), _mean([f.best.minus_loss for f in fits]), 0.0)
    ensemble = Ensemble(config, tuple(models), tuple(f.best.time for f in fits))
    return TrainedMember(ensemble, mean, complete, time.perf_counter() - start)


def linear_selection(graph: LabelledGraph, linear: LinearFit, seed: int) -> Selection:
    """Return the selection of linear diffusion, fitted already, as the only candidate."""
    settings = ("model.kind=linear", "diffusivity.kind=none", "flow.kind=none", "stencil.kind=none")
    scheme = (f"scheme.time={linear.time}", f"scheme.rtol={ACCURATE.rtol}", f"scheme.atol={ACCURATE.atol}")
    config = replace(override(BASE, [*settings, *scheme]), dataset=as_name(graph.name), seed=seed)
    ensemble = Ensemble(config, linear.models, (linear.time,) * len(linear.models))
    return Selection(LINEAR, ensemble, linear.score, (Attempt(LINEAR, LINEAR_SAYS, linear.validation, 0.0),))


def _neighbours_differ(graph: LabelledGraph, y: Tensor, split: Split) -> bool:
    """Return whether most of the edges between training and validation nodes join nodes of different classes."""
    seen = torch.where(split.train | split.val, y, -1)
    return homophily(graph.edges, seen) < SAME_CLASS  # False for NaN, without such edges


def _unfit(config: RunConfig, graph: LabelledGraph, device: str, seconds: float) -> str:
    """Return why a configuration is not tried on a graph within some seconds; empty if it is."""
    stencil = config.stencil
    compares = getattr(stencil, "reweight", None), getattr(stencil, "add", None)
    if any(each is not None and each.kind != "none" for each in compares) and graph.by_features:
        return "left out: the edges join similar rows already"
    if seconds <= 0:
        return "left out: the budget is spent"
    if any(each is not None and each.kind != "none" for each in compares):
        n, d = graph.x.shape
        searches = compares[1] is not None and compares[1].kind != "none"
        if n * d > LARGEST_SIMILARITY or (searches and device == "cpu" and n * n * d > seconds * PAIRS_PER_SECOND):
            return "left out: comparing all nodes by their features would take too long"
        if graph.x.layout != torch.strided and graph.x.shape[1] == graph.x.shape[0]:
            return "left out: no features to compare nodes by"
    needed = STATES * CHANNELS * 4 * graph.num_nodes
    if stencil.kind != "isolated" and needed > MEMORY_SHARE * free_memory(device):
        return f"left out: training would need about {needed / 2**30:.0f} GiB of memory"
    return ""


def _mean(values: Sequence[float]) -> float:
    return sum(values) / len(values)
