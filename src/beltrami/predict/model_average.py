"""An average of several models, with weights that validation nodes choose."""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from beltrami.arguments import Count, NotNegative, checked
from beltrami.predict.probability import check_targets, fit_temperature, negative_log_likelihood

STEPS = 16
ACCURACY_WEIGHT = 4.0
LEAST = 1e-6  # a smaller probability of the class counts as this one, so that one node does not decide
UNKNOWN_LABELS = 0.2  # keeps a temperature from certainty where a few nodes are all right


@checked
@dataclass(frozen=True)
class ModelAverage:
    r"""A weighted mean of the probabilities of several models, each at its own temperature.

    .. math:: p_i = \sum_m w_m\, \mathrm{softmax}(l^{(m)}_i / T_m), \qquad w_m \ge 0, \quad \sum_m w_m = 1
    """

    weights: tuple[float, ...]
    temperatures: tuple[float, ...]

    def __post_init__(self) -> None:
        if len(self.weights) != len(self.temperatures):
            raise ValueError(
                "ModelAverage needs a weight and a temperature for each model; "
                f"got {len(self.weights)} `weights` and {len(self.temperatures)} `temperatures`."
            )

    @staticmethod
    @checked
    def fit(
        logits: Sequence[Tensor], y: Tensor, *, steps: Count = STEPS, accuracy_weight: NotNegative = ACCURACY_WEIGHT
    ) -> "ModelAverage":
        r"""Return the average that labelled nodes choose step by step (Caruana et al. 2004).

        Each temperature is fitted first. Each of the ``steps`` adds the model, again if need be, after which the mean
        of those added has the largest

        .. math:: \lambda\, \mathrm{accuracy} + \frac1n \sum_i \log p_{i y_i}

        with the ``accuracy_weight`` λ; of equal ones the first. The weight of a model is its share of the steps.

        Args:
            logits: outputs of each model at the labelled nodes, which no model was trained on.
            y: classes of these nodes, integers from 0.

        Shapes:
            each of ``logits`` (n, classes), ``y`` (n,).
        """
        if not logits:
            raise ValueError("`logits` is empty: give the outputs of one model or more.")
        for each in logits:
            check_targets(each, y, name="logits")
            if each.shape != logits[0].shape or y.dim() != 1:
                raise ValueError(f"all `logits` must be (n, classes) and `y` (n,); got {each.shape} and {y.shape}.")
        temperatures = [fit_temperature(each, y, unknown_labels=UNKNOWN_LABELS) for each in logits]
        found = torch.stack([_probabilities(each, t) for each, t in zip(logits, temperatures, strict=True)])
        counts, total = torch.zeros(len(logits)), torch.zeros_like(found[0])
        for step in range(1, steps + 1):
            scores = [_score((total + p) / step, y, accuracy_weight) for p in found]
            best = max(range(len(scores)), key=scores.__getitem__)
            counts[best] += 1
            total = total + found[best]
        return ModelAverage(tuple((counts / steps).tolist()), tuple(temperatures))

    @checked
    def probabilities(self, logits: Sequence[Tensor]) -> Tensor:
        """Return the probabilities of the classes at any nodes, from the outputs of the models in the order of
        :meth:`fit`. Each of ``logits`` (n, classes) -> (n, classes)."""
        if len(logits) != len(self.weights):
            raise ValueError(f"the average is of {len(self.weights)} models; got the outputs of {len(logits)}.")
        parts = zip(self.weights, self.temperatures, logits, strict=True)
        return sum((w * _probabilities(each, t) for w, t, each in parts if w), torch.zeros_like(logits[0]))


def _probabilities(logits: Tensor, temperature: float) -> Tensor:
    return (logits.detach().double() / temperature).softmax(1).to(logits.dtype)


def _score(p: Tensor, y: Tensor, accuracy_weight: float) -> float:
    accuracy = float((p.argmax(1) == y).double().mean())
    return accuracy_weight * accuracy - negative_log_likelihood(p.clamp(min=LEAST), y)
