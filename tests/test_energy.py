"""The Dirichlet energy, and Theorem 1: the closed-form diffusivity is the gradient of the Polyakov action."""

import math
from collections.abc import Callable

import pytest
import torch
from checks import GRAPHS, bare, by_parameters, crooked, kite, normal, pairs, ragged
from torch import Tensor, nn
from torch.autograd import gradcheck, gradgradcheck
from torch.func import jacrev

from beltrami.energy import Constant, Gauss, PeronaMalik, PolyakovAction, Psi, Roughness, dirichlet
from beltrami.graph import Edges, divergence, gradient, laplacian

LENGTH = 1.3
FAMILIES: dict[str, Callable[[], Psi]] = {
    "constant": Constant,
    "gauss": lambda: Gauss(LENGTH),
    "perona-malik": lambda: PeronaMalik(LENGTH),
    "roughness": lambda: Roughness(LENGTH),
}
every_family = pytest.mark.parametrize("name", FAMILIES)

# The maps of the theorem: of i, j, the squared distances from i to all nodes, and row i of A.
Map = Callable[[int, int, Tensor, Tensor], Tensor]
MAPS: dict[str, Map] = {
    "constant": lambda i, j, p, row: torch.ones((), dtype=p.dtype),
    "gauss": lambda i, j, p, row: torch.exp(-p[j] / (2 * LENGTH**2)),
    "perona-malik": lambda i, j, p, row: 1 / (1 + p[j] / LENGTH**2),
    "roughness": lambda i, j, p, row: 1 / (1 + (row @ p) / row.sum() / LENGTH**2),
}


def action(name: str) -> PolyakovAction:
    built = PolyakovAction(FAMILIES[name]()).double()
    for log_length in built.parameters():
        nn.init.constant_(log_length, math.log(LENGTH))  # the constructor rounded it to single precision
    return built


def random_graph(seed: int, *, nodes: int = 6, weighted: bool = False) -> Edges:
    """Return an undirected graph without loops; the weights of the two directions of an edge differ."""
    generator = torch.Generator().manual_seed(seed)
    upper = torch.rand(nodes, nodes, generator=generator).triu(1) > 0.5
    edge_index = (upper | upper.T).nonzero().T
    weight = torch.rand(edge_index.shape[1], generator=generator, dtype=torch.float64) + 0.2
    return Edges.build(edge_index, num_nodes=nodes, weight=weight if weighted else None)


def adjacency(edges: Edges) -> Tensor:
    matrix = torch.zeros(edges.num_nodes, edges.num_nodes, dtype=torch.float64)
    weight = torch.ones(edges.num_edges, dtype=torch.float64) if edges.weight is None else edges.weight
    return matrix.index_put((edges.i, edges.j), weight)


def distances2(z: Tensor) -> Tensor:
    return (z[:, None] - z[None]).square().sum(-1)


def action_by_loops(name: str, z: Tensor, edges: Edges) -> Tensor:
    """1/2 sum_l sum_ij A_ij psi_ij^l with psi_ij^l = psi~_ij (z_j^l - z_i^l)^2."""
    a, p = adjacency(edges), distances2(z)
    terms = [a[i, j] * MAPS[name](i, j, p[i], a[i]) * (z[j] - z[i]).square().sum() for i, j in pairs(edges)]
    return 0.5 * torch.stack(terms).sum()


def diffusivity_by_loops(name: str, z: Tensor, edges: Edges) -> Tensor:
    """Return the diffusivity of Theorem 1 with each partial derivative computed separately, (n, n)."""
    a, p, n = adjacency(edges), distances2(z), edges.num_nodes
    psi, slope = torch.zeros(n, n, dtype=z.dtype), torch.zeros(n, n, n, dtype=z.dtype)  # slope[i, k, j] = d_j psi~_ik
    for i, k in pairs(edges):
        psi[i, k] = MAPS[name](i, k, p[i], a[i])
        slope[i, k] = jacrev(lambda row, i=i, k=k: MAPS[name](i, k, row, a[i]))(p[i])
    out = torch.zeros(n, n, dtype=z.dtype)
    for i, j in pairs(edges):
        out[i, j] = a[i, j] * psi[i, j] + a[j, i] * psi[j, i]
        out[i, j] += sum(a[i, k] * slope[i, k, j] * p[i, k] for k in range(n))
        out[i, j] += sum(a[j, k] * slope[j, k, i] * p[j, k] for k in range(n))
    return out


@every_family
@pytest.mark.parametrize("weighted", [False, True], ids=["plain", "weighted"])
@pytest.mark.parametrize("seed", range(2))
def test_action_and_diffusivity_are_those_of_the_theorem(name: str, weighted: bool, seed: int) -> None:
    edges, z, built = random_graph(seed, weighted=weighted), normal(6, 3, seed=seed), action(name)
    torch.testing.assert_close(built.energy(z, edges), action_by_loops(name, z, edges), rtol=1e-12, atol=1e-12)
    wanted = diffusivity_by_loops(name, z, edges)[edges.i, edges.j]
    torch.testing.assert_close(built(z, edges), wanted, rtol=1e-11, atol=1e-11)


@pytest.mark.slow
@every_family
@pytest.mark.parametrize("weighted", [False, True], ids=["plain", "weighted"])
def test_closed_form_is_minus_the_gradient_of_the_action(name: str, weighted: bool) -> None:
    for seed in range(10):
        edges, built = random_graph(seed, nodes=12, weighted=weighted), action(name)
        z = (10 ** float(normal(1, seed=seed)) * normal(12, 5, seed=seed)).requires_grad_()  # of different scales
        (by_autograd,) = torch.autograd.grad(built.energy(z, edges), z)
        size = max(1.0, float(by_autograd.abs().max()))
        assert float((built.gradient(z, edges) - by_autograd).detach().abs().max()) < 1e-10 * size
        assert float((laplacian(z, built(z, edges), edges) + by_autograd).detach().abs().max()) < 1e-10 * size


def test_the_constant_family_has_diffusivity_two_and_the_flow_of_twice_the_laplacian() -> None:
    edges, z, built = kite(), normal(4, 3), action("constant")
    assert torch.equal(built(z, edges), torch.full((8,), 2.0, dtype=torch.float64))
    torch.testing.assert_close(-built.gradient(z, edges), 2 * divergence(gradient(z, edges), edges))
    torch.testing.assert_close(built.energy(z, edges), dirichlet(z, edges).sum())


@every_family
def test_diffusivity_is_symmetric_and_uniform_for_a_constant_state(name: str) -> None:
    edges, built = crooked(), action(name)
    matrix = torch.zeros(6, 6, dtype=torch.float64).index_put((edges.i, edges.j), built(normal(6, 3), edges).detach())
    torch.testing.assert_close(matrix, matrix.T)
    flat = normal(1, 3).expand(6, 3)
    torch.testing.assert_close(built(flat, edges), built.uniform(flat, edges))
    assert built.spread(flat, edges) == pytest.approx(0.0, abs=1e-12)
    assert (built.spread(normal(6, 3), edges) > 0.01) == (name != "constant")


def test_only_the_gaussian_repels_nodes_that_are_far_apart() -> None:
    edges = Edges.build(torch.tensor([[0, 1], [1, 0]]), num_nodes=2)
    around = [torch.tensor([[0.0], [square**0.5 * LENGTH]], dtype=torch.float64) for square in (1.99, 2.01)]
    signs = {name: [bool((action(name)(z, edges) > 0).all()) for z in around] for name in FAMILIES}
    assert signs == {name: [True, name != "gauss"] for name in FAMILIES}


@every_family
def test_a_self_loop_adds_nothing_but_to_the_mean_of_distances(name: str) -> None:
    edges, z, built = kite(), normal(4, 3), action(name)
    with_loops = built.gradient(z, edges.with_loops(1.0))
    assert torch.allclose(with_loops, built.gradient(z, edges)) == (name != "roughness")


@every_family
def test_nodes_without_edges_do_no_harm(name: str) -> None:
    z = normal(4, 3).requires_grad_()
    with torch.autograd.set_detect_anomaly(True):
        built = action(name)
        energy = built.energy(z, bare())
        (grad,) = torch.autograd.grad(energy, z)
    assert float(energy.detach()) == 0.0
    assert torch.equal(grad, torch.zeros_like(z))
    assert torch.equal(built.gradient(z, bare()), torch.zeros_like(z))


@pytest.mark.slow
@every_family
def test_derivatives_by_state_and_length_are_those_of_finite_differences(name: str) -> None:
    edges, built, z = kite(), action(name), normal(4, 3).requires_grad_()
    energy, parameters = by_parameters(built, lambda z: built.energy(z, edges))
    weights, _ = by_parameters(built, lambda z: built(z, edges) + 0 * z.sum())
    for function in (energy, weights):
        assert gradcheck(function, (z, *parameters))
        assert gradgradcheck(function, (z, *parameters), fast_mode=True)


def test_a_directed_graph_is_refused() -> None:
    with pytest.raises(ValueError, match=r"PolyakovAction needs an undirected graph.*Symmetric"):
        action("constant")(normal(6, 3), ragged())


@pytest.mark.parametrize("family", [Gauss, PeronaMalik, Roughness])
@pytest.mark.parametrize("length", [0.0, -1.0, float("inf"), float("nan")])
def test_a_length_that_is_not_positive_and_finite_is_refused(family: Callable[[float], Psi], length: float) -> None:
    with pytest.raises(ValueError, match=r"needs a positive, finite `length`"):
        family(length)


every_graph = pytest.mark.parametrize("edges", GRAPHS.values(), ids=list(GRAPHS))


def dirichlet_by_loops(z: Tensor, edges: Edges, weight: Tensor | None) -> list[float]:
    w = [1.0] * edges.num_edges if weight is None else weight.tolist()
    return [
        0.5 * sum(w[e] * float(z[j, c] - z[i, c]) ** 2 for e, (i, j) in enumerate(pairs(edges)))
        for c in range(z.shape[1])
    ]


@every_graph
def test_the_dirichlet_energy_is_the_double_sum(edges: Edges) -> None:
    z = normal(edges.num_nodes, 3)
    assert dirichlet(z, edges).tolist() == pytest.approx(dirichlet_by_loops(z, edges, edges.weight), abs=1e-12)


@every_graph
def test_the_argument_weight_replaces_the_weights_of_the_edges(edges: Edges) -> None:
    z, weight = normal(edges.num_nodes, 3), normal(edges.num_edges, seed=1).exp()
    assert dirichlet(z, edges, weight=weight).tolist() == pytest.approx(dirichlet_by_loops(z, edges, weight), abs=1e-12)


def test_the_dirichlet_energy_of_large_constants_is_zero() -> None:
    z = torch.tensor([1e6, -3e3, 0.0]).expand(4, 3)
    assert dirichlet(z, kite()).tolist() == [0.0, 0.0, 0.0]


def test_small_differences_of_large_values_do_not_cancel() -> None:
    z = normal(4, 3)
    torch.testing.assert_close(dirichlet(z + 1e5, kite()), dirichlet(z, kite()), rtol=1e-9, atol=0)


def test_divergence_is_minus_half_the_adjoint_of_the_gradient_so_the_energy_is_not_halved_again() -> None:
    """<grad z, g> = -2 <z, div g> for antisymmetric g; with g = grad z, 1/2 |grad z|^2 is -<z, div grad z>."""
    edges, z = kite(), normal(4, 3)
    g = gradient(normal(4, 3, seed=1), edges)
    left, right = (gradient(z, edges) * g).sum(), -2 * (z * divergence(g, edges)).sum()
    assert float(left) == pytest.approx(float(right), rel=1e-12)
    torch.testing.assert_close(dirichlet(z, edges), -(z * divergence(gradient(z, edges), edges)).sum(0))


def test_derivatives_of_the_dirichlet_energy_are_those_of_finite_differences() -> None:
    edges, weight = kite(), normal(8, seed=1).exp().requires_grad_()
    z = normal(4, 3).requires_grad_()
    assert gradcheck(lambda z, w: dirichlet(z, edges, weight=w), (z, weight))
