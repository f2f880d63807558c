"""Implicit solvers agree with linear algebra and scipy on stiff problems, and so do their gradients."""

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
    SymmetricEuler,
    solve,
)
from beltrami.scheme.implicit import krylov, theta

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


@pytest.mark.slow
def test_van_der_pol_agrees_with_scipy() -> None:
    scheme = Scheme(CrankNicolson(1e-9, 1e-11), PID(1e-4, 1e-6))
    with torch.no_grad():
        solution = solve(van_der_pol, torch.tensor([2.0, 0.0], dtype=torch.float64), [0.0, 30.0], scheme)
    truth = reference(van_der_pol, [2.0, 0.0], 30.0)
    torch.testing.assert_close(solution.ys[-1], truth, rtol=2e-3, atol=1e-4)
    assert (
        solution.stats.accepted < 30.0 * 50.0 / 3.0
    )  # stability would keep the steps of an explicit method below 2/mu


@pytest.mark.slow
def test_robertson_agrees_with_scipy() -> None:
    scheme = Scheme(ImplicitEuler(1e-9, 1e-13), PID(1e-3, 1e-8))
    with torch.no_grad():
        solution = solve(robertson, torch.tensor([1.0, 0.0, 0.0], dtype=torch.float64), [0.0, 40.0], scheme)
    torch.testing.assert_close(solution.ys[-1], reference(robertson, [1.0, 0.0, 0.0], 40.0), rtol=2e-2, atol=1e-7)
    assert float(solution.ys[-1].sum()) == pytest.approx(1.0, abs=1e-6)  # mass is conserved
    assert solution.stats.accepted < 1000


@pytest.mark.parametrize("adjoint", [Direct(), Checkpointed(), Continuous()], ids=repr)
def test_gradients_of_a_stiff_problem_survive_steps_a_thousand_times_its_time_scale(adjoint: Adjoint) -> None:
    """The state tends to the slow manifold y = tanh(p), which y(4) has reached."""
    rates = torch.tensor([5.0, 1e2, 1e4], dtype=torch.float64)
    p = torch.tensor([0.3, -0.5, 0.8], dtype=torch.float64, requires_grad=True)

    def relax(t: float, y: Tensor) -> Tensor:
        return rates * (torch.tanh(p) - y - 0.1 * (y - torch.tanh(p)) ** 3)

    scheme = Scheme(ImplicitEuler(1e-10, 1e-12), ConstantSteps(0.1), adjoint)
    ys = solve(relax, torch.zeros(3, dtype=torch.float64), [0.0, 4.0], scheme, (p,)).ys
    (gradient,) = torch.autograd.grad(ys[-1].sum(), p)
    torch.testing.assert_close(gradient, 1.0 - torch.tanh(p.detach()) ** 2, rtol=1e-3, atol=1e-3)


@pytest.mark.parametrize("solver", SOLVERS, ids=["ImplicitEuler", "CrankNicolson"])
def test_newton_iterations_leave_no_graph(solver: Solver) -> None:
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
    assert solution.stats.evaluations > 5  # several iterations
    assert inside - saved <= 3


def test_newton_that_does_not_converge_raises_with_time_and_advice(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(theta, "NEWTON_ITERATIONS", 2)
    scheme = Scheme(ImplicitEuler(1e-10, 1e-12), ConstantSteps(1.0))
    with pytest.raises(SolverError, match=r"t=1: after 2 iterations the residual is .* Try a smaller step"):
        solve(lambda t, y: torch.exp(3.0 * y) - 5.0, torch.tensor([2.0]), [0.0, 2.0], scheme)


def test_newton_that_does_not_converge_makes_pid_take_shorter_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(theta, "NEWTON_ITERATIONS", 3)
    scheme = Scheme(ImplicitEuler(1e-10, 1e-12), PID(0.5, 0.5, first=2.0))
    y0 = torch.tensor([2.0], dtype=torch.float64)
    solution = solve(lambda t, y: -torch.exp(3.0 * y), y0, [0.0, 2.0], scheme)
    assert solution.stats.rejected >= 1
    assert float(solution.ys[-1]) < -0.4


def test_gmres_that_does_not_converge_for_the_gradient_raises(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(krylov, "RESTART", 2)
    rotation = 1e3 * torch.eye(40, dtype=torch.float64).roll(1, 0)  # GMRES stalls until the last vector
    y0 = torch.eye(40, dtype=torch.float64)[0].clone().requires_grad_()
    scheme = Scheme(ImplicitEuler(1e-8, 1e6), ConstantSteps(1.0))  # accepts any state
    ys = solve(lambda t, y: rotation @ y, y0, [0.0, 1.0], scheme).ys
    with pytest.raises(SolverError, match=r"GMRES did not converge for the gradient .* t=1"):
        torch.autograd.backward(ys[-1, 0])


def test_meaningless_settings_of_implicit_solvers_are_refused() -> None:
    with pytest.raises(ValueError, match="not both zero"):
        ImplicitEuler(0.0, 0.0)
    with pytest.raises(ValueError, match="non-negative"):
        CrankNicolson(-1.0, 1e-3)


def symmetric_problem() -> tuple[Tensor, Tensor, Tensor]:
    """Return L = M^-1 W with W the Laplacian of a random weighted graph of 12 nodes, random masses M, and y0."""
    generator = torch.Generator().manual_seed(0)
    w = torch.rand(12, 12, dtype=torch.float64, generator=generator)
    w = w + w.T
    w.fill_diagonal_(0.0)
    mass = 0.5 + torch.rand(12, 1, dtype=torch.float64, generator=generator)
    y0 = torch.randn(12, 2, dtype=torch.float64, generator=generator)
    return (w - torch.diag(w.sum(1))) / mass, mass, y0


def test_a_symmetric_step_is_the_resolvent() -> None:
    operator, mass, y0 = symmetric_problem()
    scheme = Scheme(SymmetricEuler(mass, 1e-12), ConstantSteps(0.7))
    found = solve(lambda t, y: operator @ y, y0, [0.0, 0.7], scheme).ys[-1]
    expected = torch.linalg.solve(torch.eye(12, dtype=torch.float64) - 0.7 * operator, y0)
    torch.testing.assert_close(found, expected, rtol=1e-10, atol=1e-12)


def test_symmetric_steps_equal_those_of_implicit_euler() -> None:
    operator, mass, y0 = symmetric_problem()
    ours, general = (
        solve(lambda t, y: operator @ y, y0, [0.0, 1.0], Scheme(solver, ConstantSteps(0.25)))
        for solver in (SymmetricEuler(mass, 1e-13), ImplicitEuler(1e-12, 1e-13))
    )
    torch.testing.assert_close(ours.ys, general.ys, rtol=1e-9, atol=1e-10)
    assert ours.stats.accepted == 4


def test_error_of_symmetric_euler_falls_at_first_order() -> None:
    operator, mass, y0 = symmetric_problem()
    exact = torch.linalg.matrix_exp(0.1 * operator) @ y0
    errors = []
    for steps in (20, 40, 80):
        scheme = Scheme(SymmetricEuler(mass, 1e-13), ConstantSteps(0.1 / steps))
        errors.append(float((solve(lambda t, y: operator @ y, y0, [0.0, 0.1], scheme).ys[-1] - exact).norm()))
    assert errors[0] / errors[1] == pytest.approx(2.0, abs=0.15)
    assert errors[1] / errors[2] == pytest.approx(2.0, abs=0.1)


def test_conjugate_gradients_need_no_iteration_for_a_state_at_rest() -> None:
    operator, mass, _ = symmetric_problem()
    y0 = torch.ones(12, 1, dtype=torch.float64)
    found = solve(lambda t, y: operator @ y, y0, [0.0, 5.0], Scheme(SymmetricEuler(mass, 1e-9), ConstantSteps(5.0)))
    assert torch.equal(found.ys[-1], y0)
    assert found.stats.evaluations == 1


def test_conjugate_gradients_that_do_not_converge_raise(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(theta, "CONJUGATE_GRADIENTS", 2)
    operator, mass, y0 = symmetric_problem()
    scheme = Scheme(SymmetricEuler(mass, 1e-12), ConstantSteps(1.0))
    with pytest.raises(SolverError, match=r"did not converge for the step to t=1: after 2 iterations the residual"):
        solve(lambda t, y: operator @ y, y0, [0.0, 1.0], scheme)


def test_symmetric_euler_refuses_gradients() -> None:
    operator, mass, y0 = symmetric_problem()
    scheme = Scheme(SymmetricEuler(mass, 1e-6), ConstantSteps(1.0))
    with pytest.raises(RuntimeError, match="no derivative: use ImplicitEuler"):
        solve(lambda t, y: operator @ y, y0.requires_grad_(), [0.0, 1.0], scheme)


def test_symmetric_euler_needs_a_positive_tolerance() -> None:
    with pytest.raises(ValueError, match="positive `rtol`"):
        SymmetricEuler(torch.ones(1), 0.0)
