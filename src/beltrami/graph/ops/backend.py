"""Which implementation of the two sparse products serves a tensor."""

from torch import Tensor

from beltrami.graph.edges import Compressed
from beltrami.graph.ops import reference, sparse


def spmm(pattern: Compressed, values: Tensor, dense: Tensor) -> Tensor:
    """Sparse matrix times dense matrix: (m,), (c, d) -> (r, d)."""
    if dense.dtype in sparse.DTYPES:
        return sparse.spmm(pattern, values, dense)
    return reference.spmm(pattern, values, dense)


def sddmm(pattern: Compressed, left: Tensor, right: Tensor) -> Tensor:
    """Dense times dense, sampled at the entries of a pattern: (r, d), (c, d) -> (m,)."""
    if left.dtype in sparse.DTYPES:
        return sparse.sddmm(pattern, left, right)
    return reference.sddmm(pattern, left, right)
