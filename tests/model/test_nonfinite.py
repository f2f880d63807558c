"""The first part of a model that is not finite is named, with the time of the flow, and the model is not changed."""

import math
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
import torch
from torch import Tensor
from toy import CLASSES, FEATURES, RK4_STEPS, small_blend, two_cliques

from beltrami.model import BLEND, Classifier, Inputs, baseline
from beltrami.model.baseline import Architecture
from beltrami.model.linear_diffusion import LinearDiffusion
from beltrami.model.nonfinite import first_nonfinite
from beltrami.scheme import PID, Dopri5, Exponential, Scheme

TOY = two_cliques()
FRAME = Architecture(FEATURES, CLASSES, width=8, dropout=0.0, input_dropout=0.0)


def prepared(model: Classifier) -> Inputs:
    return model.prepare(TOY.x, TOY.edge_index, pos=TOY.pos if model.positions else None)


@torch.no_grad()
def scaled(model: BLEND, name: str, by: float) -> BLEND:
    """Multiply a parameter."""
    model.get_parameter(name).mul_(by)
    return model


@torch.no_grad()
def filled(model: BLEND, name: str) -> BLEND:
    """Set all weights of a parameter to a number with which most products overflow."""
    model.get_parameter(name).fill_(3e38)
    return model


def broken_flow(model: BLEND, start: float, monkeypatch: pytest.MonkeyPatch) -> BLEND:
    """Let the vector field be NaN from a time on."""
    bind = model.evolution.flow.bind

    def broken(*arguments: object, **named: object) -> object:
        field = bind(*arguments, **named)  # type: ignore[arg-type]
        whole = type(field).__call__

        def from_start(self: Any, t: float, z: Tensor) -> Tensor:
            return whole(self, t, z) * (math.nan if t >= start else 1)

        monkeypatch.setattr(type(field), "__call__", from_start)
        model.evolution.flow.bind = bind  # type: ignore[method-assign]
        return field

    model.evolution.flow.bind = broken  # type: ignore[method-assign, assignment]
    return model


@pytest.mark.parametrize("training", [True, False])
@pytest.mark.parametrize(
    ("make", "part"),
    [
        (lambda: small_blend(dropout=0.2), "the loss or its gradient, as the outputs are finite"),
        (lambda: scaled(small_blend(), "psi.linear.weight", math.nan), "the weights `psi.linear.weight`"),
        (lambda: filled(small_blend(), "psi.linear.weight"), "the encoder of the features"),
        (lambda: filled(small_blend(positions=True), "phi.linear.weight"), "the encoder of the positions"),
        (lambda: filled(small_blend(), "xi.linear.weight"), "the decoder"),
    ],
    ids=["finite", "weights", "psi", "phi", "xi"],
)
def test_the_part_of_blend_is_named(make: Callable[[], BLEND], part: str, training: bool) -> None:
    model = make().train(training)
    assert first_nonfinite(model, prepared(model)) == part


def test_the_batch_norm_is_named() -> None:
    model = small_blend(batch_norm=True).eval()
    model.get_buffer("norm.running_mean").fill_(-3e38)
    assert first_nonfinite(filled(model, "norm.weight"), prepared(model)) == "the batch norm"


@pytest.mark.parametrize("name", ["features", "positions"])
def test_the_inputs_are_named(name: str) -> None:
    model = small_blend(positions=True)
    inputs = prepared(model)
    bad = replace(inputs, **{"x" if name == "features" else "pos": torch.full_like(inputs.x, math.nan)})  # type: ignore[arg-type]
    assert first_nonfinite(model, bad) == f"the {name} of the input"


def test_the_flow_is_named_with_its_time(monkeypatch: pytest.MonkeyPatch) -> None:
    model = broken_flow(small_blend(frozen=False), 1.0, monkeypatch)
    said = first_nonfinite(model, prepared(model))
    assert said.startswith("the flow: RK4() failed because the state became NaN or infinite: it reached t=0.5 of 2")


@pytest.mark.slow
def test_an_adaptive_flow_is_named_with_its_time(monkeypatch: pytest.MonkeyPatch) -> None:
    model = broken_flow(small_blend(frozen=False, scheme=Scheme(Dopri5(), PID(1e-3, 1e-3))), 1.0, monkeypatch)
    said = first_nonfinite(model, prepared(model))
    assert said.startswith("the flow: Dopri5() failed because the vector field became NaN or infinite at t=")
    assert 0.9 <= float(said.split("t=")[1].split()[0]) <= 1.0


@pytest.mark.parametrize("scheme", [RK4_STEPS, Exponential(1e-3, 1e-3)], ids=["rk4", "exponential"])
def test_a_flow_that_overflows_is_named(scheme: Scheme | Exponential) -> None:
    model = scaled(small_blend(scheme=scheme), "psi.linear.weight", 2e37)
    scaled(model, "evolution.flow.source.beta", 1e30)
    assert first_nonfinite(model, prepared(model)).startswith("the flow: ")


@pytest.mark.parametrize(
    ("make", "part"),
    [
        (lambda: baseline.gcn(FRAME), "the module `"),
        (lambda: baseline.gat(FRAME), "the module `"),
        (lambda: baseline.gde(FRAME, scheme=RK4_STEPS, time=1.0), "the module `first."),
        (lambda: LinearDiffusion(FEATURES, CLASSES, time=1.0), "the encoder"),
    ],
    ids=["gcn", "gat", "gde", "linear"],
)
def test_the_module_of_other_models_is_named(make: Callable[[], Classifier], part: str) -> None:
    model = make()
    assert first_nonfinite(model, prepared(model)) == "the loss or its gradient, as the outputs are finite"
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.fill_(3e38)
    assert first_nonfinite(model, prepared(model)).startswith(part)


def test_the_model_is_not_changed() -> None:
    model = small_blend(dropout=0.5, batch_norm=True).train()
    before = {name: tensor.clone() for name, tensor in tensors(model).items()}
    first_nonfinite(model, prepared(model))
    assert model.training
    assert all(torch.equal(tensor, before[name]) for name, tensor in tensors(model).items())


def tensors(model: BLEND) -> dict[str, Tensor]:
    return {**dict(model.named_parameters()), **dict(model.named_buffers())}
