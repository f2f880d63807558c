"""Reference backend: the products of ``dispatch`` in plain torch (gather, multiply, scatter), for any type."""

from torch import Tensor

from beltrami.graph.edges import Compressed


def spmm(pattern: Compressed, values: Tensor, dense: Tensor) -> Tensor:
    terms = (values[pattern.edge][..., None] * dense[pattern.index]).flatten(1)
    out = terms.new_zeros(len(pattern.ptr) - 1, terms.shape[1]).index_add_(0, pattern.row.long(), terms)
    return out.reshape(len(out), *dense.shape[1:])


def sddmm(pattern: Compressed, left: Tensor, right: Tensor) -> Tensor:
    return (left[pattern.row] * right[pattern.index]).sum(-1)
