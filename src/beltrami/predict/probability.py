"""Probabilities: one temperature fitted to labels, and measures of calibration.

Targets ``y`` are classes (n,), integers from 0, with probabilities by the softmax; or labels (n, labels) of 0 and 1,
any number of them per node, with probabilities by the sigmoid of each.
"""

import math

import torch
from scipy.optimize import brentq
from torch import Tensor

from beltrami.arguments import checked

TEMPERATURES = (0.05, 20.0)
"""The smallest and the largest temperature that :func:`fit_temperature` returns."""


@checked
def fit_temperature(logits: Tensor, y: Tensor, *, unknown_labels: float = 0.0) -> float:
    r"""Return the temperature T within ``TEMPERATURES`` that minimises the negative log-likelihood of the labels.

    .. math:: L(\beta) = -\frac1n \sum_i \log \mathrm{softmax}(\beta\, l_i)_{y_i}, \qquad \beta = 1 / T

    L is convex in :math:`\beta`. Brent's method finds the zero of its derivative, the mean over nodes of
    :math:`\sum_c p_c l_c - l_y`.

    If every label has the largest logit of its node, L has no minimum, and T is the smallest temperature; if labels
    tend to have small logits, it is the largest; if every node's logits are all equal, it is 1.

    With ten labels, all predicted right, the smallest temperature gives probabilities that are too high.
    ``unknown_labels`` prevents this: each node's target is mixed with the uniform distribution, as if so many labels of
    unknown class had been added. One of them beside ten labels that are predicted right gives probabilities near
    10 / 11, and 0.2 of one gives 50 / 51; beside 500 labels it changes little.

    Args:
        logits: outputs of the model at the labelled nodes, which it was not trained on.
        unknown_labels: weight of the added labels, in labels.

    Shapes:
        ``logits`` (n, classes), ``y`` (n,) or (n, classes).
    """
    check_targets(logits, y, name="logits")
    if not 0 <= unknown_labels < float("inf"):
        raise ValueError(f"`unknown_labels` must be a finite number from 0; got {unknown_labels}.")
    logits, share = logits.detach().double(), unknown_labels / (len(y) + unknown_labels)
    if y.dim() == 2:  # a label is a choice between the logits 0 and l
        logits, y = torch.stack((torch.zeros_like(logits), logits), -1).flatten(0, 1), y.flatten().long()
    # Logits relative to the target's: their mean has no rounding error where the target's probability is almost one.
    logits = logits - (1 - share) * logits.gather(1, y[:, None]) - share * logits.mean(1, keepdim=True)

    def slope(beta: float) -> float:
        return float(((beta * logits).softmax(1) * logits).sum(1).mean())

    low, high = 1 / TEMPERATURES[1], 1 / TEMPERATURES[0]
    if not bool(logits.any()):
        return 1.0
    if slope(high) <= 0:  # before the other end, where it is 0 as well if probabilities underflow
        return TEMPERATURES[0]
    if slope(low) >= 0:
        return TEMPERATURES[1]
    return 1 / float(brentq(slope, low, high, xtol=1e-12))


@checked
def match_confidence(logits: Tensor, y: Tensor, *, unknown_labels: float = 0.0) -> float:
    r"""Return the temperature T within ``TEMPERATURES`` at which the mean confidence is the accuracy.

    .. math:: \frac1n \sum_i \max_c \mathrm{softmax}(l_i / T)_c = \frac{r + u / C}{n + u}

    r of n labels are predicted right, and u ``unknown_labels`` at random among C classes. The left side falls with T,
    so that there is one solution, or an end of the range. Unlike in the likelihood, a few predictions that are sure and
    wrong do not decide.
    """
    check_targets(logits, y, name="logits")
    logits = logits.detach().double()
    right = float((logits.argmax(1) == y).sum())
    accuracy = (right + unknown_labels / logits.shape[1]) / (len(y) + unknown_labels)

    def surplus(log_temperature: float) -> float:
        return float((logits / math.exp(log_temperature)).softmax(1).amax(1).mean()) - accuracy

    low, high = (math.log(t) for t in TEMPERATURES)
    if surplus(low) <= 0:
        return TEMPERATURES[0]
    if surplus(high) >= 0:
        return TEMPERATURES[1]
    return math.exp(float(brentq(surplus, low, high, xtol=1e-10)))


@checked
def expected_calibration_error(probabilities: Tensor, y: Tensor, *, bins: int = 15) -> float:
    r"""Return the expected calibration error of the most likely class, over ``bins`` of equal width.

    .. math:: \sum_b \frac{|B_b|}{n} \left| \mathrm{accuracy}(B_b) - \mathrm{confidence}(B_b) \right|

    :math:`B_b` holds the nodes whose largest probability, the confidence, lies in :math:`(\frac{b-1}{bins},
    \frac{b}{bins}]`. Every label of ``y`` (n, labels) is one prediction, present or absent, whichever is likelier.
    """
    return float(bin_surplus(probabilities, y, bins=bins).abs().sum() / y.numel())


@checked
def bin_surplus(probabilities: Tensor, y: Tensor, *, bins: int = 15) -> Tensor:
    """Return for each bin of :func:`expected_calibration_error` the number of right predictions less the sum of the
    confidences, (bins,); sums over several splits give the error of all of them together."""
    check_targets(probabilities, y, name="probabilities")
    if bins < 1:
        raise ValueError(f"`bins` must be at least 1; got {bins}.")
    p = probabilities.detach().double()
    if y.dim() == 2:
        p, y = torch.stack((1 - p, p), -1).flatten(0, 1), y.flatten()
    confidence, predicted = p.max(1)
    upper = torch.arange(1, bins, dtype=torch.float64, device=p.device) / bins
    surplus = (predicted == y).double() - confidence
    return surplus.new_zeros(bins).index_add(0, torch.bucketize(confidence, upper), surplus)


@checked
def negative_log_likelihood(probabilities: Tensor, y: Tensor) -> float:
    """Return the mean over nodes of minus the logarithm of the class's probability; with ``y`` (n, labels), the mean
    over nodes and labels. A probability of 0 counts as the smallest positive number of its type."""
    check_targets(probabilities, y, name="probabilities")
    p = probabilities.detach()
    of_target = torch.where(y > 0, p, 1 - p) if y.dim() == 2 else p.gather(1, y[:, None])[:, 0]
    return -float(of_target.clamp(min=torch.finfo(p.dtype).tiny).double().log().mean())


@checked
def brier(probabilities: Tensor, y: Tensor) -> float:
    r"""Return the Brier score, the mean over nodes of :math:`\sum_c (p_c - [y = c])^2`, from 0 to 2; with ``y``
    (n, labels), the mean over nodes and labels of :math:`(p - y)^2`, from 0 to 1."""
    check_targets(probabilities, y, name="probabilities")
    p = probabilities.detach().double()
    if y.dim() == 2:
        return float((p - y).square().mean())
    right = p.gather(1, y[:, None])[:, 0]
    return float((p.square().sum(1) - 2 * right + 1).mean())


def check_targets(values: Tensor, y: Tensor, *, name: str) -> None:
    """Refuse values (n, classes) and targets that do not belong together."""
    if values.dim() != 2 or not len(values) or not values.is_floating_point() or values.layout != torch.strided:
        raise ValueError(
            f"`{name}` must be floating point of shape (nodes, classes), with at least one node; "
            f"got {values.dtype} of shape {tuple(values.shape)}."
        )
    if not bool(torch.isfinite(values).all()):
        raise ValueError(f"`{name}` must be finite; it holds NaN or infinity.")
    if y.is_complex() or y.layout != torch.strided:
        raise ValueError(f"`y` must be dense classes or labels; got {y.dtype}, {y.layout}.")
    if y.shape not in ((len(values),), values.shape):
        raise ValueError(f"`y` must have shape {(len(values),)} or {tuple(values.shape)}; got {tuple(y.shape)}.")
    if y.dim() == 1 and (y.dtype != torch.int64 or int(y.min()) < 0 or int(y.max()) >= values.shape[1]):
        raise ValueError(
            f"`y` must hold classes from 0 to {values.shape[1] - 1} as torch.int64; "
            f"got {y.dtype} from {y.min().item()} to {y.max().item()}."
        )
    if y.dim() == 2 and not bool(((y == 0) | (y == 1)).all()):
        raise ValueError("`y` of shape (nodes, labels) must hold 0 and 1 only.")
