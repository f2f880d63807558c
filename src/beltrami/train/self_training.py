"""Self-training: the labels of a second round, from the predictions of the first."""

from dataclasses import replace

import torch
from torch import Tensor

from beltrami.data import Split
from beltrami.train.task import Classification


def self_training_labels(logits: Tensor, y: Tensor, split: Split, most: int) -> tuple[Tensor, Split]:
    r"""Return labels and split with the most certain nodes of each predicted class added to the training nodes.

    .. math:: S_c = \text{the } k \text{ largest } p_{ic} \text{ among } \{i \notin \text{train, val} :
        \mathrm{argmax}_{c'}\, p_{ic'} = c\}, \qquad p_i = \mathrm{softmax}\, \ell_i

    ``most`` is k; where there are fewer nodes, all of them are added. The label of an added node is its prediction; its
    entry of ``y`` is not read. It is no test node of the new split; results are computed on the split as it was.
    ``logits`` (n, classes), ``y`` (n,) -> ``y`` (n,).
    """
    certainty, predicted = Classification(logits.shape[1]).probabilities(logits).max(1)
    free = ~(split.train | split.val)
    added = torch.zeros_like(free)
    for c in range(logits.shape[1]):
        nodes = (free & (predicted == c)).nonzero()[:, 0]
        order = certainty[nodes].argsort(descending=True, stable=True)
        added[nodes[order[:most]]] = True
    wider = replace(split, train=split.train | added, test=split.test & ~added, calibration=None)
    return torch.where(added, predicted.to(y.dtype), y), wider
