"""Triton kernel of a product with consecutive rows of a sparse matrix, together with the terms added to it.

Unlike the kernels for a whole graph, it reads compressed rows and nothing else: no numbers of edges and no table of
chunks, which would have to be copied to the device with every block. A row longer than ``LONG`` is cut into parts, and
a second launch adds their sums in their order. There are no atomics, so that the same inputs give the same bits.
"""

from typing import TYPE_CHECKING

import torch
import triton
import triton.language as tl
from torch import Tensor
from triton import cdiv, next_power_of_2

from beltrami.graph.ops.triton import sparse_product
from beltrami.graph.ops.triton.sparse_product import FUSION, WARPS, sum_dtype, tl_sum_dtype

if TYPE_CHECKING:
    from beltrami.graph.ops.row_block import RowBlock, RowTerms


@triton.jit
def _sum_rows(
    ptr, index, values, y, own, diagonal, scale, b, g, out, d, d_rest,
    K: tl.constexpr, E: tl.constexpr, C: tl.constexpr, SUM: tl.constexpr, FACTOR: tl.constexpr, KEEP: tl.constexpr,
    INDIRECT: tl.constexpr, WEIGHTED: tl.constexpr, DIAGONAL: tl.constexpr, SCALED: tl.constexpr,
    COTANGENT: tl.constexpr,
):  # fmt: skip
    """One program for each row and C channels. Without INDIRECT, entry e names row e of ``y``."""
    row = tl.program_id(0).to(tl.int64)
    channel = tl.program_id(1) * C + tl.arange(0, C)
    inside = channel < K
    begin, end = tl.load(ptr + row), tl.load(ptr + row + 1)
    acc = tl.zeros((E, C), SUM)
    for at in range(begin, end, E):
        entry = at + tl.arange(0, E)
        there = entry < end
        j = entry.to(tl.int64)
        if INDIRECT:
            j = tl.load(index + entry, mask=there, other=0).to(tl.int64)
        both = there[:, None] & inside[None, :]
        z = tl.load(y + j[:, None] * K + channel[None, :], mask=both, other=0.0).to(SUM)
        if WEIGHTED:
            z *= tl.load(values + entry, mask=there, other=0.0).to(SUM)[:, None]
        acc += z
    total = tl.sum(acc, 0)
    cell = row * K + channel
    if DIAGONAL:
        total += tl.load(diagonal + row).to(SUM) * tl.load(own + cell, mask=inside, other=0.0).to(SUM)
    if SCALED:
        total *= tl.load(scale + row).to(SUM)
    total *= FACTOR
    if KEEP != 0:
        total += KEEP * tl.load(b + cell, mask=inside, other=0.0).to(SUM)
    if COTANGENT:
        cotangent = tl.load(g + cell, mask=inside, other=0.0).to(SUM)
        total += d * cotangent + d_rest * cotangent  # numbers are passed in single precision
    tl.store(out + cell, total, mask=inside)


def step(block: "RowBlock", out: Tensor, y: Tensor, terms: "RowTerms") -> None:
    """Write the rows of a block into ``out`` (rows, k); ``y`` (n, k) is contiguous, as are the rows of all terms."""
    if out.numel() == 0:
        return
    if block.parts is None:
        _launch(block.ptr, block.index, y, out, terms, values=terms.a)
        return
    bounds, parts = block.parts
    partial = out.new_empty(len(bounds) - 1, out.shape[1], dtype=sum_dtype(out.dtype))
    _launch(bounds, block.index, y, partial, None, values=terms.a)
    _launch(parts, None, partial, out, terms, values=None)


def _launch(
    ptr: Tensor, index: Tensor | None, y: Tensor, out: Tensor, terms: "RowTerms | None", *, values: Tensor | None
) -> None:
    """Sum rows of ``y``; without ``terms`` the sums alone are written."""
    k = out.shape[1]
    c = min(next_power_of_2(k), sparse_product.MAX_CHANNELS)
    own = diagonal = scale = None
    keep, b, d, g = 0.0, None, 0.0, None
    factor = 1.0
    if terms is not None:
        own, diagonal, scale, factor = terms.own, terms.diagonal, terms.scale, terms.factor
        keep, b = terms.previous or (0.0, None)
        d, g = terms.cotangent or (0.0, None)
    single = torch.tensor(d, dtype=torch.float32).item()
    with torch.cuda.device_of(out):
        _sum_rows[len(ptr) - 1, cdiv(k, c)](
            ptr, y if index is None else index, y if values is None else values, y, y if own is None else own,
            y if diagonal is None else diagonal, y if scale is None else scale, y if b is None else b,
            y if g is None else g, out, single, d - single,
            K=k, E=min(32, max(1, sparse_product.TILE // c)), C=c, SUM=tl_sum_dtype(y.dtype), FACTOR=factor, KEEP=keep,
            INDIRECT=index is not None, WEIGHTED=values is not None, DIAGONAL=diagonal is not None,
            SCALED=scale is not None, COTANGENT=g is not None, num_warps=WARPS, **FUSION,
        )  # fmt: skip
