"""Triton kernels of one step of a linear recurrence, forwards or backwards: a sparse product and the terms added to it.

As in the sparse products, a program computes one chunk of a row, and a second launch joins split rows. The runs of a
batch lie one behind the other and are computed in that order, so that the state of one run stays in the cache. A run
meets each edge once, so that edge values are added to without atomics.
"""

import torch
import triton
import triton.language as tl
from torch import Tensor
from triton import cdiv, next_power_of_2

from beltrami.graph.edges import Compressed
from beltrami.graph.ops.triton import sparse_product
from beltrami.graph.ops.triton.sparse_product import FUSION, WARPS, sum_dtype, tl_sum_dtype


@triton.jit
def _write(
    target, total, i, run, channel, y, b, g, d, diagonal, nodes, g_stride, d_stride,
    K: tl.constexpr, FACTOR: tl.constexpr, KEEP: tl.constexpr, COTANGENT: tl.constexpr, DIAGONAL: tl.constexpr,
    SUM: tl.constexpr,
):  # fmt: skip
    """Add the other terms to the sum of a row, and write it."""
    inside = channel < K
    at = (run * nodes + i) * K + channel
    if DIAGONAL:
        total += tl.load(diagonal + i).to(SUM) * tl.load(y + at, mask=inside, other=0.0).to(SUM)
    total *= FACTOR
    if KEEP != 0:
        total += KEEP * tl.load(b + at, mask=inside, other=0.0).to(SUM)
    if COTANGENT:
        cotangent = tl.load(g + run * g_stride + i * K + channel, mask=inside, other=0.0).to(SUM)
        total += tl.load(d + run * d_stride).to(SUM) * cotangent
    tl.store(target + at, total, mask=inside)


@triton.jit
def _step(
    row, start, stop, slot, index, edge, values, y, b, g, d, diagonal, own, sums, out, partial,
    nodes, slots, value_stride, sum_stride, g_stride, d_stride,
    K: tl.constexpr, E: tl.constexpr, C: tl.constexpr, FACTOR: tl.constexpr, KEEP: tl.constexpr,
    COTANGENT: tl.constexpr, DIAGONAL: tl.constexpr, EDGE_SUMS: tl.constexpr, SUM: tl.constexpr,
):  # fmt: skip
    chunk, run = tl.program_id(0), tl.program_id(2).to(tl.int64)
    channel = tl.program_id(1) * C + tl.arange(0, C)
    inside = channel < K
    i = tl.load(row + chunk).to(tl.int64)
    begin, end = tl.load(start + chunk), tl.load(stop + chunk)
    here = run * nodes
    if EDGE_SUMS:
        q = tl.load(own + (here + i) * K + channel, mask=inside, other=0.0).to(SUM)
    acc = tl.zeros((E, C), SUM)
    for at in range(begin, end, E):
        entry = at + tl.arange(0, E)
        there = entry < end
        j = tl.load(index + entry, mask=there, other=0).to(tl.int64)
        e = tl.load(edge + entry, mask=there, other=0).to(tl.int64)
        both = there[:, None] & inside[None, :]
        z = tl.load(y + (here + j)[:, None] * K + channel[None, :], mask=both, other=0.0).to(SUM)
        acc += tl.load(values + run * value_stride + e, mask=there, other=0.0).to(SUM)[:, None] * z
        if EDGE_SUMS:
            cell = sums + run * sum_stride + e
            known = tl.load(cell, mask=there, other=0.0).to(SUM)
            tl.store(cell, known + FACTOR * tl.sum(z * q[None, :], 1), mask=there)
    total = tl.sum(acc, 0)
    place = tl.load(slot + chunk).to(tl.int64)
    if place < 0:
        _write(
            out, total, i, run, channel, y, b, g, d, diagonal, nodes, g_stride, d_stride,
            K, FACTOR, KEEP, COTANGENT, DIAGONAL, SUM,
        )  # fmt: skip
    else:
        tl.store(partial + (run * slots + place) * K + channel, total, mask=inside)


@triton.jit
def _join_step(
    row, ptr, y, b, g, d, diagonal, out, partial, nodes, slots, g_stride, d_stride,
    K: tl.constexpr, E: tl.constexpr, C: tl.constexpr, FACTOR: tl.constexpr, KEEP: tl.constexpr,
    COTANGENT: tl.constexpr, DIAGONAL: tl.constexpr, SUM: tl.constexpr,
):  # fmt: skip
    split, run = tl.program_id(0), tl.program_id(2).to(tl.int64)
    channel = tl.program_id(1) * C + tl.arange(0, C)
    inside = channel < K
    i = tl.load(row + split).to(tl.int64)
    begin, end = tl.load(ptr + split), tl.load(ptr + split + 1)
    acc = tl.zeros((E, C), SUM)
    for at in range(begin, end, E):
        place = at + tl.arange(0, E)
        both = (place < end)[:, None] & inside[None, :]
        acc += tl.load(partial + (run * slots + place)[:, None] * K + channel[None, :], mask=both, other=0.0)
    _write(
        out, tl.sum(acc, 0), i, run, channel, y, b, g, d, diagonal, nodes, g_stride, d_stride,
        K, FACTOR, KEEP, COTANGENT, DIAGONAL, SUM,
    )  # fmt: skip


def step(
    pattern: Compressed, out: Tensor, a: Tensor, y: Tensor, *, factor: float,
    previous: tuple[float, Tensor] | None = None, cotangent: tuple[Tensor, Tensor] | None = None,
    edge_sums: tuple[Tensor, Tensor] | None = None, diagonal: Tensor | None = None,
) -> None:  # fmt: skip
    r"""Write :math:`c B y + k\,b + d\,g` into ``out``, where B is A plus ``diagonal``.

    Arguments and shapes are those of :mod:`beltrami.graph.ops.recurrence`. ``edge_sums``, for at most
    ``MAX_CHANNELS`` channels, adds :math:`c \langle y_j, q_i \rangle` for each entry (i, j) of the pattern.
    """
    runs, nodes, k = out.shape
    if out.numel() == 0:
        return
    chunks, y, a = pattern.chunks, y.contiguous(), a if a.stride(1) == 1 else a.contiguous()
    keep, b = previous or (0.0, y)
    d, g = cotangent or (y, y)
    q, sums = edge_sums or (y, y)
    g = g if g.stride()[1:] == (k, 1) else g.contiguous()
    partial = out.new_empty(runs, chunks.num_slots, k, dtype=sum_dtype(out.dtype))
    terms = (y, b.contiguous(), g, d, y if diagonal is None else diagonal.contiguous())
    strides = (g.stride(0), d.stride(0))
    c = min(next_power_of_2(k), sparse_product.MAX_CHANNELS)
    constants = dict(
        K=k, E=min(32, max(1, sparse_product.TILE // c)), C=c, FACTOR=factor, KEEP=keep,
        COTANGENT=cotangent is not None, DIAGONAL=diagonal is not None, SUM=tl_sum_dtype(y.dtype),
        num_warps=WARPS, **FUSION,
    )  # fmt: skip
    with torch.cuda.device_of(out):
        _step[len(chunks), cdiv(k, c), runs](
            *chunks.bounds, pattern.index, pattern.edge, a, *terms, q.contiguous(), sums, out, partial,
            nodes, chunks.num_slots, a.stride(0), sums.stride(0), *strides, **constants,
            EDGE_SUMS=edge_sums is not None,
        )  # fmt: skip
        if chunks.num_slots:
            _join_step[len(chunks.split_row), cdiv(k, c), runs](
                chunks.split_row, chunks.split_ptr, *terms, out, partial, nodes, chunks.num_slots, *strides, **constants
            )
