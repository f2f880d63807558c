"""Normalisers against loops from the formulas, for scores of any size, and on nodes without edges."""

import math

import pytest
import torch
from checks import GRAPHS, NORMALISERS, bare, dense, kite, normal, normalised_by_loops, pairs, ragged, undirected
from torch import Tensor
from torch.autograd import gradcheck, gradgradcheck

from beltrami.graph import Both, Columns, Edges, Link, Normaliser, Rows, softmax_link, squareplus_link
from beltrami.graph.normalise import log_sum

graphs = pytest.mark.parametrize("edges", GRAPHS.values(), ids=GRAPHS.keys())
normalisers = pytest.mark.parametrize("normalise", NORMALISERS, ids=repr)
links = pytest.mark.parametrize("link", [softmax_link, squareplus_link])


@graphs
@normalisers
def test_weights_follow_the_formula(edges: Edges, normalise: Normaliser) -> None:
    score = 2 * normal(edges.num_edges, 3)
    found = normalise(score, edges)
    assert found.shape == score.shape
    for head in range(3):
        wanted = normalised_by_loops(score[:, head].tolist(), edges, normalise)
        torch.testing.assert_close(found[:, head], torch.tensor(wanted, dtype=torch.float64))


def test_squareplus_is_half_of_x_plus_the_root_of_x_squared_plus_four() -> None:
    x = torch.linspace(-30, 30, 61, dtype=torch.float64)
    torch.testing.assert_close(squareplus_link(x).exp(), (x + (x * x + 4).sqrt()) / 2, rtol=1e-11, atol=0)


def test_squareplus_has_slope_one_for_large_scores() -> None:
    x = torch.tensor([1e3], dtype=torch.float64, requires_grad=True)
    (slope,) = torch.autograd.grad(squareplus_link(x).exp().sum(), x)
    assert float(slope) == pytest.approx(1.0, abs=1e-5)


@pytest.mark.parametrize("over", [Rows, Columns, Both])
def test_a_shift_of_all_scores_changes_squareplus_and_not_softmax(over: type[Normaliser]) -> None:
    edges, score = kite(), normal(8, 1)
    plain, shifted = over(softmax_link), over(squareplus_link)
    torch.testing.assert_close(plain(score + 5, edges), plain(score, edges))
    assert float((shifted(score + 5, edges) - shifted(score, edges)).abs().max()) > 0.05


def test_rows_are_shift_invariant_at_each_receiver() -> None:
    edges, score = kite(), normal(8, 1)
    at_receiver = normal(4, 1, seed=1)[edges.i]
    torch.testing.assert_close(Rows(softmax_link)(score + at_receiver, edges), Rows(softmax_link)(score, edges))


@graphs
@links
def test_sums_are_one_where_there_are_edges(edges: Edges, link: Link) -> None:
    score = normal(edges.num_edges, 1)
    rows, columns = (dense(over(link)(score, edges)[:, 0], edges) for over in (Rows, Columns))
    torch.testing.assert_close(rows.sum(1), (edges.in_degree() > 0).double())
    torch.testing.assert_close(columns.sum(0), (edges.out_degree() > 0).double())


@graphs
@links
def test_columns_are_the_rows_of_the_transposed_graph(edges: Edges, link: Link) -> None:
    score = normal(edges.num_edges, 1)
    turned = Edges.build(edges.edge_index.flip(0), num_nodes=edges.num_nodes, weight=edges.weight)
    there = turned.restore(Rows(link)(score[turned.permutation], turned))
    torch.testing.assert_close(there, Columns(link)(score, edges))


@graphs
@links
def test_both_is_the_geometric_mean_of_rows_and_columns(edges: Edges, link: Link) -> None:
    score = normal(edges.num_edges, 2)
    product = Rows(link)(score, edges) * Columns(link)(score, edges)
    torch.testing.assert_close(Both(link)(score, edges), product.sqrt())


@links
@pytest.mark.parametrize("value", [0.0, 1.3])
def test_both_with_constant_scores_is_the_symmetric_normalised_adjacency(link: Link, value: float) -> None:
    edges = kite()
    adjacency = dense(torch.ones(8, dtype=torch.float64), edges)
    root = adjacency.sum(1).rsqrt()
    found = dense(Both(link)(torch.full((8, 1), value, dtype=torch.float64), edges)[:, 0], edges)
    torch.testing.assert_close(found, root[:, None] * adjacency * root)


@normalisers
def test_an_edge_of_weight_two_counts_as_two_edges(normalise: Normaliser) -> None:
    twice = Edges.build(torch.tensor([[0, 0, 2, 1], [1, 1, 1, 0]]), num_nodes=3)
    weight = torch.tensor([2.0, 1.0, 1.0], dtype=torch.float64)
    once = Edges.build(torch.tensor([[0, 2, 1], [1, 1, 0]]), num_nodes=3, weight=weight)

    def matrix(edges: Edges) -> Tensor:
        score = torch.stack([normal(3, 3)[i, j] for i, j in pairs(edges)])[:, None]
        return dense(normalise(score, edges)[:, 0], edges)

    torch.testing.assert_close(matrix(once), matrix(twice))


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("size", [1e4, 1e30])
@normalisers
def test_scores_of_any_size_give_finite_weights_and_gradients(
    normalise: Normaliser, size: float, dtype: torch.dtype
) -> None:
    edges = ragged()
    score = (size * normal(9, 1)).to(dtype)
    score[2], score[6], score[8] = size, -size, -size
    score.requires_grad_()
    log_weight = normalise.link(score)
    assert bool(torch.isfinite(log_weight).all())
    a = normalise(score, edges)
    (slope,) = torch.autograd.grad((a * normal(9, 1, seed=1).to(dtype)).sum(), score)
    assert bool(torch.isfinite(a).all())
    assert bool((a >= 0).all())
    assert bool(torch.isfinite(slope).all())
    matrix = dense(a[:, 0].detach(), edges)
    if not isinstance(normalise, Both):
        over, degree = (1, edges.in_degree()) if isinstance(normalise, Rows) else (0, edges.out_degree())
        torch.testing.assert_close(matrix.sum(over), (degree > 0).to(dtype))


@pytest.mark.parametrize("size", [1e4, 1e15])
def test_squareplus_stays_positive_for_scores_far_below_zero(size: float) -> None:
    """(s + sqrt(s^2 + 4)) / 2 as written is zero there: the two terms cancel. Its true value is 1 / |s|."""
    s = torch.tensor([-size], dtype=torch.float32)
    assert float((s + (s * s + 4).sqrt()) / 2) == 0.0
    assert float(squareplus_link(s).exp()) == pytest.approx(1 / size, rel=1e-4)


def test_squareplus_weighs_large_scores_in_proportion() -> None:
    edges = Edges.build(torch.tensor([[1, 2], [0, 0]]), num_nodes=3)
    a = Rows(squareplus_link)(torch.tensor([[1e30], [3e30]]), edges)
    assert a.flatten().tolist() == pytest.approx([0.25, 0.75], abs=1e-4)


@graphs
@normalisers
def test_nodes_without_edges_give_no_nan(edges: Edges, normalise: Normaliser) -> None:
    score = normal(edges.num_edges, 2).requires_grad_()
    with torch.autograd.set_detect_anomaly(True):
        a = normalise(score, edges)
        (slope,) = torch.autograd.grad(a.square().sum(), score)
    assert bool(torch.isfinite(a).all())
    assert bool(torch.isfinite(slope).all())


@pytest.mark.slow
@normalisers
@pytest.mark.parametrize("edges", [kite(), ragged(weighted=True)], ids=["kite", "weighted"])
def test_derivatives_agree_with_finite_differences(edges: Edges, normalise: Normaliser) -> None:
    score = normal(edges.num_edges, 2).requires_grad_()

    def weights(s: Tensor) -> Tensor:
        return normalise(s, edges)

    assert gradcheck(weights, (score,))
    assert gradgradcheck(weights, (score,), fast_mode=True)


@graphs
@pytest.mark.parametrize("senders", [False, True])
def test_log_sum_is_the_logarithm_of_the_sum(edges: Edges, senders: bool) -> None:
    log_weight = normal(edges.num_edges, 1)
    sums = dense(log_weight[:, 0].exp(), edges).sum(0 if senders else 1)
    torch.testing.assert_close(log_sum(log_weight, edges, senders=senders)[:, 0], sums.log())


def test_a_node_is_connected_where_its_sum_has_an_edge() -> None:
    edges = ragged()  # 3 only sends, 4 only receives, 5 has no edge
    assert Rows().connected(edges).tolist() == [True, True, True, False, True, False]
    assert Columns().connected(edges).tolist() == [True, True, True, True, False, False]
    assert Both().connected(edges).tolist() == [True, True, True, True, True, False]
    assert not any(bool(over().connected(bare()).any()) for over in (Rows, Columns, Both))
    for over in (Rows, Columns, Both):
        assert bool(over().connected(kite()).all())
        assert over().isolated(kite()) is None
        isolated = over().isolated(edges)
        assert isolated is not None
        assert torch.equal(isolated, ~over().connected(edges))
        assert over().isolated(edges) is isolated  # computed once for a graph


def test_a_single_edge_takes_all_the_weight() -> None:
    edges = undirected([(0, 1)], num_nodes=2)
    score = torch.tensor([[-7.0], [math.pi]], dtype=torch.float64)
    for normalise in NORMALISERS:
        assert normalise(score, edges).flatten().tolist() == pytest.approx([1.0, 1.0])


def test_repr_names_the_link() -> None:
    assert [repr(Rows()), repr(Both(squareplus_link))] == ["Rows(softmax_link)", "Both(squareplus_link)"]
