"""Linear flows by the exponential integrator: every graph and normaliser, a whole model, a graph that is rewired."""

import math
from collections.abc import Callable

import pytest
import torch
from checks import GRAPHS, NORMALISERS, by_parameters, crooked, dense, kite, make, normal, ragged
from torch import Tensor
from torch.autograd import gradcheck
from toy import small_blend, two_cliques

from beltrami.flow import BeltramiFlow, Costed, Kinetic, LinearField, LinearFlow, Rate, Source
from beltrami.graph import Both, Columns, Edges, Normaliser, Rows, ops, squareplus_link
from beltrami.model import Evolution
from beltrami.scheme import RK4, ConstantSteps, Exponential, Scheme, solve
from beltrami.scheme.exponential import recurrence_sum
from beltrami.scheme.norm import WholeNorm
from beltrami.stencil import KNN

graphs = pytest.mark.parametrize("edges", GRAPHS.values(), ids=GRAPHS.keys())
normalisers = pytest.mark.parametrize("normalise", NORMALISERS, ids=repr)
TIGHT = Exponential(rtol=0.0, atol=1e-13)


def random_graph(seed: int) -> Edges:
    """Return thirty nodes: random edges, most in one direction, a hub, loops, and five nodes without edges."""
    generator = torch.Generator().manual_seed(seed)
    among = torch.randint(0, 25, (2, 60), generator=generator)
    hub = torch.stack((torch.arange(20), torch.full((20,), 3)))
    loops = torch.tensor([[1, 7, 24], [1, 7, 24]])
    edge_index = torch.cat((among, among[:, :25].flip(0), hub, loops), dim=1).unique(dim=1)
    weight = torch.rand(edge_index.shape[1], generator=generator, dtype=torch.float64) ** 3 + 1e-3
    return Edges.build(edge_index, num_nodes=30, weight=weight)


def bound_to(edges: Edges, normalise: Normaliser, z0: Tensor) -> LinearField:
    flow = LinearFlow(make("ScaledDot", normalise), rate=Rate(0.6).double(), source=Source(0.3).double())
    return flow.bind(z0, edges)


def matrix(f: LinearField) -> Tensor:
    """Return B: the weights, and a one for each node that does not move."""
    still = torch.zeros(f.edges.num_nodes, 1).double() if f.isolated is None else f.isolated.double()
    return dense(f.a, f.edges) + torch.diag(still[:, 0])


def exact(f: LinearField, z0: Tensor, t: float) -> Tensor:
    """Return e^(tM) z0 + t phi_1(tM) b as one exponential of M augmented by b."""
    n, d = z0.shape
    assert f.alpha is not None
    assert f.source is not None
    m = f.alpha * (matrix(f) - torch.eye(n, dtype=torch.float64))
    augmented = torch.cat((torch.cat((m, f.source), 1), m.new_zeros(d, n + d)))
    power: Tensor = torch.linalg.matrix_exp(t * augmented)
    return power[:n, :n] @ z0 + power[:n, n:]


@graphs
@normalisers
def test_products_are_those_of_the_matrix(edges: Edges, normalise: Normaliser) -> None:
    z, other = normal(edges.num_nodes, 5), normal(edges.num_nodes, 5, seed=1)
    f = bound_to(edges, normalise, z)
    b = matrix(f).detach()
    out, pulled, sums = (
        torch.empty(1, *z.shape).double(),
        torch.empty(1, *z.shape).double(),
        torch.zeros_like(f.a)[None],
    )
    a, y, p, half = f.a.detach()[None], z[None], other[None], torch.full((1,), 0.5).double()
    f.pattern.advance(out, a, y, factor=2.0, previous=(-1.0, p))
    torch.testing.assert_close(out[0], 2 * b @ z - other)
    f.pattern.pull(pulled, a, p, factor=2.0, previous=(-1.0, p), cotangent=(half, y), edge_sums=(y, sums))
    torch.testing.assert_close(pulled[0], 2 * b.T @ other - other + 0.5 * z)
    each = [2 * torch.dot(other[i], z[j]) for i, j in zip(edges.i.tolist(), edges.j.tolist(), strict=True)]
    torch.testing.assert_close(sums[0], torch.stack(each) if each else torch.zeros(0).double())
    assert f.alpha is not None
    assert f.source is not None
    torch.testing.assert_close(f(0.0, z), f.alpha * (b @ z - z) + f.source)


def test_the_mask_of_nodes_that_do_not_move_is_none_if_all_move() -> None:
    assert bound_to(kite(), Rows(), normal(4, 5)).isolated is None
    isolated = bound_to(ragged(), Rows(), normal(6, 5)).isolated
    assert isolated is not None
    assert isolated[:, 0].tolist() == [0, 0, 0, 1, 0, 1]  # 3 only sends, 5 has no edge
    isolated = bound_to(ragged(), Columns(), normal(6, 5)).isolated
    assert isolated is not None
    assert isolated[:, 0].tolist() == [0, 0, 0, 0, 1, 1]  # 4 only receives


@normalisers
def test_no_matrix_of_weights_expands_in_the_norm_of_its_normaliser(normalise: Normaliser) -> None:
    edges = random_graph(0)
    f = bound_to(edges, normalise, normal(30, 5))
    assert f.norm == {Rows: math.inf, Columns: 1.0, Both: 2.0}[type(normalise)]
    assert float(torch.linalg.matrix_norm(matrix(f).detach(), f.norm)) <= 1 + 1e-12


@pytest.mark.slow
@graphs
@normalisers
@pytest.mark.parametrize("t", [0.01, 2.0, 18.0])
def test_the_flow_is_the_matrix_exponential(edges: Edges, normalise: Normaliser, t: float) -> None:
    z0 = normal(edges.num_nodes, 5)
    f = bound_to(edges, normalise, z0)
    with torch.no_grad():
        torch.testing.assert_close(solve(f, z0, (0.0, t), TIGHT).ys[1], exact(f, z0, t), atol=1e-10, rtol=0)


@pytest.mark.slow
@normalisers
@pytest.mark.parametrize(("seed", "tolerance"), [(0, 1e-2), (1, 1e-5), (2, 1e-9)])
@torch.no_grad()
def test_the_error_is_within_the_tolerance_on_any_graph(normalise: Normaliser, seed: int, tolerance: float) -> None:
    edges, z0 = random_graph(seed), normal(30, 5, seed=seed)
    f = bound_to(edges, normalise, z0)
    ys = solve(f, z0, (0.0, 3.0, 18.0, 54.0), Exponential(tolerance, 0.0)).ys
    for y, t in zip(ys[1:], (3.0, 18.0, 54.0), strict=True):
        assert float(WholeNorm().mean(y - exact(f, z0, t), f.norm)) <= tolerance * float(WholeNorm().mean(z0, f.norm))


@torch.no_grad()
def test_nodes_without_edges_move_by_their_source_only() -> None:
    z0, edges = normal(6, 5), ragged()
    f = bound_to(edges, Rows(), z0)
    end = solve(f, z0, (0.0, 4.0), TIGHT).ys[1]
    torch.testing.assert_close(end[5], z0[5] * (1 + 4.0 * 0.3), atol=1e-7, rtol=0)  # beta is rounded to single


@pytest.mark.parametrize("normalise", [Rows(squareplus_link), Columns(), Both(squareplus_link)], ids=repr)
def test_the_gradient_is_that_of_finite_differences(normalise: Normaliser) -> None:
    """Also through the diffusivities, by every projection, alpha and beta."""
    flow = LinearFlow(make("ScaledDot", normalise, heads=2), rate=Rate(0.6).double(), source=Source(0.3).double())
    edges = ragged(weighted=True)

    def ends(z0: Tensor) -> Tensor:
        return solve(flow.bind(z0, edges), z0, (0.0, 1.0, 3.0), Exponential(1e-6, 0.0)).ys

    function, parameters = by_parameters(flow, ends)
    assert gradcheck(function, (normal(6, 5).requires_grad_(), *parameters), fast_mode=True)


@pytest.mark.parametrize("make_edges", [kite, ragged])
def test_the_gradient_is_that_of_the_matrix_exponential(make_edges: Callable[[], Edges]) -> None:
    edges = make_edges()
    z0 = normal(edges.num_nodes, 5).requires_grad_()
    f = bound_to(edges, Both(), z0)
    assert f.alpha is not None
    assert f.source is not None
    inputs = (f.a, f.alpha, f.source, z0)
    found = torch.autograd.grad(solve(f, z0, (0.0, 7.0), TIGHT).ys[1].square().sum(), inputs, retain_graph=True)
    wanted = torch.autograd.grad(exact(f, z0, 7.0).square().sum(), inputs)
    for one, other in zip(found, wanted, strict=True):
        torch.testing.assert_close(one, other, atol=1e-9, rtol=1e-9)


@pytest.mark.slow
def test_a_whole_model_agrees_with_short_steps_in_logits_and_every_gradient() -> None:
    toy = two_cliques()
    results = []
    for scheme in (Scheme(RK4(), ConstantSteps(0.02)), Exponential(1e-10, 0.0)):
        model = small_blend(scheme=scheme, time=6.0, positions=True, loops=True).double()
        logits = model(toy.x.double(), toy.edge_index, pos=toy.pos.double())
        torch.nn.functional.cross_entropy(logits, toy.y).backward()
        results.append((logits.detach(), {name: p.grad for name, p in model.named_parameters()}))
    (logits, gradients), (found, found_gradients) = results
    torch.testing.assert_close(found, logits, atol=1e-8, rtol=0)
    assert len(gradients) >= 10
    for name, gradient in gradients.items():
        assert gradient is not None, name
        assert float(gradient.abs().max()) > 0, name
        torch.testing.assert_close(found_gradients[name], gradient, atol=1e-8, rtol=0, msg=name)


def test_a_rewired_graph_keeps_the_source_of_the_start() -> None:
    z0, edges = normal(6, 5), ragged()
    ends = []
    for scheme in (Scheme(RK4(), ConstantSteps(0.01)), TIGHT):
        flow = LinearFlow(make("ScaledDot"), rate=Rate(0.6).double(), source=Source(0.3).double())
        evolution = Evolution(flow, scheme=scheme, time=2.0, stencil=KNN(2), remesh=0.5)
        ends.append(evolution(z0, edges).detach())
    torch.testing.assert_close(ends[1], ends[0], atol=1e-8, rtol=0)


def test_a_nonlinear_flow_is_refused() -> None:
    z0 = normal(4, 5)
    with pytest.raises(ValueError, match="linear fields only, and BeltramiField is not one: freeze the attention"):
        solve(BeltramiFlow(make("ScaledDot")).bind(z0, kite()), z0, (0.0, 1.0), TIGHT)


def test_running_costs_are_refused() -> None:
    z0 = normal(4, 5)
    costed = Costed(LinearFlow(make("ScaledDot")).bind(z0, kite()), [Kinetic(0.1)], z0)
    with pytest.raises(ValueError, match=r"Costed is not one: .* leave out running costs"):
        solve(costed, costed.join(z0), (0.0, 1.0), TIGHT)


@pytest.mark.slow
@normalisers
@pytest.mark.parametrize("rtol", [1e-3, 1e-6])
def test_a_batch_without_host_synchronisation_keeps_the_tolerance(normalise: Normaliser, rtol: float) -> None:
    """A batch of fields with slow and fast rates under vmap, against the matrix exponential."""
    rates = torch.tensor([0.01, 0.3, 0.99], dtype=torch.float64)
    for edges in (kite(), crooked(), ragged(), random_graph(seed=0)):
        z = normal(edges.num_nodes, 5)
        f = bound_to(edges, normalise, z)

        def field(rate: Tensor, f: LinearField = f) -> LinearField:
            isolated = None if f.isolated is None else f.isolated[:, 0]
            return LinearField(f.a.detach(), f.edges, isolated=isolated, alpha=rate, source=f.source, norm=f.norm)

        ends = torch.func.vmap(lambda rate: solve(field(rate), z, (0.0, 18.0), Exponential(rtol, 0.0)).ys[-1])(rates)  # noqa: B023
        for end, rate in zip(ends, rates, strict=True):
            error = WholeNorm().mean((end - exact(field(rate), z, 18.0)).detach(), f.norm)
            assert float(error) <= rtol * float(WholeNorm().mean(z, f.norm))


def test_structural_symmetry_says_whether_every_edge_has_its_reverse() -> None:
    assert kite().structurally_symmetric
    assert not ragged().structurally_symmetric


@pytest.mark.slow
@pytest.mark.parametrize(("shared", "ts"), [(False, (0.0, 1.0)), (True, (0.0, 0.2, 0.5))], ids=["own", "shared"])
def test_by_kernels_one_field_or_a_batch_is_what_it_is_without(
    kernels: str, shared: bool, ts: tuple[float, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Values and gradients, beside a node that stands still."""
    edges = Edges.build(kite().with_loops(1.0).edge_index, num_nodes=5)
    isolated, z, rates = torch.tensor([False] * 4 + [True]), normal(2, 5, 3), torch.tensor([0.3, 0.9]).double()
    scores = [normal(edges.num_edges, 1, seed=seed).to(kernels) for seed in (1, 2)]  # where the kernels run
    a = torch.stack([Rows()(score, edges.to(kernels))[:, 0] for score in scores])
    which = [0, 0] if shared else [0, 1]

    def ends(z: Tensor, a: Tensor, rate: Tensor) -> Tensor:
        field = LinearField(a, edges.to(z.device), isolated=isolated.to(z.device), alpha=rate, norm=math.inf)
        return solve(field, z, ts, Exponential(0.0, 1e-11)).ys

    def alone(z: Tensor, a: Tensor, rates: Tensor) -> Tensor:
        return torch.stack([ends(z[r], a[which[r]], rates[r]) for r in range(2)])

    def together(z: Tensor, a: Tensor, rates: Tensor) -> Tensor:
        return torch.func.vmap(ends, in_dims=(0, None if shared else 0, 0))(z, a[0] if shared else a, rates)

    def derivatives(run: Callable[..., Tensor], where: str) -> list[Tensor]:
        inputs = [x.to(where, copy=True).requires_grad_() for x in (z, a, rates)]
        ys = run(*inputs)
        return [x.cpu() for x in (ys.detach(), *torch.autograd.grad((ys[:, 1:].sin() + ys[:, 1:]).sum(), inputs))]

    monkeypatch.setattr(recurrence_sum, "prefers_single_runs", lambda y: False)
    found = derivatives(alone, kernels), derivatives(together, kernels)
    monkeypatch.setattr(recurrence_sum, "uses_triton", lambda _: False)
    with ops.use("reference"):
        wanted = derivatives(alone, "cpu")
    for way in found:
        for x, y in zip(way, wanted, strict=True):
            torch.testing.assert_close(x, y, atol=1e-10, rtol=0)
