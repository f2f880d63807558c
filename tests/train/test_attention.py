"""Attention learns with every adjoint, and strong decay keeps it uniform."""

from typing import Any

import pytest
import torch
from torch import Tensor
from torch.nn import functional as F
from toy import scaled_dot, small_blend, two_cliques, with_adjoint

from beltrami.diffusivity import constant
from beltrami.model import BLEND
from beltrami.scheme import Adjoint, Checkpointed, Continuous, Direct
from beltrami.train import TimeGrid, Training, fit

TOY = two_cliques()
PROJECTIONS = [f"evolution.flow.diffusivity.project.{part}.weight" for part in ("key", "query")]
every_adjoint = pytest.mark.parametrize("adjoint", [Direct(), Checkpointed(), Continuous()], ids=repr)
frozen_or_live = pytest.mark.parametrize("frozen", [True, False], ids=["frozen", "live"])


def sgd(groups: list[dict[str, Any]]) -> torch.optim.Optimizer:
    return torch.optim.SGD(groups, lr=0.5)


def adam(groups: list[dict[str, Any]]) -> torch.optim.Optimizer:
    return torch.optim.Adam(groups, lr=0.02)


def spread_of(model: BLEND) -> float:
    return model.attention_spread(model.prepare(TOY.x, TOY.edge_index))


def gradients(adjoint: Adjoint, *, frozen: bool) -> dict[str, Tensor]:
    """Return the gradients of the training loss by parameter name, in double precision."""
    model = small_blend(frozen=frozen, scheme=with_adjoint(adjoint)).double()
    logits = model(TOY.x.double(), TOY.edge_index)
    F.cross_entropy(logits[TOY.split.train], TOY.y[TOY.split.train]).backward()
    return {name: p.grad for name, p in model.named_parameters() if p.grad is not None}


@every_adjoint
@frozen_or_live
def test_gradient_reaches_every_parameter(adjoint: Adjoint, frozen: bool) -> None:
    found = gradients(adjoint, frozen=frozen)
    assert set(PROJECTIONS) <= found.keys() == dict(small_blend().named_parameters()).keys()
    for name, gradient in found.items():
        assert float(gradient.abs().max()) > 1e-7, name


@frozen_or_live
def test_checkpointed_gradient_is_the_direct_one(frozen: bool) -> None:
    direct, checkpointed = gradients(Direct(), frozen=frozen), gradients(Checkpointed(), frozen=frozen)
    for name, gradient in direct.items():
        assert torch.allclose(checkpointed[name], gradient, rtol=1e-9, atol=1e-14), name


@frozen_or_live
def test_continuous_gradient_is_the_direct_one_up_to_the_scheme(frozen: bool) -> None:
    direct, continuous = gradients(Direct(), frozen=frozen), gradients(Continuous(), frozen=frozen)
    for name, gradient in direct.items():
        assert float((continuous[name] - gradient).norm()) < 0.01 * float(gradient.norm()), name


@pytest.mark.slow
@every_adjoint
@frozen_or_live
def test_attention_moves_and_tells_edges_apart(adjoint: Adjoint, frozen: bool) -> None:
    model = small_blend(frozen=frozen, scheme=with_adjoint(adjoint))
    before, start = {name: model.get_parameter(name).detach().clone() for name in PROJECTIONS}, spread_of(model)
    inputs = model.prepare(TOY.x, TOY.edge_index)
    fit(model, inputs, TOY.y, TOY.split, Training(3, adam, time_grid=TimeGrid(1.0)))
    assert spread_of(model) > 0.01
    assert spread_of(model) != start
    for name in PROJECTIONS:
        assert float((model.get_parameter(name).detach() - before[name]).abs().max()) > 1e-3


def test_constant_start_under_strong_decay_stays_near_uniform() -> None:
    model = small_blend(diffusivity=scaled_dot(start=constant(1e-5)))
    inputs = model.prepare(TOY.x, TOY.edge_index)
    fit(model, inputs, TOY.y, TOY.split, Training(10, sgd, attention_decay=1.0, time_grid=TimeGrid(1.0)))
    assert spread_of(model) < 1e-6


def test_decay_alone_separates_learning_attention_from_uniform() -> None:
    spreads = []
    for decay in (0.0, 1.9):
        model = small_blend()
        inputs = model.prepare(TOY.x, TOY.edge_index)
        fit(model, inputs, TOY.y, TOY.split, Training(10, sgd, attention_decay=decay, time_grid=TimeGrid(1.0)))
        spreads.append(spread_of(model))
    assert spreads[1] < 0.1 * spreads[0]
