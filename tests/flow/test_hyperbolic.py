"""Hyperbolic positions flow along geodesics, stay in the ball, and follow the flat flow in a large ball."""

import pytest
import torch
from torch import Tensor
from torch.autograd import gradcheck
from torch.autograd.functional import jacobian

from beltrami.diffusivity import Gaussian, RandomWalk
from beltrami.flow import BeltramiFlow, HyperbolicFlow, Rate, Source
from beltrami.flow.hyperbolic import derivative_of_log_origin
from beltrami.geometry import PoincareBall
from beltrami.graph import Edges
from beltrami.joint import Joint
from beltrami.scheme import PID, ConstantSteps, Dopri5, Euler, Scheme, solve

JOINT = Joint(2, 3)
TIGHT = Scheme(Dopri5(), PID(rtol=1e-9, atol=1e-11))


def path_graph(n: int) -> Edges:
    i = torch.arange(n - 1)
    return Edges.build(torch.stack((torch.cat((i, i + 1)), torch.cat((i + 1, i)))), num_nodes=n)


def state(n: int, *, scale: float = 1.0) -> Tensor:
    generator = torch.Generator().manual_seed(0)
    return scale * torch.randn(n, JOINT.channels, dtype=torch.float64, generator=generator)


@pytest.mark.parametrize("curvature", [1.0, 0.3])
def test_derivative_of_the_logarithm_is_its_jacobian(curvature: float) -> None:
    ball = PoincareBall(curvature)
    lengths = torch.tensor([1e-6, 1e-2, 0.3, 1.0, 2.0], dtype=torch.float64)[:, None]
    u, v = lengths * state(5)[:, :3], state(5)[:, 2:]
    p = ball.exp_origin(u)
    expected = torch.stack([jacobian(ball.log_origin, p[k]) @ v[k] for k in range(5)])
    torch.testing.assert_close(derivative_of_log_origin(u, v, curvature=curvature), expected, rtol=1e-8, atol=1e-9)


def test_field_is_the_double_loop_over_geodesics() -> None:
    ball, edges, z = PoincareBall(), path_graph(4), state(4)
    field = HyperbolicFlow(RandomWalk(), JOINT).bind(z, edges)(0.0, z)
    p = ball.exp_origin(z[:, JOINT.u])
    for i in range(4):
        near = [j for j in (i - 1, i + 1) if 0 <= j < 4]
        velocity = torch.stack([ball.log(p[i], p[j]) for j in near]).mean(0)
        expected = jacobian(ball.log_origin, p[i]) @ velocity
        torch.testing.assert_close(field[i, JOINT.u], expected, rtol=1e-8, atol=1e-9)
        torch.testing.assert_close(field[i, JOINT.x], z[near][:, JOINT.x].mean(0) - z[i, JOINT.x])


@pytest.mark.slow
@torch.no_grad()
def test_two_points_meet_at_the_midpoint_of_their_geodesic() -> None:
    ball, edges, z = PoincareBall(), path_graph(2), state(2)
    f = HyperbolicFlow(RandomWalk(), JOINT).bind(z, edges)
    end = ball.exp_origin(solve(f, z, (0.0, 10.0), TIGHT).ys[-1][:, JOINT.u])
    p = ball.exp_origin(z[:, JOINT.u])
    middle = ball.exp(p[0], 0.5 * ball.log(p[0], p[1]))
    torch.testing.assert_close(end, middle.expand(2, -1), rtol=1e-6, atol=1e-7)


@pytest.mark.slow
@torch.no_grad()
def test_distance_of_two_points_decays_exponentially() -> None:
    ball, edges, z = PoincareBall(), path_graph(2), state(2)
    f = HyperbolicFlow(RandomWalk(), JOINT).bind(z, edges)
    ys = solve(f, z, (0.0, 0.5, 1.0, 2.0), TIGHT).ys
    apart = [ball.distance(*ball.exp_origin(y[:, JOINT.u])) for y in ys]
    expected = [apart[0] * torch.exp(torch.tensor(-2.0 * t, dtype=torch.float64)) for t in (0.5, 1.0, 2.0)]
    torch.testing.assert_close(torch.stack(apart[1:]), torch.stack(expected), rtol=1e-6, atol=1e-9)


@pytest.mark.parametrize("dt", [0.25, 1.0])
def test_no_step_leaves_the_ball(dt: float) -> None:
    ball, edges, z = PoincareBall(), path_graph(6), state(6, scale=1.5).float()
    f = HyperbolicFlow(Gaussian(JOINT, metric=ball), JOINT, ball=ball).bind(z, edges)
    with torch.no_grad():
        ys = solve(f, z, tuple(dt * k for k in range(6)), Scheme(Euler(), ConstantSteps(dt))).ys
    assert torch.isfinite(ys).all()
    assert ball.inside(ball.exp_origin(ys[..., JOINT.u])).all()


def test_equal_positions_do_not_move() -> None:
    edges, z = path_graph(5), state(1).expand(5, -1)
    f = HyperbolicFlow(Gaussian(JOINT, metric=PoincareBall()).double(), JOINT).bind(z, edges)
    torch.testing.assert_close(f(0.0, z), torch.zeros_like(z), rtol=0, atol=1e-12)


def test_flow_in_a_large_ball_is_the_flat_flow() -> None:
    edges, z = path_graph(5), state(5)
    flat = BeltramiFlow(RandomWalk()).bind(z, edges)(0.0, z)
    curved = HyperbolicFlow(RandomWalk(), JOINT, ball=PoincareBall(1e-10)).bind(z, edges)(0.0, z)
    torch.testing.assert_close(curved, flat, rtol=1e-6, atol=1e-8)


@pytest.mark.slow
def test_field_has_the_right_gradients() -> None:
    edges, z = path_graph(5), state(5).requires_grad_()
    flow = HyperbolicFlow(
        Gaussian(JOINT, metric=PoincareBall(), heads=2), JOINT, rate=Rate(), source=Source(0.1)
    ).double()
    assert gradcheck(lambda z: flow.bind(z, edges)(0.0, z), (z,))
    assert len(flow.bind(z, edges).tensors) == 4  # two lengths, alpha, beta z(0)


def test_flow_of_features_alone_is_refused() -> None:
    with pytest.raises(ValueError, match="needs positions"):
        HyperbolicFlow(RandomWalk(), Joint(0, 3))
