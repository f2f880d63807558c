"""Layers of the baselines against their equations in loops, and against PyG's layers with the same weights."""

import math
from collections.abc import Callable

import pytest
import torch
from checks import GRAPHS, crooked, dense, normal, pairs, ragged
from torch import Tensor, nn
from torch.autograd import gradcheck
from torch.func import functional_call
from torch.nn import functional as F

from beltrami.graph import Edges, SparseMatrix
from beltrami.model.baseline.base import mean_weights, symmetric_weights
from beltrami.model.baseline.layered import (
    GATLayer,
    GCNLayer,
    MoNetLayer,
    SAGEMaxPoolLayer,
    SAGEMeanLayer,
    degree_coordinates,
)
from beltrami.train import seeded

pytest.importorskip("torch_geometric", reason="torch_geometric is not installed")

from torch_geometric.nn import GATConv, GCNConv, GMMConv, SAGEConv

IN, OUT = 5, 4
every_graph = pytest.mark.parametrize("graph", GRAPHS)


MAKERS: dict[str, Callable[[], nn.Module]] = {
    "gcn": lambda: GCNLayer(IN, OUT),
    "gat": lambda: GATLayer(IN, OUT, heads=2),
    "gat averaged": lambda: GATLayer(IN, OUT, heads=3, average=True),
    "mean": lambda: SAGEMeanLayer(IN, OUT),
    "maxpool": lambda: SAGEMaxPoolLayer(IN, OUT, pooled=3),
    "monet": lambda: MoNetLayer(IN, OUT, kernels=3),
}
every_layer = pytest.mark.parametrize("name", MAKERS)


def layer(name: str) -> nn.Module:
    """Return a layer in double precision, with biases away from zero."""
    with seeded(0):
        made = MAKERS[name]()
        made.double()
        with torch.no_grad():
            for parameter in made.parameters():
                parameter.add_(0.1 * torch.randn_like(parameter))
    return made


@every_graph
def test_gcn_layer_is_the_product_of_dense_matrices(graph: str) -> None:
    edges, x, conv = GRAPHS[graph], normal(GRAPHS[graph].num_nodes, IN), layer("gcn")
    assert isinstance(conv, GCNLayer)
    a = dense(torch.ones(edges.num_edges).double() if edges.weight is None else edges.weight, edges)
    rows, columns = (sums.clamp(min=1e-300).rsqrt() for sums in (a.sum(1), a.sum(0)))
    expected = rows[:, None] * a * columns @ x @ conv.project.linear.weight.T + conv.bias
    torch.testing.assert_close(conv(x, edges), expected)


@every_graph
@pytest.mark.parametrize("name", ["gat", "gat averaged"])
def test_gat_layer_is_the_sum_over_neighbours(name: str, graph: str) -> None:
    edges, x, att = GRAPHS[graph], normal(GRAPHS[graph].num_nodes, IN), layer(name)
    assert isinstance(att, GATLayer)
    w = att.project.linear.weight.detach().view(att.heads, -1, IN)
    mu = [1.0] * edges.num_edges if edges.weight is None else edges.weight.tolist()
    heads = []
    for h in range(att.heads):
        total, out = [0.0] * edges.num_nodes, torch.zeros(edges.num_nodes, w.shape[1]).double()
        for (i, j), m in zip(pairs(edges), mu, strict=True):
            s = float((att.receiver[h] @ w[h] @ x[i] + att.sender[h] @ w[h] @ x[j]).detach())
            a = m * math.exp(s if s > 0 else 0.2 * s)
            total[i] += a
            out[i] += a * (w[h] @ x[j])
        heads.append(out / torch.tensor([t or 1.0 for t in total]).double()[:, None])
    expected = torch.stack(heads).mean(0) if att.average else torch.cat(heads, dim=1)
    torch.testing.assert_close(att(x, edges), expected + att.bias)


@every_graph
def test_sage_mean_layer_is_the_mean_of_the_neighbours(graph: str) -> None:
    edges, x, sage = GRAPHS[graph], normal(GRAPHS[graph].num_nodes, IN), layer("mean")
    assert isinstance(sage, SAGEMeanLayer)
    v, w = sage.project.linear.weight.chunk(2)
    mu = torch.ones(edges.num_edges).double() if edges.weight is None else edges.weight
    for i in range(edges.num_nodes):
        received = [(float(m), x[j]) for (k, j), m in zip(pairs(edges), mu, strict=True) if k == i]
        total = sum(m for m, _ in received) or 1.0
        average = sum((m * there for m, there in received), torch.zeros(IN).double()) / total
        torch.testing.assert_close(sage(x, edges)[i], w @ x[i] + v @ average + sage.bias)


@every_graph
def test_sage_maxpool_layer_is_the_maximum_of_the_neighbours(graph: str) -> None:
    edges, x, sage = GRAPHS[graph], normal(GRAPHS[graph].num_nodes, IN), layer("maxpool")
    assert isinstance(sage, SAGEMaxPoolLayer)
    p, w = sage.project.linear.weight.split(sage.widths)
    for i in range(edges.num_nodes):
        shown = [torch.relu(p @ x[j] + sage.shift) for k, j in pairs(edges) if k == i]
        largest = torch.stack(shown).amax(0) if shown else torch.zeros(3).double()
        torch.testing.assert_close(sage(x, edges)[i], w @ x[i] + sage.mix(largest))


@every_graph
def test_monet_layer_is_the_sum_of_its_gaussians(graph: str) -> None:
    edges, x, net = GRAPHS[graph], normal(GRAPHS[graph].num_nodes, IN), layer("monet")
    assert isinstance(net, MoNetLayer)
    own, *maps = net.project.linear.weight.chunk(4)
    mu = [1.0] * edges.num_edges if edges.weight is None else edges.weight.tolist()
    received, sent = [sum(i == k for i, _ in pairs(edges)) for k in range(edges.num_nodes)], [0] * edges.num_nodes
    for _, j in pairs(edges):
        sent[j] += 1
    total, out = [0.0] * edges.num_nodes, torch.zeros(edges.num_nodes, OUT).double()
    for (i, j), m in zip(pairs(edges), mu, strict=True):
        u = torch.tensor([received[i] ** -0.5, sent[j] ** -0.5]).double()
        e = torch.tanh(net.coordinates.weight @ u + net.coordinates.bias)
        total[i] += m
        for k in range(3):
            gaussian = torch.exp(-0.5 * ((e - net.mu[k]) / net.sigma[k]).square().sum())
            out[i] += (m * gaussian * (maps[k] @ x[j])).detach()
    averaged = out / torch.tensor([t or 1.0 for t in total]).double()[:, None]
    torch.testing.assert_close(net(x, edges), x @ own.T + averaged + net.bias)


def both(edges: Edges) -> tuple[Tensor, Tensor]:
    """Return inputs, and the edges in PyG's form."""
    return normal(edges.num_nodes, IN), edges.edge_index


def test_gcn_layer_agrees_with_pyg() -> None:
    edges = crooked().with_loops(1.0)
    (x, edge_index), conv = both(edges), layer("gcn")
    assert isinstance(conv, GCNLayer)
    pyg = GCNConv(IN, OUT, add_self_loops=False).double()
    pyg.lin.weight.data, pyg.bias.data = conv.project.linear.weight.data, conv.bias.data
    torch.testing.assert_close(conv(x, edges), pyg(x, edge_index))


@pytest.mark.parametrize("name", ["gat", "gat averaged"])
def test_gat_layer_agrees_with_pyg(name: str) -> None:
    edges = crooked().with_loops(1.0)
    (x, edge_index), att = both(edges), layer(name)
    assert isinstance(att, GATLayer)
    width = att.receiver.shape[1]
    pyg = GATConv(IN, width, heads=att.heads, concat=not att.average, add_self_loops=False).double()
    pyg.lin.weight.data, pyg.bias.data = att.project.linear.weight.data, att.bias.data
    pyg.att_src.data, pyg.att_dst.data = att.sender.data[None], att.receiver.data[None]
    torch.testing.assert_close(att(x, edges), pyg(x, edge_index))


def test_sage_mean_layer_agrees_with_pyg() -> None:
    (x, edge_index), sage = both(ragged()), layer("mean")
    assert isinstance(sage, SAGEMeanLayer)
    pyg = SAGEConv(IN, OUT).double()
    pyg.lin_l.weight.data, pyg.lin_r.weight.data = sage.project.linear.weight.data.chunk(2)
    pyg.lin_l.bias.data = sage.bias.data
    torch.testing.assert_close(sage(x, ragged()), pyg(x, edge_index))


def test_sage_maxpool_layer_agrees_with_pyg() -> None:
    (x, edge_index), sage = both(ragged()), SAGEMaxPoolLayer(IN, OUT, pooled=IN).double()
    pyg = SAGEConv(IN, OUT, aggr="max", project=True).double()
    pyg.lin.weight.data, pyg.lin_r.weight.data = sage.project.linear.weight.data.split([IN, OUT])
    pyg.lin.bias.data = sage.shift.data
    pyg.lin_l.weight.data, pyg.lin_l.bias.data = sage.mix.weight.data, sage.mix.bias.data
    torch.testing.assert_close(sage(x, ragged()), pyg(x, edge_index))


def test_monet_layer_agrees_with_pyg() -> None:
    edges = ragged()
    (x, edge_index), net = both(edges), layer("monet")
    assert isinstance(net, MoNetLayer)
    pyg = GMMConv(IN, OUT, dim=2, kernel_size=3).double()
    pyg.root.weight.data, pyg.g.data = (
        net.project.linear.weight.data[:OUT],
        net.project.linear.weight.data[OUT:].T,
    )
    pyg.mu.data, pyg.sigma.data, pyg.bias.data = net.mu.data, net.sigma.data, net.bias.data
    coordinates = torch.tanh(net.coordinates(degree_coordinates(edges, torch.float64)))
    torch.testing.assert_close(net(x, edges), pyg(x, edge_index, coordinates))


@pytest.mark.slow
@every_layer
def test_gradients_agree_with_finite_differences(name: str) -> None:
    made, edges = layer(name), ragged(weighted=True)
    names, tensors = zip(*made.named_parameters(), strict=True)
    x = normal(edges.num_nodes, IN).requires_grad_()

    def run(x: Tensor, *values: Tensor) -> Tensor:
        out: Tensor = functional_call(made, dict(zip(names, values, strict=True)), (x, edges))
        return out

    assert gradcheck(run, (x, *tensors))


@every_layer
def test_sparse_inputs_give_the_same_values_as_dense_ones(name: str) -> None:
    x, made = F.dropout(normal(6, IN), 0.5), layer(name)
    torch.testing.assert_close(made(SparseMatrix.of(x), ragged()), made(x, ragged()))


@pytest.mark.parametrize("name", ["gat", "gat averaged"])
def test_relative_attention_has_mean_one_at_each_receiver(name: str) -> None:
    edges, att = ragged(weighted=True), layer(name)
    assert isinstance(att, GATLayer)
    relative = att.relative_weights(normal(6, IN), edges)
    for i in edges.i.unique():
        uniform = mean_weights(edges, torch.float64)[edges.i == i]
        torch.testing.assert_close(uniform @ relative[edges.i == i], torch.ones(att.heads).double())


def test_bad_heads_and_kernels_are_refused() -> None:
    with pytest.raises(ValueError, match=r"must be a multiple of `heads`; got width=4, heads=3"):
        GATLayer(IN, 4, heads=3)
    with pytest.raises(ValueError, match=r"at least one of `kernels`; got 0"):
        MoNetLayer(IN, OUT, kernels=0)


def test_edge_weights_are_computed_once_per_graph_and_type() -> None:
    edges = crooked()
    assert symmetric_weights(edges, torch.float64) is symmetric_weights(edges, torch.float64)
    assert symmetric_weights(edges, torch.float32).dtype == torch.float32
    assert symmetric_weights(crooked(), torch.float64) is not symmetric_weights(edges, torch.float64)
