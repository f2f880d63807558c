"""A rectangular sparse matrix as a constant factor, for features and positions that are mostly zero."""

from dataclasses import dataclass, replace

import torch
from torch import Tensor

from beltrami.graph.edges import Compressed
from beltrami.graph.ops.products import aggregate


@dataclass(frozen=True, eq=False)
class SparseMatrix:
    """A sparse matrix (r, c), stored by rows and by columns. Build with :meth:`of`. ``X @ W`` and its gradient by W are
    both products over rows. The values of the matrix get no gradient."""

    rows: Compressed
    columns: Compressed
    values: Tensor
    shape: tuple[int, int]

    @staticmethod
    def of(matrix: Tensor) -> "SparseMatrix":
        """Convert a dense tensor or any of torch's sparse layouts."""
        coo = matrix.detach().to_sparse_coo().coalesce()
        row, column = coo.indices()
        shape = (matrix.shape[0], matrix.shape[1])
        return SparseMatrix(*Compressed.pair(row, column, shape), coo.values(), shape)

    def __matmul__(self, dense: Tensor) -> Tensor:
        """(r, c) @ (c, d) -> (r, d)."""
        return aggregate(self.values.detach(), dense, self)

    def with_values(self, values: Tensor) -> "SparseMatrix":
        """Return a matrix with other values (non-zeros,) at the same places."""
        return replace(self, values=values)

    def to(self, device: torch.device | str) -> "SparseMatrix":
        return SparseMatrix(self.rows.to(device), self.columns.to(device), self.values.to(device), self.shape)

    @property
    def dtype(self) -> torch.dtype:
        return self.values.dtype

    def __repr__(self) -> str:
        return f"SparseMatrix({self.shape[0]} x {self.shape[1]}, {len(self.values)} non-zeros)"
