"""The two sparse products on compressed rows, by the vendors' libraries: MKL on the CPU, cuSPARSE on the GPU."""

import warnings
from functools import cache

import torch
from torch import Tensor

from beltrami.graph.edges import Compressed

DTYPES = (torch.float32, torch.float64)


def spmm(pattern: Compressed, values: Tensor, dense: Tensor) -> Tensor:
    """As the reference: (m,), (c, d) -> (r, d). ``values`` are in edge order and brought into the pattern's."""
    if dense.shape[1] == 0 or len(pattern.index) == 0:
        return dense.new_zeros(len(pattern.ptr) - 1, dense.shape[1])
    matrix = _csr(pattern, values.index_select(0, pattern.edge), dense.shape[0])
    product: Tensor = matrix @ dense
    return product


def sddmm(pattern: Compressed, left: Tensor, right: Tensor) -> Tensor:
    """As the reference: (r, d), (c, d) -> (m,). The right factor goes in as a transposed view, which is fast."""
    if left.shape[1] == 0 or len(pattern.index) == 0:
        return left.new_zeros(len(pattern.index))
    zero = left.new_zeros(len(pattern.index))
    sampled: Tensor = torch.sparse.sampled_addmm(
        _csr(pattern, zero, right.shape[0]), left.contiguous(), right.contiguous().T, beta=0.0
    )
    return sampled.values()


def _csr(pattern: Compressed, values: Tensor, columns: int) -> Tensor:
    _hush()
    size = (len(pattern.ptr) - 1, columns)
    matrix: Tensor = torch.sparse_csr_tensor(pattern.ptr, pattern.index, values, size, check_invariants=False)
    return matrix


@cache
def _hush() -> None:
    """torch says once per process that compressed rows are in beta; that is for us to know, not for every user."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        torch.sparse_csr_tensor(torch.tensor([0, 1]), torch.tensor([0]), torch.tensor([1.0]), (1, 1))
