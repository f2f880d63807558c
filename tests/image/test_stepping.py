"""Evolved images: the Gaussian limit, the maximum principle, the order of convergence, refusals."""

import math
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
import scipy.fft
import scipy.ndimage
import torch
from torch import Tensor

from beltrami.image import (
    Divergence,
    Explicit,
    ImageFlow,
    Implicit,
    InverseMetric,
    LaplaceBeltrami,
    Projected,
    Surface,
    evolve,
)
from beltrami.image.image_flow import Stepping
from beltrami.scheme import PID, RK4, ConstantSteps, Dopri5, ImplicitEuler, Scheme, solve

BELTRAMI = LaplaceBeltrami(Surface(20.0, patch=3))
FLOWS: list[ImageFlow] = [kind(Surface(2.0, 3)) for kind in (LaplaceBeltrami, Projected, Divergence, InverseMetric)]
STEPPINGS: list[Stepping] = [Explicit(), Implicit(rtol=1e-9)]


def noise(*shape: int, seed: int = 0) -> Tensor:
    return torch.rand(*shape, dtype=torch.float64, generator=torch.Generator().manual_seed(seed))


def blurred(*shape: int) -> Tensor:
    """Return smooth noise, which steps of moderate length resolve."""
    return torch.from_numpy(scipy.ndimage.gaussian_filter(noise(*shape).numpy(), (0, 1.5, 1.5), mode="reflect"))


def test_alpha_zero_is_the_heat_equation_in_closed_form() -> None:
    x, t = noise(2, 9, 12), 3.0
    flow = LaplaceBeltrami(Surface(0.0))
    found = solve(flow, x, [0.0, t], Scheme(Dopri5(), PID(1e-9, 1e-11))).ys[-1]
    waves = scipy.fft.dctn(x.numpy(), axes=(1, 2), norm="ortho")
    rows, columns = (-4 * np.sin(np.pi * np.arange(n) / (2 * n)) ** 2 for n in (9, 12))
    decayed = waves * np.exp(t * (rows[:, None] + columns[None, :]))
    np.testing.assert_allclose(found.numpy(), scipy.fft.idctn(decayed, axes=(1, 2), norm="ortho"), atol=1e-8)


@pytest.mark.parametrize("t", [2.0, 8.0])
def test_alpha_zero_is_the_gaussian_filter(t: float) -> None:
    x = noise(1, 48, 40)
    found = solve(LaplaceBeltrami(Surface(0.0, patch=3)), x, [0.0, t], Scheme(RK4(), ConstantSteps(0.2))).ys[-1]
    sigma = (0.0, math.sqrt(2 * t), math.sqrt(2 * t))
    expected = scipy.ndimage.gaussian_filter(x.numpy(), sigma, mode="reflect", truncate=8.0)
    apart = np.abs(found.numpy() - expected).max()
    assert apart < 0.02 / t  # the grid's kernel and the sampled Gaussian differ in their fourth moments
    assert apart < 0.1 * np.abs(expected - expected.mean()).max()


def test_flat_flow_converges_to_the_mean() -> None:
    x = noise(3, 8, 8)
    y = evolve(x, LaplaceBeltrami(Surface(0.0)), time=200.0, stepping=Implicit(hold=20.0, rtol=1e-10))
    torch.testing.assert_close(y, x.mean((1, 2), keepdim=True).expand_as(y), atol=1e-6, rtol=0)


@pytest.mark.parametrize("flow", FLOWS, ids=lambda flow: type(flow).__name__)
@pytest.mark.parametrize("stepping", STEPPINGS, ids=lambda stepping: type(stepping).__name__)
def test_pixels_stay_within_the_range_of_the_image(flow: ImageFlow, stepping: Stepping) -> None:
    x = noise(3, 12, 13).round()  # black and white
    y = evolve(x, flow, time=3.0, stepping=stepping)
    assert y.min() >= -1e-8
    assert y.max() <= 1 + 1e-8
    assert (y - x).abs().max() > 0.01


@pytest.mark.parametrize("stepping", STEPPINGS, ids=lambda stepping: type(stepping).__name__)
@pytest.mark.parametrize("kind", [Divergence, InverseMetric])
def test_mean_is_conserved(kind: type[Divergence], stepping: Stepping) -> None:
    x = noise(3, 9, 8)
    y = evolve(x, kind(Surface(10.0, 3)), time=2.5, stepping=stepping)
    torch.testing.assert_close(y.mean((1, 2)), x.mean((1, 2)), atol=1e-7, rtol=0)


@pytest.mark.parametrize("stepping", STEPPINGS, ids=lambda stepping: type(stepping).__name__)
def test_rotation_commutes_with_evolve(stepping: Stepping) -> None:
    x = noise(1, 7, 9)
    one = evolve(x.rot90(1, (1, 2)), BELTRAMI, time=2.0, stepping=stepping)
    torch.testing.assert_close(one, evolve(x, BELTRAMI, time=2.0, stepping=stepping).rot90(1, (1, 2)))


@pytest.mark.parametrize("stepping", STEPPINGS, ids=lambda stepping: type(stepping).__name__)
def test_constant_image_stays(stepping: Stepping) -> None:
    x = torch.full((1, 5, 5), 0.3)
    assert torch.equal(evolve(x, BELTRAMI, time=4.0, stepping=stepping), x)


@pytest.mark.parametrize("stepping", STEPPINGS, ids=lambda stepping: type(stepping).__name__)
def test_steppings_converge_to_the_unfrozen_flow_at_first_order(stepping: Stepping) -> None:
    x, flow = blurred(1, 10, 10), LaplaceBeltrami(Surface(4.0, patch=3))
    exact = solve(flow, x, [0.0, 1.0], Scheme(Dopri5(), PID(1e-9, 1e-11))).ys[-1]
    errors = [
        float((evolve(x, flow, time=1.0, stepping=replace(stepping, hold=1 / n)) - exact).norm()) for n in (8, 16, 32)
    ]
    assert errors[0] < 0.05 * float((exact - x).norm())
    for coarse, fine in pairwise(errors):
        assert coarse / fine == pytest.approx(2.0, abs=0.3)


@pytest.mark.slow
def test_flow_is_solved_by_the_library_schemes() -> None:
    x, flow = blurred(1, 6, 6), LaplaceBeltrami(Surface(4.0))
    exact = solve(flow, x, [0.0, 0.5], Scheme(Dopri5(), PID(1e-9, 1e-11))).ys[-1]
    implicit = solve(flow, x, [0.0, 0.5], Scheme(ImplicitEuler(1e-10, 1e-12), ConstantSteps(0.01))).ys[-1]
    torch.testing.assert_close(implicit, exact, atol=2e-3, rtol=0)
    explicit = solve(flow, x, [0.0, 0.5], Scheme(RK4(), ConstantSteps(0.1))).ys[-1]
    torch.testing.assert_close(explicit, exact, atol=1e-6, rtol=0)


def test_explicit_steps_are_as_long_as_the_maximum_principle_allows() -> None:
    field = LaplaceBeltrami(Surface(1.0)).freeze(noise(1, 8, 8))
    assert field.rate > 1
    scheme = Explicit().scheme(field)
    assert scheme.controller == ConstantSteps(1 / field.rate)
    assert Explicit(hold=0.01).scheme(field).controller == ConstantSteps(0.01)


def test_noise_is_removed_and_edges_are_kept() -> None:
    step = torch.zeros(1, 24, 24, dtype=torch.float64)
    step[..., 12:] = 1.0
    noisy = step + 0.1 * torch.randn(step.shape, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    kept = evolve(noisy, LaplaceBeltrami(Surface(30.0, patch=5)), time=6.0, stepping=Explicit())
    gone = evolve(noisy, LaplaceBeltrami(Surface(0.0)), time=6.0, stepping=Explicit())
    assert (kept - step).square().mean() < 0.2 * (noisy - step).square().mean()
    assert (kept[..., 12] - kept[..., 11]).mean() > 0.8
    assert (gone[..., 12] - gone[..., 11]).mean() < 0.3


@pytest.mark.parametrize("time", [0.0, -1.0, math.inf])
def test_bad_times_are_refused(time: float) -> None:
    with pytest.raises(ValueError, match="`time` must be positive; got"):
        evolve(noise(1, 3, 3), BELTRAMI, time=time, stepping=Explicit())


@pytest.mark.parametrize("stepping", STEPPINGS, ids=repr)
@pytest.mark.parametrize("time", [1e9, 1e308])
def test_a_flow_of_too_many_steps_is_refused(stepping: Stepping, time: float) -> None:
    with pytest.raises(ValueError, match=r"needs 1e\+\d+ metrics, and at most 10000 are allowed: choose a time below"):
        evolve(noise(1, 3, 3), BELTRAMI, time=time, stepping=stepping)


@pytest.mark.parametrize("kind", [Explicit, Implicit])
def test_bad_holds_are_refused(kind: type[Explicit]) -> None:
    with pytest.raises(ValueError, match="needs a positive `hold`; got 0"):
        kind(hold=0.0)


def test_a_surface_so_steep_that_its_metric_overflows_is_refused() -> None:
    with pytest.raises(ValueError, match="metric of the image's surface is not finite: choose a smaller `alpha`"):
        evolve(noise(1, 8, 8).float(), LaplaceBeltrami(Surface(1e20)), time=1.0, stepping=Explicit())
    with pytest.raises(ValueError, match="finite `alpha`"):
        Surface(1e200)
