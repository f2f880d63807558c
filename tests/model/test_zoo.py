"""Every network of the zoo against PyG's layer with the same weights, or a dense computation."""

import math
from collections.abc import Callable
from typing import cast

import numpy as np
import pytest
import torch
from checks import crooked, dense, pairs
from numpy.polynomial import chebyshev
from torch import Tensor, nn

from beltrami.diffusivity import Additive, Mixture, RandomWalk, ScaledDot
from beltrami.flow import ChebyshevFlow, Flow, FrozenPositions, LinearFlow, MessageFlow, MixedFlow, TimeVarying
from beltrami.graph import Both, Edges
from beltrami.joint import Joint
from beltrami.model import Evolution, zoo
from beltrami.scheme import (
    PID,
    RK4,
    ConstantSteps,
    CrankNicolson,
    Dopri5,
    Euler,
    Exponential,
    Scheme,
    TimeStepping,
)
from beltrami.train import seeded

pytest.importorskip("torch_geometric", reason="torch_geometric is not installed")

from torch_geometric.nn import ChebConv, GATConv, GCNConv, GMMConv, TransformerConv
from torch_geometric.transforms import GDC

D, JOINT = 5, Joint(2, 3)
EDGES = crooked()
N = EDGES.num_nodes
EULER = Scheme(Euler(), ConstantSteps(0.5))


def state(channels: int = D) -> Tensor:
    return torch.randn(N, channels, generator=torch.Generator().manual_seed(1))


def built(make: Callable[[], Evolution]) -> Evolution:
    """Build from seed 0, with perturbed parameters."""
    with seeded(0):
        evolution = make()
        with torch.no_grad():
            for parameter in evolution.parameters():
                parameter.add_(0.3 * torch.randn_like(parameter))
    return evolution


def layers_of(evolution: Evolution) -> list[Flow]:
    """Return the flows of the layers, in order."""
    flow = evolution.flow.flow if isinstance(evolution.flow, FrozenPositions) else evolution.flow
    return [cast("Flow", part) for part in flow.flows] if isinstance(flow, TimeVarying) else [flow]


def assert_same(found: Tensor, wanted: Tensor) -> None:
    torch.testing.assert_close(found, wanted, rtol=1e-5, atol=1e-5)


@torch.no_grad()
def gat_conv(diffusivity: Additive) -> GATConv:
    """Return PyG's layer with the same scores and no map of the values."""
    heads = len(diffusivity.receiver)
    conv = GATConv(D, D, heads=heads, concat=False, add_self_loops=False, bias=False)
    project = diffusivity.project.weight.view(heads, -1, D)  # b^T W z = (W^T b)^T z, and PyG's W also maps the values
    conv.lin.weight.copy_(torch.eye(D).repeat(heads, 1))
    conv.att_dst.copy_(torch.einsum("hk,hkd->hd", diffusivity.receiver, project)[None])
    conv.att_src.copy_(torch.einsum("hk,hkd->hd", diffusivity.sender, project)[None])
    return conv


def attention_of(flow: Flow) -> GATConv:
    assert isinstance(flow.diffusivity, Additive)
    return gat_conv(flow.diffusivity)


@torch.no_grad()
def test_gat_agrees_with_pyg_with_a_residual_and_no_nonlinearity() -> None:
    evolution, x = built(lambda: zoo.gat(D, layers=3, width=8, heads=2)), state()
    looped, z = EDGES.with_loops(1.0).edge_index, x
    for flow in layers_of(evolution):
        z = z + (attention_of(flow)(z, looped) - z)
    assert len(layers_of(evolution)) == 3
    assert_same(evolution(x, EDGES), z)


@torch.no_grad()
def test_chebnet_agrees_with_pyg() -> None:
    evolution, x = built(lambda: zoo.chebnet(D, layers=2, terms=4)), state()
    z = x
    for flow in layers_of(evolution):
        assert isinstance(flow, ChebyshevFlow)
        conv = ChebConv(D, D, K=4, bias=False)
        for lin, weight in zip(conv.lins, flow.weight, strict=True):
            lin.weight.copy_(weight.T)
        z = conv(z, EDGES.edge_index, lambda_max=2.0)
    assert_same(evolution(x, EDGES), z)


@torch.no_grad()
def test_chebnet_layer_can_be_a_runge_kutta_step() -> None:
    """RK4's stability polynomial, written in Chebyshev polynomials of L - I."""
    evolution, x = zoo.chebnet(D, layers=1, terms=5), state()
    taylor = np.polynomial.Polynomial([1 / math.factorial(k) for k in range(5)])
    coefficients = chebyshev.poly2cheb(taylor(np.polynomial.Polynomial([-1.0, -1.0])).coef)  # -L = -1 - (L - 1)
    evolution.flow.get_parameter("weight").copy_(
        torch.tensor(coefficients, dtype=torch.float32)[:, None, None] * torch.eye(D)
    )
    plain = Evolution(LinearFlow(RandomWalk(Both())), scheme=Scheme(RK4(), ConstantSteps(1.0)), time=1.0)
    assert_same(evolution(x, EDGES), plain(x, EDGES))


@torch.no_grad()
def test_gcn_agrees_with_pyg() -> None:
    evolution, x = built(lambda: zoo.gcn(D, layers=3)), state()
    z = x
    for flow in layers_of(evolution):
        assert isinstance(flow, MixedFlow)
        conv = GCNConv(D, D, bias=False)
        conv.lin.weight.copy_(flow.weight.T)
        z = conv(z, EDGES.edge_index)
    assert_same(evolution(x, EDGES), z)


@torch.no_grad()
def test_monet_agrees_with_pyg_with_weights_that_sum_to_one() -> None:
    evolution, z = built(lambda: zoo.monet(JOINT, layers=2, kernels=3)), state()
    j, i = EDGES.with_loops(1.0).edge_index
    u, x = JOINT.split(z)
    for flow in layers_of(evolution):
        assert isinstance(flow.diffusivity, Mixture)
        conv = GMMConv(4, 4, dim=2, kernel_size=3, aggr="sum", bias=False)
        conv.root.weight.zero_()
        conv.mu.copy_(flow.diffusivity.mu)
        conv.sigma.copy_(flow.diffusivity.log_sigma.exp())
        conv.g.copy_(torch.eye(4).repeat(1, 3))
        out = conv(torch.cat((x, torch.ones(N, 1)), dim=1), torch.stack((j, i)), u[j] - u[i])
        x = out[:, :3] / out[:, 3:]
    assert_same(evolution(z, EDGES), torch.cat((u, x), dim=1))


@torch.no_grad()
def test_transformer_agrees_with_pyg_on_all_pairs() -> None:
    heads = 2
    evolution, z = built(lambda: zoo.transformer(JOINT, layers=2, width=heads * D, heads=heads)), state()
    all_pairs = torch.cartesian_prod(torch.arange(N), torch.arange(N)).T
    u, out = z[:, JOINT.u], z
    for flow in layers_of(evolution):
        assert isinstance(flow.diffusivity, ScaledDot)
        conv = TransformerConv(D, D, heads=heads, concat=False, root_weight=False, bias=False)
        conv.lin_query.weight.copy_(flow.diffusivity.project.key.weight)  # the receiver's, which the paper calls key
        conv.lin_key.weight.copy_(flow.diffusivity.project.query.weight)
        conv.lin_value.weight.copy_(torch.eye(D).repeat(heads, 1))
        out = torch.cat((u, conv(out, all_pairs)[:, JOINT.x]), dim=1)
    assert_same(evolution(z, EDGES), out)


@torch.no_grad()
def test_deepset_is_a_network_of_each_node_alone() -> None:
    evolution, x = built(lambda: zoo.deepset(D, layers=2, width=7)), state()
    out = []
    for row in x:
        for flow in layers_of(evolution):
            assert isinstance(flow, MessageFlow)
            first, last = (module for module in flow.modules() if isinstance(module, nn.Linear))
            row = row + last.weight @ (first.weight @ row + first.bias).clamp(min=0) + last.bias
        out.append(row)
    assert_same(evolution(x, EDGES), torch.stack(out))
    assert torch.equal(evolution(x, EDGES), evolution(x, Edges.build(torch.tensor([[0], [1]]), num_nodes=N)))


@torch.no_grad()
def test_digl_agrees_with_pyg_on_its_rewired_graph() -> None:
    from torch_geometric.data import Data

    evolution, x = built(lambda: zoo.digl(D, k=3, restart=0.15, layers=2, width=8, heads=2)), state()
    rewire = GDC(
        normalization_out=None,
        diffusion_kwargs={"method": "ppr", "alpha": 0.15},
        sparsification_kwargs={"method": "topk", "k": 3, "dim": 1},
    )
    edge_index = rewire(Data(edge_index=EDGES.edge_index, num_nodes=N)).edge_index.flip(0)  # its rows are receivers
    z = x
    for flow in layers_of(evolution):
        z = attention_of(flow)(z, edge_index)
    assert set(pairs(evolution.stencil(x, EDGES))) == set(pairs(Edges.build(edge_index, num_nodes=N)))
    assert_same(evolution(x, EDGES), z)


@torch.no_grad()
def test_dgcnn_agrees_with_pyg_on_neighbours_found_before_every_layer() -> None:
    evolution, x = built(lambda: zoo.dgcnn(D, k=2, layers=3, width=8, heads=2)), state()
    z, graphs = x, []
    for flow in layers_of(evolution):
        nearest = torch.cdist(z, z).topk(3, largest=False).indices  # the node and two others
        edge_index = torch.stack((nearest.flatten(), torch.arange(N).repeat_interleave(3)))
        graphs.append(nearest.sort().values)
        z = attention_of(flow)(z, edge_index)
    assert any(not torch.equal(graphs[0], other) for other in graphs[1:]), "the graph must change in this test"
    assert_same(evolution(x, EDGES), z)


@torch.no_grad()
def test_grand_is_the_matrix_exponential() -> None:
    exponential = Exponential(rtol=1e-6, atol=1e-6)
    evolution, x = built(lambda: zoo.grand(D, scheme=exponential, time=2.5, width=8, heads=2)), state()
    edges = evolution.stencil(x, EDGES)
    a = dense(evolution.flow.diffusivity(x, edges), edges).double()
    assert_same(evolution(x, EDGES), (torch.matrix_exp(2.5 * (a - torch.eye(N).double())) @ x.double()).float())


@torch.no_grad()
def test_blend_with_euler_steps_is_eq_9() -> None:
    """Neighbours by position at each step, a softmax over them, and the sum of differences."""
    evolution = built(lambda: zoo.blend(JOINT, k=2, remesh=0.5, scheme=EULER, time=1.5, width=4, heads=1))
    z = state()
    attention = evolution.flow.diffusivity
    assert isinstance(attention, ScaledDot)
    out = z
    for _ in range(3):
        (key, query), new = (p[:, 0] for p in attention.project(out)), out.clone()
        for i in range(N):
            apart = [(float((out[i, :2] - out[j, :2]).norm()), j) for j in range(N) if j != i]
            near = [j for _, j in sorted(apart)[:2]]
            score = [math.exp(float(key[i] @ query[j]) / 4) for j in near]
            for s, j in zip(score, near, strict=True):
                new[i] += 0.5 * s / sum(score) * (out[j] - out[i])
        out = new
    assert_same(evolution(z, EDGES), out)


NETWORKS: dict[str, Callable[[TimeStepping], Evolution]] = {
    "chebnet": lambda s: zoo.chebnet(D, scheme=s),
    "gat": lambda s: zoo.gat(D, width=4, heads=2, scheme=s),
    "monet": lambda s: zoo.monet(JOINT, scheme=s),
    "transformer": lambda s: zoo.transformer(JOINT, width=4, heads=2, scheme=s),
    "deepset": lambda s: zoo.deepset(D, width=4, scheme=s),
    "digl": lambda s: zoo.digl(D, k=3, width=4, heads=2, scheme=s),
    "dgcnn": lambda s: zoo.dgcnn(D, k=2, width=4, heads=2, scheme=s),
    "gcn": lambda s: zoo.gcn(D, scheme=s),
    "grand": lambda s: zoo.grand(D, width=4, heads=2, scheme=s, time=2.0),
    "blend": lambda s: zoo.blend(JOINT, k=2, remesh=1.0, width=4, heads=2, scheme=s, time=2.0),
}
STEPS = ConstantSteps(0.5)
SCHEMES: dict[str, TimeStepping] = {
    "euler": EULER,
    "dopri5": Scheme(Dopri5(), PID(1e-3, 1e-3)),
    "crank-nicolson": Scheme(CrankNicolson(1e-6, 1e-6), STEPS),
}


@pytest.mark.slow
@pytest.mark.parametrize("scheme", SCHEMES.values(), ids=SCHEMES.keys())
@pytest.mark.parametrize("name", NETWORKS)
def test_every_network_is_solved_by_explicit_adaptive_and_implicit_schemes(name: str, scheme: TimeStepping) -> None:
    """Hyperbolic positions are logarithms at the origin, so any vectors will do."""
    evolution, z = built(lambda: NETWORKS[name](scheme)), state().requires_grad_()
    out = evolution(z, EDGES)
    out.square().sum().backward()
    assert bool(torch.isfinite(out).all())
    assert float((out - z).detach().abs().max()) > 1e-3
    for tensor in (z, *evolution.parameters()):
        assert tensor.grad is not None
        assert bool(torch.isfinite(tensor.grad).all())


@pytest.mark.slow
@pytest.mark.parametrize("name", [name for name in NETWORKS if name not in ("digl", "dgcnn", "blend")])
def test_schemes_converge_to_the_same_solution(name: str) -> None:
    """On fixed graphs and within one layer; the flow jumps between layers."""
    z = state().double()

    def solved(scheme: TimeStepping) -> Tensor:
        evolution = built(lambda: NETWORKS[name](scheme)).double()
        evolution.time = 1.0 - 1e-4  # within the first layer
        with torch.no_grad():
            out: Tensor = evolution(z, EDGES)
        return out

    exact = solved(Scheme(Dopri5(), PID(1e-8, 1e-8)))
    for solver in (RK4(), CrankNicolson(1e-10, 1e-10)):
        torch.testing.assert_close(solved(Scheme(solver, ConstantSteps(0.05))), exact, rtol=1e-3, atol=1e-3)


def test_table_is_the_papers_and_names_functions_of_the_zoo() -> None:
    methods = [row.method for row in zoo.TABLE]
    assert methods[:7] == ["ChebNet", "GAT", "MoNet", "Transformer", "DeepSet/PointNet", "DIGL", "DGCNN/DGM"]
    assert methods[7:] == ["GCN (Onsager)", "GRAND", "BLEND"]
    for row in zoo.TABLE:
        assert row.build is getattr(zoo, row.build.__name__)


def test_bad_arguments_are_refused() -> None:
    with pytest.raises(ValueError, match=r"at least one of `layers`; got 0"):
        zoo.gat(D, layers=0)
    with pytest.raises(ValueError, match=r"Mixture needs positions"):
        zoo.monet(Joint(0, 3))
    with pytest.raises(ValueError, match=r"`terms` at least 2"):
        zoo.chebnet(D, terms=1)


def test_layers_have_separate_parameters() -> None:
    one, two = zoo.gat(D, layers=1, width=4, heads=2), zoo.gat(D, layers=2, width=4, heads=2)

    def count(module: nn.Module) -> int:
        return sum(p.numel() for p in module.parameters())

    assert count(two) == 2 * count(one)
    names = [name for name, _ in two.state_dict().items()]
    assert len(names) == len(set(names)) == len(list(two.parameters()))
