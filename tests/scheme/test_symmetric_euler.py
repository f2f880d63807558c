"""Implicit Euler by conjugate gradients, against dense linear algebra."""

import pytest
import torch
from torch import Tensor

from beltrami.errors import SolverError
from beltrami.scheme import ConstantSteps, ImplicitEuler, Scheme, SymmetricEuler, solve


def problem() -> tuple[Tensor, Tensor, Tensor]:
    """L = M^-1 W with W the Laplacian of a random weighted graph of 12 nodes and random masses; L, mass, y0."""
    generator = torch.Generator().manual_seed(0)
    w = torch.rand(12, 12, dtype=torch.float64, generator=generator)
    w = w + w.T
    w.fill_diagonal_(0.0)
    mass = 0.5 + torch.rand(12, 1, dtype=torch.float64, generator=generator)
    y0 = torch.randn(12, 2, dtype=torch.float64, generator=generator)
    return (w - torch.diag(w.sum(1))) / mass, mass, y0


def test_step_solves_the_linear_system() -> None:
    operator, mass, y0 = problem()
    scheme = Scheme(SymmetricEuler(mass, 1e-12), ConstantSteps(0.7))
    found = solve(lambda t, y: operator @ y, y0, [0.0, 0.7], scheme).ys[-1]
    expected = torch.linalg.solve(torch.eye(12, dtype=torch.float64) - 0.7 * operator, y0)
    torch.testing.assert_close(found, expected, rtol=1e-10, atol=1e-12)


def test_steps_are_those_of_implicit_euler() -> None:
    operator, mass, y0 = problem()
    ours, general = (
        solve(lambda t, y: operator @ y, y0, [0.0, 1.0], Scheme(solver, ConstantSteps(0.25)))
        for solver in (SymmetricEuler(mass, 1e-13), ImplicitEuler(1e-12, 1e-13))
    )
    torch.testing.assert_close(ours.ys, general.ys, rtol=1e-9, atol=1e-10)
    assert ours.stats.accepted == 4


def test_error_falls_at_first_order() -> None:
    operator, mass, y0 = problem()
    exact = torch.linalg.matrix_exp(0.1 * operator) @ y0
    errors = []
    for steps in (20, 40, 80):
        scheme = Scheme(SymmetricEuler(mass, 1e-13), ConstantSteps(0.1 / steps))
        errors.append(float((solve(lambda t, y: operator @ y, y0, [0.0, 0.1], scheme).ys[-1] - exact).norm()))
    assert errors[0] / errors[1] == pytest.approx(2.0, abs=0.15)
    assert errors[1] / errors[2] == pytest.approx(2.0, abs=0.1)


def test_a_state_at_rest_needs_no_iteration() -> None:
    operator, mass, _ = problem()
    y0 = torch.ones(12, 1, dtype=torch.float64)
    found = solve(lambda t, y: operator @ y, y0, [0.0, 5.0], Scheme(SymmetricEuler(mass, 1e-9), ConstantSteps(5.0)))
    assert torch.equal(found.ys[-1], y0)
    assert found.stats.evaluations == 1


def test_what_does_not_converge_is_an_error() -> None:
    operator, mass, y0 = problem()
    scheme = Scheme(SymmetricEuler(mass, 1e-12, max_iterations=2), ConstantSteps(1.0))
    with pytest.raises(SolverError, match=r"did not converge for the step to t=1: after 2 iterations the residual"):
        solve(lambda t, y: operator @ y, y0, [0.0, 1.0], scheme)


def test_gradients_are_refused() -> None:
    operator, mass, y0 = problem()
    scheme = Scheme(SymmetricEuler(mass, 1e-6), ConstantSteps(1.0))
    with pytest.raises(RuntimeError, match="no derivative: use ImplicitEuler"):
        solve(lambda t, y: operator @ y, y0.requires_grad_(), [0.0, 1.0], scheme)


def test_tolerances_that_make_no_sense_are_refused() -> None:
    with pytest.raises(ValueError, match="positive `rtol`"):
        SymmetricEuler(torch.ones(1), 0.0)
