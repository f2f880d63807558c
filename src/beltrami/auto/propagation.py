"""Label propagation: the labels of training nodes spread over the graph, without features."""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn import functional as F

from beltrami.arguments import checked
from beltrami.auto.linear import mean_score
from beltrami.data import Split
from beltrami.graph import Edges, aggregate
from beltrami.model.baseline.base import mean_weights
from beltrami.train import Classification, Regression, Task, ValidationScore

ALPHAS = (0.5, 0.8, 0.9, 0.99)
MOST_STEPS = 100
NEGLIGIBLE = 1e-6  # alpha^k after which the iteration ends
SMALLEST_SHARE = 1e-6  # of a class, so that its logarithm is finite
PRIOR_WEIGHT = 1e-12  # of the mean over the training nodes: it decides where no label arrives


@dataclass(frozen=True, eq=False)
class Propagation:
    """Outputs (n, outputs) for each split, the chosen ``alpha``, and the mean validation score."""

    outputs: tuple[Tensor, ...]
    alpha: float
    score: ValidationScore

    @property
    def validation(self) -> float:
        """The validation metric, a mean over the splits."""
        return self.score.metric


@checked
def propagate_labels(
    edges: Edges, y: Tensor, splits: Sequence[Split], *, task: Task, alphas: Sequence[float] = ALPHAS
) -> Propagation:
    r"""Propagate the labels of the training nodes of each split (Zhou et al. 2004), with alpha by validation.

    .. math:: F \leftarrow \alpha P F + (1 - \alpha) Y, \qquad M \leftarrow \alpha P M + (1 - \alpha) 1_{train}

    from zero, at most a hundred times. P is the random walk of :class:`LinearDiffusion`. Y has a row for each training
    node: its class as a unit vector, its labels of 0 and 1, or its numbers minus their mean; other rows are zero. The
    prediction is F / M, a weighted mean over the training nodes; for numbers, the mean is added again. Where no label
    arrives, it is the mean over all training nodes: the shares of the classes.

    Outputs are logarithms of the shares, or their log-odds for labels, so that ``task.probabilities`` returns shares.
    """
    if not splits:
        raise ValueError("propagate_labels needs at least one split.")
    if not alphas or not 0 < min(alphas) <= max(alphas) < 1:
        raise ValueError(f"`alphas` must be between 0 and 1; got {list(alphas)}.")
    for split in splits:
        task.check(y, split)
    loops = edges.with_loops(1.0)
    outputs = [_propagate(loops, y, split.train, task, alphas) for split in splits]  # for each split and alpha
    best: Propagation | None = None
    for alpha, each in zip(alphas, zip(*outputs, strict=True), strict=True):
        at_val = [out[split.val] for out, split in zip(each, splits, strict=True)]
        score = mean_score(at_val, y, splits, task=task)
        if best is None or score > best.score:
            best = Propagation(each, alpha, score)
    assert best is not None
    return best


def _propagate(loops: Edges, y: Tensor, train: Tensor, task: Task, alphas: Sequence[float]) -> list[Tensor]:
    r"""Return the outputs (n, outputs) for each alpha; all share the products :math:`P^k Y`, as
    :math:`F = (1 - \alpha) \sum_k \alpha^k P^k Y`."""
    known, p = _targets(y[train], task), mean_weights(loops, torch.float32)
    mean = known.mean(0)
    centre = mean if isinstance(task, Regression) else torch.zeros_like(mean)
    walk = torch.zeros(len(y), known.shape[1] + 1, device=known.device)
    walk[train] = torch.cat((known - centre, torch.ones_like(known[:, :1])), 1)
    sums = [(1 - alpha) * walk for alpha in alphas]
    for k in range(1, MOST_STEPS):
        if max(alphas) ** k < NEGLIGIBLE:
            break
        walk = aggregate(p, walk, loops)
        for alpha, total in zip(alphas, sums, strict=True):
            total.add_(walk, alpha=(1 - alpha) * alpha**k)
    return [_outputs(total, mean, centre, task) for total in sums]


def _outputs(f: Tensor, mean: Tensor, centre: Tensor, task: Task) -> Tensor:
    """Return F / M plus the centre, as outputs of the task; ``f`` (n, outputs + 1) has M in its last column."""
    share = centre + (f[:, :-1] + PRIOR_WEIGHT * (mean - centre)) / (f[:, -1:] + PRIOR_WEIGHT)
    if isinstance(task, Regression):
        return share
    if isinstance(task, Classification):
        return share.clamp(min=SMALLEST_SHARE).log()
    return torch.logit(share, eps=SMALLEST_SHARE)


def _targets(y: Tensor, task: Task) -> Tensor:
    """Return the rows of Y at labelled nodes, (k, outputs)."""
    if isinstance(task, Classification):
        return F.one_hot(y.long(), task.num_outputs).float()
    return y.reshape(len(y), task.num_outputs).float()
