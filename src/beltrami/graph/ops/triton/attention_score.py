"""Shared code of the attention kernels: launch parameters, and the logarithm of an edge's weight from its dot product.

A kernel works on one side of the edges: the node that owns a row, and the nodes at the other ends. Dot products are
symmetric, so that the same code serves receivers and senders.
"""

from dataclasses import dataclass
from typing import Any

import torch
import triton
import triton.language as tl
from torch import Tensor
from triton import next_power_of_2

from beltrami.graph.edges import Compressed
from beltrami.graph.ops.triton.sparse_product import FUSION, sum_dtype, tl_sum_dtype

TILE = 512  # numbers of a tile: entries times channels
WARP = 512  # numbers of a tile per warp
LARGE = tl.constexpr(1e6)  # beyond this, sqrt(s^2 + 4) is |s| to twelve digits, and s^2 might overflow
Totals = tuple[Tensor | None, Tensor | None]  # of the row's own node, and of the other nodes


@dataclass(frozen=True)
class AttentionLaunch:
    """Parameters of an attention for its kernels: ``activation`` of dot products of ``heads`` heads of ``channels``.
    ``weight`` is the edges' measure, or None; ``dtype`` is that of the results, whatever type the inputs have."""

    activation: str
    slope: float
    squareplus: bool
    weight: Tensor | None
    heads: int
    channels: int
    dtype: torch.dtype

    @property
    def sum_dtype(self) -> torch.dtype:
        return sum_dtype(self.dtype)

    @property
    def padded_heads(self) -> int:
        return int(next_power_of_2(self.heads))

    def entries(self, pattern: Compressed, *, split: bool = False) -> tuple[Tensor, ...]:
        """Arguments that locate the entries of each chunk: of all chunks, or of those with a slot."""
        bounds = pattern.chunks.split_bounds if split else pattern.chunks.bounds
        return *bounds, pattern.index, pattern.edge, pattern.ptr if self.weight is None else self.weight

    def pointers(self, totals: Totals, placeholder: Tensor) -> tuple[Tensor, Tensor]:
        """The totals as kernel arguments, with a placeholder for those that are None."""
        own, other = totals
        return placeholder if own is None else own, placeholder if other is None else other

    def constants(self, d: int, totals: Totals | None = None, *, state_heads: int = 1) -> dict[str, Any]:
        """Constants of a kernel for states of ``d`` channels, of which a tile holds ``state_heads`` copies. OWN and
        OTHER, for a kernel that reads totals, say which of them exist."""
        width = max(self.padded_heads * _padded(self.channels), state_heads * _padded(d))
        entries = min(32, max(TILE // width, 4 if width <= 1024 else 1))
        sides = {} if totals is None else {"OWN": totals[0] is not None, "OTHER": totals[1] is not None}
        return dict(
            H=self.heads, W=self.channels, D=d, HEADS=self.padded_heads, C=_padded(self.channels), Z=_padded(d),
            ACTIVATION=self.activation, SLOPE=self.slope, SQUAREPLUS=self.squareplus,
            WEIGHTED=self.weight is not None, SUM=tl_sum_dtype(self.dtype), E=entries,
            num_warps=min(4, max(1, entries * width // WARP)), **FUSION, **sides,
        )  # fmt: skip


def _padded(d: int) -> int:
    return int(next_power_of_2(max(1, d)))


@triton.jit
def heads_of_one(tensor, node, H: tl.constexpr, W: tl.constexpr, HEADS: tl.constexpr, C: tl.constexpr):
    """Row ``node`` of (n, H, W), padded with zeros, (HEADS, C)."""
    head, channel = tl.arange(0, HEADS)[:, None], tl.arange(0, C)[None, :]
    at = node.to(tl.int64) * (H * W) + head * W + channel
    return tl.load(tensor + at, mask=(head < H) & (channel < W), other=0.0)


@triton.jit
def of_many(tensor, node, there, D: tl.constexpr, C: tl.constexpr):
    """Rows ``node`` (E,) of (n, D), padded with zeros, (E, C)."""
    channel = tl.arange(0, C)[None, :]
    at = node.to(tl.int64)[:, None] * D + channel
    return tl.load(tensor + at, mask=there[:, None] & (channel < D), other=0.0)


@triton.jit
def scored(
    at, end, index, edge, weight, p, other,
    H: tl.constexpr, W: tl.constexpr, HEADS: tl.constexpr, C: tl.constexpr, ACTIVATION: tl.constexpr,
    SLOPE: tl.constexpr, SQUAREPLUS: tl.constexpr, WEIGHTED: tl.constexpr, SUM: tl.constexpr, E: tl.constexpr,
):  # fmt: skip
    """Entries at, ..., at + E - 1: whether they exist, node, edge, q, dot product and logarithm of the weight. The
    logarithm includes the edges' measure and is -inf where there is no entry."""
    entry = at + tl.arange(0, E)
    there = entry < end
    j = tl.load(index + entry, mask=there, other=0)
    e = tl.load(edge + entry, mask=there, other=0)
    head, channel = tl.arange(0, HEADS)[None, :, None], tl.arange(0, C)[None, None, :]
    cell = j.to(tl.int64)[:, None, None] * (H * W) + head * W + channel
    q = tl.load(other + cell, mask=there[:, None, None] & (head < H) & (channel < W), other=0.0).to(SUM)
    x = tl.sum(p[None, :, :] * q, 2)
    s = log_link(activate(x, ACTIVATION, SLOPE), SQUAREPLUS)
    if WEIGHTED:
        mu = tl.load(weight + e, mask=there, other=1.0).to(x.dtype)
        s += tl.log(mu)[:, None]
    return there, j, e, q, x, tl.where(there[:, None], s, float("-inf"))


@triton.jit
def activate(x, ACTIVATION: tl.constexpr, SLOPE: tl.constexpr):
    """The score s of a dot product x."""
    if ACTIVATION == "exponential":
        s = tl.exp(x)
    elif ACTIVATION == "leaky":
        s = tl.where(x > 0, x, x * SLOPE)
    else:
        s = x
    return s


@triton.jit
def log_link(s, SQUAREPLUS: tl.constexpr):
    """The logarithm of the weight of a score s, without the edges' measure."""
    if SQUAREPLUS:  # asinh(s / 2), odd, by its logarithm
        size = tl.abs(s)
        near = tl.minimum(size, LARGE)
        root = tl.where(size > LARGE, size, 0.5 * (near + tl.sqrt(near * near + 4.0)))
        s = tl.where(s < 0, -tl.log(root), tl.log(root))
    return s


@triton.jit
def log_slope(x, ACTIVATION: tl.constexpr, SLOPE: tl.constexpr, SQUAREPLUS: tl.constexpr):
    """Derivative of the logarithm of the weight by the dot product, (E, HEADS)."""
    s = activate(x, ACTIVATION, SLOPE)
    if ACTIVATION == "exponential":
        slope = s
    elif ACTIVATION == "leaky":
        slope = tl.where(x > 0, x * 0.0 + 1.0, x * 0.0 + SLOPE)
    else:
        slope = x * 0.0 + 1.0
    if SQUAREPLUS:
        size = tl.abs(s)
        near = tl.minimum(size, LARGE)
        slope = slope / tl.where(size > LARGE, size, tl.sqrt(near * near + 4.0))
    return slope
