"""A stacked program gives the weights, choices and stops of single runs, and a run that fails fails alone."""

from dataclasses import replace
from functools import partial
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
from beltrami.train import Consistency, Epoch, Fit, TimeGrid, Training, fit, fit_many, seeded
from beltrami.train.callback import AnyCallback

TOY = two_cliques()
NOISY = (TOY.x + 2 * torch.randn(TOY.x.shape, generator=torch.Generator().manual_seed(1))).double()
RUNS = 2
TRAINING = Training(4, lambda groups: torch.optim.Adam(groups, lr=0.03), time_grid=TimeGrid(2.0, 2), validate_every=2)


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


def both_ways(
    training: Training, *callbacks: AnyCallback, runs: int = RUNS, positions: bool = False, **options: Any
) -> tuple[list[Any], list[Any]]:
    """Return (fit, weights) of each run: alone, and in a stack, of which the callbacks hear."""
    alone, together = [], models(runs, positions=positions, **options)
    pos = TOY.pos.double() if positions else None
    inputs = together[0].prepare(NOISY, TOY.edge_index, pos=pos)
    for model, split in zip(models(runs, positions=positions, **options), splits(runs), strict=True):
        alone.append((fit(model, inputs, TOY.y, split, training), weights(model)))
    found = fit_many(together, inputs, TOY.y, splits(runs), training, callbacks=callbacks)
    return alone, [(one, weights(model)) for one, model in zip(found, together, strict=True)]


def weights(model: BLEND) -> dict[str, Tensor]:
    return {name: tensor.clone() for name, tensor in model.state_dict().items()}


def assert_same(alone: list[Any], together: list[Any], *, scheme: TimeStepping | None = None) -> None:
    for (one, mine), (other, theirs) in zip(alone, together, strict=True):
        assert isinstance(other, Fit)
        assert (other.best_epoch, other.epochs, other.best.time) == (one.best_epoch, one.epochs, one.best.time)
        assert other.best.accuracy == pytest.approx(one.best.accuracy, abs=1e-6)
        assert other.best.minus_loss == pytest.approx(one.best.minus_loss, abs=1e-8)
        assert other.stats.evaluations == one.stats.evaluations or scheme in VARYING_COST
        for name, tensor in mine.items():
            torch.testing.assert_close(theirs[name], tensor, rtol=1e-7, atol=1e-8)  # round-off grows as they train


JOINT = Joint(4, 8)
SUM = Exponential(1e-13, 1e-13)  # alone, it reads the state and takes fewer products
DOPRI5 = Scheme(Dopri5(), PID(1e-5, 1e-7))  # a run alone takes its own steps, in a stack those of the others too
HEUN = Scheme(Heun(), PID(1e-2, 1e-3))
VARYING_COST = (SUM, DOPRI5, HEUN)
SLOW = ("live", "dopri5", "heun")
KINDS: dict[str, dict[str, Any]] = {
    "live": {"frozen": False},
    "positions": {"positions": True, "dropout": 0.2},
    "batch norm": {"batch_norm": True, "dropout": 0.4},
    "uniform": {"diffusivity": lambda: RandomWalk(Both())},
    "cosine": {"diffusivity": lambda: Cosine(8, 8, heads=4, normalise=Both(squareplus_link))},
    "kernel": {"diffusivity": lambda: ExpKernel(JOINT, 8, heads=2), "positions": True},
    "costs": {"costs": (Kinetic(0.1),)},
    "exponential": {"scheme": SUM, "dropout": 0.3},
    "dopri5": {"scheme": DOPRI5, "dropout": 0.3},
    "heun": {"scheme": HEUN, "loops": True, "costs": (Kinetic(0.1),)},
    "exponential of columns": {"scheme": SUM, "diffusivity": lambda: Cosine(8, 8, normalise=Columns())},
}


@pytest.mark.parametrize("apart", [pytest.param(True, marks=pytest.mark.slow), False], ids=["apart", "batched"])
@pytest.mark.parametrize("kind", [pytest.param(k, marks=pytest.mark.slow) if k in SLOW else k for k in KINDS])
def test_stacked_runs_equal_single_runs(kind: str, apart: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dispatch, "loops_over_runs", lambda x: apart)  # as on a CPU, and as on a GPU
    monkeypatch.setattr(recurrence_sum, "prefers_single_runs", lambda y: apart)
    alone, together = both_ways(TRAINING, **KINDS[kind])
    assert_same(alone, together, scheme=KINDS[kind].get("scheme"))
    assert len({one.best.minus_loss for one, _ in alone}) == RUNS  # the runs differ


@pytest.mark.slow
@pytest.mark.parametrize(
    "change",
    [
        {"ema": 0.7},
        {"consistency": Consistency(0.8, 2, 0.5, ramp=3)},
        {"weight_decay": 0.1, "attention_decay": 0.01},
        {"optimiser": lambda groups: torch.optim.Adamax(groups, lr=0.03)},
        {"optimiser": lambda groups: torch.optim.RMSprop(groups, lr=0.003)},
        {"self_training": 2},
    ],
    ids=["ema", "consistency", "decay", "adamax", "rmsprop", "self_training"],
)
def test_stacked_runs_equal_single_runs_for_every_setting(change: dict[str, Any]) -> None:
    assert_same(*both_ways(replace(TRAINING, **change), dropout=0.3))


@pytest.mark.slow
@pytest.mark.parametrize(("decay", "lr"), [(0.0, 0.3), (0.6, 1.0)])
def test_every_run_stops_by_its_own_patience_and_callbacks_hear_of_it(decay: float, lr: float) -> None:
    optimiser, told = partial(torch.optim.Adam, lr=lr), list[Epoch]()
    training = replace(TRAINING, epochs=12, patience=2, ema=decay, optimiser=optimiser)
    alone, together = both_ways(training, told.append, runs=4, dropout=0.5)
    assert_same(alone, together)
    epochs = [fit.epochs for fit, _ in alone]
    assert len(set(epochs)) >= 3  # so that the program is rebuilt without the finished rows
    assert [epoch.number for epoch in told] == list(range(1, max(epochs) + 1))
    for epoch in told:
        assert epoch.runs == tuple(run for run, last in enumerate(epochs) if last >= epoch.number)
        assert epoch.going == sum(last > epoch.number or (last == epoch.number == 12) for last in epochs)
        assert len(epoch.losses) == len(epoch.scores) == len(epoch.best) == len(epoch.runs)


@pytest.mark.slow
def test_a_run_that_fails_fails_alone() -> None:
    many, whole = models(3), models(3)
    with torch.no_grad():
        many[1].xi.linear.weight.fill_(float("nan"))
    inputs = many[0].prepare(NOISY, TOY.edge_index)
    found, expected = (fit_many(each, inputs, TOY.y, splits(3), TRAINING) for each in (many, whole))
    assert isinstance(found[1], SolverError)
    assert "the loss became nan in epoch 1" in str(found[1])
    for run in (0, 2):
        one, other = found[run], expected[run]
        assert isinstance(one, Fit)
        assert isinstance(other, Fit)
        assert one.best.minus_loss == pytest.approx(other.best.minus_loss, abs=1e-8)


@pytest.mark.slow
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


def test_stack_of_one_model_is_a_single_run() -> None:
    assert_same(*both_ways(TRAINING, runs=1, dropout=0.3))


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


def test_models_that_rewire_are_refused() -> None:
    many = models(2)
    many[0].evolution.stencil = KNN(3)
    inputs = many[0].prepare(NOISY, TOY.edge_index)
    with pytest.raises(ValueError, match=r"that rewire the graph by their own state: use fit for each"):
        fit_many(many, inputs, TOY.y, splits(2), TRAINING)
