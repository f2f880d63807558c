"""Forward kernels of attention: score, normalise and aggregate without storing anything on the edges.

Each lane keeps the largest logarithm so far and a sum relative to it, rescaled when a larger one comes; lanes and
chunks are combined at the end, in a fixed order. With few heads, the weighted states are summed in the same pass over
a row; with many, which would not fit the registers, in a second pass while the row is in the cache.
"""

import torch
import triton
import triton.language as tl
from torch import Tensor

from beltrami.graph.edges import Compressed
from beltrami.graph.ops.triton.attention_score import AttentionLaunch, Totals, heads_of_one, of_many, scored
from beltrami.graph.ops.triton.sparse_product import join, slots

ONE_PASS = 128  # heads times channels up to which the weighted states are summed in the first pass


@triton.jit
def _log_total(top, total):
    """Combine the lanes: their scale relative to the largest logarithm, the sum (1 if empty), and its logarithm."""
    highest = tl.max(top, 0)
    base = tl.where(highest == float("-inf"), 0.0, highest)
    scale = tl.exp(top - base[None, :])
    sums = tl.sum(total * scale, 0)  # (HEADS,), zero for an empty row
    safe = tl.where(sums > 0, sums, 1.0)
    return scale, safe, highest + tl.log(safe)


@triton.jit
def _attend_rows(
    row, start, stop, slot, index, edge, weight, own, other, z, out, log_sum, part_out, part_sum,
    H: tl.constexpr, W: tl.constexpr, D: tl.constexpr, HEADS: tl.constexpr, C: tl.constexpr, Z: tl.constexpr,
    ACTIVATION: tl.constexpr, SLOPE: tl.constexpr, SQUAREPLUS: tl.constexpr, WEIGHTED: tl.constexpr,
    SUM: tl.constexpr, E: tl.constexpr,
):  # fmt: skip
    """With Z = 1 and D = 0, only the sums of the weights."""
    chunk = tl.program_id(0)
    i, begin, end = tl.load(row + chunk), tl.load(start + chunk), tl.load(stop + chunk)
    p = heads_of_one(own, i, H, W, HEADS, C).to(SUM)
    top = tl.full((E, HEADS), float("-inf"), SUM)
    total = tl.zeros((E, HEADS), SUM)
    acc = tl.zeros((E, HEADS, Z), SUM)
    for at in range(begin, end, E):
        there, j, _, _, _, lw = scored(
            at, end, index, edge, weight, p, other, H, W, HEADS, C, ACTIVATION, SLOPE, SQUAREPLUS, WEIGHTED, SUM, E
        )
        higher = tl.maximum(top, lw)
        base = tl.where(higher == float("-inf"), 0.0, higher)
        scale, w = tl.exp(top - base), tl.exp(lw - base)
        total = total * scale + w
        if D > 0:
            zj = of_many(z, j, there, D, Z).to(SUM)
            acc = acc * scale[:, :, None] + w[:, :, None] * zj[:, None, :]
        top = higher
    scale, safe, log_total = _log_total(top, total)
    head, channel = tl.arange(0, HEADS), tl.arange(0, Z)
    place = tl.load(slot + chunk)
    if place < 0:
        tl.store(log_sum + i.to(tl.int64) * H + head, log_total, mask=head < H)
    else:
        tl.store(part_sum + place.to(tl.int64) * H + head, log_total, mask=head < H)
    if D > 0:
        mean = tl.sum(acc * scale[:, :, None], 0) / safe[:, None]  # (HEADS, Z)
        if place < 0:
            kept = tl.where((head < H)[:, None], mean, 0.0)
            tl.store(out + i.to(tl.int64) * D + channel, tl.sum(kept, 0) / H, mask=channel < D)
        else:
            cell = place.to(tl.int64) * (H * D) + head[:, None] * D + channel[None, :]
            tl.store(part_out + cell, mean, mask=(head < H)[:, None] & (channel < D)[None, :])


@triton.jit
def _join_rows(
    split_row, split_ptr, part_out, part_sum, out, log_sum,
    H: tl.constexpr, D: tl.constexpr, HEADS: tl.constexpr, Z: tl.constexpr, SUM: tl.constexpr, E: tl.constexpr,
):  # fmt: skip
    """Combine the chunks of a split row, each a mean over its entries and the logarithm of the sum of weights."""
    split = tl.program_id(0)
    i = tl.load(split_row + split).to(tl.int64)
    begin, end = tl.load(split_ptr + split), tl.load(split_ptr + split + 1)
    head, channel = tl.arange(0, HEADS), tl.arange(0, Z)
    top = tl.full((E, HEADS), float("-inf"), SUM)
    for at in range(begin, end, E):
        place = (at + tl.arange(0, E))[:, None]
        there = (place < end) & (head < H)[None, :]
        top = tl.maximum(top, tl.load(part_sum + place * H + head[None, :], mask=there, other=float("-inf")))
    highest = tl.max(top, 0)
    base = tl.where(highest == float("-inf"), 0.0, highest)  # padding heads
    total = tl.zeros((E, HEADS), SUM)
    acc = tl.zeros((E, HEADS, Z), SUM)
    for at in range(begin, end, E):
        place = (at + tl.arange(0, E))[:, None]
        there = (place < end) & (head < H)[None, :]
        lw = tl.load(part_sum + place * H + head[None, :], mask=there, other=float("-inf"))
        w = tl.exp(lw - base[None, :])
        total += w
        if D > 0:
            places = place.to(tl.int64)[:, :, None] * (H * D) + head[None, :, None] * D + channel[None, None, :]
            m = tl.load(part_out + places, mask=there[:, :, None] & (channel < D)[None, None, :], other=0.0)
            acc += w[:, :, None] * m
    sums = tl.sum(total, 0)
    safe = tl.where(sums > 0, sums, 1.0)
    tl.store(log_sum + i * H + head, highest + tl.log(safe), mask=head < H)
    if D > 0:
        mean = tl.sum(acc, 0) / safe[:, None]
        tl.store(out + i * D + channel, tl.sum(mean, 0) / H, mask=channel < D)


@triton.jit
def _weighted_sum(
    row, start, stop, slot, index, edge, weight, own, other, own_total, other_total, z, out, partial,
    H: tl.constexpr, W: tl.constexpr, D: tl.constexpr, HEADS: tl.constexpr, C: tl.constexpr, Z: tl.constexpr,
    ACTIVATION: tl.constexpr, SLOPE: tl.constexpr, SQUAREPLUS: tl.constexpr, WEIGHTED: tl.constexpr,
    SUM: tl.constexpr, OWN: tl.constexpr, OTHER: tl.constexpr, FIND: tl.constexpr, E: tl.constexpr,
):  # fmt: skip
    """Aggregation with weights divided by the totals of the row's own node, of the other nodes, or of both. FIND:
    compute the own totals of rows with one chunk first, and store them; those of split rows are known."""
    chunk = tl.program_id(0)
    i, begin, end = tl.load(row + chunk), tl.load(start + chunk), tl.load(stop + chunk)
    head, channel = tl.arange(0, HEADS), tl.arange(0, Z)
    place = tl.load(slot + chunk)
    p = heads_of_one(own, i, H, W, HEADS, C).to(SUM)
    own_cell = own_total + i.to(tl.int64) * H + head
    here = tl.zeros((HEADS,), SUM)
    if OWN:
        here = tl.load(own_cell, mask=head < (tl.where(place < 0, 0, H) if FIND else H), other=0.0)
    if FIND:
        top = tl.full((E, HEADS), float("-inf"), SUM)
        summed = tl.zeros((E, HEADS), SUM)
        for at in range(begin, tl.where(place < 0, end, begin), E):
            _, _, _, _, _, lw = scored(
                at, end, index, edge, weight, p, other, H, W, HEADS, C, ACTIVATION, SLOPE, SQUAREPLUS, WEIGHTED, SUM, E
            )
            higher = tl.maximum(top, lw)
            base = tl.where(higher == float("-inf"), 0.0, higher)
            summed = summed * tl.exp(top - base) + tl.exp(lw - base)
            top = higher
        found = _log_total(top, summed)[2]
        here = tl.where(place < 0, found, here)
        tl.store(own_cell, found, mask=head < tl.where(place < 0, H, 0))
    acc = tl.zeros((E, Z), SUM)
    for at in range(begin, end, E):
        there, j, _, _, _, lw = scored(
            at, end, index, edge, weight, p, other, H, W, HEADS, C, ACTIVATION, SLOPE, SQUAREPLUS, WEIGHTED, SUM, E
        )
        lw -= here[None, :]
        if OTHER:
            lw -= of_many(other_total, j, there, H, HEADS)
        a = tl.sum(tl.where((head < H)[None, :], tl.exp(lw), 0.0), 1) / H
        acc += a[:, None] * of_many(z, j, there, D, Z).to(SUM)
    total = tl.sum(acc, 0)
    if place < 0:
        tl.store(out + i.to(tl.int64) * D + channel, total, mask=channel < D)
    else:
        tl.store(partial + place.to(tl.int64) * D + channel, total, mask=channel < D)


def attend_rows(
    launch: AttentionLaunch, pattern: Compressed, own: Tensor, other: Tensor, z: Tensor
) -> tuple[Tensor, Tensor]:
    """Means over the edges of each row, (n, d), and the logarithms of the sums of weights, (n, h)."""
    d = z.shape[1]
    if launch.padded_heads * triton.next_power_of_2(max(1, d)) <= ONE_PASS:
        return _one_pass(launch, pattern, own, other, z, d=d)
    log_sum = z.new_empty(len(pattern.ptr) - 1, launch.heads, dtype=launch.sum_dtype)
    if pattern.chunks.num_slots:
        _one_pass(launch, pattern, own, other, own, d=0, log_sum=log_sum)
    return weighted_sum(launch, pattern, own, other, (log_sum, None), z, find=True), log_sum


def log_sums(launch: AttentionLaunch, pattern: Compressed, own: Tensor, other: Tensor) -> Tensor:
    """Logarithms of the sums of weights over each row, (n, h)."""
    return _one_pass(launch, pattern, own, other, own, d=0)[1]


def weighted_sum(
    launch: AttentionLaunch, pattern: Compressed, own: Tensor, other: Tensor, totals: Totals, z: Tensor,
    *, find: bool = False,
) -> Tensor:  # fmt: skip
    """Sum over each row of the weights, divided by totals (n, h), times the states; (n, d) -> (n, d). With ``find``,
    the own totals are known for split rows only, and are computed and stored for the others."""
    d = z.shape[1]
    out = z.new_empty(len(pattern.ptr) - 1, d, dtype=launch.dtype)
    partial = slots(pattern, d, like=out)
    with torch.cuda.device_of(z):
        _weighted_sum[(len(pattern.chunks),)](
            *launch.entries(pattern), own, other, *launch.pointers(totals, own), z, out, partial,
            **launch.constants(d, totals), FIND=find,
        )  # fmt: skip
    return join(pattern, partial, out)


def _one_pass(
    launch: AttentionLaunch, pattern: Compressed, own: Tensor, other: Tensor, z: Tensor,
    *, d: int, log_sum: Tensor | None = None,
) -> tuple[Tensor, Tensor]:  # fmt: skip
    """Means and sums of :func:`attend_rows`. Given ``log_sum``, only the sums of split rows are written there."""
    chunks, rows, split = pattern.chunks, len(pattern.ptr) - 1, log_sum is not None
    out = z.new_empty(rows, d, dtype=launch.dtype)
    log_sum = z.new_empty(rows, launch.heads, dtype=launch.sum_dtype) if log_sum is None else log_sum
    part_out, part_sum = (slots(pattern, launch.heads * k, like=out) for k in (d, 1))
    constants = launch.constants(d, state_heads=launch.padded_heads)
    with torch.cuda.device_of(z):
        _attend_rows[(chunks.num_slots if split else len(chunks),)](
            *launch.entries(pattern, split=split), own, other, z, out, log_sum, part_out, part_sum, **constants
        )
        if chunks.num_slots:
            for name in ("W", "C", "ACTIVATION", "SLOPE", "SQUAREPLUS", "WEIGHTED"):
                del constants[name]
            _join_rows[(len(chunks.split_row),)](
                chunks.split_row, chunks.split_ptr, part_out, part_sum, out, log_sum, **constants
            )
    return out, log_sum
