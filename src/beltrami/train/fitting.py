"""Fitting: training one model or many, through the rounds of self-training, as an iterator of epochs."""

from collections.abc import Generator, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

import torch
from torch import Tensor

from beltrami.arguments import checked
from beltrami.data import Split
from beltrami.errors import SolverError, as_classes
from beltrami.model import Classifier, Inputs
from beltrami.train.callback import AnyCallback, Callback, Epoch
from beltrami.train.loop import Fit, Loop
from beltrami.train.program import SingleProgram, StackedProgram
from beltrami.train.task import Classification, Task, check_outputs
from beltrami.train.training import Training
from beltrami.train.validation import predict
from beltrami.train.weights import StackedWeights


class Fitting(Iterator[Epoch]):
    """A training in progress: an iterator of epochs, made by :func:`start_fit`.

    Each epoch is trained when it is asked for. After the last one, or :meth:`stop`, the models hold the weights of
    their best epochs, and the results are available::

        fitting = start_fit(model, inputs, y, split, training)
        for epoch in fitting:
            if epoch.best[0].accuracy > 0.9:
                fitting.stop()
        print(fitting.result.best)
    """

    def __init__(
        self,
        models: Sequence[Classifier],
        inputs: Inputs,
        y: Tensor,
        splits: Sequence[Split],
        training: Training,
        task: Task | None,
        *,
        stacked: bool,
    ) -> None:
        outputs = models[0].num_classes
        task = Classification(outputs) if task is None else task
        if task.num_outputs != outputs:
            raise ValueError(f"{task} needs a model with {task.num_outputs} outputs; this one has {outputs}.")
        if (training.consistency.weight or training.self_training) and not task.exclusive:
            need = "`consistency` and `self_training` need a task with one class per node"
            raise ValueError(f"{need}; got {type(task).__name__}: set them to 0.")
        y = task.convert(y)
        for split in splits:
            _check_inputs(inputs, y, split)
            task.check(y, split)
        self._models, self._inputs, self._splits = models, inputs, splits
        self._training, self._task, self._stacked = training, task, stacked
        self._stopped = False
        self._results: list[Fit | SolverError] | None = None
        initial = StackedWeights.of(models) if training.self_training else None
        self._epochs = self._train(self._loop(models, [y] * len(models), splits), y, initial)

    def __next__(self) -> Epoch:
        return next(self._epochs)

    def stop(self) -> None:
        """End the training here; nothing happens if it has ended."""
        self._stopped = True
        next(self._epochs, None)

    @property
    def results(self) -> list[Fit | SolverError]:
        """The result of every run; a run whose loss was not finite has its error."""
        if self._results is None:
            raise RuntimeError("the training has not ended: iterate to its end, or call `stop()`.")
        return self._results

    @property
    def result(self) -> Fit:
        """The result of the only run; its error is raised."""
        (result,) = self.results
        if isinstance(result, SolverError):
            raise result
        return result

    def _loop(self, models: Sequence[Classifier], ys: Sequence[Tensor], splits: Sequence[Split]) -> Loop:
        inputs, training, task = self._inputs, self._training, self._task
        if self._stacked:
            return Loop(StackedProgram(models, inputs, ys, splits, training, task), training)
        return Loop(SingleProgram(models[0], inputs, ys[0], splits[0], training, task), training)

    def _train(self, loop: Loop, y: Tensor, initial: StackedWeights | None) -> Iterator[Epoch]:
        """Yield the epochs of the first round, ``loop``, and of the second where there is one, from ``initial``."""
        models, splits = self._models, self._splits
        results = yield from self._round(loop, {})
        first = {run: fit for run, fit in enumerate(results) if isinstance(fit, Fit)}
        if initial is not None and first and not self._stopped:
            labels = []
            for run, found in first.items():
                logits = predict(models[run], self._inputs, time=found.best.time)
                labels.append(self_training_labels(logits, y, splits[run], self._training.self_training))
                initial.write_to(models[run], run)
            ys, wider = zip(*labels, strict=True)
            second = yield from self._round(self._loop([models[run] for run in first], ys, wider), first)
            for run, fit in zip(first, second, strict=True):
                results[run] = first[run].then(fit) if isinstance(fit, Fit) else fit
        self._results = results

    def _round(self, loop: Loop, first: Mapping[int, Fit]) -> Generator[Epoch, None, list[Fit | SolverError]]:
        """Yield the epochs of a round and return its results; runs and epochs count on from the round ``first``."""
        runs, firsts, epochs = list(first), first.values(), iter(loop)
        while not self._stopped and (epoch := next(epochs, None)) is not None:
            yield replace(
                epoch,
                number=max((fit.epochs for fit in firsts), default=0) + epoch.number,
                runs=tuple(runs[k] for k in epoch.runs) if first else epoch.runs,
                evaluations=sum(fit.stats.evaluations for fit in firsts) + epoch.evaluations,
            )
        return loop.finish()


def _check_inputs(inputs: Inputs, y: Tensor, split: Split) -> None:
    """Refuse inputs of another graph, and targets or splits on another device."""
    nodes, where = inputs.edges.num_nodes, inputs.edges.device
    if nodes != split.num_nodes:
        raise ValueError(f"`inputs` have {nodes} nodes where the split has {split.num_nodes}: use those of one graph.")
    for name, device in {"y": y.device, "split": split.train.device}.items():
        if device != where:
            raise ValueError(f"`{name}` is on {device} and `inputs` on {where}: move one with `.to(...)`.")


@checked
def start_fit(
    model: Classifier, inputs: Inputs, y: Tensor, split: Split, training: Training, task: Task | None = None
) -> Fitting:
    """Return the training of one model as an iterator of epochs; arguments as for :func:`fit`."""
    return Fitting([model], inputs, y, [split], training, task, stacked=False)


@checked
def fit(
    model: Classifier,
    inputs: Inputs,
    y: Tensor,
    split: Split,
    training: Training,
    *,
    task: Task | None = None,
    callbacks: Iterable[AnyCallback] = (),
) -> Fit:
    """Train in place by full-batch gradient steps, on the targets of the training nodes alone.

    The validation nodes of ``split`` choose epoch and terminal time, and ``model``, which has prepared the ``inputs``,
    holds the weights of the best epoch afterwards. ``y`` (n, ...): targets; test nodes may have any. ``task``: their
    kind, None for as many classes as the model has outputs. ``callbacks`` are told of every epoch.
    """
    return _followed(start_fit(model, inputs, y, split, training, task), callbacks).result


@checked
def fit_many(
    models: Sequence[Classifier],
    inputs: Inputs,
    y: Tensor,
    splits: Sequence[Split],
    training: Training,
    *,
    task: Task | None = None,
    callbacks: Iterable[AnyCallback] = (),
) -> list[Fit | SolverError]:
    """Train models of one architecture in place and together, each on its split, as :func:`fit` would train it alone.

    Each run has its own dropout, its own choice of epoch and terminal time, and stops by its own patience. A run whose
    loss is not finite gives its error and leaves the others alone. Arguments as for :func:`fit`; the models are built
    alike from different seeds, as many as splits.
    """
    if len(models) != len(splits) or not models:
        raise ValueError(f"fit_many needs a split for every model; got {len(models)} models, {len(splits)} splits.")
    if models[0].rewires:
        raise ValueError("fit_many cannot train models that rewire the graph by their own state: use fit for each.")
    for cost in models[0].costs:
        if cost.differentiates:
            raise ValueError(f"fit_many cannot train with {type(cost).__name__}, which differentiates: use fit.")
    return _followed(Fitting(models, inputs, y, splits, training, task, stacked=True), callbacks).results


def _followed(fitting: Fitting, callbacks: Iterable[AnyCallback]) -> Fitting:
    """Train to the end, tell the callbacks of every epoch and close them, and return the ended training."""
    callbacks = list(callbacks)
    try:
        for epoch in fitting:
            for callback in callbacks:
                (callback.on_epoch if isinstance(callback, Callback) else callback)(epoch)
    finally:
        for callback in callbacks:
            if isinstance(callback, Callback):
                callback.close()
    return fitting


@checked
def self_training_labels(logits: Tensor, y: Tensor, split: Split, most: int) -> tuple[Tensor, Split]:
    r"""Return labels and split with the most certain nodes of each predicted class added to the training nodes.

    .. math:: S_c = \text{the } k \text{ largest } p_{ic} \text{ among } \{i \notin \text{train, val} :
        \mathrm{argmax}_{c'}\, p_{ic'} = c\}, \qquad p_i = \mathrm{softmax}\, \ell_i

    ``most`` is k; where there are fewer nodes, all of them are added. The label of an added node is its prediction; its
    entry of ``y`` is not read. It is no test node of the new split; results are computed on the split as it was.
    ``logits`` (n, classes), ``y`` (n,) -> ``y`` (n,).
    """
    check_outputs(logits, rows=split.num_nodes, name="logits")
    y = as_classes(y)
    if len(y) != split.num_nodes:
        raise ValueError(f"`y` has {len(y)} entries where the split has {split.num_nodes} nodes.")
    certainty, predicted = Classification(logits.shape[1]).probabilities(logits).max(1)
    free = ~(split.train | split.val)
    added = torch.zeros_like(free)
    for c in range(logits.shape[1]):
        nodes = (free & (predicted == c)).nonzero()[:, 0]
        order = certainty[nodes].argsort(descending=True, stable=True)
        added[nodes[order[:most]]] = True
    wider = replace(split, train=split.train | added, test=split.test & ~added, calibration=None)
    return torch.where(added, predicted.to(y.dtype), y), wider
