r"""Attention on the GPU, backwards: scores are computed again, and nothing but one number an edge is stored.

With :math:`a = e^{l - T_i - T_j}`, the totals T of receivers and senders as the normaliser has them, and
:math:`b_{ij} = \langle g_i, z_j \rangle / h`, the derivative by the logarithm of a weight is, over rows,
:math:`a_{ij} (b_{ij} - \sum_k a_{ik} b_{ik})`; over columns the sum is the sender's; balanced by both, half of each.
"""

import torch
import triton
import triton.language as tl
from torch import Tensor

from beltrami.graph.edges import Compressed
from beltrami.graph.ops.triton.product import join, slots
from beltrami.graph.ops.triton.score import heads_of_many, heads_of_one, log_slope, log_weight, of_many, of_one
from beltrami.graph.ops.triton.task import Task, Totals

Couple = tuple[Tensor, Tensor]  # of the row's own side, and of the other


@triton.jit
def _moments(
    row, start, stop, slot, index, edge, weight, own, other, own_total, other_total, left, right, b, out, partial,
    H: tl.constexpr, W: tl.constexpr, D: tl.constexpr, HEADS: tl.constexpr, C: tl.constexpr, Z: tl.constexpr,
    SHAPE: tl.constexpr, SLOPE: tl.constexpr, SQUAREPLUS: tl.constexpr, WEIGHTED: tl.constexpr, SUM: tl.constexpr,
    OWN: tl.constexpr, OTHER: tl.constexpr, E: tl.constexpr, FRESH: tl.constexpr,
):  # fmt: skip
    """Sums over rows of a b; where b is fresh, it is computed here and stored on the edges."""
    piece = tl.program_id(0)
    i, begin, end = tl.load(row + piece), tl.load(start + piece), tl.load(stop + piece)
    head = tl.arange(0, HEADS)
    p = heads_of_one(own, i, H, W, HEADS, C).to(SUM)
    here = tl.load(own_total + i.to(tl.int64) * H + head, mask=head < H, other=0.0) if OWN else tl.zeros((HEADS,), SUM)
    if FRESH:
        g = of_one(left, i, D, Z).to(SUM)
    acc = tl.zeros((E, HEADS), SUM)
    for at in range(begin, end, E):
        entry = at + tl.arange(0, E)
        there = entry < end
        j = tl.load(index + entry, mask=there, other=0)
        e = tl.load(edge + entry, mask=there, other=0)
        x = tl.sum(p[None, :, :] * heads_of_many(other, j, there, H, W, HEADS, C).to(SUM), 2)
        lw = log_weight(x, e, there, weight, SHAPE, SLOPE, SQUAREPLUS, WEIGHTED) - here[None, :]
        if OTHER:
            lw -= of_many(other_total, j, there, H, HEADS)
        if FRESH:
            across = tl.sum(g[None, :] * of_many(right, j, there, D, Z).to(SUM), 1) / H
            tl.store(b + e, across, mask=there)
        else:
            across = tl.load(b + e, mask=there, other=0.0)
        acc += tl.exp(lw) * across[:, None]
    total = tl.sum(acc, 0)
    place = tl.load(slot + piece)
    if place < 0:
        tl.store(out + i.to(tl.int64) * H + head, total, mask=head < H)
    else:
        tl.store(partial + place.to(tl.int64) * H + head, total, mask=head < H)


@triton.jit
def _pull(
    row, start, stop, slot, index, edge, weight, own, other, own_total, other_total, own_moment, other_moment,
    b, state, out, partial, out_state, partial_state,
    H: tl.constexpr, W: tl.constexpr, D: tl.constexpr, HEADS: tl.constexpr, C: tl.constexpr, Z: tl.constexpr,
    SHAPE: tl.constexpr, SLOPE: tl.constexpr, SQUAREPLUS: tl.constexpr, WEIGHTED: tl.constexpr, SUM: tl.constexpr,
    OWN: tl.constexpr, OTHER: tl.constexpr, E: tl.constexpr,
):  # fmt: skip
    """The derivative by the row's own side of the pairs; with D > 0, the weighted sum of ``state`` too."""
    piece = tl.program_id(0)
    i, begin, end = tl.load(row + piece), tl.load(start + piece), tl.load(stop + piece)
    head, channel = tl.arange(0, HEADS), tl.arange(0, C)
    p = heads_of_one(own, i, H, W, HEADS, C).to(SUM)
    here = tl.zeros((HEADS,), SUM)
    if OWN:
        here = tl.load(own_total + i.to(tl.int64) * H + head, mask=head < H, other=0.0)
        moment = tl.load(own_moment + i.to(tl.int64) * H + head, mask=head < H, other=0.0)[None, :]
    acc = tl.zeros((E, HEADS, C), SUM)
    acc_state = tl.zeros((E, Z), SUM)
    for at in range(begin, end, E):
        entry = at + tl.arange(0, E)
        there = entry < end
        j = tl.load(index + entry, mask=there, other=0)
        e = tl.load(edge + entry, mask=there, other=0)
        q = heads_of_many(other, j, there, H, W, HEADS, C).to(SUM)
        x = tl.sum(p[None, :, :] * q, 2)
        lw = log_weight(x, e, there, weight, SHAPE, SLOPE, SQUAREPLUS, WEIGHTED)
        across = tl.load(b + e, mask=there, other=0.0)[:, None]
        if OWN and OTHER:
            far = of_many(other_total, j, there, H, HEADS)
            far_moment = of_many(other_moment, j, there, H, HEADS)
            a = tl.exp(lw - here[None, :] - far)
            both = tl.exp(lw - 2 * here[None, :]) * moment + tl.exp(lw - 2 * far) * far_moment
            t = a * across - 0.5 * both
        elif OWN:
            a = tl.exp(lw - here[None, :])
            t = a * (across - moment)
        else:
            a = tl.exp(lw - of_many(other_total, j, there, H, HEADS))
            t = a * (across - of_many(other_moment, j, there, H, HEADS))
        t *= log_slope(x, SHAPE, SLOPE, SQUAREPLUS)
        acc += t[:, :, None] * q
        if D > 0:
            mean = tl.sum(tl.where((head < H)[None, :], a, 0.0), 1) / H
            acc_state += mean[:, None] * of_many(state, j, there, D, Z).to(SUM)
    total, total_state = tl.sum(acc, 0), tl.sum(acc_state, 0)
    inside = (head < H)[:, None] & (channel < W)[None, :]
    cell = head[:, None] * W + channel[None, :]
    wide = tl.arange(0, Z)
    place = tl.load(slot + piece)
    if place < 0:
        tl.store(out + i.to(tl.int64) * (H * W) + cell, total, mask=inside)
        if D > 0:
            tl.store(out_state + i.to(tl.int64) * D + wide, total_state, mask=wide < D)
    else:
        tl.store(partial + place.to(tl.int64) * (H * W) + cell, total, mask=inside)
        if D > 0:
            tl.store(partial_state + place.to(tl.int64) * D + wide, total_state, mask=wide < D)


def moments(
    task: Task, pattern: Compressed, pair: Couple, totals: Totals, states: Couple, b: Tensor, *, fresh: bool
) -> Tensor:  # fmt: skip
    """Sums of a b over the rows of a pattern, (n, h). Fresh: b = <own state, other state> / h is written, else read."""
    pieces, d = pattern.pieces, states[0].shape[1] if fresh else 0
    out = pair[0].new_empty(len(pattern.ptr) - 1, task.heads, dtype=task.sum_dtype)
    partial = slots(pattern, task.heads, like=out)
    with torch.cuda.device_of(out):
        _moments[(len(pieces),)](
            *task.walk(pattern), *pair, *task.known(totals, pair[0]), *states, b, out, partial,
            **task.constants(d), **task.sides(totals), **task.tile(max(task.pair_width, task.width(d))), FRESH=fresh,
        )  # fmt: skip
    return join(pattern, partial, out)


def pull(
    task: Task, pattern: Compressed, pair: Couple, totals: Totals, sums: Totals, b: Tensor, state: Tensor | None = None
) -> tuple[Tensor, Tensor]:  # fmt: skip
    """The derivative by the own side of the pairs, (n, h, k), and the weighted sum of a ``state`` (n, d)."""
    pieces, rows, d = pattern.pieces, len(pattern.ptr) - 1, 0 if state is None else state.shape[1]
    width = task.heads * task.channels
    out = b.new_empty(rows, task.heads, task.channels, dtype=task.dtype)
    out_state = b.new_empty(rows, d, dtype=task.dtype)
    partial, partial_state = slots(pattern, width, like=out), slots(pattern, d, like=out)
    with torch.cuda.device_of(out):
        _pull[(len(pieces),)](
            *task.walk(pattern), *pair, *task.known(totals, b), *task.known(sums, b), b, b if state is None else state,
            out, partial, out_state, partial_state,
            **task.constants(d), **task.sides(totals), **task.tile(max(task.pair_width, task.width(d))),
        )  # fmt: skip
    join(pattern, partial, out)
    return out, join(pattern, partial_state, out_state) if d else out_state
