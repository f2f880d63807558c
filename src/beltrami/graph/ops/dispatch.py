"""Which implementation of the sparse products serves a tensor: kernels, the vendors' libraries, or the reference."""

from collections.abc import Callable
from functools import cache
from importlib.util import find_spec

import torch
from torch import Tensor

from beltrami.graph.edges import Compressed
from beltrami.graph.ops import reference, vendor

KERNEL_DTYPES = (torch.float32, torch.float64, torch.bfloat16, torch.float16)


def spmm(pattern: Compressed, values: Tensor, dense: Tensor) -> Tensor:
    """Sparse matrices times dense matrices, head by head: (m, h), (c, h, k) -> (r, h, k)."""
    if has_kernel(dense):
        from beltrami.graph.ops.triton import product

        return product.spmm(pattern, values, dense)
    if _worth_compiling(dense):
        from beltrami.graph.ops import numba

        return numba.spmm(pattern, values, dense)
    one = vendor.spmm if dense.dtype in vendor.DTYPES else reference.spmm
    return _heads(lambda h: one(pattern, values[:, h], dense[:, h]), values.shape[1])


def sddmm(pattern: Compressed, left: Tensor, right: Tensor) -> Tensor:
    """Dense times dense, sampled at the entries of a pattern: (r, h, k), (c, h, k) -> (m, h), in its order."""
    if has_kernel(left):
        from beltrami.graph.ops.triton import product

        return product.sddmm(pattern, left, right)
    if _worth_compiling(left):
        from beltrami.graph.ops import numba

        return numba.sddmm(pattern, left, right)
    one = vendor.sddmm if left.dtype in vendor.DTYPES else reference.sddmm
    return _heads(lambda h: one(pattern, left[:, h], right[:, h]), left.shape[1])


def row_sums(pattern: Compressed, values: Tensor) -> Tensor:
    """Edge values summed over the rows of a pattern, in a fixed order: (m, d) -> (r, d)."""
    if has_kernel(values):
        from beltrami.graph.ops.triton import product

        return product.row_sums(pattern, values)
    # The incidence matrix: a row per row, a column per edge. A product has a fixed order of summation on every
    # device, which scatter-add with atomics has not.
    incidence = Compressed(pattern.ptr, pattern.edge, pattern.edge)
    return spmm(incidence, values.new_ones(len(values), 1), values[:, None])[:, 0]


def row_max(pattern: Compressed, values: Tensor) -> Tensor:
    """The largest of the edge values in each row of a pattern, minus infinity for an empty row: (m, d) -> (r, d)."""
    if has_kernel(values):
        from beltrami.graph.ops.triton import product

        return product.row_sums(pattern, values, largest=True)
    row = pattern.row.long()[:, None].expand(-1, values.shape[1])
    lowest = values.new_full((len(pattern.ptr) - 1, values.shape[1]), -torch.inf)
    return lowest.scatter_reduce(0, row, values.index_select(0, pattern.edge), "amax")


def spread(values: Tensor, index: Tensor) -> Tensor:
    """Rows of ``values`` by their numbers: (n, h), (m,) -> (m, h)."""
    if has_kernel(values):
        from beltrami.graph.ops.triton import product

        return product.spread(values, index)
    return values.index_select(0, index)


def apart(tensor: Tensor) -> bool:
    """Whether the runs of a batch are better taken one by one than side by side, which costs a copy but one launch."""
    return tensor.device.type == "cpu"


def has_kernel(tensor: Tensor) -> bool:
    """Whether our own kernels serve tensors like this one."""
    return tensor.is_cuda and tensor.dtype in KERNEL_DTYPES and _has_triton()


def _worth_compiling(tensor: Tensor) -> bool:
    """Whether loops compiled by numba serve better: for several heads on the CPU, which libraries take one by one."""
    return tensor.shape[1] > 1 and can_compile(tensor)


def can_compile(tensor: Tensor) -> bool:
    """Whether loops compiled by numba serve tensors like this one."""
    return tensor.device.type == "cpu" and tensor.dtype in vendor.DTYPES and _has_numba()


@cache
def _has_numba() -> bool:
    return find_spec("numba") is not None


@cache
def _has_triton() -> bool:
    return find_spec("triton") is not None


def _heads(one: Callable[[int], Tensor], heads: int) -> Tensor:
    return one(0)[:, None] if heads == 1 else torch.stack([one(h) for h in range(heads)], dim=1)
