"""Reference backend: the sparse products in plain torch (gather, multiply, scatter), for any type and device."""

from torch import Tensor

from beltrami.graph.edges import Compressed


def spmm(pattern: Compressed, values: Tensor, dense: Tensor) -> Tensor:
    """Sum over each row's entries of value times dense row: (m, h), (c, h, k) -> (r, h, k)."""
    terms = (values[pattern.edge][..., None] * dense[pattern.index]).flatten(1)
    out = terms.new_zeros(len(pattern.ptr) - 1, terms.shape[1]).index_add_(0, pattern.row.long(), terms)
    return out.reshape(len(out), *dense.shape[1:])


def sddmm(pattern: Compressed, left: Tensor, right: Tensor) -> Tensor:
    """Dot product of the left row and the right row at each entry: (r, h, k), (c, h, k) -> (m, h)."""
    return (left[pattern.row] * right[pattern.index]).sum(-1)
