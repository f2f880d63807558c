"""Memory and evaluations of the adjoints, and their accuracy over long times."""

import math

import pytest
import torch
from torch import Tensor

from beltrami.scheme import (
    PID,
    RK4,
    Adjoint,
    Bosh3,
    Checkpointed,
    ConstantSteps,
    Continuous,
    Direct,
    Dopri5,
    Euler,
    Scheme,
    Solver,
    solve,
)

ADJOINTS = [Direct(), Checkpointed(), Checkpointed(every=3), Continuous()]


def distance(found: tuple[Tensor, ...], wanted: tuple[Tensor, ...]) -> float:
    return max(float((x - y).abs().max() / y.abs().max()) for x, y in zip(found, wanted, strict=True))


def diffusion(n: int) -> tuple[Tensor, Tensor]:
    """Return the random walk on a ring and a random state: y' = (A - I) y decays by up to exp(-2 t)."""
    eye = torch.eye(n, dtype=torch.float64)
    state = torch.randn(n, 2, dtype=torch.float64, generator=torch.Generator().manual_seed(3))
    return 0.5 * (eye.roll(1, 0) + eye.roll(-1, 0)), state


@pytest.mark.slow
@pytest.mark.parametrize("solver", [Dopri5(), Bosh3()], ids=repr)
def test_continuous_stays_accurate_where_diffusion_cannot_be_undone(solver: Solver) -> None:
    a, state = diffusion(12)
    a.requires_grad_()
    state.requires_grad_()

    def field(t: float, y: Tensor) -> Tensor:
        return a @ y - y + 0.05 * torch.sin(3.0 * y)

    found = []
    for scheme in (
        Scheme(Dopri5(), PID(1e-10, 1e-10)),
        Scheme(solver, PID(1e-6, 1e-6), Continuous()),
    ):
        ys = solve(field, state, [0.0, 18.0], scheme, (a,)).ys
        found.append(torch.autograd.grad((ys[-1] ** 3).sum(), (state, a)))
    assert distance(found[1], found[0]) < 1e-4
    # Integrated backwards, the state is lost: round-off is amplified by up to exp(2 * 18) = 4e15.
    with torch.no_grad():
        end = solve(field, state, [0.0, 18.0], Scheme(solver, PID(1e-6, 1e-6))).ys[-1]
        back = solve(lambda s, y: -field(-s, y), end, [-18.0, 0.0], Scheme(solver, PID(1e-6, 1e-6))).ys[-1]
        assert float((back - state).abs().max()) > 1.0


def saved_bytes(scheme: Scheme) -> int:
    total = 0

    def count(x: Tensor) -> Tensor:
        nonlocal total
        total += x.numel() * x.element_size()
        return x

    a, state = diffusion(16)
    a.requires_grad_()
    with torch.autograd.graph.saved_tensors_hooks(count, lambda x: x):
        solve(lambda t, y: torch.tanh(torch.tanh(a @ y)) - y, state, [0.0, 10.0], scheme, (a,))
    return total


def test_checkpointed_and_continuous_save_a_fraction_of_the_graph() -> None:
    scheme = [Scheme(RK4(), ConstantSteps(0.1), adjoint) for adjoint in ADJOINTS]
    direct, root, third, continuous = (saved_bytes(s) for s in scheme)
    state = 16 * 2 * 8
    matrix = 16 * 16 * 8
    assert root <= matrix + 20 * state  # sqrt(2 * 100) checkpoints, at most a few more
    assert third <= matrix + 34 * state
    assert continuous <= matrix + 101 * state
    assert direct > 10 * max(root, third, continuous)


@pytest.mark.parametrize("adjoint", [Checkpointed(every=5), Continuous()], ids=repr)
def test_the_backward_pass_holds_the_graph_of_a_few_steps_only(adjoint: Adjoint) -> None:
    alive: set[int] = set()
    most = 0

    class Watched(torch.autograd.Function):
        @staticmethod
        def forward(ctx: torch.autograd.function.FunctionCtx, y: Tensor) -> Tensor:
            nonlocal most
            alive.add(id(ctx))
            most = max(most, len(alive))
            return -y

        @staticmethod
        def backward(ctx: torch.autograd.function.FunctionCtx, g: Tensor) -> Tensor:
            alive.discard(id(ctx))
            return -g

    y0 = torch.ones(3, dtype=torch.float64, requires_grad=True)
    scheme = Scheme(Euler(), ConstantSteps(0.01), adjoint)
    ys = solve(lambda t, y: Watched.apply(y), y0, [0.0, 1.0], scheme).ys  # type: ignore[no-untyped-call]
    alive.clear()
    most = 0
    torch.autograd.backward(ys[-1].sum())
    assert 1 <= most <= 6


def test_backward_evaluations_are_counted() -> None:
    y0 = torch.ones(2, requires_grad=True)
    for adjoint, wanted in [(Direct(), 0), (Checkpointed(), 4 * 10 + 1), (Continuous(), 4 * 10 + 11 + 1)]:
        solution = solve(lambda t, y: -(y**2), y0, [0.0, 0.55, 1.0], Scheme(RK4(), ConstantSteps(0.1), adjoint))
        assert solution.stats.evaluations == 4 * 10 + 1  # one slope for the time within a step
        assert solution.stats.backward_evaluations == 0
        torch.autograd.backward(solution.ys[-1].sum())
        assert solution.stats.backward_evaluations >= wanted
        assert solution.stats.backward_evaluations <= wanted + 5


def test_integrals_do_not_influence_the_steps_of_continuous() -> None:
    found = []
    for size in (1e-6, 1e6):
        y0, p = (
            torch.ones(3, dtype=torch.float64, requires_grad=True),
            torch.zeros((), dtype=torch.float64).requires_grad_(),
        )
        scheme = Scheme(Dopri5(), PID(1e-6, 1e-6), Continuous())
        solution = solve(lambda t, y, p=p, size=size: size * p - y, y0, [0.0, 4.0], scheme, (p,))  # type: ignore[misc]
        torch.autograd.backward(solution.ys[-1].sum())
        assert p.grad is not None
        assert float(p.grad) == pytest.approx(3.0 * size * (1.0 - math.exp(-4.0)), rel=1e-4)
        found.append(solution.stats.backward_evaluations)
    assert found[0] == found[1]
