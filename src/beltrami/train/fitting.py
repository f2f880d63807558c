"""Fitting: training one model or many, through the rounds of self-training, as an iterator of epochs."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

from torch import Tensor

from beltrami.data import Split
from beltrami.errors import SolverError
from beltrami.model import Classifier, Inputs
from beltrami.train.callback import AnyCallback, Callback, Epoch
from beltrami.train.loop import Fit, Loop
from beltrami.train.program import Program, SingleProgram
from beltrami.train.self_training import self_training_labels
from beltrami.train.stacked import StackedProgram
from beltrami.train.task import Classification, Task
from beltrami.train.training import Training
from beltrami.train.validation import predict
from beltrami.train.weights import StackedWeights


class Fitting(Iterator[Epoch]):
    """A training in progress: an iterator of epochs, made by :func:`start_fit` or :func:`start_fit_many`.

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
        training.check_task(task)
        for split in splits:
            task.check(y, split)
        self._models, self._inputs, self._y, self._splits = models, inputs, y, splits
        self._training, self._task, self._stacked = training, task, stacked
        self._initial = StackedWeights.of(models) if training.self_training else None
        self._first: dict[int, Fit] = {}  # results of the first round, by the runs of the second
        self._all: list[Fit | SolverError] = []
        self._results: list[Fit | SolverError] | None = None
        self._start(models, [y] * len(models), splits)

    def __next__(self) -> Epoch:
        while self._results is None:
            epoch = next(self._epochs, None)
            if epoch is not None:
                return self._counted_through(epoch)
            self._end_round()
        raise StopIteration

    def stop(self) -> None:
        """End the training here; nothing happens if it has ended."""
        if self._results is None:
            self._initial = None
            self._end_round()

    @property
    def results(self) -> list[Fit | SolverError]:
        """The result of every run; a run whose loss was not finite has its error."""
        if self._results is None:
            raise RuntimeError("the training has not ended: iterate to its end, or call `stop()`.")
        return self._results

    @property
    def result(self) -> Fit:
        """The result of the only run; its error is raised."""
        result, *others = self.results
        if others:
            raise ValueError(f"`result` is for one run; there are {1 + len(others)}: use `results`.")
        if isinstance(result, SolverError):
            raise result
        return result

    def _start(self, models: Sequence[Classifier], ys: Sequence[Tensor], splits: Sequence[Split]) -> None:
        program: Program
        if self._stacked:
            program = StackedProgram(models, self._inputs, ys, splits, self._training, self._task)
        else:
            program = SingleProgram(models[0], self._inputs, ys[0], splits[0], self._training, self._task)
        self._loop = Loop(program, self._training)
        self._epochs = iter(self._loop)

    def _end_round(self) -> None:
        """Collect the results of a round, and start the second one where there is one."""
        results = self._loop.finish()
        if self._first:
            for run, second in zip(self._first, results, strict=True):
                self._all[run] = self._first[run].then(second) if isinstance(second, Fit) else second
            self._results = self._all
            return
        self._all = results
        self._first = {run: fit for run, fit in enumerate(results) if isinstance(fit, Fit)}
        if self._initial is None or not self._first:
            self._results = results
        else:
            self._start_second_round(self._initial)

    def _start_second_round(self, initial: StackedWeights) -> None:
        ys, splits = [], []
        for run, first in self._first.items():
            logits = predict(self._models[run], self._inputs, time=first.best.time)
            y, split = self_training_labels(logits, self._y, self._splits[run], self._training.self_training)
            ys.append(y)
            splits.append(split)
            initial.write_to(self._models[run], run)
        self._start([self._models[run] for run in self._first], ys, splits)

    def _counted_through(self, epoch: Epoch) -> Epoch:
        """Return an epoch with its number, runs and evaluations counted through both rounds."""
        if not self._first:
            return epoch
        runs, firsts = list(self._first), self._first.values()
        return replace(
            epoch,
            number=max(first.epochs for first in firsts) + epoch.number,
            runs=tuple(runs[k] for k in epoch.runs),
            evaluations=sum(first.stats.evaluations for first in firsts) + epoch.evaluations,
        )


def start_fit(
    model: Classifier, inputs: Inputs, y: Tensor, split: Split, training: Training, task: Task | None = None
) -> Fitting:
    """Return the training of one model as an iterator of epochs; see :func:`fit` for the arguments."""
    return Fitting([model], inputs, y, [split], training, task, stacked=False)


def start_fit_many(
    models: Sequence[Classifier],
    inputs: Inputs,
    y: Tensor,
    splits: Sequence[Split],
    training: Training,
    task: Task | None = None,
) -> Fitting:
    """Return the training of many models as an iterator of epochs; see :func:`fit_many` for the arguments."""
    if len(models) != len(splits) or not models:
        raise ValueError(f"fit_many needs a split for every model; got {len(models)} models, {len(splits)} splits.")
    if models[0].rewires:
        raise ValueError("fit_many cannot train models that rewire the graph by their own state: use fit for each.")
    for cost in models[0].costs:
        if cost.differentiates:
            raise ValueError(f"fit_many cannot train with {type(cost).__name__}, which differentiates: use fit.")
    return Fitting(models, inputs, y, splits, training, task, stacked=True)


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

    Args:
        model: holds the weights of the best epoch afterwards.
        inputs: prepared by the model.
        y: targets, (n, ...); test nodes may have any.
        split: training nodes, and validation nodes that choose epoch and terminal time.
        training: settings.
        task: kind of the targets; None for classes, as many as the model has outputs.
        callbacks: told of every epoch: objects of :class:`Callback`, or functions.
    """
    return _followed(start_fit(model, inputs, y, split, training, task), callbacks).result


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
    return _followed(start_fit_many(models, inputs, y, splits, training, task), callbacks).results


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
