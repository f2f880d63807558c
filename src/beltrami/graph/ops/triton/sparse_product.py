"""Triton kernels of the products of ``dispatch``, all heads in one launch.

A program computes one chunk of a row, several entries at a time, with the channels side by side; sums over entries stay
in registers until the end. A second launch adds the partial results of rows with several chunks, in the order of their
slots. There are no atomics, so that the same inputs give the same bits. Sums are kept in double precision for double
precision and in single precision for all shorter types.
"""

from typing import Any

import torch
import triton
import triton.language as tl
from torch import Tensor
from triton import cdiv, next_power_of_2

from beltrami.graph.edges import Compressed

TILE = 512  # numbers of a tile: entries times channels
MAX_CHANNELS = 256  # of a tile; wider states take several programs per chunk
MAX_HEADS = 16  # of a tile; more heads take several programs per entry
FUSION = {"enable_fp_fusion": True}  # multiply and add in one instruction; explicit, since defaults differ
BLOCK = 1024  # numbers of a program that only copies
WARPS = 1  # rows are short: many small programs hide each other's latency


@triton.jit
def _spmm(
    row, start, stop, slot, index, edge, values, dense, out, partial,
    H: tl.constexpr, K: tl.constexpr, E: tl.constexpr, C: tl.constexpr, SUM: tl.constexpr,
):  # fmt: skip
    chunk = tl.program_id(0)
    channel = tl.program_id(1) * C + tl.arange(0, C)
    inside = channel < H * K
    begin, end = tl.load(start + chunk), tl.load(stop + chunk)
    acc = tl.zeros((E, C), SUM)
    for at in range(begin, end, E):
        entry = at + tl.arange(0, E)
        there = entry < end
        j = tl.load(index + entry, mask=there, other=0).to(tl.int64)
        e = tl.load(edge + entry, mask=there, other=0).to(tl.int64)
        both = there[:, None] & inside[None, :]
        z = tl.load(dense + j[:, None] * (H * K) + channel[None, :], mask=both, other=0.0).to(SUM)
        if H == 1:
            acc += tl.load(values + e, mask=there, other=0.0).to(SUM)[:, None] * z
        else:
            acc += tl.load(values + e[:, None] * H + channel[None, :] // K, mask=both, other=0.0).to(SUM) * z
    total = tl.sum(acc, 0)
    place = tl.load(slot + chunk)
    if place < 0:
        tl.store(out + tl.load(row + chunk).to(tl.int64) * (H * K) + channel, total, mask=inside)
    else:
        tl.store(partial + place.to(tl.int64) * (H * K) + channel, total, mask=inside)


@triton.jit(do_not_specialize=["entries"])
def _sddmm(
    row, index, left, right, out, entries,
    H: tl.constexpr, K: tl.constexpr, E: tl.constexpr, HEADS: tl.constexpr, C: tl.constexpr, SUM: tl.constexpr,
):  # fmt: skip
    entry = tl.program_id(0).to(tl.int64) * E + tl.arange(0, E)
    there = entry < entries
    head = tl.program_id(1) * HEADS + tl.arange(0, HEADS)
    i = tl.load(row + entry, mask=there, other=0).to(tl.int64)
    j = tl.load(index + entry, mask=there, other=0).to(tl.int64)
    acc = tl.zeros((E, HEADS, C), SUM)
    for block in tl.static_range(0, K, C):
        channel = block + tl.arange(0, C)
        at = head[None, :, None] * K + channel[None, None, :]
        inside = there[:, None, None] & (head < H)[None, :, None] & (channel < K)[None, None, :]
        p = tl.load(left + i[:, None, None] * (H * K) + at, mask=inside, other=0.0).to(SUM)
        q = tl.load(right + j[:, None, None] * (H * K) + at, mask=inside, other=0.0).to(SUM)
        acc += p * q
    inside = there[:, None] & (head < H)[None, :]
    tl.store(out + entry[:, None] * H + head[None, :], tl.sum(acc, 2), mask=inside)


@triton.jit(do_not_specialize=["chunks"])
def _row_sums(
    row, start, stop, slot, edge, values, out, partial, chunks,
    D: tl.constexpr, R: tl.constexpr, E: tl.constexpr, C: tl.constexpr, SUM: tl.constexpr, INDIRECT: tl.constexpr,
    MAX: tl.constexpr,
):  # fmt: skip
    """Several chunks per program, since edge values have few channels. INDIRECT: entries name rows of ``values``, and
    rows may be split; else entries are rows of ``values``. MAX: the largest value instead of the sum."""
    chunk = tl.program_id(0) * R + tl.arange(0, R)
    channel = tl.program_id(1) * C + tl.arange(0, C)
    alive, inside = chunk < chunks, channel < D
    begin = tl.load(start + chunk, mask=alive, other=0)
    end = tl.load(stop + chunk, mask=alive, other=0)
    acc = tl.full((R, E, C), float("-inf") if MAX else 0.0, SUM)
    for at in range(0, tl.max(end - begin, 0), E):
        entry = begin[:, None] + at + tl.arange(0, E)[None, :]
        there = entry < end[:, None]
        e = tl.load(edge + entry, mask=there, other=0) if INDIRECT else entry
        place = e.to(tl.int64)[:, :, None] * D + channel[None, None, :]
        both = there[:, :, None] & inside[None, None, :]
        if MAX:
            acc = tl.maximum(acc, tl.load(values + place, mask=both, other=float("-inf")).to(SUM))
        else:
            acc += tl.load(values + place, mask=both, other=0.0).to(SUM)
    total = tl.max(acc, 1) if MAX else tl.sum(acc, 1)
    i = tl.load(row + chunk, mask=alive, other=0).to(tl.int64)
    cell = alive[:, None] & inside[None, :]
    if INDIRECT:
        place = tl.load(slot + chunk, mask=alive, other=-1)
        whole = (place < 0)[:, None]
        tl.store(out + i[:, None] * D + channel[None, :], total, mask=cell & whole)
        tl.store(partial + place.to(tl.int64)[:, None] * D + channel[None, :], total, mask=cell & (place >= 0)[:, None])
    else:
        tl.store(out + i[:, None] * D + channel[None, :], total, mask=cell)


@triton.jit(do_not_specialize=["count"])
def _gather(values, index, out, count, H: tl.constexpr, B: tl.constexpr):
    at = tl.program_id(0).to(tl.int64) * B + tl.arange(0, B)
    there = at < count
    node = tl.load(index + at // H, mask=there, other=0).to(tl.int64)
    tl.store(out + at, tl.load(values + node * H + at % H, mask=there, other=0.0), mask=there)


def spmm(pattern: Compressed, values: Tensor, dense: Tensor) -> Tensor:
    h, k = dense.shape[1:]
    chunks = pattern.chunks
    out = dense.new_empty(len(pattern.ptr) - 1, h, k)
    if out.numel() == 0:
        return out
    partial = slots(pattern, h * k, like=dense)
    c = min(next_power_of_2(h * k), MAX_CHANNELS)
    with torch.cuda.device_of(dense):
        _spmm[len(chunks), cdiv(h * k, c)](
            *chunks.bounds, pattern.index, pattern.edge,
            values.contiguous(), dense.contiguous(), out, partial,
            H=h, K=k, E=min(32, max(1, TILE // c)), C=c, SUM=tl_sum_dtype(dense.dtype), num_warps=WARPS, **FUSION,
        )  # fmt: skip
    return join(pattern, partial, out)


def sddmm(pattern: Compressed, left: Tensor, right: Tensor) -> Tensor:
    h, k = left.shape[1:]
    out = left.new_empty(len(pattern.index), h)
    if out.numel() == 0:
        return out
    heads = min(next_power_of_2(h), MAX_HEADS)
    c = min(next_power_of_2(max(1, k)), max(1, MAX_CHANNELS // heads))
    e = max(1, TILE // (heads * c))
    with torch.cuda.device_of(left):
        _sddmm[cdiv(len(out), e), cdiv(h, heads)](
            pattern.row, pattern.index, left.contiguous(), right.contiguous(), out, len(out),
            H=h, K=k, E=e, HEADS=heads, C=c, SUM=tl_sum_dtype(left.dtype), num_warps=WARPS, **FUSION,
        )  # fmt: skip
    return out


def gather(values: Tensor, index: Tensor) -> Tensor:
    out = values.new_empty(len(index), values.shape[1])
    if out.numel():
        with torch.cuda.device_of(values):
            _gather[(cdiv(out.numel(), BLOCK),)](
                values.contiguous(), index, out, out.numel(), H=values.shape[1], B=BLOCK
            )
    return out


def row_sums(pattern: Compressed, values: Tensor, *, largest: bool = False) -> Tensor:
    """Sums of edge values over the rows of a pattern, or their largest: (m, d) -> (r, d)."""
    chunks, d = pattern.chunks, values.shape[1]
    out = values.new_empty(len(pattern.ptr) - 1, d)
    if out.numel() == 0:
        return out
    partial = slots(pattern, d, like=values)
    _launch_row_sums(chunks.bounds, pattern.edge, values.contiguous(), out, partial, largest=largest)
    return join(pattern, partial, out, largest=largest)


def slots(pattern: Compressed, width: int, *, like: Tensor) -> Tensor:
    """Allocate the partial results of split rows, (slots, width)."""
    return like.new_empty(pattern.chunks.num_slots, width, dtype=sum_dtype(like.dtype))


def join(pattern: Compressed, partial: Tensor, out: Tensor, *, largest: bool = False) -> Tensor:
    """Write the sum of the slots of each split row, or their largest, to that row of ``out``; return ``out``."""
    chunks = pattern.chunks
    if chunks.num_slots:
        bounds = (chunks.split_row, chunks.split_ptr[:-1], chunks.split_ptr[1:], chunks.split_row)
        _launch_row_sums(bounds, None, partial, out, partial, largest=largest)
    return out


def sum_dtype(dtype: torch.dtype) -> torch.dtype:
    """The type in which sums are kept."""
    return torch.float64 if dtype == torch.float64 else torch.float32


def tl_sum_dtype(dtype: torch.dtype) -> Any:
    """The same, as Triton names it."""
    return tl.float64 if dtype == torch.float64 else tl.float32


def _launch_row_sums(
    bounds: tuple[Tensor, ...], edge: Tensor | None, values: Tensor, out: Tensor, partial: Tensor, *, largest: bool
) -> None:
    d, chunks = values.shape[1], len(bounds[0])
    c = min(next_power_of_2(d), MAX_CHANNELS // 2)
    e = 8 if edge is not None else 16
    r = max(1, min(32, TILE // (e * c)))
    with torch.cuda.device_of(values):
        _row_sums[cdiv(chunks, r), cdiv(d, c)](
            *bounds, bounds[0] if edge is None else edge, values, out, partial, chunks,
            D=d, R=r, E=e, C=c, SUM=tl_sum_dtype(values.dtype), INDIRECT=edge is not None, MAX=largest,
            num_warps=WARPS, **FUSION,
        )  # fmt: skip
