"""The area under the receiver operating characteristic, a metric of rankings."""

import torch
from torch import Tensor


def roc_auc(scores: Tensor, y: Tensor, *, counted: Tensor | None = None) -> Tensor:
    r"""Return the probability that a node of class 1 has a higher score than a node of class 0, ties counted half:

    .. math:: \frac{1}{|P| |N|} \sum_{i \in P, j \in N} [s_i > s_j] + \tfrac{1}{2} [s_i = s_j],

    where P are the nodes of class 1 and N those of class 0; 0 where one of the classes has no node. Unlike accuracy it
    does not reward a constant prediction of the larger class. Time O(n log n), no host synchronisation.

    Shapes:
        ``scores`` (..., n), finite; ``y`` (n,) 0 or 1; ``counted`` (n,) a mask of the nodes that count -> (...,).
    """
    positive, negative = y == 1, y == 0
    if counted is not None:
        positive, negative = positive & counted, negative & counted
    others = torch.where(negative, scores, torch.inf).sort(-1).values  # the scores of class 0, then infinity
    scores = scores.contiguous()
    below, up_to = torch.searchsorted(others, scores), torch.searchsorted(others, scores, right=True)
    wins = (below + up_to).to(scores.dtype) / 2  # of each node against those of class 0
    return (wins * positive).sum(-1) / (positive.sum() * negative.sum()).clamp(min=1)
