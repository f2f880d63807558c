"""SparseMatrix: the product and its gradient equal those of the dense matrix."""

from collections.abc import Callable

import pytest
import torch
from checks import normal
from torch import Tensor
from torch.autograd import gradcheck, gradgradcheck

from beltrami.graph import SparseMatrix
from beltrami.graph.ops import dispatch

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
def test_product_and_gradient_are_those_of_the_dense_matrix(layout: str) -> None:
    sparse, w, v = SparseMatrix.of(LAYOUTS[layout](MATRIX)), normal(3, 4).requires_grad_(), normal(5, 4, seed=1)
    out = sparse @ w
    (found,) = torch.autograd.grad(out, w, v)
    torch.testing.assert_close(out, MATRIX @ w)
    torch.testing.assert_close(found, MATRIX.T @ v)
    assert (sparse.shape, sparse.dtype, len(sparse.values)) == ((5, 3), torch.float64, 7)


@pytest.mark.parametrize("in_turn", [True, False], ids=["in turn", "as heads"])
@pytest.mark.parametrize("in_dims", [(0, 0), (0, None), (None, 0), (None, 1)])
def test_a_batch_of_products_equals_the_products(
    in_dims: tuple[int | None, int | None], in_turn: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(dispatch, "loops_over_runs", lambda _: in_turn)
    sparse = SparseMatrix.of(MATRIX)
    values = normal(2, 7) if in_dims[0] == 0 else normal(7)
    w = normal(3, 4) if in_dims[1] is None else normal(2, 3, 4).movedim(0, in_dims[1])

    def loss(values: Tensor, w: Tensor) -> Tensor:
        return (sparse.with_values(values) @ w).sin().sum()

    found = torch.func.vmap(torch.func.grad(loss, argnums=1), in_dims=in_dims)(values, w)
    for run in range(2):
        v = values[run] if in_dims[0] == 0 else values
        x = w if in_dims[1] is None else w.select(in_dims[1], run)
        torch.testing.assert_close(found[run], torch.func.grad(loss, argnums=1)(v, x))


def test_derivatives_of_the_product() -> None:
    sparse, w = SparseMatrix.of(MATRIX), normal(3, 2).requires_grad_()
    assert gradcheck(lambda w: sparse @ w**2, (w,))
    assert gradgradcheck(lambda w: sparse @ w**2, (w,))


def test_entries_named_twice_are_summed() -> None:
    index, values = torch.tensor([[0, 0, 1], [1, 1, 0]]), torch.tensor([1.0, 2.0, 5.0])
    doubled = torch.sparse_coo_tensor(index, values, (2, 2), check_invariants=True)
    sparse = SparseMatrix.of(doubled)
    assert (sparse @ torch.eye(2)).tolist() == [[0.0, 3.0], [5.0, 0.0]]


def test_values_get_no_gradient() -> None:
    sparse = SparseMatrix.of(MATRIX.clone().requires_grad_())
    assert not sparse.values.requires_grad
    assert not (sparse.with_values(sparse.values.clone().requires_grad_()) @ normal(3, 2)).requires_grad


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


def test_other_values_take_the_same_places_and_leave_the_original_unchanged() -> None:
    sparse = SparseMatrix.of(MATRIX)
    before = sparse.values.clone()
    doubled = sparse.with_values(2 * sparse.values)
    torch.testing.assert_close(doubled @ torch.eye(3, dtype=torch.float64), 2 * MATRIX)
    assert torch.equal(sparse.values, before)


def test_the_gradient_uses_the_new_values() -> None:
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


def test_repr_names_shape_and_non_zeros() -> None:
    assert repr(SparseMatrix.of(MATRIX)) == "SparseMatrix(5 x 3, 7 non-zeros)"
