"""The sparse products on the GPU, all heads in one launch.

A program takes a piece of a row and several of its entries at a time, with the channels side by side; sums over entries
stay in registers until the end. What a row of several pieces leaves in slots is added up by a second launch, in the
order of the slots. There are no atomics: the same inputs give the same bits. Sums are kept in double precision for
double precision and in single precision for everything shorter.
"""

from typing import Any

import torch
import triton
import triton.language as tl
from torch import Tensor
from triton import cdiv, next_power_of_2

from beltrami.graph.edges import Compressed

TILE = 512  # numbers of a tile: entries in flight times channels
WIDEST = 256  # channels of a tile; wider states take several programs a piece
MOST_HEADS = 16  # of a tile; more of them take several programs an entry
FUSION = {"enable_fp_fusion": True}  # multiply and add in one instruction: said aloud, since defaults differ
BLOCK = 1024  # numbers of a program that only copies
WARPS = 1  # a row is short: many small programs hide each other's waiting


@triton.jit
def _spmm(
    row, start, stop, slot, index, edge, values, dense, out, partial,
    H: tl.constexpr, K: tl.constexpr, E: tl.constexpr, C: tl.constexpr, SUM: tl.constexpr,
):  # fmt: skip
    piece = tl.program_id(0)
    channel = tl.program_id(1) * C + tl.arange(0, C)
    inside = channel < H * K
    begin, end = tl.load(start + piece), tl.load(stop + piece)
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
    place = tl.load(slot + piece)
    if place < 0:
        tl.store(out + tl.load(row + piece).to(tl.int64) * (H * K) + channel, total, mask=inside)
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


@triton.jit(do_not_specialize=["pieces"])
def _row_sums(
    row, start, stop, slot, edge, values, out, partial, pieces,
    D: tl.constexpr, R: tl.constexpr, E: tl.constexpr, C: tl.constexpr, SUM: tl.constexpr, INDIRECT: tl.constexpr,
    MAX: tl.constexpr,
):  # fmt: skip
    """Several pieces a program, since edge values have few channels. Direct: entries are rows of ``values``.

    MAX: their largest in place of their sum.
    """
    piece = tl.program_id(0) * R + tl.arange(0, R)
    channel = tl.program_id(1) * C + tl.arange(0, C)
    alive, inside = piece < pieces, channel < D
    begin = tl.load(start + piece, mask=alive, other=0)
    end = tl.load(stop + piece, mask=alive, other=0)
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
    i = tl.load(row + piece, mask=alive, other=0).to(tl.int64)
    cell = alive[:, None] & inside[None, :]
    if INDIRECT:
        place = tl.load(slot + piece, mask=alive, other=-1)
        whole = (place < 0)[:, None]
        tl.store(out + i[:, None] * D + channel[None, :], total, mask=cell & whole)
        tl.store(partial + place.to(tl.int64)[:, None] * D + channel[None, :], total, mask=cell & (place >= 0)[:, None])
    else:
        tl.store(out + i[:, None] * D + channel[None, :], total, mask=cell)


@triton.jit(do_not_specialize=["count"])
def _spread(values, index, out, count, H: tl.constexpr, B: tl.constexpr):
    at = tl.program_id(0).to(tl.int64) * B + tl.arange(0, B)
    there = at < count
    node = tl.load(index + at // H, mask=there, other=0).to(tl.int64)
    tl.store(out + at, tl.load(values + node * H + at % H, mask=there, other=0.0), mask=there)


def spmm(pattern: Compressed, values: Tensor, dense: Tensor) -> Tensor:
    """As the reference, with heads: (m, h), (c, h, k) -> (r, h, k)."""
    h, k = dense.shape[1:]
    pieces = pattern.pieces
    out = dense.new_empty(len(pattern.ptr) - 1, h, k)
    if out.numel() == 0:
        return out
    partial = slots(pattern, h * k, like=dense)
    c = min(next_power_of_2(h * k), WIDEST)
    with torch.cuda.device_of(dense):
        _spmm[len(pieces), cdiv(h * k, c)](
            *pieces.bounds, pattern.index, pattern.edge,
            values.contiguous(), dense.contiguous(), out, partial,
            H=h, K=k, E=min(32, max(1, TILE // c)), C=c, SUM=wide(dense), num_warps=WARPS, **FUSION,
        )  # fmt: skip
    return join(pattern, partial, out)


def sddmm(pattern: Compressed, left: Tensor, right: Tensor) -> Tensor:
    """As the reference, with heads: (r, h, k), (c, h, k) -> (m, h), in the pattern's order."""
    h, k = left.shape[1:]
    out = left.new_empty(len(pattern.index), h)
    if out.numel() == 0:
        return out
    heads = min(next_power_of_2(h), MOST_HEADS)
    c = min(next_power_of_2(max(1, k)), max(1, WIDEST // heads))
    e = max(1, TILE // (heads * c))
    with torch.cuda.device_of(left):
        _sddmm[cdiv(len(out), e), cdiv(h, heads)](
            pattern.row, pattern.index, left.contiguous(), right.contiguous(), out, len(out),
            H=h, K=k, E=e, HEADS=heads, C=c, SUM=wide(left), num_warps=WARPS, **FUSION,
        )  # fmt: skip
    return out


def spread(values: Tensor, index: Tensor) -> Tensor:
    """Rows of ``values`` by their numbers: (n, h), (m,) -> (m, h)."""
    out = values.new_empty(len(index), values.shape[1])
    if out.numel():
        with torch.cuda.device_of(values):
            _spread[(cdiv(out.numel(), BLOCK),)](
                values.contiguous(), index, out, out.numel(), H=values.shape[1], B=BLOCK
            )
    return out


def row_sums(pattern: Compressed, values: Tensor, *, largest: bool = False) -> Tensor:
    """Edge values summed over the rows of a pattern, or the largest of each: (m, d) -> (r, d)."""
    pieces, d = pattern.pieces, values.shape[1]
    out = values.new_empty(len(pattern.ptr) - 1, d)
    if out.numel() == 0:
        return out
    partial = slots(pattern, d, like=values)
    _launch_row_sums(pieces.bounds, pattern.edge, values.contiguous(), out, partial, largest=largest)
    return join(pattern, partial, out, largest=largest)


def slots(pattern: Compressed, width: int, *, like: Tensor) -> Tensor:
    """Room for what the pieces of split rows leave, (slots, width), as wide as sums are kept."""
    dtype = torch.float64 if like.dtype == torch.float64 else torch.float32
    return like.new_empty(pattern.pieces.num_slots, width, dtype=dtype)


def join(pattern: Compressed, partial: Tensor, out: Tensor, *, largest: bool = False) -> Tensor:
    """Put the sum of the slots of each split row, or their largest, into that row of ``out``, which is returned."""
    pieces = pattern.pieces
    if pieces.num_slots:
        bounds = (pieces.split_row, pieces.split_ptr[:-1], pieces.split_ptr[1:], pieces.split_row)
        _launch_row_sums(bounds, None, partial, out, partial, largest=largest)
    return out


def wide(tensor: Tensor) -> Any:
    """The type sums are kept in."""
    return tl.float64 if tensor.dtype == torch.float64 else tl.float32


def _launch_row_sums(
    bounds: tuple[Tensor, ...], edge: Tensor | None, values: Tensor, out: Tensor, partial: Tensor, *, largest: bool
) -> None:
    d, pieces = values.shape[1], len(bounds[0])
    c = min(next_power_of_2(d), WIDEST // 2)
    e = 8 if edge is not None else 16
    r = max(1, min(32, TILE // (e * c)))
    with torch.cuda.device_of(values):
        _row_sums[cdiv(pieces, r), cdiv(d, c)](
            *bounds, bounds[0] if edge is None else edge, values, out, partial, pieces,
            D=d, R=r, E=e, C=c, SUM=wide(values), INDIRECT=edge is not None, MAX=largest, num_warps=WARPS, **FUSION,
        )  # fmt: skip
