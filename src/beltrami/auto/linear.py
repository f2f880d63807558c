"""Linear diffusion fitted by scikit-learn, with the time and the regularisation chosen by validation."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from beltrami.arguments import checked
from beltrami.auto.diffused import diffused_features
from beltrami.auto.regression import Coordinates, Weights, fit_weights
from beltrami.data import Split
from beltrami.graph import Edges
from beltrami.model.coder import Matrix
from beltrami.model.linear_diffusion import LinearDiffusion
from beltrami.train import Regression, Task, ValidationScore

TIMES = (0.0, 1.0, 2.0, 4.0, 8.0, 16.0, 32.0)
STRENGTHS = (0.1, 1.0, 10.0, 100.0, 1000.0)
STORED_BYTES = 2**28  # of diffused features at a time


@dataclass(frozen=True, eq=False)
class LinearFit:
    """A fitted linear diffusion for each split, the chosen ``time`` and ``strength``, and the mean validation score."""

    models: tuple[LinearDiffusion, ...]
    time: float
    strength: float
    score: ValidationScore

    @property
    def validation(self) -> float:
        """The validation metric, a mean over the splits."""
        return self.score.metric


@checked
def fit_linear(
    x: Matrix,
    edges: Edges,
    y: Tensor,
    splits: Sequence[Split],
    *,
    task: Task,
    times: Sequence[float] = TIMES,
    strengths: Sequence[float] = STRENGTHS,
    balanced: bool = False,
) -> LinearFit:
    r"""Fit :math:`e^{t (P - I)} X W + b` on the training nodes of each split, at one time and one strength for all.

    scikit-learn's logistic regression (for labels one for each; for numbers its ridge regression) minimises
    :math:`\tfrac12 \|W\|^2 + C \cdot \mathrm{loss}` on features that are divided by their root mean square distance
    from their mean, so that the units of the features do not matter. The time t and C are those with the best
    validation metric, a mean over the splits; of equal ones, those with the smaller validation loss.

    Features are diffused at the training and validation nodes. If training nodes are far fewer than both features and
    labelled nodes, they are diffused at training nodes alone, and the outputs of each fit at validation nodes.

    Args:
        x: features (n, d), dense or sparse.
        y: targets (n,) or (n, outputs); those outside the training and validation nodes are not read.
        splits: one split, or the folds of a cross-validation.
        times: the times to choose from.
        strengths: the values of C to choose from.
        balanced: weight classes, or the presence of a label, inversely to their frequency among the training nodes.
    """
    _check(splits, y, task, times=times, strengths=strengths, balanced=balanced)
    strengths = sorted(strengths)
    train = torch.stack([split.train for split in splits]).any(0)
    labelled = train | torch.stack([split.val for split in splits]).any(0)
    stored = labelled if min(x.shape[1], int(labelled.sum())) <= 2 * int(train.sum()) else train
    nodes = stored.nonzero()[:, 0]
    best: tuple[ValidationScore, float, Sequence[Weights]] | None = None
    for time, features in _diffused(x, edges, nodes, sorted(times)):
        coordinates = Coordinates.of(features[train[nodes]])
        known = [(coordinates(features[s.train[nodes]]), y[s.train].cpu().numpy()) for s in splits]
        paths = [fit_weights(*each, strengths, task, balanced) for each in known]  # for each split, at each strength
        fits = [[coordinates.restore(*weights) for weights in each] for each in zip(*paths, strict=True)]
        outputs = _validation_outputs(fits, features, nodes, x, edges, splits, time)
        for strength, fit, out in zip(strengths, fits, outputs, strict=True):
            score = mean_score(out, y, splits, task=task, time=time)
            if best is None or score > best[0]:
                best = score, strength, fit
    assert best is not None
    score, strength, chosen = best
    models = tuple(_model(*weights, time=score.time) for weights in chosen)
    return LinearFit(models, score.time, strength, score)


def mean_score(
    outputs: Sequence[Tensor], y: Tensor, splits: Sequence[Split], *, task: Task, time: float = 0.0
) -> ValidationScore:
    """Return the mean over the splits of metric and loss of outputs at their validation nodes, (k, outputs) each."""
    targets = [y[split.val] for split in splits]
    metrics = [float(task.metric(out, true)) for out, true in zip(outputs, targets, strict=True)]
    losses = [float(task.loss(out, true, reduction="mean")) for out, true in zip(outputs, targets, strict=True)]
    return ValidationScore(sum(metrics) / len(splits), -sum(losses) / len(splits), time)


def _check(
    splits: Sequence[Split],
    y: Tensor,
    task: Task,
    *,
    times: Sequence[float],
    strengths: Sequence[float],
    balanced: bool,
) -> None:
    if not splits:
        raise ValueError("fit_linear needs at least one split.")
    for split in splits:
        task.check(y, split)
    if not times or min(times) < 0 or len(set(times)) < len(times) or not max(times) < float("inf"):
        raise ValueError(f"`times` must be different, finite and at least 0; got {list(times)}.")
    if not strengths or not min(strengths) > 0 or not max(strengths) < float("inf"):
        raise ValueError(f"`strengths` must be positive and finite; got {list(strengths)}.")
    if balanced and isinstance(task, Regression):
        raise ValueError("`balanced` weights classes, and a regression has none: leave it out.")


def _diffused(x: Matrix, edges: Edges, nodes: Tensor, times: Sequence[float]) -> Iterator[tuple[float, Tensor]]:
    """Yield each time with the diffused features at ``nodes``, (k, d), solved in groups of times that fit in memory."""
    together = max(1, STORED_BYTES // max(1, 4 * len(nodes) * x.shape[1]))
    for low in range(0, len(times), together):
        group = times[low : low + together]
        yield from zip(group, diffused_features(x, edges, nodes, group), strict=True)


def _validation_outputs(
    fits: Sequence[Sequence[Weights]],
    features: Tensor,
    nodes: Tensor,
    x: Matrix,
    edges: Edges,
    splits: Sequence[Split],
    time: float,
) -> list[list[Tensor]]:
    """Return the outputs at the validation nodes for each strength and split, from the features stored at ``nodes``; if
    these lack a validation node, the outputs of all nodes are diffused instead."""
    row = torch.full((edges.num_nodes,), -1, device=nodes.device)
    row[nodes] = torch.arange(len(nodes), device=nodes.device)
    by_split = []
    for split, *each in zip(splits, *fits, strict=True):
        w, b = (torch.cat(parts, dim=-1).to(features.dtype) for parts in zip(*each, strict=True))
        rows, chosen = row[split.val], split.val.nonzero()[:, 0]
        stored = bool((rows >= 0).all())
        values = features[rows] @ w if stored else diffused_features(x @ w, edges, chosen, [time])[0]
        by_split.append((values + b).chunk(len(fits), dim=-1))
    return [list(outputs) for outputs in zip(*by_split, strict=True)]


def _model(weight: Tensor, bias: Tensor, *, time: float) -> LinearDiffusion:
    model = LinearDiffusion(weight.shape[0], weight.shape[1], time=time).to(weight.device)
    with torch.no_grad():
        model.encoder.linear.weight.copy_(weight.T)
        model.encoder.linear.bias.copy_(bias)
    return model.eval()
