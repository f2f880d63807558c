"""The Lanczos iteration: its relation, Ritz values against dense eigenvalues; LanczosNet and AdaLanczosNet."""

from collections.abc import Callable
from itertools import pairwise

import pytest
import torch
from checks import crooked, dense, normal, ragged, undirected
from torch import Tensor
from torch.autograd import gradcheck
from torch.func import vmap

from beltrami.graph import Edges
from beltrami.model.baseline import Architecture, adalanczosnet, lanczosnet
from beltrami.model.baseline.base import symmetric_weights
from beltrami.model.baseline.lanczos import (
    LONG,
    SHORT,
    EigenvalueFilters,
    KrylovSpace,
    LanczosLayer,
    LanczosNet,
    LearnedSimilarity,
    MatrixFilters,
    NormalisedAdjacency,
    lanczos,
)
from beltrami.stencil import Loops
from beltrami.train import seeded

RING = undirected([(k, (k + 1) % 9) for k in range(9)] + [(0, 4), (2, 7), (1, 5)], num_nodes=9)


def space(edges: Edges, steps: int) -> tuple[Tensor, KrylovSpace]:
    """Return the dense matrix, and its Krylov space from a random vector."""
    a = symmetric_weights(edges, torch.float64)
    return dense(a, edges), lanczos(a, edges, normal(edges.num_nodes, seed=2), steps=steps)


@pytest.mark.parametrize("steps", [1, 2, 5, 9])
def test_basis_is_orthonormal_and_the_matrix_in_it_is_tridiagonal(steps: int) -> None:
    a, krylov = space(RING, steps)
    q, t = krylov.q, krylov.t
    assert (q.shape, t.shape) == ((9, steps), (steps, steps))
    torch.testing.assert_close(q.T @ q, torch.eye(steps).double(), atol=1e-10, rtol=0)
    torch.testing.assert_close(q.T @ a @ q, t, atol=1e-10, rtol=0)
    assert torch.equal(t, t.triu(-1).tril(1))


@pytest.mark.parametrize("steps", [2, 5])
def test_residual_is_in_the_last_column_only(steps: int) -> None:
    a, krylov = space(RING, steps)
    rest = a @ krylov.q - krylov.q @ krylov.t
    torch.testing.assert_close(rest[:, :-1], torch.zeros_like(rest[:, :-1]), atol=1e-10, rtol=0)
    assert rest[:, -1].norm() > 1e-3
    torch.testing.assert_close(krylov.q.T @ rest[:, -1], torch.zeros(steps).double(), atol=1e-10, rtol=0)


def test_ritz_values_of_the_whole_space_are_the_eigenvalues() -> None:
    a, krylov = space(RING, 9)
    values, b = krylov.eigen
    torch.testing.assert_close(values, torch.linalg.eigvalsh(a), atol=1e-10, rtol=0)
    vectors = krylov.q @ b
    torch.testing.assert_close(a @ vectors, vectors * values, atol=1e-9, rtol=0)


def test_extreme_ritz_values_converge_to_the_ends_of_the_spectrum() -> None:
    values = [space(RING, k)[1].eigen[0] for k in range(1, 10)]
    smallest, largest = [found[0] for found in values], [found[-1] for found in values]
    eigenvalues = torch.linalg.eigvalsh(space(RING, 1)[0])
    assert all(before >= after for before, after in pairwise(smallest))
    assert all(before <= after for before, after in pairwise(largest))
    assert abs(smallest[-1] - eigenvalues[0]) < 1e-10
    assert abs(largest[-1] - eigenvalues[-1]) < 1e-10


def test_exhausted_space_is_padded_with_zeros() -> None:
    edges = undirected([(0, 1), (0, 2), (0, 3)], num_nodes=4)  # three different eigenvalues
    a, krylov = space(edges, 4)
    q, t = krylov.q, krylov.t
    assert torch.equal(q[:, 3], torch.zeros(4).double())
    assert torch.equal(t[3], torch.zeros(4).double())
    torch.testing.assert_close(a @ q, q @ t, atol=1e-10, rtol=0)


def test_lanczos_is_differentiable_and_batchable() -> None:
    start = normal(9, seed=2)

    def small(w: Tensor) -> Tensor:
        half = w[torch.minimum(RING.i, RING.j) * 9 + torch.maximum(RING.i, RING.j)]  # equal in both directions
        return lanczos(half, RING, start, steps=4).t

    w = normal(81).abs().requires_grad_()
    assert gradcheck(small, (w,))
    batch = normal(3, 81, seed=5).abs()
    torch.testing.assert_close(vmap(small)(batch), torch.stack([small(one) for one in batch]))


def test_layer_is_the_sum_of_its_powers_and_filters() -> None:
    a, krylov = space(RING, 4)
    with seeded(0):
        layer = LanczosLayer(5, 3, EigenvalueFilters()).double()
    x = normal(9, 5)
    parts = [x @ w.T for w in layer.project.linear.weight.chunk(len(SHORT) + len(LONG))]
    expected = sum((torch.linalg.matrix_power(a, s) @ p for s, p in zip(SHORT, parts, strict=False)), layer.bias)
    for f, part in zip(layer.filters(krylov), parts[len(SHORT) :], strict=True):
        expected = expected + krylov.q @ f @ krylov.q.T @ part
    torch.testing.assert_close(layer(x, krylov, RING), expected)


def test_eigenvalue_filters_are_functions_of_the_matrix() -> None:
    """A network that returns r^10 gives T^10."""
    _, krylov = space(RING, 5)
    filters = EigenvalueFilters().double()
    with torch.no_grad():
        for parameter in filters.parameters():
            parameter.zero_()
        filters.get_parameter("f.0.weight")[0, 0] = 1.0
        filters.get_parameter("f.2.weight")[1, 0] = 1.0
    found = filters(krylov)
    torch.testing.assert_close(found[1], torch.linalg.matrix_power(krylov.t, 10), atol=1e-12, rtol=0)
    assert torch.equal(found[0], torch.zeros(5, 5).double())


def test_matrix_filters_are_symmetric_functions_of_its_powers() -> None:
    _, krylov = space(RING, 3)
    with seeded(0):
        filters = MatrixFilters(3).double()
    powers = torch.cat([torch.linalg.matrix_power(krylov.t, power).flatten() for power in LONG])
    g = filters.g(powers).view(3, 3, 3)
    torch.testing.assert_close(filters(krylov), g + g.transpose(1, 2))


def test_learned_similarity_is_the_gaussian_kernel_of_the_features() -> None:
    edges, x = crooked(), normal(6, 5)
    with seeded(0):
        kernel = LearnedSimilarity(5).double()
    p = x @ kernel.project.linear.weight.T
    w = dense(torch.ones(edges.num_edges).double(), edges) * torch.exp(-torch.cdist(p, p).square() / 2)
    expected = w / (w.sum(1)[:, None] * w.sum(0)).sqrt()
    torch.testing.assert_close(dense(kernel(x, edges, steps=2).a, edges), expected)


def test_krylov_space_of_a_fixed_matrix_is_computed_once_per_graph() -> None:
    edges, x = crooked(), normal(6, 5)
    krylov = NormalisedAdjacency()(x, edges, steps=3)
    assert NormalisedAdjacency()(x, edges, steps=3) is krylov
    assert NormalisedAdjacency()(x, edges, steps=2) is not krylov
    torch.testing.assert_close(krylov.q.T @ dense(krylov.a, edges) @ krylov.q, krylov.t, atol=1e-10, rtol=0)


@pytest.mark.parametrize("make", [lanczosnet, adalanczosnet], ids=["fixed", "adaptive"])
def test_gradients_reach_every_parameter(make: Callable[..., LanczosNet]) -> None:
    with seeded(0):
        model = make(Architecture(5, 2, width=3, stencil=Loops()), steps=3).double()
    model(normal(9, 5), RING).square().sum().backward()
    for name, parameter in model.named_parameters():
        assert parameter.grad is not None, name
        assert bool(parameter.grad.abs().sum() > 0), name


def test_only_the_learned_matrix_differs_from_that_of_gcn() -> None:
    architecture, x = Architecture(5, 2, width=3, stencil=Loops()), normal(9, 5)
    fixed, adaptive = lanczosnet(architecture, steps=3).double(), adalanczosnet(architecture, steps=3).double()
    assert fixed.attention_spread(fixed.prepare(x, RING)) == 0
    assert adaptive.attention_spread(adaptive.prepare(x, RING)) > 0.01


def test_directed_graphs_and_zero_steps_are_refused() -> None:
    model = lanczosnet(Architecture(5, 2, width=3), steps=3).double()
    with pytest.raises(ValueError, match=r"LanczosNet needs an undirected graph"):
        model(normal(6, 5), ragged())
    with pytest.raises(ValueError, match=r"LanczosNet needs `steps` at least 1; got 0"):
        lanczosnet(Architecture(5, 2), steps=0)
