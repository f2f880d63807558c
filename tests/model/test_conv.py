"""BeltramiConv: its equation, its inputs, and batches of graphs."""

from dataclasses import replace
from typing import Any

import pytest
import torch
from checks import normal
from scipy.linalg import expm
from torch import Tensor, nn
from torch.autograd import gradcheck

from beltrami.diffusivity import RandomWalk, ScaledDot, WithEdgeFeatures
from beltrami.flow import Coupling, Source
from beltrami.graph import Edges, squareplus_link
from beltrami.graph.normalise import Columns
from beltrami.model import BLEND, BeltramiConv
from beltrami.scheme import RK4, Checkpointed, ConstantSteps, Direct, Exponential, Scheme
from beltrami.stencil import Loops
from beltrami.train import seeded

EDGE_INDEX = torch.tensor([[3, 0, 2, 1, 1, 0, 4, 1], [0, 1, 1, 2, 3, 3, 1, 4]])  # directed, five nodes
WEIGHT = torch.tensor([0.5, 2.0, 3.0, 1.5, 0.7, 4.0, 1.0, 0.3], dtype=torch.float64)
FEATURES = normal(8, 3, seed=7)
TIGHT = Exponential(rtol=1e-13, atol=1e-13)
STEPS, UNIT_STEPS = Scheme(RK4(), ConstantSteps(0.5)), Scheme(RK4(), ConstantSteps(1.0))
CHANNELS = 4


def conv(*, frozen: bool = True, edge_dim: int | None = None, time: float = 1.0) -> BeltramiConv:
    with seeded(3):
        made = BeltramiConv(
            CHANNELS, time=time, heads=2, frozen=frozen, edge_dim=edge_dim, scheme=TIGHT if frozen else STEPS
        )
    return made.double()


def attention_matrix(layer: BeltramiConv, z: Tensor, weight: Tensor | None, features: Tensor | None) -> Tensor:
    """A(z) by loops over edges and heads, from the layer's parameters."""
    a = layer.evolution.flow.diffusivity
    dot = a.diffusivity if isinstance(a, WithEdgeFeatures) else a
    assert isinstance(dot, ScaledDot)
    key, query = (linear.weight.unflatten(0, (2, -1)) for linear in (dot.project.key, dot.project.query))
    edges = list(zip(*EDGE_INDEX.tolist(), strict=True))
    matrix = torch.zeros(len(z), len(z), dtype=torch.float64)
    for h in range(2):
        entry = torch.zeros_like(matrix)
        for e, (j, i) in enumerate(edges):
            score = (key[h] @ z[i]) @ (query[h] @ z[j]) / key.shape[1]
            if isinstance(a, WithEdgeFeatures):
                assert features is not None
                score = score + a.term.weight[h] @ features[e]
            entry[i, j] = score.exp() * (1.0 if weight is None else weight[e])
        matrix += entry / entry.sum(1, keepdim=True) / 2
    return matrix


@pytest.mark.parametrize("features", [None, FEATURES], ids=["plain", "features"])
@pytest.mark.parametrize("weight", [None, WEIGHT], ids=["unweighted", "weighted"])
def test_a_frozen_layer_is_the_matrix_exponential_of_its_attention(
    weight: Tensor | None, features: Tensor | None
) -> None:
    layer, x = conv(edge_dim=None if features is None else 3, time=1.5), normal(5, CHANNELS)
    a = attention_matrix(layer, x, weight, features).detach()
    expected = torch.from_numpy(expm(1.5 * (a - torch.eye(5)).numpy())) @ x
    torch.testing.assert_close(layer(x, EDGE_INDEX, weight, features), expected, rtol=0, atol=1e-10)


@pytest.mark.parametrize("features", [None, FEATURES], ids=["plain", "features"])
def test_a_live_layer_takes_steps_of_its_attention_at_each_state(features: Tensor | None) -> None:
    layer, z = conv(frozen=False, edge_dim=None if features is None else 3), normal(5, CHANNELS)
    found = layer(z, EDGE_INDEX, WEIGHT, features)

    def f(z: Tensor) -> Tensor:
        return attention_matrix(layer, z, WEIGHT, features) @ z - z

    for _ in range(2):
        k1 = f(z)
        k2 = f(z + 0.25 * k1)
        k3 = f(z + 0.25 * k2)
        z = z + (k1 + 2 * k2 + 2 * k3 + f(z + 0.5 * k3)) / 12
    torch.testing.assert_close(found, z)


@pytest.mark.slow
@pytest.mark.parametrize("frozen", [True, False], ids=["frozen", "live"])
def test_gradients_by_features_weights_and_edge_features(frozen: bool) -> None:
    layer = conv(frozen=frozen, edge_dim=3, time=0.5)
    inputs = (normal(5, CHANNELS).requires_grad_(), WEIGHT.clone().requires_grad_(), FEATURES.clone().requires_grad_())
    assert gradcheck(lambda x, w, e: layer(x, EDGE_INDEX, w, e), inputs, fast_mode=True)


def test_checkpoints_give_the_gradients_of_weights_and_edge_features() -> None:
    found = []
    for adjoint in (Direct(), Checkpointed()):
        layer, x = conv(frozen=False, edge_dim=3), normal(5, CHANNELS)
        layer.evolution.scheme = replace(STEPS, adjoint=adjoint)
        weight, features = WEIGHT.clone().requires_grad_(), FEATURES.clone().requires_grad_()
        out = layer(x, EDGE_INDEX, weight, features).square().sum()
        found.append(torch.autograd.grad(out, (weight, features, *layer.parameters())))
    for direct, checkpointed in zip(*found, strict=True):
        torch.testing.assert_close(checkpointed, direct)


def test_loops_of_a_stencil_have_features_zero() -> None:
    with seeded(3):
        layer = BeltramiConv(CHANNELS, edge_dim=3, stencil=Loops(), scheme=TIGHT).double()
    x, loops = normal(5, CHANNELS), torch.arange(5).expand(2, -1)
    looped = torch.cat((EDGE_INDEX, loops), dim=1)
    padded = torch.cat((FEATURES, FEATURES.new_zeros(5, 3)))
    torch.testing.assert_close(layer(x, EDGE_INDEX, edge_attr=FEATURES), layer(x, looped, edge_attr=padded))


def test_all_forms_of_the_graph_give_the_same() -> None:
    from torch_geometric import EdgeIndex

    layer, x = conv(), normal(5, CHANNELS)
    expected = layer(x, EDGE_INDEX, WEIGHT)
    matrix = torch.zeros(5, 5, dtype=torch.float64)
    matrix[EDGE_INDEX[1], EDGE_INDEX[0]] = WEIGHT
    assert torch.equal(layer(x, Edges.build(EDGE_INDEX, num_nodes=5, weight=WEIGHT)), expected)
    assert torch.equal(layer(x, EdgeIndex(EDGE_INDEX, sparse_size=(5, 5)), WEIGHT), expected)
    assert torch.equal(layer(x, matrix.to_sparse_coo()), expected)


def test_print_shows_flow_stencil_scheme_and_time_in_one_line() -> None:
    assert repr(BeltramiConv(8, time=2.0, stencil=Loops())) == (
        "BeltramiConv(8, flow=LinearFlow(ScaledDot), stencil=Loops(weight=1.0), "
        "scheme=Exponential(rtol=0.0001, atol=0.0001), time=2.0)"
    )
    assert repr(BeltramiConv(8, edge_dim=5, frozen=False)).endswith("time=1.0, edge_dim=5)")


def test_reset_parameters_draws_all_parameters_again() -> None:
    layer = BeltramiConv(8, edge_dim=5, source=Source(0.3), coupling=Coupling(-0.5))
    with seeded(0):
        layer.reset_parameters()
    first = [parameter.clone() for parameter in layer.parameters()]
    for parameter in layer.parameters():
        nn.init.constant_(parameter, 7.0)
    with seeded(0):
        layer.reset_parameters()
    assert all(torch.equal(*pair) for pair in zip(first, layer.parameters(), strict=True))
    source = layer.evolution.flow.source
    assert isinstance(source, Source)
    assert source.beta.item() == pytest.approx(0.3)


def test_it_is_a_layer_of_pygs_sequential() -> None:
    from torch_geometric.nn import Sequential

    network = Sequential(
        "x, edge_index",
        [(nn.Linear(6, 8), "x -> x"), (BeltramiConv(8), "x, edge_index -> x"), nn.ReLU(), nn.Linear(8, 2)],
    )
    out = network(torch.randn(5, 6), EDGE_INDEX)
    assert out.shape == (5, 2)
    out.sum().backward()
    assert all(parameter.grad is not None for parameter in network.parameters())


def test_bad_settings_and_inputs_are_refused() -> None:
    x = torch.randn(5, CHANNELS)
    with pytest.raises(ValueError, match="`heads` and `edge_dim` are settings of the default attention"):
        BeltramiConv(CHANNELS, diffusivity=RandomWalk(), edge_dim=2)
    with pytest.raises(ValueError, match="takes no edge features: leave `edge_attr` out"):
        BeltramiConv(CHANNELS)(x, EDGE_INDEX, edge_attr=torch.randn(8, 3))
    with pytest.raises(ValueError, match="takes 3 edge features: pass `edge_attr`"):
        BeltramiConv(CHANNELS, edge_dim=3)(x, EDGE_INDEX)
    with pytest.raises(ValueError, match=r"`edge_attr` must have shape \(edges, 3\); got \(8, 2\)"):
        BeltramiConv(CHANNELS, edge_dim=3)(x, EDGE_INDEX, edge_attr=torch.randn(8, 2))
    with pytest.raises(ValueError, match=r"`x` must have shape \(nodes, 4\); got \(5, 3\)"):
        BeltramiConv(CHANNELS)(x[:, :3], EDGE_INDEX)
    with pytest.raises(ValueError, match="BeltramiConv needs `time` positive and finite"):
        BeltramiConv(CHANNELS, time=0.0)


# Batches of graphs


def random_graphs(count: int, dtype: torch.dtype) -> list[Any]:
    """Undirected graphs of 3 to 12 nodes with weights, edge features and positions; some nodes have no edge."""
    from torch_geometric.data import Data

    generator, graphs = torch.Generator().manual_seed(0), []
    for _ in range(count):
        n = int(torch.randint(3, 13, (), generator=generator))
        upper = (torch.rand(n, n, generator=generator) < 0.4).triu(1)
        j, i = upper.nonzero().T
        edge_index = torch.cat((torch.stack((j, i)), torch.stack((i, j))), dim=1)
        m = edge_index.shape[1]
        graphs.append(
            Data(
                x=torch.randn(n, 6, generator=generator, dtype=dtype),
                pos=torch.randn(n, 2, generator=generator, dtype=dtype),
                edge_index=edge_index,
                edge_weight=(0.1 + torch.rand(m // 2, generator=generator, dtype=dtype)).repeat(2),
                edge_attr=torch.randn(m, 3, generator=generator, dtype=dtype),
            )
        )
    return graphs


@pytest.mark.slow
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=str)
@pytest.mark.parametrize(
    ("frozen", "scheme"),
    [(True, Exponential(rtol=1e-8, atol=1e-8)), (True, UNIT_STEPS), (False, UNIT_STEPS)],
    ids=["exponential", "frozen", "live"],
)
def test_a_batch_of_graphs_gives_what_each_graph_gives_alone(
    frozen: bool, scheme: Exponential | Scheme, dtype: torch.dtype
) -> None:
    from torch_geometric.data import Batch

    graphs = random_graphs(32, dtype)
    batch = Batch.from_data_list(graphs)
    with seeded(1):
        a = WithEdgeFeatures(ScaledDot(24, 16, heads=2, normalise=Columns(squareplus_link)), 3, heads=2)
        options: dict[str, Any] = {"pos_channels": 2, "pos_hidden_channels": 8, "batch_norm": True}
        model = BLEND(6, 16, 4, time=2.0, diffusivity=a, frozen=frozen, scheme=scheme, **options).to(dtype).eval()
        layer = BeltramiConv(6, frozen=frozen, scheme=scheme).to(dtype)
    together, alone = model(batch), torch.cat([model(graph) for graph in graphs])
    assert (together - alone).abs().max() < 1e-6
    assert together.abs().max() > 0.1
    together = layer(batch.x, batch.edge_index, batch.edge_weight)
    alone = torch.cat([layer(graph.x, graph.edge_index, graph.edge_weight) for graph in graphs])
    assert (together - alone).abs().max() < 1e-6
