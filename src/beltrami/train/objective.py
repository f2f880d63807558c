"""What training descends: cross-entropy of the labelled nodes, running costs, and agreement on all the others."""

from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn import functional as F

from beltrami.model import Classifier, Inputs, Output


@dataclass(frozen=True)
class Consistency:
    r"""Several passes with dropout should say the same of every node, labelled or not (Feng et al. 2020).

    With :math:`p^{(k)}_i` the class probabilities of node i in pass k of K and :math:`\bar p_i` their mean,

    .. math:: \frac{w}{K n} \sum_{k, i} \| p^{(k)}_i - s(\bar p_i) \|^2, \qquad
        s(p)_c = p_c^{1 / \tau} / \sum_b p_b^{1 / \tau}.

    The sharpened mean is a target: no gradient passes through it. No label enters.

    Args:
        weight: w; 0 for cross-entropy alone.
        passes: K; each costs a solve. With one, the node should be as sure as its own sharpened answer.
        temperature: :math:`\tau` in (0, 1]; the smaller, the nearer the target is to one class.
        ramp: epochs over which w rises from nothing. Before a model knows anything, its passes agree best on one class
            for all nodes; with few classes it may stay there.
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
        """The part of w that counts in an epoch, counted from 1."""
        return min(1.0, epoch / self.ramp) if self.ramp else 1.0

    def __call__(self, logits: Tensor) -> Tensor:
        """(K, n, classes) -> the cost."""
        p = logits.softmax(-1)
        target = (p.detach().mean(0).log() / self.temperature).softmax(-1)
        return self.weight * (p - target).square().sum(-1).mean()


@dataclass(frozen=True)
class Objective:
    """The loss of one step, and the passes that it came from."""

    loss: Tensor
    outputs: list[Output]


def objective(
    model: Classifier,
    inputs: Inputs,
    nodes: Tensor,
    y: Tensor,
    consistency: Consistency,
    *,
    share: Tensor | float = 1.0,
) -> Objective:
    """The mean over passes of running costs and cross-entropy, plus the given share of consistency.

    Shapes:
        ``nodes`` (k,), those with labels; ``y`` (k,), their classes.
    """
    outputs = [model.run(inputs) for _ in range(consistency.passes)]
    losses = [F.cross_entropy(output.logits[nodes], y) + output.cost for output in outputs]
    loss = torch.stack(losses).mean() if len(losses) > 1 else losses[0]
    if consistency.weight:
        loss = loss + share * consistency(torch.stack([output.logits for output in outputs]))
    return Objective(loss, outputs)
