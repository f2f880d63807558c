"""Sparse: a rectangular sparse matrix as a constant factor, for features and positions that are mostly zero."""

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from torch.autograd import Function

from beltrami.graph.edges import Compressed, pointers
from beltrami.graph.ops import backend


@dataclass(frozen=True, eq=False)
class Sparse:
    """A sparse matrix (r, c) with its transpose at hand, so that ``X @ W`` and its gradient are both row products.

    The matrix is data: gradients reach the dense factor, never the values. Build with :meth:`of`.
    """

    rows: Compressed
    columns: Compressed
    values: Tensor
    shape: tuple[int, int]

    @staticmethod
    def of(matrix: Tensor) -> "Sparse":
        """From a dense tensor or any of torch's sparse layouts."""
        coo = matrix.detach().to_sparse_coo().coalesce()
        row, column = coo.indices()
        by_column = column.argsort(stable=True)
        here = torch.arange(len(row), device=row.device)
        return Sparse(
            rows=Compressed(pointers(row, matrix.shape[0]), column.int(), here.int()),
            columns=Compressed(pointers(column, matrix.shape[1]), row[by_column].int(), by_column.int()),
            values=coo.values(),
            shape=(matrix.shape[0], matrix.shape[1]),
        )

    def __matmul__(self, dense: Tensor) -> Tensor:
        """(r, c) @ (c, d) -> (r, d)."""
        out: Tensor = _Product.apply(dense, self)  # type: ignore[no-untyped-call]
        return out

    def with_values(self, values: Tensor) -> "Sparse":
        """Other values at the same places, (non-zeros,)."""
        return Sparse(self.rows, self.columns, values, self.shape)

    def to(self, device: torch.device | str) -> "Sparse":
        return Sparse(self.rows.to(device), self.columns.to(device), self.values.to(device), self.shape)

    @property
    def density(self) -> float:
        return len(self.values) / max(1, self.shape[0] * self.shape[1])

    @property
    def dtype(self) -> torch.dtype:
        return self.values.dtype

    def __repr__(self) -> str:
        return f"Sparse({self.shape[0]} x {self.shape[1]}, {len(self.values)} non-zeros)"


class _Product(Function):
    @staticmethod
    def forward(ctx: Any, dense: Tensor, matrix: Sparse) -> Tensor:
        ctx.matrix = matrix
        return backend.spmm(matrix.rows, matrix.values[:, None], dense[:, None])[:, 0]

    @staticmethod
    def backward(ctx: Any, *grad: Tensor) -> tuple[Tensor, None]:
        m: Sparse = ctx.matrix
        transposed = Sparse(m.columns, m.rows, m.values, (m.shape[1], m.shape[0]))
        return transposed @ grad[0], None
