"""Linear combinations of the vectors of a recurrence, and the dot products that are their derivatives."""

from collections.abc import Sequence
from functools import cache
from importlib.util import find_spec

import torch
from torch import Tensor


def combine(y0: Tensor, d: Tensor, blocks: Sequence[Tensor]) -> Tensor:
    """Return y0, and y0 + sum_k d_jk w_k at each time j, of every run, without a graph.

    Shapes:
        ``y0`` (runs, n, d), ``d`` (runs, j, k), blocks of k in all, each (k, runs, n, d) -> (runs, 1 + j, n, d).
    """
    ys = y0.new_empty(len(y0), 1 + d.shape[1], *y0.shape[1:])
    parts = d.split([len(block) for block in blocks], dim=2)
    if uses_triton(ys):
        from beltrami.scheme.exponential import linear_combination_triton

        for k, (part, block) in enumerate(zip(parts, blocks, strict=True)):
            linear_combination_triton.combine(ys, y0 if k == 0 else None, part, block)
        return ys
    ys[:] = y0[:, None]
    for part, block in zip(parts, blocks, strict=True):
        ys[:, 1:].flatten(2).baddbmm_(part, _by_run(block))
    return ys


def dots(g: Tensor, blocks: Sequence[Tensor]) -> Tensor:
    """Return <g_j, w_k> of every run, (runs, j, n, d), blocks (k, runs, n, d) -> (runs, j, k)."""
    if uses_triton(g):
        from beltrami.scheme.exponential import linear_combination_triton

        return torch.cat([linear_combination_triton.dots(g, block) for block in blocks], dim=2)
    return torch.cat([torch.bmm(g.flatten(2), _by_run(block).mT) for block in blocks], dim=2)


def uses_triton(tensor: Tensor) -> bool:
    """Whether Triton kernels serve this tensor; cuBLAS is slow for matrices of one or a few rows."""
    return tensor.is_cuda and _has_triton()


@cache
def _has_triton() -> bool:
    return find_spec("triton") is not None


def _by_run(block: Tensor) -> Tensor:
    """Return a view of (k, runs, n, d) as (runs, k, n d)."""
    return block.transpose(0, 1).flatten(2)
