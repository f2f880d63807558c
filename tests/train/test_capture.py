"""What can be recorded as a CUDA graph says so, and a recorded step is the step."""

import pytest
import torch
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
from beltrami.train import Consistency, Descent, Fit, Training, fit_many, seeded
from beltrami.train.capture import capturable
from beltrami.train.descent import recorded

TOY = two_cliques()


def test_schemes_that_look_at_the_state_wait_for_the_device() -> None:
    steps = ConstantSteps(0.1)
    assert not any(s.waits for s in (Scheme(RK4(), steps), Scheme(Euler(), steps), Exponential(1e-3, 1e-3)))
    waiting = (
        Scheme(Dopri5(), PID(1e-3, 1e-3)),
        Scheme(CrankNicolson(1e-3, 1e-3), steps),
        Scheme(RK4(), steps, Checkpointed()),
        TorchDiffEq("rk4", 1e-3, 1e-3, step_size=0.1),
    )
    assert all(scheme.waits for scheme in waiting)


def test_stencils_of_the_state_wait_for_the_device() -> None:
    assert not any(s.waits for s in (Keep(), Loops(), Complete(), Chain(Loops(), Symmetric())))
    assert all(s.waits for s in (KNN(2), Chain(KNN(2), Symmetric())))


def test_nothing_is_recorded_off_the_gpu() -> None:
    model = small_blend()
    inputs = model.prepare(TOY.x, TOY.edge_index)
    descent = Descent(model, inputs, TOY.y, TOY.split.train, Consistency())
    assert not capturable(model)
    assert recorded(descent, record=None) is descent
    with pytest.raises(ValueError, match=r"`record` needs a model on a GPU with constant steps or Exponential"):
        recorded(descent, record=True)


@pytest.mark.gpu
@pytest.mark.parametrize("kind", ["frozen", "live", "exponential"])
def test_recorded_steps_are_the_steps(kind: str) -> None:
    scheme = Exponential(1e-7, 1e-7) if kind == "exponential" else Scheme(RK4(), ConstantSteps(0.5))
    losses = []
    for record in (False, None):
        with seeded(0):
            model = small_blend(frozen=kind != "live", scheme=scheme, dropout=0.5, batch_norm=True).cuda().train()
            inputs = model.prepare(TOY.x.cuda(), TOY.edge_index.cuda())
            descent = Descent(model, inputs, TOY.y.cuda(), TOY.split.train.cuda(), Consistency(1.0, 2))
            descend = recorded(descent, record=record)
            assert (descend is descent) == (record is False)
            optimiser = torch.optim.Adam(model.parameters(), lr=0.01)
            found = []
            for _ in range(5):
                found.append(float(descend()))
                optimiser.step()
            losses.append(found)
    assert losses[0] == pytest.approx(losses[1], abs=1e-5)
    assert len(set(losses[0])) == 5


@pytest.mark.gpu
@pytest.mark.parametrize(
    "scheme", [Scheme(RK4(), ConstantSteps(0.5)), Exponential(1e-6, 1e-6)], ids=["rk4", "exponential"]
)
def test_recorded_ensembles_are_the_ensembles(scheme: TimeStepping) -> None:
    found = []
    for record in (False, None):
        models = [small_blend(scheme=scheme, dropout=0.5).cuda() for _ in range(3)]
        for k, model in enumerate(models):
            model.xi.dropout.seed.fill_(k)
        inputs = models[0].prepare(TOY.x.cuda(), TOY.edge_index.cuda())
        training = Training(6, lambda groups: torch.optim.Adam(groups, lr=0.01), record=record)
        fits = fit_many(models, inputs, TOY.y.cuda(), [TOY.split.to("cuda")] * 3, training)
        found.append([one.best.minus_loss for one in fits if isinstance(one, Fit)])
    assert found[0] == pytest.approx(found[1], abs=1e-4)
    assert len(set(found[0])) == 3
