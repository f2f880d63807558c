"""Flows against loops from eqs. (7) and (8), the matrix exponential, and the invariants of diffusion."""

import math
from collections.abc import Callable

import pytest
import torch
from checks import GRAPHS, NORMALISERS, dense, kite, make, normal, pairs, ragged
from torch import Tensor

from beltrami.diffusivity import RandomWalk
from beltrami.flow import BeltramiFlow, Coupling, Flow, LinearField, LinearFlow, Rate, Source
from beltrami.graph import Both, Columns, Edges, Normaliser, Rows, squareplus_link
from beltrami.scheme import PID, RK4, ConstantSteps, Dopri5, Euler, Scheme, solve

graphs = pytest.mark.parametrize("edges", GRAPHS.values(), ids=GRAPHS.keys())
flows = pytest.mark.parametrize("flow", [BeltramiFlow, LinearFlow])
normalisers = pytest.mark.parametrize("normalise", NORMALISERS, ids=repr)
TIGHT = Scheme(Dopri5(), PID(1e-12, 1e-12))
T = 1.0


@torch.no_grad()
def evolved(flow: Flow, z0: Tensor, edges: Edges, scheme: Scheme = TIGHT, time: float = T) -> Tensor:
    return solve(flow.bind(z0, edges), z0, (0.0, time), scheme).ys[-1]


@graphs
@flows
def test_the_right_hand_side_is_eq_7(edges: Edges, flow: Callable[..., Flow]) -> None:
    diffusivity, z = make("ScaledDot", heads=2), normal(edges.num_nodes, 5)
    a, wanted = diffusivity(z, edges), torch.zeros_like(z)
    for e, (i, j) in enumerate(pairs(edges)):
        wanted[i] += a[e].detach() * (z[j] - z[i])
    torch.testing.assert_close(flow(diffusivity).bind(z, edges)(0.0, z), wanted)


@flows
@normalisers
def test_the_right_hand_side_is_eq_8(flow: Callable[..., Flow], normalise: Normaliser) -> None:
    edges, z, diffusivity = kite(), normal(4, 5), make("Cosine", normalise)
    matrix = dense(diffusivity(z, edges), edges) - torch.eye(4, dtype=torch.float64)
    torch.testing.assert_close(flow(diffusivity).bind(z, edges)(0.0, z), matrix @ z)


@flows
def test_rate_and_source_enter_as_alpha_and_beta_z0(flow: Callable[..., Flow]) -> None:
    edges, z0, z, diffusivity = kite(), normal(4, 5), normal(4, 5, seed=1), RandomWalk()
    f = flow(diffusivity, rate=Rate(0.3).double(), source=Source(-0.7).double()).bind(z0, edges)
    a = dense(diffusivity(z, edges), edges)
    wanted = 0.3 * (a @ z - z) - 0.7 * z0
    torch.testing.assert_close(f(0.0, z), wanted, atol=1e-7, rtol=0)  # 0.3 was rounded to single precision


@graphs
@flows
@pytest.mark.parametrize("kappa", [-0.8, 0.0, 0.5])
def test_a_coupling_multiplies_the_weights(edges: Edges, flow: Callable[..., Flow], kappa: float) -> None:
    diffusivity, z, n = make("Cosine", heads=2), normal(edges.num_nodes, 5), edges.num_nodes
    f = flow(diffusivity, rate=Rate(0.3).double(), coupling=Coupling(kappa).double()).bind(z, edges)
    a, wanted = diffusivity(z, edges).detach(), torch.zeros_like(z)
    receives = {i for i, _ in pairs(edges)}
    for e, (i, j) in enumerate(pairs(edges)):
        wanted[i] += kappa * a[e] * z[j]
    for i in range(n):
        wanted[i] -= z[i] if i in receives else 0.0
    torch.testing.assert_close(f(0.0, z).detach(), 0.3 * wanted, atol=1e-6, rtol=0)  # scalars of single precision


@flows
def test_two_coupled_nodes_decay_in_their_sum_and_their_difference(flow: Callable[..., Flow]) -> None:
    kappa, pair = Coupling(-0.6).double(), Edges.build(torch.tensor([[0, 1], [1, 0]]), num_nodes=2)
    z0 = normal(2, 3)
    z, k = evolved(flow(RandomWalk(), coupling=kappa), z0, pair), float(kappa().detach())
    torch.testing.assert_close(z[0] + z[1], (z0[0] + z0[1]) * math.exp((k - 1) * T))
    torch.testing.assert_close(z[0] - z[1], (z0[0] - z0[1]) * math.exp((-k - 1) * T))


@pytest.mark.slow
@flows
def test_a_coupled_flow_does_not_expand_the_largest_value(flow: Callable[..., Flow]) -> None:
    z0 = normal(4, 5)
    for kappa in (-0.99, 0.0, 0.99):
        z = evolved(flow(make("ScaledDot"), coupling=Coupling(kappa).double()), z0, kite(), time=3.0)
        assert float(z.abs().max()) <= float(z0.abs().max())


@flows
def test_time_does_not_enter(flow: Callable[..., Flow]) -> None:
    z = normal(4, 5)
    f = flow(make("ScaledDot")).bind(z, kite())
    assert torch.equal(f(0.0, z), f(7.0, z))


@pytest.mark.parametrize("name", ["ScaledDot", "ExpKernel"])
def test_the_beltrami_flow_uses_the_current_state_and_the_linear_flow_the_first(name: str) -> None:
    edges, z0, z = kite(), normal(4, 5), normal(4, 5, seed=1)
    live, frozen = (flow(make(name)).bind(z0, edges) for flow in (BeltramiFlow, LinearFlow))
    torch.testing.assert_close(live(0.0, z0), frozen(0.0, z0))
    assert float((live(0.0, z) - frozen(0.0, z)).detach().abs().max()) > 1e-3
    now = dense(make(name)(z, edges), edges) - torch.eye(4, dtype=torch.float64)
    torch.testing.assert_close(live(0.0, z), now @ z)
    then = dense(make(name)(z0, edges), edges) - torch.eye(4, dtype=torch.float64)
    torch.testing.assert_close(frozen(0.0, z), then @ z)


@graphs
@normalisers
def test_both_flows_agree_where_weights_do_not_depend_on_the_state(edges: Edges, normalise: Normaliser) -> None:
    z0, diffusivity = normal(edges.num_nodes, 3), RandomWalk(normalise)
    rate, source = Rate(0.4).double(), Source(0.2).double()
    scheme = Scheme(RK4(), ConstantSteps(0.5))
    live = evolved(BeltramiFlow(diffusivity, rate=rate, source=source), z0, edges, scheme)
    frozen = evolved(LinearFlow(diffusivity, rate=rate, source=source), z0, edges, scheme)
    torch.testing.assert_close(live, frozen, atol=1e-13, rtol=0)


@graphs
@flows
@pytest.mark.parametrize("name", ["ScaledDot", "Pearson", "RandomWalk"])
def test_constants_are_stationary_where_rows_sum_to_one(edges: Edges, flow: Callable[..., Flow], name: str) -> None:
    z0 = torch.tensor([1.0, -2.0, 0.5, 3.0, 0.0], dtype=torch.float64).expand(edges.num_nodes, 5).contiguous()
    f = flow(make(name, Rows(squareplus_link), heads=2)).bind(z0, edges)
    torch.testing.assert_close(f(0.0, z0), torch.zeros_like(z0))


@flows
def test_constants_are_not_stationary_where_columns_sum_to_one(flow: Callable[..., Flow]) -> None:
    z = torch.ones(4, 5, dtype=torch.float64)
    assert float(flow(RandomWalk(Columns())).bind(z, kite())(0.0, z).abs().max()) > 0.1


@pytest.mark.slow
@graphs
@flows
@pytest.mark.parametrize("name", ["ScaledDot", "ExpKernel", "RandomWalk"])
def test_mass_is_conserved_where_columns_sum_to_one(edges: Edges, flow: Callable[..., Flow], name: str) -> None:
    z0 = normal(edges.num_nodes, 5)
    z = evolved(flow(make(name, Columns(squareplus_link), heads=2)), z0, edges, Scheme(Dopri5(), PID(1e-6, 1e-6)))
    torch.testing.assert_close(z.sum(0), z0.sum(0), atol=1e-12, rtol=0)
    assert torch.equal(z, z0) == (edges.num_edges == 0)


@pytest.mark.slow
@graphs
@flows
@pytest.mark.parametrize("name", ["ScaledDot", "Additive", "RandomWalk"])
def test_values_keep_their_range_where_rows_sum_to_one(edges: Edges, flow: Callable[..., Flow], name: str) -> None:
    z0 = normal(edges.num_nodes, 5)
    scheme = Scheme(Euler(), ConstantSteps(1.0))  # with alpha tau <= 1 an Euler step is an average
    for rate in (None, Rate(0.6).double()):
        low, high = z0.amin(0), z0.amax(0)
        for time in (1.0, 2.0, 10.0):
            z = evolved(flow(make(name), rate=rate), z0, edges, scheme, time)
            assert bool((z >= low - 1e-14).all())
            assert bool((z <= high + 1e-14).all())


@pytest.mark.slow
@flows
def test_a_connected_graph_converges_to_a_constant(flow: Callable[..., Flow]) -> None:
    z = evolved(flow(make("ScaledDot")), normal(4, 5), kite(), Scheme(Dopri5(), PID(1e-9, 1e-9)), 60.0)
    assert float((z.amax(0) - z.amin(0)).max()) < 1e-6


@flows
@normalisers
def test_nodes_without_edges_do_not_move(flow: Callable[..., Flow], normalise: Normaliser) -> None:
    edges, z0 = ragged(weighted=True), normal(6, 5)
    scheme = Scheme(Dopri5(), PID(1e-6, 1e-6))
    z = evolved(flow(make("ScaledDot", normalise), rate=Rate(0.5).double()), z0, edges, scheme)
    assert torch.equal(z[5], z0[5])
    assert not torch.allclose(z[1], z0[1])


@flows
def test_a_graph_without_edges_does_not_move(flow: Callable[..., Flow]) -> None:
    z0 = normal(4, 5)
    assert torch.equal(evolved(flow(make("ScaledDot")), z0, GRAPHS["bare"]), z0)


@flows
@normalisers
def test_relabelling_the_nodes_relabels_the_flow(flow: Callable[..., Flow], normalise: Normaliser) -> None:
    edges, z0, names = ragged(), normal(6, 5), torch.tensor([3, 5, 0, 1, 4, 2])
    renamed = Edges.build(names[edges.edge_index], num_nodes=6)
    moved = torch.empty_like(z0).index_copy_(0, names, z0)
    scheme = Scheme(Euler(), ConstantSteps(0.25))
    there = evolved(flow(make("Cosine", normalise)), moved, renamed, scheme)
    torch.testing.assert_close(there[names], evolved(flow(make("Cosine", normalise)), z0, edges, scheme))


def generator(f: LinearField, nodes: int) -> Tensor:
    """Return the matrix of the linear part."""
    return f.operator(torch.eye(nodes, dtype=torch.float64))


@pytest.mark.slow
@graphs
@normalisers
def test_the_linear_flow_is_the_matrix_exponential(edges: Edges, normalise: Normaliser) -> None:
    z0, diffusivity = normal(edges.num_nodes, 5), make("ScaledDot", normalise, heads=2)
    anchored = normalise.connected(edges).double()
    matrix = dense(diffusivity(z0, edges).detach(), edges) - torch.diag(anchored)
    exact = torch.linalg.matrix_exp(T * matrix) @ z0
    torch.testing.assert_close(evolved(LinearFlow(diffusivity), z0, edges), exact, atol=1e-10, rtol=0)


@graphs
@pytest.mark.parametrize("normalise", [Rows(), Columns(squareplus_link), Both()], ids=repr)
def test_the_linear_flow_with_a_source_is_the_augmented_exponential(edges: Edges, normalise: Normaliser) -> None:
    """d/dt (z, 1) = ((M, b), (0, 0)) (z, 1) with M = alpha (A - I) and b = beta z(0)."""
    n, z0, diffusivity = edges.num_nodes, normal(edges.num_nodes, 5), make("Pearson", normalise)
    rate, source = Rate(0.35).double(), Source(0.8).double()
    m = float(rate().detach()) * (
        dense(diffusivity(z0, edges).detach(), edges) - torch.diag(normalise.connected(edges).double())
    )
    augmented = torch.zeros(n + 5, n + 5, dtype=torch.float64)
    augmented[:n, :n], augmented[:n, n:] = m, float(source.beta.detach()) * z0
    power = torch.linalg.matrix_exp(T * augmented)
    exact = power[:n, :n] @ z0 + power[:n, n:]
    found = evolved(LinearFlow(diffusivity, rate=rate, source=source), z0, edges)
    torch.testing.assert_close(found, exact, atol=1e-10, rtol=0)


def test_the_linear_flow_with_a_source_is_its_formula_with_phi_one() -> None:
    """z(T) = e^(TM) z(0) + T phi_1(TM) beta z(0), phi_1(x) = (e^x - 1) / x, through the eigenvectors of M."""
    edges, z0 = kite(), normal(4, 3)
    flow = LinearFlow(RandomWalk(Both()), source=Source(0.5).double())
    m = generator(flow.bind(z0, edges), 4)
    values, vectors = torch.linalg.eigh(m)
    phi = torch.where(values.abs() < 1e-12, torch.ones_like(values), torch.expm1(T * values) / (T * values))
    exact = vectors @ torch.diag((T * values).exp() + 0.5 * T * phi) @ vectors.T @ z0
    torch.testing.assert_close(evolved(flow, z0, edges), exact, atol=1e-10, rtol=0)


@pytest.mark.parametrize("tau", [1.0, 0.25])
def test_explicit_euler_is_eq_10_with_its_identity_restored(tau: float) -> None:
    """z(k+1) = Q(k) z(k) with Q = I + tau (A(z(k)) - I); eq. (10) as printed lacks the first identity."""
    edges, z, diffusivity = kite(), normal(4, 5), make("ScaledDot")
    found = evolved(BeltramiFlow(diffusivity), z, edges, Scheme(Euler(), ConstantSteps(tau)), 3 * tau)
    eye = torch.eye(4, dtype=torch.float64)
    for _ in range(3):
        a = dense(diffusivity(z, edges).detach(), edges)
        q = eye + tau * (a - eye)
        torch.testing.assert_close(q.sum(1), torch.ones(4, dtype=torch.float64))
        z = q @ z
    torch.testing.assert_close(found, z)


@pytest.mark.parametrize("tau", [1.0, 0.25])
def test_explicit_euler_of_the_linear_flow_is_a_power_of_q(tau: float) -> None:
    edges, z0, diffusivity = kite(), normal(4, 5), make("ScaledDot")
    eye = torch.eye(4, dtype=torch.float64)
    q = eye + tau * (dense(diffusivity(z0, edges).detach(), edges) - eye)
    found = evolved(LinearFlow(diffusivity), z0, edges, Scheme(Euler(), ConstantSteps(tau)), 5 * tau)
    torch.testing.assert_close(found, torch.linalg.matrix_power(q, 5) @ z0)


def test_print_shows_the_settings() -> None:
    flow = BeltramiFlow(RandomWalk(), rate=Rate(0.3), storage=torch.bfloat16)
    shown = repr(flow)
    assert "storage=torch.bfloat16" in shown
    assert "(diffusivity): RandomWalk(normalise=Rows(softmax_link))" in shown
    assert "(rate): Rate(start=0.3)" in shown
