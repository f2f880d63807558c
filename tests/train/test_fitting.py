"""fit learns, keeps the best epoch, repeats to the bit and never reads a test label; Fitting is its iterator."""

from dataclasses import replace
from functools import partial
from typing import Any

import pytest
import torch
from torch import Tensor
from toy import small_blend, two_cliques

from beltrami.data import Split
from beltrami.errors import SolverError
from beltrami.flow import Kinetic
from beltrami.model import BLEND
from beltrami.train import (
    Classification,
    Consistency,
    Distillation,
    Epoch,
    Fit,
    MultiLabel,
    Regression,
    Task,
    TimeGrid,
    Training,
    TrainingWarning,
    count_parameters,
    fit,
    predict,
    read_test,
    seeded,
    start_fit,
)
from beltrami.train.validation import make_validation
from beltrami.train.weights import tensors_of

TOY = two_cliques()
AT_END = TimeGrid(multiple=1.0)
NONE = torch.zeros(len(TOY.y), dtype=torch.bool)


def adam(groups: list[dict[str, object]]) -> torch.optim.Optimizer:
    return torch.optim.Adam(groups, lr=0.02)


def still(groups: list[dict[str, object]]) -> torch.optim.Optimizer:
    """An optimiser that changes nothing."""
    return torch.optim.SGD(groups, lr=0.0)


def fitted(
    model: BLEND,
    training: Training,
    *,
    y: Tensor = TOY.y,
    split: Split = TOY.split,
    log: list[Epoch] | None = None,
) -> Fit:
    inputs = model.prepare(TOY.x, TOY.edge_index)
    return fit(model, inputs, y, split, training, callbacks=() if log is None else (log.append,))


def weights_of(model: BLEND) -> dict[str, Tensor]:
    return {name: tensor.clone() for name, tensor in tensors_of(model).items()}


def same(one: dict[str, Tensor], other: dict[str, Tensor]) -> bool:
    return one.keys() == other.keys() and all(torch.equal(one[name], other[name]) for name in one)


@pytest.mark.slow
@pytest.mark.parametrize("frozen", [True, False], ids=["frozen", "live"])
def test_two_cliques_are_learned_from_two_labels_each(frozen: bool) -> None:
    model, log = small_blend(frozen=frozen), list[Epoch]()
    found = fitted(model, Training(20, adam, time_grid=TimeGrid(2.0, 4)), log=log)
    assert log[-1].losses[0] < 0.5 * log[0].losses[0]
    logits = predict(model, model.prepare(TOY.x, TOY.edge_index), time=found.best.time)
    assert found.best.accuracy == 1
    assert read_test(logits, TOY.y, TOY.split) == 1


def test_callback_hears_of_every_epoch() -> None:
    log: list[Epoch] = []
    found = fitted(small_blend(), Training(7, adam, time_grid=TimeGrid(2.0, 4), validate_every=3), log=log)
    assert [epoch.number for epoch in log] == list(range(1, 8))
    assert all(0 <= epoch.scores[0].accuracy <= epoch.best[0].accuracy <= 1 for epoch in log)
    assert {(epoch.runs, epoch.most_epochs, epoch.going) for epoch in log} == {((0,), 7, 1)}
    assert [epoch.best for epoch in log] == sorted(epoch.best for epoch in log)
    assert [epoch.evaluations for epoch in log] == [16 * k for k in range(1, 8)]  # four steps of RK4 an epoch
    assert (found.epochs, found.stats.evaluations) == (7, 7 * 16)
    assert found.best >= log[-1].best[0]
    assert found.seconds > 0


def test_training_stops_when_validation_has_not_improved_for_the_patience() -> None:
    log: list[Epoch] = []
    found = fitted(small_blend(), Training(50, still, patience=4, time_grid=AT_END), log=log)
    assert (found.best_epoch, found.epochs, len(log)) == (1, 5, 5)


def test_model_holds_the_weights_of_the_best_epoch() -> None:
    model, seen = small_blend(), dict[int, dict[str, Tensor]]()

    def spoil_after_the_fourth(epoch: Epoch) -> None:
        seen[epoch.number] = weights_of(model)
        if epoch.number == 4:
            model.xi.linear.weight.data.neg_()
            model.xi.linear.bias.data.neg_()

    inputs = model.prepare(TOY.x, TOY.edge_index)
    training = Training(6, adam, time_grid=AT_END)
    found = fit(model, inputs, TOY.y, TOY.split, training, callbacks=[spoil_after_the_fourth])
    assert 1 <= found.best_epoch <= 4
    assert found.epochs == 6
    assert same(weights_of(model), seen[found.best_epoch])
    assert not same(weights_of(model), seen[6])


def test_moving_average_of_the_weights_is_kept() -> None:
    model, seen = small_blend(batch_norm=True), list[dict[str, Tensor]]()
    inputs = model.prepare(TOY.x, TOY.edge_index)
    training = Training(5, adam, time_grid=AT_END, ema=0.75)
    found = fit(model, inputs, TOY.y, TOY.split, training, callbacks=[lambda epoch: seen.append(weights_of(model))])
    for name, parameter in model.named_parameters():
        expected = seen[0][name]
        for weights in seen[1 : found.best_epoch]:
            expected = 0.75 * expected + 0.25 * weights[name]
        assert torch.allclose(parameter, expected, atol=1e-6)
    assert found.best_epoch > 1
    assert not torch.allclose(model.psi.linear.weight, seen[found.best_epoch - 1]["psi.linear.weight"], atol=1e-4)


@pytest.mark.parametrize("decay", [-0.1, 1.0, float("nan")])
def test_moving_average_outside_its_range_is_refused(decay: float) -> None:
    with pytest.raises(ValueError, match=r"Training needs `ema` at least 0 and below 1; got"):
        Training(1, adam, ema=decay)


def test_every_epoch_trains_with_dropout() -> None:
    log: list[Epoch] = []
    with seeded(0):
        fitted(small_blend(dropout=0.5), Training(4, still, time_grid=AT_END), log=log)
    assert len({epoch.losses for epoch in log}) == 4
    assert len({epoch.scores for epoch in log}) == 1


def test_terminal_time_is_chosen_along_the_grid_at_the_weights_kept() -> None:
    model, time_grid = small_blend(), TimeGrid(3.0, 4)
    found = fitted(model, Training(3, adam, time_grid=time_grid, validate_every=50))
    inputs = model.prepare(TOY.x, TOY.edge_index)
    assert found.best == make_validation(model, inputs, TOY.y, TOY.split, time_grid, Classification(2))()
    assert found.best > make_validation(model, inputs, TOY.y, TOY.split, AT_END, Classification(2))()


def test_running_costs_enter_the_loss() -> None:
    plain, costed = list[Epoch](), list[Epoch]()
    fitted(small_blend(), Training(1, adam, time_grid=AT_END), log=plain)
    fitted(small_blend(costs=[Kinetic(10.0)]), Training(1, adam, time_grid=AT_END), log=costed)
    assert costed[0].losses[0] > plain[0].losses[0] + 0.01


def test_attention_decay_reaches_the_diffusivity_alone() -> None:
    model = small_blend()
    training = Training(1, partial(torch.optim.SGD, lr=1.0), weight_decay=0.0, attention_decay=0.5)
    before = {name: parameter.detach().clone() for name, parameter in model.named_parameters()}
    optimiser = training.make_optimiser(dict(model.named_parameters()))
    for parameter in model.parameters():
        parameter.grad = torch.zeros_like(parameter)
    optimiser.step()
    decayed = {name for name, parameter in model.named_parameters() if not torch.equal(parameter, before[name])}
    assert decayed == {f"evolution.flow.diffusivity.project.{part}.weight" for part in ("key", "query")}
    for name in decayed:
        assert torch.allclose(model.get_parameter(name), 0.5 * before[name])


def test_weight_decay_reaches_all_else_and_every_parameter_is_in_one_group() -> None:
    model = small_blend(positions=True, batch_norm=True)
    training = Training(1, adam, weight_decay=0.3, attention_decay=0.7)
    others, attention = training.make_optimiser(dict(model.named_parameters())).param_groups
    assert (others["weight_decay"], attention["weight_decay"]) == (0.3, 0.7)
    grouped = [id(parameter) for parameter in (*others["params"], *attention["params"])]
    assert sorted(grouped) == sorted(id(parameter) for parameter in model.parameters())


def test_same_seed_gives_the_same_fit_bit_by_bit() -> None:
    fits, weights = [], []
    for _ in range(2):
        model = small_blend(dropout=0.3)
        fits.append(replace(fitted(model, Training(5, adam)), seconds=0.0))
        weights.append(weights_of(model))
    assert fits[0] == fits[1]
    assert same(weights[0], weights[1])


def test_another_seed_gives_another_fit() -> None:
    weights = []
    for seed in (5, 6):
        model = small_blend(dropout=0.3)
        model.xi.dropout.seed.fill_(seed)
        fitted(model, Training(2, adam))
        weights.append(weights_of(model))
    assert not same(weights[0], weights[1])


def test_seeded_block_leaves_the_callers_random_state_as_it_was() -> None:
    before = torch.get_rng_state()
    with seeded(5):
        first = torch.rand(3)
        fitted(small_blend(dropout=0.3), Training(1, adam))
    assert torch.equal(torch.get_rng_state(), before)
    with seeded(5):
        assert torch.equal(torch.rand(3), first)


@pytest.mark.slow
@pytest.mark.parametrize("wrong", [-1, 1])
def test_labels_of_test_nodes_are_not_read(wrong: int) -> None:
    spoilt = torch.where(TOY.split.test, torch.tensor(wrong), TOY.y)
    results = []
    for y in (TOY.y, spoilt):
        model = small_blend()
        found = fitted(model, Training(5, adam, time_grid=TimeGrid(2.0, 4)), y=y)
        results.append((replace(found, seconds=0.0), weights_of(model)))
    assert results[0][0] == results[1][0]
    assert same(results[0][1], results[1][1])


def test_labels_of_validation_nodes_do_not_train() -> None:
    spoilt = torch.where(TOY.split.val, 1 - TOY.y, TOY.y)
    losses = []
    for y in (TOY.y, spoilt):
        log: list[Epoch] = []
        fitted(small_blend(), Training(5, adam, time_grid=AT_END), y=y, log=log)
        losses.append([epoch.losses for epoch in log])
    assert losses[0] == losses[1]


def test_class_without_training_nodes_is_refused() -> None:
    lonely = replace(TOY.split, train=TOY.split.train & (TOY.y == 0))
    with pytest.raises(ValueError, match=r"class 1 has no training nodes \(1 of 2 classes have none\)"):
        fitted(small_blend(), Training(1, adam), split=lonely)


def test_split_without_validation_nodes_is_refused() -> None:
    with pytest.raises(ValueError, match=r"the split has no validation nodes"):
        fitted(small_blend(), Training(1, adam), split=replace(TOY.split, val=NONE))


def test_labels_for_another_number_of_nodes_are_refused() -> None:
    with pytest.raises(ValueError, match=r"`y` has 19 entries where the split has 20 nodes"):
        fitted(small_blend(), Training(1, adam), y=TOY.y[:19])


@pytest.mark.parametrize("node", [0, 3], ids=["training", "validation"])
@pytest.mark.parametrize("label", [-1, 2])
def test_class_outside_the_models_range_is_refused(node: int, label: int) -> None:
    y = TOY.y.clone()
    y[node] = label
    with pytest.raises(ValueError, match=rf"`y` holds class {label} at a training or validation node"):
        fitted(small_blend(), Training(1, adam), y=y)


def test_loss_that_is_not_finite_is_a_solver_error() -> None:
    model = small_blend()
    model.xi.linear.bias.data[0] = torch.inf
    with (
        pytest.warns(TrainingWarning, match=r"became (nan|inf) in epoch 1: .* The training goes back to epoch 0"),
        pytest.raises(SolverError, match=r"epoch 1: .* 1/8 of the .* too, first in the weights `xi.linear.bias`"),
    ):
        fitted(model, Training(3, adam))


def test_weights_that_are_not_finite_are_a_solver_error() -> None:
    def exploding(groups: list[dict[str, object]]) -> torch.optim.Optimizer:
        return torch.optim.SGD(groups, lr=torch.tensor(torch.inf))

    with (
        pytest.warns(TrainingWarning, match=r"weights became NaN or infinite in epoch 1: .* The training goes back"),
        pytest.raises(SolverError, match=r"epoch 1: .* 1/8 of the .* too, first in the loss or its gradient"),
    ):
        fitted(small_blend(), Training(3, exploding))


@pytest.mark.parametrize("name", ["epochs", "patience", "validate_every"])
def test_training_settings_below_one_are_refused(name: str) -> None:
    settings: dict[str, Any] = {"epochs": 1, name: 0}
    with pytest.raises(ValueError, match=rf"Training needs `{name}` at least 1; got 0"):
        Training(optimiser=adam, **settings)


@pytest.mark.parametrize("name", ["weight_decay", "attention_decay"])
def test_negative_decay_is_refused(name: str) -> None:
    settings: dict[str, Any] = {name: -1.0}
    with pytest.raises(ValueError, match=rf"Training needs `{name}` at least 0 and finite; got -1.0"):
        Training(1, adam, **settings)


def test_frozen_parameters_are_not_counted() -> None:
    model = small_blend()
    everything = count_parameters(model.parameters())
    assert everything == sum(parameter.numel() for parameter in model.parameters())
    model.xi.linear.weight.requires_grad_(False)
    assert count_parameters(model.parameters()) == everything - model.xi.linear.weight.numel()


@pytest.mark.slow
def test_fitting_is_the_fit_epoch_by_epoch() -> None:
    training, log = Training(5, adam, time_grid=TimeGrid(2.0, 4), validate_every=2, self_training=2), list[Epoch]()
    model, other = small_blend(dropout=0.3), small_blend(dropout=0.3)
    expected = fitted(model, training, log=log)
    fitting = start_fit(other, other.prepare(TOY.x, TOY.edge_index), TOY.y, TOY.split, training)
    assert list(fitting) == log
    assert len(log) == 10
    assert replace(fitting.result, seconds=0.0) == replace(expected, seconds=0.0)
    assert same(weights_of(model), weights_of(other))


@pytest.mark.parametrize("number", [0, 3, 7], ids=["at once", "first round", "second round"])
def test_stopped_fitting_keeps_the_best_epoch_so_far(number: int) -> None:
    model, seen = small_blend(), dict[int, dict[str, Tensor]]()
    training = Training(5, adam, time_grid=AT_END, self_training=2)
    fitting = start_fit(model, model.prepare(TOY.x, TOY.edge_index), TOY.y, TOY.split, training)
    with pytest.raises(RuntimeError, match=r"the training has not ended: iterate to its end, or call `stop\(\)`"):
        _ = fitting.result
    before = weights_of(model)
    for _ in range(number):
        epoch = next(fitting)
        seen[epoch.number] = weights_of(model)
    fitting.stop()
    assert list(fitting) == []
    assert fitting.result.epochs == number
    assert same(weights_of(model), seen[fitting.result.best_epoch] if number else before)


@pytest.mark.slow
def test_trainings_can_take_turns() -> None:
    training = Training(4, adam, time_grid=AT_END)
    models = [small_blend(dropout=0.3) for _ in range(2)]
    inputs = models[0].prepare(TOY.x, TOY.edge_index)
    turns = [start_fit(model, inputs, TOY.y, TOY.split, training) for model in models]
    pairs = list(zip(*turns, strict=True))
    assert [one for one, _ in pairs] == [other for _, other in pairs]
    assert same(*(weights_of(model) for model in models))
    assert [replace(each.result, seconds=0.0) for each in turns] == [
        replace(fitted(small_blend(dropout=0.3), training), seconds=0.0)
    ] * 2


@pytest.mark.parametrize("task", [Regression(2), MultiLabel(2)], ids=str)
@pytest.mark.parametrize(
    "change", [{"self_training": 1}, {"consistency": Consistency(1.0)}, {"distillation": Distillation(2)}], ids=str
)
def test_settings_for_classes_are_refused_for_other_tasks(task: Task, change: dict[str, Any]) -> None:
    model = small_blend()
    inputs, y = model.prepare(TOY.x, TOY.edge_index), torch.nn.functional.one_hot(TOY.y).float()
    with pytest.raises(ValueError, match=r"need a task with one class per node; got (Regression|MultiLabel)"):
        fit(model, inputs, y, TOY.split, Training(1, adam, **change), task=task)


def test_task_with_another_number_of_outputs_is_refused() -> None:
    model = small_blend()
    with pytest.raises(ValueError, match=r"Regression\(num_outputs=3\) needs a model with 3 outputs; this one has 2"):
        start_fit(model, model.prepare(TOY.x, TOY.edge_index), TOY.y, TOY.split, Training(1, adam), Regression(3))
