"""A step of a linear recurrence on the GPU, forwards or backwards: a product and all that goes with it in one walk.

As in the products, a program takes a piece of a row, and a second launch puts split rows together; both add what the
step adds. The runs of a batch lie one behind the other and are worked on in that order, so that the state of one is in
the cache while it is walked along. No edge is met twice in a run: what is added to an edge is read and written.
"""

import torch
import triton
import triton.language as tl
from torch import Tensor
from triton import cdiv, next_power_of_2

from beltrami.graph.edges import Compressed
from beltrami.graph.ops.triton import product
from beltrami.graph.ops.triton.product import FUSION, WARPS, wide


@triton.jit
def _finished(
    total, i, run, channel, dense, before, given, number, idle, nodes, given_stride, number_stride,
    K: tl.constexpr, FACTOR: tl.constexpr, KEEP: tl.constexpr, BEFORE: tl.constexpr, GIVEN: tl.constexpr,
    IDLE: tl.constexpr, SUM: tl.constexpr,
):  # fmt: skip
    """What a row comes to, from its sum."""
    inside = channel < K
    at = (run * nodes + i) * K + channel
    if IDLE:
        total += tl.load(idle + i).to(SUM) * tl.load(dense + at, mask=inside, other=0.0).to(SUM)
    total *= FACTOR
    if BEFORE:
        total += KEEP * tl.load(before + at, mask=inside, other=0.0).to(SUM)
    if GIVEN:
        g = tl.load(given + run * given_stride + i * K + channel, mask=inside, other=0.0).to(SUM)
        total += tl.load(number + run * number_stride).to(SUM) * g
    return total


@triton.jit
def _step(
    row, start, stop, slot, index, edge, values, dense, before, given, number, idle, own, sums, out, partial,
    nodes, slots, value_stride, sum_stride, given_stride, number_stride,
    K: tl.constexpr, E: tl.constexpr, C: tl.constexpr, FACTOR: tl.constexpr, KEEP: tl.constexpr, BEFORE: tl.constexpr,
    GIVEN: tl.constexpr, IDLE: tl.constexpr, ACROSS: tl.constexpr, SUM: tl.constexpr,
):  # fmt: skip
    piece, run = tl.program_id(0), tl.program_id(2).to(tl.int64)
    channel = tl.program_id(1) * C + tl.arange(0, C)
    inside = channel < K
    i = tl.load(row + piece).to(tl.int64)
    begin, end = tl.load(start + piece), tl.load(stop + piece)
    here = run * nodes
    if ACROSS:
        q = tl.load(own + (here + i) * K + channel, mask=inside, other=0.0).to(SUM)
    acc = tl.zeros((E, C), SUM)
    for at in range(begin, end, E):
        entry = at + tl.arange(0, E)
        there = entry < end
        j = tl.load(index + entry, mask=there, other=0).to(tl.int64)
        e = tl.load(edge + entry, mask=there, other=0).to(tl.int64)
        both = there[:, None] & inside[None, :]
        z = tl.load(dense + (here + j)[:, None] * K + channel[None, :], mask=both, other=0.0).to(SUM)
        acc += tl.load(values + run * value_stride + e, mask=there, other=0.0).to(SUM)[:, None] * z
        if ACROSS:
            cell = sums + run * sum_stride + e
            known = tl.load(cell, mask=there, other=0.0).to(SUM)
            tl.store(cell, known + FACTOR * tl.sum(z * q[None, :], 1), mask=there)
    total = tl.sum(acc, 0)
    place = tl.load(slot + piece).to(tl.int64)
    if place < 0:
        total = _finished(
            total, i, run, channel, dense, before, given, number, idle, nodes, given_stride, number_stride,
            K, FACTOR, KEEP, BEFORE, GIVEN, IDLE, SUM,
        )  # fmt: skip
        tl.store(out + (here + i) * K + channel, total, mask=inside)
    else:
        tl.store(partial + (run * slots + place) * K + channel, total, mask=inside)


@triton.jit
def _join_step(
    row, ptr, dense, before, given, number, idle, out, partial, nodes, slots, given_stride, number_stride,
    K: tl.constexpr, E: tl.constexpr, C: tl.constexpr, FACTOR: tl.constexpr, KEEP: tl.constexpr, BEFORE: tl.constexpr,
    GIVEN: tl.constexpr, IDLE: tl.constexpr, SUM: tl.constexpr,
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
    total = _finished(
        tl.sum(acc, 0), i, run, channel, dense, before, given, number, idle, nodes, given_stride, number_stride,
        K, FACTOR, KEEP, BEFORE, GIVEN, IDLE, SUM,
    )  # fmt: skip
    tl.store(out + (run * nodes + i) * K + channel, total, mask=inside)


def step(
    pattern: Compressed,
    out: Tensor,
    a: Tensor,
    y: Tensor,
    *,
    factor: float,
    before: tuple[float, Tensor] | None = None,
    given: tuple[Tensor, Tensor] | None = None,
    across: tuple[Tensor, Tensor] | None = None,
    idle: Tensor | None = None,
) -> None:
    r"""Write :math:`c B y + k\,b + d\,g` into ``out``, where B is A and a one for each idle row.

    Args:
        pattern: where A has entries.
        factor: c.
        before: k and b.
        given: the numbers d, one a run, and g.
        across: q and what :math:`c \langle y_j, q_i \rangle` is added to for each entry (i, j); for at most
            ``product.WIDEST`` channels.
        idle: what B has on its diagonal besides, (n, 1).

    Shapes:
        states (runs, n, d); edge values (runs, m), their first stride whatever it is; numbers (runs,).
    """
    runs, nodes, k = out.shape
    if out.numel() == 0:
        return
    pieces, y, a = pattern.pieces, y.contiguous(), a if a.stride(1) == 1 else a.contiguous()
    keep, b = before or (0.0, y)
    number, g = given or (y, y)
    q, sums = across or (y, y)
    g = g if g.stride()[1:] == (k, 1) else g.contiguous()
    partial = out.new_empty(
        runs, pieces.num_slots, k, dtype=torch.float64 if out.dtype == torch.float64 else torch.float32
    )
    rest = (y, b.contiguous(), g, number, y if idle is None else idle.contiguous())
    c = min(next_power_of_2(k), product.WIDEST)
    how = dict(
        K=k, E=min(32, max(1, product.TILE // c)), C=c, FACTOR=factor, KEEP=keep, BEFORE=before is not None,
        GIVEN=given is not None, IDLE=idle is not None, SUM=wide(y), num_warps=WARPS, **FUSION,
    )  # fmt: skip
    strides = (g.stride(0), number.stride(0))
    with torch.cuda.device_of(out):
        _step[len(pieces), cdiv(k, c), runs](
            *pieces.bounds, pattern.index, pattern.edge, a, *rest, q.contiguous(), sums, out, partial,
            nodes, pieces.num_slots, a.stride(0), sums.stride(0), *strides, ACROSS=across is not None, **how,
        )  # fmt: skip
        if pieces.num_slots:
            _join_step[len(pieces.split_row), cdiv(k, c), runs](
                pieces.split_row, pieces.split_ptr, *rest, out, partial, nodes, pieces.num_slots, *strides, **how
            )
