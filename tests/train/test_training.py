"""The training loss is its formula and reads training labels alone; consistency makes passes agree."""

import math

import pytest
import torch
from torch import Tensor
from torch.nn import functional as F
from toy import small_blend, two_cliques

from beltrami.model import BLEND, Dropout
from beltrami.train import Classification, Consistency, LossStep

TOY = two_cliques()
TASK = Classification(2)


def loss_step(model: BLEND, consistency: Consistency, *, y: Tensor = TOY.y) -> LossStep:
    return LossStep(model, model.prepare(TOY.x, TOY.edge_index), y, TOY.split.train, consistency, TASK)


def reset_dropout(model: BLEND) -> None:
    """Let the next call drop what the first one dropped."""
    for dropout in (module for module in model.modules() if isinstance(module, Dropout)):
        dropout.calls.zero_()


def test_consistency_is_its_formula() -> None:
    logits = torch.randn(3, 5, 4, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    total = 0.0
    for i in range(5):
        p = [[math.exp(v) for v in logits[k, i].tolist()] for k in range(3)]
        p = [[v / sum(row) for v in row] for row in p]
        mean = [sum(row[c] for row in p) / 3 for c in range(4)]
        sharp = [v ** (1 / 0.4) for v in mean]
        target = [v / sum(sharp) for v in sharp]
        total += sum((row[c] - target[c]) ** 2 for row in p for c in range(4))
    assert float(Consistency(0.7, 3, 0.4)(logits.softmax(-1))) == pytest.approx(0.7 * total / 15, abs=1e-12)


def test_passes_that_agree_and_are_sure_cost_nothing() -> None:
    p = torch.tensor([[50.0, 0.0], [0.0, 50.0]]).softmax(-1)
    assert float(Consistency(1.0, 2)(torch.stack((p, p)))) < 1e-12
    assert float(Consistency(1.0, 2)(torch.stack((p, p.flip(1))))) > 0.4


def test_probabilities_that_underflow_keep_a_finite_gradient() -> None:
    logits = torch.tensor([[[200.0, -200.0]], [[300.0, -300.0]]], requires_grad=True)
    Consistency(1.0, 2, 0.1)(logits.softmax(-1)).backward()
    assert logits.grad is not None
    assert bool(torch.isfinite(logits.grad).all())


def test_no_gradient_passes_through_the_target() -> None:
    logits = torch.randn(1, 6, 3, dtype=torch.float64, generator=torch.Generator().manual_seed(1), requires_grad=True)
    Consistency(1.0, 1, 0.5)(logits.softmax(-1)).backward()
    p = logits.detach().clone().requires_grad_()
    target = (logits.detach().softmax(-1)[0] ** 2) / (logits.detach().softmax(-1)[0] ** 2).sum(-1, keepdim=True)
    (p.softmax(-1)[0] - target).square().sum(-1).mean().backward()
    assert logits.grad is not None
    assert p.grad is not None
    assert torch.allclose(logits.grad, p.grad, atol=1e-12)


def test_without_dropout_more_passes_change_nothing() -> None:
    model = small_blend().train()
    one, three = loss_step(model, Consistency()), loss_step(model, Consistency(passes=3))
    logits = model.run(one.inputs).logits[TOY.split.train]
    assert one().item() == pytest.approx(F.cross_entropy(logits, TOY.y[TOY.split.train]).item(), abs=1e-6)
    assert three().item() == pytest.approx(one().item(), abs=1e-6)
    assert three.stats.evaluations == 3 * one.stats.evaluations


def test_labels_outside_the_training_nodes_are_never_read() -> None:
    hidden = TOY.y.where(TOY.split.train, -7)
    losses = [loss_step(small_blend(dropout=0.3), Consistency(1.0, 2), y=y)() for y in (TOY.y, hidden)]
    assert torch.equal(*losses)


@pytest.mark.slow
def test_passes_come_to_agree_where_consistency_is_asked_for() -> None:
    variances = []
    for weight in (0.0, 5.0):
        model = small_blend(dropout=0.5).train()
        step = loss_step(model, Consistency(weight, 2))
        optimiser = torch.optim.Adam(model.parameters(), lr=0.02)
        for _ in range(20):
            step()
            optimiser.step()
        assert step.stats.evaluations == 2 * 16  # two passes of four steps of RK4
        with torch.no_grad():
            p = torch.stack([model.run(step.inputs).logits.softmax(-1) for _ in range(12)])
        variances.append(float(p.var(0).sum(-1)[~TOY.split.train].mean()))
    assert variances[1] < 0.9 * variances[0]


def test_the_weight_rises_over_the_ramp() -> None:
    assert [Consistency(1.0, 2, ramp=4).share(epoch) for epoch in range(1, 7)] == [0.25, 0.5, 0.75, 1, 1, 1]
    assert Consistency(1.0, 2).share(1) == 1
    model, losses = small_blend(dropout=0.5).train(), []
    step = loss_step(model, Consistency(2.0, 2, ramp=4))
    for epoch in (1, 4):
        reset_dropout(model)
        step.begin(epoch)
        losses.append(float(step()))
    reset_dropout(model)
    with torch.no_grad():
        logits = torch.stack([model.run(step.inputs).logits for _ in range(2)])
    cost = float(Consistency(2.0, 2)(logits.softmax(-1)))
    assert losses[1] - losses[0] == pytest.approx(0.75 * cost, abs=1e-5)


def test_dropped_nodes_start_at_zero_and_the_others_are_scaled_up() -> None:
    model = small_blend()
    model.node_dropout = Dropout(0.5, rows=True)
    inputs = model.prepare(TOY.x, TOY.edge_index)
    whole = model.eval().encode(inputs)
    dropped = model.train().encode(inputs)
    zero = (dropped == 0).all(1)
    assert 0 < int(zero.sum()) < len(zero)
    assert torch.allclose(dropped[~zero], 2 * whole[~zero], atol=1e-6)


@pytest.mark.parametrize(
    "bad",
    [
        {"weight": -1.0},
        {"passes": 0},
        {"temperature": 0.0},
        {"temperature": 1.5},
        {"weight": float("nan")},
        {"ramp": -1},
    ],
)
def test_bad_consistency_is_refused(bad: dict[str, float]) -> None:
    with pytest.raises(ValueError, match=r"Consistency needs `weight` and `ramp` at least 0"):
        Consistency(**bad)  # type: ignore[arg-type]
