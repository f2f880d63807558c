"""Models say whether they can be captured as a CUDA graph, and a captured step equals the step."""

from collections.abc import Callable

import pytest
import torch
from torch import Tensor
from torch.optim import Optimizer
from toy import small_blend, two_cliques

from beltrami.scheme import (
    PID,
    RK4,
    Checkpointed,
    ConstantSteps,
    CrankNicolson,
    Dopri5,
    Euler,
    Exponential,
    Scheme,
    TimeStepping,
    TorchDiffEq,
)
from beltrami.stencil import KNN, Chain, Complete, Keep, Loops, Symmetric
from beltrami.train import Classification, Consistency, Fit, LossStep, TimeGrid, Training, fit, fit_many, seeded
from beltrami.train.cuda_graph import OptimiserStep, should_capture
from beltrami.train.weights import ExponentialMovingAverage

TOY = two_cliques()


def test_schemes_that_read_the_state_synchronise() -> None:
    steps = ConstantSteps(0.1)
    assert not any(s.synchronises for s in (Scheme(RK4(), steps), Scheme(Euler(), steps), Exponential(1e-3, 1e-3)))
    waiting = (
        Scheme(Dopri5(), PID(1e-3, 1e-3)),
        Scheme(CrankNicolson(1e-3, 1e-3), steps),
        Scheme(RK4(), steps, Checkpointed()),
        TorchDiffEq("rk4", 1e-3, 1e-3, step_size=0.1),
    )
    assert all(scheme.synchronises for scheme in waiting)


def test_stencils_of_the_state_synchronise() -> None:
    assert not any(s.synchronises for s in (Keep(), Loops(), Complete(), Chain(Loops(), Symmetric())))
    assert all(s.synchronises for s in (KNN(2), Chain(KNN(2), Symmetric())))


def test_nothing_is_captured_without_a_gpu() -> None:
    model = small_blend()
    assert not should_capture(model, None)
    with pytest.raises(ValueError, match=r"`cuda_graph` needs a model on a GPU with constant steps or Exponential"):
        should_capture(model, True)


OPTIMISERS: dict[str, Callable[..., Optimizer]] = {
    "adam": torch.optim.Adam,
    "adamw": torch.optim.AdamW,
    "adamax": torch.optim.Adamax,
    "rmsprop": torch.optim.RMSprop,
    "sgd": torch.optim.SGD,
    "adagrad": torch.optim.Adagrad,  # it cannot be captured, and so steps without a graph
}


@pytest.mark.parametrize("name", ["adam", "adamax", "sgd"])
@pytest.mark.parametrize("decay", [0.0, 0.9])
def test_step_is_the_optimisers_and_then_the_moving_averages(name: str, decay: float) -> None:
    weight, twin = torch.ones(3, requires_grad=True), torch.ones(3, requires_grad=True)
    follower, expected = torch.zeros(3), torch.zeros(3)
    optimiser, other = (OPTIMISERS[name]([tensor], lr=0.1) for tensor in (weight, twin))

    def gradients() -> Tensor:
        weight.grad = None
        loss = (weight**4).sum()
        loss.backward()
        return loss.detach()

    average = ExponentialMovingAverage({"w": follower}, {"w": weight}, decay=decay) if decay else None
    update = OptimiserStep(gradients, optimiser, average)
    for step in range(1, 5):
        loss = float(update(step))
        other.zero_grad()
        value = (twin**4).sum()
        value.backward()
        other.step()
        expected = twin.detach().clone() if step == 1 else decay * expected + (1 - decay) * twin.detach()
        assert loss == pytest.approx(value.item())
    torch.testing.assert_close(weight, twin)
    if decay:
        torch.testing.assert_close(follower, expected)


@pytest.mark.gpu
@pytest.mark.parametrize("name", OPTIMISERS)
@pytest.mark.parametrize("kind", ["frozen", "live", "exponential"])
def test_captured_steps_equal_the_steps(kind: str, name: str) -> None:
    scheme = Exponential(1e-7, 1e-7) if kind == "exponential" else Scheme(RK4(), ConstantSteps(0.5))
    losses, followers = [], []
    for wanted in (False, None):
        with seeded(0):
            model = small_blend(frozen=kind != "live", scheme=scheme, dropout=0.5, batch_norm=True).cuda()
        inputs = model.prepare(TOY.x.cuda(), TOY.edge_index.cuda())
        y, train = TOY.y.cuda(), TOY.split.train.cuda()
        loss_step = LossStep(model, inputs, y, train, Consistency(1.0, 2), Classification(2))
        optimiser = OPTIMISERS[name](model.parameters(), lr=0.01)
        follower = torch.zeros_like(model.xi.linear.weight)
        average = ExponentialMovingAverage({"w": follower}, {"w": model.xi.linear.weight}, decay=0.5)
        capture = should_capture(model, wanted)
        update = OptimiserStep(loss_step, optimiser, average, buffers=model.buffers(), capture=capture)
        losses.append([float(update(step)) for step in range(1, 7)])
        followers.append(follower)
    assert losses[0] == pytest.approx(losses[1], abs=1e-4)
    assert len(set(losses[0])) == 6
    torch.testing.assert_close(*followers, rtol=1e-3, atol=1e-4)


@pytest.mark.gpu
@pytest.mark.parametrize("decay", [0.0, 0.8])
def test_captured_runs_equal_the_runs(decay: float) -> None:
    found = []
    for wanted in (False, None):
        with seeded(0):
            model = small_blend(scheme=Exponential(1e-7, 1e-7), dropout=0.5).cuda()
        inputs = model.prepare(TOY.x.cuda(), TOY.edge_index.cuda())
        training = Training(
            9,
            lambda groups: torch.optim.Adam(groups, lr=0.01),
            time_grid=TimeGrid(2.0, 4),
            validate_every=3,
            cuda_graph=wanted,
            ema=decay,
        )
        found.append(fit(model, inputs, TOY.y.cuda(), TOY.split.to("cuda"), training))
    assert (found[0].best_epoch, found[0].best.time) == (found[1].best_epoch, found[1].best.time)
    assert found[0].best.minus_loss == pytest.approx(found[1].best.minus_loss, abs=1e-4)


@pytest.mark.gpu
@pytest.mark.parametrize(
    "scheme", [Scheme(RK4(), ConstantSteps(0.5)), Exponential(1e-6, 1e-6)], ids=["rk4", "exponential"]
)
def test_captured_stacked_runs_equal_the_runs(scheme: TimeStepping) -> None:
    found = []
    for wanted in (False, None):
        models = [small_blend(scheme=scheme, dropout=0.5).cuda() for _ in range(3)]
        for k, model in enumerate(models):
            model.xi.dropout.seed.fill_(k)
        inputs = models[0].prepare(TOY.x.cuda(), TOY.edge_index.cuda())
        training = Training(6, lambda groups: torch.optim.Adam(groups, lr=0.01), cuda_graph=wanted)
        fits = fit_many(models, inputs, TOY.y.cuda(), [TOY.split.to("cuda")] * 3, training)
        found.append([one.best.minus_loss for one in fits if isinstance(one, Fit)])
    assert found[0] == pytest.approx(found[1], abs=1e-4)
    assert len(set(found[0])) == 3
