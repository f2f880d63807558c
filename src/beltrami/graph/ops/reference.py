"""The two sparse products in plain torch: gather, multiply, scatter. Any floating type, any device; the yardstick."""

import torch
from torch import Tensor

from beltrami.graph.edges import Compressed


def spmm(pattern: Compressed, values: Tensor, dense: Tensor) -> Tensor:
    """Sum over each row's entries of value times the dense row its column names; (m,), (c, d) -> (r, d)."""
    rows = _rows(pattern)
    out = dense.new_zeros(len(pattern.ptr) - 1, dense.shape[1])
    return out.index_add_(0, rows, values[pattern.edge][:, None] * dense[pattern.index])


def sddmm(pattern: Compressed, left: Tensor, right: Tensor) -> Tensor:
    """Dot product of the left row and the right row that each entry names; (r, d), (c, d) -> (m,)."""
    return (left[_rows(pattern)] * right[pattern.index]).sum(-1)


def _rows(pattern: Compressed) -> Tensor:
    counts = pattern.ptr.diff()
    return torch.arange(len(counts), device=counts.device).repeat_interleave(counts)
