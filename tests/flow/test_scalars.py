"""Rate, Source, Coupling and Attachment: the learned scalars of a flow."""

import math

import pytest
import torch
from checks import normal

from beltrami.flow import Attachment, Coupling, Rate, Source


@pytest.mark.parametrize("start", [0.01, 0.5, 0.9])
def test_a_rate_starts_at_its_argument(start: float) -> None:
    rate = Rate(start)
    assert float(rate().detach()) == pytest.approx(start, abs=1e-6)
    assert rate().shape == ()


@pytest.mark.parametrize("logit", [-20.0, 0.0, 10.0])
def test_a_rate_is_between_zero_and_one_for_any_parameter(logit: float) -> None:
    rate = Rate().double()
    with torch.no_grad():
        rate.logit.fill_(logit)
    assert 0 < float(rate().detach()) < 1
    assert float(rate().detach()) == pytest.approx(1 / (1 + math.exp(-logit)))


def test_the_slope_of_a_rate_is_alpha_one_minus_alpha() -> None:
    rate = Rate(0.3).double()
    rate().backward()
    assert rate.logit.grad is not None
    assert float(rate.logit.grad) == pytest.approx(0.21, abs=1e-6)


@pytest.mark.parametrize("start", [0.0, 1.0, -0.1, 1.5, math.nan])
def test_a_rate_outside_zero_and_one_is_refused(start: float) -> None:
    with pytest.raises(ValueError, match="strictly between 0 and 1"):
        Rate(start)


def test_a_source_is_beta_times_the_start() -> None:
    z0 = normal(4, 2)
    torch.testing.assert_close(Source(0.25).double()(z0), 0.25 * z0)
    assert float(Source()(z0).detach().abs().max()) == 0.0


def test_a_source_of_zero_receives_a_gradient() -> None:
    source, z0 = Source().double(), normal(4, 2)
    source(z0).sum().backward()
    assert source.beta.grad is not None
    assert float(source.beta.grad) == pytest.approx(float(z0.sum()))


@pytest.mark.parametrize("start", [-0.9, 0.0, 0.5])
def test_a_coupling_starts_at_its_argument_and_returns_there(start: float) -> None:
    coupling = Coupling(start).double()
    assert float(coupling().detach()) == pytest.approx(start, abs=1e-6)
    with torch.no_grad():
        coupling.theta.add_(0.3)
    assert -1 < float(coupling().detach()) < 1
    coupling.reset_parameters()
    assert float(coupling().detach()) == pytest.approx(start, abs=1e-6)


@pytest.mark.parametrize("start", [-1.0, 1.0, 2.0, math.nan])
def test_a_coupling_outside_minus_one_and_one_is_refused(start: float) -> None:
    with pytest.raises(ValueError, match="strictly between -1 and 1"):
        Coupling(start)


@pytest.mark.parametrize("start", [0.0, -1.0, float("inf"), float("nan")])
def test_an_attachment_that_is_not_positive_and_finite_is_refused(start: float) -> None:
    with pytest.raises(ValueError, match=r"Attachment needs a positive, finite `start`"):
        Attachment(start)


@pytest.mark.parametrize("start", [1e-3, 0.1, 30.0])
def test_an_attachment_starts_at_its_argument(start: float) -> None:
    assert float(Attachment(start)().detach()) == pytest.approx(start, rel=1e-5)
