"""Tasks: the loss, the metric and the prediction for each kind of target."""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import ClassVar, Literal

import torch
from torch import Tensor
from torch.nn import functional as F

from beltrami.arguments import Count, checked
from beltrami.data.dataset import Dataset, Metric, Split
from beltrami.errors import as_classes
from beltrami.train.ranking import roc_auc

Reduction = Literal["none", "mean"]
INCOMPLETE = ("pei", "platonov")  # protocols whose training sets may lack a class: some of Texas and Cornell do


@checked
@dataclass(frozen=True)
class Task(ABC):
    """A kind of targets ``y``, one row per node, for a model with ``num_outputs`` outputs per node.

    ``exclusive``: whether a node has exactly one of the outputs as its class, as consistency and self-training need.

    Shapes:
        ``outputs`` (..., n, num_outputs): a model's outputs at n nodes, at any number of times or passes; ``y`` (n,) or
        (n, num_outputs).
    """

    num_outputs: Count
    exclusive: ClassVar[bool] = False

    @abstractmethod
    def loss(self, outputs: Tensor, y: Tensor, *, reduction: Reduction) -> Tensor:
        """Return the loss of every node, (..., n), or the mean over everything for ``reduction="mean"``."""

    @abstractmethod
    def metric(self, outputs: Tensor, y: Tensor, *, counted: Tensor | None = None) -> Tensor:
        """Return the number by which validation chooses, (...,); higher is better. ``counted``: a mask (n,) of the
        nodes that count; None for all of them."""

    @abstractmethod
    def prediction(self, outputs: Tensor) -> Tensor:
        """Return the predicted targets."""

    @abstractmethod
    def probabilities(self, outputs: Tensor) -> Tensor:
        """Return the probability of each class or label, (..., n, num_outputs)."""

    @abstractmethod
    def check_targets(self, y: Tensor, split: Split) -> None:
        """Refuse targets of training and validation nodes that do not belong to this task; other nodes are not read."""

    def convert(self, y: Tensor) -> Tensor:
        """Return targets of the type that the loss needs; refuse those that cannot be converted."""
        return y

    def check(self, y: Tensor, split: Split) -> None:
        """Refuse targets and splits that nothing can be learned from."""
        if len(y) != split.num_nodes:
            raise ValueError(f"`y` has {len(y)} entries where the split has {split.num_nodes} nodes.")
        if not bool(split.train.any()):
            raise ValueError("the split has no training nodes: choose at least one.")
        if not bool(split.val.any()):
            raise ValueError("the split has no validation nodes: epoch and terminal time are chosen on them.")
        self.check_targets(y, split)


@checked
@dataclass(frozen=True)
class Classification(Task):
    """One class of ``num_outputs`` per node: cross-entropy, scored by accuracy; ``y`` (n,) integers from 0.

    With ``class_weights`` a node counts by the weight of its class, in the loss and in the accuracy. ``scored_by``
    roc-auc, for two classes, is :func:`~beltrami.train.ranking.roc_auc`. ``complete``: refuse training sets that lack a
    class.
    """

    exclusive: ClassVar[bool] = True
    class_weights: tuple[float, ...] | None = None
    scored_by: Metric = "accuracy"
    complete: bool = True

    def __post_init__(self) -> None:
        if self.scored_by == "roc-auc" and self.num_outputs != 2:
            raise ValueError(f"`scored_by` roc-auc is for two classes; got {self.num_outputs}: use accuracy.")

    @staticmethod
    @checked
    def balanced(num_outputs: Count, y: Tensor) -> "Classification":
        """Return the task with weights n / (classes n_c), so that classes count the same; n_c of ``y`` (n,) are c."""
        y = as_classes(y)
        if len(y) and int(y.min()) < 0:
            raise ValueError(f"`y` holds class {int(y.min())}; classes start at 0: leave out nodes without a class.")
        counts = torch.bincount(y, minlength=num_outputs).clamp(min=1)
        return Classification(num_outputs, tuple((len(y) / (num_outputs * counts)).tolist()))

    @staticmethod
    def of_dataset(dataset: Dataset, split: Split) -> "Classification":
        """Return the task of a dataset, scored as its published results are."""
        return Classification(dataset.num_classes, scored_by=dataset.metric, complete=split.protocol not in INCOMPLETE)

    def convert(self, y: Tensor) -> Tensor:
        return as_classes(y)

    def loss(self, outputs: Tensor, y: Tensor, *, reduction: Reduction) -> Tensor:
        weight = None if self.class_weights is None else outputs.new_tensor(self.class_weights)
        return F.cross_entropy(outputs.movedim(-1, 1), y.expand(outputs.shape[:-1]), weight, reduction=reduction)

    def metric(self, outputs: Tensor, y: Tensor, *, counted: Tensor | None = None) -> Tensor:
        if self.scored_by == "roc-auc":
            return roc_auc(outputs[..., 1] - outputs[..., 0], y, counted=counted)
        right = self.prediction(outputs) == y
        if self.class_weights is not None:
            weight = outputs.new_tensor(self.class_weights)[y]
            weight = weight if counted is None else weight * counted
            return (right * weight).sum(-1) / weight.sum()
        if counted is None:
            return right.to(outputs.dtype).mean(-1)
        return (right & counted).sum(-1).to(outputs.dtype) / counted.sum()  # a count: equal accuracies are equal floats

    def prediction(self, outputs: Tensor) -> Tensor:
        """Return the class of the largest output, (..., n)."""
        return outputs.argmax(-1)

    def probabilities(self, outputs: Tensor) -> Tensor:
        return outputs.softmax(-1)

    def check_targets(self, y: Tensor, split: Split) -> None:
        known = y[split.train | split.val]
        odd = known[(known < 0) | (known >= self.num_outputs)]
        if len(odd):
            raise ValueError(
                f"`y` holds class {int(odd[0])} at a training or validation node; "
                f"the model's {self.num_outputs} classes are counted from 0."
            )
        missing = (torch.bincount(y[split.train], minlength=self.num_outputs) == 0).nonzero()[:, 0].tolist()
        if missing and self.complete:
            raise ValueError(
                f"class {missing[0]} has no training nodes ({len(missing)} of {self.num_outputs} classes have none): "
                "give each class at least one, or leave it out."
            )


@checked
@dataclass(frozen=True)
class MultiLabel(Task):
    r"""Any subset of ``num_outputs`` labels per node: binary cross-entropy, a mean over the labels, scored by micro-F1,

    .. math:: F_1 = 2 \mathrm{TP} / (2 \mathrm{TP} + \mathrm{FP} + \mathrm{FN}),

    counted over all nodes and labels; 0 without any positive. Most labels are absent at most nodes: the share of right
    entries would reward a model that predicts none, and the share of nodes with every label right ignores near misses.
    ``y`` (n, num_outputs) has 0 and 1, of any dtype.
    """

    def loss(self, outputs: Tensor, y: Tensor, *, reduction: Reduction) -> Tensor:
        losses = F.binary_cross_entropy_with_logits(outputs, y.to(outputs.dtype).expand_as(outputs), reduction="none")
        return losses.mean() if reduction == "mean" else losses.mean(-1)

    def metric(self, outputs: Tensor, y: Tensor, *, counted: Tensor | None = None) -> Tensor:
        predicted, true = self.prediction(outputs), y > 0
        if counted is not None:
            predicted, true = predicted & counted[:, None], true & counted[:, None]
        hits, total = (predicted & true).sum((-2, -1)), predicted.sum((-2, -1)) + true.sum()  # 2 TP + FP + FN
        return 2 * hits.to(outputs.dtype) / total.clamp(min=1)

    def prediction(self, outputs: Tensor) -> Tensor:
        """Return whether each label is more likely present than absent, (..., n, num_outputs)."""
        return outputs > 0

    def probabilities(self, outputs: Tensor) -> Tensor:
        return outputs.sigmoid()

    def check_targets(self, y: Tensor, split: Split) -> None:
        if y.shape != (len(y), self.num_outputs):
            raise ValueError(f"MultiLabel needs `y` of shape (n, {self.num_outputs}); got {tuple(y.shape)}.")
        known = y[split.train | split.val]
        odd = known[(known != 0) & (known != 1)]
        if len(odd):
            raise ValueError(f"MultiLabel needs `y` of 0 and 1; a training or validation node has {odd[0].item()}.")
        missing = (~(y[split.train] > 0).any(0)).nonzero()[:, 0].tolist()
        if missing:
            raise ValueError(f"label {missing[0]} is present at no training node: leave it out, or train on others.")


@checked
@dataclass(frozen=True)
class Regression(Task):
    r"""``num_outputs`` real numbers per node: mean squared error, scored by the negative root of it,

    .. math:: -\sqrt{\tfrac{1}{n d} \sum_{i, c} (\hat y_{ic} - y_{ic})^2},

    which has the units of ``y``. R^2 would choose the same epochs, but is undefined for nodes of one common target.
    ``y`` (n, num_outputs), or (n,) for one target, is floating point.
    """

    num_outputs: Count = 1

    def loss(self, outputs: Tensor, y: Tensor, *, reduction: Reduction) -> Tensor:
        squares = (outputs - y.reshape(-1, self.num_outputs)).square()
        return squares.mean() if reduction == "mean" else squares.mean(-1)

    def metric(self, outputs: Tensor, y: Tensor, *, counted: Tensor | None = None) -> Tensor:
        squares = self.loss(outputs, y, reduction="none")
        mean = squares.mean(-1) if counted is None else (squares * counted).sum(-1) / counted.sum()
        return -mean.sqrt()

    def prediction(self, outputs: Tensor) -> Tensor:
        """Return the outputs, without their last dimension for one target."""
        return outputs.squeeze(-1) if self.num_outputs == 1 else outputs

    def probabilities(self, outputs: Tensor) -> Tensor:
        raise ValueError("Regression has no classes, and so no probabilities.")

    def check_targets(self, y: Tensor, split: Split) -> None:
        shapes = [(len(y), self.num_outputs)] + [(len(y),)] * (self.num_outputs == 1)
        if y.shape not in shapes:
            raise ValueError(f"Regression needs `y` of shape (n, {self.num_outputs}); got {tuple(y.shape)}.")
        if not y.is_floating_point():
            raise ValueError(f"Regression needs floating-point `y`; got {y.dtype}. Try `y.float()`.")
        if not bool(torch.isfinite(y[split.train | split.val]).all()):
            raise ValueError("Regression needs finite `y`; a training or validation node has NaN or infinity.")


def check_outputs(outputs: Tensor, *, rows: int, name: str) -> None:
    """Refuse anything but a dense floating-point matrix with a row for every target."""
    if outputs.dim() != 2 or len(outputs) != rows:
        raise ValueError(f"`{name}` must have shape ({rows}, outputs), one row per node; got {tuple(outputs.shape)}.")
    if not outputs.is_floating_point() or outputs.layout != torch.strided:
        raise ValueError(f"`{name}` must be dense and floating point; got {outputs.dtype}, {outputs.layout}.")


@checked
def accuracy(logits: Tensor, y: Tensor) -> float:
    """Return the share of rows whose largest score is at the class, 0 for no rows; (n, classes), (n,)."""
    y = as_classes(y)
    check_outputs(logits, rows=len(y), name="logits")
    return float(Classification(logits.shape[-1]).metric(logits, y)) if len(y) else 0.0


@checked
def per_class_accuracy(logits: Tensor, y: Tensor, num_classes: Count) -> list[float | None]:
    """Return the accuracy on the nodes of each class; None for a class without nodes. (n, classes), (n,)."""
    y = as_classes(y)
    check_outputs(logits, rows=len(y), name="logits")
    of_class = [y == c for c in range(num_classes)]
    return [accuracy(logits[mask], y[mask]) if bool(mask.any()) else None for mask in of_class]
