"""Sparse: a rectangular sparse matrix as a constant factor, for features and positions that are mostly zero."""

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from torch.autograd import Function

from beltrami.graph.edges import Compressed, pointers
from beltrami.graph.ops import dispatch
from beltrami.graph.ops.products import one_by_one


@dataclass(frozen=True, eq=False)
class SparseMatrix:
    """A sparse matrix (r, c) with its transpose at hand, so that ``X @ W`` and its gradient are both row products.

    The matrix is data: gradients reach the dense factor, never the values. Build with :meth:`of`.
    """

    rows: Compressed
    columns: Compressed
    values: Tensor
    shape: tuple[int, int]

    @staticmethod
    def of(matrix: Tensor) -> "SparseMatrix":
        """From a dense tensor or any of torch's sparse layouts."""
        coo = matrix.detach().to_sparse_coo().coalesce()
        row, column = coo.indices()
        by_column = column.argsort(stable=True)
        here = torch.arange(len(row), device=row.device)
        return SparseMatrix(
            rows=Compressed(pointers(row, matrix.shape[0]), column.int(), here.int()),
            columns=Compressed(pointers(column, matrix.shape[1]), row[by_column].int(), by_column.int()),
            values=coo.values(),
            shape=(matrix.shape[0], matrix.shape[1]),
        )

    def __matmul__(self, dense: Tensor) -> Tensor:
        """(r, c) @ (c, d) -> (r, d)."""
        out: Tensor = _Product.apply(self.values, dense, self.rows, self.columns)  # type: ignore[no-untyped-call]
        return out

    def with_values(self, values: Tensor) -> "SparseMatrix":
        """Other values at the same places, (non-zeros,)."""
        return SparseMatrix(self.rows, self.columns, values, self.shape)

    def to(self, device: torch.device | str) -> "SparseMatrix":
        return SparseMatrix(self.rows.to(device), self.columns.to(device), self.values.to(device), self.shape)

    @property
    def density(self) -> float:
        return len(self.values) / max(1, self.shape[0] * self.shape[1])

    @property
    def dtype(self) -> torch.dtype:
        return self.values.dtype

    def __repr__(self) -> str:
        return f"Sparse({self.shape[0]} x {self.shape[1]}, {len(self.values)} non-zeros)"


class _Product(Function):
    """Of the values on the pattern ``rows``, whose transpose is ``columns``, and a dense matrix."""

    @staticmethod
    def forward(values: Tensor, dense: Tensor, rows: Compressed, columns: Compressed) -> Tensor:
        heads = values if values.dim() == 2 else values[:, None]
        out = dispatch.spmm(rows, heads, dense.unflatten(1, (heads.shape[1], -1)))
        return out.flatten(1, 2)

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:
        values, _, ctx.rows, ctx.columns = inputs
        ctx.save_for_backward(values)

    @staticmethod
    def backward(ctx: Any, *grad: Tensor) -> tuple[None, Tensor, None, None]:
        (values,) = ctx.saved_tensors
        return None, _Product.apply(values, grad[0], ctx.columns, ctx.rows), None, None  # type: ignore[no-untyped-call]

    @staticmethod
    def vmap(
        info: Any, in_dims: tuple[int | None, ...], values: Tensor, dense: Tensor, rows: Compressed, columns: Compressed
    ) -> tuple[Tensor, int]:
        """Runs side by side: each a head with values of its own, or more channels where they share them."""
        runs = info.batch_size
        if dispatch.apart(dense):

            def product(values: Tensor, dense: Tensor) -> Tensor:
                out: Tensor = _Product.apply(values, dense, rows, columns)  # type: ignore[no-untyped-call]
                return out

            return one_by_one(product, in_dims, values, dense)
        if in_dims[0] is not None:
            values = values.movedim(in_dims[0], 1)
        dense = dense[:, None].expand(-1, runs, -1) if in_dims[1] is None else dense.movedim(in_dims[1], 1)
        out = _Product.apply(values, dense.flatten(1, 2), rows, columns)  # type: ignore[no-untyped-call]
        return out.unflatten(1, (runs, -1)), 1
