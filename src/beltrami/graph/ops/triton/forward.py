"""Attention on the GPU, forwards: score, normalise and aggregate without storing anything on the edges.

Each lane keeps the largest logarithm it has met and its sum, rescaled when a larger one comes; lanes and pieces are put
together at the end, in a fixed order. Over rows, a program with few heads carries the weighted states along; with many,
which would not fit its registers, it goes along its row again while that is in the cache. Sums over columns come first.
"""

import torch
import triton
import triton.language as tl
from torch import Tensor

from beltrami.graph.edges import Compressed
from beltrami.graph.ops.triton.product import join, slots
from beltrami.graph.ops.triton.score import heads_of_many, heads_of_one, log_weight, of_many
from beltrami.graph.ops.triton.task import Task, Totals

CARRIED = 128  # weighted states a lane may carry along, heads times channels


@triton.jit
def _attend_rows(
    row, start, stop, slot, index, edge, weight, own, other, z, out, log_sum, part_out, part_sum,
    H: tl.constexpr, W: tl.constexpr, D: tl.constexpr, HEADS: tl.constexpr, C: tl.constexpr, Z: tl.constexpr,
    SHAPE: tl.constexpr, SLOPE: tl.constexpr, SQUAREPLUS: tl.constexpr, WEIGHTED: tl.constexpr, SUM: tl.constexpr,
    E: tl.constexpr,
):  # fmt: skip
    """Z = 1 and D = 0 leaves out the states: the sums alone."""
    piece = tl.program_id(0)
    i, begin, end = tl.load(row + piece), tl.load(start + piece), tl.load(stop + piece)
    p = heads_of_one(own, i, H, W, HEADS, C).to(SUM)
    top = tl.full((E, HEADS), float("-inf"), SUM)
    total = tl.zeros((E, HEADS), SUM)
    acc = tl.zeros((E, HEADS, Z), SUM)
    for at in range(begin, end, E):
        entry = at + tl.arange(0, E)
        there = entry < end
        j = tl.load(index + entry, mask=there, other=0)
        e = tl.load(edge + entry, mask=there, other=0)
        x = tl.sum(p[None, :, :] * heads_of_many(other, j, there, H, W, HEADS, C).to(SUM), 2)
        lw = log_weight(x, e, there, weight, SHAPE, SLOPE, SQUAREPLUS, WEIGHTED)
        higher = tl.maximum(top, lw)
        base = tl.where(higher == float("-inf"), 0.0, higher)
        shrink, w = tl.exp(top - base), tl.exp(lw - base)
        total = total * shrink + w
        if D > 0:
            zj = of_many(z, j, there, D, Z).to(SUM)
            acc = acc * shrink[:, :, None] + w[:, :, None] * zj[:, None, :]
        top = higher
    highest = tl.max(top, 0)
    base = tl.where(highest == float("-inf"), 0.0, highest)
    shrink = tl.exp(top - base[None, :])
    sums = tl.sum(total * shrink, 0)  # (HEADS,), zero for an empty row
    safe = tl.where(sums > 0, sums, 1.0)
    log_total = highest + tl.log(safe)
    head, channel = tl.arange(0, HEADS), tl.arange(0, Z)
    place = tl.load(slot + piece)
    if place < 0:
        tl.store(log_sum + i.to(tl.int64) * H + head, log_total, mask=head < H)
    else:
        tl.store(part_sum + place.to(tl.int64) * H + head, log_total, mask=head < H)
    if D > 0:
        mean = tl.sum(acc * shrink[:, :, None], 0) / safe[:, None]  # (HEADS, Z)
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
    """The pieces of a split row, each a mean over its entries and the logarithm of their sum."""
    split = tl.program_id(0)
    i = tl.load(split_row + split).to(tl.int64)
    begin, end = tl.load(split_ptr + split), tl.load(split_ptr + split + 1)
    head, channel = tl.arange(0, HEADS), tl.arange(0, Z)
    top = tl.full((E, HEADS), float("-inf"), SUM)
    for at in range(begin, end, E):
        place = (at + tl.arange(0, E))[:, None]
        lw = tl.load(
            part_sum + place * H + head[None, :], mask=(place < end) & (head < H)[None, :], other=float("-inf")
        )
        top = tl.maximum(top, lw)
    highest = tl.max(top, 0)
    base = tl.where(highest == float("-inf"), 0.0, highest)  # heads that only pad
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
    SHAPE: tl.constexpr, SLOPE: tl.constexpr, SQUAREPLUS: tl.constexpr, WEIGHTED: tl.constexpr, SUM: tl.constexpr,
    OWN: tl.constexpr, OTHER: tl.constexpr, FIND: tl.constexpr, E: tl.constexpr,
):  # fmt: skip
    """Aggregation with weights divided by the totals of the row's own node, the others', or both.

    FIND: the own totals of rows of one piece are not known yet; they are found first, and stored.
    """
    piece = tl.program_id(0)
    i, begin, end = tl.load(row + piece), tl.load(start + piece), tl.load(stop + piece)
    head, channel = tl.arange(0, HEADS), tl.arange(0, Z)
    place = tl.load(slot + piece)
    p = heads_of_one(own, i, H, W, HEADS, C).to(SUM)
    at_home = own_total + i.to(tl.int64) * H + head
    here = tl.zeros((HEADS,), SUM)
    if OWN:
        here = tl.load(at_home, mask=head < (tl.where(place < 0, 0, H) if FIND else H), other=0.0)
    if FIND:
        top = tl.full((E, HEADS), float("-inf"), SUM)
        summed = tl.zeros((E, HEADS), SUM)
        for at in range(begin, tl.where(place < 0, end, begin), E):
            entry = at + tl.arange(0, E)
            there = entry < end
            j = tl.load(index + entry, mask=there, other=0)
            e = tl.load(edge + entry, mask=there, other=0)
            x = tl.sum(p[None, :, :] * heads_of_many(other, j, there, H, W, HEADS, C).to(SUM), 2)
            lw = log_weight(x, e, there, weight, SHAPE, SLOPE, SQUAREPLUS, WEIGHTED)
            higher = tl.maximum(top, lw)
            base = tl.where(higher == float("-inf"), 0.0, higher)
            summed = summed * tl.exp(top - base) + tl.exp(lw - base)
            top = higher
        highest = tl.max(top, 0)
        base = tl.where(highest == float("-inf"), 0.0, highest)
        sums = tl.sum(summed * tl.exp(top - base[None, :]), 0)
        found = highest + tl.log(tl.where(sums > 0, sums, 1.0))
        here = tl.where(place < 0, found, here)
        tl.store(at_home, found, mask=head < tl.where(place < 0, H, 0))
    acc = tl.zeros((E, Z), SUM)
    for at in range(begin, end, E):
        entry = at + tl.arange(0, E)
        there = entry < end
        j = tl.load(index + entry, mask=there, other=0)
        e = tl.load(edge + entry, mask=there, other=0)
        x = tl.sum(p[None, :, :] * heads_of_many(other, j, there, H, W, HEADS, C).to(SUM), 2)
        lw = log_weight(x, e, there, weight, SHAPE, SLOPE, SQUAREPLUS, WEIGHTED) - here[None, :]
        if OTHER:
            lw -= of_many(other_total, j, there, H, HEADS)
        a = tl.sum(tl.where((head < H)[None, :], tl.exp(lw), 0.0), 1) / H
        acc += a[:, None] * of_many(z, j, there, D, Z).to(SUM)
    total = tl.sum(acc, 0)
    if place < 0:
        tl.store(out + i.to(tl.int64) * D + channel, total, mask=channel < D)
    else:
        tl.store(partial + place.to(tl.int64) * D + channel, total, mask=channel < D)


def attend_rows(task: Task, pattern: Compressed, own: Tensor, other: Tensor, z: Tensor) -> tuple[Tensor, Tensor]:
    """Means over the edges of each row, (n, d), and the logarithms of the sums of weights, (n, h), in one pass."""
    d = z.shape[1]
    if task.padded_heads * task.width(d) <= CARRIED:
        return _one_pass(task, pattern, own, other, z, d=d)
    log_sum = z.new_empty(len(pattern.ptr) - 1, task.heads, dtype=task.sum_dtype)
    if pattern.pieces.num_slots:
        _one_pass(task, pattern, own, other, own, d=0, log_sum=log_sum)
    return weighted_sum(task, pattern, own, other, (log_sum, None), z, find=True), log_sum


def log_sums(task: Task, pattern: Compressed, own: Tensor, other: Tensor) -> Tensor:
    """Logarithms of the sums of weights over each row, (n, h)."""
    return _one_pass(task, pattern, own, other, own, d=0)[1]


def weighted_sum(
    task: Task, pattern: Compressed, own: Tensor, other: Tensor, totals: Totals, z: Tensor, *, find: bool = False
) -> Tensor:
    """Sum over each row of the weights, divided by totals (n, h), times the states; (n, d) -> (n, d).

    With ``find``, the own totals are known of split rows alone, and are written for the others.
    """
    d, pieces = z.shape[1], pattern.pieces
    out = z.new_empty(len(pattern.ptr) - 1, d, dtype=task.dtype)
    partial = slots(pattern, d, like=out)
    with torch.cuda.device_of(z):
        _weighted_sum[(len(pieces),)](
            *task.walk(pattern), own, other, *task.known(totals, own), z, out, partial,
            **task.constants(d), **task.sides(totals), **task.tile(max(task.pair_width, task.width(d))), FIND=find,
        )  # fmt: skip
    return join(pattern, partial, out)


def _one_pass(
    task: Task, pattern: Compressed, own: Tensor, other: Tensor, z: Tensor, *, d: int, log_sum: Tensor | None = None
) -> tuple[Tensor, Tensor]:
    """Given ``log_sum``, those of split rows alone are found and written there."""
    pieces, rows, split = pattern.pieces, len(pattern.ptr) - 1, log_sum is not None
    out = z.new_empty(rows, d, dtype=task.dtype)
    log_sum = z.new_empty(rows, task.heads, dtype=task.sum_dtype) if log_sum is None else log_sum
    part_out, part_sum = (slots(pattern, task.heads * k, like=out) for k in (d, 1))
    tile = task.tile(max(task.pair_width, task.padded_heads * task.width(d)))
    with torch.cuda.device_of(z):
        _attend_rows[(pieces.num_slots if split else len(pieces),)](
            *task.walk(pattern, split=split), own, other, z, out, log_sum, part_out, part_sum,
            **task.constants(d), **tile,
        )  # fmt: skip
        if pieces.num_slots:
            constants = {k: v for k, v in task.constants(d).items() if k in ("H", "D", "HEADS", "Z", "SUM")}
            _join_rows[(len(pieces.split_row),)](
                pieces.split_row, pieces.split_ptr, part_out, part_sum, out, log_sum, **constants, **tile
            )
    return out, log_sum
