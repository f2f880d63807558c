"""Evaluation: accuracy along the trajectory, the best time by validation, and the one reading of the test set."""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn import functional as F

from beltrami.data import Split
from beltrami.model import Classifier, Inputs
from beltrami.train.cuda_graph import replayed


@dataclass(frozen=True, order=True)
class ValidationScore:
    """Validation accuracy at a time of the flow; ordered by accuracy, then by the smaller loss."""

    accuracy: float
    minus_loss: float
    time: float


@dataclass(frozen=True)
class TimeGrid:
    """The times at which validation looks: from T / ``resolution`` to ``multiple`` T.

    Args:
        multiple: how far beyond the terminal time T to look; 1 for T alone.
        resolution: readings per T.
        patience: readings without improvement after which the rest is not looked at.
    """

    multiple: float = 3.0
    resolution: int = 8
    patience: int = 12

    def __post_init__(self) -> None:
        if not 1 <= self.multiple < float("inf") or self.resolution < 1 or self.patience < 1:
            raise ValueError(
                "Horizon needs `multiple`, `resolution` and `patience` at least 1 and finite; "
                f"got {self.multiple}, {self.resolution}, {self.patience}."
            )

    def times(self, time: float) -> tuple[float, ...]:
        """For the terminal time ``time``; for none, 0, one look."""
        if self.multiple == 1 or time == 0:
            return (time,)
        last = int(self.multiple * self.resolution)
        return tuple(time if k == self.resolution else time * k / self.resolution for k in range(1, last + 1))


AT_END = TimeGrid(multiple=1.0)
"""A look at the terminal time alone."""


def accuracy(logits: Tensor, y: Tensor) -> float:
    """Share of rows whose largest score is at the class; (n, classes), (n,)."""
    return float((logits.argmax(-1) == y).float().mean()) if len(y) else 0.0


class Validation:
    """The best reading of the validation nodes, to be taken again and again as the model learns.

    Args:
        model: the one that is read.
        inputs: prepared.
        y: classes, (n,).
        split: whose validation nodes are read.
        horizon: the times looked at.
        record: whether to record the reading as a CUDA graph.
    """

    def __init__(
        self, model: Classifier, inputs: Inputs, y: Tensor, split: Split, *, horizon: TimeGrid, record: bool = False
    ) -> None:
        self.model, self.inputs, self.horizon = model, inputs, horizon
        self.nodes = split.val.nonzero()[:, 0]
        self.target = y[self.nodes]
        self.ts = horizon.times(model.time)
        self._read = replayed(self._readings, device=y.device, record=record)

    def __call__(self) -> ValidationScore:
        right, loss = self._read().tolist()
        return best_reading(right, loss, self.ts, self.horizon)

    @torch.no_grad()
    def _readings(self) -> Tensor:
        """Accuracy and loss at each time, (2, len(ts))."""
        self.model.eval()
        logits = self.model.logits_along(self.inputs, (0.0, *self.ts), nodes=self.nodes)[1:]  # (t, val, classes)
        right = (logits.argmax(-1) == self.target).to(logits.dtype).mean(-1)
        target = self.target.expand(len(self.ts), -1)
        loss = F.cross_entropy(logits.movedim(-1, 1), target, reduction="none").mean(-1)
        return torch.stack((right, loss))


def validate(model: Classifier, inputs: Inputs, y: Tensor, split: Split, *, horizon: TimeGrid) -> ValidationScore:
    """The best reading of the validation nodes over the times of ``horizon``."""
    return Validation(model, inputs, y, split, horizon=horizon)()


def best_reading(
    right: Sequence[float], loss: Sequence[float], ts: Sequence[float], horizon: TimeGrid
) -> ValidationScore:
    """The best of the readings at ``ts``, looking no further than the horizon's patience."""
    readings = [ValidationScore(a, -b, t) for a, b, t in zip(right, loss, ts, strict=True)]
    best, since = readings[0], 0
    for reading in readings[1:]:
        best, since = (reading, 0) if reading > best else (best, since + 1)
        if since >= horizon.patience:
            break
    return best


@torch.no_grad()
def predict(model: Classifier, inputs: Inputs, *, time: float) -> Tensor:
    """Class scores of every node with the flow stopped at ``time``, (n, classes)."""
    model.eval()
    return model.logits_along(inputs, (0.0, time))[-1]


def read_test(logits: Tensor, y: Tensor, split: Split) -> float:
    """Test accuracy. The only code that looks at the labels of test nodes: call it once, after every choice is made."""
    return accuracy(logits[split.test], y[split.test])
