"""Predictions at all nodes of a graph folder, in blocks: their files in the folder of a run, and their accuracies."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from beltrami.data.array_file import Array, new_array
from beltrami.data.graph_folder import TEST, VAL
from beltrami.errors import DataError
from beltrami.result import Accuracies
from beltrami.train import Classification

PREDICTIONS, PROBABILITY = "predictions.npy", "probability.npy"  # the class of every node, and its probability
CHUNK = 1 << 20  # nodes that are counted at once
Blocks = Iterable[tuple[slice, Tensor]]  # nodes with their outputs (k, classes)


@dataclass(frozen=True, eq=False)
class KnownNodes:
    """The classes (n,) and roles (n,) of all nodes, which may be memory maps, and the number of classes."""

    y: Array
    role: Array
    num_classes: int

    def accuracies(self, predictions: Iterable[tuple[slice, Array]]) -> Accuracies:
        """Return the accuracies of predictions; the classes of test nodes are read here. A class that no training node
        has is never predicted: such test nodes count as wrong, and in no class."""
        classes = self.num_classes
        counts = np.zeros((4, classes + 1), dtype=np.int64)  # validation nodes, correct ones; test nodes, correct ones
        for block, found in predictions:
            y, role = np.asarray(self.y[block]), np.asarray(self.role[block])
            bounded = np.where((y < 0) | (y >= classes), classes, y)
            for row, chosen in enumerate((role == VAL, role == TEST)):
                chosen &= y >= 0
                counts[2 * row] += np.bincount(bounded[chosen], minlength=classes + 1)
                counts[2 * row + 1] += np.bincount(bounded[chosen & (found == y)], minlength=classes + 1)
        val, val_right, test, test_right = counts.sum(1).tolist()
        shares = zip(counts[3, :-1].tolist(), counts[2, :-1].tolist(), strict=True)
        return Accuracies(
            val=100 * val_right / max(1, val),
            test=100 * test_right / max(1, test),
            per_class=[100 * right / every if every else None for right, every in shares],
        )

    def accuracies_of(self, outputs: Blocks) -> Accuracies:
        """Return the accuracies of a model by its outputs."""
        task = Classification(self.num_classes)
        return self.accuracies((block, task.prediction(logits).cpu().numpy()) for block, logits in outputs)

    def write(self, folder: Path, outputs: Blocks) -> Accuracies:
        """Write the predicted class of every node and its probability to two arrays, in blocks; return the
        accuracies."""
        task, shape = Classification(self.num_classes), (len(self.y),)
        with (
            new_array(folder / PREDICTIONS, shape=shape, dtype=np.int32) as predictions,
            new_array(folder / PROBABILITY, shape=shape, dtype=np.float32) as probability,
        ):
            for block, logits in outputs:
                predictions[block] = task.prediction(logits).cpu().numpy()
                probability[block] = task.probabilities(logits).amax(-1).cpu().numpy()
            return self.accuracies(_chunks(predictions))


def check_training_classes(y: Tensor, *, num_classes: int, name: str) -> None:
    """Refuse classes (k,) of the training nodes of the graph ``name`` that leave out one from 0 to num_classes - 1."""
    found = y.unique()
    missing = (found != torch.arange(len(found), device=y.device)).nonzero()
    first = int(missing[0]) if len(missing) else len(found)
    if first < num_classes:
        raise DataError(
            f"class {first} of {name} has no training nodes: number the classes from 0, and give each a training node."
        )


def _chunks(array: Array) -> Iterator[tuple[slice, Array]]:
    return ((slice(at, at + CHUNK), array[at : at + CHUNK]) for at in range(0, len(array), CHUNK))
