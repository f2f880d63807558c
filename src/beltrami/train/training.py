"""Training: how to train, as settings; and seeds."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor
from torch.optim import Optimizer

from beltrami.train.objective import Consistency
from beltrami.train.task import Task
from beltrami.train.validation import TimeGrid

MakeOptimiser = Callable[[list[dict[str, Any]]], Optimizer]


@dataclass(frozen=True)
class Training:
    """Settings of training.

    Args:
        epochs: passes over the graph, at most.
        optimiser: makes the optimiser from parameter groups, each with its weight decay.
        weight_decay: of every parameter outside the diffusivity.
        attention_decay: of the diffusivity's parameters; strong decay keeps attention uniform.
        patience: epochs without improvement on validation nodes after which a run stops.
        time_grid: the times of the trajectory that validation chooses from.
        validate_every: epochs between validations along the whole grid; the others evaluate the terminal time alone.
        ema: decay of an exponential moving average of the weights, which validation then scores and the run keeps; 0
            for the weights themselves. Steadier where validation nodes are few.
        consistency: consistency of several passes on all nodes, added to the loss of a classification.
        self_training: how many of the most certain nodes of each class become training nodes of a second round, which
            starts from the initial weights and gives the result; 0 for one round. For classification.
        cuda_graph: whether steps run as a CUDA graph; None for wherever possible. Values are the same.
    """

    epochs: int
    optimiser: MakeOptimiser
    weight_decay: float = 0.0
    attention_decay: float = 0.0
    patience: int = 100
    time_grid: TimeGrid = field(default_factory=TimeGrid)
    validate_every: int = 5
    ema: float = 0.0
    consistency: Consistency = field(default_factory=Consistency)
    self_training: int = 0
    cuda_graph: bool | None = None

    def __post_init__(self) -> None:
        if self.epochs < 1 or self.patience < 1 or self.validate_every < 1:
            raise ValueError(
                "Training needs `epochs`, `patience` and `validate_every` at least 1; "
                f"got {self.epochs}, {self.patience}, {self.validate_every}."
            )
        if self.self_training < 0:
            raise ValueError(
                f"Training needs `self_training`, a number of nodes, at least 0; got {self.self_training}."
            )
        if not 0 <= self.ema < 1:
            raise ValueError(f"Training needs `ema` at least 0 and below 1; got {self.ema}.")
        if self.weight_decay < 0 or self.attention_decay < 0:
            raise ValueError(f"weight decay must be at least 0; got {self.weight_decay} and {self.attention_decay}.")

    @property
    def most_epochs(self) -> int:
        """The most epochs that all rounds can take."""
        return 2 * self.epochs if self.self_training else self.epochs

    def check_task(self, task: Task) -> None:
        """Refuse settings that the task does not allow."""
        if (self.consistency.weight or self.self_training) and not task.exclusive:
            need = "`consistency` and `self_training` need a task with one class per node"
            raise ValueError(f"{need}; got {type(task).__name__}: set them to 0.")

    def parameter_groups(self, parameters: Mapping[str, Tensor]) -> list[dict[str, Any]]:
        """Return the parameters of a model by name, stacked or not, as groups: those of the diffusivity and others."""
        attention = [tensor for name, tensor in parameters.items() if _is_attention(name)]
        others = [tensor for name, tensor in parameters.items() if not _is_attention(name)]
        groups = [(others, self.weight_decay), (attention, self.attention_decay)]
        return [{"params": tensors, "weight_decay": decay} for tensors, decay in groups if tensors]

    def make_optimiser(self, parameters: Mapping[str, Tensor]) -> Optimizer:
        """Return a fresh optimiser of the parameters of a model by name."""
        return self.optimiser(self.parameter_groups(parameters))


def _is_attention(name: str) -> bool:
    return name.startswith("evolution.") and ".diffusivity." in name


def count_parameters(parameters: Iterable[Tensor]) -> int:
    """Return the number of learnable numbers."""
    return sum(parameter.numel() for parameter in parameters if parameter.requires_grad)


@contextmanager
def seeded(seed: int) -> Iterator[None]:
    """Run a block from this seed, on the CPU and every GPU, and restore the caller's random state after it."""
    devices = range(torch.cuda.device_count()) if torch.cuda.is_available() else ()
    with torch.random.fork_rng(devices=devices):
        torch.manual_seed(seed)
        yield
