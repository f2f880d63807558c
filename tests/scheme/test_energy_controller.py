"""EnergyDecreasing takes no step that increases the energy, and reaches the right state."""

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
from beltrami.scheme.step_loop import accepted_steps

STIFF = 9.0  # Euler steps above 2 / 9 raise the energy


class Bowl(Potential):
    """E(y) = 1/2 sum k_i y_i^2 with k = (1, 9), f = -grad E."""

    k = torch.tensor([1.0, STIFF], dtype=torch.float64)

    def energy(self, y: Tensor) -> Tensor:
        return 0.5 * (self.k * y.square()).sum()

    def __call__(self, t: float, y: Tensor) -> Tensor:
        return -self.k * y


def energies(scheme: Scheme, y0: Tensor, time: float) -> tuple[list[float], Stats]:
    """Return the energy at the start and after each accepted step."""
    bowl, stats = Bowl(), Stats()
    steps = accepted_steps(bowl, y0, 0.0, time, scheme, stats)
    return [float(bowl.energy(y0)), *(float(bowl.energy(accepted.step.y1)) for accepted in steps)], stats


@pytest.mark.parametrize("solver", [Euler(), Midpoint(), Heun(), RK4()], ids=repr)
def test_energy_falls_where_plain_steps_increase_it(solver: Solver) -> None:
    y0, steps = torch.tensor([1.0, 1.0], dtype=torch.float64), ConstantSteps(0.7)
    plain, _ = energies(Scheme(solver, steps), y0, 7.0)
    kept, stats = energies(Scheme(solver, EnergyController(steps, Bowl().energy)), y0, 7.0)
    assert max(plain) > 10 * plain[0]
    assert all(after < before for before, after in pairwise(kept))
    assert stats.rejected > 0


def test_steps_are_halved_until_the_energy_falls() -> None:
    """0.7 and 0.35 are too long for Euler; 0.175 is not, and is kept."""
    y0 = torch.tensor([0.0, 1.0], dtype=torch.float64)
    kept, stats = energies(Scheme(Euler(), EnergyController(ConstantSteps(0.7), Bowl().energy)), y0, 1.4)
    assert (stats.rejected, stats.accepted) == (2, 8)
    assert kept[-1] == pytest.approx(kept[0] * (1 - 0.175 * STIFF) ** 16, rel=1e-9)


def test_steps_that_lower_the_energy_are_those_of_the_scheme() -> None:
    y0, scheme = normal(2), Scheme(Dopri5(), PID(1e-6, 1e-8))
    plain, kept = (solve(Bowl(), y0, (0.0, 0.3, 1.0), s) for s in (scheme, EnergyDecreasing(scheme)))
    assert torch.equal(plain.ys, kept.ys)
    assert plain.stats == kept.stats


def test_round_off_at_rest_does_not_stop_the_solve() -> None:
    """With slopes of the size of round-off no step lowers the energy."""

    class Noise(Potential):
        def energy(self, y: Tensor) -> Tensor:
            return (y - 1e3).abs().sum()

        def __call__(self, t: float, y: Tensor) -> Tensor:
            return torch.full_like(y, 1e-13)

    y0 = torch.full((3,), 1e3, dtype=torch.float64)
    solution = solve(Noise(), y0, (0.0, 5.0), EnergyDecreasing(Scheme(Euler(), ConstantSteps(1.0))))
    assert solution.stats.accepted == 5


def test_a_field_that_increases_its_energy_raises_with_the_time() -> None:
    class Climb(Bowl):
        def __call__(self, t: float, y: Tensor) -> Tensor:
            return self.k * y

    with pytest.raises(SolverError, match=r"reached t=0 of 1"):
        solve(Climb(), normal(2), (0.0, 1.0), EnergyDecreasing(Scheme(Euler(), ConstantSteps(0.1), max_steps=200)))


def test_a_step_that_is_not_finite_is_repeated_with_a_shorter_one() -> None:
    class Cliff(Bowl):
        def __call__(self, t: float, y: Tensor) -> Tensor:
            return torch.where(y.abs() > 2, math.nan, -self.k * y)

    y0 = torch.tensor([0.0, 1.0], dtype=torch.float64)
    solution = solve(Cliff(), y0, (0.0, 2.0), EnergyDecreasing(Scheme(Heun(), ConstantSteps(1.0))))
    assert bool(torch.isfinite(solution.ys).all())
    assert solution.stats.rejected > 0


@pytest.mark.parametrize("adjoint", [Checkpointed(), Continuous()], ids=repr)
def test_gradients_flow_through_the_accepted_steps(adjoint: Checkpointed | Continuous) -> None:
    """Along y' = -k y, dy(T)/dy0 = exp(-k T)."""
    y0 = torch.tensor([1.0, 0.5], dtype=torch.float64, requires_grad=True)
    end = solve(Bowl(), y0, (0.0, 0.4), EnergyDecreasing(Scheme(RK4(), ConstantSteps(0.02), adjoint)), (Bowl.k,)).ys[-1]
    (found,) = torch.autograd.grad(end.sum(), y0)
    torch.testing.assert_close(found, torch.exp(-0.4 * Bowl.k), rtol=1e-4, atol=0)


def test_a_nan_run_of_a_batch_does_not_affect_the_others() -> None:
    y0, scheme = normal(3, 2), EnergyDecreasing(Scheme(Euler(), ConstantSteps(0.7)))
    y0[1] = math.nan
    ends = vmap(lambda y: solve(Bowl(), y, (0.0, 1.4), scheme).ys[-1])(y0)
    assert torch.isfinite(ends).all(1).tolist() == [True, False, True]
    for k in (0, 2):
        torch.testing.assert_close(ends[k], solve(Bowl(), y0[k], (0.0, 1.4), scheme).ys[-1])


def test_resume_continues_with_the_last_step_size() -> None:
    scheme = EnergyDecreasing(Scheme(Dopri5(), PID(1e-4, 1e-6)))
    stats = solve(Bowl(), normal(2), (0.0, 1.0), scheme).stats
    assert isinstance(stats.last_dt, float)
    resumed = scheme.resume(stats).scheme.controller
    assert resumed == PID(1e-4, 1e-6, first=stats.last_dt)
    assert EnergyController(PID(1e-4, 1e-6), Bowl().energy).resume(0.5).controller == PID(1e-4, 1e-6, first=0.5)


def test_a_field_without_an_energy_is_refused() -> None:
    with pytest.raises(ValueError, match=r"EnergyDecreasing needs a field with an energy, and function has none"):
        solve(lambda t, y: -y, normal(2), (0.0, 1.0), EnergyDecreasing(Scheme(Euler(), ConstantSteps(0.1))))


@pytest.mark.parametrize(
    ("solver", "controller", "message"),
    [(Euler(), PID(1e-3, 1e-3), "has no error estimate"), (AdamsBashforth(), ConstantSteps(0.1), "of equal length")],
    ids=["estimate", "length"],
)
def test_the_requirements_of_the_inner_controller_still_hold(
    solver: Solver, controller: Controller, message: str
) -> None:
    with pytest.raises(ValueError, match=message):
        Scheme(solver, EnergyController(controller, Bowl().energy))


def test_it_synchronises_with_the_device() -> None:
    assert EnergyDecreasing(Scheme(Euler(), ConstantSteps(0.1))).synchronises
