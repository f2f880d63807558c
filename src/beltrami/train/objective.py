"""The training loss: the loss of labelled nodes, running costs, and consistency of several passes on all nodes."""

from dataclasses import dataclass

import torch
from torch import Tensor

from beltrami.model import Classifier, Inputs
from beltrami.scheme import Stats
from beltrami.train.task import Task


@dataclass(frozen=True)
class Consistency:
    r"""Consistency of several passes with dropout, on labelled and unlabelled nodes (Feng et al. 2020).

    With :math:`p^{(k)}_i` the class probabilities of node i in pass k of K and :math:`\bar p_i` their mean,

    .. math:: \frac{w}{K n} \sum_{k, i} \| p^{(k)}_i - s(\bar p_i) \|^2, \qquad
        s(p)_c = p_c^{1 / \tau} / \sum_b p_b^{1 / \tau}.

    The sharpened mean is a target: no gradient passes through it. No label enters.

    Args:
        weight: w; 0 for none.
        passes: K; each costs a solve. With one, the target is the node's own sharpened prediction.
        temperature: :math:`\tau` in (0, 1]; the smaller, the nearer the target is to one class.
        ramp: epochs over which w rises linearly from 0. An untrained model agrees best with itself by predicting one
            class for all nodes, and with few classes it may stay there.
    """

    weight: float = 0.0
    passes: int = 1
    temperature: float = 0.5
    ramp: int = 0

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


class LossStep:
    """Computes the training loss and leaves its gradients at the parameters, without a host synchronisation.

    ``y`` (n, ...): targets of all nodes; ``train`` (n,): mask of the training nodes.
    """

    def __init__(
        self, model: Classifier, inputs: Inputs, y: Tensor, train: Tensor, consistency: Consistency, task: Task
    ) -> None:
        self.model, self.inputs, self.consistency, self.task = model, inputs, consistency, task
        self.nodes = train.nonzero()[:, 0]  # once, because counting a mask synchronises
        self.y = y[self.nodes]
        self.stats = Stats()
        self.share = torch.ones((), device=y.device)  # a tensor, so that a CUDA graph reads its current value

    def begin(self, epoch: int) -> None:
        """Prepare the step of an epoch, counted from 1."""
        self.share.fill_(self.consistency.share(epoch))

    def __call__(self) -> Tensor:
        """Return the loss: the mean over passes of the task's loss and running costs, plus the share of consistency."""
        self.model.train()
        self.model.zero_grad(set_to_none=True)
        outputs = [self.model.run(self.inputs) for _ in range(self.consistency.passes)]
        losses = [self.task.loss(each.logits[self.nodes], self.y, reduction="mean") + each.cost for each in outputs]
        loss = torch.stack(losses).mean() if len(losses) > 1 else losses[0]
        if self.consistency.weight:
            logits = torch.stack([output.logits for output in outputs])
            loss = loss + self.share * self.consistency(self.task.probabilities(logits))
        loss.backward()
        self.stats = Stats.total(output.stats for output in outputs)
        return loss.detach()
