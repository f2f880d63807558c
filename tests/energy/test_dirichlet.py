"""The Dirichlet energy is the double sum, channel by channel."""

import pytest
import torch
from checks import GRAPHS, kite, normal, pairs
from torch import Tensor
from torch.autograd import gradcheck

from beltrami.energy import dirichlet
from beltrami.graph import Edges, divergence, gradient

every_graph = pytest.mark.parametrize("edges", GRAPHS.values(), ids=list(GRAPHS))


def by_loops(z: Tensor, edges: Edges, weight: Tensor | None) -> list[float]:
    w = [1.0] * edges.num_edges if weight is None else weight.tolist()
    return [
        0.5 * sum(w[e] * float(z[j, c] - z[i, c]) ** 2 for e, (i, j) in enumerate(pairs(edges)))
        for c in range(z.shape[1])
    ]


@every_graph
def test_energy_is_the_double_sum(edges: Edges) -> None:
    z = normal(edges.num_nodes, 3)
    assert dirichlet(z, edges).tolist() == pytest.approx(by_loops(z, edges, edges.weight), abs=1e-12)


@every_graph
def test_weights_given_take_the_place_of_the_edges_own(edges: Edges) -> None:
    z, weight = normal(edges.num_nodes, 3), normal(edges.num_edges, seed=1).exp()
    assert dirichlet(z, edges, weight=weight).tolist() == pytest.approx(by_loops(z, edges, weight), abs=1e-12)


def test_energy_of_constants_is_zero_however_large_they_are() -> None:
    z = torch.tensor([1e6, -3e3, 0.0]).expand(4, 3)
    assert dirichlet(z, kite()).tolist() == [0.0, 0.0, 0.0]


def test_small_differences_of_large_values_are_not_drowned() -> None:
    z = normal(4, 3)
    torch.testing.assert_close(dirichlet(z + 1e5, kite()), dirichlet(z, kite()), rtol=1e-9, atol=0)


def test_divergence_is_minus_half_the_adjoint_of_the_gradient_so_the_energy_is_not_halved_again() -> None:
    """<grad z, g> = -2 <z, div g> for antisymmetric g; with g = grad z, 1/2 |grad z|^2 is -<z, div grad z>."""
    edges, z = kite(), normal(4, 3)
    g = gradient(normal(4, 3, seed=1), edges)
    left, right = (gradient(z, edges) * g).sum(), -2 * (z * divergence(g, edges)).sum()
    assert float(left) == pytest.approx(float(right), rel=1e-12)
    torch.testing.assert_close(dirichlet(z, edges), -(z * divergence(gradient(z, edges), edges)).sum(0))


def test_derivatives_are_those_of_finite_differences() -> None:
    edges, weight = kite(), normal(8, seed=1).exp().requires_grad_()
    z = normal(4, 3).requires_grad_()
    assert gradcheck(lambda z, w: dirichlet(z, edges, weight=w), (z, weight))
