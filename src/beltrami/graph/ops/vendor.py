"""Vendor backend: the products of ``dispatch`` by MKL on the CPU and cuSPARSE on the GPU, one head at a time."""

import warnings
from collections.abc import Callable
from functools import cache

import torch
from torch import Tensor

from beltrami.graph.edges import Compressed


def spmm(pattern: Compressed, values: Tensor, dense: Tensor) -> Tensor:
    if dense.numel() == 0 or len(pattern.index) == 0:
        return dense.new_zeros(len(pattern.ptr) - 1, *dense.shape[1:])
    values = values.index_select(0, pattern.edge)
    return _per_head(lambda h: _csr(pattern, values[:, h].contiguous(), len(dense)) @ dense[:, h], dense.shape[1])


def sddmm(pattern: Compressed, left: Tensor, right: Tensor) -> Tensor:
    zero = left.new_zeros(len(pattern.index))
    if left.numel() == 0 or len(zero) == 0:
        return left.new_zeros(len(zero), left.shape[1])
    csr = _csr(pattern, zero, len(right))

    def product(h: int) -> Tensor:
        p, q = left[:, h].contiguous(), right[:, h].contiguous()
        sampled: Tensor = torch.sparse.sampled_addmm(csr, p, q.T, beta=0.0)  # a transposed view is the fast layout
        return sampled.values()

    return _per_head(product, left.shape[1])


def _per_head(product: Callable[[int], Tensor], heads: int) -> Tensor:
    return product(0)[:, None] if heads == 1 else torch.stack([product(h) for h in range(heads)], dim=1)


def _csr(pattern: Compressed, values: Tensor, columns: int) -> Tensor:
    _silence_beta_warning()
    size = (len(pattern.ptr) - 1, columns)
    matrix: Tensor = torch.sparse_csr_tensor(pattern.ptr, pattern.index, values, size, check_invariants=False)
    return matrix


@cache
def _silence_beta_warning() -> None:
    """Trigger torch's once-per-process warning that CSR tensors are in beta where it is ignored."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        torch.sparse_csr_tensor(torch.tensor([0, 1]), torch.tensor([0]), torch.tensor([1.0]), (1, 1))
