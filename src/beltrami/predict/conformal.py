r"""Split conformal prediction: sets of classes and intervals that hold the truth with a chosen probability.

The score of a class at a node says how little the model expects it there. Of the scores of the true classes at n
calibration nodes, the k-th smallest, :math:`k = \lceil (n + 1) \cdot \mathrm{coverage} \rceil`, is the threshold, and a
node's set holds the classes whose scores do not exceed it. If the calibration nodes are exchangeable with the others
(drawn at random from all of them, with equal probability, not a fixed number per class) and were used for nothing
else, the set holds the true class with probability at least k / (n + 1), on average over the choice of calibration
nodes. Given the calibration nodes, the coverage has the distribution Beta(k, n + 1 - k) if no two scores are equal;
equal scores only raise it.
"""

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Literal, get_args

import numpy
import torch
from torch import Tensor

from beltrami.arguments import Count, Natural, checked
from beltrami.graph import Edges, aggregate, collect
from beltrami.predict.probability import check_targets

ScoreKind = Literal["threshold", "adaptive", "labels", "residual"]


@dataclass(frozen=True)
class Guarantee:
    """What a set's coverage means: the probability asked for, the labels behind it, and the interval that holds the
    true coverage, given these calibration nodes, with probability ``level``."""

    coverage: float
    calibration_labels: int
    true_coverage: tuple[float, float]
    level: float
    scores: ScoreKind
    smoothing: float

    def in_words(self) -> str:
        """Return the guarantee as a sentence."""
        low, high = self.true_coverage
        return (
            f"A set or interval at coverage {self.coverage:g} from {self.calibration_labels} calibration labels: the "
            f"true coverage lies between {low:.1%} and {high:.1%} with probability {self.level:g}."
        )


@checked
@dataclass(frozen=True, eq=False)
class Conformal:
    r"""Sorted scores of calibration nodes, from which sets or intervals of any coverage follow. Fit with :meth:`fit`.

    Args:
        kind: ``threshold``: the score of class c is :math:`1 - p_c`, which gives the smallest sets on average.
            ``adaptive``: the total probability of c and of all likelier classes, which gives larger sets at the nodes
            where the model is unsure. ``labels``: :math:`1 - p_c` for several labels per node; the score of a
            calibration node is that of its least likely label, or 0 without any, and the set holds all labels of a
            node with the chosen probability. ``residual``: :math:`|\hat y - y|`, for intervals in regression.
        scores: the scores at the calibration nodes, ascending, (n,), float64.
        smoothing: lambda of :func:`smooth_scores`; 0 for scores of each node alone.
    """

    kind: ScoreKind
    scores: Tensor
    smoothing: float = 0.0

    def __post_init__(self) -> None:
        if self.kind not in get_args(ScoreKind):
            raise ValueError(f"`kind` must be one of {', '.join(get_args(ScoreKind))}; got {self.kind!r}.")
        if self.scores.dim() != 1 or self.scores.dtype != torch.float64:
            raise ValueError(
                f"`scores` must be float64 of shape (n,); got {self.scores.dtype} {tuple(self.scores.shape)}."
            )
        if not bool(torch.isfinite(self.scores).all() & (self.scores.diff() >= 0).all()):
            raise ValueError("`scores` must be finite and ascending: every calibration node needs a finite target.")
        if not 0 <= self.smoothing <= 1 or (self.kind == "residual" and self.smoothing):
            raise ValueError(f"`smoothing` must lie in [0, 1], and be 0 for residuals; got {self.smoothing}.")

    @staticmethod
    def fit(
        outputs: Tensor,
        y: Tensor,
        *,
        calibration: Tensor,
        kind: ScoreKind,
        smoothing: float = 0.0,
        edges: Edges | None = None,
    ) -> "Conformal":
        """Return the sorted scores of the calibration nodes; targets of other nodes are not read.

        Args:
            outputs: probabilities (n, classes) at all nodes of the graph, or for residuals the predictions (n,).
            y: classes (n,), labels (n, labels) of 0 and 1, or numbers (n,).
            calibration: mask (n,) of the calibration nodes, which neither training, validation nor the temperature saw.
            edges: the graph by which scores are smoothed; needed if ``smoothing`` is not 0.
        """
        if calibration.dtype != torch.bool or calibration.shape != (len(outputs),) or len(y) != len(outputs):
            raise ValueError(
                f"`calibration` must be a mask of {len(outputs)} nodes, and `y` have {len(outputs)} rows; "
                f"got {calibration.dtype} {tuple(calibration.shape)} and {tuple(y.shape)}."
            )
        known = y[calibration]
        if kind == "residual":
            _check_numbers(outputs)
            _check_numbers(y)
            scores = (outputs[calibration].double() - known.double()).abs()
        else:
            every = _class_scores(outputs, kind, smoothing, edges)[calibration]
            if known.shape != (every.shape if kind == "labels" else every.shape[:1]):
                raise ValueError(f"scores of kind {kind!r} do not apply to `y` of shape {tuple(y.shape)}.")
            if len(known):
                check_targets(outputs[calibration], known, name="outputs")
            if kind == "labels":
                scores = torch.where(known > 0, every, 0).amax(1)
            else:
                scores = every.gather(1, known[:, None])[:, 0]
        return Conformal(kind, scores.detach().cpu().sort().values, smoothing)

    def threshold(self, coverage: float) -> float:
        """Return the largest score that belongs to a set: the k-th smallest of the calibration scores."""
        return float(self.scores[quantile_rank(len(self.scores), coverage) - 1])

    def sets(
        self, probabilities: Tensor, *, coverage: float, edges: Edges | None = None, fill_empty: bool = True
    ) -> Tensor:
        """Return the sets as a mask, (n, classes), from the probabilities at all nodes of the graph.

        With ``fill_empty`` a set without any class is given the most likely one, which can only raise the coverage:
        where a model is right more often than the coverage asks, above the interval of the true coverage, which is that
        of the sets without it. A set of labels may be empty, as a node may have no label.
        """
        if self.kind == "residual":
            raise ValueError("scores of kind 'residual' give intervals, not sets: call `interval`.")
        inside = _class_scores(probabilities, self.kind, self.smoothing, edges) <= self.threshold(coverage)
        if fill_empty and self.kind != "labels":
            empty = ~inside.any(1)
            inside[empty, probabilities[empty].argmax(1)] = True
        return inside

    def interval(self, predictions: Tensor, *, coverage: float) -> tuple[Tensor, Tensor]:
        """Return the lower and upper ends of the intervals around the predictions, (n,) each, float64."""
        if self.kind != "residual":
            raise ValueError(f"scores of kind {self.kind!r} give sets, not intervals: call `sets`.")
        _check_numbers(predictions)
        width = self.threshold(coverage)
        return predictions.double() - width, predictions.double() + width

    def guarantee(self, coverage: float, *, level: float = 0.95) -> Guarantee:
        """Return what a set of this coverage promises, for display and for the file beside the predictions."""
        n = len(self.scores)
        true_coverage = coverage_interval(n, coverage, level=level)
        return Guarantee(coverage, n, true_coverage, level, self.kind, self.smoothing)


def quantile_rank(n: int, coverage: float) -> int:
    r"""Return k, the rank of the threshold among n calibration scores, :math:`\lceil (n + 1) \mathrm{coverage} \rceil`.

    The product is exact for the coverage as it is written in decimals: 0.07 of 100 is 7. Where k exceeds n no threshold
    exists, and the coverage is refused.
    """
    if not 0 < coverage < 1:
        raise ValueError(f"`coverage` must lie between 0 and 1, both excluded; got {coverage}.")
    share = Fraction(str(float(coverage)))
    k = math.ceil((n + 1) * share)
    if k > n:
        highest = math.floor(10_000 * n / (n + 1)) / 10_000
        raise ValueError(
            f"a coverage of {coverage:g} needs at least {math.ceil(share / (1 - share))} calibration labels; there are "
            f"{n}, which allow at most {highest:g}: give more labels, or ask for a lower coverage."
        )
    return k


@checked
def coverage_interval(n: Natural, coverage: float, *, level: float = 0.95) -> tuple[float, float]:
    """Return the central interval of Beta(k, n + 1 - k), the distribution of the true coverage over the choices of n
    calibration nodes: it holds the true coverage with probability ``level``."""
    from scipy.stats import beta

    k = quantile_rank(n, coverage)
    low, high = _tails(level)
    return float(beta.ppf(low, k, n + 1 - k)), float(beta.ppf(high, k, n + 1 - k))


@checked
def empirical_coverage_interval(n: Natural, m: Count, coverage: float, *, level: float = 0.95) -> tuple[float, float]:
    """Return the central interval of the share of m test nodes whose sets hold the truth, with n calibration nodes.

    The number of these nodes is beta-binomial: binomial, with the coverage drawn from Beta(k, n + 1 - k).
    """
    from scipy.stats import betabinom

    k = quantile_rank(n, coverage)
    # Summed here, because SciPy's quantiles of this distribution take minutes for a million test nodes.
    total = betabinom.pmf(numpy.arange(m + 1), m, k, n + 1 - k).cumsum()
    low, high = numpy.searchsorted(total, numpy.multiply(_tails(level), total[-1]))
    return int(low) / m, int(high) / m


def threshold_scores(probabilities: Tensor) -> Tensor:
    """Return 1 - p of every class, (n, classes)."""
    return 1 - probabilities


def adaptive_scores(probabilities: Tensor) -> Tensor:
    """Return for every class the total probability of itself and of all likelier classes, (n, classes); of equally
    likely classes the first counts as likelier."""
    p, order = probabilities.sort(dim=1, descending=True, stable=True)
    return torch.empty_like(p).scatter_(1, order, p.cumsum(1))


def smooth_scores(scores: Tensor, edges: Edges, *, smoothing: float) -> Tensor:
    r"""Return each node's scores mixed with the mean over its neighbours, (n, classes).

    .. math:: s'_{ic} = (1 - \lambda) s_{ic} + \lambda \sum_j w_{ij} s_{jc} / \sum_j w_{ij}

    A node that no edge enters keeps its own scores. The true class of no node enters, so the coverage holds as before.
    """
    if len(scores) != edges.num_nodes:
        raise ValueError(f"`scores` has {len(scores)} rows where the graph has {edges.num_nodes} nodes.")
    weight = scores.new_ones(edges.num_edges) if edges.weight is None else edges.weight.to(scores.dtype)
    total = collect(weight[:, None], edges)
    mean = aggregate(weight, scores, edges) / torch.where(total > 0, total, 1)
    return torch.where(total > 0, (1 - smoothing) * scores + smoothing * mean, scores)


def _class_scores(probabilities: Tensor, kind: ScoreKind, smoothing: float, edges: Edges | None) -> Tensor:
    if probabilities.dim() != 2:
        raise ValueError(f"`probabilities` must have shape (n, classes); got {tuple(probabilities.shape)}.")
    p = probabilities.detach().double()
    scores = adaptive_scores(p) if kind == "adaptive" else threshold_scores(p)
    if not smoothing:
        return scores
    if edges is None:
        raise ValueError(f"scores smoothed by {smoothing} need `edges`, the graph of the nodes; got None.")
    return smooth_scores(scores, edges, smoothing=smoothing)


def _check_numbers(predictions: Tensor) -> None:
    if predictions.dim() != 1:
        raise ValueError(f"residuals need one number per node, (n,); got shape {tuple(predictions.shape)}.")


def _tails(level: float) -> tuple[float, float]:
    if not 0 < level < 1:
        raise ValueError(f"`level` must lie between 0 and 1, both excluded; got {level}.")
    return (1 - level) / 2, (1 + level) / 2
