"""The temperature minimises the likelihood's negative logarithm; measures of calibration follow their definitions."""

import math

import numpy
import pytest
import torch
from torch import Tensor
from torch.nn import functional as F

from beltrami.predict.probability import (
    TEMPERATURES,
    bin_surplus,
    brier,
    expected_calibration_error,
    fit_temperature,
    match_confidence,
    negative_log_likelihood,
)


def sample(nodes: int, classes: int, *, seed: int = 0) -> tuple[Tensor, Tensor]:
    """Return logits, and classes drawn from their softmax."""
    generator = torch.Generator().manual_seed(seed)
    logits = 2 * torch.randn(nodes, classes, generator=generator, dtype=torch.float64)
    return logits, torch.multinomial(logits.softmax(1), 1, generator=generator)[:, 0]


def sample_labels(nodes: int, labels: int, *, seed: int = 0) -> tuple[Tensor, Tensor]:
    """Return logits, and labels drawn from their sigmoid."""
    generator = torch.Generator().manual_seed(seed)
    logits = 2 * torch.randn(nodes, labels, generator=generator, dtype=torch.float64)
    return logits, torch.bernoulli(logits.sigmoid(), generator=generator)


@pytest.mark.slow
@pytest.mark.parametrize("factor", [0.2, 1.0, 7.0])
def test_temperature_minimises_the_cross_entropy(factor: float) -> None:
    logits, y = sample(300, 4)
    logits = factor * logits
    best = fit_temperature(logits, y)
    losses = [float(F.cross_entropy(logits / t, y)) for t in (best, 0.999 * best, 1.001 * best)]
    assert losses[0] == min(losses)
    grid = numpy.linspace(*TEMPERATURES, 2000)
    assert losses[0] <= min(float(F.cross_entropy(logits / t, y)) for t in grid)


def test_temperature_of_labels_minimises_the_binary_cross_entropy() -> None:
    logits, y = sample_labels(200, 3)
    best = fit_temperature(3 * logits, y)
    losses = [float(F.binary_cross_entropy_with_logits(3 * logits / t, y)) for t in (best, 0.999 * best, 1.001 * best)]
    assert losses[0] == min(losses)


def test_temperature_of_drawn_labels_is_one_and_scales_with_the_logits() -> None:
    logits, y = sample(20_000, 5)
    assert fit_temperature(logits, y) == pytest.approx(1, abs=0.03)
    assert fit_temperature(4 * logits, y) == pytest.approx(4 * fit_temperature(logits, y), rel=1e-9)


@pytest.mark.parametrize("scale", [1e-2, 1.0, 1e6])
def test_labels_that_are_all_right_give_the_smallest_temperature(scale: float) -> None:
    logits, _ = sample(10, 3)
    assert fit_temperature(scale * logits, logits.argmax(1)) == TEMPERATURES[0]


def test_labels_that_are_all_wrong_give_the_largest_temperature() -> None:
    logits, _ = sample(10, 3)
    assert fit_temperature(logits, logits.argmin(1)) == TEMPERATURES[1]


def test_equal_logits_give_the_temperature_one() -> None:
    assert fit_temperature(torch.full((3, 2), 7.0), torch.tensor([0, 1, 1])) == 1


def test_unknown_labels_mix_the_targets_with_the_uniform_distribution() -> None:
    logits, y = sample(40, 3)
    target = 40 / 41 * F.one_hot(y, 3) + 1 / 41 / 3
    best = fit_temperature(logits, y, unknown_labels=1.0)
    losses = [float(F.cross_entropy(logits / t, target)) for t in (best, 0.999 * best, 1.001 * best)]
    assert losses[0] == min(losses)


def test_one_unknown_label_beside_ten_right_ones_gives_moderate_probabilities() -> None:
    logits, y = torch.eye(3)[torch.arange(10) % 3], torch.arange(10) % 3
    t = fit_temperature(logits, y, unknown_labels=1.0)
    assert (logits / t).softmax(1).amax(1) == pytest.approx(numpy.full(10, 10 / 11 + 1 / 33), abs=1e-6)


@pytest.mark.parametrize("bins", [1, 4, 15])
def test_calibration_error_equals_the_double_loop(bins: int) -> None:
    logits, y = sample(200, 4)
    p = (3 * logits).softmax(1)
    p[:4] = torch.tensor([0.5, 0.25, 0.25, 0.0])  # on the border of two bins
    total = 0.0
    for b in range(bins):
        inside = [i for i in range(200) if b / bins < float(p[i].max()) <= (b + 1) / bins]
        right = sum(int(p[i].argmax()) == int(y[i]) for i in inside)
        total += abs(right - sum(float(p[i].max()) for i in inside)) / 200
    assert expected_calibration_error(p, y, bins=bins) == pytest.approx(total, abs=1e-12)


def test_calibration_error_of_labels_is_that_of_present_against_absent() -> None:
    logits, y = sample_labels(50, 3)
    p = logits.sigmoid().flatten()
    two_classes = torch.stack((1 - p, p), 1)
    expected = expected_calibration_error(two_classes, y.flatten().long())
    assert expected_calibration_error(logits.sigmoid(), y) == pytest.approx(expected, abs=1e-12)


def test_sure_and_right_predictions_have_no_error() -> None:
    y = torch.tensor([0, 2, 1])
    p = torch.eye(3)[y]
    assert expected_calibration_error(p, y) == 0
    assert brier(p, y) == 0
    assert negative_log_likelihood(p, y) == 0


def test_likelihood_and_brier_score_follow_their_definitions() -> None:
    logits, y = sample(30, 4)
    p = logits.softmax(1)
    assert negative_log_likelihood(p, y) == pytest.approx(float(F.cross_entropy(logits, y)))
    assert brier(p, y) == pytest.approx(float((p - F.one_hot(y, 4)).square().sum(1).mean()))
    logits, labels = sample_labels(30, 4)
    expected = float(F.binary_cross_entropy_with_logits(logits, labels))
    assert negative_log_likelihood(logits.sigmoid(), labels) == pytest.approx(expected)
    assert brier(logits.sigmoid(), labels) == pytest.approx(float((logits.sigmoid() - labels).square().mean()))


def test_a_probability_of_zero_has_a_finite_likelihood() -> None:
    assert math.isfinite(negative_log_likelihood(torch.tensor([[0.0, 1.0]]), torch.tensor([0])))


@pytest.mark.parametrize(
    ("values", "y", "message"),
    [
        (torch.zeros(0, 3), torch.zeros(0, dtype=torch.int64), "at least one node"),
        (torch.zeros(3), torch.zeros(3, dtype=torch.int64), "shape"),
        (torch.tensor([[float("nan"), 0.0]]), torch.tensor([0]), "NaN"),
        (torch.zeros(2, 3), torch.tensor([0]), r"\(2,\) or \(2, 3\)"),
        (torch.zeros(2, 3), torch.tensor([0, 3]), "from 0 to 2"),
        (torch.zeros(2, 3), torch.tensor([-1, 0]), "from 0 to 2"),
        (torch.zeros(2, 3), torch.tensor([0.0, 1.0]), "int64"),
        (torch.zeros(2, 3), torch.full((2, 3), 2), "0 and 1"),
    ],
)
def test_targets_that_do_not_fit_are_refused(values: Tensor, y: Tensor, message: str) -> None:
    for function in (fit_temperature, expected_calibration_error, negative_log_likelihood, brier):
        with pytest.raises(ValueError, match=message):
            function(values, y)


def test_bins_and_unknown_labels_out_of_range_are_refused() -> None:
    logits, y = sample(5, 3)
    with pytest.raises(ValueError, match="bins"):
        expected_calibration_error(logits.softmax(1), y, bins=0)
    with pytest.raises(ValueError, match="unknown_labels"):
        fit_temperature(logits, y, unknown_labels=-1.0)


def test_matched_confidence_is_the_accuracy() -> None:
    logits = 3 * torch.randn(200, 4, generator=torch.Generator().manual_seed(0)).double()
    y = torch.where(torch.arange(200) < 120, logits.argmax(1), (logits.argmax(1) + 1) % 4)
    temperature = match_confidence(logits, y)
    assert float((logits / temperature).softmax(1).amax(1).mean()) == pytest.approx(0.6, abs=1e-8)
    with_unknown = match_confidence(logits, y, unknown_labels=10.0)
    assert float((logits / with_unknown).softmax(1).amax(1).mean()) == pytest.approx((120 + 2.5) / 210, abs=1e-8)


def test_matched_confidence_stays_within_the_range() -> None:
    logits = torch.randn(50, 3, generator=torch.Generator().manual_seed(1))
    assert match_confidence(logits, logits.argmax(1)) == TEMPERATURES[0]
    assert match_confidence(logits, logits.argmin(1)) == TEMPERATURES[1]


def test_bins_of_several_splits_add_up() -> None:
    p = torch.rand(40, 3, generator=torch.Generator().manual_seed(2)).softmax(1)
    y = torch.arange(40) % 3
    parts = bin_surplus(p[:15], y[:15]) + bin_surplus(p[15:], y[15:])
    assert float(parts.abs().sum() / 40) == pytest.approx(expected_calibration_error(p, y))
