"""Sparse: the product, its gradient and its dropout are those of the dense matrix."""

from collections.abc import Callable

import pytest
import torch
from checks import normal
from torch import Tensor
from torch.autograd import gradcheck, gradgradcheck

from beltrami.graph import SparseMatrix

MATRIX = torch.tensor(
    [[0.0, 2.0, 0.0], [0.0, 0.0, 0.0], [1.5, 0.0, -3.0], [0.0, 0.0, 4.0], [0.5, 1.0, 2.0]], dtype=torch.float64
)
LAYOUTS: dict[str, Callable[[Tensor], Tensor]] = {
    "dense": lambda x: x,
    "coo": lambda x: x.to_sparse_coo(),
    "csr": lambda x: x.to_sparse_csr(),
    "csc": lambda x: x.to_sparse_csc(),
}

layouts = pytest.mark.parametrize("layout", LAYOUTS)
quiet = pytest.mark.filterwarnings("ignore:Sparse CS. tensor support is in beta")


@quiet
@layouts
def test_the_product_is_that_of_the_dense_matrix(layout: str) -> None:
    sparse, w = SparseMatrix.of(LAYOUTS[layout](MATRIX)), normal(3, 4)
    torch.testing.assert_close(sparse @ w, MATRIX @ w)
    assert (sparse.shape, sparse.dtype, len(sparse.values)) == ((5, 3), torch.float64, 7)


@quiet
@layouts
def test_the_gradient_is_that_of_the_dense_matrix(layout: str) -> None:
    sparse, w, v = SparseMatrix.of(LAYOUTS[layout](MATRIX)), normal(3, 4).requires_grad_(), normal(5, 4, seed=1)
    (found,) = torch.autograd.grad(sparse @ w, w, v)
    torch.testing.assert_close(found, MATRIX.T @ v)


def test_derivatives_of_the_product() -> None:
    sparse, w = SparseMatrix.of(MATRIX), normal(3, 2).requires_grad_()
    assert gradcheck(lambda w: sparse @ w**2, (w,))
    assert gradgradcheck(lambda w: sparse @ w**2, (w,))


def test_entries_named_twice_are_summed() -> None:
    index, values = torch.tensor([[0, 0, 1], [1, 1, 0]]), torch.tensor([1.0, 2.0, 5.0])
    doubled = torch.sparse_coo_tensor(index, values, (2, 2), check_invariants=True)
    sparse = SparseMatrix.of(doubled)
    assert (sparse @ torch.eye(2)).tolist() == [[0.0, 3.0], [5.0, 0.0]]


def test_values_are_data_and_get_no_gradient() -> None:
    source = MATRIX.clone().requires_grad_()
    assert not SparseMatrix.of(source).values.requires_grad


def test_half_precision_works() -> None:
    sparse, w = SparseMatrix.of(MATRIX.bfloat16()), normal(3, 4).bfloat16()
    torch.testing.assert_close((sparse @ w).double(), MATRIX @ w.double(), atol=0.1, rtol=0.02)


@pytest.mark.parametrize("shape", [(3, 2), (1, 4)])
def test_a_matrix_of_zeros_gives_zeros(shape: tuple[int, int]) -> None:
    sparse, w = SparseMatrix.of(torch.zeros(shape)), torch.ones(shape[1], 2, requires_grad=True)
    out = sparse @ w
    (found,) = torch.autograd.grad(out.sum(), w)
    assert out.tolist() == [[0.0, 0.0]] * shape[0]
    assert float(found.abs().sum()) == 0.0


def test_density_is_the_share_of_non_zeros() -> None:
    assert SparseMatrix.of(MATRIX).density == pytest.approx(7 / 15)
    assert SparseMatrix.of(torch.zeros(2, 2)).density == 0.0
    assert SparseMatrix.of(torch.zeros(0, 2)).density == 0.0


def test_other_values_stand_at_the_same_places_and_the_original_stays() -> None:
    sparse = SparseMatrix.of(MATRIX)
    before = sparse.values.clone()
    doubled = sparse.with_values(2 * sparse.values)
    torch.testing.assert_close(doubled @ torch.eye(3, dtype=torch.float64), 2 * MATRIX)
    assert torch.equal(sparse.values, before)


def test_the_gradient_goes_through_the_same_values() -> None:
    sparse, w = SparseMatrix.of(MATRIX), normal(3, 2).requires_grad_()
    sparse = sparse.with_values(sparse.values * torch.tensor([0.0, 2, 0, 2, 2, 0, 2], dtype=torch.float64))
    matrix = sparse @ torch.eye(3, dtype=torch.float64)
    (found,) = torch.autograd.grad((sparse @ w).sum(), w)
    torch.testing.assert_close(found, matrix.T @ torch.ones(5, 2, dtype=torch.float64))


def test_to_moves_every_tensor() -> None:
    moved = SparseMatrix.of(MATRIX).to("meta")
    tensors = [moved.values, *(t for p in (moved.rows, moved.columns) for t in (p.ptr, p.index, p.edge))]
    assert {t.device.type for t in tensors} == {"meta"}
    assert moved.shape == (5, 3)


def test_repr_says_what_it_holds() -> None:
    assert repr(SparseMatrix.of(MATRIX)) == "Sparse(5 x 3, 7 non-zeros)"
