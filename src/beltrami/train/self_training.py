"""Adoption: the nodes that a first fit is most certain of are labels of a second."""

from dataclasses import replace

import torch
from torch import Tensor

from beltrami.data import Split


def self_training_labels(logits: Tensor, y: Tensor, split: Split, most: int) -> tuple[Tensor, Split]:
    r"""Labels and split with the most certain nodes of each class among those that train, by their predicted class.

    .. math:: S_c = \text{the } k \text{ largest } p_{ic} \text{ among } \{i \notin \text{train, val} :
        \mathrm{argmax}_{c'}\, p_{ic'} = c\}, \qquad p_i = \mathrm{softmax}\, \ell_i

    No label but those of training nodes counts: whatever ``y`` holds at an adopted node is replaced by the prediction,
    and such a node is no test node of the split that comes back. What is reported is still read on the split as it was.

    Args:
        logits: class scores of all nodes, of a fitted model.
        y: classes.
        split: which of them train and validate.
        most: k, how many of each class; all there are where they are fewer.

    Shapes:
        ``logits`` (n, classes), ``y`` (n,) -> ``y`` (n,).
    """
    certain, predicted = torch.softmax(logits, dim=1).max(1)
    free = ~(split.train | split.val)
    chosen = torch.zeros_like(free)
    for c in range(logits.shape[1]):
        nodes = (free & (predicted == c)).nonzero()[:, 0]
        order = certain[nodes].argsort(descending=True, stable=True)
        chosen[nodes[order[:most]]] = True
    taught = replace(split, train=split.train | chosen, test=split.test & ~chosen)
    return torch.where(chosen, predicted.to(y.dtype), y), taught
