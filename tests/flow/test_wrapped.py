"""Flows that mix channels, polynomials of the Laplacian, messages and frozen positions, against dense matrices."""

from collections.abc import Callable

import pytest
import torch
from checks import GRAPHS, JOINT, by_parameters, crooked, dense, kite, make, normal
from torch import Tensor
from torch.autograd import gradcheck

from beltrami.diffusivity import RandomWalk
from beltrami.flow import (
    BeltramiFlow,
    ChebyshevFlow,
    Flow,
    FrozenPositions,
    LinearFlow,
    MessageFlow,
    MixedFlow,
    OnsagerFlow,
)
from beltrami.graph import Both, Edges
from beltrami.scheme import PID, RK4, Checkpointed, ConstantSteps, Continuous, Direct, Dopri5, Scheme, solve

pytest.importorskip("torch_geometric", reason="torch_geometric is not installed")

from torch_geometric.nn import SAGEConv

D = JOINT.channels
graphs = pytest.mark.parametrize("edges", [kite(), crooked()], ids=["kite", "crooked"])


def perturbed(flow: Flow, seed: int = 0) -> Flow:
    """Return the flow in double precision with parameters away from their initial values."""
    flow = flow.double()
    with torch.no_grad():
        for k, parameter in enumerate(flow.parameters()):
            parameter.add_(0.3 * normal(*parameter.shape, seed=seed + k))
    return flow


@graphs
@pytest.mark.parametrize("wrapped", [BeltramiFlow, LinearFlow])
def test_onsager_is_q_z_w(edges: Edges, wrapped: type[BeltramiFlow | LinearFlow]) -> None:
    flow, z0 = OnsagerFlow(wrapped(make("ScaledDot")), D), normal(edges.num_nodes, D)
    perturbed(flow)
    later = z0 + normal(edges.num_nodes, D, seed=5)
    a = dense(flow.diffusivity(later if wrapped is BeltramiFlow else z0, edges), edges)
    wanted = (a - torch.eye(edges.num_nodes)) @ later @ flow.weight
    torch.testing.assert_close(flow.bind(z0, edges)(0.0, later), wanted)


@graphs
def test_mixed_flow_relaxes_towards_a_z_w(edges: Edges) -> None:
    flow, z = perturbed(MixedFlow(BeltramiFlow(make("Cosine")), D)), normal(edges.num_nodes, D)
    wanted = dense(flow.diffusivity(z, edges), edges) @ z @ flow.get_parameter("weight") - z
    torch.testing.assert_close(flow.bind(z, edges)(0.0, z), wanted)


def test_onsager_with_a_constant_matrix_is_the_exponential_of_a_kronecker_product() -> None:
    edges, z = kite(), normal(4, D)
    flow = perturbed(OnsagerFlow(LinearFlow(RandomWalk(Both())), D))
    q = dense(flow.diffusivity(z, edges), edges) - torch.eye(4)
    with torch.no_grad():
        found = solve(flow.bind(z, edges), z, (0.0, 0.7), Scheme(Dopri5(), PID(1e-11, 1e-11))).ys[-1]
        operator = torch.kron(q, flow.get_parameter("weight").T.contiguous())  # rows of z in order
        torch.testing.assert_close(found.flatten(), torch.matrix_exp(0.7 * operator) @ z.flatten())


@graphs
@pytest.mark.parametrize("terms", [2, 3, 6])
def test_chebyshev_flow_is_the_polynomial_of_the_shifted_laplacian(edges: Edges, terms: int) -> None:
    flow, z = perturbed(ChebyshevFlow(LinearFlow(RandomWalk(Both())), D, terms=terms)), normal(edges.num_nodes, D)
    values, vectors = torch.linalg.eigh(-dense(flow.diffusivity(z, edges), edges))
    wanted = -z
    for k, weight in enumerate(flow.get_parameter("weight")):
        wanted = wanted + vectors @ torch.cos(k * values.clamp(-1, 1).acos()).diag() @ vectors.T @ z @ weight
    torch.testing.assert_close(flow.bind(z, edges)(0.0, z), wanted, rtol=1e-6, atol=1e-7)


@pytest.mark.parametrize("edges", GRAPHS.values(), ids=GRAPHS.keys())
def test_flows_that_mix_channels_start_as_the_wrapped_flow(edges: Edges) -> None:
    wrapped, z = BeltramiFlow(make("ScaledDot")), normal(edges.num_nodes, D)
    wanted = wrapped.bind(z, edges)(0.0, z)
    for flow in (OnsagerFlow(wrapped, D), MixedFlow(wrapped, D), ChebyshevFlow(wrapped, D, terms=3)):
        torch.testing.assert_close(flow.double().bind(z, edges)(0.0, z), wanted)


def test_message_flow_is_the_layer() -> None:
    edges, z = crooked(), normal(6, D)
    layer = SAGEConv(D, D).double()
    flow = MessageFlow(layer)
    assert torch.equal(flow.bind(z, edges)(0.0, z), layer(z, edges.edge_index))
    assert flow.diffusivity.spread(z, edges) == 0.0


def test_message_flow_needs_a_layer_that_keeps_the_width() -> None:
    edges, z = crooked(), normal(6, D)
    field = MessageFlow(SAGEConv(D, 2).double()).bind(z, edges)
    with pytest.raises(ValueError, match=r"must return the shape and type of its state"):
        solve(field, z, (0.0, 1.0), Scheme(RK4(), ConstantSteps(1.0)))


def test_frozen_positions_do_not_move_and_affect_the_features() -> None:
    edges, z, wrapped = crooked(), normal(6, D), BeltramiFlow(make("ScaledDot"))
    f = FrozenPositions(wrapped, JOINT).bind(z, edges)
    dz = f(0.0, z)
    assert torch.equal(dz[:, JOINT.u], torch.zeros(6, JOINT.pos))
    assert torch.equal(dz[:, JOINT.x], wrapped.bind(z, edges)(0.0, z)[:, JOINT.x])
    shifted = JOINT.join(normal(6, JOINT.pos, seed=8), z[:, JOINT.x])
    assert not torch.allclose(f(0.0, shifted)[:, JOINT.x], dz[:, JOINT.x])


FLOWS: dict[str, Callable[[], Flow]] = {
    "onsager": lambda: OnsagerFlow(BeltramiFlow(make("ScaledDot")), D),
    "mixed": lambda: MixedFlow(LinearFlow(make("Cosine")), D),
    "chebyshev": lambda: ChebyshevFlow(LinearFlow(make("Cosine")), D, terms=3),
    "message": lambda: MessageFlow(SAGEConv(D, D)),
    "frozen": lambda: FrozenPositions(BeltramiFlow(make("ScaledDot")), JOINT),
}
flows = pytest.mark.parametrize("name", FLOWS)


@flows
def test_derivatives_are_those_of_finite_differences(name: str) -> None:
    edges, z, flow = kite(), normal(4, D).requires_grad_(), perturbed(FLOWS[name]())
    function, parameters = by_parameters(flow, lambda z: flow.bind(z, edges)(0.0, z))
    assert gradcheck(function, (z, *parameters), fast_mode=True)


@pytest.mark.slow
@flows
@pytest.mark.parametrize("adjoint", [Checkpointed(), Continuous()], ids=["checkpointed", "continuous"])
def test_every_adjoint_has_the_gradients_of_all_parameters(name: str, adjoint: Checkpointed | Continuous) -> None:
    edges, z, flow = kite(), normal(4, D), perturbed(FLOWS[name]())

    def gradients(how: Direct | Checkpointed | Continuous) -> list[Tensor]:
        start = z.clone().requires_grad_()
        field = flow.bind(start, edges)
        ys = solve(field, start, (0.0, 0.5), Scheme(RK4(), ConstantSteps(1 / 32), how), field.tensors).ys
        return list(torch.autograd.grad(ys[-1].square().sum(), [start, *flow.parameters()]))

    for found, wanted in zip(gradients(adjoint), gradients(Direct()), strict=True):
        assert float(wanted.abs().max()) > 0
        torch.testing.assert_close(found, wanted, rtol=1e-4, atol=1e-6)


def test_a_wrapped_flow_registers_its_diffusivity_once() -> None:
    a = make("ScaledDot")
    flow = FrozenPositions(OnsagerFlow(BeltramiFlow(a), D), JOINT)
    assert len(flow.state_dict()) == len(list(flow.parameters())) == 3
    assert flow.diffusivity is a


def test_print_shows_the_settings() -> None:
    shown = repr(FrozenPositions(ChebyshevFlow(LinearFlow(RandomWalk()), D, terms=3), JOINT))
    assert "joint=Joint(pos=2, feat=3)" in shown
    assert "channels=5, terms=3" in shown
