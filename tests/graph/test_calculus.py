"""Gradient and divergence as adjoints of each other, and the Laplacian from both."""

import pytest
import torch
from checks import GRAPHS, kite, normal, pairs

from beltrami.graph import Edges, Rows, aggregate, divergence, gradient, laplacian

graphs = pytest.mark.parametrize("edges", GRAPHS.values(), ids=GRAPHS.keys())


@graphs
def test_gradient_is_sender_minus_receiver(edges: Edges) -> None:
    z = normal(edges.num_nodes, 2)
    found = gradient(z, edges)
    assert found.shape == (edges.num_edges, 2)
    for e, (i, j) in enumerate(pairs(edges)):
        assert torch.equal(found[e], z[j] - z[i])


@graphs
def test_divergence_sums_the_values_arriving_at_each_node(edges: Edges) -> None:
    g = normal(edges.num_edges, 2)
    expected = torch.zeros(edges.num_nodes, 2, dtype=torch.float64)
    for e, (i, _) in enumerate(pairs(edges)):
        expected[i] += g[e]
    torch.testing.assert_close(divergence(g, edges), expected)


def test_divergence_is_minus_half_the_adjoint_of_the_gradient() -> None:
    """<grad z, g> = -2 <z, div g> for undirected edges and antisymmetric g, not -1 as in the paper."""
    edges, z = kite(), normal(4, 2)
    where = {edge: e for e, edge in enumerate(pairs(edges))}
    half = normal(edges.num_edges, 2, seed=1)
    g = torch.stack([half[e] - half[where[j, i]] for (i, j), e in where.items()])
    inner = float((gradient(z, edges) * g).sum())
    assert abs(inner) > 0.1
    assert inner == pytest.approx(-2 * float((z * divergence(g, edges)).sum()), abs=1e-13)


@graphs
def test_laplacian_is_the_divergence_of_the_weighted_gradient(edges: Edges) -> None:
    z, a = normal(edges.num_nodes, 3), normal(edges.num_edges, seed=1)
    torch.testing.assert_close(laplacian(z, a, edges), divergence(a[:, None] * gradient(z, edges), edges))


@graphs
def test_with_row_sums_of_one_the_laplacian_is_a_z_minus_z(edges: Edges) -> None:
    z = normal(edges.num_nodes, 3)
    a = Rows()(normal(edges.num_edges, 1, seed=1), edges)[:, 0]
    connected = (edges.in_degree() > 0)[:, None]
    torch.testing.assert_close(aggregate(a, z, edges) - connected * z, laplacian(z, a, edges))


@graphs
def test_constants_have_no_gradient_and_no_laplacian(edges: Edges) -> None:
    z, a = torch.full((edges.num_nodes, 2), 3.5, dtype=torch.float64), normal(edges.num_edges)
    assert float(gradient(z, edges).abs().sum()) == 0.0
    torch.testing.assert_close(laplacian(z, a, edges), torch.zeros_like(z))


def test_laplacian_of_a_path_is_the_second_difference() -> None:
    edges = Edges.build(torch.tensor([[0, 1, 1, 2, 2, 3], [1, 0, 2, 1, 3, 2]]), num_nodes=4)
    z = torch.tensor([[0.0], [1.0], [4.0], [9.0]])
    assert laplacian(z, torch.ones(6), edges).flatten().tolist() == [1.0, 2.0, 2.0, -5.0]
