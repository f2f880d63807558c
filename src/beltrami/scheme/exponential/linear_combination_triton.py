"""Triton kernels for linear combinations and dot products: every vector is read once, for all times together.

For matrices of a few rows and millions of columns, for which cuBLAS is slow. A program takes a tile of the states of
one run and loops over the vectors. Dot products write one partial sum a tile; these are added in a fixed order.
"""

import torch
import triton
import triton.language as tl
from torch import Tensor
from triton import cdiv, next_power_of_2

TIMES = 32  # the most times of a tile; more are split among programs
TILE = 4096  # values of a tile: times multiplied by positions
WARPS = 4


@triton.jit(do_not_specialize=["terms", "times"])
def _combine(
    start, d, block, out, size, stride, terms, times, run_stride, time_stride,
    FRESH: tl.constexpr, J: tl.constexpr, B: tl.constexpr, SUM: tl.constexpr,
):  # fmt: skip
    """Add to ``start`` if FRESH, else to the values in ``out``."""
    position, run = tl.program_id(0).to(tl.int64) * B + tl.arange(0, B), tl.program_id(1).to(tl.int64)
    time = tl.program_id(2) * J + tl.arange(0, J)
    valid, valid_time = position < size, time < times
    both = valid_time[:, None] & valid[None, :]
    run_out = out + run * (times + 1) * size
    target = run_out + (time + 1).to(tl.int64)[:, None] * size + position[None, :]
    if FRESH:
        y = tl.load(start + run * size + position, mask=valid, other=0.0)
        if tl.program_id(2) == 0:
            tl.store(run_out + position, y, mask=valid)
        acc = tl.zeros((J, B), SUM) + y.to(SUM)[None, :]
    else:
        acc = tl.load(target, mask=both, other=0.0).to(SUM)
    weights, vector = d + run * run_stride + time * time_stride, block + run * size + position
    for k in range(terms):
        w = tl.load(vector, mask=valid, other=0.0).to(SUM)
        vector += stride  # added in every iteration, since k * stride may exceed 32 bits
        acc += tl.load(weights + k, mask=valid_time, other=0.0).to(SUM)[:, None] * w[None, :]
    tl.store(target, acc, mask=both)


@triton.jit(do_not_specialize=["terms", "times"])
def _dots(
    g, block, out, size, stride, terms, times, run_stride, time_stride,
    J: tl.constexpr, B: tl.constexpr, SUM: tl.constexpr,
):  # fmt: skip
    position, run = tl.program_id(0).to(tl.int64) * B + tl.arange(0, B), tl.program_id(1).to(tl.int64)
    time = (tl.program_id(2) * J + tl.arange(0, J)).to(tl.int64)
    valid, valid_time = position < size, time < times
    both = valid_time[:, None] & valid[None, :]
    x = tl.load(g + run * run_stride + time[:, None] * time_stride + position[None, :], mask=both, other=0.0).to(SUM)
    tile, vector = run * tl.num_programs(0) + tl.program_id(0), block + run * size + position
    for k in range(terms):
        w = tl.load(vector, mask=valid, other=0.0).to(SUM)
        vector += stride
        tl.store(out + (tile * times + time) * terms + k, tl.sum(x * w[None, :], 1), mask=valid_time)


def combine(ys: Tensor, y0: Tensor | None, d: Tensor, block: Tensor) -> None:
    """Write y0, and y0 + sum_k d_jk w_k at each time j, into ``ys``; without y0 add the sum to ``ys``.

    Shapes:
        ``ys`` (runs, 1 + j, n, d), ``y0`` (runs, n, d), ``d`` (runs, j, k), ``block`` (k, runs, n, d).
    """
    terms, runs = block.shape[:2]
    size, times = ys[0, 0].numel(), d.shape[1]
    if ys.numel() == 0:
        return
    d = d if d.stride(2) == 1 else d.contiguous()
    j, b = _tile(times)
    start = ys if y0 is None else y0.contiguous()
    with torch.cuda.device_of(ys):
        _combine[cdiv(size, b), runs, cdiv(times, j)](
            start, d, block, ys, size, block.stride(0), terms, times, d.stride(0), d.stride(1),
            FRESH=y0 is not None, J=j, B=b, SUM=_sum_type(ys), num_warps=WARPS,
        )  # fmt: skip


def dots(g: Tensor, block: Tensor) -> Tensor:
    """Return <g_j, w_k> of every run, (runs, j, n, d), (k, runs, n, d) -> (runs, j, k)."""
    runs, times = g.shape[:2]
    terms, size = len(block), block[0, 0].numel()
    g = g if g[0, 0].is_contiguous() else g.contiguous()
    j, b = _tile(times)
    tiles = cdiv(size, b)
    dtype = torch.float64 if g.dtype == torch.float64 else torch.float32
    partial = g.new_zeros(runs, tiles, times, terms, dtype=dtype)
    if g.numel():
        with torch.cuda.device_of(g):
            _dots[tiles, runs, cdiv(times, j)](
                g, block, partial, size, block.stride(0), terms, times, g.stride(0), g.stride(1),
                J=j, B=b, SUM=_sum_type(g), num_warps=WARPS,
            )  # fmt: skip
    return partial.sum(1).to(g.dtype)


def _tile(times: int) -> tuple[int, int]:
    """Return the times and positions of a tile."""
    j = min(int(next_power_of_2(max(times, 1))), TIMES)
    return j, max(1, min(TILE // j, TILE // 4))


def _sum_type(tensor: Tensor) -> tl.dtype:
    return tl.float64 if tensor.dtype == torch.float64 else tl.float32
