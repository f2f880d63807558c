"""Self-training adds the most certain nodes of each class, reads no label, and trains again from the start."""

from dataclasses import replace
from typing import Any

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor
from toy import small_blend, two_cliques

from beltrami.data import Split
from beltrami.errors import NotFinite
from beltrami.train import Epoch, Fit, TimeGrid, Training, fit, fit_many, predict, self_training_labels

TOY = two_cliques()
NOISY = TOY.x + 2 * torch.randn(TOY.x.shape, generator=torch.Generator().manual_seed(1))
TRAINING = Training(6, lambda groups: torch.optim.Adam(groups, lr=0.03), time_grid=TimeGrid(1.0))
TWICE = replace(TRAINING, self_training=3)


def drawn(seed: int, *, nodes: int = 30, classes: int = 3) -> tuple[Tensor, Tensor, Split]:
    generator = torch.Generator().manual_seed(seed)
    logits = torch.randn(nodes, classes, generator=generator)
    y = torch.randint(classes, (nodes,), generator=generator)
    kind = torch.randint(4, (nodes,), generator=generator)
    return logits, y, Split(kind == 0, kind == 1, kind == 2, "toy", 0)


@pytest.mark.slow
@given(seed=st.integers(0, 1000), most=st.integers(0, 12))
def test_added_nodes_are_the_most_certain_of_each_class(seed: int, most: int) -> None:
    logits, y, split = drawn(seed)
    known, wider = self_training_labels(logits, y, split, most)
    p = torch.softmax(logits.double(), 1)
    for c in range(3):
        free = [i for i in range(30) if not split.train[i] and not split.val[i] and int(p[i].argmax()) == c]
        best = sorted(free, key=lambda i: -float(p[i, c]))[:most]
        got = [i for i in free if wider.train[i]]
        assert sorted(got) == sorted(best)
        assert all(int(known[i]) == c for i in best)
    assert bool(wider.train[split.train].all())
    assert torch.equal(wider.val, split.val)
    assert torch.equal(wider.test, split.test & ~wider.train)
    assert torch.equal(known[~wider.train | split.train], y[~wider.train | split.train])


def test_labels_outside_training_are_never_read() -> None:
    logits, y, split = drawn(3)
    odd = y.where(split.train | split.val, -1)
    (known, wider), (other, as_wide) = (
        self_training_labels(logits, y, split, 4),
        self_training_labels(logits, odd, split, 4),
    )
    assert torch.equal(wider.train, as_wide.train)
    assert torch.equal(known[wider.train], other[wider.train])


def inputs_of(model: Any) -> Any:
    return model.prepare(NOISY, TOY.edge_index)


@pytest.mark.slow
def test_self_training_is_two_fits_with_new_labels_between() -> None:
    model, by_hand = small_blend(dropout=0.3), small_blend(dropout=0.3)
    log: list[Epoch] = []
    found = fit(model, inputs_of(model), TOY.y, TOY.split, TWICE, callbacks=[log.append])

    teacher = small_blend(dropout=0.3)
    first = fit(teacher, inputs_of(teacher), TOY.y, TOY.split, TRAINING)
    y, wider = self_training_labels(predict(teacher, inputs_of(teacher), time=first.best.time), TOY.y, TOY.split, 3)
    second = fit(by_hand, inputs_of(by_hand), y, wider, TRAINING)

    assert int(wider.train.sum()) > int(TOY.split.train.sum())
    assert found.best == second.best
    assert found.epochs == first.epochs + second.epochs == len(log) <= TWICE.most_epochs == 12
    assert found.best_epoch == first.epochs + second.best_epoch
    assert [epoch.number for epoch in log] == list(range(1, len(log) + 1))
    assert found.stats.evaluations == first.stats.evaluations + second.stats.evaluations
    for name, tensor in by_hand.state_dict().items():
        torch.testing.assert_close(model.state_dict()[name], tensor)


@pytest.mark.slow
def test_labels_of_test_nodes_change_nothing() -> None:
    weights = []
    for y in (TOY.y, TOY.y.where(~TOY.split.test, -1)):
        model = small_blend()
        fit(model, inputs_of(model), y, TOY.split, TWICE)
        weights.append(model.state_dict())
    assert all(torch.equal(weights[0][name], weights[1][name]) for name in weights[0])


@pytest.mark.slow
def test_a_run_that_fails_first_is_not_tried_again() -> None:
    models = [small_blend() for _ in range(3)]
    with torch.no_grad():
        next(models[1].parameters()).fill_(float("nan"))
    told: list[Epoch] = []
    found = fit_many(models, inputs_of(models[0]), TOY.y, [TOY.split] * 3, TWICE, callbacks=[told.append])
    assert [type(each) for each in found] == [Fit, NotFinite, Fit]
    assert [each.epochs for each in found if isinstance(each, Fit)] == [12, 12]
    assert [epoch.number for epoch in told] == list(range(1, 13))
    assert {epoch.runs for epoch in told} == {(0, 2)}
    assert told[-1].evaluations == sum(each.stats.evaluations for each in found if isinstance(each, Fit))


def test_a_negative_number_is_refused() -> None:
    with pytest.raises(ValueError, match=r"`self_training` at least 0; got -1"):
        replace(TRAINING, self_training=-1)
