"""Scores that are dot products against loops from eqs. (13), (15) and (16), AGNN's and GAT's equations."""

import math

import pytest
import torch
from checks import crooked, kite, make, normal, ragged, weights_by_loops
from torch import Tensor
from torch.autograd import gradcheck

from beltrami.diffusivity import Additive, Cosine, Pearson, ScalarCosine, ScaledDot
from beltrami.diffusivity.base import Projection, constant
from beltrami.graph import Both, Columns, Edges, Normaliser, Rows, attend, squareplus_link

cases = pytest.mark.parametrize(
    ("edges", "normalise", "heads"),
    [
        (kite(), Rows(), 1),
        (ragged(), Columns(squareplus_link), 3),
        (ragged(weighted=True), Both(), 3),
        (ragged(weighted=True), Rows(squareplus_link), 1),
    ],
    ids=["kite", "ragged", "weighted", "squareplus"],
)


def projected(weight: Tensor, z: Tensor, head: int, heads: int) -> list[float]:
    """Return the rows of W z of one head, by the sums that define them."""
    width = weight.shape[0] // heads
    rows, z_list = weight.tolist()[head * width : (head + 1) * width], z.tolist()
    return [sum(w * c for w, c in zip(row, z_list, strict=True)) for row in rows]


def dot(p: list[float], q: list[float]) -> float:
    return sum(a * b for a, b in zip(p, q, strict=True))


def centred(p: list[float]) -> list[float]:
    return [a - sum(p) / len(p) for a in p]


def key_and_query(project: Projection, z: Tensor, i: int, j: int, head: int) -> tuple[list[float], list[float]]:
    """Return W_K z_i and W_Q z_j."""
    heads = project.heads
    return projected(project.key.weight, z[i], head, heads), projected(project.query.weight, z[j], head, heads)


@cases
def test_scaled_dot_is_eq_13(edges: Edges, normalise: Normaliser, heads: int) -> None:
    a, z = make("ScaledDot", normalise, heads=heads), normal(edges.num_nodes, 5)
    assert isinstance(a, ScaledDot)

    def score(i: int, j: int, head: int) -> float:
        key, query = key_and_query(a.project, z, i, j, head)
        return dot(key, query) / 4  # d_k is the width of one head

    torch.testing.assert_close(a(z, edges), weights_by_loops(score, edges, normalise, heads=heads))


@cases
def test_cosine_is_eq_15(edges: Edges, normalise: Normaliser, heads: int) -> None:
    a, z = make("Cosine", normalise, heads=heads), normal(edges.num_nodes, 5)
    assert isinstance(a, Cosine)

    def score(i: int, j: int, head: int) -> float:
        key, query = key_and_query(a.project, z, i, j, head)
        return dot(key, query) / math.sqrt(dot(key, key) * dot(query, query))

    torch.testing.assert_close(a(z, edges), weights_by_loops(score, edges, normalise, heads=heads))


@cases
def test_pearson_is_eq_16(edges: Edges, normalise: Normaliser, heads: int) -> None:
    a, z = make("Pearson", normalise, heads=heads), normal(edges.num_nodes, 5)
    assert isinstance(a, Pearson)

    def score(i: int, j: int, head: int) -> float:
        key, query = (centred(p) for p in key_and_query(a.project, z, i, j, head))
        return dot(key, query) / math.sqrt(dot(key, key) * dot(query, query))

    torch.testing.assert_close(a(z, edges), weights_by_loops(score, edges, normalise, heads=heads))


def test_scores_are_divided_by_d_k_and_not_its_root() -> None:
    edges, z = kite(), normal(4, 5)
    by_width, by_one = ScaledDot(5, 16).double(), ScaledDot(5, 16, d_k=1.0).double()
    by_one.load_state_dict(by_width.state_dict())
    torch.testing.assert_close(by_width.score(z, edges), by_one.score(z, edges) / 16)
    assert (by_width.d_k, ScaledDot(5, 16, heads=4).d_k) == (16, 4)


def test_biases_are_added_to_both_projections_and_begin_within_the_bound_of_a_linear_map() -> None:
    torch.manual_seed(0)
    project = Projection(9, 8, heads=2, start=constant(1e-5), bias=True)
    z = normal(5, 9).float()
    for found, linear in zip(project(z), (project.key, project.query), strict=True):
        expected = (z[:, None, :] * linear.weight).sum(-1) + linear.bias
        torch.testing.assert_close(found.flatten(1), expected)
        assert linear.weight.flatten().tolist() == pytest.approx([1e-5] * 72)
        assert 0 < float(linear.bias.detach().abs().max()) <= 1 / 3
    before = project.key.bias.detach().clone()
    project.reset_parameters()
    assert not torch.equal(project.key.bias, before)


@pytest.mark.parametrize("diffusivity", [ScaledDot, Cosine, Pearson], ids=lambda kind: kind.__name__)
def test_constant_projections_with_biases_begin_uniform(diffusivity: type[Cosine]) -> None:
    """Without biases, cosines of constant projections are 1 or -1."""
    torch.manual_seed(0)
    edges, z = ragged(), normal(ragged().num_nodes, 6).float()
    biased = diffusivity(6, 8, heads=2, start=constant(1e-5), bias=True)
    assert biased.spread(z, edges) < 1e-3
    if diffusivity is Cosine:
        assert Cosine(6, 8, heads=2, start=constant(1e-5)).spread(z, edges) > 0.1


def test_d_k_can_be_set() -> None:
    edges, z = kite(), normal(4, 5)
    small, large = ScaledDot(5, 4, d_k=0.5).double(), ScaledDot(5, 4, d_k=1e9).double()
    large.load_state_dict(small.state_dict())
    assert large.spread(z, edges) < 1e-8 < small.spread(z, edges)


@pytest.mark.parametrize("name", ["Cosine", "Pearson"])
def test_bounded_scores_do_not_depend_on_the_scale_of_the_state(name: str) -> None:
    edges, z, a = kite(), normal(4, 5), make(name)
    torch.testing.assert_close(a(1e4 * z, edges), a(z, edges))
    assert float(a.score(1e4 * z, edges).detach().abs().max()) <= 1 + 1e-12


def test_pearson_does_not_change_when_all_projected_channels_are_shifted() -> None:
    edges, z, a = kite(), normal(4, 5), make("Pearson")
    assert isinstance(a, Pearson)
    before = a(z, edges)
    with torch.no_grad():  # adding the same row to all rows of W_K shifts all channels of W_K z equally
        a.project.key.weight += normal(1, 5, seed=7)
    torch.testing.assert_close(a(z, edges), before)


@pytest.mark.parametrize("name", ["Cosine", "Pearson"])
def test_a_state_of_zeros_gives_uniform_weights(name: str) -> None:
    edges, a = kite(), make(name)
    z = torch.zeros(4, 5, dtype=torch.float64, requires_grad=True)
    weights = a(z, edges)
    weights.square().sum().backward()
    torch.testing.assert_close(weights * edges.in_degree()[edges.i], torch.ones(8, dtype=torch.float64))
    assert z.grad is not None
    assert bool(torch.isfinite(z.grad).all())


def test_a_and_its_transpose_differ() -> None:
    """Receivers have keys and senders queries: exchanging the two matrices transposes the scores."""
    edges, z, a = kite(), normal(4, 5), make("ScaledDot")
    b = make("ScaledDot")
    assert isinstance(a, ScaledDot)
    assert isinstance(b, ScaledDot)
    b.project.key, b.project.query = b.project.query, b.project.key
    back = torch.tensor([int(((edges.i == j) & (edges.j == i)).nonzero()) for j, i in edges.edge_index.T])
    torch.testing.assert_close(b.score(z, edges), a.score(z, edges)[back])
    assert not torch.allclose(a.score(z, edges), a.score(z, edges)[back])


@pytest.mark.parametrize("d_k", [0.0, -1.0, math.nan])
def test_a_d_k_that_is_not_positive_is_refused(d_k: float) -> None:
    with pytest.raises(ValueError, match="ScaledDot needs a positive, finite `d_k`"):
        ScaledDot(5, 4, d_k=d_k)


def test_pearson_needs_two_channels_in_each_head() -> None:
    with pytest.raises(ValueError, match="at least 2 x `heads` and a multiple of `heads`; got width=3, heads=3"):
        Pearson(5, 3, heads=3)


@pytest.mark.parametrize("heads", [1, 2])
def test_scalar_cosine_is_its_equation(heads: int) -> None:
    edges = crooked()
    z, a = normal(edges.num_nodes, 4), ScalarCosine(heads=heads, sharpness=0.8).double()

    def score(i: int, j: int, head: int) -> float:
        return 0.8 * 2.0**head * float(z[i] @ z[j]) / float(z[i].norm() * z[j].norm())

    wanted = weights_by_loops(score, edges, Rows(), heads=heads)
    torch.testing.assert_close(a(z, edges).detach(), wanted, rtol=1e-6, atol=0)


def test_a_scalar_cosine_of_zero_is_uniform_and_has_one_parameter_per_head() -> None:
    edges = crooked()
    a = ScalarCosine(heads=3, sharpness=0.0).double()
    assert a.spread(normal(edges.num_nodes, 4), edges) < 1e-12
    assert sum(p.numel() for p in a.parameters()) == 3


def test_the_pair_of_a_scalar_cosine_is_its_score() -> None:
    edges = crooked()
    z, a = normal(edges.num_nodes, 4), ScalarCosine(heads=2, sharpness=1.7).double()
    pair = a.pair(z)
    torch.testing.assert_close(pair.score(edges), a.score(z, edges))
    assert gradcheck(lambda z: a(z, edges), (z.requires_grad_(),))
    assert attend(pair, z, edges, normalise=a.normalise).shape == z.shape


def test_a_scalar_cosine_without_heads_is_refused() -> None:
    with pytest.raises(ValueError, match=r"ScalarCosine needs `heads` at least 1 and below .*; got 0"):
        ScalarCosine(heads=0)


@cases
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


@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # PyG scripts its classes on import
@pytest.mark.parametrize(("edges", "heads"), [(kite(), 1), (ragged(), 3)], ids=["kite", "ragged"])
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


def test_the_slope_of_the_additive_score_is_that_below_zero() -> None:
    edges, z, a = kite(), normal(4, 5, seed=1), make("Additive")
    assert isinstance(a, Additive)
    a.slope = 1.0
    linear = a.score(z, edges).detach()
    assert float(linear.min()) < 0 < float(linear.max())
    a.slope = 0.0
    torch.testing.assert_close(a.score(z, edges).detach(), linear.clamp(min=0))


def test_a_linear_additive_score_ranks_senders_in_the_same_order_for_every_receiver() -> None:
    complete = Edges.build(torch.cartesian_prod(torch.arange(4), torch.arange(4)).T, num_nodes=4)
    a = Additive(5, 4, slope=1.0).double()
    matrix = a(normal(4, 5), complete).reshape(4, 4)
    assert {tuple(row.argsort().tolist()) for row in matrix} == {tuple(matrix[0].argsort().tolist())}
    torch.testing.assert_close(matrix, matrix[:1].expand(4, 4))  # softmax cancels the receiver's term
