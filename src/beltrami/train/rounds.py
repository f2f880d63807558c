"""Rounds: one fit, or a second one that learns from what the first was certain of; of one model, or of many at once."""

from collections.abc import Callable, Sequence
from dataclasses import replace

from torch import Tensor

from beltrami.data import Split
from beltrami.errors import SolverError
from beltrami.model import Classifier, Inputs
from beltrami.train.ensemble import fit_many_once
from beltrami.train.fit import Epoch, Fit, Training, fit_once
from beltrami.train.self_training import self_training_labels
from beltrami.train.stack import Stack
from beltrami.train.validation import predict


def fit(
    model: Classifier,
    inputs: Inputs,
    y: Tensor,
    split: Split,
    training: Training,
    *,
    on_epoch: Callable[[Epoch], None] | None = None,
) -> Fit:
    """Train in place, by full-batch gradient steps on the objective; of the labels it sees those of training nodes.

    With ``training.self_training`` the model is then trained once more from where it began, on further nodes as well.

    Args:
        model: holds the weights of the best epoch afterwards.
        inputs: prepared by the model.
        y: classes, (n,).
        split: which nodes train, and which choose epoch and terminal time.
        training: how.
        on_epoch: told after each epoch.
    """
    if not training.self_training:
        return fit_once(model, inputs, y, split, training, on_epoch=on_epoch)
    begin = Stack.of([model])
    first = fit_once(model, inputs, y, split, training, on_epoch=on_epoch)
    known, taught = self_training_labels(predict(model, inputs, time=first.best.time), y, split, training.self_training)
    begin.write_to(model, 0)

    def later(epoch: Epoch) -> None:
        if on_epoch is not None:
            on_epoch(replace(epoch, number=first.epochs + epoch.number))

    return first.then(fit_once(model, inputs, known, taught, training, on_epoch=later))


def fit_many(
    models: Sequence[Classifier],
    inputs: Inputs,
    y: Tensor,
    splits: Sequence[Split],
    training: Training,
    *,
    on_epoch: Callable[[int, int], None] | None = None,
) -> list[Fit | SolverError]:
    """Train models of one make in place, each on its split, as :func:`fit` would train each of them alone.

    The runs share nothing but their launches: each has its own dropout, its own choice of epoch and terminal time, and
    stops by its own patience. A run whose loss is no longer a number gives its error and leaves the others alone.

    Args:
        models: as many as splits, built alike from different seeds.
        inputs: prepared, the same for all.
        y: classes, (n,).
        splits: which nodes each of them trains and validates on.
        training: the same for all.
        on_epoch: told the epoch's number and how many runs go on.
    """
    begin = Stack.of(models) if training.self_training and models else None
    found = fit_many_once(models, inputs, [y] * len(models), splits, training, on_epoch=on_epoch)
    firsts = {run: each for run, each in enumerate(found) if isinstance(each, Fit)}
    if begin is None or not firsts:
        return found
    taught = []
    for run, first in firsts.items():
        logits = predict(models[run], inputs, time=first.best.time)
        taught.append(self_training_labels(logits, y, splits[run], training.self_training))
        begin.write_to(models[run], run)
    before = max(first.epochs for first in firsts.values())

    def later(number: int, going: int) -> None:
        if on_epoch is not None:
            on_epoch(before + number, going)

    again = [models[run] for run in firsts]
    ys, wider = [each for each, _ in taught], [each for _, each in taught]
    seconds = fit_many_once(again, inputs, ys, wider, training, on_epoch=later)
    for (run, first), second in zip(firsts.items(), seconds, strict=True):
        found[run] = first.then(second) if isinstance(second, Fit) else second
    return found
