"""Implicit solvers on stiff problems."""

import numpy as np
import pytest
import torch
from scipy.integrate import solve_ivp
from torch import Tensor

from beltrami.errors import SolverError
from beltrami.scheme import (
    PID,
    RK4,
    Adjoint,
    Checkpointed,
    ConstantSteps,
    Continuous,
    CrankNicolson,
    Direct,
    ImplicitEuler,
    Scheme,
    Solver,
    solve,
)

SOLVERS: list[Solver] = [ImplicitEuler(1e-10, 1e-12), CrankNicolson(1e-10, 1e-12)]


def van_der_pol(t: float, y: Tensor, *, mu: float = 50.0) -> Tensor:
    return torch.stack([y[1], mu * (1.0 - y[0] ** 2) * y[1] - y[0]])


def robertson(t: float, y: Tensor) -> Tensor:
    slow, fast, third = 0.04 * y[0], 1e4 * y[1] * y[2], 3e7 * y[1] ** 2
    return torch.stack([fast - slow, slow - fast - third, third])


def reference(f: object, y0: list[float], end: float) -> Tensor:
    def numpy_field(t: float, y: np.ndarray) -> np.ndarray:
        return np.asarray(f(t, torch.from_numpy(y)))  # type: ignore[operator]

    found = solve_ivp(numpy_field, (0.0, end), y0, method="LSODA", rtol=1e-10, atol=1e-13)
    return torch.from_numpy(found.y[:, -1])


@pytest.mark.parametrize("solver", SOLVERS, ids=["ImplicitEuler", "CrankNicolson"])
def test_stiff_linear_problem_is_stable_at_long_steps(solver: Solver) -> None:
    rates, y0 = torch.tensor([1.0, 1e2, 1e4], dtype=torch.float64), torch.zeros(3, dtype=torch.float64)

    def relax(t: float, y: Tensor) -> Tensor:
        return rates * (1.0 - y)

    end = solve(relax, y0, [0.0, 4.0], Scheme(solver, ConstantSteps(0.05))).ys[-1]
    assert float(end[0]) == pytest.approx(1.0 - np.exp(-4.0), abs=3e-3)
    assert float(end.abs().max()) < 2.0
    with pytest.raises(SolverError):
        solve(relax, y0, [0.0, 4.0], Scheme(RK4(), ConstantSteps(0.05)))


def test_one_step_of_implicit_euler_is_the_resolvent() -> None:
    a = torch.randn(6, 6, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    y0 = torch.ones(6, 2, dtype=torch.float64)
    ys = solve(lambda t, y: a @ y, y0, [0.0, 0.1], Scheme(ImplicitEuler(1e-13, 1e-14), ConstantSteps(0.1))).ys
    torch.testing.assert_close(ys[-1], torch.linalg.solve(torch.eye(6, dtype=torch.float64) - 0.1 * a, y0))


def test_one_step_of_crank_nicolson_is_cayleys_transform() -> None:
    a = torch.randn(6, 6, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    y0, eye = torch.ones(6, 2, dtype=torch.float64), torch.eye(6, dtype=torch.float64)
    ys = solve(lambda t, y: a @ y, y0, [0.0, 0.1], Scheme(CrankNicolson(1e-13, 1e-14), ConstantSteps(0.1))).ys
    torch.testing.assert_close(ys[-1], torch.linalg.solve(eye - 0.05 * a, (eye + 0.05 * a) @ y0))


def test_van_der_pol_agrees_with_scipy() -> None:
    scheme = Scheme(CrankNicolson(1e-9, 1e-11), PID(1e-4, 1e-6))
    with torch.no_grad():
        solution = solve(van_der_pol, torch.tensor([2.0, 0.0], dtype=torch.float64), [0.0, 30.0], scheme)
    truth = reference(van_der_pol, [2.0, 0.0], 30.0)
    torch.testing.assert_close(solution.ys[-1], truth, rtol=2e-3, atol=1e-4)
    assert solution.stats.accepted < 30.0 * 50.0 / 3.0  # where stability would keep an explicit method below 2/mu


def test_robertson_agrees_with_scipy() -> None:
    scheme = Scheme(ImplicitEuler(1e-9, 1e-13), PID(1e-3, 1e-8))
    with torch.no_grad():
        solution = solve(robertson, torch.tensor([1.0, 0.0, 0.0], dtype=torch.float64), [0.0, 40.0], scheme)
    torch.testing.assert_close(solution.ys[-1], reference(robertson, [1.0, 0.0, 0.0], 40.0), rtol=2e-2, atol=1e-7)
    assert float(solution.ys[-1].sum()) == pytest.approx(1.0, abs=1e-6)  # mass is conserved
    assert solution.stats.accepted < 1000


@pytest.mark.parametrize("adjoint", [Direct(), Checkpointed(), Continuous()], ids=repr)
def test_gradients_of_a_stiff_problem_survive_steps_a_thousand_times_its_time_scale(adjoint: Adjoint) -> None:
    """Towards the slow manifold y = tanh(p), which y(4) has reached."""
    rates = torch.tensor([5.0, 1e2, 1e4], dtype=torch.float64)
    p = torch.tensor([0.3, -0.5, 0.8], dtype=torch.float64, requires_grad=True)

    def relax(t: float, y: Tensor) -> Tensor:
        return rates * (torch.tanh(p) - y - 0.1 * (y - torch.tanh(p)) ** 3)

    scheme = Scheme(ImplicitEuler(1e-10, 1e-12), ConstantSteps(0.1), adjoint)
    ys = solve(relax, torch.zeros(3, dtype=torch.float64), [0.0, 4.0], scheme, (p,)).ys
    (gradient,) = torch.autograd.grad(ys[-1].sum(), p)
    torch.testing.assert_close(gradient, 1.0 - torch.tanh(p.detach()) ** 2, rtol=1e-3, atol=1e-3)


@pytest.mark.parametrize("solver", SOLVERS, ids=["ImplicitEuler", "CrankNicolson"])
def test_no_iteration_of_newton_leaves_a_graph(solver: Solver) -> None:
    saved = 0

    def count(x: Tensor) -> Tensor:
        nonlocal saved
        saved += 1
        return x

    y0 = torch.linspace(0.5, 1.0, 4, dtype=torch.float64).requires_grad_()
    with torch.autograd.graph.saved_tensors_hooks(count, lambda x: x):
        solve(lambda t, y: -(y**3), y0, [0.0, 1.0], Scheme(solver, ConstantSteps(1.0), Direct()))
        inside, saved = saved, 0
        y = y0.detach()
        solution = solve(lambda t, y: -(y**3), y, [0.0, 1.0], Scheme(solver, ConstantSteps(1.0), Direct()))
    assert solution.stats.evaluations > 5  # Newton went on for a while
    assert inside - saved <= 3


def test_newton_that_does_not_converge_says_where_and_what_to_try() -> None:
    scheme = Scheme(ImplicitEuler(1e-10, 1e-12, max_iterations=2), ConstantSteps(1.0))
    with pytest.raises(SolverError, match=r"t=1: after 2 iterations the residual is .* Try a smaller step"):
        solve(lambda t, y: torch.exp(3.0 * y) - 5.0, torch.tensor([2.0]), [0.0, 2.0], scheme)


def test_newton_that_does_not_converge_makes_pid_take_shorter_steps() -> None:
    scheme = Scheme(ImplicitEuler(1e-10, 1e-12, max_iterations=3), PID(0.5, 0.5, first=2.0))
    y0 = torch.tensor([2.0], dtype=torch.float64)
    solution = solve(lambda t, y: -torch.exp(3.0 * y), y0, [0.0, 2.0], scheme)
    assert solution.stats.rejected >= 1
    assert float(solution.ys[-1]) < -0.4


def test_gradient_whose_system_is_not_solved_says_so() -> None:
    rotation = 1e3 * torch.eye(40, dtype=torch.float64).roll(1, 0)  # GMRES stalls until the last vector
    y0 = torch.eye(40, dtype=torch.float64)[0].clone().requires_grad_()
    scheme = Scheme(ImplicitEuler(1e-8, 1e6, restart=2), ConstantSteps(1.0))  # content with any state at all
    ys = solve(lambda t, y: rotation @ y, y0, [0.0, 1.0], scheme).ys
    with pytest.raises(SolverError, match=r"GMRES did not converge for the gradient .* t=1"):
        torch.autograd.backward(ys[-1, 0])


def test_implicit_solver_without_tolerances_is_refused() -> None:
    with pytest.raises(ValueError, match="not both zero"):
        ImplicitEuler(0.0, 0.0)
    with pytest.raises(ValueError, match="non-negative"):
        CrankNicolson(-1.0, 1e-3)
    with pytest.raises(ValueError, match="at least one"):
        CrankNicolson(1e-3, 1e-3, max_iterations=0)
