"""GMRES agrees with direct elimination, and Jacobian products with the Jacobian."""

import pytest
import torch
from torch import Tensor

from beltrami.scheme.implicit import krylov
from beltrami.scheme.implicit.krylov import Linearisation, gmres


def nonsymmetric(n: int, *, seed: int = 0) -> tuple[Tensor, Tensor]:
    g = torch.Generator().manual_seed(seed)
    noise, b = (torch.randn(shape, generator=g, dtype=torch.float64) for shape in ((n, n), (n,)))
    return 2.0 * torch.eye(n, dtype=torch.float64) + noise / n**0.5, b


@pytest.mark.parametrize("n", [1, 7, 40])
@pytest.mark.parametrize("restart", [5, 50])
def test_gmres_solves_nonsymmetric_systems(n: int, restart: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(krylov, "RESTART", restart)
    monkeypatch.setattr(krylov, "CYCLES", 50)
    a, b = nonsymmetric(n)
    solved = gmres(lambda v: a @ v, b, rtol=1e-12)
    assert solved.converged
    torch.testing.assert_close(solved.x, torch.linalg.solve(a, b), rtol=1e-9, atol=1e-9)


def test_gmres_meets_its_tolerance_and_reports_the_residual() -> None:
    a, b = nonsymmetric(30)
    solved = gmres(lambda v: a @ v, b, rtol=1e-3)
    residual = float((b - a @ solved.x).norm())
    assert residual == pytest.approx(solved.residual, rel=1e-6)
    assert 1e-8 * float(b.norm()) < residual <= 1e-3 * float(b.norm())


def test_gmres_needs_as_many_vectors_as_there_are_eigenvalues() -> None:
    products = 0
    b = torch.arange(1.0, 13.0, dtype=torch.float64)

    def matvec(v: Tensor) -> Tensor:
        nonlocal products
        products += 1
        return v * torch.tensor([1.0, 2.0, 3.0], dtype=torch.float64).repeat(4)

    assert gmres(matvec, b, rtol=1e-12).converged
    assert products == 3 + 1  # and one for the residual


def test_gmres_keeps_the_shape_of_the_right_hand_side() -> None:
    b = torch.randn(3, 4, 2, dtype=torch.float64, generator=torch.Generator().manual_seed(1))
    solved = gmres(lambda v: 3.0 * v - v.roll(1, 0), b, rtol=1e-12)
    torch.testing.assert_close(3.0 * solved.x - solved.x.roll(1, 0), b)


def test_gmres_of_zero_is_zero() -> None:
    assert torch.equal(gmres(lambda v: 2.0 * v, torch.zeros(3), rtol=1e-6).x, torch.zeros(3))


def test_gmres_reports_that_a_singular_system_has_no_solution() -> None:
    a = torch.tensor([[1.0, 0.0], [0.0, 0.0]])
    solved = gmres(lambda v: a @ v, torch.ones(2), rtol=1e-6)
    assert not solved.converged
    assert solved.residual == pytest.approx(1.0, rel=1e-5)


class Square(torch.autograd.Function):
    """An autograd function without a forward mode."""

    @staticmethod
    def forward(ctx: torch.autograd.function.FunctionCtx, x: Tensor) -> Tensor:
        ctx.save_for_backward(x)
        return x**2

    @staticmethod
    def backward(ctx: torch.autograd.function.FunctionCtx, g: Tensor) -> Tensor:
        x: Tensor = ctx.saved_tensors[0]  # type: ignore[attr-defined]
        return 2.0 * x * g


@pytest.mark.parametrize("grad", [True, False])
def test_linearisation_multiplies_by_the_jacobian_and_its_transpose(grad: bool) -> None:
    a, v = nonsymmetric(5, seed=2)
    y = torch.linspace(-1.0, 1.0, 5, dtype=torch.float64)
    jacobian = a @ torch.diag(2.0 * y)
    with torch.set_grad_enabled(grad):
        local = Linearisation(lambda t, y: a @ Square.apply(y), 0.0, y)  # type: ignore[no-untyped-call]
        torch.testing.assert_close(local.value, a @ y**2)
        for _ in range(2):
            torch.testing.assert_close(local.jvp(v), jacobian @ v)
            torch.testing.assert_close(local.vjp(v), jacobian.T @ v)


def test_linearisation_is_zero_for_a_field_independent_of_the_state() -> None:
    y = torch.ones(3)
    for f in (lambda t, y: torch.ones(3), lambda t, y: torch.ones(3, requires_grad=True) * 2.0):
        local = Linearisation(f, 0.0, y)
        assert torch.equal(local.jvp(y), torch.zeros(3))
        assert torch.equal(local.vjp(y), torch.zeros(3))
