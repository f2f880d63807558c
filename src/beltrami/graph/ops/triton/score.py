"""What the attention kernels share: from the dot product on an edge to the logarithm of its weight.

Written for one side of the edges: the node that owns the row at hand, and the nodes at the other ends. A dot product
does not mind which is the receiver.
"""

import triton
import triton.language as tl

LARGE = tl.constexpr(1e6)  # beyond this, sqrt(s^2 + 4) is |s| to twelve digits, and s^2 might overflow


@triton.jit
def heads_of_one(tensor, node, H: tl.constexpr, W: tl.constexpr, HEADS: tl.constexpr, C: tl.constexpr):
    """Row ``node`` of (n, H, W), padded with zeros, (HEADS, C)."""
    head, channel = tl.arange(0, HEADS)[:, None], tl.arange(0, C)[None, :]
    at = node.to(tl.int64) * (H * W) + head * W + channel
    return tl.load(tensor + at, mask=(head < H) & (channel < W), other=0.0)


@triton.jit
def heads_of_many(tensor, node, there, H: tl.constexpr, W: tl.constexpr, HEADS: tl.constexpr, C: tl.constexpr):
    """Rows ``node`` (E,) of (n, H, W), padded with zeros, (E, HEADS, C)."""
    head, channel = tl.arange(0, HEADS)[None, :, None], tl.arange(0, C)[None, None, :]
    at = node.to(tl.int64)[:, None, None] * (H * W) + head * W + channel
    return tl.load(tensor + at, mask=there[:, None, None] & (head < H) & (channel < W), other=0.0)


@triton.jit
def of_one(tensor, node, D: tl.constexpr, C: tl.constexpr):
    """Row ``node`` of (n, D), padded with zeros, (C,)."""
    channel = tl.arange(0, C)
    return tl.load(tensor + node.to(tl.int64) * D + channel, mask=channel < D, other=0.0)


@triton.jit
def of_many(tensor, node, there, D: tl.constexpr, C: tl.constexpr):
    """Rows ``node`` (E,) of (n, D), padded with zeros, (E, C)."""
    channel = tl.arange(0, C)[None, :]
    at = node.to(tl.int64)[:, None] * D + channel
    return tl.load(tensor + at, mask=there[:, None] & (channel < D), other=0.0)


@triton.jit
def activate(x, SHAPE: tl.constexpr, SLOPE: tl.constexpr):
    """The score s of a dot product x."""
    if SHAPE == "exponential":
        s = tl.exp(x)
    elif SHAPE == "leaky":
        s = tl.where(x > 0, x, x * SLOPE)
    else:
        s = x
    return s


@triton.jit
def log_weight(
    x, e, there, weight,
    SHAPE: tl.constexpr, SLOPE: tl.constexpr, SQUAREPLUS: tl.constexpr, WEIGHTED: tl.constexpr,
):  # fmt: skip
    """Logarithm of the weight of each dot product (E, HEADS), the edges' measure included; -inf where no edge is."""
    s = activate(x, SHAPE, SLOPE)
    if SQUAREPLUS:  # asinh(s / 2), odd, by its logarithm
        size = tl.abs(s)
        near = tl.minimum(size, LARGE)
        root = tl.where(size > LARGE, size, 0.5 * (near + tl.sqrt(near * near + 4.0)))
        s = tl.where(s < 0, -tl.log(root), tl.log(root))
    if WEIGHTED:
        mu = tl.load(weight + e, mask=there, other=1.0).to(x.dtype)
        s += tl.log(mu)[:, None]
    return tl.where(there[:, None], s, float("-inf"))


@triton.jit
def log_slope(x, SHAPE: tl.constexpr, SLOPE: tl.constexpr, SQUAREPLUS: tl.constexpr):
    """Derivative of ``log_weight`` by the dot product, (E, HEADS)."""
    s = activate(x, SHAPE, SLOPE)
    if SHAPE == "exponential":
        slope = s
    elif SHAPE == "leaky":
        slope = tl.where(x > 0, x * 0.0 + 1.0, x * 0.0 + SLOPE)
    else:
        slope = x * 0.0 + 1.0
    if SQUAREPLUS:
        size = tl.abs(s)
        near = tl.minimum(size, LARGE)
        slope = slope / tl.where(size > LARGE, size, tl.sqrt(near * near + 4.0))
    return slope
