"""Validation: the metric along the trajectory, the best time on validation nodes, and the test metric."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from beltrami.arguments import NotNegative, checked
from beltrami.data import Split
from beltrami.model import Classifier, Inputs
from beltrami.model.captured_graph import replayed
from beltrami.train.task import Classification, Task, check_outputs

MAX_TIMES = 10_000  # of a grid


@dataclass(frozen=True, order=True)
class ValidationScore:
    """The validation metric at a time of the flow; ordered by the metric, then by the smaller loss."""

    metric: float
    minus_loss: float
    time: float

    @property
    def accuracy(self) -> float:
        """The metric, by its name for classification."""
        return self.metric


@checked
@dataclass(frozen=True)
class TimeGrid:
    """The times at which validation evaluates the model: from T / ``resolution`` to ``multiple`` T."""

    multiple: float = 3.0  # of the terminal time T; 1 for T alone
    resolution: int = 8  # times per T
    patience: int = 12  # times without improvement after which later ones are not considered

    def __post_init__(self) -> None:
        if not 1 <= self.multiple < float("inf") or self.resolution < 1 or self.patience < 1:
            raise ValueError(
                "TimeGrid needs `multiple`, `resolution` and `patience` at least 1 and finite; "
                f"got {self.multiple}, {self.resolution}, {self.patience}."
            )
        if self.multiple * self.resolution > MAX_TIMES:
            raise ValueError(
                f"a time grid has at most {MAX_TIMES} times, and `multiple` {self.multiple:g} with `resolution` "
                f"{self.resolution} makes more: choose a smaller one."
            )

    def times(self, time: float) -> tuple[float, ...]:
        """Return the grid for the terminal time ``time``; a model without a time, 0, is evaluated once."""
        if self.multiple == 1 or time == 0:
            return (time,)
        last = int(self.multiple * self.resolution)
        return tuple(time if k == self.resolution else time * k / self.resolution for k in range(1, last + 1))

    def best(self, metrics: Sequence[float], losses: Sequence[float], *, time: float) -> ValidationScore:
        """Return the best score on the grid for the terminal time ``time``, as far as patience reaches."""
        scores = [ValidationScore(a, -b, t) for a, b, t in zip(metrics, losses, self.times(time), strict=True)]
        best, since = scores[0], 0
        for score in scores[1:]:
            best, since = (score, 0) if score > best else (best, since + 1)
            if since >= self.patience:
                break
        return best


AT_END = TimeGrid(multiple=1.0)  # the terminal time alone


def make_validation(
    model: Classifier, inputs: Inputs, y: Tensor, split: Split, time_grid: TimeGrid, task: Task, capture: bool = False
) -> Callable[[], ValidationScore]:
    """Return a function that computes the best score of the validation nodes over the times of ``time_grid``; with
    ``capture`` it replays a CUDA graph."""
    nodes = split.val.nonzero()[:, 0]
    targets, times = y[nodes], (0.0, *time_grid.times(model.time))

    @torch.no_grad()
    def metrics_and_losses() -> Tensor:
        model.eval()
        outputs = model.logits_along(inputs, times, nodes=nodes)[1:]  # (times, nodes, outputs)
        return torch.stack((task.metric(outputs, targets), task.loss(outputs, targets, reduction="none").mean(-1)))

    values = replayed(metrics_and_losses, device=y.device, capture=capture)
    return lambda: time_grid.best(*values().tolist(), time=model.time)


@checked
@torch.no_grad()
def predict(model: Classifier, inputs: Inputs, *, time: NotNegative) -> Tensor:
    """Return the outputs at every node with the flow stopped at ``time``, (n, outputs)."""
    model.eval()
    return model.logits_along(inputs, (0.0, time))[-1]


@checked
def read_test(outputs: Tensor, y: Tensor, split: Split, *, task: Task | None = None) -> float:
    """Return the metric on the test nodes, by default the accuracy; 0 without test nodes. No other function reads their
    targets: call it once, after every choice is made."""
    task = Classification(max(1, outputs.shape[-1] if outputs.dim() else 1)) if task is None else task
    y = task.convert(y)
    if len(y) != split.num_nodes:
        raise ValueError(f"`y` has {len(y)} entries where the split has {split.num_nodes} nodes.")
    check_outputs(outputs, rows=len(y), name="outputs")
    return float(task.metric(outputs[split.test], y[split.test])) if bool(split.test.any()) else 0.0
