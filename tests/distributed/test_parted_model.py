"""The model by parts computes what the whole one computes, with its gradients, in one process; others are refused."""

import copy
from typing import Any

import pytest
import torch
from toy import RK4_STEPS, scaled_dot, small_blend, two_cliques

from beltrami.diffusivity import ScaledDot
from beltrami.distributed import PartedModel, Workers, greedy_partition
from beltrami.distributed.communication import PartedNorm
from beltrami.distributed.parted_flow import ColumnFields
from beltrami.distributed.parted_graph import PartedGraph
from beltrami.flow import BeltramiFlow, Flow, Kinetic, LinearFlow, OnsagerFlow, Rate, Source
from beltrami.flow.beltrami import LinearField
from beltrami.graph import Both, Columns, Edges, Normaliser, Rows, SparseMatrix
from beltrami.joint import Joint
from beltrami.model import BLEND, Classifier, Decoder, Encoder, Evolution, Inputs
from beltrami.scheme import (
    PID,
    Checkpointed,
    ConstantSteps,
    Continuous,
    Dopri5,
    Exponential,
    ImplicitEuler,
    Scheme,
    TimeStepping,
    TorchDiffEq,
)  # fmt: skip
from beltrami.scheme.norm import WholeNorm
from beltrami.scheme.runge_kutta import RK4
from beltrami.stencil import KNN, Loops
from beltrami.train import seeded

TOY = two_cliques(12)
N = 24
ADAPTIVE = Scheme(Dopri5(), PID(1e-5, 1e-5))
REPLAYED = Scheme(RK4(), ConstantSteps(0.5), Checkpointed(2))


def network(flow: type[BeltramiFlow] | type[LinearFlow], normalise: Normaliser, scheme: TimeStepping) -> BLEND:
    """Return a network in double precision with every kind of dropout, a batch norm, positions, a rate and a source."""
    with seeded(0):
        equation = flow(ScaledDot(12, 8, heads=2, normalise=normalise), rate=Rate(), source=Source(0.3))
        return BLEND.from_parts(
            Encoder(6, 8, dropout=0.3, hidden=5),
            Evolution(equation, scheme=scheme, time=2.0, stencil=Loops(0.7)),
            Decoder(12, 2, dropout=0.4),
            phi=Encoder(3, 4, dropout=0.2),
            batch_norm=True,
            node_dropout=0.1,
        ).double()


def inputs_of(model: Classifier) -> Inputs:
    x = torch.where(TOY.x.abs() < 0.5, 0.0, TOY.x)
    return model.prepare(SparseMatrix.of(x), TOY.edge_index, pos=TOY.pos)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("flow", "normalise", "scheme"),
    [
        (LinearFlow, Rows(), Exponential(1e-8, 1e-8)),
        (LinearFlow, Columns(), Exponential(1e-8, 1e-8)),
        (LinearFlow, Both(), Exponential(1e-3, 1e-3)),
        (LinearFlow, Columns(), ADAPTIVE),
        (BeltramiFlow, Rows(), ADAPTIVE),
        (BeltramiFlow, Columns(), RK4_STEPS),
        (BeltramiFlow, Both(), REPLAYED),
        (BeltramiFlow, Rows(), REPLAYED),
    ],
    ids=str,
)
def test_outputs_gradients_and_buffers_are_those_of_the_whole_model(flow: Any, normalise: Any, scheme: Any) -> None:
    whole = network(flow, normalise, scheme)
    own = copy.deepcopy(whole)
    inputs = inputs_of(whole)
    parted = PartedModel(own, inputs, greedy_partition(inputs.edges, 5), Workers())
    for _ in range(2):  # dropout has other masks at the second call
        expected, found = whole.run(inputs), parted.run(inputs)
        assert torch.allclose(found.logits, expected.logits, rtol=0, atol=1e-10)
        assert found.stats.evaluations == expected.stats.evaluations
        expected.logits.square().sum().backward()
        found.logits.square().sum().backward()
    for one, other in zip(whole.parameters(), own.parameters(), strict=True):
        assert one.grad is not None
        assert other.grad is not None
        assert torch.allclose(other.grad, one.grad, rtol=0, atol=1e-10)
    for before, after in zip(whole.buffers(), own.buffers(), strict=True):
        assert torch.allclose(before.double(), after.double(), rtol=0, atol=1e-12)
    whole.eval()
    parted.eval()
    nodes, ts = torch.tensor([3, 8, 9, 20, 23, 1]), (0.0, 0.5, 2.0, 3.0)
    for some in (nodes, None):
        along = whole.logits_along(inputs, ts, nodes=some)
        assert torch.allclose(parted.logits_along(inputs, ts, nodes=some), along, rtol=0, atol=1e-10)


def test_extended_rows_and_returned_gradients_are_those_of_a_double_loop() -> None:
    edges = Edges.build(TOY.edge_index, num_nodes=N)
    part = torch.arange(N) * 7 % 4
    graph = PartedGraph(edges, part, Workers(), senders=False)
    x = torch.randn(N, 3, dtype=torch.float64, generator=torch.Generator().manual_seed(0))[graph.nodes.order]
    x.requires_grad_()
    local = graph.extend(x)
    rows = {int(node): row for row, node in enumerate(graph.nodes.order)}
    total = torch.zeros(N, 3, dtype=torch.float64)
    for unit, found in enumerate(local):
        own = [node for node in range(N) if int(part[node]) == unit]
        near = {int(j) for j, i in zip(edges.j, edges.i, strict=True) if int(part[i]) == unit} - set(own)
        read = [*own, *sorted(near, key=lambda node: (int(part[node]), node))]
        for row, node in enumerate(read):
            assert torch.equal(found[row], x[rows[node]])
            total[rows[node]] += (unit + 1) * (row + 1)
    weighted = [(unit + 1) * torch.arange(1, len(z) + 1)[:, None] * z for unit, z in enumerate(local)]
    torch.cat(weighted).sum().backward()
    assert x.grad is not None
    assert torch.allclose(x.grad, total, rtol=1e-14)


def test_the_norm_by_parts_is_that_of_the_whole() -> None:
    x = torch.randn(10, 3, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    norm = PartedNorm(Workers(), [3, 1, 6], 3, 10)
    for p in (1.0, 2.0, float("inf")):
        assert float(norm.mean(x, p)) == pytest.approx(float(WholeNorm().mean(x, p)), rel=1e-14)
    assert float(norm.rms(x)) == pytest.approx(float(WholeNorm().rms(x)), rel=1e-14)


def test_blocks_of_columns_solve_as_one_field_with_the_gradient_of_each() -> None:
    edges = Edges.build(TOY.edge_index, num_nodes=N)
    generator = torch.Generator().manual_seed(0)
    a = (1 / edges.in_degree()[edges.i]).double().requires_grad_()
    y = torch.randn(2, N, 3, dtype=torch.float64, generator=generator).requires_grad_()
    alone = [Exponential(1e-9, 1e-9).run(LinearField(a, edges), each, (0.0, 2.0), ()).ys[-1] for each in y]
    expected = torch.autograd.grad(torch.stack(alone).square().sum(), (a, y))
    blocks = ColumnFields([LinearField(a, edges), LinearField(a, edges)])
    together = Exponential(1e-9, 1e-9).run(blocks, y, (0.0, 2.0), ()).ys[-1]
    found = torch.autograd.grad(together.square().sum(), (a, y))
    assert torch.allclose(together, torch.stack(alone), rtol=0, atol=1e-12)
    assert all(torch.allclose(one, other, rtol=0, atol=1e-10) for one, other in zip(found, expected, strict=True))


def evolved(flow: Flow, scheme: TimeStepping = RK4_STEPS, **options: Any) -> BLEND:
    return BLEND.from_parts(Encoder(6, 8), Evolution(flow, scheme=scheme, time=1.0, **options), Decoder(8, 2))


@pytest.mark.parametrize(
    ("model", "message"),
    [
        (evolved(OnsagerFlow(LinearFlow(scaled_dot()), 8)), "another model: set `model.kind=blend`"),
        (evolved(LinearFlow(scaled_dot()), stencil=KNN(2, on=Joint(0, 8).x)), "a graph that changes"),
        (evolved(LinearFlow(scaled_dot()), remesh=0.5), "a graph that changes"),
        (evolved(LinearFlow(scaled_dot()), costs=[Kinetic(0.1)]), "running costs"),
        (evolved(LinearFlow(scaled_dot()), Scheme(ImplicitEuler(1e-3, 1e-3), ConstantSteps(0.5))), "implicit"),
        (evolved(LinearFlow(scaled_dot()), Scheme(Dopri5(), PID(1e-3, 1e-3), Continuous())), "continuous adjoint"),
        (evolved(LinearFlow(scaled_dot()), TorchDiffEq("dopri5", rtol=1e-3, atol=1e-3)), "another scheme"),
    ],
)
def test_models_without_a_computation_by_parts_are_refused(model: BLEND, message: str) -> None:
    inputs = model.prepare(TOY.x, TOY.edge_index)
    with pytest.raises(ValueError, match=message):
        PartedModel(model, inputs, torch.arange(N) % 2, Workers())


def test_parts_workers_and_inputs_that_do_not_fit_are_refused() -> None:
    model = small_blend()
    inputs = model.prepare(TOY.x, TOY.edge_index)
    with pytest.raises(ValueError, match="cover 23 nodes"):
        PartedModel(model, inputs, torch.zeros(N - 1, dtype=torch.int64), Workers())
    with pytest.raises(ValueError, match="3 workers need at least as many parts; got 2"):
        PartedModel(model, inputs, torch.arange(N) % 2, Workers(0, 3))
    parted = PartedModel(model, inputs, torch.arange(N) % 2, Workers())
    with pytest.raises(ValueError, match="the inputs that it was made for"):
        parted.run(model.prepare(TOY.x, TOY.edge_index))


def test_a_state_that_is_not_finite_is_refused() -> None:
    from beltrami.errors import NotFinite

    model = small_blend()
    inputs = model.prepare(TOY.x, TOY.edge_index)
    parted = PartedModel(model, inputs, torch.arange(N) % 2, Workers())
    with torch.no_grad():
        model.psi.linear.bias[0] = float("nan")
    with pytest.raises(NotFinite, match="z\\(0\\) holds values that are NaN"):
        parted.run(inputs)
