"""Three baselines on the nodes of a user's graph: a linear model, label propagation and linear diffusion."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from time import perf_counter

from torch import Tensor

from beltrami.arguments import checked
from beltrami.auto.linear import TIMES, LinearFit, fit_linear
from beltrami.auto.propagation import propagate_labels
from beltrami.data import Split
from beltrami.graph import Edges
from beltrami.model.coder import Matrix
from beltrami.train import Regression, Task, predict, read_test


@dataclass(frozen=True)
class BaselineResult:
    """The result of a baseline: the metric of the task, a mean over the splits, on validation and on test nodes.

    ``test`` is None if no split has test nodes; ``settings`` are those that validation chose.
    """

    name: str
    validation: float
    test: float | None
    seconds: float
    settings: dict[str, float]


@checked
def run_baselines(
    x: Matrix,
    edges: Edges,
    y: Tensor,
    splits: Sequence[Split],
    *,
    task: Task,
    times: Sequence[float] = TIMES,
    balanced: bool = False,
    report: Callable[[BaselineResult], None] = lambda result: None,
) -> tuple[list[BaselineResult], LinearFit]:
    """Run logistic regression, label propagation and linear diffusion; return the models of the last one too.

    For numbers, the logistic regression is a ridge regression. Every choice is made by validation, and the targets of
    the test nodes are read once. Arguments are those of :func:`~beltrami.auto.linear.fit_linear`; ``report`` is told of
    every result.
    """
    features, _ = run_linear(x, edges, y, splits, task=task, times=(0.0,), balanced=balanced)
    report(features)
    propagation = _run_propagation(edges, y, splits, task)
    report(propagation)
    diffused, fit = run_linear(x, edges, y, splits, task=task, times=times, balanced=balanced)
    report(diffused)
    return [features, propagation, diffused], fit


@checked
def run_linear(
    x: Matrix,
    edges: Edges,
    y: Tensor,
    splits: Sequence[Split],
    *,
    task: Task,
    times: Sequence[float] = TIMES,
    balanced: bool = False,
) -> tuple[BaselineResult, LinearFit]:
    """Run linear diffusion, or a linear model without the graph for ``times=(0.0,)``; return the fitted models too."""
    start = perf_counter()
    fit = fit_linear(x, edges, y, splits, task=task, times=times, balanced=balanced)
    outputs = [predict(model, model.prepare(x, edges), time=model.time) for model in fit.models]
    test = _mean_test(outputs, y, splits, task)
    name, settings = "linear diffusion", {"time": fit.time, "strength": fit.strength}
    if tuple(times) == (0.0,):
        name, settings = _linear_model(task), {"strength": fit.strength}
    return BaselineResult(name, fit.validation, test, perf_counter() - start, settings), fit


def _linear_model(task: Task) -> str:
    return "ridge regression" if isinstance(task, Regression) else "logistic regression"


def _run_propagation(edges: Edges, y: Tensor, splits: Sequence[Split], task: Task) -> BaselineResult:
    start = perf_counter()
    found = propagate_labels(edges, y, splits, task=task)
    test = _mean_test(found.outputs, y, splits, task)
    return BaselineResult("label propagation", found.validation, test, perf_counter() - start, {"alpha": found.alpha})


def _mean_test(outputs: Sequence[Tensor], y: Tensor, splits: Sequence[Split], task: Task) -> float | None:
    """Return the mean metric on the test nodes of the splits that have any, or None."""
    pairs = zip(outputs, splits, strict=True)
    metrics = [read_test(out, y, split, task=task) for out, split in pairs if bool(split.test.any())]
    return sum(metrics) / len(metrics) if metrics else None
