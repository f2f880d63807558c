"""Running costs against quadrature, closed forms and dense Jacobians."""

import math
from collections.abc import Callable

import numpy as np
import pytest
import torch
from checks import by_parameters, kite, make, normal, ragged
from torch import Tensor
from torch.autograd import gradcheck

from beltrami.diffusivity import RandomWalk
from beltrami.flow import BeltramiFlow, Cost, Costed, Flow, JacobianNorm, Kinetic, LinearFlow
from beltrami.graph import Both, Edges
from beltrami.scheme import PID, RK4, ConstantSteps, Dopri5, Scheme, solve

TIGHT = Scheme(Dopri5(), PID(1e-10, 1e-10))
T = 0.8
flows = pytest.mark.parametrize("flow", [BeltramiFlow, LinearFlow])


def jacobian(flow: Flow, z0: Tensor, edges: Edges, z: Tensor) -> Tensor:
    """Return df/dz at z, (n d, n d)."""
    f = flow.bind(z0, edges)
    dense: Tensor = torch.autograd.functional.jacobian(lambda z: f(0.0, z), z)
    return dense.reshape(z.numel(), z.numel())


def running(flow: Flow, z0: Tensor, edges: Edges, costs: list[Cost], seed: int = 0) -> tuple[Tensor, Tensor]:
    """Return z(T) and the cost."""
    costed = Costed(flow.bind(z0, edges), costs, z0, generator=torch.Generator().manual_seed(seed))
    return costed.split(solve(costed, costed.join(z0), (0.0, T), TIGHT, costed.tensors).ys[-1])


def noise(like: Tensor, seed: int = 0) -> Tensor:
    return torch.randn(like.shape, generator=torch.Generator().manual_seed(seed), dtype=like.dtype)


def test_kinetic_energy_of_a_linear_flow_is_its_closed_form() -> None:
    """Modes of the symmetric M decay as e^(lambda t): the integral of (lambda c e^(lambda t))^2 is elementary."""
    edges, z0, flow = kite(), normal(4, 3), LinearFlow(RandomWalk(Both()))
    f = flow.bind(z0, edges)
    values, vectors = torch.linalg.eigh(f.operator(torch.eye(4, dtype=torch.float64)))
    squares = (vectors.T @ z0).square().sum(1)
    exact = float((squares * values * torch.expm1(2 * T * values) / 2).sum()) / (4 * 3)
    _, cost = running(flow, z0, edges, [Kinetic(0.7)])
    assert float(cost.detach()) == pytest.approx(0.7 * exact, rel=1e-9)


@pytest.mark.slow
@flows
def test_kinetic_energy_is_the_quadrature_of_the_squared_speed(flow: Callable[..., Flow]) -> None:
    edges, z0, built = ragged(), normal(6, 5), flow(make("ScaledDot"))
    points, weights = np.polynomial.legendre.leggauss(12)
    times = (0.5 * T * (points + 1)).tolist()
    f = built.bind(z0, edges)
    with torch.no_grad():
        path = solve(f, z0, (0.0, *times, T), TIGHT).ys[1:-1]
        speeds = [float(f(t, z).square().sum()) / z0.numel() for t, z in zip(times, path, strict=True)]
    exact = 0.5 * T * sum(w * s for w, s in zip(weights.tolist(), speeds, strict=True))
    _, cost = running(built, z0, edges, [Kinetic(1.0)])
    assert float(cost.detach()) == pytest.approx(exact, rel=1e-8)


@pytest.mark.slow
@flows
def test_costs_do_not_change_the_state(flow: Callable[..., Flow]) -> None:
    edges, z0, built = kite(), normal(4, 5), flow(make("ScaledDot"))
    z, _ = running(built, z0, edges, [Kinetic(1.0), JacobianNorm(1.0)])
    alone = solve(built.bind(z0, edges), z0, (0.0, T), TIGHT).ys[-1]
    torch.testing.assert_close(z, alone, atol=1e-9, rtol=0)


@flows
def test_the_jacobian_density_is_that_of_the_random_direction(flow: Callable[..., Flow]) -> None:
    """|eps^T J|^2 / d at each node, for the sampled eps."""
    edges, z0, z, built = kite(), normal(4, 5), normal(4, 5, seed=1), flow(make("ScaledDot"))
    costed = Costed(built.bind(z0, edges), [JacobianNorm(1.0)], z0, generator=torch.Generator().manual_seed(3))
    row = (noise(z0, 3).flatten() @ jacobian(built, z0, edges, z)).reshape(4, 5)
    out = costed(0.0, torch.cat((z, torch.zeros(4, 1, dtype=torch.float64)), dim=1))
    torch.testing.assert_close(out[:, 5], row.square().mean(1))
    torch.testing.assert_close(out[:, :5], built.bind(z0, edges)(0.0, z))


@pytest.mark.slow
@flows
def test_its_mean_over_noise_is_the_frobenius_norm(flow: Callable[..., Flow]) -> None:
    edges, z, built = kite(), normal(4, 5), flow(make("ScaledDot"))
    exact = float(jacobian(built, z, edges, z).square().sum()) / 5
    cost, f, generator = JacobianNorm(1.0), built.bind(z, edges), torch.Generator().manual_seed(0)
    z = z.clone().requires_grad_()
    dz = f(0.0, z)
    draws = torch.stack([cost.density(z, dz, cost.sample(z, generator)).sum().detach() for _ in range(500)])
    standard_error = float(draws.std()) / math.sqrt(len(draws))
    assert standard_error < 0.05 * exact
    assert float(draws.mean()) == pytest.approx(exact, abs=4 * standard_error)


def test_the_jacobian_norm_of_a_linear_flow_is_constant_in_time() -> None:
    edges, z0, flow = kite(), normal(4, 3), LinearFlow(RandomWalk())
    row = noise(z0).flatten() @ jacobian(flow, z0, edges, z0)
    _, cost = running(flow, z0, edges, [JacobianNorm(0.3)])
    assert float(cost.detach()) == pytest.approx(0.3 * T * float(row.square().sum()) / z0.numel(), rel=1e-10)


@pytest.mark.slow
def test_costs_are_added_with_their_weights() -> None:
    edges, z0, flow = kite(), normal(4, 5), BeltramiFlow(make("ScaledDot"))
    _, both = running(flow, z0, edges, [Kinetic(0.5), JacobianNorm(2.0)])
    _, kinetic = running(flow, z0, edges, [Kinetic(1.0)])
    _, norm = running(flow, z0, edges, [JacobianNorm(1.0)])
    assert float(both.detach()) == pytest.approx(float(0.5 * kinetic.detach() + 2 * norm.detach()), rel=1e-7)
    assert min(float(kinetic.detach()), float(norm.detach())) > 1e-3


def test_the_kinetic_cost_of_a_stationary_state_is_zero() -> None:
    z0 = torch.ones(4, 5, dtype=torch.float64)
    _, cost = running(BeltramiFlow(make("ScaledDot")), z0, kite(), [Kinetic(1.0)])
    assert float(cost.detach()) == pytest.approx(0.0, abs=1e-20)


@pytest.mark.slow
@flows
@pytest.mark.parametrize("cost", [Kinetic(0.5), JacobianNorm(0.5)], ids=["kinetic", "jacobian"])
def test_gradients_of_costs_are_those_of_finite_differences(flow: Callable[..., Flow], cost: Cost) -> None:
    edges, built, scheme = kite(), flow(make("ScaledDot")), Scheme(RK4(), ConstantSteps(0.5))

    def total(z0: Tensor) -> Tensor:
        costed = Costed(built.bind(z0, edges), [cost], z0, generator=torch.Generator().manual_seed(0))
        return costed.split(solve(costed, costed.join(z0), (0.0, 1.0), scheme, costed.tensors).ys[-1])[1]

    function, parameters = by_parameters(built, total)
    assert gradcheck(function, (normal(4, 5).requires_grad_(), *parameters), fast_mode=True)


@flows
def test_values_are_the_same_with_and_without_recording(flow: Callable[..., Flow]) -> None:
    edges, z0, built = kite(), normal(4, 5), flow(make("ScaledDot"))
    costed = Costed(built.bind(z0, edges), [Kinetic(1.0), JacobianNorm(1.0)], z0)
    state = costed.join(z0)
    recorded = costed(0.0, state)
    with torch.no_grad():
        unrecorded = costed(0.0, state)
    assert torch.equal(recorded, unrecorded)
    assert recorded.requires_grad
    assert not unrecorded.requires_grad


def test_the_state_is_joined_with_zeros_and_split_again() -> None:
    z0 = normal(4, 5)
    costed = Costed(LinearFlow(RandomWalk()).bind(z0, kite()), [Kinetic(2.0), Kinetic(3.0)], z0)
    state = costed.join(z0)
    assert state.shape == (4, 7)
    assert float(state[:, 5:].abs().max()) == 0.0
    state[:, 5], state[:, 6] = 1.0, torch.arange(4)
    z, cost = costed.split(torch.stack((state, 2 * state)))
    torch.testing.assert_close(z, torch.stack((z0, 2 * z0)))
    assert cost.tolist() == pytest.approx([2 * 1.0 + 3 * 1.5, 2 * (2 * 1.0 + 3 * 1.5)])


def test_the_same_generator_draws_the_same_noise() -> None:
    z0, cost = normal(4, 5), JacobianNorm(1.0)
    first, again = (cost.sample(z0, torch.Generator().manual_seed(1)) for _ in range(2))
    assert torch.equal(first, again)
    assert not torch.equal(first, cost.sample(z0, torch.Generator().manual_seed(2)))
    assert first.dtype == z0.dtype


@pytest.mark.parametrize("cost", [Kinetic, JacobianNorm])
@pytest.mark.parametrize("weight", [-1.0, math.nan])
def test_a_negative_weight_is_refused(cost: type[Cost], weight: float) -> None:
    with pytest.raises(ValueError, match=f"{cost.__name__} needs `weight` at least 0"):
        cost(weight)


def test_an_empty_list_of_costs_is_refused() -> None:
    z0 = normal(4, 5)
    with pytest.raises(ValueError, match="Costed needs at least one cost"):
        Costed(LinearFlow(RandomWalk()).bind(z0, kite()), [], z0)
