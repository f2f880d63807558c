r"""Backward kernels of attention: scores are computed again, and one number per edge is stored.

With :math:`a = e^{l - T_i - T_j}`, where T are the normaliser's totals of receivers and senders, and
:math:`b_{ij} = \langle g_i, z_j \rangle / h`, the derivative by the logarithm of a weight is, for sums over rows,
:math:`a_{ij} (b_{ij} - \sum_k a_{ik} b_{ik})`; for sums over columns the sum is the sender's; for both, half of each.
"""

import torch
import triton
import triton.language as tl
from torch import Tensor

from beltrami.graph.edges import Compressed, Edges
from beltrami.graph.ops.triton.attention_score import AttentionLaunch, Totals, heads_of_one, log_slope, of_many, scored
from beltrami.graph.ops.triton.sparse_product import join, slots

Sides = tuple[Tensor, Tensor]  # of the row's own node, and of the other nodes


@triton.jit
def _moments(
    row, start, stop, slot, index, edge, weight, own, other, own_total, other_total, left, right, b, out, partial,
    H: tl.constexpr, W: tl.constexpr, D: tl.constexpr, HEADS: tl.constexpr, C: tl.constexpr, Z: tl.constexpr,
    ACTIVATION: tl.constexpr, SLOPE: tl.constexpr, SQUAREPLUS: tl.constexpr, WEIGHTED: tl.constexpr,
    SUM: tl.constexpr, OWN: tl.constexpr, OTHER: tl.constexpr, E: tl.constexpr, WRITE: tl.constexpr,
):  # fmt: skip
    """Sums over rows of a b. WRITE: compute b here and store it on the edges; else read it."""
    chunk = tl.program_id(0)
    i, begin, end = tl.load(row + chunk), tl.load(start + chunk), tl.load(stop + chunk)
    head, channel = tl.arange(0, HEADS), tl.arange(0, Z)
    p = heads_of_one(own, i, H, W, HEADS, C).to(SUM)
    here = tl.load(own_total + i.to(tl.int64) * H + head, mask=head < H, other=0.0) if OWN else tl.zeros((HEADS,), SUM)
    if WRITE:
        g = tl.load(left + i.to(tl.int64) * D + channel, mask=channel < D, other=0.0).to(SUM)
    acc = tl.zeros((E, HEADS), SUM)
    for at in range(begin, end, E):
        there, j, e, _, _, lw = scored(
            at, end, index, edge, weight, p, other, H, W, HEADS, C, ACTIVATION, SLOPE, SQUAREPLUS, WEIGHTED, SUM, E
        )
        lw -= here[None, :]
        if OTHER:
            lw -= of_many(other_total, j, there, H, HEADS)
        if WRITE:
            dot = tl.sum(g[None, :] * of_many(right, j, there, D, Z).to(SUM), 1) / H
            tl.store(b + e, dot, mask=there)
        else:
            dot = tl.load(b + e, mask=there, other=0.0)
        acc += tl.exp(lw) * dot[:, None]
    total = tl.sum(acc, 0)
    place = tl.load(slot + chunk)
    if place < 0:
        tl.store(out + i.to(tl.int64) * H + head, total, mask=head < H)
    else:
        tl.store(partial + place.to(tl.int64) * H + head, total, mask=head < H)


@triton.jit
def _pull(
    row, start, stop, slot, index, edge, weight, own, other, own_total, other_total, own_moment, other_moment,
    b, state, out, partial, out_state, partial_state,
    H: tl.constexpr, W: tl.constexpr, D: tl.constexpr, HEADS: tl.constexpr, C: tl.constexpr, Z: tl.constexpr,
    ACTIVATION: tl.constexpr, SLOPE: tl.constexpr, SQUAREPLUS: tl.constexpr, WEIGHTED: tl.constexpr,
    SUM: tl.constexpr, OWN: tl.constexpr, OTHER: tl.constexpr, E: tl.constexpr,
):  # fmt: skip
    """Gradient of the row's own side of the pairs; with D > 0, the weighted sum of ``state`` too."""
    chunk = tl.program_id(0)
    i, begin, end = tl.load(row + chunk), tl.load(start + chunk), tl.load(stop + chunk)
    head, channel = tl.arange(0, HEADS), tl.arange(0, C)
    p = heads_of_one(own, i, H, W, HEADS, C).to(SUM)
    here = tl.zeros((HEADS,), SUM)
    if OWN:
        here = tl.load(own_total + i.to(tl.int64) * H + head, mask=head < H, other=0.0)
        moment = tl.load(own_moment + i.to(tl.int64) * H + head, mask=head < H, other=0.0)[None, :]
    acc = tl.zeros((E, HEADS, C), SUM)
    acc_state = tl.zeros((E, Z), SUM)
    for at in range(begin, end, E):
        there, j, e, q, x, lw = scored(
            at, end, index, edge, weight, p, other, H, W, HEADS, C, ACTIVATION, SLOPE, SQUAREPLUS, WEIGHTED, SUM, E
        )
        dot = tl.load(b + e, mask=there, other=0.0)[:, None]
        if OWN and OTHER:
            far = of_many(other_total, j, there, H, HEADS)
            far_moment = of_many(other_moment, j, there, H, HEADS)
            a = tl.exp(lw - here[None, :] - far)
            both = tl.exp(lw - 2 * here[None, :]) * moment + tl.exp(lw - 2 * far) * far_moment
            t = a * dot - 0.5 * both
        elif OWN:
            a = tl.exp(lw - here[None, :])
            t = a * (dot - moment)
        else:
            a = tl.exp(lw - of_many(other_total, j, there, H, HEADS))
            t = a * (dot - of_many(other_moment, j, there, H, HEADS))
        t *= log_slope(x, ACTIVATION, SLOPE, SQUAREPLUS)
        acc += t[:, :, None] * q
        if D > 0:
            mean = tl.sum(tl.where((head < H)[None, :], a, 0.0), 1) / H
            acc_state += mean[:, None] * of_many(state, j, there, D, Z).to(SUM)
    total, total_state = tl.sum(acc, 0), tl.sum(acc_state, 0)
    inside = (head < H)[:, None] & (channel < W)[None, :]
    cell = head[:, None] * W + channel[None, :]
    wide = tl.arange(0, Z)
    place = tl.load(slot + chunk)
    if place < 0:
        tl.store(out + i.to(tl.int64) * (H * W) + cell, total, mask=inside)
        if D > 0:
            tl.store(out_state + i.to(tl.int64) * D + wide, total_state, mask=wide < D)
    else:
        tl.store(partial + place.to(tl.int64) * (H * W) + cell, total, mask=inside)
        if D > 0:
            tl.store(partial_state + place.to(tl.int64) * D + wide, total_state, mask=wide < D)


def gradients(launch: AttentionLaunch, edges: Edges, stored: list[Tensor], totals: Totals) -> tuple[Tensor, ...]:
    """Gradients of p, q (n, h, k) and z (n, d), from p, q, z and the gradient of the result."""
    p, q, z, g = stored
    rows, columns = totals
    turned = (columns, rows)  # as the senders see them
    b = p.new_empty(edges.num_edges, dtype=launch.sum_dtype)
    by_rows = by_columns = None
    if rows is not None:
        by_rows = _moments_of(launch, edges.rows, (p, q), totals, (g, z), b, write=True)
    if columns is not None:
        by_columns = _moments_of(launch, edges.columns, (q, p), turned, (z, g), b, write=rows is None)
    dp, _ = _pull_of(launch, edges.rows, (p, q), totals, (by_rows, by_columns), b)
    dq, dz = _pull_of(launch, edges.columns, (q, p), turned, (by_columns, by_rows), b, g)
    return dp, dq, dz


def _moments_of(
    launch: AttentionLaunch, pattern: Compressed, pair: Sides, totals: Totals, states: Sides, b: Tensor, *, write: bool
) -> Tensor:  # fmt: skip
    """Sums of a b over the rows of a pattern, (n, h); with ``write``, b = <own state, other state> / h is stored."""
    d = states[0].shape[1] if write else 0
    out = pair[0].new_empty(len(pattern.ptr) - 1, launch.heads, dtype=launch.sum_dtype)
    partial = slots(pattern, launch.heads, like=out)
    with torch.cuda.device_of(out):
        _moments[(len(pattern.chunks),)](
            *launch.entries(pattern), *pair, *launch.pointers(totals, pair[0]), *states, b, out, partial,
            **launch.constants(d, totals), WRITE=write,
        )  # fmt: skip
    return join(pattern, partial, out)


def _pull_of(
    launch: AttentionLaunch, pattern: Compressed, pair: Sides, totals: Totals, moments: Totals, b: Tensor,
    state: Tensor | None = None,
) -> tuple[Tensor, Tensor]:  # fmt: skip
    """Gradient of the own side of the pairs, (n, h, k), and the weighted sum of a ``state`` (n, d)."""
    rows, d = len(pattern.ptr) - 1, 0 if state is None else state.shape[1]
    out = b.new_empty(rows, launch.heads, launch.channels, dtype=launch.dtype)
    out_state = b.new_empty(rows, d, dtype=launch.dtype)
    partial, partial_state = slots(pattern, launch.heads * launch.channels, like=out), slots(pattern, d, like=out)
    with torch.cuda.device_of(out):
        _pull[(len(pattern.chunks),)](
            *launch.entries(pattern), *pair, *launch.pointers(totals, b), *launch.pointers(moments, b), b,
            b if state is None else state, out, partial, out_state, partial_state,
            **launch.constants(d, totals),
        )  # fmt: skip
    join(pattern, partial, out)
    return out, join(pattern, partial_state, out_state) if d else out_state
