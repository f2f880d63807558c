"""Ensembles: many runs, of other seeds and splits, trained as one program."""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial

import torch
from torch import Tensor
from torch.nn import functional as F
from torch.nn.utils.rnn import pad_sequence

from beltrami.data import Split
from beltrami.errors import SolverError
from beltrami.model import Classifier, Inputs
from beltrami.scheme import Stats
from beltrami.train.cuda_graph import replayed, to_record
from beltrami.train.ema import ExponentialMovingAverage
from beltrami.train.fit import Fit, Training, check_classes, decayed
from beltrami.train.stack import Stack, keep_rows
from beltrami.train.update import Update
from beltrami.train.validation import AT_END, TimeGrid, ValidationScore, best_reading

SHRINK = 0.75  # once no more than this share of the rows is still training, the others leave the program


def fit_many_once(
    models: Sequence[Classifier],
    inputs: Inputs,
    ys: Sequence[Tensor],
    splits: Sequence[Split],
    training: Training,
    *,
    on_epoch: Callable[[int, int], None] | None = None,
) -> list[Fit | SolverError]:
    """One round of :func:`~beltrami.train.fit_many`: each model as ``fit_once`` would train it, by labels of its own.

    Args:
        models: as many as splits, built alike from different seeds.
        inputs: prepared, the same for all.
        ys: the classes that each of them knows, (n,).
        splits: which nodes each of them trains and validates on.
        training: the same for all.
        on_epoch: told the epoch's number and how many runs go on.
    """
    if len(models) != len(splits) or not models:
        raise ValueError(f"fit_many needs a split for every model; got {len(models)} models, {len(splits)} splits.")
    if models[0].rewires:
        raise ValueError("fit_many cannot train models whose graph is made of their own state: use fit for each.")
    for cost in models[0].costs:
        if cost.differentiates:
            raise ValueError(f"fit_many cannot train with {type(cost).__name__}, which differentiates: use fit.")
    for y, split in zip(ys, splits, strict=True):
        check_classes(y, split, models[0].num_classes)
    start = time.perf_counter()
    records = [_Record() for _ in models]
    best = Stack.of(models).copy()
    program = _Program(Stack.of(models), inputs, ys, splits, training)
    for number in range(1, training.epochs + 1):
        looking = number % training.look_every == 0 or number == training.epochs
        for run, loss in zip(program.runs, program.step(), strict=True):
            records[run].count(number, loss, program.stats)
        readings = program.look(training.horizon if looking else AT_END)
        rows = [k for k, run in enumerate(program.runs) if records[run].improves(readings[k], number)]
        program.save(best, rows)
        going = [k for k, run in enumerate(program.runs) if records[run].goes_on(number, training.patience)]
        if on_epoch is not None:
            on_epoch(number, len(going))
        if not going:
            break
        program.shrink(going)
    last = _Program(best, inputs, ys, splits, training).look(training.horizon)
    for run, model in enumerate(models):
        best.write_to(model, run)
        records[run].best = max(records[run].best, last[run])
    seconds = time.perf_counter() - start
    return [record.outcome(seconds / len(models)) for record in records]


@dataclass
class _Record:
    """What is known of a run."""

    best: ValidationScore = field(default_factory=lambda: ValidationScore(-1.0, 0.0, 0.0))
    best_epoch: int = 0
    epochs: int = 0
    stats: Stats = field(default_factory=Stats)
    error: SolverError | None = None
    over: bool = False

    def count(self, number: int, loss: float, stats: Stats) -> None:
        """Count a step, unless the run is over and only fills its row."""
        if self.over:
            return
        self.epochs = number
        self.stats.add(stats)
        if not abs(loss) < float("inf"):
            self.over = True
            self.error = SolverError(
                f"the loss became {loss} in epoch {number}: try a smaller learning rate or a shorter time."
            )

    def improves(self, reading: ValidationScore, number: int) -> bool:
        if self.over or not reading > self.best:
            return False
        self.best, self.best_epoch = reading, number
        return True

    def goes_on(self, number: int, patience: int) -> bool:
        self.over = self.over or number - self.best_epoch >= patience
        return not self.over

    def outcome(self, seconds: float) -> Fit | SolverError:
        return self.error or Fit(self.best, self.best_epoch, self.epochs, seconds, self.stats)


class _Program:
    """The rows that are computed: which runs they are, and what each trains and validates on."""

    def __init__(
        self, stack: Stack, inputs: Inputs, ys: Sequence[Tensor], splits: Sequence[Split], training: Training
    ) -> None:
        self.stack, self.inputs, self.training = stack, inputs, training
        self.judged = stack.copy() if training.average else stack
        self.optimiser = training.optimiser(decayed(stack.params, training))
        self.runs = list(range(len(stack)))
        dtype = next(iter(stack.params.values())).dtype
        self.train = _shares([split.train for split in splits], dtype)
        # Of each run its own labels alone; all others, unknown or for the test, are a class that counts for nothing.
        self.y = torch.stack([y.where(split.train | split.val, 0) for y, split in zip(ys, splits, strict=True)])
        self.val, self.val_shares = _members([split.val for split in splits], dtype)
        self.stats = Stats()
        self.steps = 0
        self.share = torch.ones((), device=self.y.device)
        self._begin()

    def _begin(self) -> None:
        """What is recorded for the rows as they are."""
        record, stack = to_record(self.stack.make, self.training.record), self.stack
        decay = self.training.average
        average = ExponentialMovingAverage(self.judged.tensors, stack.tensors, decay=decay) if decay else None
        self.update = Update(self._descent, self.optimiser, average, buffers=stack.buffers.values(), record=record)
        self.readings = {
            horizon: replayed(partial(self._readings, horizon), device=self.y.device, record=record)
            for horizon in (self.training.horizon, AT_END)
        }

    def step(self) -> list[float]:
        """One step of every row; the losses before it."""
        self.stack.make.train()
        self.steps += 1
        self.share.fill_(self.training.consistency.share(self.steps))
        found: list[float] = self.update(self.steps).tolist()
        return found

    def look(self, horizon: TimeGrid) -> list[ValidationScore]:
        """The best reading of the validation nodes of every row."""
        ts = horizon.times(self.judged.make.time)
        right, loss = self.readings[horizon]().tolist()
        return [best_reading(*row, ts, horizon) for row in zip(right, loss, strict=True)]

    @torch.no_grad()
    def _readings(self, horizon: TimeGrid) -> Tensor:
        """Accuracy and loss of every row at each time, (2, rows, t)."""
        self.judged.make.eval()
        ts = horizon.times(self.judged.make.time)

        def read(model: Classifier, nodes: Tensor, y: Tensor, shares: Tensor) -> tuple[Tensor, Tensor]:
            logits = model.logits_along(self.inputs, (0.0, *ts), nodes=nodes)[1:]
            counted = shares > 0  # and counted, not summed by their shares: equal accuracies must be equal numbers
            right = ((logits.argmax(-1) == y) & counted).sum(-1).to(logits.dtype) / counted.sum()
            return right, _entropies(logits, y) @ shares

        chunk = None if self.y.is_cuda else 1  # on a CPU the states of one run at all times are more than its cache
        y = self.y.gather(1, self.val)
        return torch.stack(self.judged.apply(read, self.val, y, self.val_shares, chunk=chunk))

    def save(self, best: Stack, rows: list[int]) -> None:
        """Keep the weights of these rows as the best of their runs."""
        if rows:
            device = self.y.device
            runs = torch.tensor([self.runs[k] for k in rows], device=device)
            best.update(self.judged, torch.tensor(rows, device=device), runs)

    def shrink(self, going: list[int]) -> None:
        """Leave the rows out that are not going on, where that is worth a new program."""
        if len(going) > SHRINK * len(self.runs):
            return
        chosen = torch.tensor(going, device=self.y.device)
        before, self.stack = self.stack, self.stack.rows(chosen)
        keep_rows(self.optimiser, before, self.stack, chosen)
        self.judged = self.judged.rows(chosen) if self.training.average else self.stack
        self.runs = [self.runs[k] for k in going]
        self.train, self.y = self.train[chosen], self.y[chosen]
        self.val, self.val_shares = self.val[chosen], self.val_shares[chosen]
        self._begin()

    def _descent(self) -> Tensor:
        """Leaves the gradients at the stacked parameters; the losses, (rows,)."""
        for parameter in self.stack.params.values():
            parameter.grad = None
        self.stats = Stats()
        losses = self.stack.apply(self._loss, self.y, self.train)
        losses.sum().backward()
        return losses.detach()

    def _loss(self, model: Classifier, y: Tensor, shares: Tensor) -> Tensor:
        consistency = self.training.consistency
        outputs = [model.run(self.inputs) for _ in range(consistency.passes)]
        for output in outputs:
            self.stats.add(output.stats)
        logits = torch.stack([output.logits for output in outputs])
        loss = (_entropies(logits, y) @ shares).mean() + torch.stack([output.cost for output in outputs]).mean()
        return loss + self.share * consistency(logits) if consistency.weight else loss


def _entropies(logits: Tensor, y: Tensor) -> Tensor:
    """The cross-entropy of every node at each time or pass, (t, n, classes), (n,) -> (t, n)."""
    return F.cross_entropy(logits.movedim(-1, 1), y.expand(len(logits), -1), reduction="none")


def _shares(masks: Sequence[Tensor], dtype: torch.dtype) -> Tensor:
    """The share of each node in the mean over a mask, (runs, n)."""
    stacked = torch.stack(list(masks)).to(dtype)
    return stacked / stacked.sum(1, keepdim=True)


def _members(masks: Sequence[Tensor], dtype: torch.dtype) -> tuple[Tensor, Tensor]:
    """The nodes of each mask and their shares in its mean, (runs, most of them): fewer are followed by any, of none."""
    nodes = [mask.nonzero()[:, 0] for mask in masks]
    shares = [one.new_full((len(one),), 1.0 / len(one), dtype=dtype) for one in nodes]
    return pad_sequence(nodes, batch_first=True), pad_sequence(shares, batch_first=True)
