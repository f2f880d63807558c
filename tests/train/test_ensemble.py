"""Runs side by side are the runs one by one: weights, choices and stopping; and a run that fails fails alone."""

from dataclasses import replace
from typing import Any

import pytest
import torch
from torch import Tensor
from toy import small_blend, two_cliques

from beltrami.data import Split
from beltrami.diffusivity import Cosine, ExpKernel, RandomWalk
from beltrami.errors import SolverError
from beltrami.flow import JacobianNorm, Kinetic
from beltrami.graph import Both, Columns, squareplus_link
from beltrami.graph.ops import dispatch
from beltrami.joint import Joint
from beltrami.model import BLEND
from beltrami.scheme import PID, Dopri5, Exponential, Heun, Scheme, TimeStepping
from beltrami.scheme.exponential import recurrence_sum
from beltrami.stencil import KNN
from beltrami.train import Consistency, Fit, TimeGrid, Training, fit, fit_many, seeded

TOY = two_cliques()
NOISY = (TOY.x + 2 * torch.randn(TOY.x.shape, generator=torch.Generator().manual_seed(1))).double()
RUNS = 5
TRAINING = Training(8, lambda groups: torch.optim.Adam(groups, lr=0.03), horizon=TimeGrid(2.0, 4), look_every=3)


def models(count: int = RUNS, **options: Any) -> list[BLEND]:
    """From different seeds, in double precision."""
    made = []
    for seed in range(count):
        with seeded(0):
            made_here = {name: make() for name, make in options.items() if name == "diffusivity"}
        model = small_blend(**{**options, **made_here}).double()
        generator = torch.Generator().manual_seed(seed)
        with torch.no_grad():
            for parameter in model.parameters():
                parameter.add_(0.3 * torch.randn(parameter.shape, generator=generator, dtype=torch.float64))
            for name, buffer in model.named_buffers():
                if name.endswith("seed"):
                    buffer.fill_(1000 * seed + 17)
        made.append(model)
    return made


def splits(count: int = RUNS) -> list[Split]:
    """The toy's, with the labelled nodes shifted from run to run."""
    own = TOY.split
    return [Split(own.train.roll(k), own.val.roll(k), own.test.roll(k), "toy", k) for k in range(count)]


def both_ways(training: Training, *, positions: bool = False, **options: Any) -> tuple[list[Any], list[Any]]:
    """(fit, weights) of each run: alone, and side by side."""
    alone, together = [], models(positions=positions, **options)
    pos = TOY.pos.double() if positions else None
    for model, split in zip(models(positions=positions, **options), splits(), strict=True):
        inputs = model.prepare(NOISY, TOY.edge_index, pos)
        alone.append((fit(model, inputs, TOY.y, split, training), weights(model)))
    inputs = together[0].prepare(NOISY, TOY.edge_index, pos)
    found = fit_many(together, inputs, TOY.y, splits(), training)
    return alone, [(one, weights(model)) for one, model in zip(found, together, strict=True)]


def weights(model: BLEND) -> dict[str, Tensor]:
    return {name: tensor.clone() for name, tensor in model.state_dict().items()}


def assert_same(alone: list[Any], together: list[Any], *, scheme: TimeStepping | None = None) -> None:
    for (one, mine), (other, theirs) in zip(alone, together, strict=True):
        assert isinstance(other, Fit)
        assert (other.best_epoch, other.epochs, other.best.time) == (one.best_epoch, one.epochs, one.best.time)
        assert other.best.accuracy == pytest.approx(one.best.accuracy, abs=1e-6)
        assert other.best.minus_loss == pytest.approx(one.best.minus_loss, abs=1e-8)
        assert other.stats.evaluations == one.stats.evaluations or scheme in OF_THEIR_OWN
        for name, tensor in mine.items():
            torch.testing.assert_close(theirs[name], tensor, rtol=1e-7, atol=1e-8)  # round-off grows as they train


JOINT = Joint(4, 8)
SUM = Exponential(1e-13, 1e-13)  # looks, and takes fewer
DOPRI5 = Scheme(Dopri5(), PID(1e-5, 1e-7))  # every run has its own steps, and goes through those of the others
HEUN = Scheme(Heun(), PID(1e-2, 1e-3))
OF_THEIR_OWN = (SUM, DOPRI5, HEUN)
KINDS: dict[str, dict[str, Any]] = {
    "frozen": {},
    "live": {"frozen": False},
    "dropout": {"dropout": 0.4},
    "positions": {"positions": True, "dropout": 0.2},
    "batch norm": {"batch_norm": True},
    "loops": {"loops": True},
    "uniform": {"diffusivity": lambda: RandomWalk(Both())},
    "cosine": {"diffusivity": lambda: Cosine(8, 8, heads=4, normalise=Both(squareplus_link))},
    "kernel": {"diffusivity": lambda: ExpKernel(JOINT, 8, heads=2), "positions": True},
    "costs": {"costs": (Kinetic(0.1),)},
    "exponential": {"scheme": SUM, "dropout": 0.3},
    "dopri5": {"scheme": DOPRI5, "dropout": 0.3},
    "heun": {"scheme": HEUN, "loops": True, "costs": (Kinetic(0.1),)},
    "exponential of columns": {"scheme": SUM, "diffusivity": lambda: Cosine(8, 8, normalise=Columns())},
}


@pytest.mark.parametrize("apart", [True, False], ids=["apart", "side by side"])
@pytest.mark.parametrize("kind", KINDS)
def test_side_by_side_is_one_by_one(kind: str, apart: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dispatch, "apart", lambda x: apart)  # as on a CPU, and as on a GPU
    monkeypatch.setattr(recurrence_sum, "prefers_single_runs", lambda y: apart)
    alone, together = both_ways(TRAINING, **KINDS[kind])
    assert_same(alone, together, scheme=KINDS[kind].get("scheme"))
    assert len({one.best.minus_loss for one, _ in alone}) == RUNS  # they are different runs


@pytest.mark.parametrize(
    "change",
    [
        {"average": 0.7},
        {"consistency": Consistency(0.8, 2, 0.5)},
        {"consistency": Consistency(0.8, 2, 0.5, ramp=5)},
        {"weight_decay": 0.1, "attention_decay": 0.01},
        {"optimiser": lambda groups: torch.optim.Adamax(groups, lr=0.03)},
        {"optimiser": lambda groups: torch.optim.RMSprop(groups, lr=0.003)},
        {"self_training": 2},
    ],
    ids=["average", "consistency", "ramp", "decay", "adamax", "rmsprop", "self_training"],
)
def test_training_of_every_kind_is_the_same(change: dict[str, Any]) -> None:
    assert_same(*both_ways(replace(TRAINING, **change), dropout=0.3))


@pytest.mark.parametrize("average", [0.0, 0.6])
def test_every_run_stops_by_its_own_patience_and_the_program_shrinks(average: float) -> None:
    training = replace(TRAINING, epochs=40, patience=3, average=average)
    alone, together = both_ways(training, dropout=0.5)
    assert_same(alone, together)
    assert len({one.epochs for one, _ in alone}) >= 3


def test_runs_may_validate_on_more_or_fewer_nodes_than_others() -> None:
    own, alone = TOY.split, []
    uneven = [Split(own.train, own.val & (torch.arange(len(own.val)) % k > 0), own.test, "toy", k) for k in (2, 3, 9)]
    assert len({int(split.val.sum()) for split in uneven}) > 1
    for model, split in zip(models(3), uneven, strict=True):
        alone.append(fit(model, model.prepare(NOISY, TOY.edge_index), TOY.y, split, TRAINING))
    together = models(3)
    found = fit_many(together, together[0].prepare(NOISY, TOY.edge_index), TOY.y, uneven, TRAINING)
    for one, other in zip(alone, found, strict=True):
        assert isinstance(other, Fit)
        assert other.best.accuracy == pytest.approx(one.best.accuracy, abs=1e-12)
        assert other.best.minus_loss == pytest.approx(one.best.minus_loss, abs=1e-10)


def test_how_many_go_on_is_told_after_each_epoch() -> None:
    many, told = models(dropout=0.5), list[tuple[int, int]]()
    inputs = many[0].prepare(NOISY, TOY.edge_index)
    training = replace(TRAINING, epochs=40, patience=3)
    found = fit_many(many, inputs, TOY.y, splits(), training, on_epoch=lambda *now: told.append(now))
    assert [number for number, _ in told] == list(range(1, len(told) + 1))
    epochs = [one.epochs for one in found if isinstance(one, Fit)]
    for number, going in told:
        assert going == sum(run > number or (run == number == 40) for run in epochs)


def test_a_run_that_fails_fails_alone() -> None:
    many = models()
    with torch.no_grad():
        many[2].xi.linear.weight.fill_(float("nan"))
    inputs = many[0].prepare(NOISY, TOY.edge_index)
    found = fit_many(many, inputs, TOY.y, splits(), TRAINING)
    error = found[2]
    assert isinstance(error, SolverError)
    assert "the loss became nan in epoch 1" in str(error)
    alone, _ = both_ways(TRAINING)
    for run in (0, 1, 3, 4):
        one = found[run]
        assert isinstance(one, Fit)
        assert one.best.minus_loss == pytest.approx(alone[run][0].best.minus_loss, abs=1e-8)


def test_labels_outside_a_run_s_own_split_are_never_read() -> None:
    own = TOY.split
    hidden = TOY.y.clone()
    hidden[own.test] = -7  # as unlabelled nodes have it, and no class at all
    found = []
    for y in (TOY.y, hidden):
        many = models(2, dropout=0.3)
        inputs = many[0].prepare(NOISY, TOY.edge_index)
        fits = fit_many(many, inputs, y, [own, own], TRAINING)
        found.append([one.best for one in fits if isinstance(one, Fit)])
    assert found[0] == found[1]
    assert len(found[0]) == 2


def test_one_model_is_an_ensemble_of_one() -> None:
    (alone, *_), _ = both_ways(TRAINING, dropout=0.3)
    (model,) = models(1, dropout=0.3)
    (found,) = fit_many([model], model.prepare(NOISY, TOY.edge_index), TOY.y, splits(1), TRAINING)
    assert isinstance(found, Fit)
    assert found.best.minus_loss == pytest.approx(alone[0].best.minus_loss, abs=1e-8)


def test_models_and_splits_must_be_as_many() -> None:
    many = models(2)
    inputs = many[0].prepare(NOISY, TOY.edge_index)
    with pytest.raises(ValueError, match=r"fit_many needs a split for every model; got 2 models, 1 splits"):
        fit_many(many, inputs, TOY.y, splits(1), TRAINING)


def test_costs_that_differentiate_are_refused() -> None:
    many = models(2, costs=(JacobianNorm(0.1),))
    inputs = many[0].prepare(NOISY, TOY.edge_index)
    with pytest.raises(ValueError, match=r"fit_many cannot train with JacobianNorm"):
        fit_many(many, inputs, TOY.y, splits(2), TRAINING)


def test_models_that_make_their_own_graph_are_refused() -> None:
    many = models(2)
    many[0].evolution.stencil = KNN(3)
    inputs = many[0].prepare(NOISY, TOY.edge_index)
    with pytest.raises(ValueError, match=r"whose graph is made of their own state: use fit for each"):
        fit_many(many, inputs, TOY.y, splits(2), TRAINING)
