"""Distillation trains again from the start, with the mean of the predictions so far as soft targets of all nodes."""

from dataclasses import replace
from functools import partial
from math import exp, log

import pytest
import torch
from toy import small_blend, two_cliques

from beltrami.data import Split
from beltrami.model import BLEND, Inputs
from beltrami.train import (
    Classification,
    Distillation,
    Epoch,
    Fit,
    LossStep,
    TimeGrid,
    Training,
    fit,
    fit_many,
    predict,
    seeded,
)
from beltrami.train.self_training import RoundTargets, self_training_labels
from beltrami.train.training import Consistency

TOY = two_cliques()
NOISY = TOY.x + 2 * torch.randn(TOY.x.shape, generator=torch.Generator().manual_seed(1))
TRAINING = Training(6, partial(torch.optim.Adam, lr=0.03), time_grid=TimeGrid(1.0))
THRICE = replace(TRAINING, distillation=Distillation(3, 0.7))


def inputs_of(model: BLEND) -> Inputs:
    return model.prepare(NOISY, TOY.edge_index)


def drawn(seed: int, *, nodes: int = 12, classes: int = 3, rounds: int = 3) -> tuple[torch.Tensor, torch.Tensor, Split]:
    generator = torch.Generator().manual_seed(seed)
    kind = torch.arange(nodes) % 4
    outputs = torch.randn(rounds, nodes, classes, generator=generator, dtype=torch.float64)
    return outputs, torch.arange(nodes) % classes, Split(kind == 0, kind == 1, kind == 2, "toy", 0)


def test_cost_is_its_formula() -> None:
    logits, _, _ = drawn(0, rounds=2)
    soft = drawn(1, rounds=1)[0][0].softmax(1)
    total = 0.0
    for one in logits.tolist():
        for scores, q in zip(one, soft.tolist(), strict=True):
            norm = sum(exp(score) for score in scores)
            total -= sum(share * log(exp(score) / norm) for score, share in zip(scores, q, strict=True))
    assert float(Distillation(2, 0.7)(logits, soft)) == pytest.approx(0.7 * total / (2 * 12))


def test_cost_is_least_at_the_soft_targets() -> None:
    soft = drawn(2, rounds=1)[0][0].softmax(1)
    logits = soft.log().requires_grad_()
    Distillation(2)(logits, soft).backward()
    assert logits.grad is not None
    torch.testing.assert_close(logits.grad, torch.zeros_like(logits), atol=1e-15, rtol=0)
    assert torch.autograd.gradcheck(lambda x: Distillation(2)(x, soft), drawn(3)[0].requires_grad_())


def test_targets_are_the_mean_of_all_rounds_before_and_the_labels_of_training_nodes() -> None:
    outputs, y, split = drawn(4)
    targets = RoundTargets(y.where(split.train, -1), split)  # no other label is read
    for k in range(3):
        targets = RoundTargets(targets.y, split, targets.soft).after(outputs[k], k + 1, THRICE)
        assert targets.soft is not None
        for i in range(len(y)):
            mean = [sum(float(outputs[r, i].softmax(0)[c]) for r in range(k + 1)) / (k + 1) for c in range(3)]
            wanted = [float(c == y[i]) for c in range(3)] if split.train[i] else mean
            assert targets.soft[i].tolist() == pytest.approx(wanted)
    assert targets.split is split


def test_self_training_in_later_rounds_takes_the_mean_of_the_rounds() -> None:
    outputs, y, split = drawn(5)
    both, targets = replace(THRICE, self_training=1), RoundTargets(y, split)
    for k in range(2):
        targets = RoundTargets(y, split, targets.soft).after(outputs[k], k + 1, both)
    mean = outputs[:2].softmax(-1).mean(0)
    known, wider = self_training_labels(mean.log(), y, split, 1)
    assert torch.equal(targets.split.train, wider.train)
    assert torch.equal(targets.y, known)


def test_rounds_are_fits_with_a_further_cost() -> None:
    model, log_ = small_blend(dropout=0.3), list[Epoch]()
    found = fit(model, inputs_of(model), TOY.y, TOY.split, replace(THRICE, epochs=2), callbacks=[log_.append])
    teacher = small_blend(dropout=0.3)
    first = fit(teacher, inputs_of(teacher), TOY.y, TOY.split, replace(TRAINING, epochs=2))
    soft = predict(teacher, inputs_of(teacher), time=first.best.time).softmax(1)
    soft[TOY.split.train] = torch.nn.functional.one_hot(TOY.y[TOY.split.train], 2).float()
    by_hand = small_blend(dropout=0.3)
    cost = partial(Distillation(3, 0.7), soft=soft)
    step = LossStep(by_hand, inputs_of(by_hand), TOY.y, TOY.split.train, Consistency(), Classification(2), cost)
    assert list(log_[2].losses) == pytest.approx([float(step())])  # of the first epoch of the second round
    assert [epoch.number for epoch in log_] == [1, 2, 3, 4, 5, 6]
    assert found.epochs == 6 == replace(THRICE, epochs=2).most_epochs


@pytest.mark.slow
def test_without_weight_every_round_is_the_first() -> None:
    models = [small_blend(dropout=0.3) for _ in range(2)]
    plain = fit(models[0], inputs_of(models[0]), TOY.y, TOY.split, TRAINING)
    again = fit(models[1], inputs_of(models[1]), TOY.y, TOY.split, replace(TRAINING, distillation=Distillation(3, 0.0)))
    assert again.best.metric == plain.best.metric
    assert again.epochs == 3 * plain.epochs
    for name, tensor in models[0].state_dict().items():
        torch.testing.assert_close(models[1].state_dict()[name], tensor)


def test_rounds_of_runs_together_are_those_of_runs_alone_and_read_no_other_label() -> None:

    training = replace(THRICE, epochs=3, self_training=1)
    alone = []
    for seed in range(2):
        with seeded(seed):
            model = small_blend(dropout=0.3)
        alone.append((fit(model, inputs_of(model), TOY.y, TOY.split, training), model))
    models = []
    for seed in range(2):
        with seeded(seed):
            models.append(small_blend(dropout=0.3))
    hidden = TOY.y.where(TOY.split.train | TOY.split.val, -1)
    found = fit_many(models, inputs_of(models[0]), hidden, [TOY.split] * 2, training)
    for (one, by_itself), each, model in zip(alone, found, models, strict=True):
        assert isinstance(each, Fit)
        assert (each.epochs, each.best_epoch) == (one.epochs, one.best_epoch)
        for name, tensor in by_itself.state_dict().items():
            torch.testing.assert_close(model.state_dict()[name], tensor, rtol=1e-4, atol=1e-5)


def test_bad_numbers_are_refused() -> None:
    with pytest.raises(ValueError, match="`rounds` at least 1; got 0"):
        Distillation(0)
    with pytest.raises(ValueError, match="weight"):
        Distillation(2, -1.0)
