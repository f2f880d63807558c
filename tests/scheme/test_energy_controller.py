"""Descent takes no step along which the energy grows, and gets where it should."""

import math
from itertools import pairwise

import pytest
import torch
from checks import normal
from torch import Tensor
from torch.func import vmap

from beltrami.errors import SolverError
from beltrami.scheme import (
    PID,
    RK4,
    AdamsBashforth,
    Checkpointed,
    ConstantSteps,
    Continuous,
    Controller,
    Dopri5,
    EnergyController,
    EnergyDecreasing,
    Euler,
    Heun,
    Midpoint,
    Potential,
    Scheme,
    Solver,
    solve,
)
from beltrami.scheme.base import Stats
from beltrami.scheme.loop import accepted_steps

STIFF = 9.0  # Euler steps above 2 / 9 raise the energy


class Bowl(Potential):
    """E(y) = 1/2 sum k_i y_i^2 with k = (1, 9), f = -grad E."""

    k = torch.tensor([1.0, STIFF], dtype=torch.float64)

    def energy(self, y: Tensor) -> Tensor:
        return 0.5 * (self.k * y.square()).sum()

    def __call__(self, t: float, y: Tensor) -> Tensor:
        return -self.k * y


def energies(scheme: Scheme, y0: Tensor, time: float) -> tuple[list[float], Stats]:
    """After each step that was accepted, beginning with the first state."""
    bowl, stats = Bowl(), Stats()
    strides = accepted_steps(bowl, y0, 0.0, time, scheme, stats)
    return [float(bowl.energy(y0)), *(float(bowl.energy(stride.step.y1)) for stride in strides)], stats


@pytest.mark.parametrize("solver", [Euler(), Midpoint(), Heun(), RK4()], ids=repr)
def test_energy_falls_where_the_bare_steps_let_it_grow(solver: Solver) -> None:
    y0, steps = torch.tensor([1.0, 1.0], dtype=torch.float64), ConstantSteps(0.7)
    bare, _ = energies(Scheme(solver, steps), y0, 7.0)
    kept, stats = energies(Scheme(solver, EnergyController(steps, Bowl().energy)), y0, 7.0)
    assert max(bare) > 10 * bare[0]
    assert all(after < before for before, after in pairwise(kept))
    assert stats.rejected > 0


def test_steps_are_halved_until_the_energy_falls() -> None:
    """0.7 and 0.35 are too long for Euler; 0.175 is not, and the march keeps it."""
    y0 = torch.tensor([0.0, 1.0], dtype=torch.float64)
    kept, stats = energies(Scheme(Euler(), EnergyController(ConstantSteps(0.7), Bowl().energy)), y0, 1.4)
    assert (stats.rejected, stats.accepted) == (2, 8)
    assert kept[-1] == pytest.approx(kept[0] * (1 - 0.175 * STIFF) ** 16, rel=1e-9)


def test_a_step_that_may_stay_is_the_one_of_the_scheme() -> None:
    y0, scheme = normal(2), Scheme(Dopri5(), PID(1e-6, 1e-8))
    plain, kept = (solve(Bowl(), y0, (0.0, 0.3, 1.0), s) for s in (scheme, EnergyDecreasing(scheme)))
    assert torch.equal(plain.ys, kept.ys)
    assert plain.stats == kept.stats


def test_at_rest_the_march_goes_on() -> None:
    """A field of round-off, up and down, around a state that is large: no step lowers the energy."""

    class Noise(Potential):
        def energy(self, y: Tensor) -> Tensor:
            return (y - 1e3).abs().sum()

        def __call__(self, t: float, y: Tensor) -> Tensor:
            return torch.full_like(y, 1e-13)

    y0 = torch.full((3,), 1e3, dtype=torch.float64)
    solution = solve(Noise(), y0, (0.0, 5.0), EnergyDecreasing(Scheme(Euler(), ConstantSteps(1.0))))
    assert solution.stats.accepted == 5


def test_a_field_that_climbs_is_an_error_that_says_how_far_it_came() -> None:
    class Climb(Bowl):
        def __call__(self, t: float, y: Tensor) -> Tensor:
            return self.k * y

    with pytest.raises(SolverError, match=r"reached t=0 of 1"):
        solve(Climb(), normal(2), (0.0, 1.0), EnergyDecreasing(Scheme(Euler(), ConstantSteps(0.1), max_steps=200)))


def test_a_step_that_is_not_finite_is_tried_again_shorter() -> None:
    class Cliff(Bowl):
        def __call__(self, t: float, y: Tensor) -> Tensor:
            return torch.where(y.abs() > 2, math.nan, -self.k * y)

    y0 = torch.tensor([0.0, 1.0], dtype=torch.float64)
    solution = solve(Cliff(), y0, (0.0, 2.0), EnergyDecreasing(Scheme(Heun(), ConstantSteps(1.0))))
    assert bool(torch.isfinite(solution.ys).all())
    assert solution.stats.rejected > 0


@pytest.mark.parametrize("adjoint", [Checkpointed(), Continuous()], ids=repr)
def test_gradients_go_through_the_steps_that_were_taken(adjoint: Checkpointed | Continuous) -> None:
    """Along y' = -k y, dy(T)/dy0 = exp(-k T)."""
    y0 = torch.tensor([1.0, 0.5], dtype=torch.float64, requires_grad=True)
    end = solve(Bowl(), y0, (0.0, 0.4), EnergyDecreasing(Scheme(RK4(), ConstantSteps(0.02), adjoint)), (Bowl.k,)).ys[-1]
    (found,) = torch.autograd.grad(end.sum(), y0)
    torch.testing.assert_close(found, torch.exp(-0.4 * Bowl.k), rtol=1e-4, atol=0)


def test_a_run_of_a_batch_that_is_no_number_leaves_the_others_alone() -> None:
    y0, scheme = normal(3, 2), EnergyDecreasing(Scheme(Euler(), ConstantSteps(0.7)))
    y0[1] = math.nan
    ends = vmap(lambda y: solve(Bowl(), y, (0.0, 1.4), scheme).ys[-1])(y0)
    assert torch.isfinite(ends).all(1).tolist() == [True, False, True]
    for k in (0, 2):
        torch.testing.assert_close(ends[k], solve(Bowl(), y0[k], (0.0, 1.4), scheme).ys[-1])


def test_it_goes_on_where_a_solve_ended() -> None:
    scheme = EnergyDecreasing(Scheme(Dopri5(), PID(1e-4, 1e-6)))
    stats = solve(Bowl(), normal(2), (0.0, 1.0), scheme).stats
    assert isinstance(stats.last_dt, float)
    resumed = scheme.resume(stats).scheme.controller
    assert resumed == PID(1e-4, 1e-6, first=stats.last_dt)
    assert EnergyController(PID(1e-4, 1e-6), Bowl().energy).resume(0.5).controller == PID(1e-4, 1e-6, first=0.5)


def test_a_field_without_an_energy_is_refused() -> None:
    with pytest.raises(ValueError, match=r"Descent steps fields that know their energy, and function does not"):
        solve(lambda t, y: -y, normal(2), (0.0, 1.0), EnergyDecreasing(Scheme(Euler(), ConstantSteps(0.1))))


@pytest.mark.parametrize(
    ("solver", "controller", "message"),
    [(Euler(), PID(1e-3, 1e-3), "has no error estimate"), (AdamsBashforth(), ConstantSteps(0.1), "of one length only")],
    ids=["estimate", "length"],
)
def test_what_the_steps_need_is_still_asked_of_the_solver(solver: Solver, controller: Controller, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        Scheme(solver, EnergyController(controller, Bowl().energy))


def test_it_waits_for_the_device() -> None:
    assert EnergyDecreasing(Scheme(Euler(), ConstantSteps(0.1))).synchronises
