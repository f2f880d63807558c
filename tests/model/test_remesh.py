"""Remeshing: the stencil is applied again between segments; source, costs, steps and gradients continue."""

import pytest
import torch
from torch import Tensor

from beltrami.diffusivity import Gaussian, RandomWalk
from beltrami.flow import BeltramiFlow, Kinetic, LinearFlow, Source
from beltrami.graph import Edges
from beltrami.joint import Joint
from beltrami.model import Evolution
from beltrami.scheme import PID, RK4, ConstantSteps, Continuous, Dopri5, Euler, Scheme, TimeStepping
from beltrami.stencil import Stencil

JOINT = Joint(2, 1)
EULER = Scheme(Euler(), ConstantSteps(0.5))
NONE = Edges.build(torch.empty(2, 0, dtype=torch.int64), num_nodes=6)


class Near(Stencil):
    """A stencil of all pairs of nodes whose positions are closer than ``radius``, by brute force."""

    def __init__(self, radius: float) -> None:
        self.radius = radius

    def __call__(self, z: Tensor, edges: Edges) -> Edges:
        u = z.detach()[:, JOINT.u]
        near = (torch.cdist(u, u) < self.radius) & ~torch.eye(len(u), dtype=torch.bool)
        return Edges.build(near.nonzero().T, num_nodes=len(u))


def state(n: int = 6) -> Tensor:
    return torch.randn(n, JOINT.channels, dtype=torch.float64, generator=torch.Generator().manual_seed(3))


def evolution(radius: float = 1.5, *, scheme: TimeStepping = EULER, remesh: float | None = 0.5) -> Evolution:
    flow = BeltramiFlow(Gaussian(JOINT)).double()
    return Evolution(flow, scheme=scheme, time=2.0, stencil=Near(radius), remesh=remesh)


def test_euler_with_remeshing_is_the_explicit_scheme_on_a_moving_graph() -> None:
    tau, z = 0.5, state()
    expected = z
    for _ in range(4):  # eq. (9) in a double loop
        z0, moved = expected, []
        for i in range(6):
            near = [j for j in range(6) if j != i and float((z0[j, :2] - z0[i, :2]).norm()) < 1.5]
            weights = (
                torch.stack([torch.exp(-0.5 * (z0[j] - z0[i]).square().sum()) for j in near]) if near else z0[:0, 0]
            )
            step = sum(
                (w * (z0[j] - z0[i]) for w, j in zip(weights / weights.sum(), near, strict=True)), torch.zeros(3)
            )
            moved.append(z0[i] + tau * step)
        expected = torch.stack(moved)
    torch.testing.assert_close(evolution()(z, NONE), expected, rtol=1e-9, atol=1e-10)
    assert not torch.allclose(evolution(remesh=None)(z, NONE), expected, atol=1e-3)


def test_contracting_clusters_lose_the_edges_between_them() -> None:
    left = torch.tensor([-1.2, -1.15, -1.1, -0.4], dtype=torch.float64)
    z = torch.cat((left, -left))[:, None] * torch.tensor([1.0, 0.0, 0.0], dtype=torch.float64)
    moving = Evolution(LinearFlow(RandomWalk()), scheme=EULER, time=6.0, stencil=Near(0.95), remesh=0.5)
    meshes = moving.evolve(z, NONE).meshes

    def between(edges: Edges) -> int:
        return int(((edges.j < 4) != (edges.i < 4)).sum())

    assert between(meshes[0]) == 2
    assert between(meshes[-1]) == 0
    assert meshes[-1].num_edges == 2 * 4 * 3


def test_segments_cover_the_time_and_hold_their_graphs() -> None:
    remeshed = evolution(scheme=Scheme(RK4(), ConstantSteps(0.1)), remesh=0.75)
    trajectory = remeshed.evolve(state(), NONE)
    assert list(remeshed.intervals((0.0, 2.0))) == [(0.0, 0.75), (0.75, 1.5), (1.5, 2.0)]
    assert [solve.accepted for solve in trajectory.solves] == [8, 8, 5]
    assert torch.equal(trajectory.meshes[0].edge_index, Near(1.5)(state(), NONE).edge_index)


def test_trajectory_has_the_states_at_the_requested_times() -> None:
    z, moving = state(), evolution(scheme=Scheme(RK4(), ConstantSteps(0.125)))
    ts = (0.0, 0.25, 0.5, 1.1, 2.0)
    ys = moving.trajectory(z, NONE, ts).ys
    assert ys.shape == (5, 6, 3)
    assert torch.equal(ys[0], z)
    for k, t in enumerate(ts[1:], start=1):
        alone = Evolution(moving.flow, scheme=moving.scheme, time=t, stencil=moving.stencil, remesh=0.5)(z, NONE)
        torch.testing.assert_close(ys[k], alone, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize(
    "scheme",
    [EULER, pytest.param(Scheme(Dopri5(), PID(1e-8, 1e-10), Continuous()), marks=pytest.mark.slow)],
    ids=["direct", "continuous"],
)
def test_gradients_flow_through_every_segment(scheme: TimeStepping) -> None:
    moving, z = evolution(scheme=scheme), state()
    direction = torch.randn(z.shape, dtype=z.dtype, generator=torch.Generator().manual_seed(4))
    start = z.clone().requires_grad_()
    end = moving(start, NONE).sin().sum()
    gradient, *_ = torch.autograd.grad(end, [start, *moving.parameters()])
    with torch.no_grad():
        ahead, behind = (moving(z + h * direction, NONE).sin().sum() for h in (1e-5, -1e-5))
    torch.testing.assert_close((gradient * direction).sum(), (ahead - behind) / 2e-5, rtol=1e-5, atol=1e-7)


def test_source_of_later_segments_is_that_of_z0() -> None:
    flow = LinearFlow(RandomWalk(), source=Source(1.0)).double()
    apart = torch.eye(6, 3, dtype=torch.float64) * 100
    moving = Evolution(flow, scheme=EULER, time=2.0, stencil=Near(0.5), remesh=0.5)
    alone = 3  # far from everything: dz/dt = z(0), so z(2) = 3 z(0)
    z = apart.clone()
    z[alone] = torch.tensor([50.0, 50.0, 7.0])
    torch.testing.assert_close(moving(z, NONE)[alone], 3 * z[alone])


def test_later_segments_start_with_the_last_step_size() -> None:
    moving = evolution(scheme=Scheme(Dopri5(), PID(rtol=1e-6, atol=1e-8)))
    first, *later = moving.evolve(state(), NONE).solves
    assert first.evaluations == 6 * (first.accepted + first.rejected) + 3  # one slope to start, two for the first step
    for solve in later:
        assert solve.evaluations == 6 * (solve.accepted + solve.rejected) + 1


def test_costs_of_segments_are_added() -> None:
    z = state()
    flow = LinearFlow(RandomWalk()).double()
    scheme = Scheme(RK4(), ConstantSteps(0.05))
    still, moving = (
        Evolution(flow, scheme=scheme, time=2.0, stencil=Near(100.0), remesh=remesh, costs=[Kinetic(1.0)])
        for remesh in (None, 0.5)
    )
    torch.testing.assert_close(moving.evolve(z, NONE).cost, still.evolve(z, NONE).cost)
    assert still.evolve(z, NONE).cost.item() > 0


@pytest.mark.parametrize("remesh", [0.0, float("inf"), float("nan")])
def test_remesh_must_be_positive(remesh: float) -> None:
    with pytest.raises(ValueError, match="positive `remesh`"):
        evolution(remesh=remesh)


def test_too_many_graphs_are_refused() -> None:
    with pytest.raises(ValueError, match=r"rebuild its graph 2e\+09 times until t=2, .* `remesh` of at least 0\.0002"):
        evolution(remesh=1e-9)
    with pytest.raises(ValueError, match="rebuild its graph"):
        evolution(remesh=0.5).trajectory(state(), NONE, [0.0, 1e9])
