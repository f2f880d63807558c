"""fit: train a model on the labelled nodes of one split, choosing epoch and terminal time by validation."""

import copy
import math
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor
from torch.optim import Optimizer

from beltrami.data import Split
from beltrami.errors import SolverError
from beltrami.model import Classifier, Inputs
from beltrami.scheme import Stats
from beltrami.train.cuda_graph import to_record
from beltrami.train.ema import ExponentialMovingAverage
from beltrami.train.loss_step import LossStep
from beltrami.train.objective import Consistency
from beltrami.train.update import Update
from beltrami.train.validation import AT_END, TimeGrid, Validation, ValidationScore, validate

MakeOptimiser = Callable[[list[dict[str, Any]]], Optimizer]


@dataclass(frozen=True)
class Training:
    """How to train.

    Args:
        epochs: passes over the graph, at most.
        optimiser: makes the optimiser from parameter groups, each with its weight decay.
        weight_decay: of every parameter outside the diffusivity.
        attention_decay: of the diffusivity's parameters; decay strong enough holds attention at uniform.
        patience: epochs without improvement of validation after which to stop.
        horizon: where along the trajectory validation looks.
        look_every: epochs between looks along the whole horizon; in between it reads the terminal time alone.
        average: decay of a running average of the weights, which is then what validation judges and the run keeps; 0
            for the weights themselves. Steadier where the validation nodes are few.
        consistency: agreement of several passes on all nodes, beside the cross-entropy.
        self_training: how many nodes of each class, those that the fit is most certain of, are labels of a second
            fit, which begins anew and is the one that counts (:func:`~beltrami.train.self_training`); 0 for one fit.
        record: whether steps are recorded as a CUDA graph; None for where that is possible. Values are the same.
    """

    epochs: int
    optimiser: MakeOptimiser
    weight_decay: float = 0.0
    attention_decay: float = 0.0
    patience: int = 100
    horizon: TimeGrid = field(default_factory=TimeGrid)
    look_every: int = 5
    average: float = 0.0
    consistency: Consistency = field(default_factory=Consistency)
    self_training: int = 0
    record: bool | None = None

    def __post_init__(self) -> None:
        if self.epochs < 1 or self.patience < 1 or self.look_every < 1:
            raise ValueError(
                "Training needs `epochs`, `patience` and `look_every` at least 1; "
                f"got {self.epochs}, {self.patience}, {self.look_every}."
            )
        if self.self_training < 0:
            raise ValueError(
                f"Training needs `self_training`, a number of nodes, at least 0; got {self.self_training}."
            )
        if not 0 <= self.average < 1:
            raise ValueError(f"Training needs `average` at least 0 and below 1; got {self.average}.")
        if self.weight_decay < 0 or self.attention_decay < 0:
            raise ValueError(
                f"weight decay must be at least 0; got {self.weight_decay} and, for attention, {self.attention_decay}."
            )

    @property
    def most_epochs(self) -> int:
        """Those of both fits, where nodes are adopted."""
        return 2 * self.epochs if self.self_training else self.epochs


@dataclass(frozen=True)
class Epoch:
    """What is known after an epoch, for a progress bar or a log."""

    number: int
    loss: float
    val_accuracy: float
    best: ValidationScore
    evaluations: int


@dataclass(frozen=True)
class Fit:
    """What training found; the model itself holds the weights of the best epoch.

    Where there were two fits, epochs are counted through both.
    """

    best: ValidationScore
    best_epoch: int
    epochs: int
    seconds: float
    stats: Stats

    def then(self, other: "Fit") -> "Fit":
        """The other fit, with what both of them took."""
        stats = Stats()
        stats.add(self.stats)
        stats.add(other.stats)
        return Fit(
            other.best,
            self.epochs + other.best_epoch,
            self.epochs + other.epochs,
            self.seconds + other.seconds,
            stats,
        )


def fit_once(
    model: Classifier,
    inputs: Inputs,
    y: Tensor,
    split: Split,
    training: Training,
    *,
    on_epoch: Callable[[Epoch], None] | None = None,
) -> Fit:
    """Train in place, by full-batch gradient steps on the objective; of the labels it sees those of training nodes."""
    check_classes(y, split, model.num_classes)
    record = to_record(model, training.record)
    judged, average = _judged(model, training.average)
    descent = LossStep(model, inputs, y, split.train, training.consistency)
    optimiser = training.optimiser(parameter_groups(model, training))
    update = Update(descent, optimiser, average, buffers=model.buffers(), record=record)
    look, glance = (
        Validation(judged, inputs, y, split, horizon=horizon, record=record) for horizon in (training.horizon, AT_END)
    )
    total, start = Stats(), time.perf_counter()
    best, best_epoch, weights = ValidationScore(-1.0, 0.0, 0.0), 0, _copy(model)
    number = 0
    for number in range(1, training.epochs + 1):
        looking = number % training.look_every == 0 or number == training.epochs
        try:
            descent.begin(number)
            loss = float(update(number))
            _check_loss(loss, number)
            total.add(descent.stats)
            reading = look() if looking else glance()
        except ValueError as error:  # the inputs were checked: a state that is no number comes from the weights
            _check_weights(model, number, error)
            raise
        if reading > best:
            best, best_epoch, weights = reading, number, _copy(judged)
        if on_epoch is not None:
            on_epoch(Epoch(number, loss, reading.accuracy, best, total.evaluations))
        if number - best_epoch >= training.patience:
            break
    model.load_state_dict(weights)
    best = max(best, validate(model, inputs, y, split, horizon=training.horizon))
    return Fit(best, best_epoch, number, time.perf_counter() - start, total)


def parameter_groups(model: Classifier, training: Training) -> list[dict[str, Any]]:
    """The diffusivity's parameters and all others, each with its own weight decay."""
    return decayed(dict(model.named_parameters()), training)


def decayed(named: Mapping[str, Tensor], training: Training) -> list[dict[str, Any]]:
    """As :func:`parameter_groups`, of the parameters of a model by their names, stacked or not."""
    attention = [tensor for name, tensor in named.items() if _is_attention(name)]
    others = [tensor for name, tensor in named.items() if not _is_attention(name)]
    groups = [(others, training.weight_decay), (attention, training.attention_decay)]
    return [{"params": parameters, "weight_decay": decay} for parameters, decay in groups if parameters]


def _is_attention(name: str) -> bool:
    """Whether a parameter of a model belongs to its diffusivity."""
    return name.startswith("evolution.") and ".diffusivity." in name


def _judged(model: Classifier, decay: float) -> tuple[Classifier, ExponentialMovingAverage | None]:
    """The model that is judged: one that follows the trained one, or with no decay that one itself."""
    if not decay:
        return model, None
    follower = copy.deepcopy(model).requires_grad_(False)
    return follower, ExponentialMovingAverage(_tensors(follower), _tensors(model), decay=decay)


def _tensors(model: Classifier) -> dict[str, Tensor]:
    """Parameters and buffers by name."""
    return {**dict(model.named_parameters()), **dict(model.named_buffers())}


def _check_loss(loss: float, number: int) -> None:
    if not math.isfinite(loss):
        raise SolverError(f"the loss became {loss} in epoch {number}: try a smaller learning rate or a shorter time.")


def _copy(model: Classifier) -> dict[str, Tensor]:
    return {name: tensor.detach().clone() for name, tensor in model.state_dict().items()}


def _check_weights(model: Classifier, number: int, cause: ValueError) -> None:
    if not all(bool(torch.isfinite(parameter).all()) for parameter in model.parameters()):
        raise SolverError(
            f"the weights became NaN or infinite in epoch {number}: try a smaller learning rate or a shorter time."
        ) from cause


def check_classes(y: Tensor, split: Split, num_classes: int) -> None:
    """Refuse labels and splits that nothing can be learned from."""
    if len(y) != split.num_nodes:
        raise ValueError(f"`y` has {len(y)} entries where the split has {split.num_nodes} nodes.")
    known = y[split.train | split.val]
    odd = known[(known < 0) | (known >= num_classes)]
    if len(odd):
        raise ValueError(
            f"`y` holds class {int(odd[0])} at a training or validation node; "
            f"the model's {num_classes} classes are counted from 0."
        )
    seen = torch.bincount(y[split.train], minlength=num_classes)
    missing = (seen == 0).nonzero()[:, 0].tolist()
    if missing:
        raise ValueError(
            f"class {missing[0]} has no training nodes ({len(missing)} of {num_classes} classes have none): "
            "give each class at least one, or leave it out."
        )
    if not bool(split.val.any()):
        raise ValueError("the split has no validation nodes: epoch and terminal time are chosen on them.")


def count_parameters(parameters: Iterable[Tensor]) -> int:
    """Learnable numbers."""
    return sum(parameter.numel() for parameter in parameters if parameter.requires_grad)
