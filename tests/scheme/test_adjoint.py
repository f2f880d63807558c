"""The adjoints agree with one another and with finite differences."""

import pytest
import torch
from torch import Tensor

from beltrami.scheme import (
    PID,
    RK4,
    AdamsBashforth,
    AdamsMoulton,
    Adjoint,
    Bosh3,
    Checkpointed,
    ConstantSteps,
    Continuous,
    Controller,
    CrankNicolson,
    Direct,
    Dopri5,
    Euler,
    Heun,
    ImplicitEuler,
    Scheme,
    Solution,
    Solver,
    solve,
)

ADJOINTS = [Direct(), Checkpointed(), Checkpointed(every=3), Continuous()]
TS = [0.0, 0.35, 1.0]
PAIRS: list[tuple[Solver, Controller]] = [
    (Euler(), ConstantSteps(0.1)),
    (RK4(), ConstantSteps(0.1)),
    (Dopri5(), PID(1e-7, 1e-7)),
    (AdamsBashforth(order=4), ConstantSteps(0.1)),
    (AdamsMoulton(order=4), ConstantSteps(0.1)),
    (ImplicitEuler(1e-12, 1e-13), ConstantSteps(0.1)),
    (CrankNicolson(1e-12, 1e-13), PID(1e-3, 1e-3)),
]


def inputs() -> tuple[Tensor, Tensor, Tensor]:
    g = torch.Generator().manual_seed(0)
    y0, w, b = (torch.randn(s, generator=g, dtype=torch.float64) for s in ((4, 2), (4, 4), (2,)))
    return y0.requires_grad_(), w.requires_grad_(), b.requires_grad_()


def evolve(scheme: Scheme, y0: Tensor, w: Tensor, b: Tensor) -> Solution:
    """Diffusion with attention and a source: params are leaves, and tensors computed from leaves and each other."""
    z0 = 1.5 * y0
    a = torch.softmax(w, dim=1)  # not a leaf
    a = a * torch.sigmoid(z0 @ z0.T)  # computed from another of the params
    unused = w.sum()

    def field(t: float, y: Tensor) -> Tensor:
        return a @ torch.tanh(y) - y + b * (1.0 + t) ** -1 + 0.1 * z0

    return solve(field, z0, TS, scheme, (a, b, z0, unused))


def gradients(scheme: Scheme) -> tuple[Tensor, ...]:
    leaves = inputs()
    ys = evolve(scheme, *leaves).ys
    loss = ys[1].square().sum() + ys[2].sin().sum()
    return torch.autograd.grad(loss, leaves)


def distance(found: tuple[Tensor, ...], wanted: tuple[Tensor, ...]) -> float:
    return max(float((x - y).abs().max() / y.abs().max()) for x, y in zip(found, wanted, strict=True))


@pytest.fixture(scope="module")
def truth() -> tuple[Tensor, ...]:
    return gradients(Scheme(Dopri5(), PID(1e-12, 1e-12)))


@pytest.mark.slow
@pytest.mark.parametrize(("solver", "controller"), PAIRS, ids=repr)
def test_checkpointed_equals_direct_to_round_off(solver: Solver, controller: Controller) -> None:
    direct = gradients(Scheme(solver, controller))
    for every in (None, 3):
        assert distance(gradients(Scheme(solver, controller, Checkpointed(every))), direct) < 1e-12


@pytest.mark.parametrize(("solver", "controller"), PAIRS, ids=repr)
def test_all_adjoints_give_the_same_values(solver: Solver, controller: Controller) -> None:
    found = [evolve(Scheme(solver, controller, adjoint), *inputs()) for adjoint in ADJOINTS]
    for solution in found[1:]:
        assert torch.equal(solution.ys, found[0].ys)
        assert solution.stats.accepted == found[0].stats.accepted


@pytest.mark.slow
@pytest.mark.parametrize(
    ("solver", "controller", "tolerance"),
    [
        (Euler(), ConstantSteps(0.005), 2e-2),
        (Heun(), ConstantSteps(0.01), 1e-4),
        (RK4(), ConstantSteps(0.05), 2e-6),
        (Bosh3(), PID(1e-7, 1e-7), 3e-6),
        (Dopri5(), PID(1e-9, 1e-9), 2e-8),
        (AdamsBashforth(order=3), ConstantSteps(0.01), 1e-5),
        (AdamsMoulton(order=4), ConstantSteps(0.02), 2e-6),
        (ImplicitEuler(1e-10, 1e-10), ConstantSteps(0.02), 3e-2),
        (CrankNicolson(1e-10, 1e-10), ConstantSteps(0.05), 2e-3),
    ],
    ids=repr,
)
def test_direct_and_continuous_converge_to_the_gradient_of_the_flow(
    solver: Solver, controller: Controller, tolerance: float, truth: tuple[Tensor, ...]
) -> None:
    assert distance(gradients(Scheme(solver, controller)), truth) < tolerance
    assert distance(gradients(Scheme(solver, controller, Continuous())), truth) < tolerance


@pytest.mark.slow
@pytest.mark.parametrize("adjoint", [Direct(), Checkpointed(every=2)], ids=repr)
@pytest.mark.parametrize(
    "solver",
    [Heun(), Dopri5(), AdamsBashforth(order=3), ImplicitEuler(1e-13, 1e-14), CrankNicolson(1e-13, 1e-14)],
    ids=lambda s: type(s).__name__,
)
def test_gradient_passes_gradcheck(solver: Solver, adjoint: Adjoint) -> None:
    scheme = Scheme(solver, ConstantSteps(0.2), adjoint)
    assert torch.autograd.gradcheck(lambda *leaves: evolve(scheme, *leaves).ys, inputs(), fast_mode=True)


def test_continuous_passes_gradcheck_at_tight_tolerances() -> None:
    scheme = Scheme(Dopri5(), PID(1e-11, 1e-11), Continuous())
    assert torch.autograd.gradcheck(
        lambda *leaves: evolve(scheme, *leaves).ys, inputs(), fast_mode=True, atol=1e-5, rtol=1e-5
    )


def test_continuous_may_use_another_scheme_backwards(truth: tuple[Tensor, ...]) -> None:
    loose = Scheme(Dopri5(), PID(1e-9, 1e-9), Continuous(Scheme(RK4(), ConstantSteps(0.5))))
    tight = Scheme(Dopri5(), PID(1e-9, 1e-9), Continuous(Scheme(RK4(), ConstantSteps(0.02))))
    assert distance(gradients(tight), truth) < 1e-6 < distance(gradients(loose), truth)


@pytest.mark.parametrize("loss_scale", [1e-12, 1e12])
def test_accuracy_of_continuous_does_not_depend_on_the_size_of_the_loss(loss_scale: float) -> None:
    found = []
    for scale in (1.0, loss_scale):
        y0, w, b = inputs()
        ys = evolve(Scheme(Dopri5(), PID(1e-6, 1e-6), Continuous()), y0, w, b).ys
        found.append([g / scale for g in torch.autograd.grad(scale * ys[-1].square().sum(), (y0, w, b))])
    for plain, scaled in zip(*found, strict=True):
        torch.testing.assert_close(scaled, plain, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("adjoint", ADJOINTS, ids=repr)
def test_params_that_need_no_gradient_get_none(adjoint: Adjoint) -> None:
    y0, w, b = inputs()
    scheme = Scheme(RK4(), ConstantSteps(0.1), adjoint)
    (alone,) = torch.autograd.grad(evolve(scheme, y0.detach(), w.detach(), b).ys[-1].sum(), b)
    (among,) = torch.autograd.grad(evolve(scheme, y0, w, b).ys[-1].sum(), b)
    torch.testing.assert_close(alone, among, rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("adjoint", ADJOINTS, ids=repr)
def test_the_gradient_of_a_constant_field_is_the_identity(adjoint: Adjoint) -> None:
    y0, p = torch.ones(3, dtype=torch.float64, requires_grad=True), torch.ones(2, requires_grad=True)
    scheme = Scheme(Dopri5(), PID(1e-6, 1e-6), adjoint)
    solution = solve(lambda t, y: torch.ones(3, dtype=torch.float64), y0, [0.0, 2.0], scheme, (p,))
    grad_y0, grad_p = torch.autograd.grad(solution.ys[-1].sum(), (y0, p), allow_unused=True)
    assert torch.allclose(grad_y0, torch.ones(3, dtype=torch.float64))
    assert grad_p is None or torch.equal(grad_p, torch.zeros(2))


@pytest.mark.parametrize("adjoint", ADJOINTS, ids=repr)
def test_no_graph_is_kept_if_no_gradient_is_needed(adjoint: Adjoint) -> None:
    with torch.no_grad():
        solution = evolve(Scheme(Dopri5(), PID(1e-6, 1e-6), adjoint), *inputs())
    assert not solution.ys.requires_grad
    solution = evolve(Scheme(Dopri5(), PID(1e-6, 1e-6), adjoint), *(x.detach() for x in inputs()))
    assert not solution.ys.requires_grad


@pytest.mark.parametrize(
    ("solver", "adjoint", "what"),
    [
        (RK4(), Checkpointed(), r"Checkpointed\(\)"),
        (RK4(), Continuous(), r"Continuous\(\)"),
        (ImplicitEuler(1e-6, 1e-6), Direct(), "an implicit step"),
    ],
    ids=repr,
)
def test_second_derivatives_are_refused_by_adjoints_without_them(solver: Solver, adjoint: Adjoint, what: str) -> None:
    y0 = torch.ones(2, requires_grad=True)
    ys = solve(lambda t, y: -(y**2), y0, [0.0, 1.0], Scheme(solver, ConstantSteps(0.5), adjoint)).ys
    with pytest.raises(RuntimeError, match=f"{what} has no second derivative"):
        torch.autograd.grad(ys[-1].sum(), y0, create_graph=True)


def test_direct_has_second_derivatives() -> None:
    y0 = torch.ones(2, dtype=torch.float64, requires_grad=True)
    scheme = Scheme(RK4(), ConstantSteps(0.25))
    assert torch.autograd.gradgradcheck(lambda y: solve(lambda t, y: -(y**2), y, [0.0, 1.0], scheme).ys[-1], (y0,))


def test_checkpoints_need_at_least_one_step_between_them() -> None:
    with pytest.raises(ValueError, match="`every` of at least one step"):
        Checkpointed(every=0)
