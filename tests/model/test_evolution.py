"""Evolution: exact solutions, trajectories, costs in training only, and its printed form."""

import pytest
import torch
from toy import scaled_dot, two_cliques

from beltrami.diffusivity import RandomWalk
from beltrami.flow import BeltramiFlow, JacobianNorm, Kinetic, LinearFlow
from beltrami.graph import Edges
from beltrami.model import Evolution
from beltrami.scheme import PID, RK4, ConstantSteps, Dopri5, Scheme, TimeStepping
from beltrami.stencil import Loops
from beltrami.train import seeded

CONSTANT = Scheme(RK4(), ConstantSteps(0.25))
ADAPTIVE = Scheme(Dopri5(), PID(rtol=1e-4, atol=1e-6))


def path_graph() -> Edges:
    """0 - 1 - 2 - 3."""
    return Edges.build(torch.tensor([[0, 1, 1, 2, 2, 3], [1, 0, 2, 1, 3, 2]]), num_nodes=4)


def state(n: int = 4, d: int = 8) -> torch.Tensor:
    return torch.randn(n, d, generator=torch.Generator().manual_seed(1))


def test_linear_flow_is_the_matrix_exponential() -> None:
    z = state().double()
    walk = torch.tensor([[0, 1, 0, 0], [0.5, 0, 0.5, 0], [0, 0.5, 0, 0.5], [0, 0, 1, 0]], dtype=torch.float64)
    evolution = Evolution(LinearFlow(RandomWalk()), scheme=Scheme(RK4(), ConstantSteps(0.05)), time=3.0)
    exact = torch.linalg.matrix_exp(3.0 * (walk - torch.eye(4))) @ z
    assert torch.allclose(evolution(z, path_graph()), exact, atol=1e-6)


@pytest.mark.parametrize("scheme", [CONSTANT, ADAPTIVE], ids=["constant", "adaptive"])
@pytest.mark.parametrize("flow", [LinearFlow, BeltramiFlow])
def test_trajectory_ends_with_forward(flow: type[LinearFlow] | type[BeltramiFlow], scheme: TimeStepping) -> None:
    evolution, edges, z = Evolution(flow(scaled_dot()), scheme=scheme, time=3.0), path_graph(), state()
    ys = evolution.trajectory(z, edges, (0.0, 0.6, 1.7, 3.0)).ys
    assert ys.shape == (4, 4, 8)
    assert torch.equal(ys[0], z)
    assert torch.equal(ys[-1], evolution(z, edges))


def test_trajectory_contains_the_ends_of_shorter_ones() -> None:
    evolution, edges, z = Evolution(LinearFlow(scaled_dot()), scheme=CONSTANT, time=3.0), path_graph(), state()
    along = evolution.trajectory(z, edges, (0.0, 1.0, 2.0, 3.0)).ys
    for t in (1, 2):
        assert torch.allclose(along[t], evolution.trajectory(z, edges, (0.0, float(t))).ys[-1], atol=1e-6)


def test_costs_are_integrated_in_training_only_and_do_not_change_the_state() -> None:
    flow, edges, z = LinearFlow(scaled_dot()), path_graph(), state()
    evolution = Evolution(flow, scheme=CONSTANT, time=2.0, costs=[Kinetic(0.1), JacobianNorm(0.1)])
    with seeded(0):
        training = evolution.train().evolve(z, edges)
    evaluating = evolution.eval().evolve(z, edges)
    assert training.cost.item() > 0
    assert evaluating.cost.item() == 0
    assert torch.allclose(training.z, evaluating.z, atol=1e-6)


def test_cost_is_zero_without_regularisers() -> None:
    evolution = Evolution(LinearFlow(scaled_dot()), scheme=CONSTANT, time=2.0)
    assert evolution.train().evolve(state(), path_graph()).cost.item() == 0


def test_kinetic_cost_is_the_integral_of_the_squared_slope() -> None:
    r"""On one edge :math:`z_0 - z_1` decays like :math:`2 e^{-2t}`, so each slope is :math:`\mp 2 e^{-2t}`."""
    edges, z = Edges.build(torch.tensor([[0, 1], [1, 0]]), num_nodes=2), torch.tensor([[1.0], [-1.0]])
    evolution = Evolution(LinearFlow(RandomWalk()), scheme=Scheme(RK4(), ConstantSteps(0.05)), time=1.0)
    evolution.costs = (Kinetic(0.5),)
    exact = 0.5 * (1 - torch.exp(torch.tensor(-4.0)))  # 0.5 times the integral of 4 exp(-4 t)
    assert torch.allclose(evolution.train().evolve(z, edges).cost, exact, atol=1e-5)


def test_weights_are_on_the_edges_of_the_stencil() -> None:
    toy = two_cliques(4)
    edges = Edges.build(toy.edge_index, num_nodes=8)
    evolution = Evolution(LinearFlow(scaled_dot()), scheme=CONSTANT, time=1.0, stencil=Loops(2.0))
    stencil = evolution.stencil(state(8), edges)
    a = evolution.flow.diffusivity(state(8), stencil).detach()
    assert a.shape == (stencil.num_edges,)
    assert stencil.num_edges == edges.num_edges + 8
    assert torch.allclose(torch.zeros(8).index_add(0, stencil.i, a), torch.ones(8))


@pytest.mark.parametrize("time", [0.0, float("inf"), float("nan")])
def test_bad_terminal_time_is_refused(time: float) -> None:
    with pytest.raises(ValueError, match=r"positive, finite terminal `time`; got"):
        Evolution(LinearFlow(RandomWalk()), scheme=CONSTANT, time=time)


def test_print_shows_flow_stencil_scheme_time_and_remesh() -> None:
    stencil = Loops(2.0)
    evolution = Evolution(LinearFlow(RandomWalk()), scheme=CONSTANT, time=1.5, stencil=stencil, remesh=0.5)
    text = str(evolution)
    for part in ("(flow): LinearFlow", f"stencil={stencil!r}", f"scheme={CONSTANT!r}", "time=1.5, remesh=0.5"):
        assert part in text
    assert "costs" not in text
    evolution.costs = (Kinetic(0.1),)
    assert f"costs=({evolution.costs[0]!r},)" in str(evolution)
