"""How to train, as settings: consistency of several passes, distillation, decays, patience; and seeds."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Annotated, Any

import torch
from torch import Tensor
from torch.optim import Optimizer

from beltrami.arguments import NotNegative, Seed, checked
from beltrami.train.validation import TimeGrid

MakeOptimiser = Callable[[list[dict[str, Any]]], Optimizer]


@checked
@dataclass(frozen=True)
class Consistency:
    r"""Consistency of several passes with dropout, on labelled and unlabelled nodes (Feng et al. 2020).

    With :math:`p^{(k)}_i` the class probabilities of node i in pass k of K and :math:`\bar p_i` their mean,

    .. math:: \frac{w}{K n} \sum_{k, i} \| p^{(k)}_i - s(\bar p_i) \|^2, \qquad
        s(p)_c = p_c^{1 / \tau} / \sum_b p_b^{1 / \tau}.

    The sharpened mean is a target: no gradient passes through it. No label enters. An untrained model agrees best with
    itself by predicting one class for all nodes, and with few classes it may stay there: ``ramp`` avoids that.
    """

    weight: float = 0.0  # w; 0 for none
    passes: int = 1  # K; each costs a solve. With one, the target is the node's own sharpened prediction.
    temperature: float = 0.5  # tau in (0, 1]; the smaller, the nearer the target is to one class
    ramp: int = 0  # epochs over which w rises linearly from 0

    def __post_init__(self) -> None:
        if not 0 <= self.weight < float("inf") or self.passes < 1 or not 0 < self.temperature <= 1 or self.ramp < 0:
            raise ValueError(
                "Consistency needs `weight` and `ramp` at least 0, `passes` at least 1, `temperature` above 0 and at "
                f"most 1; got {self.weight}, {self.ramp}, {self.passes}, {self.temperature}."
            )

    def share(self, epoch: int) -> float:
        """Return the part of w that counts in an epoch, counted from 1."""
        return min(1.0, epoch / self.ramp) if self.ramp else 1.0

    def __call__(self, p: Tensor) -> Tensor:
        """Return the cost of class probabilities (K, n, classes)."""
        target = (p.detach().mean(0).log() / self.temperature).softmax(-1)
        return self.weight * (p - target).square().sum(-1).mean()


@checked
@dataclass(frozen=True)
class Distillation:
    r"""Soft targets from the rounds of training before (Hinton et al. 2015; Furlanello et al. 2018).

    Each round begins from the initial weights. With :math:`q_i` the mean over the rounds before of the probabilities
    of node i, at a training node its label, and :math:`p_i` the probabilities of the current round, the loss has

    .. math:: -\frac{w}{n} \sum_i \sum_c q_{ic} \log p_{ic}

    more from the second round on; of several passes the mean. Only labels of training nodes enter. The result is the
    model of the last round.
    """

    rounds: int = 1  # of training; 1 for no distillation
    weight: NotNegative = 1.0  # w

    def __post_init__(self) -> None:
        if self.rounds < 1:
            raise ValueError(f"Distillation needs `rounds` at least 1; got {self.rounds}.")

    def __call__(self, logits: Tensor, soft: Tensor) -> Tensor:
        """Return the cost of outputs (..., n, classes) for soft targets (n, classes)."""
        return -self.weight * (soft * logits.log_softmax(-1)).sum(-1).mean()


@checked
@dataclass(frozen=True)
class Training:
    """Settings of training."""

    epochs: int  # passes over the graph, at most
    # From parameter groups, each with its weight decay.
    optimiser: Annotated[MakeOptimiser, "such as partial(torch.optim.Adam, lr=0.01)"]
    weight_decay: NotNegative = 0.0  # of every parameter outside the diffusivity
    attention_decay: NotNegative = 0.0  # of the diffusivity's parameters; strong decay keeps attention uniform
    patience: int = 100  # epochs without improvement on validation nodes after which a run stops
    time_grid: TimeGrid = field(default_factory=TimeGrid)  # the times that validation chooses from
    validate_every: int = 5  # epochs between validations along the whole grid; the others evaluate T alone
    # Decay of an exponential moving average of the weights, which validation then scores and the run keeps; 0 for the
    # weights themselves. Steadier where validation nodes are few.
    ema: float = 0.0
    consistency: Consistency = field(default_factory=Consistency)
    # How many of the most certain nodes of each class become training nodes of a second round, which starts from the
    # initial weights and gives the result; 0 for none. For classification. With distillation, of all rounds but the
    # first, by the mean of the predictions of the rounds before.
    self_training: int = 0
    distillation: Distillation = field(default_factory=Distillation)
    cuda_graph: bool | None = None  # whether steps run as a CUDA graph; None for where possible. Values are the same.

    def __post_init__(self) -> None:
        least = {"epochs": 1, "patience": 1, "validate_every": 1}
        for name, bound in {**least, "self_training": 0}.items():
            if getattr(self, name) < bound:
                raise ValueError(f"Training needs `{name}` at least {bound}; got {getattr(self, name)}.")
        if not 0 <= self.ema < 1:
            raise ValueError(f"Training needs `ema` at least 0 and below 1; got {self.ema}.")

    @property
    def rounds(self) -> int:
        """How many times the model is trained from its initial weights."""
        return max(self.distillation.rounds, 2 if self.self_training else 1)

    @property
    def most_epochs(self) -> int:
        """The most epochs that all rounds can take."""
        return self.rounds * self.epochs

    def make_optimiser(self, parameters: Mapping[str, Tensor]) -> Optimizer:
        """Return a fresh optimiser of the parameters of a model by name: those of the diffusivity, and others."""
        attention = [name for name in parameters if name.startswith("evolution.") and ".diffusivity." in name]
        others = [name for name in parameters if name not in attention]
        groups = [(others, self.weight_decay), (attention, self.attention_decay)]
        return self.optimiser(
            [{"params": [parameters[n] for n in names], "weight_decay": decay} for names, decay in groups if names]
        )


def count_parameters(parameters: Iterable[Tensor]) -> int:
    """Return the number of learnable numbers."""
    return sum(parameter.numel() for parameter in parameters if parameter.requires_grad)


@checked
@contextmanager
def seeded(seed: Seed) -> Iterator[None]:
    """Run a block from this seed, on the CPU and every GPU, and restore the caller's random state after it."""
    devices = range(torch.cuda.device_count()) if torch.cuda.is_available() else ()
    with torch.random.fork_rng(devices=devices):
        torch.manual_seed(seed)
        yield
