"""Gradients of projections, alpha, beta and z(0) by every adjoint, for current and for frozen diffusivities."""

from collections.abc import Callable

import pytest
import torch
from checks import by_parameters, kite, make, normal, ragged
from torch import Tensor
from torch.autograd import gradcheck

from beltrami.diffusivity import Additive
from beltrami.flow import BeltramiFlow, Costed, Flow, JacobianNorm, Kinetic, LinearFlow, Rate, Source
from beltrami.graph import Both, Columns, Edges, Normaliser, Rows, squareplus_link
from beltrami.scheme import PID, RK4, Adjoint, Checkpointed, ConstantSteps, Continuous, Direct, Dopri5, Scheme, solve

flows = pytest.mark.parametrize("flow", [BeltramiFlow, LinearFlow])
names = pytest.mark.parametrize("name", ["ScaledDot", "ExpKernel", "Additive"])
ADJOINTS: list[tuple[Adjoint, float]] = [(Checkpointed(), 1e-11), (Continuous(), 2e-8)]


def build(flow: Callable[..., Flow], name: str, normalise: Normaliser | None = None) -> Flow:
    diffusivity = make(name, normalise, heads=2)
    if isinstance(diffusivity, Additive) and flow is BeltramiFlow:
        diffusivity.slope = 1.0  # at the kink of the score, gradients are only accurate to dt
    return flow(diffusivity, rate=Rate(0.6).double(), source=Source(0.3).double())


def gradients(flow: Flow, edges: Edges, adjoint: Adjoint, *, costs: bool = False) -> dict[str, Tensor]:
    """Return the gradients of a loss at two times by z(0) and all parameters."""
    z0 = normal(edges.num_nodes, 5, seed=6).requires_grad_()  # no projection is near zero, where cosines vary fast
    f, scheme = flow.bind(z0, edges), Scheme(Dopri5(), PID(1e-9, 1e-9), adjoint)
    if costs:
        costed = Costed(f, [Kinetic(0.5), JacobianNorm(0.2)], z0, generator=torch.Generator().manual_seed(0))
        ys = solve(costed, costed.join(z0), (0.0, 0.2, 0.6), scheme, costed.tensors).ys
        (_, middle, end), cost = costed.split(ys)
        loss = middle.sin().sum() + end.square().sum() + cost[-1]
    else:
        _, middle, end = solve(f, z0, (0.0, 0.2, 0.6), scheme, f.tensors).ys
        loss = middle.sin().sum() + end.square().sum()
    wanted = {"z0": z0, **dict(flow.named_parameters())}
    return dict(zip(wanted, torch.autograd.grad(loss, list(wanted.values())), strict=True))


def assert_agree(found: dict[str, Tensor], wanted: dict[str, Tensor], tolerance: float) -> None:
    for name, exact in wanted.items():
        assert float(exact.abs().max()) > 1e-6, f"no gradient reaches {name}"
        error = float((found[name] - exact).abs().max())
        assert error < tolerance * max(1.0, float(exact.abs().max())), f"{name} is off by {error}"


@pytest.mark.slow
@flows
@names
def test_all_adjoints_agree(flow: Callable[..., Flow], name: str) -> None:
    built, edges = build(flow, name, Rows(squareplus_link)), kite()
    direct = gradients(built, edges, Direct())
    for adjoint, tolerance in ADJOINTS:
        assert_agree(gradients(built, edges, adjoint), direct, tolerance)


@pytest.mark.slow
@flows
@pytest.mark.parametrize("normalise", [Rows(squareplus_link), Columns(), Both(squareplus_link)], ids=repr)
def test_all_adjoints_agree_under_every_normaliser_with_nodes_without_edges(
    flow: Callable[..., Flow], normalise: Normaliser
) -> None:
    built, edges = build(flow, "ScaledDot", normalise), ragged(weighted=True)
    direct = gradients(built, edges, Direct())
    for adjoint, tolerance in ADJOINTS:
        assert_agree(gradients(built, edges, adjoint), direct, tolerance)


@pytest.mark.slow
@flows
def test_all_adjoints_agree_on_running_costs(flow: Callable[..., Flow]) -> None:
    built, edges = build(flow, "ScaledDot"), kite()
    direct = gradients(built, edges, Direct(), costs=True)
    for adjoint, tolerance in ADJOINTS:
        assert_agree(gradients(built, edges, adjoint, costs=True), direct, tolerance)


@pytest.mark.slow
@flows
@pytest.mark.parametrize("name", ["ScaledDot", "ExpKernel"])
def test_the_gradient_is_that_of_finite_differences(flow: Callable[..., Flow], name: str) -> None:
    built, edges, scheme = build(flow, name), kite(), Scheme(RK4(), ConstantSteps(0.5))

    def end(z0: Tensor) -> Tensor:
        f = built.bind(z0, edges)
        return solve(f, z0, (0.0, 1.0), scheme, f.tensors).ys[-1]

    function, parameters = by_parameters(built, end)
    assert gradcheck(function, (normal(4, 5).requires_grad_(), *parameters), fast_mode=True)


def test_the_gradient_by_z0_of_frozen_diffusivities_includes_their_dependence_on_z0() -> None:
    """z(T) = e^(T (A(z0) - I)) z0 depends on z0 twice."""
    edges, diffusivity = kite(), make("ScaledDot")
    z0 = normal(4, 5).requires_grad_()

    def exact(z0: Tensor) -> Tensor:
        a = torch.zeros(4, 4, dtype=torch.float64).index_put((edges.i, edges.j), diffusivity(z0, edges))
        power: Tensor = torch.linalg.matrix_exp(1.5 * (a - torch.eye(4, dtype=torch.float64)))
        return power @ z0

    (wanted,) = torch.autograd.grad(exact(z0).square().sum(), z0)
    for adjoint, tolerance in [(Direct(), 1e-7), *ADJOINTS]:
        f = LinearFlow(diffusivity).bind(z0, edges)
        scheme = Scheme(Dopri5(), PID(1e-9, 1e-9), adjoint)
        end = solve(f, z0, (0.0, 1.5), scheme, f.tensors).ys[-1]
        (found,) = torch.autograd.grad(end.square().sum(), z0)
        torch.testing.assert_close(found, wanted, atol=max(tolerance, 1e-7), rtol=0)


@flows
def test_tensors_are_all_that_the_field_depends_on(flow: Callable[..., Flow]) -> None:
    """The gradients through ``tensors`` are all gradients of f by z(0) and the parameters."""
    built, z0 = build(flow, "ScaledDot"), normal(4, 5).requires_grad_()
    f, z = built.bind(z0, kite()), normal(4, 5, seed=1)
    slopes = torch.autograd.grad(f(0.0, z).square().sum(), f.tensors, retain_graph=True)
    assert all(float(slope.abs().max()) > 0 for slope in slopes)
    leaves = [z0, *built.parameters()]
    whole = torch.autograd.grad(f(0.0, z).square().sum(), leaves, retain_graph=True)
    bound = [(t, s) for t, s in zip(f.tensors, slopes, strict=True) if t.grad_fn is not None]
    through = torch.autograd.grad([t for t, _ in bound], leaves, [s for _, s in bound], allow_unused=True)
    own = {id(t): s for t, s in zip(f.tensors, slopes, strict=True) if t.grad_fn is None}
    for leaf, total, part in zip(leaves, whole, through, strict=True):
        found = torch.zeros_like(leaf) if part is None else part
        torch.testing.assert_close(found + own.get(id(leaf), torch.zeros_like(leaf)), total)
