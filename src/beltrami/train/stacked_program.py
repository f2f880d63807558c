"""The program of many models of one architecture, with their weights stacked."""

from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

import torch
from torch import Tensor
from torch.nn.utils.rnn import pad_sequence

from beltrami.data import Split
from beltrami.model import Classifier, Inputs
from beltrami.model.captured_graph import replayed
from beltrami.scheme import Stats
from beltrami.train.base import Program
from beltrami.train.cuda_graph import OptimiserStep, should_capture
from beltrami.train.task import Task
from beltrami.train.training import Training
from beltrami.train.validation import AT_END, TimeGrid, ValidationScore
from beltrami.train.weights import ExponentialMovingAverage, StackedWeights, keep_rows

SHRINK = 0.75  # the program is rebuilt without the finished rows once at most this share of its rows goes on


class _Targets(NamedTuple):
    """Targets and node sets of the rows. A share is a node's weight in the mean over a set: 1 / size, or 0 outside."""

    y: Tensor  # (rows, n, ...)
    train: Tensor  # (rows, n): shares
    val: Tensor  # (rows, most): validation nodes, shorter lists padded with node 0
    val_y: Tensor  # (rows, most, ...): their targets
    val_shares: Tensor  # (rows, most): their shares, padded with 0
    soft: Tensor  # (rows, n, classes): soft targets of distillation; (rows, 0) for none

    @staticmethod
    def of(
        ys: Sequence[Tensor], splits: Sequence[Split], dtype: torch.dtype, soft: Sequence[Tensor] = ()
    ) -> "_Targets":
        # A run knows the targets of its own training and validation nodes; the others are 0 and have share 0.
        unknown = [(~(split.train | split.val)).nonzero()[:, 0] for split in splits]
        y = torch.stack([y.index_fill(0, nodes, 0) for y, nodes in zip(ys, unknown, strict=True)])
        train = torch.stack([split.train for split in splits]).to(dtype)
        val = [split.val.nonzero()[:, 0] for split in splits]
        shares = [each.new_full((len(each),), 1.0 / len(each), dtype=dtype) for each in val]
        nodes, rows = pad_sequence(val, batch_first=True), torch.arange(len(val), device=y.device)[:, None]
        padded = pad_sequence(shares, batch_first=True)
        stacked = torch.stack(list(soft)) if soft else train[:, :0]
        return _Targets(y, train / train.sum(1, keepdim=True), nodes, y[rows, nodes], padded, stacked)

    def rows(self, chosen: Tensor) -> "_Targets":
        return _Targets(*(tensor[chosen] for tensor in self))


class StackedProgram(Program):
    """The program of many models of one architecture, each with its own targets and split; arguments as for
    :func:`~beltrami.train.fit_many`, and soft targets of distillation (n, classes) for each model, if any. The models
    themselves change in ``restore_best`` alone."""

    def __init__(
        self,
        models: Sequence[Classifier],
        inputs: Inputs,
        ys: Sequence[Tensor],
        splits: Sequence[Split],
        training: Training,
        task: Task,
        soft: Sequence[Tensor] = (),
    ) -> None:
        self.models, self.inputs, self.training, self.task = models, inputs, training, task
        self.runs, self.stats = list(range(len(models))), Stats()
        self.weights = StackedWeights.of(models)
        self.evaluated = self.weights.copy() if training.ema else self.weights  # what validation scores and keeps
        self.best = self.weights.copy()
        dtype = next(iter(self.weights.params.values())).dtype
        self.targets = self.all_targets = _Targets.of(ys, splits, dtype, soft)
        self.optimiser = training.make_optimiser(self.weights.params)
        self.share = torch.ones((), device=ys[0].device)  # of consistency; a tensor, for CUDA graphs to read
        self._compile()

    def _compile(self) -> None:
        """Set up the step and the validations for the current rows."""
        capture = should_capture(self.weights.template, self.training.cuda_graph)
        buffers = [tensor for tensor in self.weights.tensors.values() if not tensor.requires_grad]
        ema = None
        if self.training.ema:
            ema = ExponentialMovingAverage(self.evaluated.tensors, self.weights.tensors, decay=self.training.ema)
        self._step = OptimiserStep(self._gradients, self.optimiser, ema, buffers=buffers, capture=capture)
        grids = (self.training.time_grid, AT_END)
        self._validations = {grid: self._validation(self.evaluated, self.targets, grid, capture) for grid in grids}

    @property
    def parameters(self) -> Iterable[Tensor]:
        return self.weights.params.values()

    def step(self, epoch: int) -> list[float]:
        self.weights.template.train()
        self.share.fill_(self.training.consistency.share(epoch))
        return list(self._step(epoch).tolist())

    def _gradients(self) -> Tensor:
        for parameter in self.weights.params.values():
            parameter.grad = None
        self.stats = Stats()
        losses = self.weights.apply(self._loss, self.targets.y, self.targets.train, self.targets.soft)
        losses.sum().backward()
        return losses.detach()

    def _loss(self, model: Classifier, y: Tensor, shares: Tensor, soft: Tensor) -> Tensor:
        consistency = self.training.consistency
        outputs = [model.run(self.inputs) for _ in range(consistency.passes)]
        for output in outputs:
            self.stats.add(output.stats)
        logits = torch.stack([output.logits for output in outputs])
        losses = self.task.loss(logits, y, reduction="none") @ shares
        loss = losses.mean() + torch.stack([output.cost for output in outputs]).mean()
        if consistency.weight:
            loss = loss + self.share * consistency(self.task.probabilities(logits))
        return loss + self.training.distillation(logits, soft) if soft.numel() else loss

    def validate(self, time_grid: TimeGrid) -> list[ValidationScore]:
        return self._validations[time_grid]()

    def _validation(
        self, weights: StackedWeights, targets: _Targets, time_grid: TimeGrid, capture: bool = False
    ) -> Callable[[], list[ValidationScore]]:
        """Return a function that computes the best score of every row over the times of ``time_grid``."""
        time = weights.template.time
        times = (0.0, *time_grid.times(time))

        def evaluate(model: Classifier, nodes: Tensor, y: Tensor, shares: Tensor) -> tuple[Tensor, Tensor]:
            outputs = model.logits_along(self.inputs, times, nodes=nodes)[1:]
            losses = self.task.loss(outputs, y, reduction="none") @ shares
            return self.task.metric(outputs, y, counted=shares > 0), losses

        @torch.no_grad()
        def metrics_and_losses() -> Tensor:  # (2, rows, times)
            weights.template.eval()
            chunk = None if targets.y.is_cuda else 1  # on a CPU the states of one run at all times exceed the cache
            return torch.stack(weights.apply(evaluate, targets.val, targets.val_y, targets.val_shares, chunk=chunk))

        values = replayed(metrics_and_losses, device=targets.y.device, capture=capture)
        return lambda: [time_grid.best(*row, time=time) for row in zip(*values().tolist(), strict=True)]

    def keep_best(self, rows: list[int]) -> None:
        if rows:
            runs = [self.runs[row] for row in rows]
            self.best.update(self.evaluated, self._index(rows), self._index(runs))

    def drop_all_but(self, rows: list[int]) -> None:
        if len(rows) > SHRINK * len(self.runs):
            return
        chosen, before = self._index(rows), self.weights
        self.weights = before.rows(chosen)
        keep_rows(self.optimiser, before.params, self.weights.params, chosen)
        self.evaluated = self.evaluated.rows(chosen) if self.training.ema else self.weights
        self.targets = self.targets.rows(chosen)
        self.runs = [self.runs[row] for row in rows]
        self._compile()

    def restore_best(self) -> None:
        for run, model in enumerate(self.models):
            self.best.write_to(model, run)

    def validate_best(self) -> list[ValidationScore]:
        return self._validation(self.best, self.all_targets, self.training.time_grid)()

    def _index(self, rows: list[int]) -> Tensor:
        return torch.tensor(rows, device=self.share.device)
