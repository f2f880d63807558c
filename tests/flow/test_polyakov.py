"""The Polyakov flow decreases its energy for any parameters, in continuous and in discrete time."""

from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise

import pytest
import torch
from checks import bare, by_parameters, crooked, kite, normal
from torch import Tensor, nn
from torch.autograd import gradcheck
from torch.func import functional_call, stack_module_state, vmap

from beltrami.diffusivity import RandomWalk
from beltrami.energy import Constant, Gauss, PeronaMalik, PolyakovAction, Psi, Roughness
from beltrami.flow import Attachment, BeltramiFlow, Mass, PolyakovField, PolyakovFlow, Rate, degree, unit_mass
from beltrami.graph import Edges, laplacian
from beltrami.model import Evolution
from beltrami.scheme import (
    PID,
    RK4,
    Adjoint,
    Checkpointed,
    ConstantSteps,
    Continuous,
    Controller,
    Direct,
    Dopri5,
    EnergyController,
    EnergyDecreasing,
    Euler,
    Scheme,
    Stats,
    solve,
)
from beltrami.scheme.step_loop import accepted_steps

FAMILIES: dict[str, Callable[[], Psi]] = {
    "constant": Constant,
    "gauss": Gauss,
    "perona-malik": PeronaMalik,
    "roughness": Roughness,
}
every_family = pytest.mark.parametrize("name", FAMILIES)
concave_family = pytest.mark.parametrize("name", [name for name in FAMILIES if name != "gauss"])
every_mass = pytest.mark.parametrize("mass", [unit_mass, degree])
GRAPHS, NODES, CHANNELS, DRAWS = 50, 8, 3, 5  # with four families, 1000 flows


def build(name: str, *, mass: Mass = degree, alpha: float = 0.7, attached: float = 0.3) -> PolyakovFlow:
    action = PolyakovAction(FAMILIES[name]())
    return PolyakovFlow(action, mass=mass, rate=Rate(alpha), attachment=Attachment(attached)).double()


def family(flow: PolyakovFlow) -> Psi:
    assert isinstance(flow.diffusivity, PolyakovAction)
    return flow.diffusivity.psi


def scalars(flow: PolyakovFlow) -> tuple[Tensor, Tensor]:
    """Return alpha and lambda."""
    assert flow.rate is not None
    assert flow.attachment is not None
    return flow.rate().detach(), flow.attachment().detach()


@dataclass(frozen=True)
class RandomGraphs:
    """Many small random graphs as the components of one, each with its own scale of the state and its own length."""

    edges: Edges
    z: Tensor
    log_length: Tensor

    @staticmethod
    def draw(seed: int) -> "RandomGraphs":
        generator = torch.Generator().manual_seed(seed)
        upper = torch.rand(GRAPHS, NODES, NODES, generator=generator).triu(1) > 0.6
        graph, i, j = (upper | upper.mT).nonzero().T
        weight = torch.rand(len(i), generator=generator, dtype=torch.float64) + 0.1
        edge_index = NODES * graph + torch.stack((j, i))
        edges = Edges.build(edge_index, num_nodes=GRAPHS * NODES, weight=weight if seed % 2 else None)
        size = 10 ** (1.2 * torch.rand(GRAPHS, 1, generator=generator, dtype=torch.float64) - 1)
        z = size.repeat_interleave(NODES, 0) * normal(GRAPHS * NODES, CHANNELS, seed=seed)
        return RandomGraphs(edges, z, 0.5 * normal(GRAPHS, seed=seed)[edges.i // NODES])

    def flow(self, name: str, seed: int, *, mass: Mass) -> PolyakovFlow:
        alpha, attached = torch.rand(2, generator=torch.Generator().manual_seed(seed)).tolist()
        flow = build(name, mass=mass, alpha=0.05 + 0.9 * alpha, attached=0.01 + attached)
        if name != "constant":
            family(flow).log_length = nn.Parameter(self.log_length)
        return flow

    @torch.no_grad()
    def energies(self, flow: PolyakovFlow, z: Tensor) -> Tensor:
        """Return E of each graph by differences on the edges, (graphs,)."""
        edges, psi = self.edges, family(flow)
        p = (z[edges.j] - z[edges.i]).square().sum(-1)
        weight = torch.ones_like(p) if edges.weight is None else edges.weight
        pull = (flow.mass(edges, z.dtype) * (z - self.z).square()).sum(-1)
        none = z.new_zeros(GRAPHS)
        action = none.index_add(0, edges.i // NODES, 0.5 * weight * psi(p, edges) * p)
        alpha, attachment = scalars(flow)
        return alpha * action + 0.5 * attachment * none.index_add(0, torch.arange(len(z)) // NODES, pull)


def rises(energies: list[Tensor]) -> Tensor:
    """Return the largest increase of each graph's energy between two times, relative to the first energy."""
    return torch.stack([(after - before) / energies[0] for before, after in pairwise(energies)]).amax(0)


@pytest.mark.slow
@every_family
def test_energy_falls_along_a_thousand_random_flows(name: str) -> None:
    times = [0.0, 0.01, 0.03, 0.1, 0.2, 0.4, 0.7, 1.0, 1.5, 2.0, 3.0]
    for seed in range(DRAWS):
        graphs = RandomGraphs.draw(seed)
        flow = graphs.flow(name, seed, mass=unit_mass if seed % 2 else degree)
        with torch.no_grad():
            f = flow.bind(graphs.z, graphs.edges)
            ys = solve(f, graphs.z, times, Scheme(Dopri5(), PID(1e-8, 1e-10))).ys
        energies = [graphs.energies(flow, z) for z in ys]
        assert float(rises(energies).max()) < 1e-8
        assert float((energies[-1] < 0.9 * energies[0]).double().mean()) > 0.5  # nodes far apart hardly move
        torch.testing.assert_close(f.energy(ys[-1]), energies[-1].sum())


@pytest.mark.slow
@concave_family
def test_explicit_euler_decreases_the_energy_at_the_documented_step_size(name: str) -> None:
    for seed in range(DRAWS):
        graphs = RandomGraphs.draw(seed)
        flow = graphs.flow(name, seed, mass=degree)
        alpha, attachment = scalars(flow)
        with torch.no_grad():
            dt = 2 / float(4 * alpha + attachment)
            f = flow.bind(graphs.z, graphs.edges)
            energies, z = [graphs.energies(flow, graphs.z)], graphs.z
            for _ in range(30):
                z = z + dt * f(0.0, z)
                energies.append(graphs.energies(flow, z))
        assert float(rises(energies).max()) < 1e-12


def test_the_documented_step_size_is_the_largest_on_a_single_edge() -> None:
    """Two nodes of degree one, the constant family: z oscillates without decay."""
    edges = Edges.build(torch.tensor([[0, 1], [1, 0]]), num_nodes=2)
    f = PolyakovFlow(PolyakovAction(Constant()), mass=degree).bind(normal(2, 1), edges)
    z = torch.tensor([[1.0], [-1.0]], dtype=torch.float64)
    torch.testing.assert_close(z + 0.5 * f(0.0, z), -z)
    assert float(f.energy(z + 0.51 * f(0.0, z))) > float(f.energy(z))


@every_family
@every_mass
def test_the_field_is_minus_the_gradient_of_its_energy_by_the_mass(name: str, mass: Mass) -> None:
    edges, flow = crooked(), build(name, mass=mass)
    f, z = flow.bind(normal(6, 3), edges), normal(6, 3, seed=1).requires_grad_()
    (gradient,) = torch.autograd.grad(f.energy(z), z)
    torch.testing.assert_close(f(0.0, z), -gradient / mass(edges, z.dtype), rtol=1e-11, atol=1e-11)
    dz = f(0.0, z).detach()
    lost = (mass(edges, z.dtype) * dz.square()).sum()
    assert float((gradient * dz).sum()) == pytest.approx(-float(lost), rel=1e-11)


@torch.no_grad()
def rise(f: PolyakovField, z: Tensor, controller: Controller) -> float:
    """Return the largest increase of the energy in a step, relative to the first energy."""
    steps = accepted_steps(f, z, 0.0, 6.0, Scheme(Euler(), controller), Stats())
    energies = torch.stack([f.energy(z), *(f.energy(accepted.step.y1) for accepted in steps)])
    return float((energies.diff() / energies[0]).max())


@pytest.mark.slow
@every_family
def test_the_energy_controller_prevents_the_increases_of_constant_steps(name: str) -> None:
    increases, steps = 0, ConstantSteps(1.5)
    for seed in range(15):
        edges, z = crooked(), 10 ** float(normal(1, seed=seed)) * normal(6, 3, seed=seed)
        f = build(name, mass=unit_mass, alpha=0.9).bind(z, edges)
        assert rise(f, z, EnergyController(steps, f.energy)) < 1e-15
        increases += rise(f, z, steps) > 1e-3
    assert increases > 3


def test_the_constant_family_by_degree_is_twice_the_random_walk() -> None:
    edges, z = crooked(), normal(6, 3)
    walk = BeltramiFlow(RandomWalk()).bind(z, edges)
    f = PolyakovFlow(PolyakovAction(Constant()), mass=degree).bind(z, edges)
    torch.testing.assert_close(f(0.0, z), 2 * walk(0.0, z))


@torch.no_grad()
def test_divided_by_its_row_sums_the_flow_increases_the_energy_where_they_are_negative() -> None:
    """Two nodes beyond sqrt(2) lengths: a < 0 moves them apart, a / a = 1 together, where the action is larger."""
    edges = Edges.build(torch.tensor([[0, 1], [1, 0]]), num_nodes=2)
    action, z = PolyakovAction(Gauss(1.0)).double(), torch.tensor([[0.0], [2.0]], dtype=torch.float64)
    a = action(z, edges)
    assert bool((a < 0).all())
    slope = action.gradient(z, edges)
    assert float((slope * laplacian(z, a, edges)).sum()) < 0  # dS/dt along the theorem's flow
    assert float((slope * laplacian(z, a / a, edges)).sum()) > 0  # and along the normalised one: a row has one edge


def test_nodes_without_edges_do_not_move() -> None:
    f = build("roughness").bind(normal(4, 3), bare())
    torch.testing.assert_close(f(0.0, normal(4, 3)), torch.zeros(4, 3, dtype=torch.float64))
    assert float(degree(bare(), torch.float64).min()) == 1.0


def test_a_later_segment_is_attached_to_the_start_of_the_first() -> None:
    flow, edges = build("perona-malik"), kite()
    start, z = normal(4, 3), normal(4, 3, seed=1)
    _, attachment = scalars(flow)
    difference = flow.bind(z, edges, start=start)(0.0, z) - flow.bind(z, edges)(0.0, z)
    torch.testing.assert_close(difference.detach(), attachment * (start - z))


def gradients(name: str, adjoint: Adjoint, *, decreasing: bool) -> dict[str, Tensor]:
    flow, z0 = build(name), normal(6, 3).requires_grad_()
    scheme = Scheme(Dopri5(), PID(1e-10, 1e-10), adjoint)
    evolution = Evolution(flow, scheme=EnergyDecreasing(scheme) if decreasing else scheme, time=0.5)
    _, middle, end = evolution.trajectory(z0, crooked(), (0.0, 0.2, 0.5)).ys
    wanted = {"z0": z0, **dict(flow.named_parameters())}
    grads = torch.autograd.grad(middle.sin().sum() + end.square().sum(), list(wanted.values()))
    return dict(zip(wanted, grads, strict=True))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "decreasing"), [*((name, False) for name in FAMILIES), ("gauss", True), ("roughness", True)]
)
def test_all_adjoints_agree_on_z0_and_all_parameters(name: str, decreasing: bool) -> None:
    direct = gradients(name, Direct(), decreasing=False)
    for adjoint, tolerance in [(Direct(), 1e-12), (Checkpointed(), 1e-11), (Continuous(), 2e-8)]:
        found = gradients(name, adjoint, decreasing=decreasing)
        for what, exact in direct.items():
            assert float(exact.abs().max()) > 1e-6, f"no gradient reaches {what}"
            torch.testing.assert_close(found[what], exact, rtol=tolerance, atol=tolerance)


@pytest.mark.slow
@every_family
def test_the_gradient_is_that_of_finite_differences(name: str) -> None:
    flow, edges, scheme = build(name), kite(), Scheme(RK4(), ConstantSteps(0.5))

    def end(z0: Tensor) -> Tensor:
        f = flow.bind(z0, edges)
        return solve(f, z0, (0.0, 1.0), scheme, f.tensors).ys[-1]

    function, parameters = by_parameters(flow, end)
    assert gradcheck(function, (normal(4, 3).requires_grad_(), *parameters), fast_mode=True)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "scheme"),
    [
        *((name, Scheme(Euler(), ConstantSteps(0.3))) for name in FAMILIES),
        ("gauss", Scheme(Dopri5(), PID(1e-6, 1e-8))),
        ("roughness", Scheme(Dopri5(), PID(1e-6, 1e-8))),
    ],
)
def test_a_batch_of_flows_agrees_with_each_flow_alone(name: str, scheme: Scheme) -> None:
    flows = [build(name, alpha=alpha, attached=alpha) for alpha in (0.2, 0.5, 0.8)]
    evolutions = [Evolution(flow, scheme=scheme, time=2.0) for flow in flows]
    edges, z = crooked(), normal(3, 6, 3)
    params, buffers = stack_module_state(evolutions)

    def run(params: dict[str, Tensor], z: Tensor) -> Tensor:
        out: Tensor = functional_call(evolutions[0], (params, buffers), (z, edges))
        return out

    together = vmap(run)(params, z)
    for k, evolution in enumerate(evolutions):
        torch.testing.assert_close(together[k], evolution(z[k], edges))


def test_a_batch_of_flows_decreases_every_energy() -> None:
    scheme = EnergyDecreasing(Scheme(Euler(), ConstantSteps(1.5)))
    edges, z, flow = crooked(), normal(3, 6, 3), build("gauss", mass=unit_mass)

    def run(z: Tensor) -> Tensor:
        f = flow.bind(z, edges)
        return torch.stack([f.energy(y) for y in solve(f, z, (0.0, 3.0), scheme, f.tensors).ys])

    before, after = vmap(run)(z).T
    assert bool((after < before).all())
