"""Time-dependent flows: coefficients sum to one, intervals are layers, and W(t) against a dense solve."""

import pytest
import torch
from checks import JOINT, crooked, dense, kite, make, normal
from torch import Tensor
from torch.func import vmap

from beltrami.diffusivity import RandomWalk
from beltrami.flow import (
    BeltramiFlow,
    Bernstein,
    BoundField,
    Flow,
    LinearFlow,
    OnsagerFlow,
    PerInterval,
    Schedule,
    TimeVarying,
)
from beltrami.graph import Edges
from beltrami.scheme import PID, RK4, ConstantSteps, Continuous, Direct, Dopri5, Euler, Scheme, solve

D = JOINT.channels
SCHEDULES = [PerInterval(1), PerInterval(3), PerInterval(4, 0.5), Bernstein(1, 2.0), Bernstein(3, 2.0)]
schedules = pytest.mark.parametrize("schedule", SCHEDULES, ids=repr)


@schedules
def test_coefficients_sum_to_one_and_are_the_same_for_a_time_that_is_a_tensor(schedule: Schedule) -> None:
    for t in (0.0, 0.3, 0.999, 1.0, 1.7, 2.0, 5.0):
        found = [float(c) for c in schedule(t)]
        assert len(found) == schedule.count
        assert min(found) >= 0
        assert sum(found) == pytest.approx(1.0)
        as_tensors = [float(c) for c in schedule(torch.tensor(t, dtype=torch.float64))]
        assert as_tensors == pytest.approx(found)


def test_intervals_follow_one_another_and_the_last_stays() -> None:
    schedule = PerInterval(3, 0.5)
    assert [schedule(t).index(1.0) for t in (0.0, 0.49, 0.5, 0.99, 1.0, 1.5, 9.0)] == [0, 0, 1, 1, 2, 2, 2]
    tenth, t = PerInterval(10, 0.1), 0.0
    for k in range(10):
        assert tenth(t)[k] == 1.0, "rounded sums of steps may not reach the end of an interval"
        t += 0.1


def test_bernstein_goes_from_the_first_flow_to_the_last_by_binomial_coefficients() -> None:
    schedule = Bernstein(3, 2.0)
    assert schedule(0.0) == [1.0, 0.0, 0.0]
    assert schedule(1.0) == [0.25, 0.5, 0.25]
    assert schedule(2.0) == schedule(7.0) == [0.0, 0.0, 1.0]


def test_euler_steps_evaluate_each_layer_once() -> None:
    """Z(k+1) = Q(Z(k), theta(k)) Z(k)."""
    edges, z = crooked(), normal(6, D)
    flows = [BeltramiFlow(make(name)) for name in ("ScaledDot", "Cosine", "Additive")]
    found = solve(
        TimeVarying(flows, PerInterval(3)).bind(z, edges), z, (0.0, 3.0), Scheme(Euler(), ConstantSteps(1.0))
    ).ys[-1]
    for flow in flows:
        z = dense(flow.diffusivity(z, edges), edges) @ z
    torch.testing.assert_close(found, z)


def test_beltrami_flows_are_the_flow_of_the_weighted_diffusivity() -> None:
    edges, z, t = crooked(), normal(6, D), 0.6
    flows = [BeltramiFlow(make(name)) for name in ("ScaledDot", "Cosine")]
    found = TimeVarying(flows, Bernstein(2, 2.0)).bind(z, edges)(t, z)
    a = 0.7 * flows[0].diffusivity(z, edges) + 0.3 * flows[1].diffusivity(z, edges)
    torch.testing.assert_close(found, dense(a, edges) @ z - z)


def test_onsager_flows_are_the_flow_of_w_of_t() -> None:
    edges, z, walk = kite(), normal(4, D), RandomWalk()
    flows = [OnsagerFlow(LinearFlow(walk), D).double() for _ in range(3)]
    matrices = [torch.eye(D) + 0.3 * normal(D, D, seed=k) for k in range(3)]
    with torch.no_grad():
        for flow, matrix in zip(flows, matrices, strict=True):
            flow.weight.copy_(matrix)
        q = dense(walk(z, edges), edges) - torch.eye(4)

        def slope(t: float, y: Tensor) -> Tensor:
            s = t / 1.5
            w = (1 - s) ** 2 * matrices[0] + 2 * s * (1 - s) * matrices[1] + s**2 * matrices[2]
            return q @ y @ w

        tight = Scheme(RK4(), ConstantSteps(0.025))
        found = solve(TimeVarying(flows, Bernstein(3, 1.5)).bind(z, edges), z, (0.0, 1.5), tight).ys[-1]
        torch.testing.assert_close(found, solve(slope, z, (0.0, 1.5), tight).ys[-1])


class Counting(BoundField):
    """A zero field that counts its evaluations."""

    tensors: tuple[Tensor, ...] = ()

    def __init__(self) -> None:
        self.calls = 0

    def __call__(self, t: float, z: Tensor) -> Tensor:
        self.calls += 1
        return torch.zeros_like(z)


class CountingFlow(Flow):
    """A flow whose vector field counts its evaluations."""

    def __init__(self) -> None:
        super().__init__(RandomWalk())
        self.field = Counting()

    def bind(self, z: Tensor, edges: Edges, *, start: Tensor | None = None) -> BoundField:
        return self.field


def test_flows_with_coefficient_zero_are_not_evaluated() -> None:
    flows, z = [CountingFlow(), CountingFlow(), CountingFlow()], normal(4, D)
    f = TimeVarying(flows, PerInterval(3)).bind(z, kite())
    for t in (0.0, 0.5, 1.0, 2.0, 3.0):
        f(t, z)
    assert [flow.field.calls for flow in flows] == [2, 1, 2]


@pytest.mark.slow
def test_a_batch_with_adaptive_steps_agrees_with_each_state_alone() -> None:
    """Under vmap the time is a tensor."""
    edges, starts = crooked(), normal(3, 6, D)
    flow = TimeVarying([BeltramiFlow(make(name)) for name in ("ScaledDot", "Cosine")], Bernstein(2, 1.0))
    scheme = Scheme(Dopri5(), PID(1e-6, 1e-6))

    def end(z: Tensor) -> Tensor:
        return solve(flow.bind(z, edges), z, (0.0, 1.0), scheme).ys[-1]

    with torch.no_grad():
        torch.testing.assert_close(vmap(end)(starts), torch.stack([end(z) for z in starts]))


@pytest.mark.slow
def test_the_continuous_adjoint_has_the_gradients_of_all_layers() -> None:
    edges, z = kite(), normal(4, D)
    shared = make("Cosine")
    flow = TimeVarying([BeltramiFlow(make("ScaledDot")), BeltramiFlow(shared), BeltramiFlow(shared)], Bernstein(3, 1.0))
    names = [id(tensor) for tensor in flow.bind(z, edges).tensors]
    assert len(names) == len(set(names)) == len(list(flow.parameters()))

    def gradients(adjoint: Direct | Continuous) -> tuple[Tensor, ...]:
        field = flow.bind(z, edges)
        ys = solve(field, z, (0.0, 1.0), Scheme(RK4(), ConstantSteps(1 / 16), adjoint), field.tensors).ys
        return torch.autograd.grad(ys[-1].square().sum(), list(flow.parameters()))

    for found, wanted in zip(gradients(Continuous()), gradients(Direct()), strict=True):
        assert float(wanted.abs().max()) > 0
        torch.testing.assert_close(found, wanted, rtol=1e-4, atol=1e-6)


def test_refusals() -> None:
    with pytest.raises(ValueError, match=r"one flow for each coefficient; got 1 flows and 2 coefficients"):
        TimeVarying([BeltramiFlow(make("ScaledDot"))], PerInterval(2))
    with pytest.raises(ValueError, match=r"PerInterval needs `count` at least 1 and a positive `length`; got 0 and 1"):
        PerInterval(0)
    with pytest.raises(ValueError, match=r"Bernstein needs .* positive `time`; got 2 and -1.0"):
        Bernstein(2, -1.0)
