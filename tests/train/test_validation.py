"""Validation finds the best time on the way; the test set is read from scores alone."""

from collections.abc import Sequence

import pytest
import torch
from torch import Tensor
from toy import small_blend, two_cliques

from beltrami.model import BLEND, Inputs
from beltrami.train import Classification, TimeGrid, ValidationScore, accuracy, predict, read_test
from beltrami.train.validation import make_validation

TOY = two_cliques()
TIME = 2.0
TIMES = TimeGrid(3.0, 1).times(TIME)  # T, 2 T and 3 T


def scripted(monkeypatch: pytest.MonkeyPatch, margins: Sequence[float], *, wrong: Sequence[int]) -> BLEND:
    """A model that scores the true class ahead by ``margins[k]`` at the k-th time, but not of ``wrong[k]`` nodes."""
    model = small_blend(time=TIME)

    def logits_along(inputs: Inputs, ts: Sequence[float], *, nodes: Tensor | None = None) -> Tensor:
        assert nodes is not None, "validation uses validation nodes alone"
        assert torch.equal(nodes, TOY.split.val.nonzero()[:, 0]), "validation uses validation nodes alone"
        assert ts[0] == 0
        y = TOY.y[nodes]
        scores = []
        for margin, mistakes in zip((0.0, *margins), (0, *wrong), strict=True):
            guess = torch.where(torch.arange(len(y)) < mistakes, 1 - y, y)
            scores.append(margin * torch.nn.functional.one_hot(guess, 2).float())
        return torch.stack(scores)

    monkeypatch.setattr(model, "logits_along", logits_along)
    return model


def score(model: BLEND, time_grid: TimeGrid) -> ValidationScore:
    return make_validation(
        model, model.prepare(TOY.x, TOY.edge_index), TOY.y, TOY.split, time_grid, Classification(2)
    )()


@pytest.mark.parametrize("best", [0, 1, 2])
def test_validation_picks_the_time_of_highest_accuracy(monkeypatch: pytest.MonkeyPatch, best: int) -> None:
    model = scripted(monkeypatch, (1.0, 1.0, 1.0), wrong=[1 if k == best else 2 for k in range(3)])
    found = score(model, TimeGrid(3.0, 1))
    assert found.time == TIMES[best]
    assert found.accuracy == pytest.approx(5 / 6)


@pytest.mark.parametrize("best", [0, 1, 2])
def test_ties_go_to_the_smaller_loss(monkeypatch: pytest.MonkeyPatch, best: int) -> None:
    margins = [4.0 if k == best else 2.0 for k in range(3)]
    found = score(scripted(monkeypatch, margins, wrong=(0, 0, 0)), TimeGrid(3.0, 1))
    assert found.time == TIMES[best]
    assert -found.minus_loss == pytest.approx(float(torch.log1p(torch.exp(torch.tensor(-4.0)))), rel=1e-5)


def test_accuracy_counts_before_loss(monkeypatch: pytest.MonkeyPatch) -> None:
    found = score(scripted(monkeypatch, (9.0, 0.1, 9.0), wrong=(2, 0, 1)), TimeGrid(3.0, 1))
    assert (found.time, found.accuracy) == (TIMES[1], 1.0)


@pytest.mark.parametrize(("patience", "expected"), [(1, 0), (2, 0), (3, 4)])
def test_patience_ends_validation_before_a_later_peak(
    monkeypatch: pytest.MonkeyPatch, patience: int, expected: int
) -> None:
    model = scripted(monkeypatch, (1.0,) * 5, wrong=(2, 3, 3, 1, 0))
    assert score(model, TimeGrid(5.0, 1, patience)).time == TimeGrid(5.0, 1).times(TIME)[expected]


def test_validation_does_not_train() -> None:
    model = small_blend(dropout=0.5)
    before = {name: tensor.clone() for name, tensor in model.state_dict().items()}
    first, second = (score(model.train(), TimeGrid(2.0, 4)) for _ in range(2))
    assert first == second
    assert not model.training
    assert all(torch.equal(tensor, before[name]) for name, tensor in model.state_dict().items())


def test_score_is_that_of_the_outputs_at_its_time() -> None:
    model = small_blend()
    inputs = model.prepare(TOY.x, TOY.edge_index)
    found = make_validation(model, inputs, TOY.y, TOY.split, TimeGrid(3.0, 4), Classification(2))()
    logits = predict(model, inputs, time=found.time)[TOY.split.val]
    assert accuracy(logits, TOY.y[TOY.split.val]) == found.accuracy
    loss = torch.nn.functional.cross_entropy(logits, TOY.y[TOY.split.val])
    assert float(loss) == pytest.approx(-found.minus_loss, rel=1e-4)


@pytest.mark.parametrize("time", [0.5, 2.0, 5.0])
def test_prediction_stops_the_flow_at_the_time(time: float) -> None:
    model = small_blend(dropout=0.5).eval()
    inputs = model.prepare(TOY.x, TOY.edge_index)
    with torch.no_grad():
        along = model.logits_along(inputs, (0.0, 0.5, 2.0, 5.0, 6.0))
    k = (0.0, 0.5, 2.0, 5.0).index(time)
    logits = predict(model.train(), inputs, time=time)
    assert torch.allclose(logits, along[k], atol=1e-6)
    assert not logits.requires_grad


def test_prediction_at_the_terminal_time_is_forward() -> None:
    model = small_blend().eval()
    inputs = model.prepare(TOY.x, TOY.edge_index)
    assert torch.equal(predict(model, inputs, time=TIME), model(TOY.x, TOY.edge_index).detach())


def test_test_accuracy_is_the_share_of_test_nodes_that_are_right() -> None:
    logits = torch.nn.functional.one_hot(TOY.y, 2).float()
    assert read_test(logits, TOY.y, TOY.split) == 1
    assert read_test(-logits, TOY.y, TOY.split) == 0
    chosen = TOY.split.test.nonzero()[:3, 0]
    logits[chosen] *= -1
    assert read_test(logits, TOY.y, TOY.split) == pytest.approx(0.7)
    elsewhere = torch.where(TOY.split.test[:, None], logits, -logits)
    assert read_test(elsewhere, TOY.y, TOY.split) == read_test(logits, TOY.y, TOY.split)


def test_accuracy_over_no_nodes_is_zero() -> None:
    assert accuracy(torch.zeros(0, 2), torch.zeros(0, dtype=torch.int64)) == 0


def test_time_grid_goes_from_a_fraction_to_a_multiple_of_the_terminal_time_and_contains_it() -> None:
    times = TimeGrid(3.0, 8).times(18.29)
    assert (len(times), times[0]) == (24, 18.29 / 8)
    assert times[-1] == pytest.approx(3 * 18.29)
    assert 18.29 in times
    assert list(times) == sorted(set(times))


def test_time_grid_of_multiple_one_is_the_terminal_time() -> None:
    assert TimeGrid(1.0).times(4.0) == (4.0,)


def test_model_without_time_is_evaluated_once() -> None:
    assert TimeGrid(3.0, 8).times(0.0) == (0.0,)


@pytest.mark.parametrize(
    ("multiple", "resolution", "patience"),
    [(0.5, 1, 1), (float("nan"), 1, 1), (float("inf"), 1, 1), (1.0, 0, 1), (1.0, 1, 0)],
)
def test_empty_time_grid_is_refused(multiple: float, resolution: int, patience: int) -> None:
    with pytest.raises(ValueError, match=rf"at least 1 and finite; got {multiple}, {resolution}, {patience}"):
        TimeGrid(multiple, resolution, patience)
