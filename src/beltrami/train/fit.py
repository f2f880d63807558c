"""fit: train a model on the labelled nodes of one split, choosing epoch and terminal time by validation."""

import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional as F
from torch.optim import Optimizer

from beltrami.data import Split
from beltrami.errors import SolverError
from beltrami.model import BLEND, Inputs
from beltrami.scheme import Stats
from beltrami.train.evaluate import Horizon, Reading, validate

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
    """

    epochs: int
    optimiser: MakeOptimiser
    weight_decay: float = 0.0
    attention_decay: float = 0.0
    patience: int = 100
    horizon: Horizon = field(default_factory=Horizon)
    look_every: int = 5

    def __post_init__(self) -> None:
        if self.epochs < 1 or self.patience < 1 or self.look_every < 1:
            raise ValueError(
                "Training needs `epochs`, `patience` and `look_every` at least 1; "
                f"got {self.epochs}, {self.patience}, {self.look_every}."
            )
        if self.weight_decay < 0 or self.attention_decay < 0:
            raise ValueError(
                f"weight decay must be at least 0; got {self.weight_decay} and, for attention, {self.attention_decay}."
            )


@dataclass(frozen=True)
class Epoch:
    """What is known after an epoch, for a progress bar or a log."""

    number: int
    loss: float
    val_accuracy: float
    best: Reading
    evaluations: int


@dataclass(frozen=True)
class Fit:
    """What training found; the model itself holds the weights of the best epoch."""

    best: Reading
    best_epoch: int
    epochs: int
    seconds: float
    stats: Stats


def fit(
    model: BLEND,
    inputs: Inputs,
    y: Tensor,
    split: Split,
    training: Training,
    *,
    on_epoch: Callable[[Epoch], None] | None = None,
) -> Fit:
    """Train in place, by full-batch gradient steps on the cross-entropy of the training nodes plus running costs."""
    _check_classes(y, split, model.xi.linear.out_features)
    optimiser = training.optimiser(parameter_groups(model, training))
    at_end = Horizon(multiple=1.0)
    total, start = Stats(), time.perf_counter()
    best, best_epoch, weights = Reading(-1.0, 0.0, 0.0), 0, _copy(model)
    number = 0
    for number in range(1, training.epochs + 1):
        loss = _step(model, inputs, y, split, optimiser, total, number)
        looking = number % training.look_every == 0 or number == training.epochs
        reading = validate(model, inputs, y, split, horizon=training.horizon if looking else at_end)
        if reading > best:
            best, best_epoch, weights = reading, number, _copy(model)
        if on_epoch is not None:
            on_epoch(Epoch(number, loss, reading.accuracy, best, total.evaluations))
        if number - best_epoch >= training.patience:
            break
    model.load_state_dict(weights)
    best = max(best, validate(model, inputs, y, split, horizon=training.horizon))
    return Fit(best, best_epoch, number, time.perf_counter() - start, total)


def parameter_groups(model: BLEND, training: Training) -> list[dict[str, Any]]:
    """The diffusivity's parameters and all others, each with its own weight decay."""
    attention = list(model.evolution.flow.diffusivity.parameters())
    chosen = {id(parameter) for parameter in attention}
    others = [parameter for parameter in model.parameters() if id(parameter) not in chosen]
    groups = [(others, training.weight_decay), (attention, training.attention_decay)]
    return [{"params": parameters, "weight_decay": decay} for parameters, decay in groups if parameters]


def _step(
    model: BLEND, inputs: Inputs, y: Tensor, split: Split, optimiser: Optimizer, total: Stats, number: int
) -> float:
    model.train()
    optimiser.zero_grad()
    output = model.run(inputs)
    loss = F.cross_entropy(output.logits[split.train], y[split.train]) + output.cost
    loss.backward()
    optimiser.step()
    total.add(output.stats)
    value = loss.item()
    if value != value or abs(value) == float("inf"):
        raise SolverError(f"the loss became {value} in epoch {number}: try a smaller learning rate or a shorter time.")
    return value


def _copy(model: BLEND) -> dict[str, Tensor]:
    return {name: tensor.detach().clone() for name, tensor in model.state_dict().items()}


def _check_classes(y: Tensor, split: Split, num_classes: int) -> None:
    if len(y) != split.num_nodes:
        raise ValueError(f"`y` has {len(y)} entries where the split has {split.num_nodes} nodes.")
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
