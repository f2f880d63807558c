"""A rectangular sparse matrix as a constant factor, for features and positions that are mostly zero."""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from scipy.sparse import coo_array, csr_array
from torch import Tensor
from torch.compiler import is_compiling
from torch.func import debug_unwrap

from beltrami.arguments import checked
from beltrami.graph.edges import Compressed
from beltrami.graph.ops.products import aggregate

SPARSE_BELOW = 0.1  # density of the features below which they are stored by their non-zeros
WIDE = 512  # columns of features whose non-zeros are counted in a call of a model


@dataclass(frozen=True, eq=False)
class SparseMatrix:
    """A sparse matrix (r, c), stored by rows and by columns. Build with :meth:`of`. ``X @ W`` and its gradient by W are
    both products over rows. The values of the matrix get no gradient."""

    rows: Compressed
    columns: Compressed
    values: Tensor
    shape: tuple[int, int]

    @staticmethod
    @checked
    def of(matrix: Tensor) -> "SparseMatrix":
        """Convert a dense tensor or any of torch's sparse layouts."""
        coo = matrix.detach().to_sparse_coo().coalesce()
        row, column = coo.indices()
        shape = (matrix.shape[0], matrix.shape[1])
        # A copy: torch.compile does not take a view of a sparse tensor.
        return SparseMatrix(*Compressed.pair(row, column, shape), coo.values().clone(), shape)

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


def sparse_where_it_pays(x: Tensor) -> Tensor | SparseMatrix:
    """Return inputs with few non-zeros as a sparse matrix, others dense."""
    entries = x.shape[0] * x.shape[1]
    nonzero = int(torch.count_nonzero(x)) if x.layout == torch.strided else x._nnz()
    if nonzero < SPARSE_BELOW * entries:
        return SparseMatrix.of(x)
    return x if x.layout == torch.strided else x.to_dense()


def sparse_if_wide(x: Any) -> Any:
    """Return dense features of many columns and few non-zeros as a sparse matrix, any other argument as it is. Features
    that need a gradient, and those inside a ``torch.func`` transform or compiled code, stay dense."""
    plain = isinstance(x, Tensor) and not is_compiling() and debug_unwrap(x) is x and x.layout == torch.strided
    wide = plain and x.dim() == 2 and x.shape[1] >= WIDE
    return sparse_where_it_pays(x) if wide and x.dtype.is_floating_point and not x.requires_grad else x


def to_scipy(matrix: Tensor) -> csr_array:
    """Return a tensor of any layout as a sparse matrix of scipy."""
    coo = matrix.detach().cpu().to_sparse_coo().coalesce()
    return coo_array((coo.values().numpy(), tuple(coo.indices().numpy())), shape=tuple(matrix.shape)).tocsr()


def from_scipy(matrix: csr_array) -> Tensor:
    """Return a sparse matrix of scipy as a coalesced COO tensor, float32."""
    coo = csr_array(matrix).tocoo()
    indices = torch.from_numpy(np.stack((coo.row, coo.col)).astype(np.int64))
    values = torch.from_numpy(coo.data.astype(np.float32))
    with torch.sparse.check_sparse_tensor_invariants(True):
        return torch.sparse_coo_tensor(indices, values, matrix.shape).coalesce()
