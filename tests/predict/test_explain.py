"""Shares agree with the matrix exponential, with setting a state to zero, with walks and with finite differences."""

import math
from collections.abc import Callable
from itertools import pairwise

import pytest
import torch
from checks import crowd, kite, make, normal, pairs, ragged
from torch import Tensor
from toy import two_cliques

from beltrami.diffusivity import RandomWalk, ScaledDot
from beltrami.energy import Constant, PolyakovAction
from beltrami.flow import (
    BeltramiFlow,
    Coupling,
    Flow,
    FrozenPositions,
    LinearField,
    LinearFlow,
    PerInterval,
    PolyakovFlow,
    Rate,
    Source,
    TimeVarying,
)
from beltrami.graph import Both, Columns, Edges, Normaliser, Rows
from beltrami.joint import Joint
from beltrami.model import BLEND, Decoder, Encoder, Evolution, Inputs
from beltrami.model.baseline import Architecture, cgnn, gat, gcn
from beltrami.predict.explain import explain, explain_flow
from beltrami.predict.shares import Explanation, Margin
from beltrami.scheme import (
    PID,
    RK4,
    Checkpointed,
    ConstantSteps,
    Continuous,
    CrankNicolson,
    Dopri5,
    Exponential,
    Scheme,
    TimeStepping,
    solve,
)
from beltrami.stencil import KNN, Isolated, Keep, Loops, Stencil
from beltrami.train import seeded

FEATURES, CHANNELS, CLASSES, TIME = 6, 5, 3, 1.7
TIGHT = Exponential(1e-14, 1e-14)
GRAPHS: dict[str, Callable[[], Edges]] = {
    "kite": kite,
    "hubs and weights": crowd,
    "one-way and weights": lambda: ragged(weighted=True),
}


def blend(
    flow: Flow, *, scheme: TimeStepping = TIGHT, stencil: Stencil | None = None, remesh: float | None = None
) -> BLEND:
    """A model in double precision with batch normalisation, whose running statistics are those of no batch."""
    with seeded(2):
        evolution = Evolution(flow, scheme=scheme, time=3.0, stencil=stencil or Keep(), remesh=remesh)
        model = BLEND.from_parts(
            Encoder(FEATURES, CHANNELS), evolution, Decoder(CHANNELS, CLASSES), batch_norm=True
        ).double()
    assert model.norm is not None
    assert model.norm.running_mean is not None
    model.norm.running_mean.copy_(normal(CHANNELS, seed=8))
    return model.eval()


def linear_flow(normalise: Normaliser | None = None, *, rate: bool = True, source: bool = True) -> LinearFlow:
    a = make("ScaledDot", normalise, heads=2)
    return LinearFlow(a, rate=Rate(0.7) if rate else None, source=Source(0.3) if source else None)


def prepared(model: BLEND, edges: Edges) -> Inputs:
    return model.prepare(normal(edges.num_nodes, FEATURES, seed=1), edges)


def decoder_gradient(model: BLEND, z: Tensor, explanation: Explanation) -> Tensor:
    """g of ReLU and a linear map: the difference of two rows of its matrix, where z is positive."""
    assert explanation.other is not None
    rows = model.xi.linear.weight.detach()
    g: Tensor = (rows[explanation.predicted] - rows[explanation.other]) * (z > 0)
    return g


def solution_operator(a: Tensor, mesh: Edges, flow: LinearFlow, time: float) -> Tensor:
    """The matrix S of z(T) = S z(0), by the exponential of a dense matrix with the source as more unknowns."""
    n, isolated = mesh.num_nodes, flow.diffusivity.normalise.isolated(mesh)
    matrix = torch.zeros(n, n, dtype=torch.float64).index_put((mesh.i, mesh.j), a.detach(), accumulate=True)
    matrix = matrix - torch.eye(n) * (1 if isolated is None else (~isolated).double())
    alpha = 1.0 if flow.rate is None else float(flow.rate().detach())
    beta = 0.0 if flow.source is None else float(flow.source.beta.detach())
    joint = torch.cat((torch.cat((alpha * matrix, beta * torch.eye(n)), 1), torch.zeros(n, 2 * n)))
    whole: Tensor = torch.linalg.matrix_exp(time * joint)
    return whole[:n, :n] + whole[:n, n:]


@pytest.mark.slow
@pytest.mark.parametrize("stencil", [Keep(), Loops(0.4), KNN(2)], ids=repr)
@pytest.mark.parametrize("graph", GRAPHS)
def test_shares_are_the_row_of_the_solution_operator(graph: str, stencil: Stencil) -> None:
    flow = linear_flow()
    model, edges = blend(flow, stencil=stencil), GRAPHS[graph]()
    inputs = prepared(model, edges)
    z0 = model.encode(inputs).detach()
    mesh = stencil(z0, edges)
    operator = solution_operator(flow.diffusivity(z0, mesh), mesh, flow, TIME)
    for node in range(edges.num_nodes):
        explanation = explain(model, inputs, node, time=TIME)
        g = decoder_gradient(model, (operator @ z0)[node], explanation)
        torch.testing.assert_close(explanation.node_shares, operator[node] * (z0 @ g), atol=1e-11, rtol=0)
        assert explanation.method == "exact"


@pytest.mark.slow
@pytest.mark.parametrize(("rate", "source"), [(True, True), (False, False)])
@pytest.mark.parametrize("normalise", [Rows(), Columns(), Both()], ids=repr)
@pytest.mark.parametrize("graph", GRAPHS)
def test_a_share_is_the_loss_from_setting_one_state_to_zero_and_solving_again(
    graph: str, normalise: Normaliser, rate: bool, source: bool
) -> None:
    flow = linear_flow(normalise, rate=rate, source=source)
    model, edges = blend(flow), GRAPHS[graph]()
    inputs = prepared(model, edges)
    z0 = model.encode(inputs).detach()
    held, isolated = flow.diffusivity(z0, edges).detach(), normalise.isolated(edges)

    def end(start: Tensor) -> Tensor:
        alpha = None if flow.rate is None else flow.rate().detach()
        b = None if flow.source is None else flow.source(start).detach()
        f = LinearField(held, edges, isolated=isolated, alpha=alpha, source=b, norm=normalise.norm)
        return solve(f, start, (0.0, TIME), TIGHT).ys[-1]

    for node in (0, 2):
        explanation, z = explain(model, inputs, node, time=TIME), end(z0)[node]
        g = decoder_gradient(model, z, explanation)
        for j in range(edges.num_nodes):
            without = z0.index_fill(0, torch.tensor([j]), 0.0)
            assert float(g @ (z - end(without)[node])) == pytest.approx(float(explanation.node_shares[j]), abs=1e-6)


def test_shares_and_constant_sum_to_the_margin_of_the_logits_at_that_time() -> None:
    model = blend(linear_flow())
    inputs = prepared(model, crowd())
    for time in (0.0, 0.4, 3.0):
        logits = model.logits_along(inputs, (0.0, time))[-1].detach() if time else model.xi(model.encode(inputs))
        for node in range(inputs.edges.num_nodes):
            explanation = explain(model, inputs, node, time=time)
            largest, second = logits[node].topk(2).values.tolist()
            assert explanation.margin == pytest.approx(largest - second, abs=1e-12)
            total = explanation.constant + float(explanation.node_shares.sum())
            assert total == pytest.approx(explanation.margin, abs=1e-12)
            assert abs(explanation.remainder) < 1e-12
            assert explanation.predicted == int(logits[node].argmax())


SCHEMES = [
    Exponential(1e-3, 1e-3),
    Scheme(RK4(), ConstantSteps(0.5)),
    Scheme(Dopri5(), PID(1e-4, 1e-6)),
    Scheme(Dopri5(), PID(1e-4, 1e-6), adjoint=Checkpointed()),
    pytest.param(Scheme(CrankNicolson(1e-6, 1e-6), ConstantSteps(0.5)), marks=pytest.mark.slow),
]


@pytest.mark.slow
@pytest.mark.parametrize("scheme", SCHEMES, ids=repr)
def test_shares_sum_to_the_margin_in_single_precision_at_the_tolerances_of_training(scheme: TimeStepping) -> None:
    model = blend(linear_flow(), scheme=scheme, stencil=Loops()).float()
    toy = two_cliques()
    inputs = model.prepare(toy.x, toy.edge_index)
    for node in range(0, 20, 3):
        explanation = explain(model, inputs, node, time=2.3)
        largest, second = model.logits_along(inputs, (0.0, 2.3))[-1, node].detach().topk(2).values.tolist()
        assert explanation.margin == pytest.approx(largest - second, abs=1e-5)
        total = explanation.constant + float(explanation.node_shares.sum())
        assert total == pytest.approx(explanation.margin, abs=1e-4)


def test_the_continuous_adjoint_gives_the_shares_of_direct_differentiation() -> None:
    inputs, found = None, []
    for scheme in (TIGHT, Scheme(Dopri5(), PID(1e-9, 1e-9), adjoint=Continuous())):
        model = blend(linear_flow(), scheme=scheme)
        inputs = prepared(model, crowd())
        found.append(explain(model, inputs, 3, time=TIME))
    torch.testing.assert_close(found[1].node_shares, found[0].node_shares, atol=1e-6, rtol=0)
    assert found[0].edge_shares is not None
    assert found[1].edge_shares is not None
    torch.testing.assert_close(found[1].edge_shares, found[0].edge_shares, atol=1e-6, rtol=0)


def test_weights_are_held_on_every_graph_of_a_flow_that_rewires() -> None:
    flow, stencil = linear_flow(source=False), KNN(2)
    model = blend(flow, stencil=stencil, remesh=0.6)
    inputs = prepared(model, crowd())
    z0 = model.encode(inputs).detach()
    operator, meshes = torch.eye(9, dtype=torch.float64), []
    for t0, t1 in pairwise((0.0, 0.6, 1.2, TIME)):
        z = operator @ z0
        mesh = stencil(z, inputs.edges)
        operator = solution_operator(flow.diffusivity(z, mesh), mesh, flow, t1 - t0) @ operator
        meshes.append(mesh)
    explanation = explain(model, inputs, 4, time=TIME)
    g = decoder_gradient(model, (operator @ z0)[4], explanation)
    torch.testing.assert_close(explanation.node_shares, operator[4] * (z0 @ g), atol=1e-11, rtol=0)
    known = {edge for mesh in meshes for edge in pairs(mesh)}
    assert {(int(i), int(j)) for j, i in explanation.edge_index.T} == known


@pytest.mark.parametrize("graph", GRAPHS)
def test_the_share_of_an_edge_is_the_derivative_by_the_logarithm_of_its_weight(graph: str) -> None:
    flow, step = linear_flow(), 1e-5
    model, edges = blend(flow), GRAPHS[graph]()
    inputs = prepared(model, edges)
    z0 = model.encode(inputs).detach()
    a = flow.diffusivity(z0, edges).detach()
    explanation = explain(model, inputs, 0, time=TIME)
    g = decoder_gradient(model, (solution_operator(a, edges, flow, TIME) @ z0)[0], explanation)
    assert explanation.edge_shares is not None
    for (j, i), share in zip(explanation.edge_index.T.tolist(), explanation.edge_shares.tolist(), strict=True):
        same = (edges.j == j) & (edges.i == i)  # parallel edges count as one
        ends = [
            float((solution_operator(torch.where(same, a * math.exp(h), a), edges, flow, TIME) @ z0)[0] @ g)
            for h in (step, -step)
        ]
        assert (ends[0] - ends[1]) / (2 * step) == pytest.approx(share, abs=1e-8)


def test_the_share_of_an_edge_sums_walks_each_as_often_as_it_uses_the_edge() -> None:
    flow, edges, time = linear_flow(rate=False, source=False), kite(), 0.5
    model = blend(flow)
    inputs = prepared(model, edges)
    z0 = model.encode(inputs).detach()
    a = flow.diffusivity(z0, edges).detach().tolist()
    explanation = explain(model, inputs, 3, time=time)
    v = (z0 @ decoder_gradient(model, model.evolution.trajectory(z0, edges, (0.0, time)).z[3], explanation)).tolist()
    sums = dict.fromkeys(pairs(edges), 0.0)

    def walk(at: int, weight: float, used: tuple[tuple[int, int], ...]) -> None:
        probability = math.exp(-time) * time ** len(used) / math.factorial(len(used))
        for edge in used:
            sums[edge] += probability * weight * v[at]
        for e, (i, j) in enumerate(pairs(edges)):
            if i == at and len(used) < 9:
                walk(j, weight * a[e], (*used, (i, j)))

    walk(3, 1.0, ())
    assert explanation.edge_shares is not None
    for (j, i), share in zip(explanation.edge_index.T.tolist(), explanation.edge_shares.tolist(), strict=True):
        assert sums[i, j] == pytest.approx(share, abs=1e-7)


def test_all_that_comes_from_a_node_with_one_edge_passes_along_it() -> None:
    edges = Edges.build(torch.tensor([[0], [1]]), num_nodes=2)
    model = blend(LinearFlow(RandomWalk()))
    explanation = explain(model, prepared(model, edges), 1, time=TIME)
    assert explanation.edge_shares is not None
    assert float(explanation.edge_shares[0]) == pytest.approx(float(explanation.node_shares[0]), abs=1e-12)


def live_end(flow: BeltramiFlow, edges: Edges, factor: Tensor, z0: Tensor, *, steps: int = 30) -> Tensor:
    """The end of the live flow whose weights are multiplied by ``factor``, by RK4 written out."""

    def f(z: Tensor) -> Tensor:
        assert flow.rate is not None
        assert flow.source is not None
        a = torch.zeros(len(z0), len(z0), dtype=torch.float64)
        a = a.index_put((edges.i, edges.j), factor * flow.diffusivity(z, edges).detach(), accumulate=True)
        a = a if flow.coupling is None else flow.coupling().detach() * a
        dz: Tensor = flow.rate().detach() * (a @ z - z) + flow.source(z0).detach()
        return dz

    z, dt = z0, TIME / steps
    for _ in range(steps):
        k1 = f(z)
        k2 = f(z + dt / 2 * k1)
        k3 = f(z + dt / 2 * k2)
        z = z + dt / 6 * (k1 + 2 * k2 + 2 * k3 + f(z + dt * k3))
    return z


@pytest.mark.slow
@pytest.mark.parametrize("coupling", [None, Coupling(-0.4)], ids=["uncoupled", "coupled"])
def test_shares_of_a_live_flow_are_derivatives_along_the_trajectory(coupling: Coupling | None) -> None:
    flow = BeltramiFlow(make("ScaledDot", heads=2), rate=Rate(0.7), source=Source(0.3), coupling=coupling)
    model, edges = blend(flow, scheme=Scheme(Dopri5(), PID(1e-9, 1e-9))), kite()
    inputs, step = prepared(model, edges), 1e-4
    z0, ones = model.encode(inputs).detach(), torch.ones(edges.num_edges, dtype=torch.float64)
    explanation = explain(model, inputs, 2, time=TIME)
    g = decoder_gradient(model, live_end(flow, edges, ones, z0)[2], explanation)

    def slope(state: Tensor, factor: Tensor) -> float:
        """The derivative in the direction of ``state`` and ``factor``."""
        ends = [live_end(flow, edges, ones + h * factor, z0 + h * state)[2] for h in (step, -step)]
        return float(g @ (ends[0] - ends[1])) / (2 * step)

    for j, share in enumerate(explanation.node_shares.tolist()):
        scaled = torch.eye(4, dtype=torch.float64)[j][:, None] * z0
        assert slope(scaled, 0 * ones) == pytest.approx(share, abs=1e-6)
    assert explanation.edge_shares is not None
    for (j, i), share in zip(explanation.edge_index.T.tolist(), explanation.edge_shares.tolist(), strict=True):
        chosen = ((edges.j == j) & (edges.i == i)).double()
        assert slope(0 * z0, chosen) == pytest.approx(share, abs=1e-6)
    assert explanation.method == "linearised"
    total = explanation.constant + float(explanation.node_shares.sum())
    assert explanation.remainder == pytest.approx(explanation.margin - total, abs=1e-12)
    assert abs(explanation.remainder) > 1e-3


WRAPPED: dict[str, tuple[Flow, str]] = {
    "frozen positions": (FrozenPositions(linear_flow(), Joint(2, 3)), "exact"),
    "time-varying": (TimeVarying([linear_flow(), linear_flow(Both())], PerInterval(2)), "exact"),
    "live part": (TimeVarying([linear_flow(), BeltramiFlow(make("ScaledDot"))], PerInterval(2)), "linearised"),
    "gradient flow": (PolyakovFlow(PolyakovAction(Constant())), "linearised"),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", WRAPPED)
def test_other_flows_have_shares_of_nodes_and_none_of_edges(name: str) -> None:
    flow, method = WRAPPED[name]
    model = blend(flow, scheme=Scheme(RK4(), ConstantSteps(0.1)))
    explanation = explain(model, prepared(model, kite()), 1, time=TIME)
    assert explanation.method == method
    assert explanation.edge_shares is None
    assert explanation.top_edges(3) == []
    if method == "exact":
        assert abs(explanation.remainder) < 1e-12


@pytest.mark.parametrize(("time", "stencil"), [(0.0, Keep()), (TIME, Isolated())], ids=repr)
def test_without_time_or_edges_the_node_has_the_whole_share(time: float, stencil: Stencil) -> None:
    model = blend(linear_flow(), stencil=stencil)
    explanation = explain(model, prepared(model, kite()), 2, time=time)
    assert [node for node, _ in explanation.top_nodes(4)] == [2]
    assert explanation.margin == pytest.approx(explanation.constant + float(explanation.node_shares[2]), abs=1e-12)


def test_a_linear_classifier_of_diffused_features_is_explained_by_its_logits_as_state() -> None:
    edges, x, w, b = crowd(), normal(9, FEATURES), normal(CLASSES, FEATURES, seed=1), normal(CLASSES, seed=2)
    evolution = Evolution(LinearFlow(RandomWalk()), scheme=TIGHT, time=2.0)
    features = explain_flow(evolution, x, edges, lambda z: w @ z + b, 3, time=2.0)
    logits = explain_flow(evolution, x @ w.t(), edges, lambda z: z + b, 3, time=2.0)
    torch.testing.assert_close(features.node_shares, logits.node_shares, atol=1e-11, rtol=0)
    assert logits.constant == pytest.approx(float(b[logits.predicted] - b[logits.other]), abs=1e-12)


def test_classes_can_be_named_and_labels_stand_alone() -> None:
    model = blend(linear_flow())
    inputs = prepared(model, kite())
    logits = model.logits_along(inputs, (0.0, TIME))[-1, 1].tolist()
    assert explain(model, inputs, 1, time=TIME, predicted=0, other=2).margin == pytest.approx(logits[0] - logits[2])
    alone = explain(model, inputs, 1, time=TIME, predicted=2, exclusive=False)
    assert alone.other is None
    assert alone.margin == pytest.approx(logits[2])
    assert alone.constant == pytest.approx(float(model.xi.linear.bias[2].detach()))


def test_the_mean_explains_the_mean_of_logits() -> None:
    models = [blend(linear_flow(), stencil=Loops()), blend(linear_flow(Both()), stencil=KNN(2)), blend(linear_flow())]
    inputs = prepared(models[0], crowd())
    logits = torch.stack([model.logits_along(inputs, (0.0, TIME))[-1, 4] for model in models]).mean(0).detach()
    margin = Margin.of(logits)
    each = [explain(model, inputs, 4, time=TIME, predicted=margin.predicted, other=margin.other) for model in models]
    mean = Explanation.mean(each)
    assert mean.margin == pytest.approx(float(margin(logits)), abs=1e-12)
    assert mean.constant + float(mean.node_shares.sum()) == pytest.approx(mean.margin, abs=1e-12)
    assert mean.edge_shares is not None
    total = sum(float(one.edge_shares.sum()) for one in each if one.edge_shares is not None)
    assert float(mean.edge_shares.sum()) == pytest.approx(total / 3, abs=1e-12)


ARCHITECTURE = Architecture(FEATURES, CLASSES, width=8, stencil=Loops())


def test_a_linear_network_has_exact_shares() -> None:
    with seeded(0):
        model = gcn(Architecture(FEATURES, CLASSES, depth=1)).double()
    edges, x = kite(), normal(4, FEATURES)
    explanation = explain(model, model.prepare(x, edges), 2, time=0.0)
    assert explanation.other is not None
    zero = model(torch.zeros_like(x), edges).detach()[2]
    assert explanation.constant == pytest.approx(float(zero[explanation.predicted] - zero[explanation.other]))
    for j in range(4):
        without = model(x.index_fill(0, torch.tensor([j]), 0.0), edges).detach()[2]
        less = float(without[explanation.predicted] - without[explanation.other])
        assert explanation.margin - less == pytest.approx(float(explanation.node_shares[j]), abs=1e-12)
    assert explanation.method == "integrated gradients"
    assert explanation.edge_shares is None


@pytest.mark.slow
def test_networks_without_a_flow_have_complete_shares_of_their_neighbourhood() -> None:
    toy = two_cliques(6)
    with seeded(0):
        layered = gcn(ARCHITECTURE), gat(ARCHITECTURE, heads=2)
        continuous = cgnn(ARCHITECTURE, scheme=Scheme(RK4(), ConstantSteps(0.5)), time=2.0)
    for model in (*layered, continuous):
        inputs = model.prepare(toy.x, toy.edge_index)
        explanation = explain(model, inputs, 3, time=model.time)
        assert abs(explanation.remainder) < 1e-2 * abs(explanation.margin)
        total = explanation.constant + float(explanation.node_shares.sum()) + explanation.remainder
        assert total == pytest.approx(explanation.margin, abs=1e-6)
        far = explanation.hops() > 2
        assert bool((explanation.node_shares[far] == 0).all()) == (model.time == 0)


def test_sparse_inputs_have_the_shares_of_dense_ones() -> None:
    toy = two_cliques(5)
    x = toy.x * (toy.x > 0)
    with seeded(0):
        model = gcn(Architecture(FEATURES, CLASSES, positions=3, width=8))
    found = [
        explain(model, model.prepare(each, toy.edge_index, pos=toy.pos), 2, time=0.0) for each in (x, x.to_sparse_coo())
    ]
    torch.testing.assert_close(found[0].node_shares, found[1].node_shares)


def test_the_model_is_put_in_evaluation_mode_and_keeps_its_parameters() -> None:
    model = blend(linear_flow())
    before = {name: value.clone() for name, value in model.state_dict().items()}
    explanation = explain(model.train(), prepared(model, kite()), 1, time=TIME)
    assert not model.training
    assert all(torch.equal(value, before[name]) for name, value in model.state_dict().items())
    assert all(parameter.grad is None for parameter in model.parameters())
    again = explain(model, prepared(model, kite()), 1, time=TIME)
    assert torch.equal(again.node_shares, explanation.node_shares)


@pytest.mark.parametrize("node", [-1, 4])
def test_a_node_outside_the_graph_is_refused(node: int) -> None:
    model = blend(linear_flow())
    with pytest.raises(ValueError, match=rf"`node` must be from 0 to 3; got {node}\."):
        explain(model, prepared(model, kite()), node, time=TIME)


@pytest.mark.parametrize("time", [-1.0, math.inf, math.nan])
def test_a_bad_time_is_refused(time: float) -> None:
    model = blend(linear_flow())
    with pytest.raises(ValueError, match="`time` must be at least 0 and finite"):
        explain(model, prepared(model, kite()), 0, time=time)


@pytest.mark.slow
def test_a_large_graph_needs_one_forward_and_one_backward_solve() -> None:
    n = 50_000
    ring = torch.arange(n)
    edges = Edges.build(torch.stack((torch.cat((ring, ring.roll(1))), torch.cat((ring.roll(1), ring)))), num_nodes=n)
    model = blend(LinearFlow(ScaledDot(CHANNELS, 4, heads=2), rate=Rate()), scheme=Exponential(1e-4, 1e-4)).float()
    inputs = model.prepare(torch.randn(n, FEATURES, generator=torch.Generator().manual_seed(0)), edges)
    explanation = explain(model, inputs, 7, time=2.0)
    assert abs(explanation.remainder) < 1e-4
    assert set(explanation.contributing().tolist()) <= {*range(30), *range(n - 20, n)}
