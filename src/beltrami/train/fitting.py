"""Fitting: training one model or many, through all rounds, as an iterator of epochs."""

from collections.abc import Generator, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

from torch import Tensor

from beltrami.arguments import checked
from beltrami.data import Split
from beltrami.errors import SolverError
from beltrami.model import Classifier, Fitted, Inputs
from beltrami.train.callback import AnyCallback, Epoch, follow
from beltrami.train.checkpoint import Checkpoints
from beltrami.train.loop import Fit, Loop
from beltrami.train.program import SingleProgram, check_inputs
from beltrami.train.self_training import RoundTargets
from beltrami.train.stacked_program import StackedProgram
from beltrami.train.state import TrainingState, copies, write_into
from beltrami.train.task import Classification, Task
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
        checkpoint: TrainingState | None = None,
    ) -> None:
        outputs = models[0].num_classes
        task = Classification(outputs) if task is None else task
        if task.num_outputs != outputs:
            raise ValueError(f"{task} needs a model with {task.num_outputs} outputs; this one has {outputs}.")
        if (training.consistency.weight or training.rounds > 1) and not task.exclusive:
            need = "`consistency`, `self_training` and `distillation` need a task with one class per node"
            raise ValueError(f"{need}; got {type(task).__name__}: leave them out.")
        y = task.convert(y)
        for split in splits:
            check_inputs(inputs, y, split)
            task.check(y, split)
        for model in models:
            model.fitted = None
        self._models, self._inputs, self._splits = models, inputs, splits
        self._training, self._task, self._stacked = training, task, stacked
        self._stopped = False
        self._results: list[Fit | SolverError] | None = None
        self._initial = StackedWeights.of(models) if training.rounds > 1 else None
        self._number = 1  # of the current round
        self._before: dict[int, Fit] = {}  # the results of the rounds before, of the runs that go on
        self._targets = [RoundTargets(y, split) for split in splits]  # of the current round
        self._current = self._loop(models) if checkpoint is None else self._continued(checkpoint)
        self._epochs = self._train(y)

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

    def checkpoint(self) -> TrainingState:
        """Return where the training of one model stands; ``start_fit`` goes on from it, to the same bits."""
        if self._results is not None:
            raise RuntimeError("the training has ended: use its result, or save the model.")
        state = self._current.checkpoint()
        if self._initial is not None:
            state.tensors.update(copies("initial", self._initial.tensors))
        if self._before:
            (targets,) = self._targets
            state.tensors.update(copies("second", targets.tensors()))
            state.values.update(first=self._before[0].to_json(), round=self._number)
        return state

    def _continued(self, checkpoint: TrainingState) -> Loop:
        """Return the loop of the round in which a checkpoint was written, as it was then."""
        if self._initial is not None:
            write_into(self._initial.tensors, checkpoint.part("initial"))
        if "first" in checkpoint.values:
            self._number = checkpoint.values.get("round", 2)
            self._before = {0: Fit.from_json(checkpoint.values["first"])}
            self._targets = [RoundTargets.of_tensors(checkpoint.part("second"), self._splits[0])]
        loop = self._loop(self._models)
        loop.go_on_from(checkpoint)
        return loop

    def _loop(self, models: Sequence[Classifier]) -> Loop:
        inputs, training, task = self._inputs, self._training, self._task
        if not self._stacked:
            (only,) = self._targets
            return Loop(SingleProgram(models[0], inputs, only.y, only.split, training, task, only.soft), training)
        ys, splits = [each.y for each in self._targets], [each.split for each in self._targets]
        soft = [each.soft for each in self._targets if each.soft is not None]
        return Loop(StackedProgram(models, inputs, ys, splits, training, task, soft), training)

    def _train(self, y: Tensor) -> Iterator[Epoch]:
        """Yield the epochs of the current round and of those after it."""
        results: dict[int, Fit | SolverError] = dict(self._before)
        while True:
            found = yield from self._round()
            for run, fit in zip(self._before or range(len(found)), found, strict=True):
                before = self._before.get(run)
                results[run] = before.then(fit) if before is not None and isinstance(fit, Fit) else fit
            if self._stopped or self._number == self._training.rounds or not self._begin_round(results, y):
                break
        for run, result in results.items():
            if isinstance(result, Fit):
                self._models[run].fitted = Fitted(float(result.best.time), self._inputs.graph)
        self._results = list(results.values())

    def _begin_round(self, results: Mapping[int, Fit | SolverError], y: Tensor) -> bool:
        """Begin the next round of the runs that succeeded, from their initial weights and with targets from their
        predictions; return whether there are any."""
        assert self._initial is not None
        going = list(self._before) or range(len(self._models))
        targets = dict(zip(going, self._targets, strict=True))
        self._before = {run: fit for run, fit in results.items() if isinstance(fit, Fit)}
        for run, fit in self._before.items():
            logits = predict(self._models[run], self._inputs, time=fit.best.time)
            known = RoundTargets(y, self._splits[run], targets[run].soft)
            targets[run] = known.after(logits, self._number, self._training)
            self._initial.write_to(self._models[run], run)
        self._targets, self._number = [targets[run] for run in self._before], self._number + 1
        if self._before:
            self._current = self._loop([self._models[run] for run in self._before])
        return bool(self._before)

    def _round(self) -> Generator[Epoch, None, list[Fit | SolverError]]:
        """Yield the epochs of a round and return its results; runs and epochs count on from the rounds before."""
        runs, before, epochs = list(self._before), self._before.values(), iter(self._current)
        while not self._stopped and (epoch := next(epochs, None)) is not None:
            yield replace(
                epoch,
                number=max((fit.epochs for fit in before), default=0) + epoch.number,
                runs=tuple(runs[k] for k in epoch.runs) if runs else epoch.runs,
                evaluations=sum(fit.stats.evaluations for fit in before) + epoch.evaluations,
            )
        return self._current.finish()


@checked
def start_fit(
    model: Classifier,
    inputs: Inputs,
    y: Tensor,
    split: Split,
    training: Training,
    task: Task | None = None,
    *,
    checkpoint: TrainingState | None = None,
) -> Fitting:
    """Return the training of one model as an iterator of epochs; arguments as for :func:`fit`.

    ``checkpoint`` is what :meth:`Fitting.checkpoint` returned for the same arguments: the training goes on from there
    to the same bits as one that never stopped, on the same machine with the same number of threads.
    """
    return Fitting([model], inputs, y, [split], training, task, stacked=False, checkpoint=checkpoint)


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
    checkpoints: Checkpoints | None = None,
) -> Fit:
    """Train in place by full-batch gradient steps, on the targets of the training nodes alone.

    The validation nodes of ``split`` choose epoch and terminal time, and ``model``, which has prepared the ``inputs``,
    holds the weights of the best epoch afterwards. ``y`` (n, ...): targets; test nodes may have any. ``task``: their
    kind, None for as many classes as the model has outputs. ``callbacks`` are told of every epoch. With ``checkpoints``
    the training goes on from the state in their file, if there is one, and keeps its own state there.
    """
    state = None if checkpoints is None else checkpoints.read()
    fitting = start_fit(model, inputs, y, split, training, task, checkpoint=state)
    keeping = [] if checkpoints is None else [lambda epoch: checkpoints.after(epoch, fitting)]
    follow(fitting, [*callbacks, *keeping])
    return fitting.result


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
    fitting = Fitting(models, inputs, y, splits, training, task, stacked=True)
    follow(fitting, callbacks)
    return fitting.results
