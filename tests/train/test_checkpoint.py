"""Checkpoints: a training that goes on from one ends with the bits of a training that never stopped."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import save_file
from toy import small_blend, two_cliques

from beltrami.diffusivity import RandomWalk
from beltrami.errors import DataError, NotFinite
from beltrami.model import BLEND
from beltrami.train import (
    Consistency,
    Distillation,
    Fit,
    Fitting,
    TimeGrid,
    Training,
    TrainingWarning,
    seeded,
    start_fit,
)
from beltrami.train.fitting import fit_many
from beltrami.train.loop import SNAPSHOT_EVERY
from beltrami.train.state import TrainingState

TOY = two_cliques()
TRAINING = Training(9, lambda groups: torch.optim.Adam(groups, lr=0.03), time_grid=TimeGrid(2.0, 2), validate_every=2)
TRAININGS = {
    "plain": TRAINING,
    "average": replace(TRAINING, ema=0.5),
    "self-training": replace(TRAINING, self_training=3, patience=3),
    "distillation": replace(TRAINING, distillation=Distillation(3), epochs=4, self_training=1),
    "consistency": replace(TRAINING, consistency=Consistency(1.0, passes=2, ramp=5)),
    "rmsprop": replace(TRAINING, optimiser=lambda groups: torch.optim.RMSprop(groups, lr=0.01)),
    "momentum": replace(TRAINING, optimiser=lambda groups: torch.optim.SGD(groups, lr=0.05, momentum=0.9)),
    "adamax": replace(TRAINING, optimiser=lambda groups: torch.optim.Adamax(groups, lr=0.01)),
}


def begun(training: Training, checkpoint: TrainingState | None = None, **options: Any) -> tuple[BLEND, Fitting]:
    """Return a new model with dropout and batch norm, and its training; to be used within a seeded block."""
    model = small_blend(dropout=0.3, batch_norm=True, **options)
    inputs = model.prepare(TOY.x, TOY.edge_index)
    return model, start_fit(model, inputs, TOY.y, TOY.split, training, checkpoint=checkpoint)


def outcome(model: BLEND, fitting: Fitting) -> tuple[dict[str, torch.Tensor], Fit]:
    for _ in fitting:
        pass
    return model.state_dict(), replace(fitting.result, seconds=0.0)


def assert_same(found: tuple[dict[str, torch.Tensor], Fit], other: tuple[dict[str, torch.Tensor], Fit]) -> None:
    assert found[1] == other[1]
    for name, tensor in found[0].items():
        assert torch.equal(tensor, other[0][name]), name


@pytest.mark.slow
@pytest.mark.parametrize("name", TRAININGS)
def test_a_training_goes_on_from_any_epoch_to_the_same_bits(name: str, tmp_path: Path) -> None:
    with seeded(1):
        expected = outcome(*begun(TRAININGS[name]))
    for stop in range(1, expected[1].epochs):
        path = tmp_path / f"{stop}.safetensors"
        with seeded(1):
            _, fitting = begun(TRAININGS[name])
            for _ in range(stop):
                next(fitting)
            fitting.checkpoint().write(path)
        with seeded(7):  # the random state comes from the checkpoint
            torch.rand(5)
            found = outcome(*begun(TRAININGS[name], TrainingState.read(path)))
        assert_same(found, expected)


def test_a_checkpoint_after_the_last_epoch_ends_at_once() -> None:
    with seeded(1):
        _, fitting = begun(TRAINING)
        for _ in range(TRAINING.epochs):
            next(fitting)
        state = fitting.checkpoint()
        expected = outcome(*begun(TRAINING, state))
    with seeded(1):
        assert_same(outcome(*begun(TRAINING)), expected)


def exploding(at: int) -> Callable[[list[dict[str, Any]]], torch.optim.Optimizer]:
    """Return a maker of an Adam whose step number ``at`` makes the weights NaN as long as its rate is 0.04."""

    class Exploding(torch.optim.Adam):
        steps = 0

        def step(self, closure: Any = None) -> Any:
            super().step(closure)
            type(self).steps += 1
            if self.steps == at and self.param_groups[0]["lr"] == 0.04:
                self.param_groups[0]["params"][0].data.fill_(torch.nan)

    return lambda groups: Exploding(groups, lr=0.04)


@pytest.mark.slow
def test_a_loss_that_is_not_finite_goes_back_with_half_the_rate() -> None:
    training = replace(TRAINING, epochs=SNAPSHOT_EVERY + 5, optimiser=exploding(SNAPSHOT_EVERY + 2), patience=1000)
    with seeded(1):
        model, fitting = begun(training)
        with pytest.warns(TrainingWarning, match=rf"goes back to epoch {SNAPSHOT_EVERY} with half the learning rate"):
            outcome(model, fitting)
    with seeded(1):
        _, other = begun(training)  # the same up to the snapshot, then with half the rate
        for _ in range(SNAPSHOT_EVERY):
            next(other)
        state = other.checkpoint()
    state.values["rates"] = [rate / 2 for rate in state.values["rates"]]
    with seeded(2):
        same = outcome(*begun(training, state))
    assert_same(same, (model.state_dict(), replace(fitting.result, seconds=0.0)))


def test_a_checkpoint_of_another_model_is_refused() -> None:
    with seeded(1):
        _, fitting = begun(TRAINING)
        next(fitting)
        state = fitting.checkpoint()
        with pytest.raises(DataError, match="the checkpoint is of another model"):
            begun(TRAINING, state, loops=True, diffusivity=RandomWalk())


@pytest.mark.parametrize("content", [b"", b"x" * 100, b"\x08" + 7 * b"\0" + b"{}      "])
def test_a_damaged_checkpoint_is_refused(content: bytes, tmp_path: Path) -> None:
    path = tmp_path / "checkpoint.safetensors"
    path.write_bytes(content)
    with pytest.raises(DataError, match=r"the checkpoint .* cannot be read .* train again with `--force`"):
        TrainingState.read(path)


def test_a_file_of_weights_is_no_checkpoint(tmp_path: Path) -> None:
    path = tmp_path / "model.safetensors"
    save_file({"a": torch.zeros(2)}, path)
    with pytest.raises(DataError, match="cannot be read"):
        TrainingState.read(path)


def test_models_trained_together_have_no_checkpoint() -> None:
    models = [small_blend(), small_blend()]
    inputs = models[0].prepare(TOY.x, TOY.edge_index)
    fitting = Fitting(models, inputs, TOY.y, [TOY.split] * 2, TRAINING, None, stacked=True)
    next(fitting)
    with pytest.raises(ValueError, match="trained together have no checkpoints"):
        fitting.checkpoint()


def test_a_run_that_fails_among_others_ends_with_its_error() -> None:
    models = [small_blend(), small_blend()]
    models[1].xi.linear.bias.data[0] = torch.nan
    inputs = models[0].prepare(TOY.x, TOY.edge_index)
    first, second = fit_many(models, inputs, TOY.y, [TOY.split] * 2, TRAINING)
    assert isinstance(first, Fit)
    assert isinstance(second, NotFinite)


def test_a_checkpoint_with_a_changed_bit_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "a.safetensors"
    with seeded(1):
        _, fitting = begun(TRAINING)
        next(fitting)
    fitting.checkpoint().write(path)
    assert TrainingState.read(path).values == fitting.checkpoint().values
    content = bytearray(path.read_bytes())
    content[-100] ^= 1
    path.write_bytes(bytes(content))
    with pytest.raises(DataError, match=r"a\.safetensors cannot be read \(it is damaged\): delete it, or train again"):
        TrainingState.read(path)


def test_a_training_that_has_ended_has_no_checkpoint() -> None:
    with seeded(1):
        _, fitting = begun(replace(TRAINING, epochs=1))
        fitting.stop()
    with pytest.raises(RuntimeError, match="the training has ended"):
        fitting.checkpoint()


@pytest.mark.gpu
@pytest.mark.parametrize("captured", [True, False])
@pytest.mark.parametrize("name", ["plain", "average", "self-training"])
def test_a_training_on_a_gpu_goes_on_to_the_same_bits(name: str, captured: bool, tmp_path: Path) -> None:
    training, split = replace(TRAININGS[name], cuda_graph=captured), TOY.split.to("cuda")

    def begin(checkpoint: TrainingState | None = None) -> tuple[BLEND, Fitting]:
        model = small_blend(dropout=0.3, batch_norm=True).to("cuda")
        inputs = model.prepare(TOY.x.cuda(), TOY.edge_index.cuda())
        return model, start_fit(model, inputs, TOY.y.cuda(), split, training, checkpoint=checkpoint)

    with seeded(1):
        expected = outcome(*begin())
    for stop in (1, 4, expected[1].epochs - 1):
        with seeded(1):
            _, fitting = begin()
            for _ in range(stop):
                next(fitting)
            fitting.checkpoint().write(tmp_path / "state.safetensors")
        with seeded(2):
            assert_same(outcome(*begin(TrainingState.read(tmp_path / "state.safetensors"))), expected)
