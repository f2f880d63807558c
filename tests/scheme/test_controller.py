"""Controllers choose steps of the stated lengths and keep errors near the tolerance."""

import math
from dataclasses import replace
from itertools import pairwise

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from beltrami.scheme import (
    PID,
    RK4,
    AdamsBashforth,
    AdamsMoulton,
    Bosh3,
    ConstantSteps,
    Controller,
    Dopri5,
    Euler,
    Heun,
    Midpoint,
    Scheme,
    Solver,
    Stats,
    solve,
)
from beltrami.scheme.controller import MAX_FACTOR
from beltrami.scheme.step_loop import accepted_steps

ONE = torch.ones(1, dtype=torch.float64)


def decay(t: float, y: Tensor) -> Tensor:
    return -y


def oscillate(t: float, y: Tensor) -> Tensor:
    return torch.stack([y[1], -y[0]])


def lengths(controller: Controller, end: float) -> list[float]:
    scheme = Scheme(Heun(), controller)
    return [step.t1 - step.t0 for step in accepted_steps(decay, ONE, 0.0, end, scheme, Stats())]


@pytest.mark.parametrize(("end", "dt", "steps"), [(1.0, 0.1, 10), (1.0, 0.3, 4), (0.2, 1.0, 1), (18.0, 1.0, 18)])
def test_constant_steps_are_equal_and_fit(end: float, dt: float, steps: int) -> None:
    found = lengths(ConstantSteps(dt), end)
    assert len(found) == steps
    assert found == pytest.approx([end / steps] * steps, rel=1e-12)


@given(steps=st.integers(1, 300), dt=st.floats(1e-3, 1e3))
@settings(max_examples=25, deadline=None)
def test_round_off_adds_no_constant_step(steps: int, dt: float) -> None:
    stats = solve(decay, ONE * 0.0, [0.0, steps * dt], Scheme(Euler(), ConstantSteps(dt))).stats
    assert stats.accepted == steps


@pytest.mark.parametrize("solver", [Heun(), Bosh3(), Dopri5()], ids=repr)
@pytest.mark.parametrize("tolerance", [1e-3, 1e-6])
def test_pid_keeps_the_error_near_the_tolerance(solver: Solver, tolerance: float) -> None:
    y0 = torch.tensor([1.0, 0.0], dtype=torch.float64)
    ys = solve(oscillate, y0, [0.0, 2.0 * math.pi], Scheme(solver, PID(tolerance, tolerance))).ys
    error = float((ys[-1] - y0).abs().max())
    assert 1e-3 * tolerance < error < 100.0 * tolerance


def test_tighter_tolerances_cost_more_steps_and_give_smaller_errors() -> None:
    y0 = torch.tensor([1.0, 0.0], dtype=torch.float64)
    found = [solve(oscillate, y0, [0.0, 6.0], Scheme(Dopri5(), PID(tol, tol))) for tol in (1e-3, 1e-6, 1e-9)]
    truth = torch.tensor([math.cos(6.0), -math.sin(6.0)], dtype=torch.float64)
    errors = [float((s.ys[-1] - truth).abs().max()) for s in found]
    assert errors[0] > 10.0 * errors[1] > 100.0 * errors[2]
    assert found[0].stats.accepted < found[1].stats.accepted < found[2].stats.accepted


def test_rejected_steps_are_counted_and_cost_six_evaluations() -> None:
    y0 = torch.tensor([1.0, 0.0], dtype=torch.float64)
    stats = solve(oscillate, y0, [0.0, 6.0], Scheme(Dopri5(), PID(1e-6, 1e-6, first=5.0))).stats
    assert stats.rejected >= 1
    assert stats.evaluations == 6 * (stats.accepted + stats.rejected) + 1


def test_the_estimate_of_the_first_step_costs_two_evaluations_and_is_accepted() -> None:
    y0 = torch.tensor([1.0, 0.0], dtype=torch.float64)
    stats = solve(oscillate, y0, [0.0, 6.0], Scheme(Dopri5(), PID(1e-6, 1e-6))).stats
    assert stats.rejected == 0
    assert stats.evaluations == 6 * stats.accepted + 1 + 2


@pytest.mark.parametrize("y0", [torch.zeros(2), torch.full((2,), 1e-12), torch.full((2,), 1e12)], ids=str)
def test_first_step_is_found_for_states_of_any_size(y0: Tensor) -> None:
    ys = solve(decay, y0.double(), [0.0, 1.0], Scheme(Dopri5(), PID(1e-6, 1e-9))).ys
    torch.testing.assert_close(ys[-1], y0.double() * math.exp(-1.0), rtol=1e-4, atol=1e-8)


def test_resume_continues_with_the_last_step_size() -> None:
    controller = PID(1e-6, 1e-6)
    y0 = torch.tensor([1.0, 0.0], dtype=torch.float64)
    once = solve(oscillate, y0, [0.0, 5.0], Scheme(Dopri5(), controller))
    dt = once.stats.last_dt
    steady = 5.0 / once.stats.accepted
    assert 0.5 * steady < dt < 2.0 * steady  # not the shortened last step
    again = solve(oscillate, once.ys[-1], [5.0, 10.0], Scheme(Dopri5(), controller.resume(dt)))
    assert again.stats.evaluations == 6 * (again.stats.accepted + again.stats.rejected) + 1
    assert controller.resume(dt) == replace(controller, first=dt)
    assert ConstantSteps(0.1).resume(dt) == ConstantSteps(0.1)


def test_proportional_and_derivative_terms_change_the_steps_but_not_the_answer() -> None:
    y0 = torch.tensor([1.0, 0.0], dtype=torch.float64)
    plain = solve(oscillate, y0, [0.0, 6.0], Scheme(Dopri5(), PID(1e-6, 1e-6)))
    full = solve(oscillate, y0, [0.0, 6.0], Scheme(Dopri5(), PID(1e-6, 1e-6, pcoeff=0.4, icoeff=0.3, dcoeff=0.1)))
    assert full.stats.last_dt != plain.stats.last_dt
    torch.testing.assert_close(full.ys[-1], plain.ys[-1], rtol=1e-4, atol=1e-4)


def test_steps_grow_and_shrink_no_faster_than_allowed() -> None:
    found = lengths(PID(1e-3, 1e-3, first=1e-6), 1.0)
    ratios = [after / before for before, after in pairwise(found[:-1])]
    assert max(ratios) == pytest.approx(MAX_FACTOR)


def test_meaningless_settings_of_controllers_are_refused() -> None:
    with pytest.raises(ValueError, match=r"positive `dt`; got 0\.0"):
        ConstantSteps(0.0)
    with pytest.raises(ValueError, match="positive `dt`; got inf"):
        ConstantSteps(math.inf)
    with pytest.raises(ValueError, match="`rtol` and `atol`, not both zero"):
        PID(0.0, 0.0)
    with pytest.raises(ValueError, match="positive `first` step"):
        PID(1e-3, 1e-3, first=0.0)


@pytest.mark.parametrize("solver", [Euler(), Midpoint(), RK4()], ids=repr)
def test_solver_without_error_estimate_is_refused_by_pid(solver: Solver) -> None:
    with pytest.raises(ValueError, match=rf"{type(solver).__name__}\(\) has no error estimate, and PID needs one"):
        Scheme(solver, PID(1e-3, 1e-3))


@pytest.mark.parametrize("solver", [AdamsBashforth(), AdamsMoulton()], ids=repr)
def test_multistep_solver_is_refused_by_pid(solver: Solver) -> None:
    with pytest.raises(ValueError, match=r"\(order=4\) needs steps of equal length and does not work with PID"):
        Scheme(solver, PID(1e-3, 1e-3))
