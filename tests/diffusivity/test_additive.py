"""The additive score against loops from its equation, and against PyG's graph attention."""

import pytest
import torch
from checks import NORMALISERS, kite, make, normal, ragged, weights_by_loops

from beltrami.diffusivity import Additive
from beltrami.graph import Edges, Normaliser

every = pytest.mark.parametrize("edges", [kite(), ragged(), ragged(weighted=True)], ids=["kite", "ragged", "weighted"])


@every
@pytest.mark.parametrize("normalise", NORMALISERS, ids=repr)
@pytest.mark.parametrize("heads", [1, 3])
def test_additive_is_its_equation(edges: Edges, normalise: Normaliser, heads: int) -> None:
    a, z = make("Additive", normalise, heads=heads), normal(edges.num_nodes, 5, seed=1)
    assert isinstance(a, Additive)
    w, b, c = a.project.weight.tolist(), a.receiver.tolist(), a.sender.tolist()
    states = z.tolist()

    def score(i: int, j: int, head: int) -> float:
        total = 0.0
        for k in range(4):
            row = w[4 * head + k]
            total += b[head][k] * sum(x * y for x, y in zip(row, states[i], strict=True))
            total += c[head][k] * sum(x * y for x, y in zip(row, states[j], strict=True))
        return total if total > 0 else 0.2 * total

    torch.testing.assert_close(a(z, edges), weights_by_loops(score, edges, normalise, heads=heads))


@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # PyG scripts its classes when it is imported
@pytest.mark.parametrize("heads", [1, 3])
@pytest.mark.parametrize("edges", [kite(), ragged()], ids=["kite", "ragged"])
def test_rows_of_softmax_are_the_attention_of_gat(edges: Edges, heads: int) -> None:
    from torch_geometric.nn import GATConv

    a, z = make("Additive", heads=heads), normal(edges.num_nodes, 5, seed=1)
    assert isinstance(a, Additive)
    gat = GATConv(5, 4, heads=heads, add_self_loops=False, bias=False).double()
    with torch.no_grad():
        gat.lin.weight.copy_(a.project.weight)
        gat.att_src.copy_(a.sender[None])
        gat.att_dst.copy_(a.receiver[None])
    _, (edge_index, attention) = gat(z, edges.edge_index, return_attention_weights=True)
    assert torch.equal(edge_index, edges.edge_index)
    torch.testing.assert_close(a.normalise(a.score(z, edges), edges), attention)
    torch.testing.assert_close(a(z, edges), attention.mean(1))


def test_the_slope_is_that_below_zero() -> None:
    edges, z, a = kite(), normal(4, 5, seed=1), make("Additive")
    assert isinstance(a, Additive)
    a.slope = 1.0
    linear = a.score(z, edges).detach()
    assert float(linear.min()) < 0 < float(linear.max())
    a.slope = 0.0
    torch.testing.assert_close(a.score(z, edges).detach(), linear.clamp(min=0))


def test_without_a_bend_every_receiver_ranks_its_senders_alike() -> None:
    complete = Edges.build(torch.cartesian_prod(torch.arange(4), torch.arange(4)).T, num_nodes=4)
    a = Additive(5, 4, slope=1.0).double()
    matrix = a(normal(4, 5), complete).reshape(4, 4)
    assert {tuple(row.argsort().tolist()) for row in matrix} == {tuple(matrix[0].argsort().tolist())}
    torch.testing.assert_close(matrix, matrix[:1].expand(4, 4))  # softmax does not feel the receiver's share
