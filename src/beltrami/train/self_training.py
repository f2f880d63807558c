"""Targets of a round of training from the predictions of the rounds before: self-training and distillation."""

from collections.abc import Mapping
from dataclasses import dataclass, replace

import torch
import torch.nn.functional as F
from torch import Tensor

from beltrami.arguments import checked
from beltrami.data import Split
from beltrami.errors import as_classes
from beltrami.train.task import Classification, check_outputs
from beltrami.train.training import Training

LEAST = 1e-30  # a smaller probability counts as this one, because its logarithm must be finite


@checked
def self_training_labels(logits: Tensor, y: Tensor, split: Split, most: int) -> tuple[Tensor, Split]:
    r"""Return labels and split with the most certain nodes of each predicted class added to the training nodes.

    .. math:: S_c = \text{the } k \text{ largest } p_{ic} \text{ among } \{i \notin \text{train, val} :
        \mathrm{argmax}_{c'}\, p_{ic'} = c\}, \qquad p_i = \mathrm{softmax}\, \ell_i

    ``most`` is k; where there are fewer nodes, all of them are added. The label of an added node is its prediction; its
    entry of ``y`` is not read. It is no test node of the new split; results are computed on the split as it was.
    ``logits`` (n, classes), ``y`` (n,) -> ``y`` (n,).
    """
    check_outputs(logits, rows=split.num_nodes, name="logits")
    y = as_classes(y)
    if len(y) != split.num_nodes:
        raise ValueError(f"`y` has {len(y)} entries where the split has {split.num_nodes} nodes.")
    certainty, predicted = Classification(logits.shape[1]).probabilities(logits).max(1)
    free = ~(split.train | split.val)
    added = torch.zeros_like(free)
    for c in range(logits.shape[1]):
        nodes = (free & (predicted == c)).nonzero()[:, 0]
        order = certainty[nodes].argsort(descending=True, stable=True)
        added[nodes[order[:most]]] = True
    wider = replace(split, train=split.train | added, test=split.test & ~added, calibration=None)
    return torch.where(added, predicted.to(y.dtype), y), wider


@dataclass(frozen=True)
class RoundTargets:
    """What a round of training learns from: labels (n, ...), the split, and soft targets (n, classes) if any."""

    y: Tensor
    split: Split
    soft: Tensor | None = None

    def after(self, logits: Tensor, rounds: int, training: Training) -> "RoundTargets":
        """Return the targets of the next round, from these, whose labels and split are those of the first round, and
        the outputs (n, classes) of the last of so many ``rounds``."""
        y, split, soft = self.y, self.split, None
        if training.distillation.rounds > 1:
            p = logits.softmax(1)
            soft = p if self.soft is None else self.soft + (p - self.soft) / rounds
            soft = soft.clone()
            soft[split.train] = F.one_hot(y[split.train], logits.shape[1]).to(soft.dtype)
            logits = soft.clamp(min=LEAST).log() if rounds > 1 else logits
        if training.self_training:
            y, split = self_training_labels(logits, y, split, training.self_training)
        return RoundTargets(y, split, soft)

    def tensors(self) -> dict[str, Tensor]:
        """Return all that changes from round to round, for a checkpoint."""
        found = {"y": self.y, "train": self.split.train, "test": self.split.test}
        return found if self.soft is None else {**found, "soft": self.soft}

    @staticmethod
    def of_tensors(tensors: Mapping[str, Tensor], split: Split) -> "RoundTargets":
        """Return the targets with these :meth:`tensors`, of which ``split`` is the split of the first round."""
        found = {name: tensor.to(split.train.device) for name, tensor in tensors.items()}
        if not torch.equal(found["train"], split.train):
            split = replace(split, train=found["train"], test=found["test"], calibration=None)
        return RoundTargets(found["y"], split, found.get("soft"))
