"""Lanczos: its relation, Ritz values against dense eigenvalues, and the networks that are built on it."""

from collections.abc import Callable
from itertools import pairwise

import pytest
import torch
from checks import crooked, dense, normal, ragged, undirected
from torch import Tensor
from torch.autograd import gradcheck
from torch.func import vmap

from beltrami.graph import Edges
from beltrami.model.baseline import Frame, adalanczosnet, lanczosnet
from beltrami.model.baseline.filter import LONG, OfMatrix, OfValues
from beltrami.model.baseline.krylov import Krylov, lanczos
from beltrami.model.baseline.lanczosnet import SHORT, LanczosNet, Normalised, Range, Similarity
from beltrami.model.baseline.weight import symmetric
from beltrami.stencil import Loops
from beltrami.train import seeded

RING = undirected([(k, (k + 1) % 9) for k in range(9)] + [(0, 4), (2, 7), (1, 5)], num_nodes=9)


def space(edges: Edges, steps: int) -> tuple[Tensor, Krylov]:
    """The dense matrix, and its Krylov space from a random vector."""
    a = symmetric(edges, torch.float64)
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
def test_what_is_left_over_is_in_the_last_column_alone(steps: int) -> None:
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


def test_outer_ritz_values_move_outwards_to_the_ends_of_the_spectrum() -> None:
    values = [space(RING, k)[1].eigen[0] for k in range(1, 10)]
    smallest, largest = [found[0] for found in values], [found[-1] for found in values]
    eigenvalues = torch.linalg.eigvalsh(space(RING, 1)[0])
    assert all(before >= after for before, after in pairwise(smallest))
    assert all(before <= after for before, after in pairwise(largest))
    assert abs(smallest[-1] - eigenvalues[0]) < 1e-10
    assert abs(largest[-1] - eigenvalues[-1]) < 1e-10


def test_an_exhausted_space_is_filled_up_with_zeros() -> None:
    edges = undirected([(0, 1), (0, 2), (0, 3)], num_nodes=4)  # three different eigenvalues
    a, krylov = space(edges, 4)
    q, t = krylov.q, krylov.t
    assert torch.equal(q[:, 3], torch.zeros(4).double())
    assert torch.equal(t[3], torch.zeros(4).double())
    torch.testing.assert_close(a @ q, q @ t, atol=1e-10, rtol=0)


def test_lanczos_can_be_differentiated_and_batched() -> None:
    start = normal(9, seed=2)

    def small(w: Tensor) -> Tensor:
        half = w[torch.minimum(RING.i, RING.j) * 9 + torch.maximum(RING.i, RING.j)]  # the same in both directions
        return lanczos(half, RING, start, steps=4).t

    w = normal(81).abs().requires_grad_()
    assert gradcheck(small, (w,))
    batch = normal(3, 81, seed=5).abs()
    torch.testing.assert_close(vmap(small)(batch), torch.stack([small(one) for one in batch]))


def test_range_is_the_sum_of_its_powers_and_filters() -> None:
    a, krylov = space(RING, 4)
    with seeded(0):
        layer = Range(5, 3, OfValues()).double()
    x = normal(9, 5)
    parts = [x @ w.T for w in layer.project.linear.weight.chunk(len(SHORT) + len(LONG))]
    expected = sum((torch.linalg.matrix_power(a, s) @ p for s, p in zip(SHORT, parts, strict=False)), layer.bias)
    for f, part in zip(layer.filters(krylov), parts[len(SHORT) :], strict=True):
        expected = expected + krylov.q @ f @ krylov.q.T @ part
    torch.testing.assert_close(layer(x, krylov, RING), expected)


def test_filters_of_values_are_functions_of_the_matrix() -> None:
    """A network that only passes r^10 on gives T^10."""
    _, krylov = space(RING, 5)
    filters = OfValues().double()
    with torch.no_grad():
        for parameter in filters.parameters():
            parameter.zero_()
        filters.get_parameter("f.0.weight")[0, 0] = 1.0
        filters.get_parameter("f.2.weight")[1, 0] = 1.0
    found = filters(krylov)
    torch.testing.assert_close(found[1], torch.linalg.matrix_power(krylov.t, 10), atol=1e-12, rtol=0)
    assert torch.equal(found[0], torch.zeros(5, 5).double())


def test_filters_of_the_matrix_are_symmetric_functions_of_its_powers() -> None:
    _, krylov = space(RING, 3)
    with seeded(0):
        filters = OfMatrix(3).double()
    powers = torch.cat([torch.linalg.matrix_power(krylov.t, power).flatten() for power in LONG])
    g = filters.g(powers).view(3, 3, 3)
    torch.testing.assert_close(filters(krylov), g + g.transpose(1, 2))


def test_similarity_is_the_kernel_of_the_features() -> None:
    edges, x = crooked(), normal(6, 5)
    with seeded(0):
        kernel = Similarity(5).double()
    p = x @ kernel.project.linear.weight.T
    w = dense(torch.ones(edges.num_edges).double(), edges) * torch.exp(-torch.cdist(p, p).square() / 2)
    expected = w / (w.sum(1)[:, None] * w.sum(0)).sqrt()
    torch.testing.assert_close(dense(kernel(x, edges, steps=2).a, edges), expected)


def test_space_of_a_fixed_matrix_is_found_once_for_a_graph() -> None:
    edges, x = crooked(), normal(6, 5)
    krylov = Normalised()(x, edges, steps=3)
    assert Normalised()(x, edges, steps=3) is krylov
    assert Normalised()(x, edges, steps=2) is not krylov
    torch.testing.assert_close(krylov.q.T @ dense(krylov.a, edges) @ krylov.q, krylov.t, atol=1e-10, rtol=0)


@pytest.mark.parametrize("make", [lanczosnet, adalanczosnet], ids=["fixed", "adaptive"])
def test_gradients_reach_every_parameter(make: Callable[..., LanczosNet]) -> None:
    with seeded(0):
        model = make(Frame(5, 2, width=3, stencil=Loops()), steps=3).double()
    model(normal(9, 5), RING).square().sum().backward()
    for name, parameter in model.named_parameters():
        assert parameter.grad is not None, name
        assert bool(parameter.grad.abs().sum() > 0), name


def test_only_the_adaptive_matrix_departs_from_that_of_gcn() -> None:
    frame, x = Frame(5, 2, width=3, stencil=Loops()), normal(9, 5)
    fixed, adaptive = lanczosnet(frame, steps=3).double(), adalanczosnet(frame, steps=3).double()
    assert fixed.attention_spread(fixed.prepare(x, RING)) == 0
    assert adaptive.attention_spread(adaptive.prepare(x, RING)) > 0.01


def test_directed_graphs_and_empty_spaces_are_refused() -> None:
    model = lanczosnet(Frame(5, 2, width=3), steps=3).double()
    with pytest.raises(ValueError, match=r"LanczosNet needs an undirected graph"):
        model(normal(6, 5), ragged())
    with pytest.raises(ValueError, match=r"LanczosNet needs `steps` at least 1; got 0"):
        lanczosnet(Frame(5, 2), steps=0)
