r"""Kernels of attention weights on the edges, averaged over heads, and of their gradients by the two sides of a pair.

With :math:`a = e^{l - T_i - T_j}`, where l are the logarithms of the weights and T the normaliser's totals of receivers
and senders, and with the gradient :math:`g_{ij}` of the mean over heads, :math:`b = g / h`, the derivative by l is, for
sums over rows, :math:`a_{ij} (b_{ij} - \sum_k a_{ik} b_{ik})`; for sums over columns the sum is the sender's; for both,
half of each. Logarithms and dot products of every head are stored on the edges: kernels over edges have equal work in
all programs, whatever the degrees.
"""

from typing import Any

import torch
import triton
import triton.language as tl
from torch import Tensor
from triton import cdiv, next_power_of_2

from beltrami.graph.edges import Compressed, Edges
from beltrami.graph.ops.triton.attention_score import AttentionLaunch, Totals, activate, log_link, log_slope
from beltrami.graph.ops.triton.sparse_product import FUSION, row_sums, slots, spmm, tl_sum_dtype

TILE = 512  # numbers of a tile


@triton.jit(do_not_specialize=["entries"])
def _log_weights(
    row, index, weight, p, q, dots, log_weights, entries,
    H: tl.constexpr, W: tl.constexpr, HEADS: tl.constexpr, C: tl.constexpr, E: tl.constexpr,
    ACTIVATION: tl.constexpr, SLOPE: tl.constexpr, SQUAREPLUS: tl.constexpr, WEIGHTED: tl.constexpr, SUM: tl.constexpr,
):  # fmt: skip
    entry = tl.program_id(0).to(tl.int64) * E + tl.arange(0, E)
    there = entry < entries
    head, channel = tl.arange(0, HEADS), tl.arange(0, C)
    i = tl.load(row + entry, mask=there, other=0).to(tl.int64)
    j = tl.load(index + entry, mask=there, other=0).to(tl.int64)
    at = head[None, :, None] * W + channel[None, None, :]
    inside = there[:, None, None] & (head < H)[None, :, None] & (channel < W)[None, None, :]
    left = tl.load(p + i[:, None, None] * (H * W) + at, mask=inside, other=0.0).to(SUM)
    right = tl.load(q + j[:, None, None] * (H * W) + at, mask=inside, other=0.0).to(SUM)
    x = tl.sum(left * right, 2)
    s = log_link(activate(x, ACTIVATION, SLOPE), SQUAREPLUS)
    if WEIGHTED:
        s += tl.log(tl.load(weight + entry, mask=there, other=1.0).to(SUM))[:, None]
    cell, alive = entry[:, None] * H + head[None, :], there[:, None] & (head < H)[None, :]
    tl.store(dots + cell, x, mask=alive)
    tl.store(log_weights + cell, s, mask=alive)


@triton.jit(do_not_specialize=["chunks"])
def _log_sums(
    row, start, stop, slot, edge, values, out, partial, chunks, factor,
    H: tl.constexpr, HEADS: tl.constexpr, R: tl.constexpr, E: tl.constexpr, SUM: tl.constexpr, INDIRECT: tl.constexpr,
):  # fmt: skip
    """Logarithms of sums of exponentials over rows, times ``factor``; several chunks per program. INDIRECT: entries
    name rows of ``values``, and rows may be split; else entries are the slots of a split row."""
    chunk, head = tl.program_id(0) * R + tl.arange(0, R), tl.arange(0, HEADS)
    alive, inside = chunk < chunks, (head < H)[None, None, :]
    begin, end = tl.load(start + chunk, mask=alive, other=0), tl.load(stop + chunk, mask=alive, other=0)
    top = tl.full((R, E, HEADS), float("-inf"), SUM)
    total = tl.zeros((R, E, HEADS), SUM)
    for at in range(0, tl.max(end - begin, 0), E):
        entry = begin[:, None] + at + tl.arange(0, E)[None, :]
        there = entry < end[:, None]
        e = tl.load(edge + entry, mask=there, other=0) if INDIRECT else entry
        cell = e.to(tl.int64)[:, :, None] * H + head[None, None, :]
        value = tl.load(values + cell, mask=there[:, :, None] & inside, other=float("-inf"))
        higher = tl.maximum(top, value)
        base = tl.where(higher == float("-inf"), 0.0, higher)
        total = total * tl.exp(top - base) + tl.exp(value - base)
        top = higher
    highest = tl.max(top, 1)
    base = tl.where(highest == float("-inf"), 0.0, highest)
    sums = tl.sum(total * tl.exp(top - base[:, None, :]), 1)
    found = highest + tl.log(tl.where(sums > 0, sums, 1.0))
    i, place = tl.load(row + chunk, mask=alive, other=0), tl.load(slot + chunk, mask=alive, other=-1)
    cells, whole = alive[:, None] & (head < H)[None, :], (place < 0)[:, None] if INDIRECT else alive[:, None]
    tl.store(out + i.to(tl.int64)[:, None] * H + head[None, :], factor * found, mask=cells & whole)
    if INDIRECT:
        tl.store(partial + place.to(tl.int64)[:, None] * H + head[None, :], found, mask=cells & (place >= 0)[:, None])


@triton.jit
def _of_heads(values, node, there, H: tl.constexpr, HEADS: tl.constexpr):
    """Rows ``node`` of (n, H), padded with zeros, (..., HEADS)."""
    head = tl.arange(0, HEADS)
    at = node.to(tl.int64)[:, None] * H + head[None, :]
    return tl.load(values + at, mask=there[:, None] & (head < H)[None, :], other=0.0)


@triton.jit(do_not_specialize=["entries"])
def _mean_weights(
    row, index, log_weights, rows, columns, out, entries,
    H: tl.constexpr, HEADS: tl.constexpr, E: tl.constexpr, ROWS: tl.constexpr, COLUMNS: tl.constexpr,
):  # fmt: skip
    entry = tl.program_id(0) * E + tl.arange(0, E)
    there = entry < entries
    lw = _of_heads(log_weights, entry, there, H, HEADS)
    if ROWS:
        lw -= _of_heads(rows, tl.load(row + entry, mask=there, other=0), there, H, HEADS)
    if COLUMNS:
        lw -= _of_heads(columns, tl.load(index + entry, mask=there, other=0), there, H, HEADS)
    tl.store(out + entry, tl.sum(tl.where((tl.arange(0, HEADS) < H)[None, :], tl.exp(lw), 0.0), 1) / H, mask=there)


@triton.jit(do_not_specialize=["entries"])
def _weighted_gradients(
    row, index, log_weights, rows, columns, g, out, entries,
    H: tl.constexpr, HEADS: tl.constexpr, E: tl.constexpr, ROWS: tl.constexpr, COLUMNS: tl.constexpr,
):  # fmt: skip
    """The products a b of every head."""
    entry = tl.program_id(0) * E + tl.arange(0, E)
    there, head = entry < entries, tl.arange(0, HEADS)
    lw = _of_heads(log_weights, entry, there, H, HEADS)
    if ROWS:
        lw -= _of_heads(rows, tl.load(row + entry, mask=there, other=0), there, H, HEADS)
    if COLUMNS:
        lw -= _of_heads(columns, tl.load(index + entry, mask=there, other=0), there, H, HEADS)
    b = tl.load(g + entry, mask=there, other=0.0).to(lw.dtype) / H
    cell = entry.to(tl.int64)[:, None] * H + head[None, :]
    tl.store(out + cell, tl.exp(lw) * b[:, None], mask=there[:, None] & (head < H)[None, :])


@triton.jit(do_not_specialize=["entries"])
def _dot_gradients(
    row, index, dots, log_weights, rows, columns, by_rows, by_columns, products, entries,
    H: tl.constexpr, HEADS: tl.constexpr, E: tl.constexpr, ROWS: tl.constexpr, COLUMNS: tl.constexpr,
    ACTIVATION: tl.constexpr, SLOPE: tl.constexpr, SQUAREPLUS: tl.constexpr,
):  # fmt: skip
    """Derivatives by the dot products, in place of the products a b."""
    entry = tl.program_id(0) * E + tl.arange(0, E)
    there, head = entry < entries, tl.arange(0, HEADS)
    lw, t = _of_heads(log_weights, entry, there, H, HEADS), _of_heads(products, entry, there, H, HEADS)
    share = 0.5 if ROWS and COLUMNS else 1.0  # with both, the totals are halves, and each side has half of the sum
    if ROWS:
        i = tl.load(row + entry, mask=there, other=0)
        total = _of_heads(rows, i, there, H, HEADS) / share
        t -= share * tl.exp(lw - total) * _of_heads(by_rows, i, there, H, HEADS)
    if COLUMNS:
        j = tl.load(index + entry, mask=there, other=0)
        total = _of_heads(columns, j, there, H, HEADS) / share
        t -= share * tl.exp(lw - total) * _of_heads(by_columns, j, there, H, HEADS)
    x = _of_heads(dots, entry, there, H, HEADS)
    cell = entry.to(tl.int64)[:, None] * H + head[None, :]
    tl.store(
        products + cell, t * log_slope(x, ACTIVATION, SLOPE, SQUAREPLUS), mask=there[:, None] & (head < H)[None, :]
    )


def edge_weights(
    launch: AttentionLaunch, edges: Edges, p: Tensor, q: Tensor, *, sides: tuple[bool, bool]
) -> tuple[Tensor, tuple[Tensor, Tensor, Totals]]:
    """Weights averaged over heads, (m,), and what their gradients need: dot products and logarithms of weights (m, h),
    totals (n, h). ``p``, ``q`` (n, h, k); ``sides``: whether weights are divided by sums over rows, and over columns.
    """
    m, h, kind = edges.num_edges, launch.heads, tl_sum_dtype(launch.dtype)
    dots, log_weights = (p.new_empty(m, h, dtype=launch.sum_dtype) for _ in range(2))
    c = int(next_power_of_2(launch.channels))
    e = max(1, TILE // (launch.padded_heads * c))
    weight = edges.rows.ptr if launch.weight is None else launch.weight
    with torch.cuda.device_of(p):
        _log_weights[(cdiv(m, e),)](
            edges.rows.row, edges.rows.index, weight, p, q, dots, log_weights, m,
            H=h, W=launch.channels, HEADS=launch.padded_heads, C=c, E=e, ACTIVATION=launch.activation,
            SLOPE=launch.slope, SQUAREPLUS=launch.squareplus, WEIGHTED=launch.weight is not None, SUM=kind,
            num_warps=1, **FUSION,
        )  # fmt: skip
    factor = 0.5 if all(sides) else 1.0
    rows, columns = (
        _log_totals(launch, pattern, log_weights, factor) if wanted else None
        for wanted, pattern in zip(sides, (edges.rows, edges.columns), strict=True)
    )
    out = p.new_empty(m, dtype=launch.dtype)
    _over_edges(_mean_weights, launch, edges, (log_weights,), (rows, columns), out)
    return out, (dots, log_weights, (rows, columns))


def gradients(
    launch: AttentionLaunch, edges: Edges, p: Tensor, q: Tensor, known: tuple[Tensor, Tensor, Totals], g: Tensor
) -> tuple[Tensor, Tensor]:
    """Gradients of p and q (n, h, k) from the gradient of the weights (m,)."""
    dots, log_weights, totals = known
    t = torch.empty_like(log_weights)
    _over_edges(_weighted_gradients, launch, edges, (log_weights,), totals, g.contiguous(), t)
    sums = tuple(
        g if total is None else row_sums(pattern, t)
        for total, pattern in zip(totals, (edges.rows, edges.columns), strict=True)
    )
    slopes = {"ACTIVATION": launch.activation, "SLOPE": launch.slope, "SQUAREPLUS": launch.squareplus}
    _over_edges(_dot_gradients, launch, edges, (dots, log_weights), totals, *sums, t, **slopes)
    t = t.to(launch.dtype)
    return spmm(edges.rows, t, q), spmm(edges.columns, t, p)


def _log_totals(launch: AttentionLaunch, pattern: Compressed, log_weights: Tensor, factor: float) -> Tensor:
    """Logarithms of the sums of weights over rows, (n, h), times ``factor``."""
    chunks, h = pattern.chunks, launch.heads
    out = log_weights.new_empty(len(pattern.ptr) - 1, h)
    partial = slots(pattern, h, like=log_weights)
    constants = dict(H=h, HEADS=launch.padded_heads, E=8, SUM=tl_sum_dtype(launch.dtype), num_warps=1, **FUSION)
    r = max(1, TILE // (8 * launch.padded_heads))
    with torch.cuda.device_of(out):
        _log_sums[(cdiv(len(chunks), r),)](
            *chunks.bounds, pattern.edge, log_weights, out, partial, len(chunks), factor,
            R=r, INDIRECT=True, **constants,
        )  # fmt: skip
        if chunks.num_slots:
            bounds = (chunks.split_row, chunks.split_ptr[:-1], chunks.split_ptr[1:], chunks.split_row)
            splits = len(chunks.split_row)
            _log_sums[(splits,)](
                *bounds, pattern.edge, partial, out, partial, splits, factor, R=1, INDIRECT=False, **constants
            )
    return out


def _over_edges(
    kernel: Any, launch: AttentionLaunch, edges: Edges, values: tuple[Tensor, ...], totals: Totals, *rest: Tensor,
    **constants: Any,
) -> None:  # fmt: skip
    """Launch a kernel over all edges, in their order."""
    (rows, columns), m = totals, edges.num_edges
    e = max(1, TILE // 2 // launch.padded_heads)
    with torch.cuda.device_of(values[0]):
        kernel[(cdiv(m, e),)](
            edges.rows.row, edges.rows.index, *values, values[0] if rows is None else rows,
            values[0] if columns is None else columns, *rest, m,
            H=launch.heads, HEADS=launch.padded_heads, E=e, ROWS=rows is not None, COLUMNS=columns is not None,
            num_warps=4, **constants, **FUSION,
        )  # fmt: skip
