"""Training on rows of diffused features in minibatches that are read from files while the one before is trained on."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import TypeVar

import numpy as np
import torch
from torch import Tensor

from beltrami.arguments import Count, Seed, checked
from beltrami.data.array_file import Array
from beltrami.errors import SolverError
from beltrami.model.row_network import RowNetwork
from beltrami.scale.diffused_rows import DiffusedRows
from beltrami.train.callback import AnyCallback, follow
from beltrami.train.checkpoint import Checkpoints
from beltrami.train.loop import Fit, Loop
from beltrami.train.program import ModelProgram
from beltrami.train.task import Classification
from beltrami.train.training import Training
from beltrami.train.validation import TimeGrid, ValidationScore

T = TypeVar("T")
S = TypeVar("S")
BLOCK_BYTES = 1 << 26  # of rows that are read at once where nothing is trained


@dataclass(frozen=True, eq=False)
class LabelledNodes:
    """Some nodes, ascending (k,), and their classes (k,)."""

    nodes: Array
    y: Tensor

    def __len__(self) -> int:
        return len(self.nodes)


class RowProgram(ModelProgram[RowNetwork]):
    """The program of a network on rows: an epoch is a gradient step for each minibatch of the training nodes.

    The order of the nodes in an epoch depends on ``seed`` and the number of the epoch alone, so that a training that
    goes on from a checkpoint sees the same minibatches. Within a minibatch nodes ascend, as a disk reads them fastest.
    """

    def __init__(
        self,
        model: RowNetwork,
        rows: DiffusedRows,
        train: LabelledNodes,
        val: LabelledNodes,
        training: Training,
        *,
        batch: int,
        seed: int,
    ) -> None:
        super().__init__(model, self._gradients, training, device=model.mixture.device)
        self.rows, self.train, self.val, self.batch, self.seed = rows, train, val, batch, seed
        self.task = Classification(model.num_classes)
        self._batch: tuple[Tensor, Tensor] | None = None  # rows and classes of the current minibatch

    def step(self, epoch: int) -> list[float]:
        order = np.random.default_rng((self.seed, epoch)).permutation(len(self.train))
        batches = [np.sort(order[start : start + self.batch]) for start in range(0, len(order), self.batch)]
        total = torch.zeros((), dtype=torch.float64, device=self._device)
        for number, (chosen, rows) in enumerate(prefetched(self._read, batches), (epoch - 1) * len(batches) + 1):
            self._batch = rows.to(self.model.mixture), self.train.y[torch.from_numpy(chosen)].to(self._device)
            total += len(chosen) * self._step(number)
        return [float(total) / len(self.train)]

    def _read(self, chosen: Array) -> Tensor:
        return self.rows.read(self.train.nodes[chosen])

    def _gradients(self) -> Tensor:
        assert self._batch is not None
        rows, y = self._batch
        self.model.train()
        self.model.zero_grad(set_to_none=True)
        loss = self.task.loss(self.model.from_rows(rows), y, reduction="mean")
        loss.backward()
        return loss.detach()

    def validate(self, time_grid: TimeGrid) -> list[ValidationScore]:
        return [self._score(self.evaluated)]

    def validate_best(self) -> list[ValidationScore]:
        return [self._score(self.model)]

    @torch.no_grad()
    def _score(self, model: RowNetwork) -> ValidationScore:
        right, loss = 0, 0.0
        for block, logits in outputs_at(model, self.rows, self.val.nodes):
            y = self.val.y[block].to(logits.device)
            right += int((self.task.prediction(logits) == y).sum())
            loss += float(self.task.loss(logits, y, reduction="none").sum())
        return ValidationScore(right / len(self.val), -loss / len(self.val), model.mean_time)

    def first_nonfinite(self) -> str:
        odd = (name for name, weights in self.model.named_parameters() if not bool(weights.isfinite().all()))
        return next((f"the weights `{name}`" for name in odd), "the outputs or their gradient")


@checked
def fit_rows(
    model: RowNetwork,
    rows: DiffusedRows,
    train: LabelledNodes,
    val: LabelledNodes,
    training: Training,
    *,
    batch: Count,
    seed: Seed = 0,
    callbacks: Iterable[AnyCallback] = (),
    checkpoints: Checkpoints | None = None,
) -> Fit:
    """Train a network in place by minibatches of rows; the validation nodes choose the epoch.

    With ``batch`` at least the number of training nodes, an epoch is one full-batch step. The time of the result is the
    mean time of the learned mixture. ``callbacks`` and ``checkpoints`` as for :func:`~beltrami.train.fit`.
    """
    _check(model, rows, train, val, training)
    loop = Loop(RowProgram(model, rows, train, val, training, batch=batch, seed=seed), training)
    state = None if checkpoints is None else checkpoints.read()
    if state is not None:
        loop.go_on_from(state)
    keeping = [] if checkpoints is None else [lambda epoch: checkpoints.after(epoch, loop)]
    follow(loop, [*callbacks, *keeping])
    (result,) = loop.finish()
    if isinstance(result, SolverError):
        raise result
    return result


@torch.no_grad()
def outputs_at(model: RowNetwork, rows: DiffusedRows, nodes: Array | None = None) -> Iterator[tuple[slice, Tensor]]:
    """Yield the outputs at ``nodes``, ascending, or at all nodes, in blocks: a range of positions and (k, classes)."""
    model.eval()
    count = rows.num_nodes if nodes is None else len(nodes)
    size = max(1, BLOCK_BYTES // (8 * len(rows.times) * rows.num_features))
    blocks = [slice(start, min(start + size, count)) for start in range(0, count, size)]
    for block, read in prefetched(lambda block: rows.read(block if nodes is None else nodes[block]), blocks):
        yield block, model.from_rows(read.to(model.mixture))


def prefetched(read: Callable[[S], T], items: Sequence[S]) -> Iterator[tuple[S, T]]:
    """Yield each item with what was read for it; a thread reads for the next item meanwhile."""
    with ThreadPoolExecutor(1) as thread:
        coming = [thread.submit(read, item) for item in items[:1]]
        for number, item in enumerate(items):
            found = coming.pop().result()
            coming += [thread.submit(read, each) for each in items[number + 1 : number + 2]]
            yield item, found


def _check(model: RowNetwork, rows: DiffusedRows, train: LabelledNodes, val: LabelledNodes, training: Training) -> None:
    if (model.times, model.features) != (rows.times, rows.num_features):
        raise ValueError(
            f"the network is for {model.features} features at the times {model.times}; the rows have "
            f"{rows.num_features} at {rows.times}."
        )
    for name, known in (("train", train), ("val", val)):
        if not len(known) or len(known.y) != len(known):
            raise ValueError(f"`{name}` needs at least one node, and a class for each; got {len(known)} nodes.")
        if int(known.y.min()) < 0 or int(known.y.max()) >= model.num_classes:
            odd = int(known.y.min()) if int(known.y.min()) < 0 else int(known.y.max())
            raise ValueError(f"`{name}` has class {odd}; the network's {model.num_classes} are counted from 0.")
    if training.consistency.weight or training.rounds > 1 or training.cuda_graph:
        settings = "`consistency`, `self_training`, `distillation` and `cuda_graph`"
        raise ValueError(f"training on rows has none of {settings}: leave them out.")
