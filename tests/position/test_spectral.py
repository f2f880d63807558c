"""Laplacian eigenvectors: the eigenvalue equation, orthogonality and signs."""

import math

import pytest
import torch
from checks import dense, kite, undirected
from torch import Tensor

from beltrami.graph import Edges
from beltrami.position import LaplacianEigenvectors

# A tree of eight without symmetry, so that every eigenvalue is simple.
TREE = undirected([(0, 1), (1, 2), (2, 3), (3, 4), (2, 5), (5, 6), (6, 7), (1, 7)], num_nodes=8)


def laplacian(edges: Edges) -> Tensor:
    """Return I - D^-1/2 (A + I) D^-1/2."""
    eye = torch.eye(edges.num_nodes, dtype=torch.float64)
    a = dense(torch.ones(edges.num_edges, dtype=torch.float64), edges) + eye
    root = a.sum(1).rsqrt()
    return eye - root[:, None] * a * root


@pytest.mark.parametrize("channels", [1, 3, 6])  # the first by Lanczos, the others by the dense solver
def test_they_solve_the_eigenvalue_equation_for_the_smallest_eigenvalues(channels: int) -> None:
    exact = torch.linalg.eigvalsh(laplacian(TREE))[1 : channels + 1]
    u = LaplacianEigenvectors(channels)(TREE).double()
    assert u.shape == (8, channels)
    torch.testing.assert_close(laplacian(TREE) @ u, u * exact, atol=2e-6, rtol=0)


def test_columns_are_orthogonal_and_of_length_root_n() -> None:
    u = LaplacianEigenvectors(5)(TREE).double()
    torch.testing.assert_close(u.T @ u, 8 * torch.eye(5, dtype=torch.float64), atol=1e-5, rtol=0)


def test_they_are_orthogonal_to_the_stationary_one() -> None:
    stationary = (TREE.in_degree() + 1).double().sqrt()
    u = LaplacianEigenvectors(5)(TREE).double()
    torch.testing.assert_close(stationary @ u, torch.zeros(5, dtype=torch.float64), atol=1e-5, rtol=0)


@pytest.mark.parametrize("channels", [1, 5])
def test_the_largest_entry_of_each_is_positive(channels: int) -> None:
    u = LaplacianEigenvectors(channels)(TREE)
    largest = u.gather(0, u.abs().argmax(0, keepdim=True))
    assert bool((largest > 0).all())


def test_both_solvers_agree() -> None:
    few, many = LaplacianEigenvectors(1)(TREE), LaplacianEigenvectors(5)(TREE)
    torch.testing.assert_close(few, many[:, :1], atol=1e-5, rtol=0)


def test_they_are_reproducible() -> None:
    for channels in (1, 5):
        assert torch.equal(LaplacianEigenvectors(channels)(TREE), LaplacianEigenvectors(channels)(TREE))


def test_a_cycle_has_the_fourier_modes() -> None:
    cycle = undirected([(k, (k + 1) % 6) for k in range(6)], num_nodes=6)
    u = LaplacianEigenvectors(2)(cycle).double()
    k = torch.arange(6, dtype=torch.float64) * 2 * math.pi / 6
    modes = torch.stack((k.cos(), k.sin()), dim=1)
    # The eigenvalue is double: only the projection onto its plane is unique.
    torch.testing.assert_close(u @ u.T / 6, modes @ modes.T / 3, atol=1e-5, rtol=0)


@pytest.mark.parametrize("channels", [3, 10])
def test_more_channels_than_the_graph_has_are_refused(channels: int) -> None:
    with pytest.raises(ValueError, match=f"below the number of nodes less one; got {channels}, 4 nodes"):
        LaplacianEigenvectors(channels)(kite())


def test_no_channels_are_refused() -> None:
    with pytest.raises(ValueError, match="needs `channels` at least 1; got 0"):
        LaplacianEigenvectors(0)
