"""An average of models has the weights that a search by definition finds, and predicts by the weighted mean."""

from dataclasses import asdict

import numpy as np
import pytest
import torch
from torch import Tensor

from beltrami.predict import ModelAverage, fit_temperature
from beltrami.predict.model_average import LEAST, UNKNOWN_LABELS


def models(count: int, *, nodes: int = 60, classes: int = 4, seed: int = 0) -> tuple[list[Tensor], Tensor]:
    """Return the logits of models that are right more often than not, each on other nodes, and the classes."""
    generator = torch.Generator().manual_seed(seed)
    y = torch.randint(classes, (nodes,), generator=generator)
    right = 1.2 * torch.nn.functional.one_hot(y, classes).double()
    return [right + torch.randn(nodes, classes, generator=generator, dtype=torch.float64) for _ in range(count)], y


@pytest.mark.parametrize("accuracy_weight", [0.0, 4.0])
def test_weights_are_those_of_a_search_by_definition(accuracy_weight: float) -> None:
    logits, y = models(4)
    average = ModelAverage.fit(logits, y, steps=9, accuracy_weight=accuracy_weight)
    p = []
    for each, t in zip(logits, average.temperatures, strict=True):
        e = np.exp(each.numpy() / t)
        p.append(e / e.sum(1, keepdims=True))
    added: list[int] = []
    for _ in range(9):
        scores = []
        for m in range(4):
            mean = np.mean([p[k] for k in [*added, m]], axis=0)
            right = logarithm = 0.0
            for i in range(len(y)):
                right += mean[i].argmax() == int(y[i])
                logarithm += np.log(max(mean[i, int(y[i])], LEAST))
            scores.append((accuracy_weight * right + logarithm) / len(y))
        added.append(int(np.argmax(scores)))
    assert average.weights == pytest.approx([added.count(m) / 9 for m in range(4)])
    assert len(set(added)) > 1


def test_probabilities_are_the_weighted_mean() -> None:
    logits, _ = models(2, nodes=5)
    found = ModelAverage((0.25, 0.75), (2.0, 0.5)).probabilities(logits)
    for i in range(5):
        for c in range(4):
            parts = [torch.exp(each[i] / t) for each, t in zip(logits, (2.0, 0.5), strict=True)]
            expected = 0.25 * parts[0][c] / parts[0].sum() + 0.75 * parts[1][c] / parts[1].sum()
            assert found[i, c] == pytest.approx(float(expected), abs=1e-12)


def test_one_model_keeps_its_classes_and_gets_its_temperature() -> None:
    (logits,), y = models(1)
    average = ModelAverage.fit([logits], y)
    assert asdict(average) == {
        "weights": (1.0,),
        "temperatures": (fit_temperature(logits, y, unknown_labels=UNKNOWN_LABELS),),
    }
    assert torch.equal(average.probabilities([logits]).argmax(1), logits.argmax(1))


def test_models_with_independent_errors_are_better_together() -> None:
    logits, y = models(8, nodes=4000)
    average = ModelAverage.fit([each[:2000] for each in logits], y[:2000])
    new = [each[2000:] for each in logits]
    alone = max(float((each.argmax(1) == y[2000:]).double().mean()) for each in new)
    together = float((average.probabilities(new).argmax(1) == y[2000:]).double().mean())
    assert together > alone + 0.1


def test_a_model_that_is_always_wrong_has_no_weight() -> None:
    (good,), y = models(1, nodes=200)
    bad = -10.0 * torch.nn.functional.one_hot(y, 4).double()
    assert ModelAverage.fit([bad, good], y).weights == (0.0, 1.0)


def test_a_constant_added_to_the_logits_of_a_node_changes_nothing() -> None:
    logits, y = models(3)
    shifted = [each + torch.arange(len(y))[:, None] for each in logits]
    one, other = ModelAverage.fit(logits, y), ModelAverage.fit(shifted, y)
    assert one.weights == other.weights
    torch.testing.assert_close(one.probabilities(logits), other.probabilities(shifted))


def test_what_cannot_be_averaged_is_refused() -> None:
    logits, y = models(2)
    with pytest.raises(ValueError, match="`logits` is empty"):
        ModelAverage.fit([], y)
    with pytest.raises(ValueError, match=r"all `logits` must be \(n, classes\)"):
        ModelAverage.fit([logits[0], torch.randn(60, 5)], y)
    with pytest.raises(ValueError, match=r"all `logits` must be \(n, classes\) and `y` \(n,\)"):
        ModelAverage.fit([logits[0]], torch.ones(60, 4))
    with pytest.raises(ValueError, match="must be finite"):
        ModelAverage.fit([logits[0] / 0], y)
    with pytest.raises(ValueError, match="the average is of 1 models; got the outputs of 2"):
        ModelAverage((1.0,), (1.0,)).probabilities(logits)
    with pytest.raises(ValueError, match="got 2 `weights` and 1 `temperatures`"):
        ModelAverage((0.5, 0.5), (1.0,))
