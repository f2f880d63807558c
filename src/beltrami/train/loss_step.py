"""Descent: the loss of one step and its gradients."""

import torch
from torch import Tensor

from beltrami.model import Classifier, Inputs
from beltrami.scheme import Stats
from beltrami.train.objective import Consistency, objective


class LossStep:
    """Leaves the gradients of the objective at the parameters and returns the loss, without waiting for the device.

    Args:
        model: put into training mode whenever this is called.
        inputs: prepared.
        y: classes, (n,).
        train: the training nodes, a mask (n,).
        consistency: part of the objective.
    """

    def __init__(self, model: Classifier, inputs: Inputs, y: Tensor, train: Tensor, consistency: Consistency) -> None:
        self.model, self.inputs, self.consistency = model, inputs, consistency
        self.nodes = train.nonzero()[:, 0]  # once: to count a mask is to wait for the device
        self.y = y[self.nodes]
        self.stats = Stats()
        self.share = torch.ones((), device=y.device)  # on the device, where a recorded step reads it

    def begin(self, epoch: int) -> None:
        """Before the step of an epoch, counted from 1."""
        self.share.fill_(self.consistency.share(epoch))

    def __call__(self) -> Tensor:
        self.model.train()
        self.model.zero_grad(set_to_none=True)
        step = objective(self.model, self.inputs, self.nodes, self.y, self.consistency, share=self.share)
        step.loss.backward()
        self.stats = Stats()
        for output in step.outputs:
            self.stats.add(output.stats)
        return step.loss.detach()
