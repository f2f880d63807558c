"""Tasks: losses and metrics are their formulas, models learn them, and stacked runs equal single ones."""

import math
from dataclasses import replace
from typing import Any

import pytest
import torch
from sklearn.metrics import f1_score, r2_score
from torch import Tensor
from toy import small_blend, two_cliques

from beltrami.data import Split
from beltrami.model import BLEND
from beltrami.train import (
    Classification,
    Fit,
    MultiLabel,
    Regression,
    Task,
    TimeGrid,
    Training,
    accuracy,
    fit,
    fit_many,
    per_class_accuracy,
    predict,
    read_test,
    start_fit,
)

TOY = two_cliques()
SIDE = (2.0 * TOY.y - 1.0)[:, None]
TARGETS: dict[Task, Tensor] = {
    Classification(2): TOY.y,
    MultiLabel(2): torch.stack((TOY.y == 0, torch.ones_like(TOY.y, dtype=torch.bool)), 1).float(),  # by clique, and all
    Regression(2): torch.cat((3 + SIDE, 5 - 2 * SIDE), 1),
}
TRAINING = Training(40, lambda groups: torch.optim.Adam(groups, lr=0.05), time_grid=TimeGrid(2.0, 2), validate_every=4)
THREE = torch.tensor([0, 1, 10])  # two nodes of one class and one of the other
every_task = pytest.mark.parametrize("task", TARGETS, ids=str)


def random(*shape: int, seed: int = 0) -> Tensor:
    return torch.randn(shape, dtype=torch.float64, generator=torch.Generator().manual_seed(seed))


@pytest.mark.slow
@every_task
def test_every_task_learns_the_toy_and_predicts_its_targets(task: Task) -> None:
    model, y = small_blend(), TARGETS[task]
    inputs = model.prepare(TOY.x, TOY.edge_index)
    found = fit(model, inputs, y, TOY.split, TRAINING, task=task)
    outputs = predict(model, inputs, time=found.best.time)
    if isinstance(task, Regression):
        baseline = y[TOY.split.test] - y[TOY.split.train].mean(0)  # the error of the best constant
        assert -read_test(outputs, y, TOY.split, task=task) < 0.5 * float(baseline.square().mean().sqrt())
        assert r2_score(y[TOY.split.test], task.prediction(outputs)[TOY.split.test]) > 0.75
        assert found.best.metric == pytest.approx(-math.sqrt(-found.best.minus_loss), abs=1e-5)
    else:
        assert found.best.metric == read_test(outputs, y, TOY.split, task=task) == 1
        assert torch.equal(task.prediction(outputs)[TOY.split.test].to(y.dtype), y[TOY.split.test])
    assert task.prediction(outputs).shape == y.shape


@pytest.mark.slow
@every_task
def test_constant_model_reaches_the_minimum_in_closed_form(task: Task) -> None:
    model, log, split = small_blend(), list[float](), replace(TOY.split, train=torch.isin(torch.arange(20), THREE))
    model.xi.linear.weight.requires_grad_(False).zero_()  # the outputs are the bias
    y = torch.nn.functional.one_hot(TOY.y, 2) if isinstance(task, MultiLabel) else TARGETS[task]
    p = torch.tensor([2 / 3, 1 / 3])  # how often each class is seen
    entropy = -float((p * p.log()).sum())
    variance = float(y[THREE].float().var(0, correction=0).mean())
    minimum = variance if isinstance(task, Regression) else entropy
    training = Training(40, lambda groups: torch.optim.SGD(groups, lr=1.0), time_grid=TimeGrid(1.0))
    inputs = model.prepare(TOY.x, TOY.edge_index)
    fit(model, inputs, y, split, training, task=task, callbacks=[lambda epoch: log.append(epoch.losses[0])])
    assert min(log) > minimum - 1e-6
    assert log[-1] == pytest.approx(minimum, abs=1e-4)


@pytest.mark.slow
@every_task
def test_stacked_runs_of_every_task_equal_single_runs(task: Task) -> None:
    own, training = TOY.split, replace(TRAINING, epochs=6)
    y = TARGETS[task].double() if TARGETS[task].is_floating_point() else TARGETS[task]
    val = [own.val, own.val & (torch.arange(20) % 3 > 0)]  # of different sizes, so that one is padded
    splits = [Split(own.train, nodes, own.test, "toy", k) for k, nodes in enumerate(val)]
    models, alone = ([shifted(seed) for seed in range(2)] for _ in range(2))
    inputs = models[0].prepare(TOY.x.double(), TOY.edge_index)
    hidden = y.clone()
    hidden[own.test] = -7 if task.exclusive else float("nan")
    found = fit_many(models, inputs, hidden, splits, training, task=task)
    for model, other, split, together in zip(models, alone, splits, found, strict=True):
        single = fit(other, inputs, y, split, training, task=task)
        assert isinstance(together, Fit)
        assert (together.best_epoch, together.best.time) == (single.best_epoch, single.best.time)
        assert together.best.metric == pytest.approx(single.best.metric, abs=1e-10)
        assert together.best.minus_loss == pytest.approx(single.best.minus_loss, abs=1e-10)
        for name, tensor in other.state_dict().items():
            torch.testing.assert_close(model.state_dict()[name], tensor, rtol=1e-8, atol=1e-10)


def shifted(seed: int) -> BLEND:
    """A model in double precision with weights of its own."""
    model = small_blend().double()
    with torch.no_grad():
        for k, parameter in enumerate(model.parameters()):
            parameter.add_(0.3 * random(*parameter.shape, seed=100 * seed + k))
    return model


def formula(task: Task, outputs: Tensor, y: Tensor) -> list[float]:
    """The loss of each node, number by number."""
    losses = []
    for row, target in zip(outputs.tolist(), y.tolist(), strict=True):
        if isinstance(task, Classification):
            losses.append(math.log(sum(math.exp(v) for v in row)) - row[target])
        elif isinstance(task, MultiLabel):
            terms = [math.log(1 + math.exp(-v if t else v)) for v, t in zip(row, target, strict=True)]
            losses.append(sum(terms) / len(terms))
        else:
            losses.append(sum((v - t) ** 2 for v, t in zip(row, target, strict=True)) / len(row))
    return losses


@every_task
def test_loss_is_its_formula(task: Task) -> None:
    outputs, y = random(3, 20, 2), TARGETS[task]
    expected = [formula(task, each, y) for each in outputs]
    torch.testing.assert_close(task.loss(outputs, y, reduction="none"), torch.tensor(expected, dtype=torch.float64))
    mean = sum(expected[0]) / 20
    assert task.loss(outputs[0], y, reduction="mean").item() == pytest.approx(mean, abs=1e-12)


@every_task
def test_gradient_of_the_loss_is_right(task: Task) -> None:
    y = TARGETS[task][8:12]
    outputs = random(4, 2).requires_grad_()
    assert torch.autograd.gradcheck(lambda z: task.loss(z, y, reduction="mean"), (outputs,))


@every_task
def test_metric_counts_the_chosen_nodes_alone(task: Task) -> None:
    outputs, y, counted = random(3, 20, 2), TARGETS[task], torch.arange(20) % 3 > 0
    expected = torch.stack([task.metric(each[counted], y[counted]) for each in outputs])
    torch.testing.assert_close(task.metric(outputs, y, counted=counted), expected)


def test_metrics_are_their_definitions() -> None:
    outputs = random(20, 2)
    assert accuracy(outputs, TOY.y) == pytest.approx(sum((outputs.argmax(1) == TOY.y).tolist()) / 20)
    labels = TARGETS[MultiLabel(2)]
    micro = f1_score(labels.numpy(), (outputs > 0).numpy(), average="micro")
    assert float(MultiLabel(2).metric(outputs, labels)) == pytest.approx(micro)
    assert float(MultiLabel(2).metric(-torch.ones(3, 2), torch.zeros(3, 2))) == 0  # no positive at all
    error = (outputs - TARGETS[Regression(2)]).square().mean().sqrt()
    assert float(Regression(2).metric(outputs, TARGETS[Regression(2)])) == pytest.approx(-float(error))


def test_accuracy_of_each_class() -> None:
    logits = torch.tensor([[2.0, 1.0, 0.0], [0.0, 1.0, 0.0], [0.0, 1.0, 0.0]])
    assert per_class_accuracy(logits, torch.tensor([0, 0, 1]), 3) == [0.5, 1.0, None]


def test_probabilities_are_softmax_or_sigmoid() -> None:
    outputs = random(5, 3)
    assert torch.equal(Classification(3).probabilities(outputs), outputs.softmax(-1))
    assert torch.equal(MultiLabel(3).probabilities(outputs), outputs.sigmoid())
    with pytest.raises(ValueError, match=r"Regression has no classes"):
        Regression(3).probabilities(outputs)


def test_one_target_may_be_a_vector() -> None:
    task, outputs, y = Regression(), random(6, 1), random(6, seed=1)
    assert torch.equal(task.loss(outputs, y, reduction="none"), task.loss(outputs, y[:, None], reduction="none"))
    assert task.prediction(outputs).shape == (6,)
    train, val, test = (torch.arange(6) % 3 == k for k in range(3))
    task.check(y, Split(train, val, test, "toy", 0))


LABELS, NUMBERS, NONE = TARGETS[MultiLabel(2)], TARGETS[Regression(2)], torch.zeros(20, dtype=torch.bool)


@pytest.mark.parametrize(
    ("task", "y", "split", "message"),
    [
        (Regression(2), NUMBERS[:19], TOY.split, r"`y` has 19 entries where the split has 20 nodes"),
        (Regression(2), NUMBERS, replace(TOY.split, train=NONE), r"the split has no training nodes"),
        (Regression(2), NUMBERS, replace(TOY.split, val=NONE), r"the split has no validation nodes"),
        (Regression(1), NUMBERS, TOY.split, r"Regression needs `y` of shape \(n, 1\); got \(20, 2\)"),
        (Regression(2), NUMBERS.long(), TOY.split, r"Regression needs floating-point `y`; got torch.int64"),
        (Regression(2), NUMBERS / 0, TOY.split, r"Regression needs finite `y`; a training or validation node has NaN"),
        (MultiLabel(3), LABELS, TOY.split, r"MultiLabel needs `y` of shape \(n, 3\); got \(20, 2\)"),
        (MultiLabel(2), 2 * LABELS, TOY.split, r"MultiLabel needs `y` of 0 and 1; a training or validation node has 2"),
        (MultiLabel(2), 0 * LABELS, TOY.split, r"label 0 is present at no training node"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_targets_of_another_kind_are_refused(task: Task, y: Tensor, split: Split, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        task.check(y, split)


@pytest.mark.parametrize(
    "convert",
    [
        lambda y: y.float(),
        lambda y: y.double(),
        lambda y: y.int(),
        lambda y: y.bool(),
        lambda y: y.to(torch.uint8),
        lambda y: y[:, None],
        lambda y: y[:, None].float(),
        lambda y: y.numpy(),
        lambda y: y.numpy().astype("int32"),
        lambda y: y.to_sparse(),
    ],
    ids=["float", "double", "int32", "bool", "uint8", "(n, 1)", "float (n, 1)", "numpy", "numpy int32", "sparse"],
)
def test_classes_of_other_types_are_converted_where_that_is_safe(convert: Any) -> None:
    y = convert(TOY.y)
    training = replace(TRAINING, epochs=2)
    (model, same), inputs = (small_blend(), small_blend()), small_blend().prepare(TOY.x, TOY.edge_index)
    found, expected = fit(model, inputs, y, TOY.split, training), fit(same, inputs, TOY.y, TOY.split, training)
    assert found.best == expected.best
    outputs = predict(model, inputs, time=2.0)
    assert accuracy(outputs, y) == accuracy(outputs, TOY.y)
    assert read_test(outputs, y, TOY.split) == read_test(outputs, TOY.y, TOY.split)
    assert per_class_accuracy(outputs, y, 2) == per_class_accuracy(outputs, TOY.y, 2)
    assert Classification.balanced(2, y) == Classification.balanced(2, TOY.y)


@pytest.mark.parametrize(
    ("y", "message"),
    [
        (torch.nn.functional.one_hot(TOY.y), r"`y` must hold one class per node.*one-hot rows, use `y.argmax\(1\)`"),
        (TOY.y + 0.5, r"`y` holds 0.5, and classes are whole numbers .*`task=Regression\(\)`"),
        (TOY.y / 0.0, "`y` holds nan, and classes are whole numbers"),
        (TOY.y.to(torch.complex64), "`y` must hold classes as integers"),
        (torch.tensor(1), r"`y` must hold one class per node, shape \(n,\); got shape \(\)"),
        (TOY.y[:7], "`y` has 7 entries where the split has 20 nodes"),
        (None, "fit needs `y` to be a torch.Tensor; got None"),
        ("0" * 20, "fit needs `y` to be a torch.Tensor; got '0"),
        (TOY.y.to("meta"), "`y` is on meta"),
    ],
)
def test_targets_that_cannot_be_converted_are_refused(y: Any, message: str) -> None:
    inputs = small_blend().prepare(TOY.x, TOY.edge_index)
    for call in (fit, start_fit):
        with pytest.raises(ValueError, match=message.replace("fit needs", f"{call.__name__} needs")):
            call(small_blend(), inputs, y, TOY.split, TRAINING)
    with pytest.raises(ValueError, match=message.replace("fit needs", "fit_many needs")):
        fit_many([small_blend()], inputs, y, [TOY.split], TRAINING)


def test_inputs_of_another_graph_are_refused() -> None:
    inputs = small_blend().prepare(TOY.x[:10], TOY.edge_index[:, (TOY.edge_index < 10).all(0)])
    with pytest.raises(ValueError, match="`inputs` have 10 nodes where the split has 20: use those of one graph"):
        fit(small_blend(), inputs, TOY.y, TOY.split, TRAINING)


def test_classes_below_zero_have_no_balance() -> None:
    with pytest.raises(ValueError, match="`y` holds class -1; classes start at 0"):
        Classification.balanced(2, TOY.y - 1)
