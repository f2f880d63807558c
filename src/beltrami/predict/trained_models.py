"""Trained models that predict together: one for each split of the labels, and averages of several configurations."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, TypeVar

import torch
from torch import Tensor

from beltrami.config.build import build_classifier
from beltrami.config.parser import override
from beltrami.config.spec import RunConfig
from beltrami.data.labelled_graph import LabelledGraph
from beltrami.data.target import Targets
from beltrami.graph import Edges
from beltrami.graph.sparse_matrix import sparse_where_it_pays
from beltrami.model import Classifier, Inputs
from beltrami.model.coder import Matrix
from beltrami.predict.explain import explain
from beltrami.predict.model_average import LEAST, ModelAverage
from beltrami.predict.shares import Explanation, Margin
from beltrami.run import similarity_edges
from beltrami.train import Classification, MultiLabel, Regression, Task, predict

T = TypeVar("T")
SMALL = 2**20  # nodes times channels up to which one thread is faster than several
SMALL_ERROR = 1e-7  # of a solve, relative to the largest state
CHANNELS = 64  # of a usual state


@dataclass(frozen=True, eq=False)
class Ensemble:
    """Trained models of one configuration, each with the time at which its flow stops; the mean of their outputs is the
    output of all."""

    config: RunConfig
    models: tuple[Classifier, ...]
    times: tuple[float, ...]

    @property
    def parts(self) -> tuple["Ensemble", ...]:
        """The ensembles it is made of: itself."""
        return (self,)

    def outputs(self, graph: LabelledGraph, *, device: str = "cpu") -> Tensor:
        """Return the outputs of every model at all nodes, (models, n, outputs), on the CPU."""
        return torch.stack(self._each(graph, device, lambda model, inputs, t: predict(model, inputs, time=t).cpu()))

    def accurate(self) -> "Ensemble":
        """Return the same models with small tolerances: the error at a node is bounded relative to the largest state of
        all nodes, so that otherwise the output at one node would depend on which others are there."""
        config = override(self.config, (f"scheme.rtol={SMALL_ERROR}", f"scheme.atol={SMALL_ERROR}"))
        models = []
        for model in self.models:
            weights = model.state_dict()
            models.append(build_classifier(config, features=model.features, positions=0, num_classes=model.num_classes))
            models[-1].load_state_dict(weights)
        return Ensemble(config, tuple(model.eval() for model in models), self.times)

    def explain(
        self, graph: LabelledGraph, node: int, *, exclusive: bool = True, outputs: Tensor | None = None
    ) -> Explanation:
        """Return what the mean output at a node came from; see :func:`beltrami.predict.explain.explain`. The margin is
        that of the class which ``outputs`` (classes,) predict over the next one, by default those of these models."""
        mean = self.outputs(graph).mean(0)[node] if outputs is None else outputs
        margin = Margin.of(mean, predicted=None, other=None, exclusive=exclusive)
        chosen: dict[str, Any] = {"predicted": margin.predicted, "other": margin.other, "exclusive": exclusive}
        return Explanation.mean(
            self._each(graph, "cpu", lambda model, inputs, t: explain(model, inputs, node, time=t, **chosen))
        )

    def _each(self, graph: LabelledGraph, device: str, use: Callable[[Classifier, Inputs, float], T]) -> list[T]:
        with fitting_threads(graph.num_nodes):
            x, edges = prepare(self.config, graph, device=device)
            models = [model.to(device) for model in self.models]
            return [use(model, model.prepare(x, edges), t) for model, t in zip(models, self.times, strict=True)]


@dataclass(frozen=True, eq=False)
class AveragedEnsemble:
    """Ensembles of several configurations, trained on the same splits, whose probabilities are averaged.

    The first has the largest weight. Its settings and times stand for all in reports, and explanations are its own.
    """

    parts: tuple[Ensemble, ...]
    average: ModelAverage

    @property
    def config(self) -> RunConfig:
        return self.parts[0].config

    @property
    def models(self) -> tuple[Classifier, ...]:
        return self.parts[0].models

    @property
    def times(self) -> tuple[float, ...]:
        return self.parts[0].times

    def outputs(self, graph: LabelledGraph, *, device: str = "cpu") -> Tensor:
        """Return for every split the logarithms of the averaged probabilities at all nodes, (splits, n, classes), on
        the CPU."""
        found = [part.outputs(graph, device=device) for part in self.parts]
        averaged = [self.average.probabilities([outputs[k] for outputs in found]) for k in range(len(self.models))]
        return torch.stack(averaged).clamp(min=LEAST).log()

    def accurate(self) -> "AveragedEnsemble":
        """Return the same models with small tolerances; see :meth:`Ensemble.accurate`."""
        return AveragedEnsemble(tuple(part.accurate() for part in self.parts), self.average)

    def explain(self, graph: LabelledGraph, node: int, *, exclusive: bool = True) -> Explanation:
        """Return what the output of the first ensemble at a node came from: its margin of the class that the average
        predicts over the next one."""
        mean = self.outputs(graph).mean(0)[node]
        return self.parts[0].explain(graph, node, exclusive=exclusive, outputs=mean)


def task_of(targets: Targets) -> Task:
    """Return the task of a graph's targets."""
    outputs = len(targets.names)
    if targets.kind == "classes":
        return Classification(outputs)
    return MultiLabel(outputs) if targets.kind == "labels" else Regression(outputs)


def prepare(config: RunConfig, graph: LabelledGraph, *, device: str = "cpu") -> tuple[Matrix, Edges]:
    """Return the features and the edges of a graph as the models of a configuration take them."""
    edges = similarity_edges(config.stencil, graph.x.to(device), graph.edges.to(device))
    return sparse_where_it_pays(graph.x).to(device), edges


def new_model(config: RunConfig, graph: LabelledGraph, *, outputs: int) -> Classifier:
    """Return a model of a configuration for a graph, from the current random state."""
    return build_classifier(config, features=graph.x.shape[1], positions=0, num_classes=outputs)


@contextmanager
def fitting_threads(num_nodes: int) -> Iterator[None]:
    """Run a block on one CPU thread if the graph is small: several would wait for each other longer than they work."""
    from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]

    before, small = torch.get_num_threads(), num_nodes * CHANNELS <= SMALL
    if small and before == 1:  # a search for the libraries would take longer than a small solve
        yield
        return
    torch.set_num_threads(1 if small else before)
    try:
        with threadpool_limits(1 if small else None):  # of NumPy and scikit-learn, which comes with threadpoolctl
            yield
    finally:
        torch.set_num_threads(before)
